//! SchedViz' own test archives, whole and damaged.

use super::*;
use crate::{TraceStream, unwrap::unwrap};
use std::collections::BTreeMap;
use ttwu_model::{Trace, TraceHealth};
use ttwu_testing::damage;

fn read(name: &str) -> Option<Trace> {
    let path = ttwu_testing::shared(&format!("traces/public/google+schedviz/{name}"))?;
    Some(crate::read(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn check(name: &str, expect: &[(&str, u64)]) {
    let Some(trace) = read(name) else { return };
    assert_eq!(trace.event_counts(), BTreeMap::from_iter(expect.iter().copied()), "{name}");
}

#[test]
fn archives_have_the_events_that_the_manifest_counts() {
    let counts = [("sched_switch", 15_056), ("sched_wakeup", 11_134), ("sched_wakeup_new", 2732)];
    check("test.tar.gz", &counts);
    check("test_no_metadata.tar.gz", &counts);
    check("ebpf_trace.tar.gz", &[("sched_switch", 975), ("sched_wakeup", 16)]);
}

#[test]
fn the_topology_is_read_as_far_as_the_archive_has_it() {
    let check = |name: &str, cpus: &str, shape: &str| {
        let Some(trace) = read(name) else { return };
        assert_eq!(
            trace.meta().cpus_online.as_ref().map(ToString::to_string).as_deref(),
            Some(cpus),
            "{name}"
        );
        let text = trace.meta().topology_text.as_deref().expect(name);
        let topology = ttwu_model::Topology::parse(text).expect(text);
        assert_eq!(topology.to_string(), text, "{name}");
        assert!(text.contains(shape), "{name}: {text}");
        assert!(trace.health().is_clean(), "{name}: {:?}", trace.health());
    };
    check("test.tar.gz", "0", "1 socket x 1 core");
    check("ebpf_trace.tar.gz", "0-3", "1 socket x 2 cores x 2 threads");
}

fn outcome(bytes: Vec<u8>) -> String {
    match TraceStream::from_input(Input::from_bytes(bytes, "test")).and_then(TraceStream::collect) {
        Ok(trace) => format!("{} events", trace.events().len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn damaged_archives_never_panic() {
    for name in ["test.tar.gz", "ebpf_trace.tar.gz"] {
        let path = format!("traces/public/google+schedviz/{name}");
        let Some(path) = ttwu_testing::shared(&path) else { return };
        let input = Input::open(&path).expect("readable");
        let (input, _) = unwrap(input, &mut TraceHealth::default()).expect("sound");
        let whole = input.bytes(0, 200 << 10).expect("readable");
        assert!(outcome(whole.clone()).ends_with(" events"));
        for seed in 0..200 {
            println!("{name} seed {seed}");
            outcome(damage(&whole, seed));
        }
    }
}

#[test]
fn an_archive_without_pages_says_so() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(2);
    header.set_mode(0o644);
    builder.append_data(&mut header, "x/formats/header_page", &b"hi"[..]).expect("in memory");
    let bytes = builder.into_inner().expect("in memory");
    let text = outcome(bytes);
    assert!(text.starts_with("SchedViz archive: test has no per-CPU ring-buffer pages"), "{text}");
}
