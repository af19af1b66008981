//! One's own workload as TOML, alone in a file or as the `[workload]` table of a scenario. docs/scenario.md describes it.
//!
//! Reading goes in two steps: first all names of objects, groups, meters and tasks, then the programs, so that they may name
//! each other in any order. Printing gives a text that reads back as the same workload, programs shared as they were.

mod object;
mod ops;
mod print;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use ttwu_model::CpuSet;

use crate::spec_toml::{Fields, Key, Node, Source, SpecError, Value};
use crate::text::{did_you_mean, parse_size, parse_time};
use crate::{
    Bench, Builder, Group, GroupRef, MachineInfo, MeterKind, ObjectId, Op, Start, TaskRef, TaskSpec, Until,
    Workload,
};

/// Names of what a workload has, by number.
#[derive(Debug, Default)]
struct Names {
    objects: Vec<String>,
    groups: Vec<String>,
    meters: Vec<String>,
    tasks: Vec<String>,
}

impl Names {
    fn tasks_named(&self, name: &str) -> Vec<TaskRef> {
        let numbered = self.tasks.iter().enumerate();
        numbered.filter(|(_, task)| *task == name).map(|(number, _)| TaskRef(number as u32)).collect()
    }
}

/// The most tasks: a slip of the keyboard must not fill the memory.
const COUNT_MAX: i64 = 1_000_000;

impl Workload {
    /// Reads one's own workload from a TOML text of its own.
    ///
    /// # Errors
    /// What is wrong, by line and column.
    pub fn from_toml(text: &str, machine: &MachineInfo) -> Result<Self, SpecError> {
        let source = Source::new(text);
        let node = source.parse()?;
        Self::from_fields(Fields::new(source, &node, "workload")?, machine)
    }

    /// Reads one's own workload from a table of a TOML file.
    ///
    /// # Errors
    /// What is wrong, by line and column.
    pub fn from_fields(mut fields: Fields<'_>, machine: &MachineInfo) -> Result<Self, SpecError> {
        let source = fields.source();
        let name = fields.text("name")?.map_or("own", |(name, _)| name);
        let objects = fields.entries("objects")?;
        let groups = fields.entries("groups")?;
        let meters = fields.entries("meters")?;
        let programs = fields.entries("programs")?;
        let entries = fields.array("tasks")?;
        let mut tasks = Vec::new();
        for (number, node) in entries.iter().enumerate() {
            tasks.push(TaskEntry::read(Fields::new(source, node, format!("task {number}"))?, machine)?);
        }
        if tasks.iter().map(|task| task.count).sum::<usize>() > COUNT_MAX as usize {
            return Err(source.error(fields.at(), format!("expected at most {COUNT_MAX} tasks")));
        }
        let key_names = |entries: &[(Key, Node)]| entries.iter().map(|(key, _)| key.name.clone()).collect();
        let names = Names {
            objects: key_names(objects),
            groups: key_names(groups),
            meters: key_names(meters),
            tasks: tasks.iter().flat_map(|task| vec![task.name.clone(); task.count]).collect(),
        };
        let mut reader = Reader { source, names, builder: Builder::new(name), spans: Vec::new() };
        reader.groups(groups)?;
        reader.meters(meters)?;
        for (key, node) in objects {
            let kind = object::read(&reader, key, node)?;
            reader.builder.object(key.name.clone(), kind);
        }
        let shared = reader.programs(programs)?;
        for task in &tasks {
            reader.task(task, &shared)?;
        }
        reader.until(&mut fields)?;
        let at = fields.at();
        fields.finish()?;
        let Reader { builder, spans, .. } = reader;
        let workload = builder.finish();
        workload.check().map_err(|fault| {
            let task = fault.task.as_ref().and_then(|(_, task)| spans.get(task.0 as usize));
            source.error(task.copied().unwrap_or(at), fault.to_string())
        })?;
        Ok(workload)
    }
}

