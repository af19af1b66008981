//! Any bytes as a Perfetto trace: no panic, no hang, memory in proportion to the input.
//!
//! A sound packet before them makes most inputs reach the reader instead of being refused by detection; behind it they are
//! tried as packets and as the inside of a bundle.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ttwu_trace::{Input, TraceStream};

fuzz_target!(|bytes: &[u8]| {
    // trusted_packet_sequence_id: 1
    let sound = [0x0a, 2, 0x50, 1];
    let mut bundle = vec![0x0a, 0, 0x0a, 0];
    if let Ok(len) = u8::try_from(bytes.len() + 2)
        && len < 0x80
    {
        bundle = vec![0x0a, len, 0x0a, len - 2];
    }
    for head in [&sound[..], &[&sound[..], &bundle].concat()] {
        let trace = [head, bytes].concat();
        let _ = TraceStream::from_input(Input::from_bytes(trace, "fuzz")).and_then(TraceStream::collect);
    }
});
