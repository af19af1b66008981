//! The DMA-engine regression (January 2022): which CPU should a task run on that an interrupt wakes?

use ttwu_sim::{Noise, Scenario, Switch};

use super::{Bound, CellId, Claim, Experiment, Fitted, Measure, Quantity, Setup, Standing, Variant};

const VANILLA: Variant = Variant::policy("vanilla", "linux-5.15");
const DIRTY: Variant = Variant::policy("dirty", "linux-5.15 wake_affine_idle=dirty");
const HILLF1: Variant = Variant::policy("hillf1", "linux-5.15 wake_affine_idle=hillf1");
const HILLF2: Variant = Variant::policy("hillf2", "linux-5.15 wake_affine_idle=hillf2");
const TWO: &[Variant] = &[VANILLA, DIRTY];
const FOUR: &[Variant] = &[VANILLA, DIRTY, HILLF1, HILLF2];

/// Short pinned tasks, without which a previous CPU would never be found busy: 20 us of every 20 to 100 ms.
fn background(scenario: &mut Scenario) {
    scenario.settings.noise =
        Some(Noise { run_ns: 20_000, sleep_ns_min: 20_000_000, sleep_ns_max: 100_000_000 });
}

/// Vanilla's 42 to 49 thousand operations a second leave no room for the second idle state's 400 us.
fn epyc(scenario: &mut Scenario) {
    background(scenario);
    scenario.settings.idle.deepest = Some(1);
}

/// A wake-up in another CCX moves no lines but the list's.
fn epyc_no_lines(scenario: &mut Scenario) {
    epyc(scenario);
    scenario.costs.set("lines_llc_ns", 0).expect("a known cost");
}

/// Idle CPUs do not watch their flag: every wake-up is an interrupt.
fn epyc_interrupts(scenario: &mut Scenario) {
    epyc(scenario);
    scenario.settings.idle.polling = ttwu_sim::Polling::Never;
}

/// All CPUs remember short spans, as after an earlier run: the first idle state is chosen.
fn short_history(scenario: &mut Scenario) {
    background(scenario);
    scenario.settings.idle.history_ns = Some(10_000);
}

/// All CPUs remember having slept long: the deep state is chosen until the spans of the run itself have taken over.
fn long_history(scenario: &mut Scenario) {
    background(scenario);
    scenario.settings.idle.history_ns = Some(400_000);
    scenario.settings.idle.spans_count_exit = Switch::On;
}

/// The same with the effective state that was fitted on vanilla's 13.5 to 24.8 thousand operations a second.
fn effective_state(scenario: &mut Scenario) {
    long_history(scenario);
    for (cost, value) in [("idle_c2_exit_ns", 30_000), ("idle_c2_residency_ns", 50_000)] {
        scenario.costs.set(cost, value).expect("a known cost");
    }
    scenario.settings.idle.deepest = Some(2);
}

const LIMIT_NS: u64 = 5_000_000_000;
// A device's times vary; equal ones would be dropped as outliers all at once by the governor's test, which real ones are not.
/// The thread's parameters, one thread that begins in another CCX than the interrupt's, as in the mail's CPU numbers 63 and 52.
const EPYC: &str = "dmatest:test_buf_size=1MiB,transfer_size=64KiB,norandom,noverify,iterations=1000,timeout=2000,latency=uniform(0us..3us),irq=4,start=12";
const EPYC_POLLED: &str = "dmatest:test_buf_size=1MiB,transfer_size=64KiB,norandom,noverify,polled,iterations=1000,timeout=2000,latency=uniform(0us..3us),irq=4,start=12";
const EPYC_FOUR: &str = "dmatest:test_buf_size=1MiB,transfer_size=64KiB,norandom,noverify,iterations=1000,timeout=2000,latency=uniform(0us..3us),threads_per_chan=4,irq=4";
/// Interrupt on node 0, thread on node 1.
const XEON: &str = "dmatest:test_buf_size=1MiB,transfer_size=64KiB,norandom,noverify,iterations=1000,timeout=2000,latency=uniform(0us..3us),irq=0,start=14";
const XEON_3204: &str = "dmatest:test_buf_size=1MiB,transfer_size=64KiB,norandom,noverify,iterations=1000,timeout=2000,latency=uniform(0us..3us),irq=0,start=6";

