//! Round trips, damage and size of `.ttwu`.

use super::*;
use crate::{Chunk, Input, ReadError, TraceStream};
use std::num::NonZeroU32;
use ttwu_model::{
    ContinuityCheck, CpuId, Event, EventFlags, EventKind, NoteKind, Pid, Prio, RawEvent, StateLetter, StrId,
    TaskNote, TaskState, Time, Trace, TraceBuilder, TraceHealth, TraceParts,
};
use ttwu_testing::Rng;

/// A made-up recording: tasks wake each other over a few CPUs, fork, exit, are renamed, reuse pids and get lost.
fn made_up(seed: u64, events: usize) -> Trace {
    let mut rng = Rng::new(seed);
    let mut builder = TraceBuilder::new();
    builder.meta.format = "made up".to_owned();
    builder.meta.resolution_ns = 1;
    builder.meta.recorder_pids = vec![Pid::new(4)];
    builder.meta.facts.insert("preempt".to_owned(), "full".to_owned());
    let names: Vec<StrId> = (0..20).map(|n| builder.strings.intern(&format!("task-{n}"))).collect();
    let mut at = 1_000_000_007;
    for _ in 0..events {
        at += rng.below(20_000) as u64;
        let pid = |rng: &mut Rng| Pid::new(rng.below(30) as i32);
        let (a, b) = (pid(&mut rng), pid(&mut rng));
        let cpu = CpuId::new(rng.below(4) as u16);
        let prio = Prio::new([120, 120, 120, 98, -1, 140, 1000][rng.below(7)]);
        let state = TaskState::new(
            [StateLetter::Running, StateLetter::Sleeping, StateLetter::Unknown][rng.below(3)],
            [None, Some(true), Some(false)][rng.below(3)],
        );
        let name = names[rng.below(names.len())];
        let optional = Some(name).filter(|_| rng.below(2) == 0);
        let number = rng.next_u64() >> rng.below(64);
        let kind = match rng.below(29) {
            0 => EventKind::Waking { wakee: a, prev_cpu: cpu, prio },
            1 => EventKind::Wakeup { wakee: a, cpu, prio },
            2 => EventKind::WakeupNew { wakee: a, cpu, prio },
            3 => EventKind::Switch { prev: a, next: b, prev_state: state, prev_prio: prio, next_prio: prio },
            4 => EventKind::Migrate { task: a, orig_cpu: cpu, dest_cpu: CpuId::new(65535), prio },
            5 => EventKind::Fork { parent: a, child: b },
            6 => EventKind::Exit { task: a },
            7 => EventKind::Exec { task: a, file: optional },
            8 => EventKind::StatRuntime { task: a, runtime_ns: number },
            9 => EventKind::StatWait { task: a, delay_ns: number },
            10 => EventKind::StatSleep { task: a, delay_ns: number },
            11 => EventKind::IdleEnter { cpu, state: number as u32 },
            12 => EventKind::IdleExit { cpu },
            13 => EventKind::Frequency { cpu, khz: number as u32 },
            14 => EventKind::IpiSend { target: cpu, callsite: optional },
            15 => EventKind::IpiSendMask { mask: optional, callsite: Some(name) },
            16 => EventKind::VectorEntry { name },
            17 => EventKind::VectorExit { name },
            18 => EventKind::IrqEntry { irq: number as u32, name: optional },
            19 => EventKind::IrqExit { irq: number as u32 },
            20 => EventKind::SoftirqRaise { vec: number as u8 },
            21 => EventKind::SoftirqEntry { vec: number as u8 },
            22 => EventKind::SoftirqExit { vec: number as u8 },
            23 => EventKind::TimerExpire { function: name },
            24 => EventKind::WorkStart { function: name },
            25 => EventKind::WorkEnd { function: optional },
            26 => EventKind::Yield,
            27 => EventKind::Lost { count: NonZeroU32::new(number as u32 % 3) },
            _ => EventKind::Other { name },
        };
        let flags = if rng.below(3) == 0 {
            EventFlags::UNKNOWN
        } else {
            EventFlags::from_common_flags(rng.next_u64() as u8)
        };
        let by = [a, b, Pid::IDLE, Pid::UNKNOWN][rng.below(4)];
        let cpu = CpuId::new([0, 1, 2, 3, 500][rng.below(5)]);
        let event = Event { at: Time::from_ns(at), by, cpu, flags, kind };
        let name_for = |some: bool| if some { Some(name) } else { None };
        builder.push(&RawEvent { event, names: [name_for(rng.below(4) == 0), name_for(rng.below(4) == 0)] });
    }
    builder.health_mut().add_unknown("nonsense");
    builder.finish()
}

