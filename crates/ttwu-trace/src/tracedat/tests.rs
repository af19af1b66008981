//! trace.dat against the manifest, against trace-cmd's own output, cut, damaged, and synthesised for other machines.

use super::testing::{Kind, Writer, kinds};
use super::*;
use crate::{TraceStream, unwrap::unwrap};
use ttwu_model::{Event, EventKind, TaskId, Trace, TraceHealth};
use ttwu_testing::damage;

/// Reads a recording of the reference material; `None` where that is not there.
fn read(name: &str) -> Option<Trace> {
    let path = ttwu_testing::shared(&format!("traces/{name}"))?;
    Some(crate::read(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// The bytes of a recording of the reference material, unpacked.
fn bytes(name: &str) -> Option<Vec<u8>> {
    let path = ttwu_testing::shared(&format!("traces/{name}"))?;
    let input = Input::open(&path).expect("readable");
    let (input, _) = unwrap(input, &mut TraceHealth::default()).expect("sound");
    Some(input.bytes(0, u64::MAX).expect("readable"))
}

/// Every trace.dat of the manifest has exactly the counts that the manifest says, and nothing to complain of.
#[test]
fn counts_are_those_of_the_manifest() {
    let Some(path) = ttwu_testing::shared("traces/MANIFEST.tsv") else { return };
    let manifest = std::fs::read_to_string(path).expect("readable");
    let mut files = 0;
    for line in manifest.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [file, .., format, _, _, events, counts] = columns[..] else { panic!("{line}") };
        if !format.starts_with("trace.dat") {
            continue;
        }
        files += 1;
        let Some(trace) = read(file) else { return };
        let found = trace.event_counts();
        for count in counts.split_ascii_whitespace() {
            let (name, count) = count.split_once('=').expect("name=count");
            assert_eq!(
                found.get(name).copied().unwrap_or(0).to_string(),
                count,
                "{file}: {name} of {found:?}"
            );
        }
        assert_eq!(found.values().sum::<u64>().to_string(), events, "{file}: {found:?}");
        // PID 1's threads lack switch-outs on the machine that made our own recordings.
        let health = TraceHealth { switch_mismatches: 0, ..trace.health().clone() };
        assert_eq!(health, TraceHealth::default(), "{file}");
    }
    assert_eq!(files, 8);
}

/// An event as `trace-cmd report -t -R` prints it from the CPU on, without padding and without what ttwu does not keep.
fn reported(event: &Event, trace: &Trace) -> String {
    let pid = |task: TaskId| trace.tasks().get(task).pid;
    let name = |task: TaskId| match task.is_idle() {
        true => format!("swapper/{}", event.cpu),
        false => trace.tasks().name_at(task, event.at).map_or("", |id| trace.strings().get(id)).to_owned(),
    };
    let prio = |prio: ttwu_model::Prio| prio.get().map_or("?".to_owned(), |prio| prio.to_string());
    let wake = |which, wakee, cpu, p| {
        format!("{which}: comm={} pid={} prio={} target_cpu={cpu:03}", name(wakee), pid(wakee), prio(p))
    };
    let text = match event.kind {
        EventKind::Waking { wakee, prev_cpu, prio } => wake("sched_waking", wakee, prev_cpu.number(), prio),
        EventKind::Wakeup { wakee, cpu, prio } => wake("sched_wakeup", wakee, cpu.number(), prio),
        EventKind::WakeupNew { wakee, cpu, prio } => wake("sched_wakeup_new", wakee, cpu.number(), prio),
        EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } => format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={prev_state} next_comm={} next_pid={} next_prio={}",
            name(prev),
            pid(prev),
            prio(prev_prio),
            name(next),
            pid(next),
            prio(next_prio)
        ),
        EventKind::Migrate { task, orig_cpu, dest_cpu, prio: p } => format!(
            "sched_migrate_task: comm={} pid={} prio={} orig_cpu={orig_cpu} dest_cpu={dest_cpu}",
            name(task),
            pid(task),
            prio(p)
        ),
        EventKind::Fork { parent, child } => format!(
            "sched_process_fork: parent_comm={} parent_pid={} child_comm={} child_pid={}",
            name(parent),
            pid(parent),
            name(child),
            pid(child)
        ),
        EventKind::Exit { task } => format!("sched_process_exit: comm={} pid={}", name(task), pid(task)),
        EventKind::Exec { task, file } => {
            let file = file.map_or("", |id| trace.strings().get(id));
            format!("sched_process_exec: filename={file} pid={}", pid(task))
        }
        other => panic!("not in these recordings: {other:?}"),
    };
    let (s, ns) = (event.at.as_ns() / 1_000_000_000, event.at.as_ns() % 1_000_000_000);
    format!("{} [{:03}] {s}.{ns:09} {text}", pid(event.by), event.cpu.number())
}

