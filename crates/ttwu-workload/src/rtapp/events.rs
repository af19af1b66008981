//! Phases and events of rt-app.

use ttwu_model::CpuSet;

use super::format::{Entry, Json, JsonValue};
use super::{Done, Importer, RtAppThread, find, finite};
use crate::{Dist, ObjectId, ObjectKind, Op, Reg, Slot, Start};

/// Events, a name before any that it begins with: a key that begins with one of them is that event.
pub(super) const EVENTS: &[&str] = &[
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer", "suspend",
    "resume", "memrun", "mem", "iorun", "yield", "barrier", "fork", "sem_post", "sem_wait",
];

/// The event that a key is.
pub(super) fn kind(key: &str) -> Option<&'static str> {
    // The property `loop` begins with no event's name; `lock…` does.
    EVENTS.iter().find(|event| key.starts_with(**event)).copied()
}

/// Registers that timers may use; the last keeps when a round began.
const TIMERS_MAX: usize = Reg::COUNT - 1;
const ROUND: Reg = Reg(Reg::COUNT as u8 - 1);

/// What is known while a task's program is built.
pub(super) struct State {
    name: String,
    thread: RtAppThread,
    /// Timers by their `ref`, in the order of their registers.
    timers: Vec<String>,
    /// The task's own CPUs; empty is all.
    pub(super) cpus: CpuSet,
    /// Some phase says its CPUs.
    pub(super) phase_cpus: bool,
    /// How often what stands here is done; `None` is without end.
    pub(super) times: Option<u64>,
}

impl State {
    pub(super) fn new(task: &Entry, thread: RtAppThread, phase_cpus: bool) -> Self {
        Self {
            name: task.key.clone(),
            thread,
            timers: Vec::new(),
            cpus: CpuSet::new(),
            phase_cpus,
            times: Some(1),
        }
    }
}

impl<'a> Importer<'a> {
    /// A phase; `whole` is a task without phases, whose properties are read already.
    pub(super) fn phase(&mut self, fields: &'a [Entry], state: &mut State, whole: bool) -> Done<Vec<Op>> {
        let times = self.times(fields, 1)?;
        let outer = state.times;
        state.times = outer.and_then(|outer| outer.checked_mul(finite(&times)?));
        let mut ops = Vec::new();
        if state.phase_cpus {
            let cpus = match find(fields, "cpus") {
                Some(cpus) => self.cpus(cpus)?,
                None if state.cpus.is_empty() => CpuSet::first(self.machine.cpus as usize),
                None => state.cpus.clone(),
            };
            let object = self.named("cpus", &cpus.to_string(), ObjectKind::Cpus(cpus));
            ops.push(Op::SetAffinity(Slot::Fixed(object)));
        }
        let mut body = vec![Op::Stamp(ROUND)];
        for entry in fields {
            match kind(&entry.key) {
                Some(event) => {
                    self.repeated(entry);
                    self.event(event, entry, state, &mut body)?;
                }
                None if whole => {}
                None => self.phase_property(entry, &mut ops)?,
            }
        }
        body.push(Op::Sample { meter: state.thread.period, since: ROUND });
        body.push(Op::Count { meter: state.thread.rounds, by: 1 });
        ops.push(Op::Repeat { times, counter: None, body });
        state.times = outer;
        Ok(ops)
    }

    fn phase_property(&mut self, entry: &'a Entry, ops: &mut Vec<Op>) -> Done<()> {
        self.repeated(entry);
        match entry.key.as_str() {
            "loop" | "cpus" => Ok(()),
            "priority" => {
                ops.push(Op::SetNice(self.integer(&entry.value, "priority", -20, 19)? as i8));
                Ok(())
            }
            "taskgroup" => {
                ops.push(Op::SetGroup(self.group(&entry.value)?));
                Ok(())
            }
            key @ ("policy" | "dl-runtime" | "phases" | "instance" | "delay") => {
                self.fail(entry.at, format!("{key}: of a task, it is; of a phase, it is not modelled"))
            }
            _ => self.property(entry),
        }
    }