fn write(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    let len = write_ttwu(&mut out, trace).unwrap();
    assert_eq!(len, out.len() as u64);
    out
}

fn read(bytes: &[u8]) -> Result<Trace, ReadError> {
    TraceStream::from_input(Input::from_bytes(bytes.to_vec(), "test"))?.collect()
}

#[track_caller]
fn assert_equal(found: &Trace, expect: &Trace) {
    assert_parts_equal(found.parts(), expect.parts());
    if let Some(index) = (0..expect.events().len()).find(|&i| found.events().get(i) != expect.events().get(i))
    {
        panic!("event {index}: {:?} instead of {:?}", found.events().get(index), expect.events()[index]);
    }
    assert_eq!(found.events().len(), expect.events().len());
}

#[track_caller]
fn assert_parts_equal(found: &TraceParts, expect: &TraceParts) {
    assert_eq!(found.meta, expect.meta);
    assert_eq!(found.strings.iter().collect::<Vec<_>>(), expect.strings.iter().collect::<Vec<_>>());
    assert_eq!(found.tasks, expect.tasks);
    assert_eq!(found.health, expect.health);
    assert_eq!(found.notes, expect.notes);
}

#[test]
fn what_is_written_is_read_again() {
    for (seed, events) in [(1, 0), (2, 1), (3, 1000), (4, 65_536), (5, 65_537), (6, 200_000)] {
        let trace = made_up(seed, events);
        assert_equal(&read(&write(&trace)).unwrap(), &trace);
    }
}

#[test]
fn a_parent_may_come_after_its_child_and_notes_are_kept() {
    let mut builder = TraceBuilder::new();
    let name = builder.strings.intern("late");
    let kind = EventKind::Fork { parent: Pid::new(9), child: Pid::new(10) };
    let event =
        Event { at: Time::from_ns(5), by: Pid::IDLE, cpu: CpuId::new(0), flags: EventFlags::UNKNOWN, kind };
    builder.push(&RawEvent { event, names: [None; 2] });
    let trace = builder.finish();
    let mut parts = trace.parts().clone();
    let (pid, tgid) = (Pid::new(3), Pid::new(-2));
    for kind in [
        NoteKind::Name { pid, tgid, name },
        NoteKind::Fork { pid, tgid, parent: tgid, parent_tgid: pid },
        NoteKind::Exit { pid, tgid },
        NoteKind::Released { pid, tgid },
    ] {
        parts.notes.push(TaskNote { before: 1, at: Time::from_ns(9), kind });
    }
    let trace = Trace::from_parts(parts, trace.events().to_vec());
    assert_equal(&read(&write(&trace)).unwrap(), &trace);
}

