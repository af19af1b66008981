//! Perfetto traces, real and made by hand.

use super::proto::Message;
use super::schema::{bundle, compact, event, packet};
use super::{PerfettoWriter, probe};
use crate::detect::Head;
use crate::{Chunk, Input, TraceStream, TraceWriter, Written};
use ttwu_model::{EventKind, TaskId, Trace, TraceParts};
use ttwu_testing::{Rng, shared};

fn read(bytes: Vec<u8>) -> Trace {
    TraceStream::from_input(Input::from_bytes(bytes, "test")).unwrap().collect().unwrap()
}

#[test]
fn the_public_trace_has_its_counts() {
    let Some(path) = shared("traces/public/microsoft+Performance-Tools/test_trace.perfetto-trace.xz") else {
        return;
    };
    let trace = crate::read(&path).unwrap();
    let counts = trace.event_counts();
    assert_eq!((counts["sched_switch"], counts["sched_wakeup"]), (15_267, 8743));
    assert_eq!((counts["cpu_idle"], counts["cpu_frequency"], counts["task_newtask"]), (11_687, 168, 4));
    assert_eq!(
        (trace.meta().clock.as_deref(), trace.meta().arch.as_deref()),
        (Some("boot"), Some("aarch64"))
    );
    assert!(trace.meta().events_recorded.as_ref().unwrap().contains("sched:sched_waking"));
    assert!(trace.health().is_clean(), "{:?}", trace.health());
    assert_eq!(trace.health().notes, ["8 packets of other data sources than ftrace are not read"]);
}

/// What Perfetto carries of an event: kinds and tasks by pid and name.
fn carried(trace: &Trace) -> Vec<String> {
    let mut events: Vec<String> = Vec::new();
    for event in trace.events() {
        let task = |task: TaskId| {
            let name = trace.tasks().name_at(task, event.at).map_or("", |name| trace.strings().get(name));
            format!("{}:{}", trace.tasks().get(task).pid, if task.is_idle() { "" } else { name })
        };
        let what = match event.kind {
            EventKind::Waking { wakee, prev_cpu, prio } => {
                format!("waking {} {prev_cpu} {prio:?}", task(wakee))
            }
            EventKind::Wakeup { wakee, cpu, prio } => format!("wakeup {} {cpu} {prio:?}", task(wakee)),
            EventKind::WakeupNew { wakee, cpu, prio } => format!("wakeup_new {} {cpu} {prio:?}", task(wakee)),
            EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } => {
                let (prev, next) = (task(prev), task(next));
                format!("switch {prev} {prev_prio:?} {prev_state} {next} {next_prio:?}")
            }
            EventKind::Migrate { task: moved, orig_cpu, dest_cpu, prio } => {
                format!("migrate {} {orig_cpu} {dest_cpu} {prio:?}", task(moved))
            }
            EventKind::Fork { parent, child } => format!("fork {} {}", task(parent), task(child)),
            EventKind::Exit { task: exiting } => format!("exit {}", task(exiting)),
            EventKind::StatRuntime { task: charged, runtime_ns } => {
                format!("runtime {} {runtime_ns}", task(charged))
            }
            EventKind::Lost { .. } => continue,
            kind => format!("{:?}", kind.tracepoint()),
        };
        let by = trace.tasks().get(event.by).pid;
        events.push(format!("{} {} {by} {:?} {what}", event.at.as_ns(), event.cpu, event.flags));
    }
    // Events of one time on different CPUs have no order.
    events.sort();
    events
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Box::new(PerfettoWriter::new(&mut out, trace.meta()).unwrap());
    let TraceParts { strings, tasks, notes, .. } = trace.parts();
    writer.write(Chunk { events: trace.events(), strings, tasks, notes }).unwrap();
    let Written { events, bytes } = writer.finish(trace.parts()).unwrap();
    assert_eq!(bytes, out.len() as u64);
    let lost = trace.events().iter().filter(|event| matches!(event.kind, EventKind::Lost { .. })).count();
    assert_eq!(events, (trace.events().len() - lost) as u64);
    out
}

#[test]
fn recordings_survive_in_what_the_format_carries() {
    for name in [
        "own/hack.data.xz",
        "own/hs-full.data.xz",
        "own/hs-lost.data.xz",
        "own/hack-v6.dat.xz",
        "public/microsoft+Performance-Tools/test_trace.perfetto-trace.xz",
        "public/tracecompass-incubator/atrace-test.xz",
        "public/ARM-software+lisa/trace.txt.xz",
    ] {
        let Some(path) = shared(&format!("traces/{name}")) else { continue };
        let trace = crate::read(&path).unwrap();
        let again = read(written(&trace));
        let (found, expect) = (carried(&again), carried(&trace));
        if let Some(index) = (0..expect.len()).find(|&index| found.get(index) != Some(&expect[index])) {
            panic!("{name}, event {index}: {:?} instead of {:?}", found.get(index), expect[index]);
        }
        assert_eq!(found.len(), expect.len(), "{name}");
        assert_eq!(again.meta().kernel_release, trace.meta().kernel_release, "{name}");
        assert_eq!(again.meta().events_recorded, trace.meta().events_recorded, "{name}");
        assert_eq!(again.health().lost_events, trace.health().lost_events, "{name}");
    }
}

