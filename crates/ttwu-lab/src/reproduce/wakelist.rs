//! The wake list within the LLC (May and June 2022): should a wake-up of an idle CPU in the same cache be queued on its list
//! rather than activated by the waker?

use ttwu_sim::{Scenario, Switch};

use super::{Bound, Claim, Experiment, Measure, Quantity, Setup, Standing, Variant};

const VARIANTS: &[Variant] = &[
    Variant::policy("without", "linux-5.19"),
    Variant::policy("with", "linux-5.19 wake_list=rfc"),
    Variant::policy("merged", "linux-5.19 wake_list=6.0"),
];
const TWO: &[Variant] = &[VARIANTS[0], VARIANTS[1]];

const CUT_SHORT_NS: u64 = 60_000_000_000;

/// Workers spin for 30 ms and wake within a millisecond of each other, so CPUs sleep long; the published latencies leave no room
/// for a state deeper than C1.
const fn only_c1(scenario: &mut Scenario) {
    scenario.settings.idle.deepest = Some(1);
}

/// All threads on one node. Forks spread 19 tasks over both, since a node of 52 threads takes 13 before the balancer minds; on a
/// machine the kernel's NUMA balancing, which is not modelled, brings threads of one memory together again.
fn one_node(scenario: &mut Scenario) {
    only_c1(scenario);
    scenario.settings.allowed = scenario.topology.nodes().first().map(|node| node.cpus.clone());
}

/// The same, with all idle states.
fn one_node_deep(scenario: &mut Scenario) {
    one_node(scenario);
    scenario.settings.idle.deepest = None;
}

const fn no_wait_queue_lock(scenario: &mut Scenario) {
    scenario.settings.wait_queue_lock = Switch::Off;
    only_c1(scenario);
}

/// arm64's WFI is its only state.
const fn shallow_arm(scenario: &mut Scenario) {
    only_c1(scenario);
}

const SCHBENCH: &str = "schbench-a:message-threads=2,threads=8,runtime=8";
const HACKBENCH: &str = "hackbench:groups=1,loops=300";

const SETUPS: &[Setup] = &[
    Setup {
        id: "schbench-8269cy",
        title: "schbench -m 2 -t 8 on a node of Xeon 8269CY, idle states down to C1",
        machine: "xeon-8269cy",
        costs: "skylake-server",
        workload: SCHBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(one_node),
        variants: VARIANTS,
    },
    Setup {
        id: "schbench-8269cy-spread",
        title: "the same on both nodes, where the forks put it",
        machine: "xeon-8269cy",
        costs: "skylake-server",
        workload: SCHBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(only_c1),
        variants: TWO,
    },
    Setup {
        id: "schbench-8269cy-c6",
        title: "on one node with C6 allowed",
        machine: "xeon-8269cy",
        costs: "skylake-server",
        workload: SCHBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(one_node_deep),
        variants: TWO,
    },
    Setup {
        id: "schbench-altra",
        title: "schbench -m 2 -t 8 on Ampere Altra whose CPUs have LLC ids of their own",
        machine: "ampere-altra",
        costs: "altra",
        workload: SCHBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(shallow_arm),
        variants: TWO,
    },
    Setup {
        id: "schbench-altra-l3",
        title: "the same with the system-level cache known to the kernel",
        machine: "ampere-altra-l3",
        costs: "altra",
        workload: SCHBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(shallow_arm),
        variants: TWO,
    },
    Setup {
        id: "schbench-kunpeng",
        title: "schbench -m 2 -t 8 on Kunpeng 920",
        machine: "kunpeng920",
        costs: "kunpeng920",
        workload: SCHBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(shallow_arm),
        variants: TWO,
    },
    Setup {
        id: "pipe-8269cy",
        title: "unixbench's pipe-based context switching, 104 copies on 104 CPUs",
        machine: "xeon-8269cy",
        costs: "skylake-server",
        workload: "context1:copies=104,seconds=1",
        until_ns: 10_000_000,
        prepare: Some(only_c1),
        variants: TWO,
    },
    Setup {
        id: "pipe-8269cy-40",
        title: "the same, 40 copies: a CPU for every task",
        machine: "xeon-8269cy",
        costs: "skylake-server",
        workload: "context1:copies=40,seconds=1",
        until_ns: 10_000_000,
        prepare: Some(only_c1),
        variants: TWO,
    },
    Setup {
        id: "hackbench-8269cy",
        title: "hackbench -g 1 on 2 x Xeon 8269CY, the wait-queue lock held across wake-ups",
        machine: "xeon-8269cy",
        costs: "skylake-server",
        workload: HACKBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(only_c1),
        variants: TWO,
    },
    Setup {
        id: "hackbench-8269cy-nolock",
        title: "the same without that lock",
        machine: "xeon-8269cy",
        costs: "skylake-server",
        workload: HACKBENCH,
        until_ns: CUT_SHORT_NS,
        prepare: Some(no_wait_queue_lock),
        variants: TWO,
    },
];

const P50: Quantity = Quantity::MeterPercentile("wakeup", 500);
const P90: Quantity = Quantity::MeterPercentile("wakeup", 900);
const P99: Quantity = Quantity::MeterPercentile("wakeup", 990);

const fn with_over_without(quantity: Quantity, setup: &'static str) -> Measure {
    Measure::Ratio { quantity, new: (setup, "with"), base: (setup, "without") }
}

const C1: &str = "idle states no deeper than C1";

