//! The cluster scheduling domain (December 2020 to v6.7): should the scheduler know that some cores of an LLC are nearer to
//! each other?

use ttwu_model::{CpuId, NodeId};
use ttwu_sim::{MemoryPlacement, Scenario};

use super::{Bound, Claim, Experiment, Measure, Quantity, Setup, Standing, Variant};

const RFC: &[Variant] = &[
    Variant::policy("without", "linux-5.9"),
    Variant::policy("domain", "linux-5.9 cluster=rfc_domain"),
    Variant::policy("with", "linux-5.9 cluster=rfc_v2"),
];
const TWO: &[Variant] = &[RFC[0], RFC[2]];
const V3: &[Variant] =
    &[Variant::policy("without", "linux-5.9"), Variant::policy("with", "linux-5.9 cluster=rfc_v3")];
const V6_7: &[Variant] = &[
    Variant::policy("without", "linux-6.6 cluster=domain"),
    Variant::policy("with", "linux-6.6 cluster=wakeup"),
];
const PLAIN: &[Variant] = &[Variant::policy("without", "linux-5.9")];

const LIMIT_NS: u64 = 60_000_000_000;

fn confine(scenario: &mut Scenario, cpus: impl Iterator<Item = u16>) {
    scenario.settings.allowed = Some(cpus.map(CpuId::new).collect());
}

/// `numactl -N 0`.
fn node_0(scenario: &mut Scenario) {
    confine(scenario, 0..24);
}

/// The v6.7 mails' nodes have 8 clusters.
fn node_0_of_128(scenario: &mut Scenario) {
    confine(scenario, 0..32);
}

fn packed(scenario: &mut Scenario) {
    confine(scenario, 0..4);
}

fn spread(scenario: &mut Scenario) {
    confine(scenario, (0..16).step_by(4));
}

/// `numactl -N 0,1`, each node with memory.
fn two_nodes(scenario: &mut Scenario) {
    confine(scenario, 0..48);
}

/// The same booted with `mem=4G`: all memory on node 0.
fn two_nodes_one_memory(scenario: &mut Scenario) {
    confine(scenario, 0..48);
    scenario.settings.memory = MemoryPlacement::Node(NodeId::new(0));
}

/// A tenth of a second or less of the benchmarks that print a rate.
const fn short(setup: Setup, until_ns: u64) -> Setup {
    Setup { until_ns, ..setup }
}

const fn setup(
    id: &'static str,
    title: &'static str,
    (machine, workload): (&'static str, &'static str),
    prepare: fn(&mut Scenario),
    variants: &'static [Variant],
) -> Setup {
    Setup {
        id,
        title,
        machine,
        costs: "kunpeng920",
        workload,
        until_ns: LIMIT_NS,
        prepare: Some(prepare),
        variants,
    }
}

const NODE: &str = "kunpeng920";
const WIDE: &str = "kunpeng920-128";

const SETUPS: &[Setup] = &[
    setup(
        "g1",
        "hackbench -p -T -g 1 on one node of Kunpeng 920",
        (NODE, "hackbench:pipe,threads,groups=1,loops=200"),
        node_0,
        RFC,
    ),
    setup("g2", "hackbench -p -T -g 2", (NODE, "hackbench:pipe,threads,groups=2,loops=100"), node_0, RFC),
    setup("g3", "hackbench -p -T -g 3", (NODE, "hackbench:pipe,threads,groups=3,loops=70"), node_0, RFC),
    setup("g4", "hackbench -p -T -g 4", (NODE, "hackbench:pipe,threads,groups=4,loops=50"), node_0, TWO),
    setup(
        "v3-g5",
        "hackbench -p -T -g 5, RFC v3",
        (NODE, "hackbench:pipe,threads,groups=5,loops=50"),
        node_0,
        V3,
    ),
    setup(
        "two-g4",
        "hackbench -p -T -g 4 on two nodes, memory on both",
        (NODE, "hackbench:pipe,threads,groups=4,loops=50"),
        two_nodes,
        TWO,
    ),
    setup(
        "two-g4-mem",
        "hackbench -p -T -g 4 on two nodes, all memory on node 0",
        (NODE, "hackbench:pipe,threads,groups=4,loops=50"),
        two_nodes_one_memory,
        TWO,
    ),
    setup(
        "packed",
        "hackbench -p -T -g 1 on CPUs 0-3, one cluster",
        (NODE, "hackbench:pipe,threads,groups=1,loops=100"),
        packed,
        PLAIN,
    ),
    setup(
        "spread",
        "hackbench -p -T -g 1 on CPUs 0,4,8,12",
        (NODE, "hackbench:pipe,threads,groups=1,loops=100"),
        spread,
        PLAIN,
    ),
    short(
        setup(
            "tbench-1",
            "tbench, 1 client, node 0",
            (WIDE, "tbench:clients=1,timelimit=1"),
            node_0_of_128,
            V6_7,
        ),
        100_000_000,
    ),
    short(
        setup(
            "tbench-4",
            "tbench, 4 clients, node 0",
            (WIDE, "tbench:clients=4,timelimit=1"),
            node_0_of_128,
            V6_7,
        ),
        50_000_000,
    ),
    short(
        setup(
            "tbench-32",
            "tbench, 32 clients, node 0",
            (WIDE, "tbench:clients=32,timelimit=1"),
            node_0_of_128,
            V6_7,
        ),
        20_000_000,
    ),
    short(
        setup(
            "netperf-1",
            "netperf TCP_RR, 1 instance, node 0",
            (WIDE, "netperf:test=TCP_RR,clients=1,testlen=1"),
            node_0_of_128,
            V6_7,
        ),
        100_000_000,
    ),
];

const TIME: Quantity = Quantity::MeterMean("time");

