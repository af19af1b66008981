//! Perfetto traces, real and made by hand.

use super::PerfettoWriter;
use crate::{Chunk, Input, TraceStream, TraceWriter, Written};
use ttwu_model::{EventKind, TaskId, Trace, TraceParts};
use ttwu_testing::shared;

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