/// A line of `trace-cmd report -t -R` in the form of [`reported`].
fn canonical(line: &str) -> String {
    let (task, rest) = line.split_once(" [").expect("a CPU");
    let pid = task.trim().rsplit_once('-').expect("a pid").1;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let mut out = vec![pid.to_owned(), format!("[{}", words[0]), words[1].trim_end_matches(':').to_owned()];
    for word in &words[2..] {
        match word.split_once('=') {
            // Numbers of a 6.18 kernel.
            Some(("prev_state", number)) => out.push(format!(
                "prev_state={}",
                match number {
                    "0" => "R",
                    "256" => "R+",
                    "1" => "S",
                    "2" => "D",
                    "4" => "T",
                    "8" => "t",
                    "16" => "X",
                    "32" => "Z",
                    "64" => "P",
                    "128" => "I",
                    other => panic!("state {other}"),
                }
            )),
            Some(("prio", _)) if words[2] == "sched_process_exit:" => {}
            Some(("old_pid" | "group_dead", _)) => {}
            Some(_) | None => out.push((*word).to_owned()),
        }
    }
    out.join(" ")
}

/// Each event, its time to the nanosecond, its CPU, task and fields are what trace-cmd prints, in the same order.
#[test]
fn events_are_those_that_trace_cmd_reports() {
    for (file, count) in [("hack", 5812), ("hack-v6", 3923), ("hack-v7-none", 3922)] {
        let Some(trace) = read(&format!("own/{file}.dat.xz")) else { return };
        let report = bytes(&format!("own/oracle/{file}.tracecmd316.report-tR.txt.xz")).expect("beside it");
        let report = String::from_utf8(report).expect("text");
        let lines: Vec<&str> =
            report.lines().filter(|line| line.contains(": ") && line.contains(" [0")).collect();
        assert_eq!((lines.len(), trace.events().len()), (count, count), "{file}");
        for (event, line) in trace.events().iter().zip(lines) {
            assert_eq!(reported(event, &trace), canonical(line), "{file}: {line}");
        }
    }
}

#[test]
fn metadata_is_what_the_file_says() {
    let Some(trace) = read("own/hack.dat.xz") else { return };
    let meta = trace.meta();
    assert_eq!(meta.format, "trace.dat v7 (zstd 1.5.4) in xz");
    assert_eq!(meta.recorder.as_deref(), Some("trace-cmd 3.1.6 not-a-git-repo"));
    assert_eq!(meta.kernel_release.as_deref(), Some("6.18.44-fc-v782"));
    assert_eq!(meta.arch.as_deref(), Some("x86_64"));
    assert_eq!(meta.hostname.as_deref(), Some("vm"));
    assert_eq!(meta.clock.as_deref(), Some("local"));
    assert_eq!((meta.cpus_recorded, meta.resolution_ns), (Some(2), 1));
}

