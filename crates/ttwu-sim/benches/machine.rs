//! Scheduler events a second, by size of the machine; the trace's price beside.

use divan::Bencher;
use divan::counter::ItemsCount;
use ttwu_fair::Policy;
use ttwu_model::Topology;
use ttwu_sim::{Costs, Options, Scenario, Settings, Switch, run};
use ttwu_workload::{MachineInfo, Workload};

fn main() {
    divan::main();
}

const SMALL: &str = "arch x86; 1 socket x 32 cores x 2 threads";
const LARGE: &str = "arch x86; 2 sockets x 96 cores x 2 threads; distances 21";

fn scenario(workload: &str, topology: &str, ms: u64) -> Scenario {
    let topology = Topology::parse(topology).expect("a topology");
    let info = MachineInfo { cpus: u32::try_from(topology.cpu_bound()).expect("few CPUs") };
    let policy = Policy::parse("linux-6.12").expect("a policy");
    Scenario {
        workload: Workload::parse(workload, &info).expect("a workload"),
        settings: Settings::of(policy.kernel()),
        topology,
        policy,
        costs: Costs::skylake_server(),
        seed: 1,
        until_ns: ms * 1_000_000,
    }
}

const CASES: [(&str, &str, u64); 5] = [
    ("context1:copies=32", SMALL, 20),
    ("rpc", SMALL, 200),
    ("massive_intr:nproc=128", SMALL, 1000),
    ("rpc", LARGE, 200),
    ("massive_intr:nproc=768", LARGE, 5000),
];

#[divan::bench(args = 0..CASES.len(), sample_count = 10)]
fn quiet(bencher: Bencher<'_, '_>, case: usize) {
    let (workload, topology, ms) = CASES[case];
    let scenario = scenario(workload, topology, ms);
    let events = run(&scenario, &mut Options::quiet()).events;
    bencher.counter(ItemsCount::new(events)).bench(|| run(&scenario, &mut Options::quiet()).digest);
}

#[divan::bench(args = 0..CASES.len(), sample_count = 10)]
fn traced(bencher: Bencher<'_, '_>, case: usize) {
    let (workload, topology, ms) = CASES[case];
    let scenario = scenario(workload, topology, ms);
    let events = run(&scenario, &mut Options::quiet()).events;
    let counter = ItemsCount::new(events);
    let options = || Options { decisions: Switch::Off, ..Options::traced() };
    bencher.counter(counter).bench(|| run(&scenario, &mut options()).digest);
}