#[test]
fn small_chunks_with_growing_tables_give_the_same_trace() {
    let trace = made_up(7, 5000);
    // The stream of the whole file hands out tables as they grow; here they grow by hand.
    let mut out = Vec::new();
    let mut writer = TtwuWriter::new(&mut out, trace.meta()).unwrap();
    let parts = trace.parts();
    let mut rows = vec![parts.tasks.get(ttwu_model::TaskId::IDLE).clone()];
    let mut resolver = ttwu_model::Resolver::new();
    for (n, events) in trace.events().chunks(700).enumerate() {
        while rows.len() < parts.tasks.len() * (n + 2) / 9 {
            let id = ttwu_model::TaskId::new(rows.len() as u32);
            let mut row = parts.tasks.get(id).clone();
            row.names.truncate(1);
            row.exited_at = None;
            resolver.put_row(id, row.clone());
            rows.push(row);
        }
        let tasks = resolver.tasks();
        writer.write(Chunk { events, strings: &parts.strings, tasks, notes: &[] }).unwrap();
        if n % 2 == 0 {
            writer.flush(&parts.strings, tasks).unwrap();
        }
    }
    writer.finish(parts).unwrap();
    assert_equal(&read(&out).unwrap(), &trace);
}

#[test]
fn a_file_cut_anywhere_reads_up_to_the_last_whole_block() {
    let trace = made_up(8, 3000);
    let mut out = Vec::new();
    let parts = trace.parts();
    let mut writer = TtwuWriter::new(&mut out, &parts.meta).unwrap();
    for events in trace.events().chunks(500) {
        writer.write(Chunk { events, strings: &parts.strings, tasks: &parts.tasks, notes: &[] }).unwrap();
        writer.flush(&parts.strings, &parts.tasks).unwrap();
    }
    writer.finish(parts).unwrap();
    let mut most = 0;
    for cut in (0..out.len()).step_by(7) {
        match read(&out[..cut]) {
            Ok(part) => {
                assert!(cut >= HEADER, "cut at {cut}");
                assert_eq!(part.events(), &trace.events()[..part.events().len()], "cut at {cut}");
                assert_eq!(part.events().len() % 500, 0, "cut at {cut}");
                assert!(part.health().truncated_at.is_some(), "cut at {cut}");
                assert!(part.events().len() >= most, "cut at {cut}");
                most = part.events().len();
            }
            Err(error) => assert!(cut < HEADER, "cut at {cut}: {error}"),
        }
    }
    assert_eq!(most, 3000);
    let whole_but_summary = read(&out[..out.len() - 1]).unwrap();
    assert_eq!(whole_but_summary.health().loss_windows, trace.health().loss_windows);
    // Pids here are reused while they run, which real ones are not: checked by task, as the reader does.
    let mut expect = TraceHealth::default();
    let mut check = ContinuityCheck::default();
    trace.events().iter().for_each(|event| check.check(event, &mut expect));
    assert_eq!(whole_but_summary.health().switch_mismatches, expect.switch_mismatches);
}

#[test]
fn a_damaged_block_costs_only_itself() {
    let trace = made_up(9, 3 * 65_536);
    let mut bytes = write(&trace);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let part = read(&bytes).unwrap();
    assert_eq!(part.events().len(), 2 * 65_536);
    assert_eq!(part.events()[..65_536], trace.events()[..65_536]);
    assert_eq!(part.events()[65_536..], trace.events()[2 * 65_536..]);
    let health = part.health();
    assert_eq!(health.lost_events, trace.health().lost_events + 65_536);
    let window = health.loss_windows.iter().find(|window| window.cpu.is_none()).unwrap();
    assert_eq!((window.from, window.to), (trace.events()[65_535].at, trace.events()[2 * 65_536].at));
    assert!(health.repairs[0].starts_with("block checksum does not match at offset"), "{:?}", health.repairs);
}

#[test]
fn newer_and_foreign_files_are_refused() {
    let check = |change: fn(&mut Vec<u8>), expect: &str| {
        let mut bytes = write(&made_up(1, 10));
        change(&mut bytes);
        assert_eq!(read(&bytes).unwrap_err().to_string(), expect);
    };
    check(|bytes| bytes[8] = 2, "ttwu version 2.0 is newer than this reader (up to 1.x); update ttwu");
    check(|bytes| bytes[8] = 0, "ttwu: version 0 does not exist at offset 0x8");
    check(|bytes| bytes.truncate(10), "ttwu: the file ends inside its header at offset 0xa");
}

