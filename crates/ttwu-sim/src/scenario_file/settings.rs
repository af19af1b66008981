//! The `[settings]` table: each key changes what an ordinary machine under the policy's kernel has.

use ttwu_fair::Kernel;
use ttwu_model::{CpuSet, NodeId, Topology};
use ttwu_workload::spec_toml::{Fields, SpecError};
use ttwu_workload::{parse_time, time_text};

use crate::{
    Frequency, Governor, IdleSettings, MemoryPlacement, Noise, Polling, PreemptionModel, Settings, Switch,
    TickSkew,
};

const PREEMPTION: [(&str, PreemptionModel); 4] = [
    ("none", PreemptionModel::None),
    ("voluntary", PreemptionModel::Voluntary),
    ("full", PreemptionModel::Full),
    ("lazy", PreemptionModel::Lazy),
];
const POLLING: [(&str, Polling); 2] = [("machine", Polling::Machine), ("never", Polling::Never)];
const SKEW: [(&str, TickSkew); 2] = [("coincide", TickSkew::Coincide), ("spread", TickSkew::Spread)];

pub(super) fn read(
    mut fields: Fields<'_>,
    kernel: Kernel,
    topology: &Topology,
) -> Result<Settings, SpecError> {
    let ordinary = Settings::of(kernel);
    let time = |text: &str| match parse_time(text, 0)? {
        0 => Err("expected a time above 0 with its unit, such as `10ms`".to_owned()),
        ns => Ok(ns),
    };
    let idle = IdleSettings {
        governor: fields.read("governor", governor)?.unwrap_or(ordinary.idle.governor),
        deepest: fields.integer("deepest_idle", 0, 255)?.map(|state| state as u8).or(ordinary.idle.deepest),
        history_ns: fields.read("idle_history", time)?.or(ordinary.idle.history_ns),
        spans_count_exit: match fields.flag("idle_spans_count_exit")? {
            None => ordinary.idle.spans_count_exit,
            Some(true) => Switch::On,
            Some(false) => Switch::Off,
        },
        polling: fields.choice("polling", &POLLING)?.unwrap_or(ordinary.idle.polling),
    };
    let memory = fields.read("memory", |text| memory(text, topology))?;
    let settings = Settings {
        preemption: fields.choice("preemption", &PREEMPTION)?.unwrap_or(ordinary.preemption),
        idle,
        frequency: frequency(&mut fields)?.or(ordinary.frequency),
        noise: noise(&mut fields)?.or(ordinary.noise),
        wait_queue_lock: match fields.flag("wait_queue_lock")? {
            None => ordinary.wait_queue_lock,
            Some(true) => Switch::On,
            Some(false) => Switch::Off,
        },
        memory: memory.unwrap_or(ordinary.memory),
        tick_skew: fields.choice("tick_skew", &SKEW)?.unwrap_or(ordinary.tick_skew),
        allowed: fields.read("cpus", |text| cpus(text, topology))?.or(ordinary.allowed),
        starved_ns: fields.read("starved", time)?.unwrap_or(ordinary.starved_ns),
    };
    fields.finish()?;
    Ok(settings)
}

fn governor(text: &str) -> Result<Governor, String> {
    match text.split_once(' ') {
        None if text == "menu" => Ok(Governor::Menu),
        Some(("fixed", state)) => state
            .parse()
            .map(Governor::Fixed)
            .map_err(|_| format!("expected an idle state's number, found `{state}`")),
        _ => Err(format!("expected `menu` or `fixed STATE`, found `{text}`")),
    }
}

fn memory(text: &str, topology: &Topology) -> Result<MemoryPlacement, String> {
    match text.split_once(' ') {
        None if text == "local" => Ok(MemoryPlacement::Local),
        Some(("node", node)) => topology
            .nodes()
            .iter()
            .map(|known| known.id)
            .find(|id| id.to_string() == node)
            .map(MemoryPlacement::Node)
            .ok_or_else(|| format!("the machine has no node `{node}`")),
        _ => Err(format!("expected `local` or `node NUMBER`, found `{text}`")),
    }
}

fn cpus(text: &str, topology: &Topology) -> Result<CpuSet, String> {
    let set = CpuSet::parse_list(text).map_err(|error| error.to_string())?;
    let all = CpuSet::first(topology.cpu_bound());
    if set.is_empty() || !set.is_subset(&all) {
        return Err(format!("expected some of the CPUs {all}, found `{text}`"));
    }
    Ok(set)
}

