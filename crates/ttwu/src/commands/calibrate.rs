//! `ttwu calibrate`: what wake-ups and switches cost on this machine.

use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print, say};
use crate::place;
use anyhow::anyhow;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use ttwu_fair::Policy;
use ttwu_host::measure::far::{Carrier, StreamRound, busy_wakes, queued_calls, stream_calls};
use ttwu_host::measure::{self, Effort};
use ttwu_host::sysfs::{private_cache_kib, read_idle_states, read_topology, under_hypervisor};
use ttwu_lab::calibrate::{
    Calibrated, Calibration, FAR_MESSAGES, MESSAGE_BYTES, Measurement, Observed, PAGE_BYTES, QUEUED_MESSAGES,
    QUEUED_SOCKETS, calibrate, simulated_round_trip,
};
use ttwu_model::{CpuId, Level, Topology};
use ttwu_sim::{Cost, Costs};

/// `ttwu calibrate`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Small measurements on bound threads (some seconds, no privileges) determine the costs that\ndecide most; the others keep a preset's value and are marked so. A scenario on this\nmachine names the file: machine = \"host\", costs = \"host.toml\". Other load makes the\nresult worse: prefer a quiet machine.\n\nExample:\n  ttwu calibrate -o host.toml"
)]
pub(crate) struct Args {
    /// Cost file to make
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How often everything is measured: a virtual machine's speed changes from one second to the next
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

/// Batches of many short operations.
const SHORT: Effort = Effort { batches: 101, operations: 2000 };
/// Batches of round trips.
const TRIPS: Effort = Effort { batches: 101, operations: 200 };
/// Batches of calls on streams that another CPU uses too.
const FAR_CALLS: Effort = Effort { batches: 41, operations: 1600 };
/// Batches of calls on sockets with many messages queued.
const QUEUED_BATCHES: usize = 15;
/// Streams that are walked over: as many as a sender of hackbench has. How many matters little (measured up to 400).
const STREAMS_WALKED: usize = 20;
/// Tasks that sleep on a busy CPU.
const SLEEPERS: usize = 20;
/// Single wake-ups.
const WAKES: usize = 601;
/// How long a CPU idles before a single wake-up, ns: about as long as in benchmarks that wake often.
const PAUSE_NS: u64 = 50_000;
/// How far simulated round trips may be from the measured ones.
const AGREES_PERCENT: u64 = 10;

/// Measures, solves, writes.
pub(crate) fn run(args: &Args) -> Outcome {
    let topology = read_topology(Path::new("/")).map_err(Failure::input)?;
    let Some(first) = usable(&topology).first().copied() else {
        return Err(Failure::forbidden(anyhow!("no online CPU may be used by this process")));
    };
    // Before the seconds of measuring.
    args.output.as_deref().map(place::check).transpose().map_err(Failure::input)?;
    let pairs = Pairs::of(&topology, first);
    if !args.quiet {
        say("measuring; this takes some seconds");
    }
    let mut observed = Observed::new();
    for _ in 0..args.rounds {
        observe(first, &pairs, &mut observed);
    }
    let preset = if under_hypervisor() { "vm" } else { "skylake-server" };
    let base = Costs::preset(preset).map_err(Failure::input)?;
    let mut facts = idle_facts(first).map_err(Failure::input)?;
    if let Some(kib) = private_cache_kib(Path::new("/"), first) {
        facts.push((Cost::RefillKibMax, kib, "sysfs: the second-level cache".to_owned()));
    }
    let borrowed: Vec<(Cost, u64, &str)> =
        facts.iter().map(|(cost, value, source)| (*cost, *value, source.as_str())).collect();
    let calibration = calibrate(&observed, &base, &borrowed);
    let checks = checks(&topology, first, &pairs, &observed, &calibration).map_err(Failure::input)?;
    // What was measured is printed even if the file has no room.
    let (file, written) = match &args.output {
        Some(path) => match place::write(path, &cost_file(&calibration, &observed)) {
            Ok(()) => (Some(path.as_path()), Ok(())),
            Err(error) => (None, Err(Failure::input(error))),
        },
        None => (None, Ok(())),
    };
    match args.format {
        OutputFormat::Text => print(&as_text(&calibration, &observed, &checks, file)),
        OutputFormat::Json => print(&format!("{:#}", as_json(&calibration, &observed, &checks))),
    }?;
    written.map(|()| Done::Ok)
}

/// The online CPUs that this process may be bound to, within its affinity mask.
fn usable(topology: &Topology) -> Vec<CpuId> {
    topology.online().iter().filter(|&cpu| measure::may_use(cpu)).collect()
}

/// The nearest CPU of each distance from the first, where there is one.
struct Pairs {
    smt: Option<CpuId>,
    /// Another core of the LLC; where no two share one, of the node.
    other: Option<CpuId>,
    llc: Option<CpuId>,
    node: Option<CpuId>,
    why_none: &'static str,
}

impl Pairs {
    fn of(topology: &Topology, first: CpuId) -> Self {
        let cpus = usable(topology);
        let at = |wanted: &[Level]| {
            let fits = |cpu: CpuId| topology.level(first, cpu).is_some_and(|level| wanted.contains(&level));
            cpus.iter().copied().find(|&cpu| fits(cpu))
        };
        let llc = at(&[Level::Die, Level::Node]);
        Self {
            smt: at(&[Level::Smt]),
            other: at(&[Level::Cluster, Level::Llc]).or(llc),
            llc,
            node: at(&[Level::Remote]),
            why_none: if cpus.len() < topology.online().len() {
                "no such pair of CPUs in the affinity mask"
            } else {
                "no such pair of CPUs"
            },
        }
    }
}

/// Makes all measurements that this machine has the CPUs for.
fn observe(first: CpuId, pairs: &Pairs, observed: &mut Observed) {
    let mut put = |what: Measurement, result: io::Result<Vec<u64>>| match result {
        Ok(samples) => observed.put(what, samples),
        Err(error) => observed.miss(what, error.to_string()),
    };
    put(Measurement::ClockRead, measure::clock_read(first, SHORT));
    put(Measurement::SystemCall, measure::system_call(first, SHORT));
    put(Measurement::PipeByte, measure::pipe_alone(first, 1, SHORT));
    put(Measurement::PipePage, measure::pipe_alone(first, PAGE_BYTES, SHORT));
    put(Measurement::SocketByte, measure::socket_alone(first, 1, SHORT));
    put(Measurement::FutexWakeNobody, measure::futex_wake_nobody(first, SHORT));
    put(Measurement::FutexWaitNot, measure::futex_wait_not(first, SHORT));
    put(Measurement::YieldAlone, measure::yield_alone(first, SHORT));
    put(Measurement::YieldSwitch, measure::yield_switch(first, SHORT));
    put(Measurement::PipeSameCpu, measure::pipe_round_trip(first, first, TRIPS));
    put(Measurement::PipeProcesses, measure::pipe_round_trip_processes(first, TRIPS));
    put(
        Measurement::FutexWakeSameCpu,
        measure::futex_wake(first, first, PAUSE_NS, WAKES).map(|wake| wake.waker_ns),
    );
    put(Measurement::TimerLate, measure::timer_wakeup(first, PAUSE_NS, WAKES));
    let trips = [
        (Measurement::PipeSmt, pairs.smt),
        (Measurement::PipeOtherCpu, pairs.other),
        (Measurement::PipeOtherLlc, pairs.llc),
        (Measurement::PipeOtherNode, pairs.node),
    ];
    let mut missing = Vec::new();
    for (what, other) in trips {
        match other {
            Some(other) => put(what, measure::pipe_round_trip(first, other, TRIPS)),
            None => missing.push(what),
        }
    }
    let lines = [
        (Measurement::Line, pairs.other),
        (Measurement::LineOtherLlc, pairs.llc),
        (Measurement::LineOtherNode, pairs.node),
    ];
    for (what, other) in lines {
        match other {
            Some(other) => put(what, measure::cache_line(first, other, TRIPS)),
            None => missing.push(what),
        }
    }
    match pairs.other {
        Some(other) => match measure::futex_wake(first, other, PAUSE_NS, WAKES) {
            Ok(wake) => {
                put(Measurement::FutexWakeOtherCpu, Ok(wake.waker_ns));
                put(Measurement::FutexLatencyOtherCpu, Ok(wake.latency_ns));
            }
            Err(error) => put(Measurement::FutexWakeOtherCpu, Err(error)),
        },
        None => missing.extend([Measurement::FutexWakeOtherCpu, Measurement::FutexLatencyOtherCpu]),
    }
    for what in missing {
        observed.miss(what, pairs.why_none);
    }
    observe_far(first, pairs, observed);
    let small = StreamRound { carrier: Carrier::Socket, streams: 1, messages: 8, bytes: MESSAGE_BYTES };
    let large = StreamRound { streams: QUEUED_SOCKETS, messages: QUEUED_MESSAGES, ..small };
    match queued_calls(first, small, large, QUEUED_BATCHES) {
        Ok((few, many)) => {
            observed.put(Measurement::SocketFew, few);
            observed.put(Measurement::SocketMany, many);
        }
        Err(error) => observed.miss(Measurement::SocketMany, error.to_string()),
    }
}

/// What it costs that another CPU was there before.
fn observe_far(first: CpuId, pairs: &Pairs, observed: &mut Observed) {
    const STREAMS: [(Measurement, Carrier, usize); 4] = [
        (Measurement::PipeFar, Carrier::Pipe, 1),
        (Measurement::PipeFarMany, Carrier::Pipe, FAR_MESSAGES),
        (Measurement::SocketFar, Carrier::Socket, 1),
        (Measurement::SocketFarMany, Carrier::Socket, FAR_MESSAGES),
    ];
    const BUSY: [Measurement; 4] = [
        Measurement::BusyWakeNear,
        Measurement::BusyWakeFar,
        Measurement::BusyBackNear,
        Measurement::BusyBackFar,
    ];
    let Some(other) = pairs.other else {
        let all = STREAMS.map(|row| row.0).into_iter().chain(BUSY);
        all.for_each(|what| observed.miss(what, pairs.why_none));
        return;
    };
    for (what, carrier, messages) in STREAMS {
        let round = StreamRound { carrier, streams: STREAMS_WALKED, messages, bytes: MESSAGE_BYTES };
        match stream_calls(first, other, round, FAR_CALLS) {
            Ok(calls) => {
                let far = calls.write_far_ns.iter().zip(&calls.read_far_ns).map(|(write, read)| write + read);
                let near =
                    calls.write_near_ns.iter().zip(&calls.read_near_ns).map(|(write, read)| write + read);
                let dearer = far.zip(near).map(|(far, near)| far.saturating_sub(near) / 2);
                observed.put(what, dearer.collect());
            }
            Err(error) => observed.miss(what, error.to_string()),
        }
    }
    // The busy CPU is the other one: the first has the interrupts of most machines.
    match busy_wakes(first, other, SLEEPERS, 2 * WAKES) {
        Ok(wakes) => {
            let samples = [wakes.wake_near_ns, wakes.wake_far_ns, wakes.back_near_ns, wakes.back_far_ns];
            BUSY.into_iter().zip(samples).for_each(|(what, samples)| observed.put(what, samples));
        }
        Err(error) => BUSY.into_iter().for_each(|what| observed.miss(what, error.to_string())),
    }
}

/// What the kernel's own table says of idle states: not measured here, but not guessed either.
fn idle_facts(cpu: CpuId) -> Result<Vec<(Cost, u64, String)>, ttwu_host::sysfs::SysfsError> {
    const DEEPER: [(Cost, Cost); 3] = [
        (Cost::Idle1Exit, Cost::Idle1Residency),
        (Cost::Idle2Exit, Cost::Idle2Residency),
        (Cost::Idle3Exit, Cost::Idle3Residency),
    ];
    let states = read_idle_states(Path::new("/"), cpu)?;
    // The polling state needs no fact; under haltpoll it is the first as elsewhere.
    let deeper: Vec<_> = states.iter().filter(|state| state.residency_ns > 0).collect();
    if deeper.is_empty() {
        return Ok(Vec::new());
    }
    let mut facts = Vec::new();
    for (index, (exit, residency)) in DEEPER.into_iter().enumerate() {
        match deeper.get(index) {
            Some(state) => {
                let source = format!("cpuidle's table: {}", state.name);
                facts.push((exit, state.exit_ns, source.clone()));
                facts.push((residency, state.residency_ns, source));
            }
            None => facts.push((residency, 0, "cpuidle's table: no such state".to_owned())),
        }
    }
    Ok(facts)
}

/// A micro-benchmark, measured and simulated with the costs that came out of it.
struct Check {
    what: Measurement,
    measured_ns: u64,
    simulated_ns: u64,
}

impl Check {
    fn percent(&self) -> f64 {
        (self.simulated_ns as f64 / self.measured_ns.max(1) as f64 - 1.0) * 100.0
    }