const SETUPS: &[Setup] = &[
    Setup {
        id: "epyc",
        title: "dmatest noverify=1 on EPYC 7313, thread and interrupt in different CCXs",
        machine: "epyc-7313",
        costs: "epyc",
        workload: EPYC,
        until_ns: LIMIT_NS,
        prepare: Some(epyc),
        variants: FOUR,
    },
    Setup {
        id: "epyc-no-lines",
        title: "the same without the lines that a wake-up in another CCX moves",
        machine: "epyc-7313",
        costs: "epyc",
        workload: EPYC,
        until_ns: LIMIT_NS,
        prepare: Some(epyc_no_lines),
        variants: TWO,
    },
    Setup {
        id: "epyc-interrupts",
        title: "the same as the first, with an interrupt for every wake-up",
        machine: "epyc-7313",
        costs: "epyc",
        workload: EPYC,
        until_ns: LIMIT_NS,
        prepare: Some(epyc_interrupts),
        variants: TWO,
    },
    Setup {
        id: "epyc-polled",
        title: "dmatest noverify=1 polled=1 on EPYC 7313",
        machine: "epyc-7313",
        costs: "epyc",
        workload: EPYC_POLLED,
        until_ns: LIMIT_NS,
        prepare: Some(epyc),
        variants: TWO,
    },
    Setup {
        id: "epyc-4threads",
        title: "dmatest noverify=1 with 4 threads a channel on EPYC 7313",
        machine: "epyc-7313",
        costs: "epyc",
        workload: EPYC_FOUR,
        until_ns: LIMIT_NS,
        prepare: Some(epyc),
        variants: TWO,
    },
    Setup {
        id: "xeon-6132",
        title: "dmatest on 2 x Xeon 6132, interrupt and thread on different nodes, driver's idle states, short spans before",
        machine: "xeon-6132x2",
        costs: "skylake-server",
        workload: XEON,
        until_ns: LIMIT_NS,
        prepare: Some(short_history),
        variants: TWO,
    },
    Setup {
        id: "xeon-6132-history",
        title: "the same after long idle spans",
        machine: "xeon-6132x2",
        costs: "skylake-server",
        workload: XEON,
        until_ns: LIMIT_NS,
        prepare: Some(long_history),
        variants: TWO,
    },
    Setup {
        id: "xeon-6132-effective",
        title: "the same with an effective state of 30 us, fitted on vanilla",
        machine: "xeon-6132x2",
        costs: "skylake-server",
        workload: XEON,
        until_ns: LIMIT_NS,
        prepare: Some(effective_state),
        variants: TWO,
    },
    Setup {
        id: "xeon-3204",
        title: "dmatest on 2 x Xeon 3204, interrupt and thread on different nodes",
        machine: "xeon-3204x2",
        costs: "xeon-3204",
        workload: XEON_3204,
        until_ns: LIMIT_NS,
        prepare: Some(short_history),
        variants: TWO,
    },
];

const IOPS: Quantity = Quantity::MetersPerSecond("iteration ");

const fn iops(setup: &'static str, new: &'static str, base: &'static str) -> Measure {
    Measure::Ratio { quantity: IOPS, new: (setup, new), base: (setup, base) }
}

/// Vanilla's time of a transfer in dirty's.
const fn transfer(setup: &'static str) -> Measure {
    Measure::Ratio {
        quantity: Quantity::MetersMean("iteration "),
        new: (setup, "vanilla"),
        base: (setup, "dirty"),
    }
}

const fn hits(of: CellId) -> Measure {
    Measure::Mean { quantity: Quantity::CpusHit("cpus 0"), of }
}

const HISTORY: &str =
    "CPUs remember long idle spans, and the state they choose takes 30 us to leave (fitted on vanilla)";