/// Reads all of `bytes` as a trace.dat; the text says how it went.
fn outcome(bytes: Vec<u8>) -> String {
    match TraceStream::from_input(Input::from_bytes(bytes, "test")).and_then(TraceStream::collect) {
        Ok(trace) => format!("{} events, {:?}", trace.events().len(), trace.health()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn cut_files_say_so_or_give_what_is_there() {
    for name in ["own/hack.dat.xz", "own/hack-v6.dat.xz", "own/hack-v7-none.dat.xz"] {
        let Some(whole) = bytes(name) else { return };
        for part in 0..40 {
            let len = whole.len() * part / 40;
            let text = outcome(whole[..len].to_vec());
            let said = text.contains("trace.dat: ")
                || text.contains("unknown format")
                || text.contains("truncated_at: Some");
            assert!(said, "{name} cut to {len}: {text}");
        }
    }
}

#[test]
fn damaged_files_never_panic() {
    for (name, seeds) in
        [("own/hack.dat.xz", 100), ("public/carverdamien+trace-cmd/small-sched-trace.dat.gz", 100)]
    {
        let Some(whole) = bytes(name) else { return };
        for seed in 0..seeds {
            println!("{name} seed {seed}");
            outcome(damage(&whole, seed));
        }
    }
}

#[test]
fn other_versions_are_refused_with_a_remedy() {
    let check = |version: &str, expect: &str| {
        let bytes = [MAGIC, version.as_bytes(), b"\0\0\x08\0\x10\0\0none\0\0", &[0; 64]].concat();
        let text = outcome(bytes);
        assert!(text.contains(expect), "{version}: {text}");
    };
    check("8", "trace.dat version 8 is newer than this reader (up to 7); update ttwu");
    check("5", "trace.dat: version 5 was never released");
    check("x", "expected version 6 or 7, found \"x\" at offset 0xa");
    check("7", "options: expected the options there");
}

/// One event of a synthesised file as text.
fn short(event: &Event, trace: &Trace) -> String {
    let pid = |task: TaskId| trace.tasks().get(task).pid;
    let what = match event.kind {
        EventKind::Switch { prev, next, prev_state, .. } => {
            format!("switch {}>{} {prev_state}", pid(prev), pid(next))
        }
        EventKind::IpiSend { target, callsite } => {
            format!("ipi {target} {}", callsite.map_or("?", |id| trace.strings().get(id)))
        }
        EventKind::Lost { count } => format!("lost {}", count.map_or(0, std::num::NonZeroU32::get)),
        other => panic!("{other:?}"),
    };
    format!("{}@{} {what}", event.cpu, event.at.as_ns())
}

/// Files of every kind of machine and packing, which nobody has recordings of, give the same trace.
#[test]
fn all_machines_and_packings_give_the_same_trace() {
    for kind in kinds() {
        let bytes = Writer::write(kind);
        let trace = TraceStream::from_input(Input::from_bytes(bytes, "test"))
            .and_then(TraceStream::collect)
            .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        let events: Vec<String> = trace.events().iter().map(|event| short(event, &trace)).collect();
        let expect = [
            "0@1100 switch 5>6 S",
            "1@1105 switch 0>7 R+",
            "0@1120 ipi 1 wakeup_preempt+0x10/0xa0",
            "1@1160 lost 3",
            "1@1160 switch 7>8 D",
        ];
        assert_eq!(events, expect, "{kind:?}");
        // Four overrun by the kernel's count, three of them in the gap.
        assert_eq!(trace.health().lost_events, 4, "{kind:?}");
        assert!(trace.health().repairs.is_empty(), "{kind:?}: {:?}", trace.health());
        assert_eq!(trace.meta().kernel_release.as_deref(), Some("6.12.0"), "{kind:?}");
        assert_eq!(trace.meta().clock.as_deref(), Some("local"), "{kind:?}");
    }
}

/// Names saved at the end name only tasks that no event has named.
#[test]
fn saved_names_come_last() {
    let Some(kind) = kinds().into_iter().next() else { panic!("some kind") };
    let trace = TraceStream::from_input(Input::from_bytes(Writer::write(kind), "test"))
        .and_then(TraceStream::collect)
        .expect("sound");
    let name = |pid| {
        let (task, _) =
            trace.tasks().iter().find(|(_, task)| task.pid == ttwu_model::Pid::new(pid)).expect("seen");
        trace.tasks().last_name(task).map(|id| trace.strings().get(id))
    };
    assert_eq!(name(5), Some("t5"));
    assert_eq!(name(99), Some("never seen"));
}

#[test]
fn damaged_small_files_never_panic_and_keep_their_time_order() {
    for (index, kind) in kinds().into_iter().enumerate() {
        let whole = Writer::write(kind);
        for seed in 0..60 {
            let seed = seed + 1000 * index as u64;
            println!("{kind:?} seed {seed}");
            outcome(damage(&whole, seed));
            // Most of a small file is padding between the pages; this hits what is not.
            let mut rng = ttwu_testing::Rng::new(seed);
            let mut bytes = whole.clone();
            let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
            for _ in 0..=rng.below(3) {
                bytes[used[rng.below(used.len())]] = rng.next_u64().to_le_bytes()[0];
            }
            outcome(bytes);
        }
    }
}

/// A file that claims absurd sizes is refused or read as far as it goes, in bounded memory.
#[test]
fn claims_beyond_the_file_are_not_believed() {
    let check = |kind: &Kind, bytes: Vec<u8>| {
        let text = outcome(bytes);
        assert!(text.contains("trace.dat") || text.contains("repairs: [\""), "{kind:?}: {text}");
    };
    for kind in kinds() {
        let whole = Writer::write(kind);
        // The first length of the file: header_page's, or the offset of the options.
        let at = whole.windows(12).position(|window| window == b"header_page\0");
        let at = at.map_or(20, |at| at + 12);
        let mut bytes = whole.clone();
        bytes[at..at + 8].fill(0xff);
        check(&kind, bytes);
    }
}
