//! The same buffers read as raw pages and as the kernel printed them; literal copies; live or empty directories.

use super::*;
use crate::unwrap::unwrap;
use crate::{Input, TraceStream};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use ttwu_model::{Context, Event, EventKind, Pid, Trace, TraceHealth};
use ttwu_testing::damage;

fn own() -> Option<PathBuf> {
    ttwu_testing::shared("traces/own/tracefs")
}

/// What a line of `trace` says that an event has: pid, CPU, microseconds, name, hard or soft interrupt, and the numbers
/// of `sched_switch`, wake-ups and migrations.
fn printed(line: &str) -> String {
    let (task, rest) = line.split_once('(').expect("a tgid column");
    let pid = task.trim().rsplit_once('-').expect("a pid").1;
    let words: Vec<&str> = rest.split_once(')').expect("a tgid column").1.split_ascii_whitespace().collect();
    let [cpu, flags, time, name, fields @ ..] = &words[..] else { panic!("{line}") };
    let numbers: Vec<&str> = fields
        .iter()
        .filter_map(|field| field.split_once('='))
        .filter(|(key, _)| KEYS.contains(key))
        .filter(|_| name.starts_with("sched_"))
        .map(|(_, value)| value.trim_start_matches('0'))
        .collect();
    let context = match flags.as_bytes()[2] {
        b'h' | b'H' => "irq",
        b's' => "softirq",
        _ => "task",
    };
    let resched = if flags.as_bytes()[1] == b'.' { "" } else { "N" };
    format!("{pid} {cpu} {time} {name} {context}{resched} {}", numbers.join(" "))
}

const KEYS: [&str; 9] = [
    "pid",
    "target_cpu",
    "prev_pid",
    "prev_state",
    "next_pid",
    "orig_cpu",
    "dest_cpu",
    "child_pid",
    "parent_pid",
];

fn found(event: &Event, trace: &Trace) -> String {
    let pid = |task| trace.tasks().get(task).pid.number();
    let numbers: Vec<String> = match event.kind {
        EventKind::Waking { wakee, prev_cpu: cpu, .. }
        | EventKind::Wakeup { wakee, cpu, .. }
        | EventKind::WakeupNew { wakee, cpu, .. } => {
            vec![pid(wakee).to_string(), cpu.to_string()]
        }
        EventKind::Switch { prev, next, prev_state, .. } => {
            vec![pid(prev).to_string(), prev_state.to_string(), pid(next).to_string()]
        }
        EventKind::Migrate { task, orig_cpu, dest_cpu, .. } => {
            vec![pid(task).to_string(), orig_cpu.to_string(), dest_cpu.to_string()]
        }
        EventKind::Fork { parent, child } => vec![pid(parent).to_string(), pid(child).to_string()],
        EventKind::Exit { task } | EventKind::Exec { task, .. } => vec![pid(task).to_string()],
        _ => Vec::new(),
    };
    let numbers: Vec<&str> = numbers.iter().map(|number| number.trim_start_matches('0')).collect();
    let context = match event.flags.context() {
        Context::Hardirq => "irq",
        Context::Softirq => "softirq",
        Context::Task => "task",
        other @ (Context::Nmi | Context::Unknown) => panic!("{other:?}"),
    };
    let resched = if event.flags.need_resched() == Some(true) { "N" } else { "" };
    let us = (event.at.as_ns() + 500) / 1000;
    let name = match event.kind {
        EventKind::Other { name } => trace.strings().get(name),
        kind => kind.tracepoint().expect("named"),
    };
    format!(
        "{} [{:03}] {}.{:06}: {name}: {context}{resched} {}",
        trace.tasks().get(event.by).pid,
        event.cpu.number(),
        us / 1_000_000,
        us % 1_000_000,
        numbers.join(" ")
    )
}

#[test]
fn raw_pages_are_what_the_kernel_printed() {
    let Some(directory) = own() else { return };
    let trace = crate::read(&directory).expect("readable");
    assert_eq!(trace.events().len(), 2874);
    let text = Input::open(&directory.join("trace.txt.xz")).expect("readable");
    let (text, _) = unwrap(text, &mut TraceHealth::default()).expect("sound");
    let text = String::from_utf8(text.bytes(0, u64::MAX).expect("readable")).expect("text");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 2874);
    for (event, line) in trace.events().iter().zip(lines) {
        let (found, printed) = (found(event, &trace), printed(line));
        match found.split_once(" tracepoint ") {
            Some((before, rest)) => {
                let (_, context) = rest.split_once(": ").expect("a name");
                assert!(printed.starts_with(before) && printed.ends_with(context), "{found:?} for {line}");
            }
            None => assert_eq!(found, printed, "{line}"),
        }
    }
    let counts = trace.event_counts();
    assert_eq!(counts["sched_switch"], 876);
    // The copy has the formats of `sched` alone; the other events keep their id and are counted.
    let mut unknown: Vec<u64> = trace.health().unknown_records.values().copied().collect();
    unknown.sort_unstable();
    assert_eq!(unknown, [21, 21, 87, 133, 133, 134, 310]);
    let health =
        TraceHealth { switch_mismatches: 0, unknown_records: BTreeMap::new(), ..trace.health().clone() };
    assert_eq!(health, TraceHealth::default());
    let tgid = |pid| {
        let of_pid = trace.tasks().iter().filter(|(_, task)| task.pid == Pid::new(pid));
        of_pid.last().and_then(|(_, task)| task.tgid)
    };
    assert_eq!(tgid(9586), Some(Pid::new(9581)));
}

