//! Files made to order: byte orders, word sizes, cuts, damage.

#[path = "../../benches/support/perf_write.rs"]
mod perf_write;

use crate::{Input, ReadError, TraceStream};
use perf_write::{Order, PerfWriter, Target, X86_64};
use ttwu_model::{CpuId, EventKind, Trace};
use ttwu_testing::{Rng, damage};

const TARGETS: [Target; 4] = [
    X86_64,
    Target { order: Order::Little, long: 4 },
    Target { order: Order::Big, long: 8 },
    Target { order: Order::Big, long: 4 },
];

fn read_bytes(bytes: Vec<u8>) -> Result<Trace, ReadError> {
    TraceStream::from_input(Input::from_bytes(bytes, "made")).and_then(TraceStream::collect)
}

/// Two CPUs, two rounds, a loss, a migration: everything once.
fn story(target: Target) -> PerfWriter {
    let mut writer = PerfWriter::new(target);
    writer.comm(0, 7, 7, "old-name");
    writer.switch(1000, 0, (0, "swapper/0"), 0, (7, "a"));
    writer.waking(3000, 0, 7, (8, "bee"), 1);
    writer.switch(2000, 1, (0, "swapper/1"), 0, (9, "c"));
    writer.switch(5000, 1, (9, "c"), 0x100, (8, "bee"));
    writer.finished_round();
    writer.switch(4000, 0, (7, "a"), 2, (0, "swapper/0"));
    writer.migrate(6000, 1, (9, "c"), 1, 0);
    // The kernel notes a loss after it has taken the next sample's time.
    writer.lost(7100, 1, 42);
    writer.switch(7000, 1, (8, "bee"), 0x10, (0, "swapper/1"));
    writer.finished_round();
    writer
}

/// A trace in few words, as `time cpu what`.
fn text(trace: &Trace) -> String {
    let name = |task, at| match trace.tasks().name_at(task, at) {
        Some(name) => trace.strings().get(name),
        None => "-",
    };
    let words = trace.events().iter().map(|event| {
        let at = event.at;
        let what = match event.kind {
            EventKind::Switch { prev, next, prev_state, .. } => {
                format!("{}.{prev_state}>{}", name(prev, at), name(next, at))
            }
            EventKind::Waking { wakee, prev_cpu, .. } => format!("wake {} on {prev_cpu}", name(wakee, at)),
            EventKind::Migrate { task, orig_cpu, dest_cpu, .. } => {
                format!("{} {orig_cpu}>{dest_cpu}", name(task, at))
            }
            EventKind::Lost { count } => format!("lost {}", count.map_or(0, std::num::NonZeroU32::get)),
            _ => "?".to_owned(),
        };
        format!("{} {} {what}", at.as_ns(), event.cpu)
    });
    words.collect::<Vec<_>>().join("; ")
}

const STORY: &str = "1000 0 -.R>a; 2000 1 -.R>c; 3000 0 wake bee on 1; 4000 0 a.D>-; 5000 1 c.R+>bee; \
                     6000 1 c 1>0; 7000 1 lost 42; 7000 1 bee.X>-";

#[test]
fn all_byte_orders_word_sizes_and_containers_say_the_same() {
    for target in TARGETS {
        let writer = story(target);
        for (container, bytes) in [("file", writer.finish()), ("pipe", writer.finish_pipe())] {
            let trace = read_bytes(bytes).unwrap_or_else(|error| panic!("{target:?} {container}: {error}"));
            assert_eq!(text(&trace), STORY, "{target:?} {container}");
            assert_eq!(trace.health().lost_events, 42, "{target:?} {container}");
            assert_eq!(trace.meta().cpus_recorded, Some(4), "{target:?} {container}");
            assert_eq!(trace.meta().hostname.as_deref(), Some("box"), "{target:?} {container}");
            assert!(
                trace.health().repairs.is_empty(),
                "{target:?} {container}: {:?}",
                trace.health().repairs
            );
        }
    }
}

#[test]
fn a_cut_pipe_reads_up_to_the_cut() {
    let writer = story(X86_64);
    let whole = writer.finish_pipe();
    let data = whole.len() - writer.len();
    for (index, &start) in writer.starts.iter().enumerate() {
        for extra in [0, 1, 4, 7, 8, 9, 20] {
            let cut = data + start + extra;
            let trace = read_bytes(whole[..cut.min(whole.len())].to_vec())
                .unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
            // Whole records before the cut: of the first 12, one is a name and two are marks.
            let whole_records = writer.starts[1..].iter().filter(|&&end| data + end <= cut).count();
            assert!(trace.events().len() <= whole_records, "cut at {cut}");
            if extra == 0 {
                assert_eq!(trace.health().truncated_at, None, "cut at {cut}, before record {index}");
            } else if extra < 8 {
                let at = (data + start) as u64;
                assert_eq!(trace.health().truncated_at, Some(at), "cut at {cut}, in record {index}");
            }
        }
    }
}