const fn with_over_without(quantity: Quantity, setup: &'static str) -> Measure {
    Measure::Ratio { quantity, new: (setup, "with"), base: (setup, "without") }
}

/// What `select_idle_cluster` does beside the domain.
const fn with_over_domain(setup: &'static str) -> Measure {
    Measure::Ratio { quantity: TIME, new: (setup, "with"), base: (setup, "domain") }
}

const METASTABLE: &str = "hackbench's runs here are metastable: placements alone spread them by 3 to 30 %";
const START: &str = "an idle pair stays where it began, and the mails do not say where that was";
const SEEDS: &str = "the mean of many short runs; single runs go either way";

const fn row(
    id: &'static str,
    text: &'static str,
    published: &'static str,
    value: f64,
    standing: Standing,
    measure: Measure,
) -> Claim {
    let bound = if value > 1.0 { Bound::AtLeast(1.0) } else { Bound::AtMost(1.0) };
    Claim {
        id,
        text,
        published,
        published_value: Some(value),
        standing,
        measure,
        without_condition: None,
        bound,
    }
}

const CLAIMS: &[Claim] = &[
    row(
        "cluster.g1",
        "one group: 1.1 % slower with the cluster domain",
        "7.5853 -> 7.6697 s",
        1.0111,
        Standing::NotClaimed(METASTABLE),
        with_over_without(TIME, "g1"),
    ),
    row(
        "cluster.g2",
        "two groups: 4.1 % faster",
        "10.1006 -> 9.6878 s",
        0.9591,
        Standing::Conditional(SEEDS),
        with_over_without(TIME, "g2"),
    ),
    row(
        "cluster.g3",
        "three groups: 5.5 % faster",
        "15.7727 -> 14.9005 s",
        0.9447,
        Standing::Conditional(SEEDS),
        with_over_without(TIME, "g3"),
    ),
    row(
        "cluster.g4",
        "four groups: 1.2 % faster",
        "20.8187 -> 20.5647 s",
        0.9878,
        Standing::NotClaimed(METASTABLE),
        with_over_without(TIME, "g4"),
    ),
    row(
        "cluster.idle-g2",
        "two groups: select_idle_cluster adds 2.2 % to the domain",
        "9.9047 -> 9.6878 s",
        0.9781,
        Standing::NotClaimed(METASTABLE),
        with_over_domain("g2"),
    ),
    row(
        "cluster.idle-g3",
        "three groups: 3 %",
        "15.3591 -> 14.9005 s",
        0.9701,
        Standing::NotClaimed(METASTABLE),
        with_over_domain("g3"),
    ),
    row(
        "cluster.v3-g5",
        "RFC v3, five groups: 9 % faster",
        "5.3246 -> 4.8339 s",
        0.9078,
        Standing::Conditional(SEEDS),
        with_over_without(TIME, "v3-g5"),
    ),
    Claim {
        id: "cluster.two-nodes",
        text: "two nodes, four groups: no large gain where both have memory; the mail's 41 % came from mem=4G",
        published: "17.7647 -> 10.4927 s, withdrawn on 7 December 2020",
        published_value: None,
        standing: Standing::Robust,
        measure: with_over_without(TIME, "two-g4"),
        without_condition: None,
        bound: Bound::AtLeast(0.80),
    },
    row(
        "cluster.two-nodes-mem",
        "two nodes, four groups, all memory on node 0",
        "17.7647 -> 10.4927 s",
        0.5907,
        Standing::NotClaimed("the model has no memory bandwidth, which that figure rests on"),
        with_over_without(TIME, "two-g4-mem"),
    ),
    Claim {
        id: "cluster.packed",
        text: "hackbench is slower over four clusters than within one",
        published: "4.285 s on CPUs 0-3, 5.524 s on 0,4,8,12",
        published_value: Some(1.289),
        standing: Standing::Robust,
        measure: Measure::Ratio { quantity: TIME, new: ("spread", "without"), base: ("packed", "without") },
        without_condition: None,
        bound: Bound::AtLeast(1.02),
    },
    row(
        "cluster.tbench-1",
        "v6.7, tbench with one client: 16 % more",
        "325.97 -> 378.91 MB/s",
        1.1624,
        Standing::NotClaimed(START),
        with_over_without(Quantity::MeterRate("bytes"), "tbench-1"),
    ),
    row(
        "cluster.tbench-4",
        "v6.7, tbench with four clients: 14 % more",
        "+14.45 %",
        1.1445,
        Standing::NotClaimed(START),
        with_over_without(Quantity::MeterRate("bytes"), "tbench-4"),
    ),
    Claim {
        id: "cluster.tbench-32",
        text: "v6.7, tbench with 32 clients on 32 CPUs: little",
        published: "+1.91 %",
        published_value: Some(1.0191),
        standing: Standing::Conditional("cross-cluster lines as priced"),
        measure: with_over_without(Quantity::MeterRate("bytes"), "tbench-32"),
        without_condition: None,
        bound: Bound::Within(0.95, 1.08),
    },
    row(
        "cluster.netperf-1",
        "v6.7, netperf TCP_RR with one instance: 19 % more",
        "77303 -> 92172 a second",
        1.1924,
        Standing::NotClaimed(START),
        with_over_without(Quantity::SampleRate("transaction"), "netperf-1"),
    ),
];

/// The thread.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "cluster",
    title: "the cluster scheduling domain",
    thread: "Barry Song: [RFC PATCH v2 2/2] scheduler: add scheduler level for clusters, December 2020; merged in v5.16 and v6.7",
    setups: SETUPS,
    claims: CLAIMS,
    uncertain: ["lines_cluster_ns", "refill_llc_ns_per_kib", "enqueue_remote_ns"],
    fitted: &[],
};
