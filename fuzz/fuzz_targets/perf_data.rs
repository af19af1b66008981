//! Any bytes as a perf.data: no panic, no hang, memory in proportion to the input.
//!
//! Both containers' headers go in front, so that most inputs reach the record walker; without a corpus of real files
//! (`fuzz/corpus/perf_data`) the formats in it are never met.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ttwu_trace::{Input, TraceStream};

fuzz_target!(|bytes: &[u8]| {
    for head in [&b"PERFILE2\x10\0\0\0\0\0\0\0"[..], b"PERFILE2\x68\0\0\0\0\0\0\0", b"2ELIFREP\0\0\0\0\0\0\0\x10", b""] {
        let file = [head, bytes].concat();
        let _ = TraceStream::from_input(Input::from_bytes(file, "fuzz")).and_then(TraceStream::collect);
    }
});