    fn event(
        &mut self,
        event: &'static str,
        entry: &'a Entry,
        state: &mut State,
        ops: &mut Vec<Op>,
    ) -> Done<()> {
        let value = &entry.value;
        match event {
            "run" => {
                // rt-app works in whole loops.
                let loops = self.micros(value, &entry.key)? / self.global.calibration_ns;
                ops.push(Op::Run(Dist::constant(loops * self.global.calibration_ns)));
            }
            "runtime" => ops.push(Op::Spin(Dist::constant(self.micros(value, &entry.key)?))),
            "sleep" => ops.push(Op::Sleep(Dist::constant(self.micros(value, &entry.key)?))),
            "timer" => self.timer(entry, state, ops)?,
            "lock" => ops.push(Op::Lock(self.mutex(value)?)),
            "unlock" => ops.push(Op::Unlock(self.mutex(value)?)),
            "signal" => ops.push(Op::Post(self.condition(value, "condition")?)),
            "broad" => ops.push(Op::PostAll(self.condition(value, "condition")?)),
            "wait" => {
                let (on, mutex) = self.condition_and_mutex(entry)?;
                ops.push(Op::WaitUnlock { on, mutex });
            }
            "sync" => {
                let (on, mutex) = self.condition_and_mutex(entry)?;
                ops.extend([Op::Lock(mutex), Op::Post(on), Op::WaitUnlock { on, mutex }, Op::Unlock(mutex)]);
            }
            "barrier" => {
                let name = self.text(value, &entry.key)?.to_owned();
                let parties = self.users.get(&("barrier", name.clone())).copied().unwrap_or(1).max(1);
                let barrier = self.named("barrier", &name, ObjectKind::Barrier { parties });
                ops.push(Op::Wait(Slot::Fixed(barrier)));
            }
            "suspend" => {
                self.notes.push(
                    "`suspend` and `resume` have no memory: a resume before its suspend is lost, and both tasks may then wait for ever"
                        .to_owned(),
                );
                ops.push(Op::Wait(self.suspension(value, &state.name)?));
            }
            "resume" => ops.push(Op::PostAll(self.suspension(value, &state.name)?)),
            "sem_post" => ops.push(Op::Post(self.semaphore(value)?)),
            "sem_wait" => ops.push(Op::Wait(self.semaphore(value)?)),
            "yield" => ops.push(Op::Yield),
            "fork" => self.fork(entry, state, ops)?,
            _ => {
                let message = format!(
                    "{}: how long it takes depends on memory or device; give that time as `run`",
                    entry.key
                );
                return self.fail(entry.at, message);
            }
        }
        Ok(())
    }

    fn timer(&mut self, entry: &'a Entry, state: &mut State, ops: &mut Vec<Op>) -> Done<()> {
        let (mut reference, mut period, mut rebase) = (None, None, true);
        for field in self.object(&entry.value, &entry.key)? {
            match field.key.as_str() {
                "ref" => reference = Some(self.text(&field.value, "ref")?.to_owned()),
                "period" => period = Some(self.micros(&field.value, "period")?),
                "mode" => match self.text(&field.value, "mode")? {
                    "relative" => rebase = true,
                    "absolute" => rebase = false,
                    other => {
                        return self.fail(
                            field.value.at,
                            format!("mode: expected relative or absolute, found `{other}`"),
                        );
                    }
                },
                other => return self.unknown(field, "a timer", other, &["ref", "period", "mode"]),
            }
        }
        let (Some(reference), Some(period @ 1..)) = (reference, period) else {
            return self.fail(entry.at, format!("{}: expected `ref` and a `period` above 0", entry.key));
        };
        // A timer whose name begins with `unique` is one an instance; others are one for all.
        let users = self.users.get(&("timer", reference.clone())).copied().unwrap_or(0);
        if !reference.starts_with("unique") && users > 1 {
            return self.fail(
                entry.at,
                format!(
                    "{}: a timer that several threads share is not modelled; begin its `ref` with `unique`",
                    entry.key
                ),
            );
        }
        let number = state.timers.iter().position(|known| *known == reference).unwrap_or_else(|| {
            state.timers.push(reference);
            state.timers.len() - 1
        });
        if number >= TIMERS_MAX {
            return self
                .fail(entry.at, format!("{}: expected at most {TIMERS_MAX} timers in a task", entry.key));
        }
        let timer = Reg(number as u8);
        ops.push(Op::Periodic { timer, period: Dist::constant(period), rebase });
        ops.push(Op::Sample { meter: state.thread.wakeup, since: timer });
        Ok(())
    }

