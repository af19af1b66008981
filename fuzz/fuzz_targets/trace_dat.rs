//! Any bytes as a trace.dat: no panic, no hang, memory in proportion to the input. Start from real and synthesised files;
//! the first bytes are given in both versions and byte orders so that the fuzzer need not find the magic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ttwu_trace::{Input, TraceStream};

fuzz_target!(|bytes: &[u8]| {
    for head in [
        &b""[..],
        b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0",
        b"\x17\x08\x44tracing6\0\x01\x04\0\0\x10\0",
        b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zstd\x001.5\0",
        b"\x17\x08\x44tracing7\0\x01\x08\0\0\x10\0zlib\x001\0",
    ] {
        let file = [head, bytes].concat();
        let _ = TraceStream::from_input(Input::from_bytes(file, "fuzz")).and_then(TraceStream::collect);
    }
});
