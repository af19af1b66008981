//! Traces from small scripts, for the tests of analyses.
//!
//! One event a line: `AT CPU BY FLAGS KIND …`. Times are ns; tasks are names (`idle` is the idle task), their pids count
//! from 101 in the order of first mention; FLAGS is `?` (not known), or `.` with any of `N` (need-resched), `s` (softirq),
//! `h` (hardirq). Kinds are in the table below.

use ttwu_model::{
    CpuId, Event, EventFlags, EventKind, Pid, Prio, RawEvent, StateLetter, StrId, TaskState, Time, Trace,
    TraceBuilder,
};

struct Names {
    tasks: Vec<String>,
}

impl Names {
    fn pid(&mut self, name: &str) -> Pid {
        if name == "idle" {
            return Pid::IDLE;
        }
        let index = self.tasks.iter().position(|task| task == name).unwrap_or_else(|| {
            self.tasks.push(name.to_owned());
            self.tasks.len() - 1
        });
        Pid::new(101 + i32::try_from(index).expect("few tasks"))
    }
}

/// The trace that `script` says.
pub(crate) fn trace(script: &str) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut names = Names { tasks: Vec::new() };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let raw = event(&words, &mut names, &mut builder);
        builder.push(&raw);
    }
    builder.finish()
}

fn event(words: &[&str], names: &mut Names, builder: &mut TraceBuilder) -> RawEvent {
    let line = words.join(" ");
    let number =
        |index: usize| words[index].parse::<u16>().unwrap_or_else(|_| panic!("{line}: word {index}"));
    let cpu = |index: usize| CpuId::new(number(index));
    let mut text = |index: usize| builder.strings.intern(words[index]);
    let prio = Prio::UNKNOWN;
    let mut named: [Option<StrId>; 2] = [None, None];
    let kind = match words[4] {
        "waking" => EventKind::Waking { wakee: names.pid(words[5]), prev_cpu: cpu(6), prio },
        "wakeup" => EventKind::Wakeup { wakee: names.pid(words[5]), cpu: cpu(6), prio },
        "new" => EventKind::WakeupNew { wakee: names.pid(words[5]), cpu: cpu(6), prio },
        "mig" => EventKind::Migrate { task: names.pid(words[5]), orig_cpu: cpu(6), dest_cpu: cpu(7), prio },
        "sw" => {
            named = [Some(text(5)), Some(text(7))];
            let (prev, next) = (names.pid(words[5]), names.pid(words[7]));
            EventKind::Switch { prev, next, prev_state: state(words[6]), prev_prio: prio, next_prio: prio }
        }
        "fork" => EventKind::Fork { parent: names.pid(words[5]), child: names.pid(words[6]) },
        "exit" => EventKind::Exit { task: names.pid(words[5]) },
        "exec" => EventKind::Exec { task: names.pid(words[5]), file: None },
        "ipi" => EventKind::IpiSend { target: cpu(5), callsite: Some(text(6)) },
        "irq" => EventKind::IrqEntry { irq: number(5).into(), name: Some(text(6)) },
        "irqx" => EventKind::IrqExit { irq: number(5).into() },
        "vec" => EventKind::VectorEntry { name: text(5) },
        "vecx" => EventKind::VectorExit { name: text(5) },
        "soft" => EventKind::SoftirqEntry { vec: number(5) as u8 },
        "softx" => EventKind::SoftirqExit { vec: number(5) as u8 },
        "timer" => EventKind::TimerExpire { function: text(5) },
        "stat" => EventKind::StatRuntime { task: names.pid(words[5]), runtime_ns: number(6).into() },
        "yield" => EventKind::Yield,
        "lost" => EventKind::Lost { count: None },
        other => panic!("{line}: kind {other}"),
    };
    if matches!(words[4], "waking" | "wakeup" | "new" | "mig") {
        named[0] = Some(builder.strings.intern(words[5]));
    }
    let flags = if words[3] == "?" {
        EventFlags::UNKNOWN
    } else {
        let bit = |letter: char, bit: u8| if words[3].contains(letter) { bit } else { 0 };
        EventFlags::from_common_flags(bit('N', 4) | bit('h', 8) | bit('s', 16))
    };
    let at = Time::from_ns(words[0].parse().expect("a time"));
    let event = Event { at, by: names.pid(words[2]), cpu: cpu(1), flags, kind };
    RawEvent { event, names: named }
}

fn state(text: &str) -> TaskState {
    let (letter, preempted) = match text.strip_suffix('+') {
        Some(letter) => (letter, Some(true)),
        None => (text, Some(false)),
    };
    TaskState::new(StateLetter::from_letter(letter.chars().next().expect("a letter")), preempted)
}

/// Lines without indentation and empty lines, to compare with a readable expectation.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}
