//! The output of SchedViz' `sched.bt`, a bpftrace script: one event a line, numbers in hexadecimal.
//!
//! ```text
//! ST:0:START                      what all times count from
//! P:TIME:PID:PRIO:NAME            a task's priority and name from here on
//! S:TIME:CPU:PREV:STATE:NEXT      sched_switch
//! M:TIME:CPU:ORIG:DEST:PID        sched_migrate_task
//! W:TIME:CPU:TARGET:PID           sched_wakeup
//! ```
//!
//! bpftrace hands lines on CPU by CPU, so all are read and then sorted; the script is for short recordings. It says no
//! state letters: those of Linux 4.14 and later are assumed, and that is said.

use crate::source::{Decoder, More, Source};
use crate::{ReadError, ring};
use std::collections::BTreeMap;
use ttwu_model::{
    CpuId, Event, EventFlags, EventKind, Pid, Prio, RawEvent, StateLetter, StrId, TaskState, Time,
};

/// Letters of the state bits since 4.14, lowest first.
const STATES: [StateLetter; 8] = [
    StateLetter::Sleeping,
    StateLetter::DiskSleep,
    StateLetter::Stopped,
    StateLetter::Traced,
    StateLetter::Dead,
    StateLetter::Zombie,
    StateLetter::Parked,
    StateLetter::Idle,
];
/// Set where the task was preempted inside the kernel.
const PREEMPTED: u64 = 1 << 8;

/// All events, sorted.
struct SchedBt {
    events: Vec<RawEvent>,
}

impl Decoder for SchedBt {
    fn decode(&mut self, _: &mut Source, out: &mut Vec<RawEvent>) -> Result<More, ReadError> {
        out.append(&mut self.events);
        Ok(More::No)
    }
}

/// What the last `P` line said of a task.
#[derive(Clone, Copy)]
struct Known {
    name: StrId,
    prio: Prio,
}

struct Parser<'a> {
    source: &'a mut Source,
    start: Option<u64>,
    known: BTreeMap<Pid, Known>,
    events: Vec<RawEvent>,
}

