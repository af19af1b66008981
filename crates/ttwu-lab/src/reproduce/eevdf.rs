//! EEVDF and its wake-up preemption (March and April 2023).

use super::{Bound, Claim, Experiment, Fitted, Measure, Quantity, Setup, Standing, Variant};

const DESKTOP: &[Variant] = &[
    Variant::policy("cfs", "linux-6.1"),
    Variant::policy("eevdf", "eevdf-2023-04"),
    Variant::policy("tweak", "eevdf-2023-04 +GENTLE_EEVDF"),
    Variant::policy("no-preempt", "eevdf-2023-04 -WAKEUP_PREEMPTION"),
];
const THREE: &[Variant] = &[DESKTOP[0], DESKTOP[1], DESKTOP[2]];
const HZ_1000: &[Variant] = &[
    Variant::policy("cfs", "linux-6.1 hz=1000"),
    Variant::policy("eevdf", "eevdf-2023-04 hz=1000"),
    Variant::policy("tweak", "eevdf-2023-04 +GENTLE_EEVDF hz=1000"),
];
const DUTY: &[Variant] = &[
    Variant::policy("cfs", "linux-6.1"),
    Variant::policy("eevdf", "eevdf-2023-04"),
    Variant::policy("v6.6", "linux-6.6"),
];
const PARITY: &[Variant] =
    &[Variant::policy("off", "linux-6.6 -RUN_TO_PARITY"), Variant::policy("on", "linux-6.6 +RUN_TO_PARITY")];

const LIMIT_NS: u64 = 60_000_000_000;

const fn setup(
    id: &'static str,
    title: &'static str,
    workload: &'static str,
    variants: &'static [Variant],
) -> Setup {
    Setup {
        id,
        title,
        machine: "i7-4790",
        costs: "desktop",
        workload,
        until_ns: LIMIT_NS,
        prepare: None,
        variants,
    }
}

const SETUPS: &[Setup] = &[
    setup(
        "desktop",
        "8 hogs beside a video in a browser, an autogroup a session, 250 Hz",
        "desktop:runtime=4",
        DESKTOP,
    ),
    setup("desktop-flat", "the same without autogroups", "desktop:runtime=4,groups=off", THREE),
    setup("desktop-1000hz", "the same with autogroups at 1000 Hz", "desktop:runtime=4", HZ_1000),
    setup("duty", "two tasks on one CPU, one always running, one half the time", "duty:runtime=10", DUTY),
    setup(
        "messaging",
        "perf bench sched messaging -g 20 -t",
        "messaging:group=20,thread,nr_loops=10",
        PARITY,
    ),
];

const GROUPS: &str = "the desktop's tasks are in autogroups, 250 Hz, CFS with its sleeper credit";

const fn of(quantity: Quantity, setup: &'static str, new: &'static str, base: &'static str) -> Measure {
    Measure::Ratio { quantity, new: (setup, new), base: (setup, base) }
}

const SWITCHES: Quantity = Quantity::Switches;

