//! Perfetto traces, real and made by hand.

use crate::{Input, TraceStream};
use ttwu_model::Trace;
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
