//! One placement: on an idle LLC, where the scan finds something at once, and where it finds nothing.

use divan::{Bencher, black_box};
use ttwu_fair::{
    Check, CpuStats, Flips, Kind, Machine, Memory, Policy, ScanCost, SlowView, TaskLoad, View, Wakeup, place,
};
use ttwu_model::{CpuId, CpuSet, SgcId, Topology};

fn main() {
    divan::main();
}

const KERNELS: [&str; 5] = ["linux-5.9", "linux-5.15", "linux-6.1", "linux-6.12", "linux-7.2"];
const LLC_64: &str = "arch generic; 1 socket x 64 cores; llc socket";
const LLC_512: &str = "arch generic; 1 socket x 512 cores; llc socket";
const THREADS_512: &str =
    "arch x86; 2 sockets x 1 node x 16 llcs x 8 cores x 2 threads; distances 32; reclaim 32";

/// A machine that answers from arrays.
struct State {
    idle: Vec<bool>,
    idle_cores: bool,
    cost: ScanCost,
}

impl View for State {
    fn available_idle(&mut self, cpu: CpuId) -> bool {
        self.idle[cpu.index()]
    }
    fn sched_idle(&mut self, _: CpuId) -> bool {
        false
    }
    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        u32::from(!self.idle[cpu.index()])
    }
    fn nr_delayed(&mut self, _: CpuId) -> i64 {
        0
    }
    fn load(&mut self, _: CpuId) -> u64 {
        1024
    }
    fn capacity(&mut self, _: CpuId) -> u64 {
        1024
    }
    fn task_load(&mut self, _: TaskLoad) -> u64 {
        512
    }
    fn has_idle_cores(&mut self, _: CpuId) -> bool {
        self.idle_cores
    }
    fn clear_idle_cores(&mut self, _: CpuId) {}
    fn nr_idle_scan(&mut self, _: CpuId) -> u32 {
        1000
    }
    fn scan_cost(&mut self, _: CpuId) -> &mut ScanCost {
        // A budget that allows the whole LLC.
        self.cost.avg_idle_ns = 1 << 40;
        self.cost.wake_avg_idle_ns = 1 << 40;
        &mut self.cost
    }
    fn scan_ns(&mut self, _: u32) -> u64 {
        1000
    }
}

/// Wake-ups do not ask it.
struct NoFork;

impl SlowView for NoFork {
    fn stats(&mut self, _: CpuId) -> CpuStats {
        CpuStats::default()
    }
    fn imbalanced(&mut self, _: SgcId) -> bool {
        false
    }
    fn available_idle(&mut self, _: CpuId) -> bool {
        false
    }
    fn sched_idle(&mut self, _: CpuId) -> bool {
        false
    }
    fn load(&mut self, _: CpuId) -> u64 {
        0
    }
    fn exit_latency(&mut self, _: CpuId) -> Option<u64> {
        None
    }
    fn idle_stamp(&mut self, _: CpuId) -> u64 {
        0
    }
}

/// Times wake-ups by a task on CPU 5 of one that ran on CPU 9, on a machine where `idle` says which CPUs are idle.
fn bench(bencher: Bencher<'_, '_>, topology: &str, kernel: &str, idle: impl Fn(usize) -> bool) {
    let topology = Topology::parse(topology).expect("valid");
    let policy = Policy::parse(kernel).expect("known");
    let machine = Machine::new(&topology, &policy);
    let cpus = machine.cpu_bound();
    let allowed = CpuSet::first(cpus);
    let idle_cores = machine.domains().smt_active();
    let mut view = State { idle: (0..cpus).map(idle).collect(), idle_cores, cost: ScanCost::BOOT };
    let wakeup = Wakeup {
        kind: Kind::Wakeup,
        this_cpu: CpuId::new(5),
        prev_cpu: CpuId::new(9),
        sync: false,
        current_cpu: false,
        allowed: &allowed,
        wakee_is_idle_policy: false,
        waker_is_per_cpu_kthread: false,
        waker_is_idle_task: false,
        in_task: true,
        util: 100,
    };
    let (mut waker, wakee) = (Flips::default(), Flips::default());
    let mut waker_recent = CpuId::new(5);
    bencher.bench_local(|| {
        let mut recent = CpuId::new(9);
        let mut memory = Memory {
            waker: &mut waker,
            wakee: &wakee,
            wakee_key: 1,
            recent_used_cpu: &mut recent,
            waker_recent_used_cpu: &mut waker_recent,
            jiffies: 1,
        };
        let wakeup = black_box(&wakeup);
        place(&policy, &machine, wakeup, &mut memory, &mut view, &mut NoFork, &mut |_: Check| {})
    });
}

#[divan::bench(args = KERNELS)]
fn idle_64(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, LLC_64, kernel, |cpu| cpu != 5);
}

/// The waker's and the previous CPU are busy, so that the scan has to find one.
#[divan::bench(args = KERNELS)]
fn scan_finds_at_once_64(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, LLC_64, kernel, |cpu| cpu != 5 && cpu != 9);
}

#[divan::bench(args = KERNELS)]
fn scan_exhausted_64(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, LLC_64, kernel, |_| false);
}

#[divan::bench(args = KERNELS)]
fn idle_512(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, LLC_512, kernel, |cpu| cpu != 5);
}

#[divan::bench(args = KERNELS)]
fn scan_finds_at_once_512(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, LLC_512, kernel, |cpu| cpu != 5 && cpu != 9);
}

#[divan::bench(args = KERNELS)]
fn scan_exhausted_512(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, LLC_512, kernel, |_| false);
}

/// The flag says that there are idle cores, and there are none: the dearest scan.
#[divan::bench(args = KERNELS)]
fn core_scan_in_vain_64(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, "1 socket x 32 cores x 2 threads", kernel, |_| false);
}

/// 512 threads in LLCs of 16: what a large server has.
#[divan::bench(args = KERNELS)]
fn scan_exhausted_16_of_512(bencher: Bencher<'_, '_>, kernel: &str) {
    bench(bencher, THREADS_512, kernel, |_| false);
}
