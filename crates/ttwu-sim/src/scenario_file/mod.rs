//! Scenarios as TOML files; docs/scenario.md describes the format.
//!
//! Reading touches no file and no machine itself: what a scenario names outside of its text (an rt-app file, a topology file, the
//! host) is asked for through [`Surroundings`]. A scenario prints itself as a file that needs none of them, and its id is the hash
//! of that text and of everything behind its names, so that a table whose numbers change gives other ids.

mod print;
mod settings;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ttwu_fair::{Kernel, Policy};
use ttwu_model::{CpuSet, MACHINES, Machine, Topology};
use ttwu_workload::spec_toml::{Fields, Node, Source, SpecError, Value};
use ttwu_workload::{MachineInfo, ObjectKind, Until, Workload, nearest_name, parse_time, rtapp};

use crate::{Basis, Costs, PRESETS, Scenario, Settings};

pub use print::ScenarioId;

/// The version of the format that is written, and the newest that is read.
pub const FORMAT: i64 = 1;

/// Where a run ends that neither its workload nor its file ends: a minute.
const DURATION_NS: u64 = 60_000_000_000;

/// What lies outside of a scenario's text.
pub trait Surroundings {
    /// The text of a file that the scenario names, relative to the scenario's own place.
    ///
    /// # Errors
    /// Why it cannot be had, as a fragment.
    fn file(&self, path: &str) -> Result<String, String>;

    /// The topology of this machine.
    ///
    /// # Errors
    /// Why it cannot be had, as a fragment.
    fn host(&self) -> Result<Topology, String>;
}

/// Nothing lies outside: scenarios must be complete in themselves.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Surroundings for Nothing {
    fn file(&self, _: &str) -> Result<String, String> {
        Err("no files are read here".to_owned())
    }

    fn host(&self) -> Result<Topology, String> {
        Err("this machine is not looked at here; name one or give its text".to_owned())
    }
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// What is wrong, by line and column, with the nearest known name.
    pub fn parse(text: &str, surroundings: &dyn Surroundings) -> Result<Self, SpecError> {
        Self::parse_with_notes(text, surroundings).map(|(scenario, _)| scenario)
    }

    /// As [`Scenario::parse`], with what its reader should know about a file that it imports, one sentence each.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_with_notes(
        text: &str,
        surroundings: &dyn Surroundings,
    ) -> Result<(Self, Vec<String>), SpecError> {
        let source = Source::new(text);
        let node = source.parse()?;
        let mut fields = Fields::new(source, &node, "scenario")?;
        format_version(&mut fields)?;
        let policy = policy(&mut fields)?;
        let (topology, preset) = machine(&mut fields, surroundings)?;
        let info = MachineInfo { cpus: topology.cpu_bound() as u32 };
        let (workload, notes) = workload(&mut fields, &info, surroundings)?;
        let at = fields.at();
        somewhere_to_run(&workload, &topology).map_err(|message| source.error(at, message))?;
        let costs = match fields.node("costs") {
            Some(node) => match &node.value {
                Value::Text(path) => cost_file(path, node, source, surroundings)?,
                Value::Integer(_) | Value::Flag(_) | Value::Array(_) | Value::Table(_) | Value::Other(_) => {
                    Costs::from_fields(Fields::new(source, node, "costs")?, preset)?
                }
            },
            None => preset_costs(preset, source, at)?,
        };
        let settings = match fields.table("settings")? {
            Some(fields) => settings::read(fields, policy.kernel(), &topology)?,
            None => Settings::of(policy.kernel()),
        };
        let seed = fields.integer("seed", 0, i64::MAX)?.unwrap_or(1) as u64;
        let duration = fields.read("duration", |text| match parse_time(text, 0)? {
            0 => Err("expected a time above 0 with its unit, such as `2s`".to_owned()),
            ns => Ok(ns),
        })?;
        let own = match workload.until {
            Until::Time(ns) => ns,
            Until::Exit(_) | Until::AllExit => DURATION_NS,
        };
        fields.finish()?;
        let until_ns = duration.unwrap_or(own);
        Ok((Self { workload, topology, policy, costs, settings, seed, until_ns }, notes))
    }
}

/// Every task and every set of CPUs that a task may be confined to must have a CPU of this machine.
fn somewhere_to_run(workload: &Workload, topology: &Topology) -> Result<(), String> {
    let online = topology.online();
    let misses = |set: &CpuSet| set.intersection(online).is_empty();
    for task in &workload.tasks {
        if task.allowed.as_ref().is_some_and(misses) {
            return Err(format!(
                "workload: task `{}`: none of its CPUs is one of the machine's, {online}",
                task.name
            ));
        }
    }
    for object in &workload.objects {
        if let ObjectKind::Cpus(set) = &object.kind
            && misses(set)
        {
            return Err(format!(
                "workload: CPUs `{}`: none of them is one of the machine's, {online}",
                object.name
            ));
        }
    }
    Ok(())
}

