//! Names, options, ranges.

use super::{MachineInfo, NameError, expand, workloads};
use crate::{Bench, Transport, Workload};

const EIGHT: MachineInfo = MachineInfo { cpus: 8 };

fn parse(text: &str) -> Workload {
    Workload::parse(text, &EIGHT).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> (usize, String) {
    let NameError { offset, message } = Workload::parse(text, &EIGHT).expect_err(text);
    (offset, message)
}

#[test]
fn letters_and_long_options_are_the_same_workload() {
    let long = parse("hackbench:groups=1,threads,pipe,loops=1000");
    let short = parse("hackbench: l=1_000, p,T , g=1");
    assert_eq!(long, short);
    assert_eq!(long.name, "hackbench:groups=1,loops=1000,threads,pipe");
    let Bench::Hackbench(bench) = &long.bench else { panic!("{:?}", long.bench) };
    assert_eq!((bench.groups, bench.fds, bench.datasize, bench.transport), (1, 20, 100, Transport::Pipe));
}

#[test]
fn every_canonical_name_reads_back() {
    for doc in workloads() {
        let workload = parse(doc.name);
        assert_eq!(workload.name, doc.name);
        assert_eq!(parse(&workload.name), workload);
    }
    for text in [
        "pipe:loop=10,threaded,cpus=0+2-3,nice=-5,autogroup",
        "schbench:cache-footprint=1KiB,sleep-usec=50us",
    ] {
        let workload = parse(text);
        assert_eq!(parse(&workload.name), workload, "{}", workload.name);
    }
}

#[test]
fn unknown_names_suggest_the_nearest() {
    assert_eq!(
        refusal("hackbnech"),
        (0, "unknown workload `hackbnech`; did you mean `hackbench`?".to_owned())
    );
    assert_eq!(
        refusal("hackbench -g 2"),
        (0, "unknown workload `hackbench -g 2`; options are written hackbench:NAME=VALUE,…".to_owned())
    );
    assert_eq!(
        refusal("hackbench:groups=1,loop=3"),
        (19, "hackbench has no option `loop`; did you mean `loops`?".to_owned())
    );
    assert_eq!(refusal("hackbench:groups=0"), (10, "groups: expected 1 to 10000, found 0".to_owned()));
    assert_eq!(
        refusal("hackbench:fifo"),
        (10, "fifo: not modelled: SCHED_FIFO for the main task; only the fair class is".to_owned())
    );
    assert_eq!(refusal("hackbench:g=1,groups=2"), (14, "groups: given twice".to_owned()));
    assert_eq!(
        refusal("pipe & hackbench:pipe,inet"),
        (7, "hackbench: expected one of `pipe` and `inet`".to_owned())
    );
    assert_eq!(refusal("pipe:cpus=7-8"), (0, "cpus: the machine has the CPUs 0-7".to_owned()));
}

#[test]
fn joined_workloads_keep_the_first_result_and_distinct_names() {
    let both = parse("pipe:loop=5 & hackbench:groups=1");
    assert_eq!(both.name, "pipe:loop=5 & hackbench:groups=1");
    assert!(matches!(both.bench, Bench::PerfPipe(_)));
    assert_eq!(both.until, parse("pipe:loop=5").until);
    assert_eq!(both.tasks.len(), 2 + 41);
    let names: Vec<&str> = both.meters.iter().map(|meter| meter.name.as_str()).collect();
    assert_eq!(names, ["time", "hackbench.1.time"]);
}

#[test]
fn ranges_expand_with_the_last_turning_fastest() {
    let expanded = expand("hackbench:groups=1..2,pipe,loops={10,1000}").expect("valid");
    assert_eq!(
        expanded,
        [
            "hackbench:groups=1,pipe,loops=10",
            "hackbench:groups=1,pipe,loops=1000",
            "hackbench:groups=2,pipe,loops=10",
            "hackbench:groups=2,pipe,loops=1000",
        ]
    );
    assert_eq!(expand("a:x=1..9*2").expect("valid"), ["a:x=1", "a:x=2", "a:x=4", "a:x=8"]);
    assert_eq!(expand("a:x=1..9+4,y=uniform(1us..2us)").expect("valid").len(), 3);
    assert_eq!(expand("a:x=1..2 & b:y=1..2").expect("valid")[3], "a:x=2 & b:y=2");
    assert_eq!(
        expand("a:x=4..1").expect_err("falls").to_string(),
        "column 3: x: the range `4..1` is empty or never ends"
    );
    assert!(expand("a:x=0..99999999").is_err() && expand("a:x=0..8*2").is_err());
    assert_eq!(expand("pipe").expect("plain"), ["pipe"]);
}
