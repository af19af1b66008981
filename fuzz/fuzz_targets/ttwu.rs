//! Any bytes as the blocks of a `.ttwu` file: no panic, no hang, memory in proportion to the input.
//!
//! Under the fuzzer the reader does not insist on checksums, so that the inside of blocks is reached; start from
//! `crates/ttwu-trace/fixtures/v1.0.ttwu` without its first 16 bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ttwu_trace::{Input, TraceStream};

fuzz_target!(|bytes: &[u8]| {
    let file = [&b"TTWU\r\n\x1a\n\x01\0\0\0\0\0\0\0"[..], bytes].concat();
    let _ = TraceStream::from_input(Input::from_bytes(file, "fuzz")).and_then(TraceStream::collect);
});
