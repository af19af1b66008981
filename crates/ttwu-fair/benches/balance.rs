//! Balancing passes: newidle where it is skipped, where it finds nothing, and a periodic pass over a whole LLC.

use divan::Bencher;
use ttwu_fair::{
    ActiveBalance, BalanceState, BalanceView, Balancer, CpuStats, EntityId, Machine, Policy, Preemptible,
    TaskState, Work,
};
use ttwu_model::{CpuId, Topology};

fn main() {
    divan::main();
}

const KERNELS: [&str; 4] =
    ["linux-5.15", "linux-6.1 -NI_RANDOM", "linux-6.12 -NI_RANDOM", "linux-7.2 -NI_RANDOM"];
const LLC_64: &str = "arch generic; 1 socket x 64 cores; llc socket";
const THREADS_512: &str =
    "arch x86; 2 sockets x 1 node x 16 llcs x 8 cores x 2 threads; distances 32; reclaim 32";

/// One task on each CPU but CPU 5: there is nothing to pull.
struct Singles;

impl BalanceView for Singles {
    fn jiffies(&mut self) -> u64 {
        1_000_000
    }
    fn now_ns(&mut self) -> u64 {
        4_000_000_000_000
    }
    fn clock_task_ns(&mut self, _: CpuId) -> u64 {
        4_000_000_000_000
    }
    fn stats(&mut self, cpu: CpuId) -> CpuStats {
        let nr = self.nr_running(cpu);
        let n = u64::from(nr);
        CpuStats {
            load: 1024 * n,
            util: 300 * n,
            runnable: 300 * n,
            nr_running: nr,
            h_nr: nr,
            idle: nr == 0,
            capacity: 1024,
        }
    }
    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        u32::from(cpu != CpuId::new(5))
    }
    fn idle(&mut self, cpu: CpuId) -> bool {
        cpu == CpuId::new(5)
    }
    fn sched_idle(&mut self, _: CpuId) -> bool {
        false
    }
    fn pending(&mut self, _: CpuId) -> bool {
        false
    }
    fn refresh(&mut self, _: CpuId) {}
    fn last_task(&mut self, _: CpuId) -> Option<EntityId> {
        None
    }
    fn running_task(&mut self, _: CpuId) -> Option<EntityId> {
        None
    }
    fn to_front(&mut self, _: CpuId, _: EntityId) {}
    fn task(&mut self, _: CpuId, _: EntityId) -> TaskState {
        TaskState::default()
    }
    fn allows(&mut self, _: EntityId, _: CpuId) -> bool {
        true
    }
    fn task_h_load(&mut self, _: EntityId) -> u64 {
        1024
    }
    fn task_util(&mut self, _: EntityId) -> u64 {
        300
    }
    fn detach(&mut self, _: CpuId, _: EntityId) {}
    fn attach(&mut self, _: CpuId, _: EntityId) {}
    fn work_ns(&mut self, work: Work) -> u64 {
        u64::from(work.cpus)
    }
    fn start_active(&mut self, _: ActiveBalance) {}
}

fn newidle(bencher: Bencher<'_, '_>, topology: &str, kernel: &str, overloaded: bool) {
    let topology = Topology::parse(topology).expect("valid");
    let policy = Policy::parse(kernel).expect("known");
    let machine = Machine::new(&topology, &policy);
    let mut state = BalanceState::new(&policy, &machine, Preemptible::Yes, 1000, 1);
    bencher.bench_local(|| {
        // The pass over the whole machine clears it.
        state.overloaded = overloaded;
        let mut balancer =
            Balancer { policy: &policy, machine: &machine, state: &mut state, view: &mut Singles };
        balancer.newidle(CpuId::new(5))
    });
}

#[divan::bench(args = KERNELS)]
fn newidle_skipped(bencher: Bencher<'_, '_>, kernel: &str) {
    newidle(bencher, THREADS_512, kernel, false);
}

#[divan::bench(args = KERNELS)]
fn newidle_in_vain_64(bencher: Bencher<'_, '_>, kernel: &str) {
    newidle(bencher, LLC_64, kernel, true);
}

#[divan::bench(args = KERNELS)]
fn newidle_in_vain_512(bencher: Bencher<'_, '_>, kernel: &str) {
    newidle(bencher, THREADS_512, kernel, true);
}
