//! Laws that hold for every machine, kernel and state, and the proof that broken rules are noticed.

use super::harness::Bench;
use super::*;
use crate::mutation::Mutation;
use crate::{Kernel, Policy};
use ttwu_model::{CpuSet, MACHINES};
use ttwu_testing::Rng;

/// A machine in a random state.
fn random(rng: &mut Rng, bench: &mut Bench) {
    let cpus = bench.machine.cpu_bound();
    bench.queues.now_ns = 4_000_000_000_000;
    for list in &mut bench.queues.lists {
        list.clear();
    }
    bench.queues.tasks.clear();
    // Some CPUs only, so that there are idle and busy ones.
    for _ in 0..1 + rng.below(cpus) {
        bench.put(rng.below(cpus) as u16, 1 + rng.below(3));
    }
    for task in &mut bench.queues.tasks {
        let on = task.cpu.expect("queued");
        task.util = rng.below(600) as u64;
        task.load = 15 << rng.below(9);
        task.state.exec_start = bench.queues.now_ns - rng.below(1_000_000) as u64;
        task.state.idle_policy = rng.below(10) == 0;
        task.state.per_cpu_kthread = rng.below(20) == 0;
        if task.state.per_cpu_kthread {
            task.allowed = CpuSet::from_iter([on]);
        } else if rng.below(3) == 0 {
            task.allowed = (0..cpus as u16).filter(|_| rng.below(2) == 0).map(CpuId::new).collect();
            task.allowed.insert(on);
        }
    }
    bench.state.overloaded = true;
    bench.state.preemptible = if rng.below(2) == 0 { Preemptible::Yes } else { Preemptible::No };
    for number in 0..cpus as u16 {
        for level in 0..bench.machine.domains().of(CpuId::new(number)).len() {
            let domain = bench.state.domain(CpuId::new(number), level);
            domain.nr_balance_failed = rng.below(6) as u32;
            domain.last_balance = 0;
        }
    }
}

/// What must hold whatever a pass did.
#[track_caller]
fn laws(bench: &Bench, before: &Bench, repro: &str) {
    assert_eq!(bench.queues.tasks.len(), before.queues.tasks.len());
    let mut seen = vec![false; bench.queues.tasks.len()];
    for (number, list) in bench.queues.lists.iter().enumerate() {
        for &id in list {
            let task = &bench.queues.tasks[id.index()];
            assert_eq!(task.cpu.map(CpuId::index), Some(number), "{repro}: {id:?}");
            assert!(task.allowed.contains(CpuId::new(number as u16)), "{repro}: {id:?} on {number}");
            assert!(!std::mem::replace(&mut seen[id.index()], true), "{repro}: {id:?} twice");
            let old = before.queues.tasks[id.index()].cpu;
            assert!(old == task.cpu || !task.state.running, "{repro}: {id:?} ran and moved");
        }
    }
    assert!(seen.iter().all(|&seen| seen), "{repro}: a task is lost");
    let spread = |counts: &[usize]| counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0);
    assert!(
        spread(&bench.counts()) <= spread(&before.counts()),
        "{repro}: {:?} to {:?}",
        before.counts(),
        bench.counts()
    );
    for (number, count) in before.counts().into_iter().enumerate() {
        assert!(
            count == 0 || !bench.queues.lists[number].is_empty(),
            "{repro}: CPU {number} lost its last task"
        );
    }
}

/// Passes of idle CPUs on all named machines under all kernels.
#[test]
fn tasks_are_conserved_allowed_and_no_less_even() {
    for machine in MACHINES {
        let topology = machine.topology();
        for kernel in Kernel::ALL {
            let mut bench = Bench::of(&topology, kernel.name());
            let cpus = bench.machine.cpu_bound();
            for seed in 0..12 {
                let mut rng = Rng::new(seed);
                random(&mut rng, &mut bench);
                for step in 0..8 {
                    let before = bench.clone();
                    let number = rng.below(cpus) as u16;
                    let repro = format!("{} {kernel} seed {seed} step {step}: CPU {number}", machine.name);
                    if !bench.queues.lists[usize::from(number)].is_empty() {
                        continue;
                    }
                    bench.queues.costs.clear();
                    let cpu = CpuId::new(number);
                    match rng.below(3) {
                        0 => drop(bench.balancer().newidle(cpu)),
                        1 => drop(bench.balancer().softirq(cpu)),
                        _ => drop(bench.balancer().nohz_pass(cpu)),
                    }
                    laws(&bench, &before, &repro);
                }
            }
        }
    }
}

