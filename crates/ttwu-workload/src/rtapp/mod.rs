//! rt-app's JSON: its `global`, `tasks`, phases and events, imported as a workload.
//!
//! Events run in the order of the file; a key only needs to *begin* with an event's name (`run0`, `run1`), and the longer name is
//! tried first where one is the beginning of the other. What is not known is refused by name with its place, and so is what is
//! known and not modelled, with the reason.
//!
//! | in the file | here |
//! |---|---|
//! | `run` µs | work: ⌊µs × 1000 / calibration⌋ loops of `calibration` ns, less on a faster CPU |
//! | `runtime` µs | busy until so much time has passed |
//! | `timer` | sleep to the planned time; `relative` (the default) plans anew from now after a miss |
//! | `suspend`, `resume` | a condition of the task's name, without memory: a resume before the suspend is lost |
//! | `sync` | lock, signal, wait, unlock |
//! | `barrier` | as many parties as task instances use it |
//! | `cpus` of a phase | the phase's, else the task's, else all |
//! | other properties of a phase | applied where they stand, and kept from there on |
//!
//! `loop` of a task without `phases` counts twice, once as the task's and once as its only phase's: rt-app 1.0 logged 84 rounds of a
//! task with `"loop": 20` before its time was over.
//!
//! DEVIATION: after a missed timer the wake-up latency is how late it was; rt-app logs 0.

mod events;
mod format;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ttwu_model::{CpuId, CpuSet};

use crate::spec_toml::{Source, SpecError};
use crate::text::did_you_mean;
use crate::{
    Bench, Builder, Dist, GroupRef, MachineInfo, MeterKind, MeterRef, ObjectId, ObjectKind, Op, Start,
    TaskRef, Times, Until, Workload,
};
use format::{Entry, Json, JsonValue};

/// An rt-app file as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RtApp {
    /// `duration`, s; `None` is until all end.
    pub duration_s: Option<u64>,
    /// Its threads, in rt-app's order.
    pub threads: Vec<RtAppThread>,
}

/// A thread of rt-app.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RtAppThread {
    /// Its task, named as its log is: `ping-2`.
    pub task: TaskRef,
    /// Rounds of its phases: the rows of its log.
    pub rounds: MeterRef,
    /// Time of each round, ns: `period`.
    pub period: MeterRef,
    /// How late it woke from timers, ns: `wu_lat`.
    pub wakeup: MeterRef,
}

/// A workload from an rt-app file, and what its reader should know.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The workload.
    pub workload: Workload,
    /// What the file means otherwise than it may look, one sentence each.
    pub notes: Vec<String>,
}

/// Reads an rt-app file; `name` is the workload's.
///
/// # Errors
/// What is wrong, unknown or not modelled, by line and column.
pub fn import(text: &str, name: &str, machine: &MachineInfo) -> Result<Imported, SpecError> {
    let source = Source::new(text);
    let json = format::parse(source, text)?;
    let mut importer = Importer {
        source,
        machine: *machine,
        builder: Builder::new(name),
        global: Global { duration_s: None, calibration_ns: 1 },
        tasks: &[],
        objects: BTreeMap::new(),
        groups: BTreeMap::new(),
        users: BTreeMap::new(),
        threads: Vec::new(),
        running: Vec::new(),
        notes: Vec::new(),
    };
    importer.file(&json)?;
    let Importer { mut builder, global, threads, mut notes, .. } = importer;
    builder.until(global.duration_s.map_or(Until::AllExit, |s| Until::Time(s * 1_000_000_000)));
    builder.bench(Bench::RtApp(RtApp { duration_s: global.duration_s, threads }));
    let workload = builder.finish();
    workload.check().map_err(|fault| source.error(0, fault.to_string()))?;
    notes.sort();
    notes.dedup();
    Ok(Imported { workload, notes })
}

struct Global {
    duration_s: Option<u64>,
    /// Nanoseconds of a loop of work.
    calibration_ns: u64,
}