    fn fork(&mut self, entry: &'a Entry, state: &State, ops: &mut Vec<Op>) -> Done<()> {
        let name = match &entry.value.value {
            JsonValue::Object(fields) => match find(fields, "ref") {
                Some(reference) => self.text(reference, "ref")?,
                None => return self.fail(entry.at, format!("{}: expected the name of a task", entry.key)),
            },
            _ => self.text(&entry.value, &entry.key)?,
        };
        if state.times != Some(1) {
            return self.fail(
                entry.at,
                format!(
                    "{}: a fork that is repeated is not modelled; its task and phase need `\"loop\": 1`",
                    entry.key
                ),
            );
        }
        let tasks = self.tasks;
        let Some(task) = tasks.iter().find(|task| task.key == name) else {
            let hint = crate::text::did_you_mean(name, tasks.iter().map(|task| task.key.as_str()));
            return self.fail(entry.value.at, format!("{}: no task is named `{name}`{hint}", entry.key));
        };
        self.count_users(task, 1)?;
        let child = self.instance(task, Start::Forked)?;
        ops.push(Op::Spawn(child));
        Ok(())
    }

    fn slot(&mut self, what: &'static str, name: &str, kind: ObjectKind) -> Slot {
        let object: ObjectId = self.named(what, name, kind);
        Slot::Fixed(object)
    }

    fn mutex(&mut self, value: &'a Json) -> Done<Slot> {
        let name = self.text(value, "lock")?.to_owned();
        Ok(self.slot("mutex", &name, ObjectKind::Mutex))
    }

    fn condition(&mut self, value: &'a Json, what: &'static str) -> Done<Slot> {
        let name = self.text(value, what)?.to_owned();
        Ok(self.slot(what, &name, ObjectKind::Condition))
    }

    fn semaphore(&mut self, value: &'a Json) -> Done<Slot> {
        let name = self.text(value, "semaphore")?.to_owned();
        Ok(self.slot("semaphore", &name, ObjectKind::Semaphore { initial: 0 }))
    }

    /// The condition on which a task of this name is suspended; its own where none is named.
    fn suspension(&mut self, value: &'a Json, own: &str) -> Done<Slot> {
        let name = match self.text(value, "suspend")? {
            "" => own.to_owned(),
            name => name.to_owned(),
        };
        Ok(self.slot("suspension", &name, ObjectKind::Condition))
    }

    fn condition_and_mutex(&mut self, entry: &'a Entry) -> Done<(Slot, Slot)> {
        let fields = self.object(&entry.value, &entry.key)?;
        if let Some(other) = fields.iter().find(|field| !matches!(field.key.as_str(), "ref" | "mutex")) {
            return self.unknown(other, &entry.key, &other.key, &["ref", "mutex"]);
        }
        let (Some(reference), Some(mutex)) = (find(fields, "ref"), find(fields, "mutex")) else {
            return self.fail(entry.at, format!("{}: expected `ref` and `mutex`", entry.key));
        };
        Ok((self.condition(reference, "condition")?, self.mutex(mutex)?))
    }
}