/// Busy CPUs too: nothing is lost or where it may not be.
#[test]
fn busy_cpus_keep_affinity_too() {
    for topology in [
        "2 sockets x 2 nodes x 2 cores x 2 threads; distances 10 12 20 20 / 12 10 20 20 / 20 20 10 12 / 20 20 12 10",
        "1 socket x 2 clusters x 4 cores",
    ] {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new(topology, kernel.name());
            let cpus = bench.machine.cpu_bound();
            for seed in 0..200 {
                let mut rng = Rng::new(seed);
                random(&mut rng, &mut bench);
                let before = bench.clone();
                for _ in 0..4 {
                    bench.balancer().softirq(CpuId::new(rng.below(cpus) as u16));
                }
                let repro = format!("{kernel} seed {seed} on {topology}");
                for (id, task) in bench.queues.tasks.iter().enumerate() {
                    let on = task.cpu.unwrap_or_else(|| panic!("{repro}: task {id} is nowhere"));
                    assert!(task.allowed.contains(on), "{repro}: task {id} on {on}");
                    let moved = before.queues.tasks[id].cpu != task.cpu;
                    assert!(!moved || !task.state.running, "{repro}: task {id} ran and moved");
                }
            }
        }
    }
}

/// The same state and seed give the same moves.
#[test]
fn passes_repeat() {
    let run = || {
        let mut bench = Bench::new("2 sockets x 4 cores", "7.2");
        random(&mut Rng::new(3), &mut bench);
        for number in 0..8 {
            bench.state.overloaded = true;
            bench.balancer().newidle(CpuId::new(number));
        }
        bench.queues.attached
    };
    assert_eq!(run(), run());
}

#[test]
fn machines_of_512_cpus() {
    let topology = ttwu_model::Topology::parse(
        "arch x86; 2 sockets x 1 node x 16 llcs x 8 cores x 2 threads; distances 32; reclaim 32",
    )
    .expect("512 CPUs");
    assert_eq!(topology.online().len(), 512);
    for policy in ["5.15", "6.12"] {
        let mut bench = Bench::of(&topology, policy);
        bench.put(511, 3);
        bench.state.overloaded = true;
        let tried = (0..64).any(|_| {
            bench.state.overloaded = true;
            bench.balancer().newidle(CpuId::new(400)).moved == 1
        });
        assert!(tried, "{policy}: the task is on the same node");
        let bytes = size_of::<DomainState>() * 4 + size_of::<CpuState>() + size_of::<LlcState>();
        assert!(bytes < 8192);
        assert!(Policy::parse(policy).is_ok());
    }
}

#[test]
fn broken_rules_are_noticed() {
    use super::{tests, trigger_tests};
    let checks: [fn(); 14] = [
        tests::imbalance_between_nodes_by_generation,
        tests::idle_cpus_must_lead_by_two,
        tests::the_busiest_queue_and_group_by_their_order,
        tests::tasks_leave_from_the_back_and_attach_last_first,
        tests::a_newidle_pass_of_a_preemptible_kernel_takes_one,
        tests::nothing_leaves_a_queue_of_one,
        tests::hot_tasks_stay_until_passes_have_failed,
        tests::affinity_sends_a_task_to_another_cpu_of_the_group,
        tests::intervals_of_a_24_cpu_llc,
        trigger_tests::newidle_is_skipped_when_it_cannot_pay,
        trigger_tests::one_cpu_of_a_group_balances,
        trigger_tests::a_kick_needs_a_reason_and_somebody_idle,
        trigger_tests::periodic_passes_are_made_when_due,
        tests::a_group_with_room_is_relieved_only_of_a_clear_lead,
    ];
    for mutation in Mutation::BALANCE {
        assert!(mutation.is_caught(&checks), "{mutation:?} goes unnoticed");
    }
}