/// A `[[tasks]]` entry, as written.
struct TaskEntry<'a> {
    at: usize,
    name: String,
    count: usize,
    program: Option<(&'a str, Range<usize>)>,
    inline: Option<(&'a str, Range<usize>)>,
    links: &'a [Node],
    nice: i8,
    policy: SchedPolicy,
    slice_ns: Option<u64>,
    group: Option<(&'a str, Range<usize>)>,
    allowed: Option<CpuSet>,
    kernel_thread: bool,
    process: Option<String>,
    start: Start,
    working_set_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SchedPolicy {
    Normal,
    Batch,
    Idle,
}

impl<'a> TaskEntry<'a> {
    fn read(mut fields: Fields<'a>, machine: &MachineInfo) -> Result<Self, SpecError> {
        let at = fields.at();
        let name = fields
            .text("name")?
            .map(|(name, _)| name.to_owned())
            .ok_or_else(|| fields.source().error(at, "task: `name` is missing"))?;
        let count = fields.read("count", |text| match text {
            "cpus" => Ok(machine.cpus as usize),
            text => match text.parse::<i64>() {
                Ok(count @ 1..=COUNT_MAX) => Ok(count as usize),
                _ => Err(format!("expected 1 to {COUNT_MAX}, or \"cpus\", found `{text}`")),
            },
        })?;
        let policy = fields.choice(
            "policy",
            &[("normal", SchedPolicy::Normal), ("batch", SchedPolicy::Batch), ("idle", SchedPolicy::Idle)],
        )?;
        let start = fields.read("start", |text| match text {
            "forked" => Ok(Start::Forked),
            text => parse_time(text, 1).map(Start::At),
        })?;
        let task = Self {
            at,
            name,
            count: count.unwrap_or(1),
            program: fields.text("program")?,
            inline: fields.text("do")?,
            links: fields.array("links")?,
            nice: fields.integer("nice", -20, 19)?.unwrap_or(0) as i8,
            policy: policy.unwrap_or(SchedPolicy::Normal),
            slice_ns: fields.read("slice", |text| parse_time(text, 1))?,
            group: fields.text("group")?,
            allowed: fields
                .read("cpus", |text| CpuSet::parse_list(text).map_err(|error| error.to_string()))?,
            kernel_thread: fields.flag("kernel_thread")?.unwrap_or(false),
            process: fields.read("process", |text| Ok(text.to_owned()))?,
            start: start.unwrap_or(Start::At(0)),
            working_set_bytes: fields.read("working_set", |text| parse_size(text, 1))?.unwrap_or(0),
        };
        fields.finish()?;
        Ok(task)
    }
}

struct Reader<'a> {
    source: Source<'a>,
    names: Names,
    builder: Builder,
    /// Where each task stands.
    spans: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn groups(&mut self, entries: &'a [(Key, Node)]) -> Result<(), SpecError> {
        for (key, node) in entries {
            let mut fields = Fields::new(self.source, node, format!("group {}", key.name))?;
            let shares = fields.integer("shares", 2, 262_144)?.unwrap_or(1024) as u64;
            let parent = match fields.text("parent")? {
                Some((parent, span)) => {
                    Some(self.named("group", &self.names.groups, parent, &span).map(GroupRef)?)
                }
                None => None,
            };
            fields.finish()?;
            self.builder.add_group(Group { name: key.name.clone(), parent, shares });
        }
        Ok(())
    }

    fn meters(&mut self, entries: &'a [(Key, Node)]) -> Result<(), SpecError> {
        const KINDS: [(&str, MeterKind); 4] = [
            ("samples", MeterKind::Samples),
            ("count", MeterKind::Count),
            ("cpus", MeterKind::Cpus),
            ("seconds", MeterKind::Seconds),
        ];
        for (key, node) in entries {
            let fail = |found: &str| {
                let hint = did_you_mean(found, KINDS.map(|(word, _)| word));
                self.source.error(
                    node.span.start,
                    format!(
                        "meter {}: expected samples, count, cpus or seconds, found `{found}`{hint}",
                        key.name
                    ),
                )
            };
            let kind = match &node.value {
                Value::Text(text) => KINDS
                    .iter()
                    .find(|(word, _)| word == text)
                    .map(|(_, kind)| *kind)
                    .ok_or_else(|| fail(text))?,
                _ => return Err(fail("something else")),
            };
            self.builder.meter(key.name.clone(), kind);
        }
        Ok(())
    }

    fn programs(&mut self, entries: &'a [(Key, Node)]) -> Result<BTreeMap<&'a str, u32>, SpecError> {
        let mut shared = BTreeMap::new();
        for (key, node) in entries {
            let Value::Text(text) = &node.value else {
                return Err(self
                    .source
                    .error(node.span.start, format!("program {}: expected a string", key.name)));
            };
            let ops = self.ops(text, &node.span)?;
            shared.insert(key.name.as_str(), self.builder.program(ops));
        }
        Ok(shared)
    }

    /// Reads a program; an error points into the string where that can be told.
    fn ops(&self, text: &str, span: &Range<usize>) -> Result<Vec<Op>, SpecError> {
        ops::parse(text, &self.names).map_err(|(offset, message)| match self.source.inside(span) {
            Some(start) => self.source.error(start + offset, message),
            None => self.source.error(span.start, message),
        })
    }

    fn named(&self, what: &str, names: &[String], name: &str, span: &Range<usize>) -> Result<u32, SpecError> {
        ops::find(what, names, name).map_err(|message| self.source.error(span.start, message))
    }

    fn task(&mut self, entry: &TaskEntry<'a>, shared: &BTreeMap<&'a str, u32>) -> Result<(), SpecError> {
        let program = match (&entry.program, &entry.inline) {
            (Some((name, span)), None) => *shared.get(name).ok_or_else(|| {
                let hint = did_you_mean(name, shared.keys().copied());
                self.source.error(span.start, format!("no program is named `{name}`{hint}"))
            })?,
            (None, Some((text, span))) => {
                let ops = self.ops(text, span)?;
                self.builder.program(ops)
            }
            _ => {
                let message = format!("task {}: expected one of `program` and `do`", entry.name);
                return Err(self.source.error(entry.at, message));
            }
        };
        let mut links = Vec::new();
        for node in entry.links {
            let Value::Text(name) = &node.value else {
                return Err(self.source.error(node.span.start, "links: expected names of objects"));
            };
            links.push(ObjectId(self.named("object", &self.names.objects, name, &node.span)?));
        }
        let group = match &entry.group {
            Some((name, span)) => Some(GroupRef(self.named("group", &self.names.groups, name, span)?)),
            None => None,
        };
        for _ in 0..entry.count {
            let number = self.builder.tasks();
            self.builder.add_task(TaskSpec {
                name: entry.name.clone(),
                program,
                links: links.clone(),
                nice: entry.nice,
                idle_policy: entry.policy == SchedPolicy::Idle,
                batch_policy: entry.policy == SchedPolicy::Batch,
                slice_ns: entry.slice_ns,
                group,
                allowed: entry.allowed.clone(),
                kernel_thread: entry.kernel_thread,
                process: number,
                start: entry.start,
                working_set_bytes: entry.working_set_bytes,
            });
            self.spans.push(entry.at);
        }
        self.process(entry);
        Ok(())
    }

    /// Tasks with the same word, or a number, are of one process: the number, or that of the first with the word.
    fn process(&mut self, entry: &TaskEntry<'a>) {
        let Some(process) = &entry.process else { return };
        let end = self.builder.tasks();
        let first = end - entry.count as u32;
        let number = match process.parse::<u32>() {
            Ok(number) => number,
            Err(_) => self.builder.process_named(process, first),
        };
        for task in first..end {
            self.builder.task_mut(TaskRef(task)).process = number;
        }
    }

    fn until(&mut self, fields: &mut Fields<'a>) -> Result<(), SpecError> {
        let names = &self.names;
        let until = fields.read("until", |text| match text.split_once(' ') {
            _ if text == "all exit" => Ok(Until::AllExit),
            Some(("exit", rest)) => {
                if let Some(number) = rest.strip_prefix("task ") {
                    return number
                        .parse()
                        .map(|n| Until::Exit(TaskRef(n)))
                        .map_err(|_| format!("expected the number of a task, found `{number}`"));
                }
                match names.tasks_named(rest)[..] {
                    [one] => Ok(Until::Exit(one)),
                    [] => Err(format!(
                        "no task is named `{rest}`{}",
                        did_you_mean(rest, names.tasks.iter().map(String::as_str))
                    )),
                    [..] => Err(format!("several tasks are named `{rest}`: give `exit task NUMBER`")),
                }
            }
            _ => parse_time(text, 1)
                .map(Until::Time)
                .map_err(|_| format!("expected `all exit`, `exit TASK` or a time, found `{text}`")),
        })?;
        self.builder.until(until.unwrap_or(Until::AllExit));
        self.builder.bench(Bench::Own);
        Ok(())
    }
}
