//! Determinism, and laws of the machine.

use crate::{Costs, End, Options, Outcome, Scenario, Settings, run};
use ttwu_fair::Policy;
use ttwu_model::Topology;
use ttwu_workload::{MachineInfo, Workload};

/// A scenario with every default.
pub(super) fn scenario(workload: &str, topology: &str, policy: &str) -> Scenario {
    let topology = ttwu_model::Machine::find(topology)
        .map_or_else(|| Topology::parse(topology).expect("a topology"), ttwu_model::Machine::topology);
    let info = MachineInfo { cpus: topology.cpu_bound() as u32 };
    let policy = Policy::parse(policy).expect("a policy");
    Scenario {
        workload: Workload::parse(workload, &info).expect("a workload"),
        settings: Settings::of(policy.kernel()),
        topology,
        policy,
        costs: Costs::skylake_server(),
        seed: 1,
        until_ns: 1_000_000_000,
    }
}

pub(super) fn quiet(scenario: &Scenario) -> Outcome {
    run(scenario, &mut Options::quiet())
}

#[test]
fn a_ping_pong_and_hackbench_come_to_their_ends() {
    for workload in ["pipe:loop=200", "hackbench:groups=1,loops=5", "hackbench:pipe,groups=1,loops=5"] {
        for topology in ["1 socket x 1 core", "oracle-d"] {
            for policy in ["linux-5.9", "linux-6.1", "linux-6.12", "linux-7.2"] {
                let outcome = quiet(&scenario(workload, topology, policy));
                assert_eq!(outcome.end, End::Completed, "{workload} {topology} {policy}");
            }
        }
    }
}

#[test]
fn equal_scenarios_give_equal_runs() {
    let scenario = scenario("hackbench:groups=1,loops=10", "oracle-d", "linux-6.12");
    let (first, second) = (quiet(&scenario), run(&scenario, &mut Options::traced()));
    assert_eq!(first.digest, second.digest);
    assert_eq!(first.counters, second.counters);
}

/// Every workload by name, at its shortest.
const ALL: [&str; 17] = [
    "hackbench:groups=1,fds=4,loops=10",
    "hackbench:pipe,threads,groups=2,fds=4,loops=10",
    "messaging:group=1,nr_loops=5",
    "pipe:loop=200",
    "schbench-a:message-threads=2,threads=4",
    "schbench:threads=2",
    "schbench:threads=2,rps=200",
    "dbench",
    "dbench:cil=bound",
    "dmatest",
    "massive_intr:nproc=6",
    "context1",
    "tbench",
    "netperf",
    "cyclictest:threads=2",
    "rpc",
    "desktop",
];

#[test]
fn every_workload_runs_under_every_kernel() {
    let preemption = [
        crate::PreemptionModel::None,
        crate::PreemptionModel::Voluntary,
        crate::PreemptionModel::Full,
        crate::PreemptionModel::Lazy,
    ];
    let mut seed = 0;
    for workload in ALL {
        for kernel in ttwu_fair::Kernel::ALL {
            for topology in ["oracle-d", "1 socket x 1 core", "epyc-7313"] {
                let mut scenario = scenario(workload, topology, kernel.name());
                seed += 1;
                scenario.seed = seed;
                scenario.until_ns = 30_000_000;
                scenario.settings.preemption = preemption[seed as usize % 4];
                if seed.is_multiple_of(3) {
                    let (run_ns, sleep_ns_min, sleep_ns_max) = (20_000, 1_000_000, 3_000_000);
                    scenario.settings.noise = Some(crate::Noise { run_ns, sleep_ns_min, sleep_ns_max });
                }
                if seed.is_multiple_of(5) {
                    scenario.settings.idle.polling = crate::Polling::Never;
                    let (min_permille, sample_ns) = (400, 10_000_000);
                    scenario.settings.frequency = Some(crate::Frequency { min_permille, sample_ns });
                }
                let outcome = quiet(&scenario);
                assert!(outcome.events > 30, "{workload} {kernel} {topology}: {} events", outcome.events);
                assert_ne!(outcome.end, End::Stuck, "{workload} {kernel} {topology}");
            }
        }
    }
}

#[test]
fn a_run_is_the_same_on_every_machine_and_build() {
    // A constant, so that debug and release builds, and machines, are held to the same. It changes whenever results do.
    let digest = |workload: &str, policy: &str| {
        let mut scenario = scenario(workload, "oracle-d", policy);
        scenario.until_ns = 50_000_000;
        quiet(&scenario).digest
    };
    let found = [
        digest("hackbench:groups=2,fds=4,loops=50", "linux-6.12"),
        digest("dbench:clients=4", "linux-5.5"),
        digest("rpc", "linux-7.2"),
    ];
    assert_eq!(found.map(|digest| format!("{digest:016x}")), DIGESTS);
}

const DIGESTS: [&str; 3] = ["a4dfb10f6c90a658", "597e812b24c3935b", "1e1d8b39b2147849"];

#[test]
fn memory_stays_within_bounds() {
    // Of the machine's own parts; what programs hold (samples, traces) comes on top.
    assert!(size_of::<super::task::Task>() <= 640, "{}", size_of::<super::task::Task>());
    let cpu = size_of::<super::cpu::Cpu>() + size_of::<super::task::Exec>();
    assert!(cpu <= 1024, "{cpu}");
}