/// A decoder of the text.
pub(super) fn open(text: &[u8], source: &mut Source) -> Box<dyn Decoder> {
    source.meta.format = "SchedViz archive (sched.bt text)".to_owned();
    source.meta.resolution_ns = 1;
    ring::note_clock(Some("mono"), false, source);
    source.health.add_note("sched.bt text: task states are read as those of Linux 4.14 and later".to_owned());
    let mut parser = Parser { source, start: None, known: BTreeMap::new(), events: Vec::new() };
    for line in String::from_utf8_lossy(text).lines() {
        if parser.line(line).is_none() {
            parser.source.health.add_unknown("sched.bt line");
        }
    }
    let mut events = parser.events;
    events.sort_by_key(|raw| (raw.event.at, raw.event.cpu));
    Box::new(SchedBt { events })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn pid(text: &str) -> Option<Pid> {
    i32::try_from(hex(text)?).ok().map(Pid::new)
}

fn cpu(text: &str) -> Option<CpuId> {
    CpuId::try_from(hex(text)?).ok()
}

fn state(number: u64) -> TaskState {
    let preempted = Some(number & PREEMPTED != 0);
    let bits = number & (PREEMPTED - 1);
    let letter = match usize::try_from(bits.trailing_zeros()) {
        _ if bits == 0 => StateLetter::Running,
        Ok(bit) => STATES[bit],
        Err(_) => StateLetter::Unknown,
    };
    TaskState::new(letter, preempted)
}

impl Parser<'_> {
    /// Takes in a line; `None` if it is none of the five. bpftrace's own greeting is nobody's loss.
    fn line(&mut self, line: &str) -> Option<()> {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with("Attaching ") {
            return Some(());
        }
        let (which, rest) = line.split_once(':')?;
        if which == "ST" {
            self.start = Some(hex(rest.rsplit(':').next()?)?);
            return Some(());
        }
        let (time, rest) = rest.split_once(':')?;
        let at = Time::from_ns(self.start?.checked_add(hex(time)?)?);
        if which == "P" {
            // The name is last and may contain colons.
            let mut parts = rest.splitn(3, ':');
            let (pid, prio, name) = (pid(parts.next()?)?, hex(parts.next()?)?, parts.next()?);
            let prio = Prio::new(i32::try_from(prio).ok()?);
            self.known.insert(pid, Known { name: self.source.strings.intern(name), prio });
            return Some(());
        }
        let fields: Vec<&str> = rest.split(':').collect();
        let (by, on, kind) = self.kind(which, &fields)?;
        let names = kind.tasks().map(|task| Some(self.known.get(&task?)?.name));
        let event = Event { at, by, cpu: on, flags: EventFlags::UNKNOWN, kind };
        self.events.push(RawEvent { event, names });
        Some(())
    }

    fn prio(&self, pid: Pid) -> Prio {
        self.known.get(&pid).map_or(Prio::UNKNOWN, |known| known.prio)
    }

    fn kind(&self, which: &str, fields: &[&str]) -> Option<(Pid, CpuId, EventKind<Pid>)> {
        Some(match (which, fields) {
            ("S", &[on, prev, prev_state, next]) => {
                let (prev, next) = (pid(prev)?, pid(next)?);
                let prev_state = state(hex(prev_state)?);
                let (prev_prio, next_prio) = (self.prio(prev), self.prio(next));
                (prev, cpu(on)?, EventKind::Switch { prev, next, prev_state, prev_prio, next_prio })
            }
            ("M", &[on, orig, dest, task]) => {
                let task = pid(task)?;
                let (orig_cpu, dest_cpu, prio) = (cpu(orig)?, cpu(dest)?, self.prio(task));
                (Pid::UNKNOWN, cpu(on)?, EventKind::Migrate { task, orig_cpu, dest_cpu, prio })
            }
            ("W", &[on, target, wakee]) => {
                let wakee = pid(wakee)?;
                let kind = EventKind::Wakeup { wakee, cpu: cpu(target)?, prio: self.prio(wakee) };
                (Pid::UNKNOWN, cpu(on)?, kind)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_events_in_time_order() {
        let text = "Attaching 6 probes...\nST:0:1000\nP:1:2a:78:a:b\nS:30:1:2a:100:0\nS:20:0:0:0:2a\nW:25:1:0:7\n\
                    M:26:1:0:1:2a\nS:1:2\nQ:1:2:3\n";
        let mut source = Source::default();
        let mut out = Vec::new();
        let more = open(text.as_bytes(), &mut source).decode(&mut source, &mut out).expect("in memory");
        assert_eq!(more, More::No);
        let times: Vec<u64> = out.iter().map(|raw| raw.event.at.as_ns() - 0x1000).collect();
        assert_eq!(times, [0x20, 0x25, 0x26, 0x30]);
        let EventKind::Switch { prev_state, prev_prio, next_prio, .. } = out[3].event.kind else { panic!() };
        assert_eq!(prev_state.to_string(), "R+");
        assert_eq!((prev_prio, next_prio), (Prio::new(120), Prio::UNKNOWN));
        assert_eq!(out[3].names.map(|name| name.map(|name| source.strings.get(name))), [Some("a:b"), None]);
        assert_eq!(source.health.unknown_records, BTreeMap::from([("sched.bt line".to_owned(), 2)]));
    }

    #[test]
    fn damaged_text_never_panics() {
        let text =
            "ST:0:ffffffffffffffff\nS:30:1:2a:100:0\nP:1:2a:78:x\nS:20:0:0:ffffffffffffffff:2a\n".repeat(20);
        for seed in 0..300 {
            let mut source = Source::default();
            open(&ttwu_testing::damage(text.as_bytes(), seed), &mut source);
        }
    }
}