const CLAIMS: &[Claim] = &[
    Claim {
        id: "wakelist.p50",
        text: "schbench's median falls by a quarter to two fifths on the 8269CY",
        published: "10 -> 6 us (RFC v1), 8 -> 6 us (v2)",
        published_value: Some(0.60),
        standing: Standing::Robust,
        measure: with_over_without(P50, "schbench-8269cy"),
        without_condition: Some(with_over_without(P50, "schbench-8269cy-c6")),
        bound: Bound::Within(0.55, 0.80),
    },
    Claim {
        id: "wakelist.p90",
        text: "so does its 90th percentile",
        published: "16 -> 9 us, 11 -> 8 us",
        published_value: Some(0.56),
        standing: Standing::Robust,
        measure: with_over_without(P90, "schbench-8269cy"),
        without_condition: None,
        bound: Bound::Within(0.50, 0.80),
    },
    Claim {
        id: "wakelist.p99",
        text: "and its 99th",
        published: "17 -> 10 us, 15 -> 10 us",
        published_value: Some(0.59),
        standing: Standing::Robust,
        measure: with_over_without(P99, "schbench-8269cy"),
        without_condition: None,
        bound: Bound::Within(0.50, 0.85),
    },
    Claim {
        id: "wakelist.merged",
        text: "the merged rule (nothing queued there) does what the RFC's (idle there) does",
        published: "v4 replaced the test without new figures",
        published_value: None,
        standing: Standing::Robust,
        measure: Measure::Ratio {
            quantity: P50,
            new: ("schbench-8269cy", "merged"),
            base: ("schbench-8269cy", "with"),
        },
        without_condition: None,
        bound: Bound::Within(0.95, 1.05),
    },
    Claim {
        id: "wakelist.ipi",
        text: "no interrupt more is sent: polling idle CPUs need none, others need one anyway",
        published: "argued in the thread",
        published_value: None,
        standing: Standing::Robust,
        measure: with_over_without(Quantity::IpisPerWakeup, "schbench-8269cy"),
        without_condition: None,
        bound: Bound::AtMost(1.02),
    },
    Claim {
        id: "wakelist.altra",
        text: "nothing changes where every CPU has an LLC id of its own",
        published: "the author's own Altra, found afterwards: the rule never applies there",
        published_value: Some(1.0),
        standing: Standing::Robust,
        measure: with_over_without(P50, "schbench-altra"),
        without_condition: None,
        bound: Bound::Within(0.99, 1.01),
    },
    Claim {
        id: "wakelist.altra-l3",
        text: "with the cache known to the kernel it would gain",
        published: "14 -> 10 us in the mail, on a machine where the rule had no effect",
        published_value: Some(0.71),
        standing: Standing::NotClaimed(
            "the mail's figures cannot come from the rule: that Altra's LLC ids switch it off",
        ),
        measure: with_over_without(P50, "schbench-altra-l3"),
        without_condition: None,
        bound: Bound::Within(0.55, 0.95),
    },
    Claim {
        id: "wakelist.kunpeng",
        text: "Kunpeng 920: a smaller improvement, no regression",
        published: "in words",
        published_value: None,
        standing: Standing::Robust,
        measure: with_over_without(P50, "schbench-kunpeng"),
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "wakelist.pipe",
        text: "unixbench's pipe switching, 104 parallel, gains a tenth",
        published: "3192192.9 -> 3571238.1 (+11.87 %)",
        published_value: Some(1.1187),
        standing: Standing::Robust,
        measure: with_over_without(Quantity::MetersRate("count"), "pipe-8269cy"),
        without_condition: None,
        bound: Bound::Within(1.05, 1.20),
    },
    Claim {
        id: "wakelist.pipe-40",
        text: "with a CPU for every task, pipe switching gains too",
        published: "not measured alone",
        published_value: None,
        standing: Standing::Robust,
        measure: with_over_without(Quantity::MetersRate("count"), "pipe-8269cy-40"),
        without_condition: None,
        bound: Bound::Within(1.03, 1.25),
    },
    Claim {
        id: "wakelist.spread",
        text: "schbench's median where its threads stay spread over both nodes",
        published: "10 -> 6 us; where the threads ran is not said",
        published_value: Some(0.60),
        standing: Standing::NotClaimed(
            "a quarter of the wake-ups cross nodes, and those use the list in any case",
        ),
        measure: with_over_without(P50, "schbench-8269cy-spread"),
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "wakelist.hackbench",
        text: "hackbench with one group gains three tenths",
        published: "3.246 -> 2.251 s (8269CY), 4.217 -> 2.916 s (Altra)",
        published_value: Some(0.6935),
        standing: Standing::Conditional("the wait-queue lock is held across the wake-up"),
        measure: with_over_without(Quantity::MeterMean("time"), "hackbench-8269cy"),
        without_condition: Some(with_over_without(Quantity::MeterMean("time"), "hackbench-8269cy-nolock")),
        bound: Bound::Within(0.55, 0.80),
    },
    Claim {
        id: "wakelist.c6",
        text: "a deep idle state hides the effect",
        published: "not in the thread: found with a model (140 -> 138 us)",
        published_value: None,
        standing: Standing::NotClaimed(C1),
        measure: with_over_without(P50, "schbench-8269cy-c6"),
        without_condition: None,
        bound: Bound::Within(0.9, 1.1),
    },
];

/// The thread.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "wakelist",
    title: "queueing a wake-up on the wake list within the LLC",
    thread: "Tianchen Ding: sched: Queue task on wakelist in the same llc if the wakee cpu is idle, May-June 2022",
    setups: SETUPS,
    claims: CLAIMS,
    uncertain: ["enqueue_remote_ns", "list_push_ns", "idle_c1_exit_ns"],
    fitted: &[],
};