#[test]
fn damage_never_panics() {
    let bytes = write(&made_up(10, 400));
    for seed in 0..500 {
        // Seeds whose damage hits nothing but a checksum are fine; what counts is that each returns.
        let _ = std::hint::black_box((seed, read(&ttwu_testing::damage(&bytes, seed))));
    }
}

/// Damage behind the checksum, as a fuzzer or an attacker would do it.
#[test]
fn damage_with_right_checksums_never_panics() {
    let trace = made_up(11, 400);
    let bytes = write(&trace);
    let input = Input::from_bytes(bytes.clone(), "test");
    let (mut at, mut blocks) = (HEADER as u64, Vec::new());
    while let block::Found::Block(block) = block::read(&input, at).unwrap() {
        at = block.end;
        blocks.push((block.kind, block.raw));
    }
    assert!(blocks.len() >= 6, "META, STRINGS, TASKS, EVENTS, SUMMARY, END");
    for seed in 0..1000 {
        let hit = Rng::new(seed).below(blocks.len());
        let mut out = bytes[..HEADER].to_vec();
        for (n, (kind, raw)) in blocks.iter().enumerate() {
            let raw = if n == hit { ttwu_testing::damage(raw, seed) } else { raw.clone() };
            block::write(&mut out, *kind, &raw, &mut Vec::new()).unwrap();
        }
        if let Ok(trace) = std::hint::black_box((seed, read(&out))).1 {
            assert!(trace.events().len() <= 400, "seed {seed}");
        }
    }
}

#[test]
fn side_tables_are_found_by_name() {
    let trace = made_up(12, 100);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = TtwuWriter::new(&mut file, trace.meta()).unwrap();
    writer.side_table("decisions", b"row by row").unwrap();
    writer.finish(trace.parts()).unwrap();
    let find = |name| read_side_table(file.path(), name).unwrap();
    assert_eq!(find("decisions").as_deref(), Some(&b"row by row"[..]));
    assert_eq!(find("reasons"), None);
}

/// Every recording that is at hand survives, and large ones take at most 8 bytes an event.
#[test]
fn real_recordings_survive_in_eight_bytes_an_event() {
    let Some(manifest) = ttwu_testing::shared("traces/MANIFEST.tsv") else { return };
    let mut survived = 0;
    for line in std::fs::read_to_string(manifest).unwrap().lines().skip(1) {
        let name = line.split('\t').next().unwrap();
        let Some(path) = ttwu_testing::shared(&format!("traces/{name}")) else { continue };
        let Ok(trace) = crate::read(&path) else { continue };
        let bytes = write(&trace);
        assert_equal(&read(&bytes).unwrap(), &trace);
        let events = trace.events().len();
        if events >= 2000 {
            assert!(bytes.len() <= 8 * events, "{name}: {} bytes for {events} events", bytes.len());
        }
        survived += 1;
    }
    assert!(survived >= 20, "only {survived} recordings could be read");
}

/// The sample of each version that was ever released must stay readable; `fixtures/ORIGIN.md` has their origin.
#[test]
fn the_sample_of_version_1_0_is_read() {
    let sample = read(include_bytes!("../../fixtures/v1.0.ttwu")).unwrap();
    let trace = made_up(42, 300);
    assert_equal(&sample, &trace);
    let kinds: std::collections::BTreeSet<_> =
        trace.events().iter().map(|event| event.kind.ordinal()).collect();
    assert_eq!(kinds.len(), 28, "the sample has every kind of event");
}

#[test]
#[ignore = "makes the sample of a new version; name it after the version"]
fn make_sample() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/v1.0.ttwu");
    std::fs::write(path, write(&made_up(42, 300))).unwrap();
}
