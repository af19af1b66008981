//! Speed and size of `.ttwu` on real scheduler events.
//!
//! `cargo bench -p ttwu-trace --bench ttwu_format`; needs the recordings in `../shared`. The recording is repeated to a few
//! million events, shifted in time, so that a run is long against the start of the reader's thread.
#![expect(clippy::print_stdout, reason = "a benchmark reports")]

use divan::Bencher;
use divan::counter::ItemsCount;
use std::path::Path;
use ttwu_model::{Event, Time, Trace};
use ttwu_trace::{Input, TraceStream, write_ttwu};

const RECORDINGS: [&str; 6] = [
    "traces/own/hack.data.xz",
    "traces/own/hs-full.data.xz",
    "traces/own/hack-v6.dat.xz",
    "traces/public/microsoft+LinuxTracepoints/perf.data",
    "traces/public/microsoft+Performance-Tools/test_trace.perfetto-trace.xz",
    "traces/public/tracecompass-incubator/atrace-test.xz",
];

fn recording(name: &str) -> Option<Trace> {
    ttwu_testing::shared(name).map(|path| ttwu_trace::read(&path).expect("readable"))
}

/// The recording over and over, to at least `count` events.
fn repeated(trace: &Trace, count: usize) -> Trace {
    let (first, last) = trace.span().expect("has events");
    let period = last.as_ns() - first.as_ns() + 1000;
    let repeats = count.div_ceil(trace.events().len());
    let events = (0..repeats as u64).flat_map(|n| {
        let shift = move |event: &Event| Event { at: Time::from_ns(event.at.as_ns() + n * period), ..*event };
        trace.events().iter().map(shift)
    });
    Trace::from_parts(trace.parts().clone(), events.collect())
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    write_ttwu(&mut out, trace).expect("memory does not fail");
    out
}

fn main() {
    for name in RECORDINGS {
        if let Some(trace) = recording(name) {
            let events = trace.events().len();
            let bytes = written(&trace).len();
            let many = written(&repeated(&trace, 500_000)).len();
            let each = |bytes: usize, events: usize| bytes as f64 / events as f64;
            let repeated = events * 500_000usize.div_ceil(events);
            let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
            println!(
                "{file}: {events} events, {bytes} bytes, {:.2} bytes an event; {:.2} when long",
                each(bytes, events),
                each(many, repeated)
            );
        }
    }
    divan::main();
}

const EVENTS: usize = 4_000_000;

#[divan::bench(sample_count = 10, sample_size = 1)]
fn write(bencher: Bencher) {
    let Some(trace) = recording(RECORDINGS[0]) else { return };
    let trace = repeated(&trace, EVENTS);
    bencher
        .counter(ItemsCount::new(trace.events().len()))
        .bench_local(|| write_ttwu(std::io::sink(), &trace).expect("memory does not fail"));
}

/// Chunk by chunk, as analyses read.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn read(bencher: Bencher) {
    let Some(trace) = recording(RECORDINGS[0]) else { return };
    let trace = repeated(&trace, EVENTS);
    let bytes = written(&trace);
    bencher.counter(ItemsCount::new(trace.events().len())).with_inputs(|| bytes.clone()).bench_local_values(
        |bytes| {
            let mut stream = TraceStream::from_input(Input::from_bytes(bytes, "bench")).expect("own file");
            let mut events = 0;
            while let Some(chunk) = stream.next_chunk() {
                events += chunk.events.len();
            }
            events
        },
    );
}
