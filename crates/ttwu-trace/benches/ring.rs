//! Events per second from ring-buffer pages to a stream of finished events.
//!
//! `cargo bench -p ttwu-trace --bench ring`. The input is a tracefs directory made here: four CPUs of a 64-bit machine,
//! ping-pong pairs, one wake-up for two switches. divan's `items` column is events: of `walk` entries found in pages, of
//! `records` those merged by time, of `stream` finished events (two threads: decoding, resolving pids).

use divan::counter::ItemsCount;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use ttwu_trace::ring::{PageCursor, PageHead, Step};
use ttwu_trace::{PageLayout, TraceStream};

const CPUS: u32 = 4;
const EVENTS: usize = 2_000_000;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

const SWITCH: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
    \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
    \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%s\", REC->prev_state & 255 ? __print_flags(REC->prev_state & 255, \"|\", { 1, \"S\" }) : \"R\", \
    REC->prev_state & 256 ? \"+\" : \"\"\n";

const WAKING: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"\"\n";

fn main() {
    divan::main();
}

/// A task's name as the kernel stores it, pid and priority behind it.
fn task(pid: u32) -> Vec<u8> {
    let name = if pid == 0 { b"swapper/0\0\0\0\0\0\0\0" } else { b"sched-messaging\0" };
    [&name[..], &pid.to_le_bytes(), &120u32.to_le_bytes()].concat()
}

fn record(id: u16, pid: u32, body: &[Vec<u8>]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &[1, 2], &pid.to_le_bytes(), &body.concat()].concat()
}

fn switch(prev: u32, state: u64, next: u32) -> Vec<u8> {
    record(316, prev, &[task(prev), state.to_le_bytes().to_vec(), task(next)])
}

/// One CPU's pages.
fn pages(cpu: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut page = Vec::new();
    let mut at = 1_000_000 + u64::from(cpu);
    let mut start = at;
    let mut last = at;
    let finish = |page: &mut Vec<u8>, start: u64, out: &mut Vec<u8>| {
        out.extend(start.to_le_bytes());
        out.extend((page.len() as u64).to_le_bytes());
        page.resize(4080, 0);
        out.append(page);
    };
    for step in 0..EVENTS as u32 / CPUS / 3 {
        let pid = |side| 1000 + cpu * 100 + (step + side) % 40;
        let waking = record(319, pid(0), &[task(pid(1)), 0u32.to_le_bytes().to_vec()]);
        for (delta, payload) in [(400, waking), (700, switch(pid(0), 1, 0)), (1900, switch(0, 0, pid(1)))] {
            at += delta;
            if page.len() + 4 + payload.len() > 4080 {
                finish(&mut page, start, &mut out);
                (start, last) = (at, at);
            }
            let word = u32::try_from(payload.len() / 4).expect("short")
                | u32::try_from(at - last).expect("short") << 5;
            page.extend(word.to_le_bytes());
            page.extend(payload);
            last = at;
        }
    }
    finish(&mut page, start, &mut out);
    out
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("below the directory")).expect("room");
        fs::write(path, content).expect("room");
    };
    write("formats/header_page", HEADER_PAGE.as_bytes());
    for (name, id, fields) in [("sched_switch", 316, SWITCH), ("sched_waking", 319, WAKING)] {
        let text = format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}");
        write(&format!("formats/sched/{name}/format"), text.as_bytes());
    }
    for cpu in 0..CPUS {
        write(&format!("cpu{cpu}.raw"), &pages(cpu));
    }
    directory
}

fn count(path: &Path) -> usize {
    let mut stream = TraceStream::open(path).expect("our own directory");
    let mut events = 0;
    while let Some(chunk) = stream.next_chunk() {
        events += chunk.events.len();
    }
    let health = stream.finish().expect("our own directory").health;
    assert!(health.is_clean(), "{health:?}");
    events
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn stream(bencher: divan::Bencher<'_, '_>) {
    let directory = directory();
    let events = count(directory.path());
    bencher.counter(ItemsCount::new(events)).bench(|| count(directory.path()));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn records(bencher: divan::Bencher<'_, '_>) {
    let directory = directory();
    let visit = || {
        let mut records = 0usize;
        ttwu_trace::walk_records(directory.path(), &mut |record| {
            black_box(record.payload);
            records += 1;
        })
        .expect("our own directory");
        records
    };
    let records = visit();
    bencher.counter(ItemsCount::new(records)).bench(visit);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn walk(bencher: divan::Bencher<'_, '_>) {
    let pages = pages(0);
    let layout = PageLayout::LITTLE_64;
    let visit = || {
        let mut entries = 0usize;
        for page in pages.chunks(layout.size()) {
            let head = PageHead::parse(page, &layout).expect("our own page");
            let mut cursor = PageCursor::new(&head, &layout);
            while let Step::Entry(entry) = cursor.next(page) {
                black_box(entry);
                entries += 1;
            }
        }
        entries
    };
    let entries = visit();
    bencher.counter(ItemsCount::new(entries)).bench(visit);
}