/// Copies the short form into the names that tracefs itself has.
fn literal_copy(from: &Path, to: &Path) {
    for cpu in 0..2 {
        let directory = to.join(format!("per_cpu/cpu{cpu}"));
        fs::create_dir_all(&directory).expect("writable");
        fs::copy(from.join(format!("cpu{cpu}.raw")), directory.join("trace_pipe_raw")).expect("writable");
        fs::copy(from.join(format!("cpu{cpu}.stats")), directory.join("stats")).expect("writable");
    }
    for system in fs::read_dir(from.join("formats")).expect("readable").map(|entry| entry.expect("readable"))
    {
        let name = system.file_name();
        if !system.path().is_dir() {
            fs::create_dir_all(to.join("events")).expect("writable");
            fs::write(to.join("events").join(&name), fs::read(system.path()).expect("readable"))
                .expect("writable");
            continue;
        }
        for event in fs::read_dir(system.path()).expect("readable").map(|entry| entry.expect("readable")) {
            let directory = to.join("events").join(&name).join(event.file_name());
            fs::create_dir_all(&directory).expect("writable");
            let text = fs::read(event.path().join("format")).expect("readable");
            fs::write(directory.join("format"), text).expect("writable");
        }
    }
}

#[test]
fn a_literal_copy_of_tracefs_is_read_too() {
    let Some(directory) = own() else { return };
    let copy = tempfile::tempdir().expect("writable");
    literal_copy(&directory, copy.path());
    let stream = TraceStream::open(copy.path()).expect("readable");
    assert_eq!(stream.format(), crate::Format::Tracefs);
    let trace = stream.collect().expect("readable");
    assert_eq!(trace.event_counts(), crate::read(&directory).expect("readable").event_counts());
    assert_eq!(trace.meta().events_recorded, None);
    fs::write(copy.path().join("events/sched/sched_switch/enable"), "1\n").expect("writable");
    fs::write(copy.path().join("events/sched/sched_waking/enable"), "0\n").expect("writable");
    // The kernel's counts reach the health.
    let stats = "entries: 5\noverrun: 40\ncommit overrun: 0\nbytes: 1\ndropped events: 2\n";
    fs::write(copy.path().join("per_cpu/cpu1/stats"), stats).expect("writable");
    let trace = crate::read(copy.path()).expect("readable");
    assert_eq!(trace.health().lost_events, 42);
    assert!(
        trace.health().notes[0].starts_with("cpu 1: the kernel counted 42 lost events"),
        "{:?}",
        trace.health()
    );
}

#[test]
fn an_empty_or_live_tracefs_is_refused_with_a_remedy() {
    let directory = tempfile::tempdir().expect("writable");
    fs::create_dir_all(directory.path().join("per_cpu/cpu0")).expect("writable");
    fs::create_dir_all(directory.path().join("events")).expect("writable");
    fs::write(directory.path().join("per_cpu/cpu0/trace_pipe_raw"), "").expect("writable");
    let Err(error) = TraceStream::open(directory.path()) else { panic!("opened an empty one") };
    assert!(error.to_string().ends_with("a live tracefs is read with `ttwu record`"), "{error}");
    fs::write(directory.path().join("per_cpu/cpu0/trace_pipe_raw"), [0; 4096]).expect("writable");
    let Err(error) = TraceStream::open(directory.path()) else { panic!("opened one without formats") };
    assert!(error.to_string().contains("has pages but no format files"), "{error}");
}

#[test]
fn damaged_pages_and_formats_never_panic() {
    let Some(directory) = own() else { return };
    let copy = tempfile::tempdir().expect("writable");
    literal_copy(&directory, copy.path());
    let page_file = copy.path().join("per_cpu/cpu1/trace_pipe_raw");
    let format_file = copy.path().join("events/sched/sched_switch/format");
    let (pages, format) =
        (fs::read(&page_file).expect("readable"), fs::read(&format_file).expect("readable"));
    let mut counts = BTreeMap::new();
    for seed in 0..300 {
        println!("seed {seed}");
        fs::write(&page_file, damage(&pages, seed)).expect("writable");
        fs::write(&format_file, damage(&format, seed)).expect("writable");
        let ending = match crate::read(copy.path()) {
            Ok(trace) => trace.health().is_clean(),
            Err(error) => panic!("one bad file must not stop the reading: {error}"),
        };
        *counts.entry(ending).or_insert(0) += 1;
    }
    assert!(counts[&false] > 200, "{counts:?}");
}