const CLAIMS: &[Claim] = &[
    Claim {
        id: "eevdf.67-33",
        text: "with lag placement a task that always runs gets two thirds beside one that runs half the time",
        published: "67/33",
        published_value: Some(0.667),
        standing: Standing::Robust,
        measure: Measure::Mean { quantity: Quantity::TaskShare("always"), of: ("duty", "eevdf") },
        without_condition: None,
        bound: Bound::Within(0.64, 0.70),
    },
    Claim {
        id: "eevdf.50-50",
        text: "under CFS about half",
        published: "50/50",
        published_value: Some(0.5),
        standing: Standing::Robust,
        measure: Measure::Mean { quantity: Quantity::TaskShare("always"), of: ("duty", "cfs") },
        without_condition: None,
        bound: Bound::Within(0.45, 0.58),
    },
    Claim {
        id: "eevdf.switches",
        text: "EEVDF switches 56 % more often than CFS",
        published: "2221889 -> 3471615 in five minutes",
        published_value: Some(1.5625),
        standing: Standing::Conditional(GROUPS),
        measure: of(SWITCHES, "desktop", "eevdf", "cfs"),
        without_condition: Some(of(SWITCHES, "desktop-flat", "eevdf", "cfs")),
        bound: Bound::Within(1.46, 1.66),
    },
    Claim {
        id: "eevdf.tweak",
        text: "with GENTLE_EEVDF 39 % more",
        published: "2221889 -> 3081183",
        published_value: Some(1.3868),
        standing: Standing::Conditional(GROUPS),
        measure: of(SWITCHES, "desktop", "tweak", "cfs"),
        without_condition: Some(of(SWITCHES, "desktop-flat", "tweak", "cfs")),
        bound: Bound::Within(1.29, 1.49),
    },
    Claim {
        id: "eevdf.order",
        text: "the tweak lies below plain EEVDF",
        published: "3471615 -> 3081183",
        published_value: Some(0.8875),
        standing: Standing::Conditional(GROUPS),
        measure: of(SWITCHES, "desktop", "tweak", "eevdf"),
        without_condition: Some(of(SWITCHES, "desktop-1000hz", "tweak", "eevdf")),
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "eevdf.wakeup-preemption",
        text: "the growth comes from wake-up preemption: without it the difference turns negative",
        published: "in words",
        published_value: None,
        standing: Standing::Conditional(GROUPS),
        measure: of(SWITCHES, "desktop", "no-preempt", "cfs"),
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "eevdf.preempt-wake",
        text: "wake-ups preempt more often under EEVDF",
        published: "in words",
        published_value: None,
        standing: Standing::Conditional(GROUPS),
        measure: of(Quantity::PreemptWake, "desktop", "eevdf", "cfs"),
        without_condition: None,
        bound: Bound::AtLeast(1.3),
    },
    Claim {
        id: "eevdf.hog-delay",
        text: "massive_intr waits less on the mean",
        published: "1.046 -> 0.745 ms",
        published_value: Some(0.712),
        standing: Standing::NotClaimed(
            "the recording's mean is over all waits, a wake-up's and a preemption's",
        ),
        measure: of(Quantity::TaskDelay("massive_intr"), "desktop", "eevdf", "cfs"),
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "eevdf.dav1d-delay",
        text: "dav1d-worker waits less",
        published: "0.881 -> 0.434 ms",
        published_value: Some(0.493),
        standing: Standing::NotClaimed("the decoder's own burstiness is not published"),
        measure: of(Quantity::TaskDelay("dav1d-worker"), "desktop", "eevdf", "cfs"),
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "eevdf.x-delay",
        text: "X waits longer",
        published: "0.071 -> 0.191 ms",
        published_value: Some(2.69),
        standing: Standing::NotClaimed("X's own work is not published"),
        measure: of(Quantity::TaskDelay("X"), "desktop", "eevdf", "cfs"),
        without_condition: None,
        bound: Bound::AtLeast(1.0),
    },
    Claim {
        id: "eevdf.parity",
        text: "RUN_TO_PARITY: messaging -g 20 -t switches 31 % less",
        published: "3723554 -> 2556535",
        published_value: Some(0.6866),
        standing: Standing::NotClaimed("the mail does not name the machine"),
        measure: of(SWITCHES, "messaging", "on", "off"),
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
];

/// The thread.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "eevdf",
    title: "EEVDF's wake-up preemption",
    thread: "Peter Zijlstra: sched: EEVDF using latency-nice, with Mike Galbraith's recordings, March-April 2023",
    setups: SETUPS,
    claims: CLAIMS,
    uncertain: ["switch_other_ns", "wake_base_ns", "refill_llc_ns_per_kib"],
    fitted: &[Fitted {
        what: "work and wake-ups of the pipeline's stages",
        on: "the numbers of switches by name in the CFS column",
    }],
};