struct Importer<'a> {
    source: Source<'a>,
    machine: MachineInfo,
    builder: Builder,
    global: Global,
    tasks: &'a [Entry],
    /// Mutexes, conditions and so on by kind and name.
    objects: BTreeMap<(&'static str, String), ObjectId>,
    groups: BTreeMap<String, GroupRef>,
    /// How many instances use each barrier, and each timer that is not `unique`.
    users: BTreeMap<(&'static str, String), u32>,
    threads: Vec<RtAppThread>,
    /// Tasks whose instance is being built, for forks in a circle.
    running: Vec<String>,
    notes: Vec<String>,
}

/// The most threads: forks that fork are soon more than anybody means.
const THREADS_MAX: usize = 100_000;

/// A task's policy properties.
const PROPERTIES: &[&str] = &[
    "loop",
    "phases",
    "instance",
    "delay",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "cpus",
    "nodes_membind",
    "util_min",
    "util_max",
    "taskgroup",
];

/// Settings of `global` that change nothing that the model has.
const HARMLESS: &[&str] = &[
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
];

type Done<T> = Result<T, SpecError>;

impl<'a> Importer<'a> {
    fn fail<T>(&self, at: usize, message: impl Into<String>) -> Done<T> {
        Err(self.source.error(at, message))
    }

    fn file(&mut self, json: &'a Json) -> Done<()> {
        for entry in self.object(json, "the file")? {
            match entry.key.as_str() {
                "global" => self.global(&entry.value)?,
                "tasks" => self.tasks = self.object(&entry.value, "tasks")?,
                "resources" => self.notes.push(
                    "`resources` is obsolete and ignored: objects are made where they are used".to_owned(),
                ),
                other => return self.unknown(entry, "the file", other, &["global", "tasks", "resources"]),
            }
        }
        if self.tasks.is_empty() {
            return self.fail(json.at, "`tasks` is missing or empty");
        }
        for (entry, instances) in self.instances()? {
            self.count_users(entry, instances)?;
        }
        for (entry, instances) in self.instances()? {
            for _ in 0..instances {
                self.instance(entry, Start::At(0))?;
            }
        }
        Ok(())
    }

    fn global(&mut self, json: &'a Json) -> Done<()> {
        for entry in self.object(json, "global")? {
            match entry.key.as_str() {
                "duration" => {
                    let seconds = self.integer(&entry.value, "duration", -1, 86_400)?;
                    self.global.duration_s = u64::try_from(seconds).ok().filter(|s| *s > 0);
                }
                "calibration" => match &entry.value.value {
                    // "CPU0": rt-app measures; a loop is then as short as it can be.
                    JsonValue::Text(cpu) if cpu.starts_with("CPU") => {}
                    _ => {
                        self.global.calibration_ns =
                            self.integer(&entry.value, "calibration", 1, 1_000_000)? as u64;
                    }
                },
                "default_policy" => {
                    let policy = self.text(&entry.value, "default_policy")?;
                    if policy != "SCHED_OTHER" {
                        return self.fail(
                            entry.value.at,
                            format!("default_policy: {policy} is not modelled; SCHED_OTHER is"),
                        );
                    }
                }
                "pi_enabled" => {
                    if !matches!(entry.value.value, JsonValue::Flag(false)) {
                        return self.fail(
                            entry.value.at,
                            "pi_enabled: priority inheritance is not modelled; false is",
                        );
                    }
                }
                key if HARMLESS.contains(&key) => {}
                other => {
                    let known =
                        [&["duration", "calibration", "default_policy", "pi_enabled"], HARMLESS].concat();
                    return self.unknown(entry, "global", other, &known);
                }
            }
        }
        Ok(())
    }

    /// The tasks with their number of instances.
    fn instances(&mut self) -> Done<Vec<(&'a Entry, u32)>> {
        let mut list = Vec::new();
        for entry in self.tasks {
            let fields = self.object(&entry.value, &entry.key)?;
            let instances = match find(fields, "instance") {
                Some(value) => self.integer(value, "instance", 0, 100_000)? as u32,
                None => 1,
            };
            list.push((entry, instances));
        }
        Ok(list)
    }

    /// Counts the users of barriers and shared timers before anything is built.
    fn count_users(&mut self, task: &'a Entry, instances: u32) -> Done<()> {
        let mut seen: Vec<(&'static str, String)> = Vec::new();
        for fields in self.phases(task)? {
            for entry in fields {
                let user = match events::kind(&entry.key) {
                    Some("barrier") => ("barrier", self.text(&entry.value, "barrier")?.to_owned()),
                    Some("timer") => {
                        let timer = self.object(&entry.value, &entry.key)?;
                        let Some(reference) = find(timer, "ref") else { continue };
                        ("timer", self.text(reference, "ref")?.to_owned())
                    }
                    _ => continue,
                };
                if !seen.contains(&user) {
                    *self.users.entry(user.clone()).or_default() += instances;
                    seen.push(user);
                }
            }
        }
        Ok(())
    }

    /// The objects whose entries are a task's events: its phases, or the task itself.
    fn phases(&mut self, task: &'a Entry) -> Done<Vec<&'a [Entry]>> {
        let fields = self.object(&task.value, &task.key)?;
        match find(fields, "phases") {
            None => Ok(vec![fields]),
            Some(phases) => {
                let phases = self.object(phases, "phases")?;
                phases.iter().map(|phase| self.object(&phase.value, &phase.key)).collect()
            }
        }
    }

    fn instance(&mut self, task: &'a Entry, start: Start) -> Done<TaskRef> {
        if self.running.contains(&task.key) {
            return self.fail(task.at, format!("{} forks itself, directly or through others", task.key));
        }
        if self.threads.len() >= THREADS_MAX {
            return self.fail(task.at, format!("expected at most {THREADS_MAX} threads"));
        }
        self.running.push(task.key.clone());
        let number = self.threads.len();
        let name = format!("{}-{number}", task.key);
        let program = self.builder.program(Vec::new());
        let comm: String = name.chars().filter(char::is_ascii).take(15).collect();
        let spec = self.builder.task(comm, program, start);
        let meter = |builder: &mut Builder, what: &str, kind| builder.meter(format!("{what} {name}"), kind);
        let thread = RtAppThread {
            task: spec,
            rounds: meter(&mut self.builder, "rounds", MeterKind::Count),
            period: meter(&mut self.builder, "period", MeterKind::Samples),
            wakeup: meter(&mut self.builder, "wakeup", MeterKind::Samples),
        };
        self.threads.push(thread.clone());
        let process = self.threads[0].task.0;
        self.builder.task_mut(spec).process = process;
        let ops = self.program(task, &thread)?;
        self.builder.program_mut(program).ops = ops;
        self.running.pop();
        Ok(spec)
    }

    fn program(&mut self, task: &'a Entry, thread: &RtAppThread) -> Done<Vec<Op>> {
        let fields = self.object(&task.value, &task.key)?;
        let phased = find(fields, "phases");
        let times = self.times(fields, -1)?;
        let mut state = events::State::new(task, thread.clone(), self.phase_cpus(task)?);
        let mut ops = Vec::new();
        if let Some(delay) = find(fields, "delay") {
            let delay = self.micros(delay, "delay")?;
            ops.push(Op::Sleep(Dist::constant(delay)));
        }
        self.task_properties(fields, phased.is_some(), thread, &mut state, &mut ops)?;
        state.times = state.times.and_then(|outer| outer.checked_mul(finite(&times)?));
        let mut body = Vec::new();
        match phased {
            None => body.extend(self.phase(fields, &mut state, true)?),
            Some(phases) => {
                for phase in self.object(phases, "phases")? {
                    let fields = self.object(&phase.value, &phase.key)?;
                    body.extend(self.phase(fields, &mut state, false)?);
                }
            }
        }
        ops.push(Op::Repeat { times, counter: None, body });
        Ok(ops)
    }

    /// `loop` of a task or phase; −1 is for ever.
    fn times(&self, fields: &'a [Entry], default: i64) -> Done<Times> {
        let count = match find(fields, "loop") {
            Some(value) => self.integer(value, "loop", -1, i64::from(u32::MAX))?,
            None => default,
        };
        Ok(u64::try_from(count).map_or(Times::Forever, Times::Count))
    }

    /// Properties at the task's level; its events are read as a phase where there are no phases.
    fn task_properties(
        &mut self,
        fields: &'a [Entry],
        phased: bool,
        thread: &RtAppThread,
        state: &mut events::State,
        ops: &mut Vec<Op>,
    ) -> Done<()> {
        for entry in fields {
            self.repeated(entry);
            let value = &entry.value;
            match entry.key.as_str() {
                "loop" | "phases" | "instance" | "delay" => {}
                "policy" => {
                    let spec = match self.text(value, "policy")? {
                        "SCHED_OTHER" => (false, false),
                        "SCHED_BATCH" => (true, false),
                        "SCHED_IDLE" => (false, true),
                        other => return self.fail(
                            value.at,
                            format!(
                                "policy: {other} is not modelled; SCHED_OTHER, SCHED_BATCH and SCHED_IDLE are"
                            ),
                        ),
                    };
                    let task = self.builder.task_mut(thread.task);
                    (task.batch_policy, task.idle_policy) = spec;
                }
                "priority" => {
                    let nice = self.integer(value, "priority", -20, 19)? as i8;
                    self.builder.task_mut(thread.task).nice = nice;
                }
                "dl-runtime" => {
                    let slice = self.micros(value, "dl-runtime")?;
                    self.builder.task_mut(thread.task).slice_ns = Some(slice);
                }
                "cpus" => {
                    let cpus = self.cpus(value)?;
                    // With CPUs of its phases they are set phase by phase.
                    if !state.phase_cpus {
                        self.builder.task_mut(thread.task).allowed = Some(cpus.clone());
                    }
                    state.cpus = cpus;
                }
                "taskgroup" => {
                    let group = self.group(value)?;
                    ops.push(Op::SetGroup(group));
                }
                key if phased && events::kind(key).is_some() => {
                    return self
                        .fail(entry.at, format!("{key}: events stand in the phases where there are some"));
                }
                key if events::kind(key).is_some() => {}
                _ => return self.property(entry),
            }
        }
        Ok(())
    }

    /// Refuses what is no property of a task or phase, or one that is not modelled.
    fn property<T>(&self, entry: &Entry) -> Done<T> {
        match entry.key.as_str() {
            "dl-period" | "dl-deadline" => {
                self.fail(entry.at, format!("{}: SCHED_DEADLINE is not modelled", entry.key))
            }
            "nodes_membind" => {
                self.fail(entry.at, "nodes_membind: where memory is, is a setting of the scenario (`memory`)")
            }
            "util_min" | "util_max" => {
                self.fail(entry.at, format!("{}: utilisation clamps are not modelled", entry.key))
            }
            other => {
                let known: Vec<&str> = PROPERTIES.iter().chain(events::EVENTS).copied().collect();
                self.unknown(entry, "a task or phase", other, &known)
            }
        }
    }

    /// Does any phase of the task say its CPUs?
    fn phase_cpus(&mut self, task: &'a Entry) -> Done<bool> {
        let phased = find(self.object(&task.value, &task.key)?, "phases").is_some();
        let phases = self.phases(task)?;
        Ok(phased && phases.iter().any(|fields| find(fields, "cpus").is_some()))
    }

    fn cpus(&self, json: &Json) -> Done<CpuSet> {
        let JsonValue::Array(items) = &json.value else {
            return self
                .fail(json.at, format!("cpus: expected an array of CPUs, found {}", json.value.kind()));
        };
        let mut set = CpuSet::new();
        for item in items {
            let cpu = self.integer(item, "cpus", 0, i64::from(self.machine.cpus) - 1)?;
            set.insert(CpuId::new(cpu as u16));
        }
        if set.is_empty() {
            return self.fail(json.at, "cpus: expected at least one CPU");
        }
        Ok(set)
    }

    /// The group of a path such as `/tg1/tg2`, with those above it.
    fn group(&mut self, json: &Json) -> Done<GroupRef> {
        let path = self.text(json, "taskgroup")?.to_owned();
        if path.trim_matches('/').is_empty() {
            return self.fail(
                json.at,
                "taskgroup: a task is in the root group without saying so, and does not return to it",
            );
        }
        let (mut parent, mut name) = (None, String::new());
        for part in path.trim_matches('/').split('/') {
            name = format!("{name}/{part}");
            let group = match self.groups.get(&name) {
                Some(group) => *group,
                None => self.builder.group(name.clone(), parent, 1024),
            };
            self.groups.insert(name.clone(), group);
            parent = Some(group);
        }
        Ok(parent.expect("a path has a part"))
    }

    /// The object of this kind and name, made when it is first used.
    fn named(&mut self, what: &'static str, name: &str, kind: ObjectKind) -> ObjectId {
        let builder = &mut self.builder;
        *self
            .objects
            .entry((what, name.to_owned()))
            .or_insert_with(|| builder.object(format!("{what} {name}"), kind))
    }

    fn repeated(&mut self, entry: &Entry) {
        if entry.repeated {
            self.notes.push(format!(
                "`{}` occurs twice in one object, of which JSON keeps the last value only: number them, `{0}0`, `{0}1`",
                entry.key
            ));
        }
    }

    fn object(&self, json: &'a Json, what: &str) -> Done<&'a [Entry]> {
        match &json.value {
            JsonValue::Object(entries) => Ok(entries),
            other => self.fail(json.at, format!("{what}: expected an object, found {}", other.kind())),
        }
    }

    fn text<'j>(&self, json: &'j Json, what: &str) -> Done<&'j str> {
        match &json.value {
            JsonValue::Text(text) => Ok(text),
            other => self.fail(json.at, format!("{what}: expected a string, found {}", other.kind())),
        }
    }

    fn integer(&self, json: &Json, what: &str, low: i64, high: i64) -> Done<i64> {
        match &json.value {
            JsonValue::Number(number) => match number.parse::<i64>() {
                Ok(value) if (low..=high).contains(&value) => Ok(value),
                _ => self.fail(
                    json.at,
                    format!("{what}: expected a whole number from {low} to {high}, found {number}"),
                ),
            },
            other => self.fail(json.at, format!("{what}: expected a whole number, found {}", other.kind())),
        }
    }

    /// Microseconds, as ns.
    fn micros(&self, json: &Json, what: &str) -> Done<u64> {
        Ok(self.integer(json, what, 0, 86_400_000_000)? as u64 * 1_000)
    }

    fn unknown<T>(&self, entry: &Entry, place: &str, name: &str, known: &[&str]) -> Done<T> {
        let hint = did_you_mean(name, known.iter().copied());
        self.fail(entry.at, format!("{place} has no `{name}`{hint}"))
    }
}

fn find<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Json> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

/// A finite number of rounds.
const fn finite(times: &Times) -> Option<u64> {
    match times {
        Times::Count(count) => Some(*count),
        Times::Forever | Times::Before(_) => None,
    }
}
