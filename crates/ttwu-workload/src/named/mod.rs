//! Workloads by name: `hackbench:groups=1,threads,pipe,loops=1000`, options named as the original tools name them.
//!
//! A name may be joined to others by ` & `: `dmatest:noverify & noise` runs both, and the first is what is measured. Defaults are
//! the original's, and stand only in the tables here, from which help is printed too.

mod expand;
mod options;

use std::fmt;

use ttwu_model::CpuSet;

use crate::bench::TABLES;
use crate::text::did_you_mean;
use crate::{Builder, Workload};

pub use expand::expand;
pub use options::{OptionDoc, OptionKind};
pub(crate) use options::{Options, flag, refused};

/// What a workload may know of the machine: how many threads to start by default, and for which CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineInfo {
    /// CPUs, numbered from 0.
    pub cpus: u32,
}

/// A named workload, for help.
#[derive(Debug)]
pub struct WorkloadDoc {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// What its result is.
    pub result: &'static str,
    /// Its options.
    pub options: &'static [OptionDoc],
}

/// One row of the table of workloads.
pub(crate) struct Table {
    pub(crate) doc: WorkloadDoc,
    pub(crate) build: fn(&Options, &MachineInfo, &mut Builder) -> Result<crate::Bench, String>,
}

/// Options that every workload takes.
pub static COMMON_OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "cpus",
        short: &[],
        kind: OptionKind::Cpus,
        default: "all",
        doc: "run on these CPUs only, as under `numactl -C`; items joined by `+`: `0-3+8`",
    },
    OptionDoc {
        name: "nice",
        short: &[],
        kind: OptionKind::Nice,
        default: "as the original",
        doc: "nice value of all its tasks",
    },
    OptionDoc {
        name: "autogroup",
        short: &[],
        kind: OptionKind::Flag,
        default: "off",
        doc: "all its tasks in an autogroup of their own",
    },
];

/// All named workloads.
#[must_use]
pub fn workloads() -> Vec<&'static WorkloadDoc> {
    TABLES.iter().map(|table| &table.doc).collect()
}

/// Why a text names no workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// Where in the text, bytes from its start.
    pub offset: usize,
    /// What was expected and found.
    pub message: String,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.offset + 1, self.message)
    }
}

impl std::error::Error for NameError {}

impl Workload {
    /// The workload of this name, for a machine.
    ///
    /// # Errors
    /// Unknown names and options, with the nearest known; values that the original refuses, or that are not modelled, with the
    /// reason.
    pub fn parse(text: &str, machine: &MachineInfo) -> Result<Self, NameError> {
        let mut builder = Builder::new("");
        let mut names = Vec::new();
        let mut offset = 0;
        for (number, part) in text.split('&').enumerate() {
            let start = offset + (part.len() - part.trim_start().len());
            names.push(add(part.trim(), start, number, machine, &mut builder)?);
            offset += part.len() + 1;
        }
        builder.rename(names.join(" & "));
        Ok(builder.finish())
    }
}

/// Adds one named workload to others; returns its canonical name.
fn add(
    part: &str,
    start: usize,
    number: usize,
    machine: &MachineInfo,
    builder: &mut Builder,
) -> Result<String, NameError> {
    let (name, options) = part.split_once(':').unwrap_or((part, ""));
    let table = TABLES.iter().find(|table| table.doc.name == name.trim()).ok_or_else(|| {
        let name = name.trim();
        // `hackbench -g 2`, as the original is called.
        let command = name.split_whitespace().next().filter(|&word| word != name);
        let hint = match command.filter(|&word| TABLES.iter().any(|table| table.doc.name == word)) {
            Some(word) => format!("; options are written {word}:NAME=VALUE,…"),
            None => did_you_mean(name, TABLES.iter().map(|table| table.doc.name)),
        };
        NameError { offset: start, message: format!("unknown workload `{name}`{hint}") }
    })?;
    let options = Options::parse(&table.doc, options, start + name.len() + 1)?;
    let first_task = builder.tasks();
    let until = builder.until_now();
    builder.scope(if number == 0 { String::new() } else { format!("{name}.{number}.") });
    let bench = (table.build)(&options, machine, builder)
        .map_err(|message| NameError { offset: start, message: format!("{name}: {message}") })?;
    if number == 0 {
        builder.bench(bench);
    } else {
        builder.until(until);
    }
    apply_common(&options, first_task, machine, name, builder)
        .map_err(|message| NameError { offset: start, message })?;
    Ok(options.canonical())
}

fn apply_common(
    options: &Options,
    first_task: u32,
    machine: &MachineInfo,
    name: &str,
    builder: &mut Builder,
) -> Result<(), String> {
    let group = options.flag("autogroup").then(|| builder.group(format!("autogroup-{name}"), None, 1024));
    let cpus = options.cpus("cpus");
    if let Some(cpus) = cpus {
        let all = CpuSet::first(machine.cpus as usize);
        if cpus.is_empty() || !cpus.is_subset(&all) {
            return Err(format!("cpus: the machine has the CPUs 0-{}", machine.cpus.saturating_sub(1)));
        }
    }
    for task in first_task..builder.tasks() {
        let task = builder.task_mut(crate::TaskRef(task));
        if let (Some(cpus), None) = (cpus, &task.allowed) {
            task.allowed = Some(cpus.clone());
        }
        if let Some(nice) = options.nice("nice") {
            task.nice = nice;
        }
        if let (Some(group), None) = (group, task.group) {
            task.group = Some(group);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
