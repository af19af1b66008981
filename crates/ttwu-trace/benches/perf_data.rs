//! Events per second from a perf.data file to a stream of finished events.
//!
//! `cargo bench -p ttwu-trace --bench perf_data`. The file is like one of `perf sched record` on a busy machine: four CPUs,
//! rounds of 8000 events (a real recording of `perf bench sched messaging` has 7000), a third of the events wake-ups. divan's `items` column is events.

#[path = "support/perf_write.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod perf_write;

use divan::counter::ItemsCount;
use perf_write::{PerfWriter, X86_64};
use std::io::Write;
use std::path::Path;
use ttwu_trace::TraceStream;

const CPUS: u32 = 4;
const EVENTS: usize = 2_000_000;
/// Events of one CPU in one round.
const ROUND: usize = 2_000;

fn main() {
    divan::main();
}

/// Ping-pong pairs: a task wakes its partner and sleeps, the partner runs.
fn file() -> tempfile::NamedTempFile {
    let mut writer = PerfWriter::new(X86_64);
    let (mut events, mut first, mut begin) = (0, 0, 1_000_000);
    while events < EVENTS {
        for cpu in 0..CPUS {
            let mut at = begin + u64::from(cpu);
            for step in first..first + ROUND / 3 {
                let pid = |side: usize| {
                    1000 + i32::try_from(cpu as usize * 100 + (step + side) % 40).expect("small")
                };
                let (a, b) = ((pid(0), "sched-messaging"), (pid(1), "sched-messaging"));
                writer.waking(at, cpu, a.0, b, (cpu + 1) % CPUS);
                writer.switch(at + 700, cpu, a, 1, (0, "swapper/0"));
                writer.switch(at + 1900, cpu, (0, "swapper/0"), 0, b);
                at += 3000;
                events += 3;
            }
        }
        first += ROUND / 3;
        begin += 3000 * ROUND as u64 / 3;
        writer.finished_round();
    }
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&writer.finish()).expect("room for the file");
    file
}

fn count(path: &Path) -> usize {
    let mut stream = TraceStream::open(path).expect("our own file");
    let mut events = 0;
    while let Some(chunk) = stream.next_chunk() {
        events += chunk.events.len();
    }
    let health = stream.finish().expect("our own file").health;
    assert!(health.is_clean(), "{health:?}");
    events
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn stream(bencher: divan::Bencher<'_, '_>) {
    let file = file();
    let events = count(file.path());
    bencher.counter(ItemsCount::new(events)).bench(|| count(file.path()));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn records(bencher: divan::Bencher<'_, '_>) {
    let file = file();
    let visit = || {
        let mut records = 0usize;
        ttwu_trace::walk_records(file.path(), &mut |_| records += 1).expect("our own file");
        records
    };
    let records = visit();
    bencher.counter(ItemsCount::new(records)).bench(visit);
}
