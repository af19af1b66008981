//! XFS, dbench and per-CPU kworkers (January and February 2020): should a task stay on the CPU of the kworker that wakes it?

use ttwu_sim::{Frequency, Scenario};

use super::{Bound, Claim, Experiment, Fitted, Measure, Quantity, Setup, Standing, Variant};

const VARIANTS: &[Variant] = &[
    Variant::policy("tip", "linux-5.5"),
    Variant::policy("kworkerstack", "linux-5.5 kthread_stacking=any_context"),
    // The CIL push on the client's CPU again.
    Variant { id: "revert", policy: "linux-5.5", options: ",cil=bound" },
];
const TWO: &[Variant] = &[VARIANTS[0], VARIANTS[1]];
const CONTEXT: &[Variant] = &[
    VARIANTS[0],
    VARIANTS[1],
    Variant::policy("in-task", "linux-5.5 kthread_stacking=in_task"),
    VARIANTS[2],
];

/// The mail's trace shows 42 us from the wake-up of the CIL worker to its start where the driver's table has 133 us for C6.
fn effective_idle(scenario: &mut Scenario) {
    scenario.costs.set("idle_c3_exit_ns", 40_000).expect("a known cost");
}

/// Cores slow down to 1.2 of 3.1 GHz where little runs.
fn with_frequency(scenario: &mut Scenario) {
    effective_idle(scenario);
    scenario.settings.frequency = Some(Frequency { min_permille: 390, sample_ns: 10_000_000 });
}

/// A pass of the load file takes a client 30 to 500 ms by how many there are.
const LIMIT_NS: u64 = 1_100_000_000;
const HALF_NS: u64 = 600_000_000;

const fn clients(
    id: &'static str,
    title: &'static str,
    workload: &'static str,
    variants: &'static [Variant],
) -> Setup {
    Setup {
        id,
        title,
        machine: "xfs-48cpu-numa",
        costs: "skylake-server",
        workload,
        until_ns: LIMIT_NS,
        prepare: Some(with_frequency),
        variants,
    }
}

const fn brief(setup: Setup) -> Setup {
    Setup { until_ns: HALF_NS, ..setup }
}

const SETUPS: &[Setup] = &[
    clients("c1", "dbench, 1 client, frequency follows load", "dbench:clients=1,timelimit=1", CONTEXT),
    Setup {
        id: "c1-fixed",
        title: "dbench, 1 client, full speed always",
        machine: "xfs-48cpu-numa",
        costs: "skylake-server",
        workload: "dbench:clients=1,timelimit=1",
        until_ns: LIMIT_NS,
        prepare: Some(effective_idle),
        variants: VARIANTS,
    },
    clients("c2", "dbench, 2 clients", "dbench:clients=2,timelimit=1", VARIANTS),
    clients("c4", "dbench, 4 clients", "dbench:clients=4,timelimit=1", VARIANTS),
    brief(clients("c8", "dbench, 8 clients", "dbench:clients=8,timelimit=1", VARIANTS)),
    brief(clients("c16", "dbench, 16 clients", "dbench:clients=16,timelimit=1", TWO)),
    brief(clients("c32", "dbench, 32 clients", "dbench:clients=32,timelimit=1", TWO)),
    clients("c64", "dbench, 64 clients", "dbench:clients=64,timelimit=1", TWO),
    Setup {
        id: "uma-1",
        title: "dbench, 1 client, 8 CPUs of one LLC",
        machine: "uma-8",
        costs: "desktop",
        workload: "dbench:clients=1,timelimit=1",
        until_ns: LIMIT_NS,
        prepare: Some(with_frequency),
        variants: TWO,
    },
];

const PASS: Quantity = Quantity::MetersMean("pass ");

const fn of(quantity: Quantity, setup: &'static str, new: &'static str, base: &'static str) -> Measure {
    Measure::Ratio { quantity, new: (setup, new), base: (setup, base) }
}

const FREQUENCY: &str = "the frequency of cores follows their load";

