//! Any bytes as ftrace or perf script text: no panic, no hang, memory in proportion to the input.
//!
//! The header line makes most inputs reach the line parser instead of being refused by detection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ttwu_trace::{Input, TraceStream};

fuzz_target!(|bytes: &[u8]| {
    for head in [
        &b"# tracer: nop\n"[..],
        b"perf 1 [000] 1.000000: sched:sched_waking: comm=a pid=1 prio=1 target_cpu=0\n",
        b"",
    ] {
        let text = [head, bytes].concat();
        let _ = TraceStream::from_input(Input::from_bytes(text, "fuzz")).and_then(TraceStream::collect);
    }
});