    fn agrees(&self) -> bool {
        self.simulated_ns.abs_diff(self.measured_ns) * 100 <= self.measured_ns * AGREES_PERCENT
    }
}

fn checks(
    topology: &Topology,
    first: CpuId,
    pairs: &Pairs,
    observed: &Observed,
    calibration: &Calibration,
) -> anyhow::Result<Vec<Check>> {
    // Which kernel's rules hardly matters where a task may run on one CPU only.
    let policy = Policy::parse("linux-6.12").map_err(|error| anyhow!("{error}"))?;
    let mut checks = Vec::new();
    for (what, other) in [
        (Measurement::PipeSameCpu, Some(first)),
        (Measurement::PipeSmt, pairs.smt),
        (Measurement::PipeOtherCpu, pairs.other),
        (Measurement::PipeOtherLlc, pairs.llc),
        (Measurement::PipeOtherNode, pairs.node),
    ] {
        if let (Some(other), Some(median)) = (other, observed.median(what)) {
            let simulated_ns = simulated_round_trip(topology, &policy, &calibration.costs, (first, other))?;
            checks.push(Check { what, measured_ns: median.estimate.round() as u64, simulated_ns });
        }
    }
    Ok(checks)
}

/// The cost file, with a comment of value, interval and source for each cost.
fn cost_file(calibration: &Calibration, observed: &Observed) -> String {
    let mut out = String::from("# Costs of one machine, as `ttwu calibrate` measured them.\n#\n");
    for line in ttwu_lab::calibrate::EQUATIONS.lines() {
        let _ = writeln!(out, "# {line}");
    }
    out.push_str("#\n# Medians, 95 % interval, samples:\n");
    for (what, line) in measured_lines(observed) {
        let _ = writeln!(out, "# {:24} {line}", what.name());
    }
    out.push_str("#\n# Costs:\n");
    for row in &calibration.rows {
        let _ = writeln!(out, "# {}", cost_line(row));
    }
    let _ = write!(out, "\n{}", calibration.costs.to_toml());
    out
}

fn measured_lines(observed: &Observed) -> Vec<(Measurement, String)> {
    let line = |what: Measurement| match observed.median(what) {
        Some(median) => format!(
            "{:>8.0} ns [{:.0}, {:.0}] of {}",
            median.estimate,
            median.low,
            median.high,
            observed.count(what)
        ),
        None => format!("not measured: {}", observed.why_missing(what).unwrap_or("no samples")),
    };
    Measurement::ALL.into_iter().map(|what| (what, line(what))).collect()
}

fn cost_line(row: &Calibrated) -> String {
    let interval = row.interval.map_or(String::new(), |(low, high)| format!(" [{low}, {high}]"));
    format!("{:26} {}{interval} {}: {}", row.row.name, row.value, row.row.unit, row.source)
}

fn as_text(calibration: &Calibration, observed: &Observed, checks: &[Check], file: Option<&Path>) -> String {
    let mut out = String::from("measured (median, 95 % interval, samples)\n");
    for (what, line) in measured_lines(observed) {
        let _ = writeln!(out, "  {:24} {line}", what.name());
    }
    out.push_str("\ncosts that follow\n");
    for row in calibration.rows.iter().filter(|row| row.interval.is_some() || row.not_determined) {
        let interval = row.interval.map_or(String::new(), |(low, high)| format!("[{low}, {high}] "));
        // What is not determined keeps the preset's basis, which is not this calibration's.
        let basis = if row.not_determined { "preset" } else { row.basis.name() };
        let _ = writeln!(
            out,
            "  {:18} {:>7} {:6} {interval}{basis}\n      {}",
            row.row.name, row.value, row.row.unit, row.source
        );
    }
    let rest = calibration.rows.iter().filter(|row| row.interval.is_none() && !row.not_determined).count();
    let preset = calibration.costs.preset_name();
    let _ = writeln!(out, "  {rest} others are not measured and keep the values of preset {preset}");
    out.push_str("\nsimulated with these costs\n");
    for check in checks {
        let verdict = if check.agrees() { "agrees" } else { "does not agree within 10 %" };
        let _ = writeln!(
            out,
            "  {:18} measured {:>7} ns, simulated {:>7} ns ({:+.1} %): {verdict}",
            check.what.name(),
            check.measured_ns,
            check.simulated_ns,
            check.percent()
        );
    }
    if let Some(file) = file {
        let _ = writeln!(out, "\nwritten to {}", file.display());
    }
    out
}

fn as_json(calibration: &Calibration, observed: &Observed, checks: &[Check]) -> Value {
    let mut costs = Map::new();
    for row in &calibration.rows {
        // Only times have the key that names their unit; the few others say it.
        let value = if row.row.unit == "ns" { "value_ns" } else { "value" };
        let interval = if row.row.unit == "ns" { "ci_ns" } else { "ci" };
        costs.insert(
            row.row.name.to_owned(),
            json!({
                value: row.value,
                interval: row.interval.map(|(low, high)| [low, high]),
                "unit": row.row.unit,
                "basis": row.basis.name(),
                "measured": row.interval.is_some(),
                "source": row.source,
            }),
        );
    }
    let mut measured = Map::new();
    for what in Measurement::ALL {
        let value = match observed.median(what) {
            Some(median) => json!({
                "median_ns": median.estimate.round() as u64,
                "ci_ns": [median.low.floor() as u64, median.high.ceil() as u64],
                "samples": observed.count(what),
            }),
            None => json!({ "missing": observed.why_missing(what).unwrap_or("no samples") }),
        };
        measured.insert(what.name().to_owned(), value);
    }
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| {
            json!({
                "name": check.what.name(),
                "measured_ns": check.measured_ns,
                "simulated_ns": check.simulated_ns,
                "agrees": check.agrees(),
            })
        })
        .collect();
    json!({
        "schema": "ttwu/calibrate/1",
        "preset": calibration.costs.preset_name(),
        "costs": costs,
        "measured": measured,
        "checks": checks,
    })
}