fn frequency(fields: &mut Fields<'_>) -> Result<Option<Frequency>, SpecError> {
    let Some(mut table) = fields.table("frequency")? else { return Ok(None) };
    let min_permille = table.integer("min_permille", 1, 1_000)?;
    let sample = table.read("sample", |text| parse_time(text, 0))?;
    let at = table.at();
    table.finish()?;
    match (min_permille, sample) {
        (Some(min), Some(sample_ns)) if sample_ns > 0 => {
            Ok(Some(Frequency { min_permille: min as u32, sample_ns }))
        }
        _ => Err(fields
            .source()
            .error(at, "frequency: expected `min_permille` and `sample`, such as 390 and \"10ms\"")),
    }
}

fn noise(fields: &mut Fields<'_>) -> Result<Option<Noise>, SpecError> {
    let Some(mut table) = fields.table("noise")? else { return Ok(None) };
    let at = table.at();
    let mut time = |key: &'static str| table.read(key, |text| parse_time(text, 0));
    let (run, low, high) = (time("run")?, time("sleep_min")?, time("sleep_max")?);
    table.finish()?;
    match (run, low, high) {
        (Some(run_ns), Some(sleep_ns_min), Some(sleep_ns_max))
            if run_ns > 0 && 0 < sleep_ns_min && sleep_ns_min <= sleep_ns_max =>
        {
            Ok(Some(Noise { run_ns, sleep_ns_min, sleep_ns_max }))
        }
        _ => Err(fields.source().error(
            at,
            "noise: expected `run`, `sleep_min` and `sleep_max`, such as \"20us\", \"20ms\" and \"100ms\"",
        )),
    }
}

/// The keys that differ from the ordinary, as lines.
pub(super) fn print(settings: &Settings, kernel: Kernel) -> Vec<String> {
    // Taken apart without `..`, so that a setting that is added cannot be forgotten here.
    let Settings {
        preemption,
        idle,
        frequency,
        noise,
        wait_queue_lock,
        memory,
        tick_skew,
        allowed,
        starved_ns,
    } = settings;
    let IdleSettings { governor, deepest, history_ns, spans_count_exit, polling } = idle;
    let ordinary = Settings::of(kernel);
    let mut lines = Vec::new();
    let mut line = |differs: bool, text: String| {
        if differs {
            lines.push(text);
        }
    };
    let governor_text = match governor {
        Governor::Menu => "menu".to_owned(),
        Governor::Fixed(state) => format!("fixed {state}"),
    };
    line(*governor != ordinary.idle.governor, format!("governor = \"{governor_text}\""));
    if let Some(state) = deepest {
        line(true, format!("deepest_idle = {state}"));
    }
    if let Some(ns) = history_ns {
        line(true, format!("idle_history = \"{}\"", time_text(*ns)));
    }
    line(
        *spans_count_exit != ordinary.idle.spans_count_exit,
        format!("idle_spans_count_exit = {}", *spans_count_exit == Switch::On),
    );
    line(*polling != ordinary.idle.polling, format!("polling = \"{}\"", word(&POLLING, *polling)));
    line(*preemption != ordinary.preemption, format!("preemption = \"{}\"", word(&PREEMPTION, *preemption)));
    if let Some(Frequency { min_permille, sample_ns }) = frequency {
        line(
            true,
            format!(
                "frequency = {{ min_permille = {min_permille}, sample = \"{}\" }}",
                time_text(*sample_ns)
            ),
        );
    }
    if let Some(Noise { run_ns, sleep_ns_min, sleep_ns_max }) = noise {
        let [run, low, high] = [run_ns, sleep_ns_min, sleep_ns_max].map(|ns| time_text(*ns));
        line(true, format!("noise = {{ run = \"{run}\", sleep_min = \"{low}\", sleep_max = \"{high}\" }}"));
    }
    line(
        *wait_queue_lock != ordinary.wait_queue_lock,
        format!("wait_queue_lock = {}", *wait_queue_lock == Switch::On),
    );
    if let MemoryPlacement::Node(node) = memory {
        line(true, format!("memory = \"node {}\"", node_number(*node)));
    }
    line(*tick_skew != ordinary.tick_skew, format!("tick_skew = \"{}\"", word(&SKEW, *tick_skew)));
    if let Some(set) = allowed {
        line(true, format!("cpus = \"{set}\""));
    }
    line(*starved_ns != ordinary.starved_ns, format!("starved = \"{}\"", time_text(*starved_ns)));
    lines
}

fn node_number(node: NodeId) -> String {
    node.to_string()
}

fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| *word).expect("the table has all values")
}