/// A packet in a `Trace`.
fn packet_of(fill: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut trace = Message::default();
    trace.message(1, fill);
    trace.as_bytes().to_vec()
}

fn pack(numbers: &[u64]) -> Vec<u8> {
    let mut out = Message::default();
    numbers.iter().for_each(|&number| out.put(number));
    out.as_bytes().to_vec()
}

/// cpu1: init (1) wakes kworker (7), which then runs; a later wake-up of 9 is by kworker.
fn compact_packet() -> Vec<u8> {
    packet_of(|packet| {
        packet.number(packet::SEQUENCE_ID, 3).message(packet::FTRACE_EVENTS, |bundle| {
            bundle.number(bundle::CPU, 1).message(bundle::COMPACT_SCHED, |sched| {
                sched.text(compact::INTERN_TABLE, "init").text(compact::INTERN_TABLE, "kworker/1:0");
                sched.raw(compact::SWITCH_TIMESTAMP, &pack(&[1000, 500]));
                sched.raw(compact::SWITCH_PREV_STATE, &pack(&[0x100, 1]));
                sched.raw(compact::SWITCH_NEXT_PID, &pack(&[1, 7]));
                sched.raw(compact::SWITCH_NEXT_PRIO, &pack(&[120, 100]));
                sched.raw(compact::SWITCH_NEXT_COMM_INDEX, &pack(&[0, 1]));
                sched.raw(compact::WAKING_TIMESTAMP, &pack(&[1200, 800]));
                sched.raw(compact::WAKING_PID, &pack(&[7, 9]));
                sched.raw(compact::WAKING_TARGET_CPU, &pack(&[1, 3]));
                sched.raw(compact::WAKING_PRIO, &pack(&[100, 120]));
                sched.raw(compact::WAKING_COMM_INDEX, &pack(&[1, 0]));
                sched.raw(compact::WAKING_COMMON_FLAGS, &pack(&[0x10, 0]));
            });
        });
    })
}

const COMPACT: [&str; 4] = [
    "1000 1 -1 EventFlags(0) switch -1: prio? R+ 1:init prio120",
    "1200 1 1 EventFlags(272) waking 7:kworker/1:0 1 prio100",
    "1500 1 1 EventFlags(0) switch 1:init prio120 S 7:kworker/1:0 prio100",
    "2000 1 7 EventFlags(256) waking 9:init 3 prio120",
];

#[test]
fn compact_events_get_what_they_leave_out() {
    let trace = read(compact_packet());
    assert_eq!(carried(&trace), COMPACT);
    assert_eq!(trace.meta().format, "Perfetto (compact_sched)");
}

#[test]
fn a_number_where_events_belong_is_no_events() {
    let odd = packet_of(|packet| {
        packet.number(packet::SEQUENCE_ID, 3).number(packet::FTRACE_EVENTS, 5);
    });
    assert_eq!(carried(&read([odd, compact_packet()].concat())), COMPACT);
}

#[test]
fn compressed_packets_are_spelled_out() {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut zlib, &compact_packet()).unwrap();
    let zlib = zlib.finish().unwrap();
    let zstd =
        ruzstd::encoding::compress_to_vec(&compact_packet()[..], ruzstd::encoding::CompressionLevel::Fastest);
    for (field, content) in [(packet::COMPRESSED_PACKETS, zlib), (packet::ZSTD_COMPRESSED_PACKETS, zstd)] {
        let head = packet_of(|packet| drop_ref(packet.number(packet::SEQUENCE_ID, 1)));
        let whole = [head, packet_of(|packet| drop_ref(packet.raw(field, &content)))].concat();
        let trace = read(whole.clone());
        assert_eq!(carried(&trace), COMPACT);
        assert_eq!(trace.meta().format, "Perfetto (compact_sched, compressed packets)");
        assert!(trace.health().is_clean(), "{:?}", trace.health());
        let cut = read(whole[..whole.len() - 5].to_vec());
        assert!(cut.health().truncated_at.is_some());
    }
}

fn drop_ref(_: &mut Message) {}

fn idle_exit(at: u64) -> impl Fn(&mut Message) {
    move |message| {
        message.message(bundle::EVENT, |event| {
            event.number(event::TIMESTAMP, at).int(event::PID, 0).message(event::CPU_IDLE, |idle| {
                idle.number(1, u32::MAX.into()).number(2, 0);
            });
        });
    }
}