fn format_version(fields: &mut Fields<'_>) -> Result<(), SpecError> {
    let at = fields.at();
    match fields.integer("scenario", 1, i64::MAX)? {
        None | Some(FORMAT) => Ok(()),
        Some(newer) => Err(fields.source().error(
            at,
            format!("scenario: this file is of format {newer}, and formats up to {FORMAT} are known; a newer ttwu reads it"),
        )),
    }
}

fn policy(fields: &mut Fields<'_>) -> Result<Policy, SpecError> {
    let read = fields.read("policy", |text| Policy::parse(text).map_err(|error| error.to_string()))?;
    // What distributions run today; printed in every file that is written.
    Ok(read.unwrap_or_else(|| Policy::of(Kernel::V6_12)))
}

/// The topology, and the cost preset of a machine that has one.
fn machine(
    fields: &mut Fields<'_>,
    surroundings: &dyn Surroundings,
) -> Result<(Topology, Option<&'static str>), SpecError> {
    let source = fields.source();
    let node = fields.required("machine")?;
    match &node.value {
        Value::Text(name) => named_machine(name, "", surroundings)
            .map_err(|message| source.error(node.span.start, format!("machine: {message}"))),
        _ => machine_table(Fields::new(source, node, "machine")?, surroundings),
    }
}

fn machine_table(
    mut fields: Fields<'_>,
    surroundings: &dyn Surroundings,
) -> Result<(Topology, Option<&'static str>), SpecError> {
    let (source, at) = (fields.source(), fields.at());
    let name = fields.text("name")?;
    let text = fields.text("text")?;
    let file = fields.text("file")?;
    let with = fields.text("with")?.map_or("", |(with, _)| with);
    fields.finish()?;
    let parsed = |text: &str, span: &Range<usize>, what: &str| {
        Topology::parse(&format!("{text}\n{with}"))
            .map(|topology| (topology, None))
            .map_err(|error| source.error(span.start, format!("machine: {what}: {error}")))
    };
    match (name, text, file) {
        (Some((name, span)), None, None) => named_machine(name, with, surroundings)
            .map_err(|message| source.error(span.start, format!("machine: {message}"))),
        (None, Some((text, span)), None) => parsed(text, &span, "text"),
        (None, None, Some((path, span))) => {
            let text = surroundings
                .file(path)
                .map_err(|message| source.error(span.start, format!("machine: {path}: {message}")))?;
            parsed(&text, &span, path)
        }
        _ => Err(source
            .error(at, "machine: expected one of `name`, `text` and `file`, and at most `with` beside it")),
    }
}

fn named_machine(
    name: &str,
    with: &str,
    surroundings: &dyn Surroundings,
) -> Result<(Topology, Option<&'static str>), String> {
    if name == "host" {
        let host = surroundings.host()?;
        let topology = match with {
            "" => host,
            with => Topology::parse(&format!("{host}\n{with}")).map_err(|error| error.to_string())?,
        };
        return Ok((topology, None));
    }
    let Some(machine) = Machine::find(name) else {
        let hint = nearest_name(name, MACHINES.iter().map(|machine| machine.name));
        return Err(format!("no machine is named `{name}`{hint}"));
    };
    let topology =
        Topology::parse(&format!("{}\n{with}", machine.text)).map_err(|error| format!("with: {error}"))?;
    Ok((topology, Some(preset_of(machine.name))))
}

/// The cost preset that a named machine has by default.
#[must_use]
pub fn preset_of(machine: &str) -> &'static str {
    const FAMILIES: [(&str, &str); 8] = [
        ("kunpeng920", "kunpeng920"),
        ("xeon-3204", "xeon-3204"),
        ("epyc", "epyc"),
        ("ampere-altra", "altra"),
        ("i7", "desktop"),
        ("uma-8", "desktop"),
        ("oracle", "vm"),
        ("", "skylake-server"),
    ];
    let family = FAMILIES.iter().find(|(prefix, _)| machine.starts_with(prefix));
    family.map_or("skylake-server", |(_, preset)| preset)
}

fn workload(
    fields: &mut Fields<'_>,
    info: &MachineInfo,
    surroundings: &dyn Surroundings,
) -> Result<(Workload, Vec<String>), SpecError> {
    let source = fields.source();
    let node = fields.required("workload")?;
    let Value::Text(name) = &node.value else {
        return workload_table(node, source, info, surroundings);
    };
    let named = Workload::parse(name, info).map_err(|error| {
        let at = source.inside(&node.span).map_or(node.span.start, |start| start + error.offset);
        source.error(at, error.message)
    })?;
    Ok((named, Vec::new()))
}

