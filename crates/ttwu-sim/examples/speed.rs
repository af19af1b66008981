//! One run, to be timed or profiled from outside: `speed WORKLOAD MACHINE [KERNEL] [SECONDS] [COSTS] [traced]`.

use ttwu_fair::Policy;
use ttwu_model::Topology;
use ttwu_sim::{Costs, Options, Scenario, Settings, run};
use ttwu_workload::{MachineInfo, Workload};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize, default: &str| words.get(index).map_or(default.to_owned(), Clone::clone);
    let topology = ttwu_model::Machine::find(&word(1, "xeon-8269cy"))
        .map_or_else(|| Topology::parse(&word(1, "")).expect("a topology"), ttwu_model::Machine::topology);
    let machine = MachineInfo { cpus: u32::try_from(topology.cpu_bound()).expect("few CPUs") };
    let workload = Workload::parse(&word(0, "hackbench:groups=1"), &machine).expect("a workload");
    let policy = Policy::parse(&word(2, "linux-6.6")).expect("a policy");
    let seconds: u64 = word(3, "10").parse().expect("seconds");
    let settings = Settings::of(policy.kernel());
    let costs = Costs::preset(&word(4, "skylake-server")).expect("a preset");
    let scenario =
        Scenario { workload, topology, policy, costs, settings, seed: 1, until_ns: seconds * 1_000_000_000 };
    let mut options = if word(5, "") == "traced" { Options::traced() } else { Options::quiet() };
    let outcome = run(&scenario, &mut options);
    println!(
        "{:?} after {} ns: {} events; digest {:016x}",
        outcome.end, outcome.sim_ns, outcome.events, outcome.digest
    );
    println!("{:#?}", Short(&outcome.counters));
}

/// The counters without histograms.
struct Short<'a>(&'a ttwu_sim::Counters);

impl std::fmt::Debug for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let c = self.0;
        writeln!(
            f,
            "wakeups {} still {} pinned {} list {} ipis {} polled {}",
            c.wakeups, c.wakeups_still_queued, c.wakeups_pinned, c.wake_list, c.ipis, c.polled_wakes
        )?;
        writeln!(
            f,
            "switches {} + {} migrations {:?} (wake {} newidle {} periodic {} nohz {} active {})",
            c.switches_voluntary,
            c.switches_involuntary,
            c.migrations,
            c.migrations_wake,
            c.migrations_newidle,
            c.migrations_periodic,
            c.migrations_nohz,
            c.migrations_active
        )?;
        writeln!(f, "rules {:?} scans {:?} scanned {}", c.by_rule, c.scans, c.cpus_scanned)?;
        writeln!(
            f,
            "idle exits {:?} preempt wake {} tick {} ticks {}",
            c.idle_exits, c.preempt_wake, c.preempt_tick, c.ticks
        )?;
        writeln!(
            f,
            "rq wait {} wq waits {} {} ns waker {} busy {} task {}",
            c.rq_lock_wait_ns,
            c.wait_queue_lock_waits,
            c.wait_queue_lock_wait_ns,
            c.waker_ns,
            c.busy_ns,
            c.task_ns
        )?;
        write!(
            f,
            "wake latency p50 {:?} p99 {:?} max {}",
            c.wake_latency_ns.quantile(500),
            c.wake_latency_ns.quantile(990),
            c.wake_latency_ns.max()
        )
    }
}