#[test]
fn a_cut_file_is_refused_with_a_remedy_or_read() {
    let writer = story(X86_64);
    let whole = writer.finish();
    for cut in 0..whole.len() {
        match read_bytes(whole[..cut].to_vec()) {
            Ok(trace) => assert!(trace.health().truncated_at.is_some(), "cut at {cut} goes unnoticed"),
            Err(error) => assert!(!error.to_string().contains('\n'), "cut at {cut}: {error}"),
        }
    }
    // Features lie behind the data; without formats nothing can be said.
    let error = read_bytes(whole[..whole.len() / 3].to_vec()).unwrap_err().to_string();
    assert!(error.contains("formats are missing"), "{error}");
}

#[test]
fn a_bad_record_costs_the_rest_of_its_round() {
    let writer = story(X86_64);
    let mut bytes = writer.finish_pipe();
    let data = bytes.len() - writer.len();
    // The size of the third record (the wake-up) becomes 0.
    let at = data + writer.starts[2];
    bytes[at + 6..at + 8].fill(0);
    let trace = read_bytes(bytes).expect("readable around the damage");
    assert_eq!(text(&trace), "1000 0 -.R>a; 4000 0 a.D>-; 6000 1 c 1>0; 7000 1 lost 42; 7000 1 bee.X>-");
    assert_eq!(trace.health().uncounted_gaps, 1);
    let window = trace.health().loss_windows[0];
    assert_eq!((window.cpu, window.from.as_ns(), window.to.as_ns()), (None, 1000, 4000));
}

#[test]
fn records_of_unknown_types_and_events_are_counted() {
    let mut writer = story(X86_64);
    writer.record(4000, &[0; 16]);
    writer.record(9, &[1; 64]);
    let trace = read_bytes(writer.finish()).expect("readable");
    assert_eq!(text(&trace), STORY);
    let unknown: Vec<_> =
        trace.health().unknown_records.iter().map(|(name, &count)| (&**name, count)).collect();
    assert_eq!(unknown, [("perf record type 4000", 1), ("sample of an unknown event", 1)]);
}

#[test]
fn one_wrong_time_does_not_move_the_events_after_it() {
    let mut writer = PerfWriter::new(X86_64);
    let mut expect = Vec::new();
    for round in 0..10u64 {
        for cpu in 0..2 {
            for step in 0..5 {
                let at = 1_000_000 + round * 1000 + step * 10 + u64::from(cpu);
                let wrong = round == 4 && cpu == 0 && step == 2;
                writer.switch(if wrong { at | 1 << 60 } else { at }, cpu, (1, "a"), 1, (1, "a"));
                if !wrong {
                    expect.push(at);
                }
            }
        }
        writer.finished_round();
    }
    expect.sort_unstable();
    let trace = read_bytes(writer.finish()).expect("readable");
    let mut found: Vec<_> = trace.events().iter().map(|event| event.at.as_ns()).collect();
    assert_eq!(found.len(), 100);
    // The one of unknown time is put somewhere between its neighbours.
    let place = found
        .iter()
        .position(|at| !expect.contains(at))
        .or_else(|| found.windows(2).position(|pair| pair[0] == pair[1]));
    found.remove(place.expect("one event has no time of its own"));
    assert_eq!(found, expect);
    assert!(!trace.health().is_clean());
}

#[test]
fn damaged_files_neither_panic_nor_hang() {
    let target = |seed: u64| TARGETS[usize::try_from(seed % 4).expect("small")];
    for seed in 0..1200 {
        let writer = story(target(seed));
        let bytes = if seed % 8 < 4 { writer.finish() } else { writer.finish_pipe() };
        let damaged = damage(&bytes, seed);
        let limit = bytes.len() * 4;
        match read_bytes(damaged) {
            Ok(trace) => assert!(trace.events().len() < limit, "seed {seed}"),
            Err(error) => assert!(!error.to_string().contains('\n'), "seed {seed}: {error}"),
        }
    }
}

#[test]
fn damaged_real_files_neither_panic_nor_hang() {
    for file in ["traces/own/hs-zstd.data", "traces/own/hs-pipe.data"] {
        let Some(path) = ttwu_testing::shared(file) else { return };
        let bytes = std::fs::read(path).expect("readable");
        for seed in 0..40 {
            let mut damaged = damage(&bytes, seed);
            // Most of the file is formats and names; hit the records too.
            let mut rng = Rng::new(seed);
            for _ in 0..4.min(damaged.len()) {
                let at = rng.below(damaged.len());
                damaged[at] ^= 1 << rng.below(8);
            }
            if let Err(error) = read_bytes(damaged) {
                assert!(!error.to_string().contains('\n'), "{file} seed {seed}: {error}");
            }
        }
    }
}

#[test]
fn a_huge_cpu_number_is_a_damaged_sample() {
    let mut writer = PerfWriter::new(X86_64);
    writer.switch(5, 0, (1, "a"), 0, (2, "b"));
    writer.switch(6, 3, (1, "a"), 0, (2, "b"));
    let mut bytes = writer.finish_pipe();
    let at = bytes.len() - writer.len() + writer.starts[1] + 40;
    bytes[at..at + 4].copy_from_slice(&70_000u32.to_le_bytes());
    let trace = read_bytes(bytes).expect("readable");
    assert_eq!(trace.events().len(), 1);
    assert_eq!(trace.events()[0].cpu, CpuId::new(0));
    assert_eq!(trace.health().unknown_records["damaged sample"], 1);
}
