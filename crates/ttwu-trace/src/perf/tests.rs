//! Real files against the manifest and against `perf script`.

use crate::{Format, TraceStream, read};
use std::collections::BTreeMap;
use ttwu_model::{EventKind, NoteKind, Trace};
use ttwu_testing::shared;

/// Rows of the manifest of this format: file, number of events, counts by name.
fn manifest() -> Vec<(String, Option<u64>, BTreeMap<String, u64>)> {
    let Some(path) = shared("traces/MANIFEST.tsv") else { return Vec::new() };
    let text = std::fs::read_to_string(path).expect("manifest");
    let rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row.get(6) == Some(&"perf.data") && !row[0].ends_with(".json"))
        .map(|row| {
            let counts = row.get(10).unwrap_or(&"").split_whitespace();
            let counts = counts.map(|pair| pair.split_once('=').expect("name=count"));
            let counts =
                counts.map(|(name, count)| (name.to_owned(), count.parse().expect("count"))).collect();
            (format!("traces/{}", row[0]), row[9].parse().ok(), counts)
        })
        .collect()
}

#[test]
fn every_file_of_the_manifest_has_its_events() {
    for (file, events, counts) in manifest() {
        let path = shared(&file).expect("listed files exist");
        let stream = TraceStream::open(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(stream.format(), Format::PerfData, "{file}");
        let trace = stream.collect().unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut found = trace.event_counts();
        found.remove("lost");
        if let Some(events) = events {
            assert_eq!(found.values().sum::<u64>(), events, "{file}: {found:?}");
        }
        for (name, count) in counts {
            assert_eq!(found.get(&*name), Some(&count), "{file}: {name}");
        }
        assert_eq!(trace.health().unknown_records, BTreeMap::new(), "{file}");
        assert_eq!(trace.health().repairs, Vec::<String>::new(), "{file}");
    }
}

fn own(name: &str) -> Option<Trace> {
    let path = shared(&format!("traces/own/{name}"))?;
    Some(read(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn oracle(name: &str) -> String {
    let path = shared(&format!("traces/own/oracle/{name}.xz")).expect("beside the traces");
    let input = crate::unwrap::unwrap(crate::Input::open(&path).expect("oracle"), &mut Default::default());
    let (input, _) = input.expect("xz");
    String::from_utf8(input.bytes(0, input.len()).expect("bytes")).expect("text")
}

/// One of our events in `perf script --ns`'s words, from the CPU on; `None` for what it does not print.
fn script_line(trace: &Trace, index: usize) -> Option<String> {
    let event = &trace.events()[index];
    let pid = |task| trace.tasks().get(task).pid;
    let name = |task| match pid(task) {
        ttwu_model::Pid::IDLE => "swapper".to_owned(),
        _ => trace.tasks().name_at(task, event.at).map_or("?", |name| trace.strings().get(name)).to_owned(),
    };
    let prio = |prio: ttwu_model::Prio| prio.get().map_or("?".to_owned(), |prio| prio.to_string());
    let wake = |task, on: ttwu_model::CpuId, p| {
        format!("comm={} pid={} prio={} target_cpu={:03}", name(task), pid(task), prio(p), on.number())
    };
    let text = match event.kind {
        EventKind::Waking { wakee, prev_cpu, prio } => wake(wakee, prev_cpu, prio),
        EventKind::Wakeup { wakee, cpu, prio } | EventKind::WakeupNew { wakee, cpu, prio } => {
            wake(wakee, cpu, prio)
        }
        EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } => format!(
            "prev_comm={} prev_pid={} prev_prio={} prev_state={prev_state} ==> next_comm={} next_pid={} next_prio={}",
            name(prev),
            pid(prev),
            prio(prev_prio),
            name(next),
            pid(next),
            prio(next_prio)
        ),
        EventKind::Migrate { task, orig_cpu, dest_cpu, prio: p } => format!(
            "comm={} pid={} prio={} orig_cpu={orig_cpu} dest_cpu={dest_cpu}",
            name(task),
            pid(task),
            prio(p)
        ),
        EventKind::StatRuntime { task, runtime_ns } => {
            format!("comm={} pid={} runtime={runtime_ns} [ns]", name(task), pid(task))
        }
        EventKind::Fork { parent, child } => format!(
            "comm={} pid={} child_comm={} child_pid={}",
            name(parent),
            pid(parent),
            name(child),
            pid(child)
        ),
        EventKind::Exit { task } => format!("comm={} pid={}", name(task), pid(task)),
        EventKind::Exec { task, file } => {
            format!("filename={} pid={}", file.map_or("?", |file| trace.strings().get(file)), pid(task))
        }
        _ => return None,
    };
    let ns = event.at.as_ns();
    let tracepoint = event.kind.tracepoint().expect("interpreted");
    Some(format!(
        "[{:03}] {}.{:09}: {tracepoint}: {text}",
        event.cpu.number(),
        ns / 1_000_000_000,
        ns % 1_000_000_000
    ))
}

/// `perf script`'s line in the same form: without who and padding, the idle tasks' numbers, and what comes after the
/// fields that an event keeps.
fn normalise(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(" [0")?;
    let rest = format!("[0{rest}");
    let (place, rest) = rest.split_once(": ")?;
    let place: Vec<_> = place.split_whitespace().collect();
    let (name, text) = rest.trim_start().split_once(": ")?;
    let name = name.strip_prefix("sched:")?;
    let text = match name {
        "sched_process_exit" => text.split(" prio=").next()?,
        "sched_process_exec" => text.split(" old_pid=").next()?,
        _ => text,
    };
    let mut text = text.to_owned();
    for cpu in 0..2 {
        text = text.replace(&format!("swapper/{cpu}"), "swapper");
    }
    Some(format!("{} {}: {name}: {text}", place[0], place[1]))
}

fn check_script(data: &str, script: &str) {
    let Some(trace) = own(data) else { return };
    let script = oracle(script);
    let mut expect = script.lines().filter_map(normalise);
    for index in 0..trace.events().len() {
        let Some(found) = script_line(&trace, index) else { continue };
        assert_eq!(Some(found), expect.next(), "{data}: event {index}");
    }
    assert_eq!(expect.next(), None, "{data}: perf has more");
}

#[test]
fn perf_script_prints_the_same_events_in_the_same_order() {
    check_script("hs.data.xz", "hs.perf61.script-ns.txt");
    check_script("hs-full.data.xz", "hs-full.perf61.script-ns.txt");
    check_script("hs-lost.data.xz", "hs-lost.perf61.script-ns.txt");
}

#[test]
fn losses_are_events_on_their_cpu_just_before_the_next_sample() {
    let Some(trace) = own("hs-lost.data.xz") else { return };
    // perf sched latency: "1698 out of 4381, in 19 chunks".
    assert_eq!((trace.health().lost_events, trace.event_counts()["lost"]), (1698, 19));
    assert_eq!(trace.health().switch_mismatches, 0);
    let losses = trace.events().iter().filter_map(|event| match event.kind {
        EventKind::Lost { count } => Some((event.cpu.number(), count.map(std::num::NonZeroU32::get))),
        _ => None,
    });
    let first: Vec<_> = losses.take(4).collect();
    assert_eq!(first, [(0, Some(120)), (0, Some(126)), (1, Some(196)), (0, Some(3))]);
}

#[test]
fn the_header_says_where_it_comes_from() {
    let Some(trace) = own("hs-zstd.data") else { return };
    let meta = trace.meta();
    assert_eq!(meta.format, "perf.data (zstd)");
    assert_eq!(meta.recorder.as_deref(), Some("perf version 6.1.192"));
    assert_eq!(meta.kernel_release.as_deref(), Some("6.18.44-fc-v782"));
    assert_eq!((meta.arch.as_deref(), meta.cpus_recorded), (Some("x86_64"), Some(2)));
    assert_eq!(meta.clock.as_deref(), Some("perf"));
    assert_eq!(
        meta.command.as_deref(),
        Some("/usr/bin/perf sched record -z -o hs-zstd.data perf bench sched messaging -g 1 -l 20")
    );
    let recorded: Vec<_> = meta.events_recorded.iter().flatten().map(String::as_str).collect();
    assert_eq!(
        recorded,
        [
            "sched:sched_migrate_task",
            "sched:sched_process_fork",
            "sched:sched_stat_runtime",
            "sched:sched_switch",
            "sched:sched_wakeup_new",
            "sched:sched_waking"
        ]
    );
}

#[test]
fn payload_pids_count_and_a_namespace_is_noticed() {
    let Some(path) = shared("traces/public/microsoft+LinuxTracepoints/perf.data") else { return };
    let trace = read(&path).expect("readable");
    // The samples say 2002, in the recorder's namespace; the payloads say 2384.
    assert!(trace.tasks().iter().any(|(_, task)| task.pid.number() == 2384));
    assert!(trace.health().notes.iter().any(|note| note.contains("namespace")), "{:?}", trace.health().notes);
    assert_eq!(trace.meta().clock.as_deref(), Some("mono"));
}

#[test]
fn notes_keep_perfs_own_records_at_their_place() {
    let Some(trace) = own("hs-full.data.xz") else { return };
    let notes = &trace.parts().notes;
    let count = |wanted: fn(&NoteKind) -> bool| notes.iter().filter(|note| wanted(&note.kind)).count();
    assert_eq!(count(|kind| matches!(kind, NoteKind::Name { .. })), 114);
    assert_eq!(count(|kind| matches!(kind, NoteKind::Fork { .. })), 152);
    assert_eq!(count(|kind| matches!(kind, NoteKind::Exit { .. })), 41);
    assert!(notes.is_sorted_by_key(|note| note.before));
    for note in notes.iter().filter(|note| note.at.as_ns() > 0) {
        let index = usize::try_from(note.before).expect("small");
        assert!(index == 0 || trace.events()[index - 1].at <= note.at, "{note:?}");
        assert!(trace.events().get(index).is_none_or(|event| event.at > note.at), "{note:?}");
    }
}

#[test]
fn raw_records_come_in_the_same_order_with_all_their_fields() {
    let Some(path) = shared("traces/own/hs-full.data.xz") else { return };
    let trace = read(&path).expect("readable");
    let mut index = 0;
    let (meta, _) = crate::walk_records(&path, &mut |record| {
        let event = &trace.events()[index];
        assert_eq!((record.at, record.cpu), (event.at, event.cpu), "record {index}");
        if record.format.name() == "sched_process_exit" {
            let dead = record.format.field("group_dead").and_then(|field| field.read(record.payload));
            assert!(matches!(dead, Some(crate::FieldValue::Unsigned(0 | 1))), "{dead:?}");
        }
        index += 1;
    })
    .expect("readable");
    assert_eq!((index, meta.arch.as_deref()), (trace.events().len(), Some("x86_64")));
}

fn check_topology(file: &str, expect: &str) {
    let Some(path) = shared(file) else { return };
    let text = read(&path).expect("readable").meta().topology_text.clone();
    let text = text.unwrap_or_else(|| panic!("{file}: no topology"));
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.join("\n"), expect, "{file}");
    ttwu_model::Topology::parse(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
}

#[test]
fn the_machines_topology_comes_with_the_file() {
    check_topology("traces/own/hs-zstd.data", "arch x86\n1 socket x 1 die x 2 clusters x 1 core\nmemory 0");
    // An i9-12900K as a virtual machine shows it.
    let pairs = "arch x86\n1 socket x 1 die x 12 clusters x 1 core x 2 threads\nthreads adjacent";
    check_topology("traces/public/microsoft+LinuxTracepoints/perf.data", pairs);
    // perf left the caches out of the pipe.
    check_topology(
        "traces/public/microsoft+LinuxTracepoints/pipe.data",
        "arch x86\n1 socket x 1 die x 12 cores x 2 threads\nthreads adjacent\nllc unknown",
    );
}