/// A file or one's own, told apart by their keys.
fn workload_table(
    node: &Node,
    source: Source<'_>,
    info: &MachineInfo,
    surroundings: &dyn Surroundings,
) -> Result<(Workload, Vec<String>), SpecError> {
    let mut fields = Fields::new(source, node, "workload")?;
    let (own, rtapp) = (fields.text("file")?, fields.text("rtapp")?);
    let Some((path, span)) = own.clone().or(rtapp) else {
        return Workload::from_fields(fields, info).map(|workload| (workload, Vec::new()));
    };
    fields.finish()?;
    let fail = |message: String| source.error(span.start, format!("{path}: {message}"));
    let text = surroundings.file(path).map_err(fail)?;
    if own.is_some() {
        let workload = Workload::from_toml(&text, info).map_err(|error| fail(error.to_string()))?;
        return Ok((workload, Vec::new()));
    }
    let imported = rtapp::import(&text, path, info).map_err(|error| fail(error.to_string()))?;
    Ok((imported.workload, imported.notes))
}

/// The costs of a file, as calibration writes one.
fn cost_file(
    path: &str,
    node: &Node,
    source: Source<'_>,
    surroundings: &dyn Surroundings,
) -> Result<Costs, SpecError> {
    let fail = |message: String| source.error(node.span.start, format!("costs: {path}: {message}"));
    let text = surroundings.file(path).map_err(fail)?;
    Costs::from_toml(&text).map_err(|error| fail(error.to_string()))
}

fn preset_costs(preset: Option<&'static str>, source: Source<'_>, at: usize) -> Result<Costs, SpecError> {
    let missing = || {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        source.error(
            at,
            format!(
                "costs: `preset` is missing, which only named machines have by themselves; known: {}",
                names.join(", ")
            ),
        )
    };
    Costs::preset(preset.ok_or_else(missing)?).map_err(|error| source.error(at, format!("costs: {error}")))
}

impl Costs {
    /// Reads a cost file: a preset and what differs from it, as calibration writes one.
    ///
    /// # Errors
    /// What is wrong, by line and column.
    pub fn from_toml(text: &str) -> Result<Self, SpecError> {
        let source = Source::new(text);
        let node = source.parse()?;
        Self::from_fields(Fields::new(source, &node, "costs")?, None)
    }

    /// Reads costs from a table; `preset` is meant where the table names none.
    fn from_fields(mut fields: Fields<'_>, preset: Option<&'static str>) -> Result<Self, SpecError> {
        let (source, at) = (fields.source(), fields.at());
        let named = fields.read("preset", |name| {
            Self::preset(name).map_err(|_| {
                format!(
                    "unknown preset `{name}`{}",
                    nearest_name(name, PRESETS.iter().map(|preset| preset.name))
                )
            })
        })?;
        let mut costs = match named {
            Some(costs) => costs,
            None => preset_costs(preset, source, at)?,
        };
        for (key, node) in fields.rest() {
            let fail = |at: usize, message: String| Err(source.error(at, message));
            let row = match Self::find(&key.name) {
                Ok(row) => row,
                Err(error) => return fail(key.span.start, format!("costs: {error}")),
            };
            match cost_value(&costs, row, node, source)? {
                (value, None) => {
                    if let Err(error) = costs.set(row.name, value) {
                        return fail(node.span.start, format!("costs: {error}"));
                    }
                }
                (value, Some(basis)) => {
                    if let Err(error) = costs.set(row.name, value) {
                        return fail(node.span.start, format!("costs: {error}"));
                    }
                    costs.put(row.cost, value, basis);
                }
            }
        }
        fields.finish()?;
        Ok(costs)
    }
}

/// A cost: a number in the cost's unit, `"3/2"` of the preset's, or a table with its basis.
fn cost_value(
    costs: &Costs,
    row: &crate::CostRow,
    node: &Node,
    source: Source<'_>,
) -> Result<(u64, Option<Basis>), SpecError> {
    let expected = || {
        source.error(
            node.span.start,
            format!(
                "{}: expected {}, a fraction of the preset such as \"3/2\", or {{ value, basis }}",
                row.name, row.unit
            ),
        )
    };
    match &node.value {
        Value::Integer(value) => Ok((u64::try_from(*value).map_err(|_| expected())?, None)),
        Value::Text(text) => {
            let (num, den) = text.split_once('/').ok_or_else(expected)?;
            let (num, den) =
                (num.trim().parse().map_err(|_| expected())?, den.trim().parse().map_err(|_| expected())?);
            let mut scaled = costs.clone();
            scaled
                .scale(row.name, num, den)
                .map_err(|error| source.error(node.span.start, format!("costs: {error}")))?;
            Ok((scaled.get(row.cost), None))
        }
        Value::Table(_) => {
            let mut fields = Fields::new(source, node, row.name)?;
            let value = fields.integer("value", 0, i64::MAX)?.ok_or_else(expected)? as u64;
            let bases = [Basis::Estimate, Basis::Measured, Basis::Fitted].map(|basis| (basis.name(), basis));
            let basis = fields.choice("basis", &bases)?;
            fields.finish()?;
            Ok((value, basis))
        }
        Value::Flag(_) | Value::Array(_) | Value::Other(_) => Err(expected()),
    }
}