const fn gain(
    id: &'static str,
    text: &'static str,
    published: &'static str,
    value: f64,
    setup: &'static str,
    bound: Bound,
) -> Claim {
    Claim {
        id,
        text,
        published,
        published_value: Some(value),
        standing: Standing::Conditional(FREQUENCY),
        measure: of(PASS, setup, "tip", "kworkerstack"),
        without_condition: None,
        bound,
    }
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "xfs.c1",
        text: "1 client: tip takes half as long again as with the patch, or longer",
        published: "58.69 against 30.21 ms",
        published_value: Some(1.943),
        standing: Standing::Conditional(FREQUENCY),
        measure: of(PASS, "c1", "tip", "kworkerstack"),
        without_condition: Some(of(PASS, "c1-fixed", "tip", "kworkerstack")),
        bound: Bound::AtLeast(1.5),
    },
    Claim {
        id: "xfs.order-revert",
        text: "1 client: the revert of 8ab39f11d974 is better than tip",
        published: "47.48 against 58.69 ms",
        published_value: Some(0.809),
        standing: Standing::Robust,
        measure: of(PASS, "c1", "revert", "tip"),
        without_condition: None,
        bound: Bound::AtMost(0.97),
    },
    Claim {
        id: "xfs.order-patch",
        text: "1 client: the patch is better than the revert",
        published: "30.21 against 47.48 ms",
        published_value: Some(0.636),
        standing: Standing::Robust,
        measure: of(PASS, "c1", "kworkerstack", "revert"),
        without_condition: None,
        bound: Bound::AtMost(0.97),
    },
    Claim {
        id: "xfs.in-task",
        text: "1 client: v5.17's restriction to task context keeps the gain",
        published: "8b4e74ccb582 restricts the rule without new figures",
        published_value: None,
        standing: Standing::Robust,
        measure: of(PASS, "c1", "in-task", "kworkerstack"),
        without_condition: None,
        bound: Bound::Within(0.95, 1.05),
    },
    Claim {
        id: "xfs.migrations",
        text: "1 client: the patch divides migrations by 40 and more",
        published: "556259 -> 11736 (1 and 2 clients)",
        published_value: Some(0.0211),
        standing: Standing::Conditional(FREQUENCY),
        measure: of(Quantity::Migrations, "c1", "kworkerstack", "tip"),
        without_condition: Some(of(Quantity::Migrations, "c1-fixed", "kworkerstack", "tip")),
        bound: Bound::AtMost(0.025),
    },
    gain("xfs.c2", "2 clients", "60.90 against 35.29 ms", 1.726, "c2", Bound::AtLeast(1.3)),
    gain("xfs.c4", "4 clients", "66.77 against 46.55 ms", 1.434, "c4", Bound::AtLeast(1.2)),
    gain("xfs.c8", "8 clients", "81.41 against 68.46 ms", 1.189, "c8", Bound::AtLeast(1.03)),
    gain(
        "xfs.c16",
        "16 clients: little is left",
        "113.29 against 107.79 ms",
        1.051,
        "c16",
        Bound::Within(0.97, 1.15),
    ),
    Claim {
        id: "xfs.c32",
        text: "32 clients: equal within 2 %",
        published: "199.10 against 198.22 ms",
        published_value: Some(1.0044),
        standing: Standing::Robust,
        measure: of(PASS, "c32", "tip", "kworkerstack"),
        without_condition: None,
        bound: Bound::Within(0.98, 1.02),
    },
    Claim {
        id: "xfs.c64",
        text: "64 clients: equal within 2 %",
        published: "478.99 against 477.06 ms",
        published_value: Some(1.0040),
        standing: Standing::Robust,
        measure: of(PASS, "c64", "tip", "kworkerstack"),
        without_condition: None,
        bound: Bound::Within(0.98, 1.02),
    },
    Claim {
        id: "xfs.revert-c8",
        text: "8 clients: the patch is better than the revert",
        published: "68.46 against 77.25 ms",
        published_value: Some(0.886),
        standing: Standing::Conditional(FREQUENCY),
        measure: of(PASS, "c8", "kworkerstack", "revert"),
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "xfs.uma",
        text: "8 CPUs of one LLC, 1 client",
        published: "22.63 against 20.54 ms",
        published_value: Some(1.102),
        standing: Standing::NotClaimed("frequency overpredicts that machine"),
        measure: of(PASS, "uma-1", "tip", "kworkerstack"),
        without_condition: None,
        bound: Bound::AtLeast(1.0),
    },
    Claim {
        id: "xfs.baseline",
        text: "1 client, tip: a pass of the load file, ns",
        published: "58.69 ms",
        published_value: Some(58_690_000.0),
        standing: Standing::NotClaimed("work and device times were chosen with it in view"),
        measure: Measure::Mean { quantity: PASS, of: ("c1", "tip") },
        without_condition: None,
        bound: Bound::AtLeast(0.0),
    },
];

/// The thread.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "xfs",
    title: "XFS, dbench and per-CPU kworkers",
    thread: "Mel Gorman: sched, fair: Allow a per-cpu kthread waking a task to stack on the same CPU, January 2020",
    setups: SETUPS,
    claims: CLAIMS,
    uncertain: ["idle_c3_exit_ns", "refill_llc_ns_per_kib", "switch_other_ns"],
    fitted: &[
        Fitted {
            what: "idle_c3_exit_ns = 40 us (driver: 133 us)",
            on: "the start of the CIL worker in the mail's trace of tip",
        },
        Fitted {
            what: "a client's work of 250 to 370 us before each fsync; device times of 85, 55 and 30 us",
            on: "tip, 1 and 32 clients",
        },
    ],
};