const CLAIMS: &[Claim] = &[
    Claim {
        id: "dma.epyc-order",
        text: "EPYC: dirty is faster than vanilla",
        published: "52754/52615/54939 against 49339/42183/42845 iops",
        published_value: Some(1.193),
        standing: Standing::Robust,
        measure: iops("epyc", "dirty", "vanilla"),
        without_condition: None,
        bound: Bound::AtLeast(1.02),
    },
    Claim {
        id: "dma.epyc-size",
        text: "EPYC: by 17 to 28 %",
        published: "1.17 to 1.28 by mail",
        published_value: Some(1.193),
        standing: Standing::Conditional("a wake-up in another CCX moves lines for 1.5 us"),
        measure: iops("epyc", "dirty", "vanilla"),
        without_condition: Some(iops("epyc-no-lines", "dirty", "vanilla")),
        bound: Bound::Within(1.15, 1.30),
    },
    Claim {
        id: "dma.epyc-interrupts",
        text: "EPYC, if idle CPUs do not watch their flag",
        published: "1.17 to 1.28 by mail",
        published_value: Some(1.193),
        standing: Standing::NotClaimed("the mail does not say how that machine's idle CPUs are woken"),
        measure: iops("epyc-interrupts", "dirty", "vanilla"),
        without_condition: None,
        bound: Bound::AtLeast(1.02),
    },
    Claim {
        id: "dma.epyc-hillf1",
        text: "EPYC: Danton's first proposal changes nothing across caches",
        published: "53189/41668/42427 against 49339/42183/42845",
        published_value: Some(1.022),
        standing: Standing::Robust,
        measure: iops("epyc", "hillf1", "vanilla"),
        without_condition: None,
        bound: Bound::Within(0.95, 1.08),
    },
    Claim {
        id: "dma.epyc-hillf2",
        text: "EPYC: his second gains",
        published: "50251/50023/49950 against 49339/42183/42845",
        published_value: Some(1.118),
        standing: Standing::NotClaimed(
            "across CCXs its rule equals vanilla's; the gain needs an interrupt in the thread's own CCX, which the mail does not say",
        ),
        measure: iops("epyc", "hillf2", "vanilla"),
        without_condition: None,
        bound: Bound::Within(1.0, 1.3),
    },
    Claim {
        id: "dma.epyc-polled",
        text: "EPYC, polled: no difference",
        published: "no difference",
        published_value: Some(1.0),
        standing: Standing::Robust,
        measure: iops("epyc-polled", "dirty", "vanilla"),
        without_condition: None,
        bound: Bound::Within(0.98, 1.02),
    },
    Claim {
        id: "dma.hits-vanilla",
        text: "vanilla: the thread moves at most once, to the interrupt's CPU",
        published: "CPU 52: 417, CPU 63: 583, interrupt on 52",
        published_value: Some(2.0),
        standing: Standing::Robust,
        measure: hits(("epyc", "vanilla")),
        without_condition: None,
        bound: Bound::AtMost(2.5),
    },
    Claim {
        id: "dma.hits-dirty",
        text: "dirty: it stays on the interrupt's CPU",
        published: "CPU 49: 1000, interrupt on 49",
        published_value: Some(1.0),
        standing: Standing::Robust,
        // The first iteration may still end where the thread began.
        measure: hits(("epyc", "dirty")),
        without_condition: None,
        bound: Bound::AtMost(2.0),
    },
    Claim {
        id: "dma.four-threads",
        text: "4 threads a channel: a thread is slower than one alone, and dirty does not keep all in place",
        published: "65291 iops alone, 53908/54180/54048/51467 with 4 (vanilla)",
        published_value: Some(0.818),
        standing: Standing::NotClaimed("how many transfers the channel overlaps is not known"),
        measure: Measure::Ratio {
            quantity: IOPS,
            new: ("epyc-4threads", "vanilla"),
            base: ("epyc", "vanilla"),
        },
        without_condition: None,
        bound: Bound::AtMost(1.0),
    },
    Claim {
        id: "dma.xeon-order",
        text: "two-node Xeon 6132: dirty is faster than vanilla",
        published: "87260/88464/88834 against 24837/13666/13522 iops",
        published_value: Some(5.09),
        standing: Standing::Robust,
        measure: iops("xeon-6132", "dirty", "vanilla"),
        without_condition: None,
        bound: Bound::AtLeast(1.05),
    },
    Claim {
        id: "dma.xeon-size",
        text: "two-node Xeon 6132: a transfer takes four times as long with vanilla, or longer",
        published: "24837/13666/13522 against 87260/88464/88834 iops: 62.5 against 11.3 us a transfer",
        published_value: Some(5.51),
        standing: Standing::Conditional(HISTORY),
        measure: transfer("xeon-6132-effective"),
        without_condition: Some(transfer("xeon-6132")),
        bound: Bound::AtLeast(4.0),
    },
    Claim {
        id: "dma.xeon-history",
        text: "two-node Xeon 6132 with the driver's table after long idle spans: vanilla's time of a transfer",
        published: "62.5 against 11.3 us",
        published_value: Some(5.51),
        standing: Standing::NotClaimed("C6 of the table, 133 us, is more than any published run shows"),
        measure: transfer("xeon-6132-history"),
        without_condition: None,
        bound: Bound::AtLeast(1.05),
    },
    Claim {
        id: "dma.xeon3204-order",
        text: "two-node Xeon 3204: dirty is faster than vanilla",
        published: "78989/77754/76988 before, 80360/16081/16092 after the first bad commit",
        published_value: None,
        standing: Standing::Robust,
        measure: iops("xeon-3204", "dirty", "vanilla"),
        without_condition: None,
        bound: Bound::AtLeast(1.05),
    },
    Claim {
        id: "dma.xeon-iops",
        text: "Xeon 6132, dirty: operations a second",
        published: "88186 iops",
        published_value: Some(88_186.0),
        standing: Standing::NotClaimed("absolute figures rest on the device's times"),
        measure: Measure::Mean { quantity: IOPS, of: ("xeon-6132", "dirty") },
        without_condition: None,
        bound: Bound::AtLeast(0.0),
    },
];

/// The thread.
pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "dma",
    title: "the DMA-engine regression from wake_affine",
    thread: "Alexander Fomichev: [RFC] Scheduler: DMA Engine regression because of sched/fair changes, January 2022",
    setups: SETUPS,
    claims: CLAIMS,
    uncertain: ["idle_c1_exit_ns", "list_push_ns", "lines_llc_ns"],
    fitted: &[Fitted {
        what: "idle state 2 of xeon-6132-effective: 30 us to leave, 50 us residency (driver: 10/20 us)",
        on: "vanilla on the Xeon 6132",
    }],
};
