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