#[test]
fn sessions_overlap_and_losses_show() {
    let bundle_of = |sequence: u64, dropped: bool, lost: bool, times: &[u64]| {
        packet_of(|packet| {
            packet.number(packet::SEQUENCE_ID, sequence);
            if dropped {
                packet.number(packet::PREVIOUS_PACKET_DROPPED, 1);
            }
            packet.message(packet::FTRACE_EVENTS, |bundle| {
                bundle.number(bundle::CPU, 0);
                if lost {
                    bundle.number(bundle::LOST_EVENTS, 1);
                }
                times.iter().for_each(|&at| idle_exit(at)(bundle));
            });
        })
    };
    // Two sessions of one CPU, each in order by itself. Every session's first packet looks dropped, and is not.
    let trace = read([bundle_of(1, true, false, &[10, 40]), bundle_of(2, true, false, &[20, 30])].concat());
    let times: Vec<_> = trace.events().iter().map(|event| event.at.as_ns()).collect();
    assert_eq!(times, [10, 20, 30, 40]);
    assert!(trace.health().is_clean(), "{:?}", trace.health());

    let trace = read([bundle_of(1, false, false, &[10]), bundle_of(1, false, true, &[20, 15])].concat());
    assert_eq!(trace.health().uncounted_gaps, 1);
    let trace = read([bundle_of(1, false, false, &[10]), bundle_of(1, true, false, &[20])].concat());
    assert_eq!(trace.health().uncounted_gaps, 1);

    let trace = read([bundle_of(1, false, false, &[10]), bundle_of(1, false, false, &[4, 20])].concat());
    let times: Vec<_> = trace.events().iter().map(|event| event.at.as_ns()).collect();
    assert_eq!((times, trace.health().clock_steps_total), (vec![10, 10, 20], 1));
}

#[test]
fn generic_events_by_description_keep_their_name() {
    let trace = read(packet_of(|packet| {
        packet.message(packet::FTRACE_EVENTS, |bundle| {
            bundle.message(bundle::GENERIC_EVENT_DESCRIPTORS, |generic| {
                generic.number(1, 70_001).message(2, |proto| drop_ref(proto.text(1, "sched_entry_tp")));
            });
            bundle.message(bundle::EVENT, |event| {
                event.number(event::TIMESTAMP, 1).message(70_001, |_| {});
            });
        });
    }));
    assert_eq!(trace.event_counts().into_iter().collect::<Vec<_>>(), [("sched_entry_tp", 1)]);
}

#[test]
fn other_files_are_not_taken_for_perfetto() {
    let probe = |bytes: &[u8]| probe(&Head { bytes, len: bytes.len() as u64 });
    assert!(probe(&compact_packet()));
    for text in ["\n# tracer: nop\n#\n", "\n\n\n\n\n\n\n\n\n\n\n", "", "\n", "TTWU\r\n\u{1a}\n"] {
        assert!(!probe(text.as_bytes()), "{text:?}");
    }
}

#[test]
fn a_file_cut_anywhere_reads_up_to_the_cut() {
    let Some(path) = shared("traces/own/hs-full.data.xz") else { return };
    let trace = crate::read(&path).unwrap();
    let bytes = written(&trace);
    let mut lengths = std::collections::BTreeSet::new();
    for cut in (100..bytes.len()).step_by(4999) {
        let part = read(bytes[..cut].to_vec());
        assert!(part.health().truncated_at.is_some_and(|at| at <= cut as u64), "cut at {cut}");
        lengths.insert(part.events().len());
    }
    assert!(lengths.len() >= 2, "{lengths:?}");
}

#[test]
fn damage_never_panics() {
    let mut rng = Rng::new(1);
    let mut bytes = compact_packet();
    if let Some(path) = shared("traces/own/hs-full.data.xz") {
        let trace = crate::read(&path).unwrap();
        let events = trace.events()[..400].to_vec();
        bytes.extend(written(&Trace::from_parts(trace.parts().clone(), events)));
    }
    for seed in 0..500 {
        let damaged = ttwu_testing::damage(&bytes, seed);
        let _ = std::hint::black_box((seed, open(damaged)));
    }
    // Anything at all behind a plausible beginning.
    for seed in 0..500 {
        let noise: Vec<u8> = (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect();
        let noisy = [compact_packet(), packet_of(|packet| drop_ref(packet.raw(1, &noise))), noise].concat();
        let _ = std::hint::black_box((seed, open(noisy)));
    }
}

fn open(bytes: Vec<u8>) -> Result<Trace, crate::ReadError> {
    TraceStream::from_input(Input::from_bytes(bytes, "test"))?.collect()
}

#[test]
fn huge_lengths_take_no_memory() {
    let huge = [&compact_packet()[..], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1]].concat();
    let trace = read(huge);
    assert_eq!(trace.events().len(), 4);
    assert_eq!(trace.health().repairs.len(), 1, "{:?}", trace.health());
    // A zip bomb in a compressed packet.
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..80 {
        std::io::Write::write_all(&mut zlib, &zeros).unwrap();
    }
    let bomb = zlib.finish().unwrap();
    let error =
        open(packet_of(|packet| drop_ref(packet.raw(packet::COMPRESSED_PACKETS, &bomb)))).unwrap_err();
    assert!(error.to_string().contains("decompress"), "{error}");
}
