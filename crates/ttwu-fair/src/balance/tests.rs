//! The worked examples and tables of the specification, and each condition with a pass that meets it and one that does not.

use super::groups::{Env, proportional_lead};
use super::harness::Bench;
use super::imbalance::{Imbalance, Unit};
use super::*;
use crate::Kernel;
use ttwu_model::CpuSet;

const EVERY: [&str; 9] = ["5.5", "5.9", "5.15", "5.19", "6.1", "eevdf-2023-04", "6.6", "6.12", "7.2"];
const PAIR: &str = "1 socket x 2 cores";
const NODES: &str = "2 sockets x 1 node x 8 cores; distances 21";

fn cpu(number: u16) -> CpuId {
    CpuId::new(number)
}

/// A machine without chance.
fn bench(topology: &str, policy: &str) -> Bench {
    let mut bench = Bench::new(topology, policy);
    if bench.policy.has(crate::Feature::NiRandom) {
        bench = Bench::new(topology, &format!("{policy} -NI_RANDOM"));
    }
    bench
}

/// Looks into a pass of `owner` over its domain on `level`.
fn within<R>(
    bench: &mut Bench,
    owner: u16,
    level: usize,
    idle: IdleType,
    look: impl for<'m> FnOnce(&mut Balancer<'m>, &mut Env<'m>) -> R,
) -> R {
    let Bench { policy, machine, state, queues } = bench;
    let mut env = Env::new(machine, cpu(owner), level, idle);
    look(&mut Balancer { policy, machine, state, view: queues }, &mut env)
}

/// What an idle CPU 0 would move on the top level, whether or not it is worth it.
fn imbalance(bench: &mut Bench, idle: IdleType) -> Imbalance {
    let level = bench.machine.domains().of(cpu(0)).len() - 1;
    within(bench, 0, level, idle, |balancer, env| {
        let mut groups = balancer.domain_stats(env).expect("a local group");
        balancer.imbalance(env, &mut groups)
    })
}

/// Would CPU 0 relieve another group of its top level?
fn relieves(bench: &mut Bench, idle: IdleType) -> bool {
    let level = bench.machine.domains().of(cpu(0)).len() - 1;
    within(bench, 0, level, idle, |balancer, env| {
        let mut groups = balancer.domain_stats(env).expect("a local group");
        balancer.should_relieve(env, &mut groups)
    })
}

fn tasks(amount: i64) -> Imbalance {
    Imbalance { unit: Unit::Task, amount }
}

/// One pass of `owner` over its domain on `level`; what was attached.
fn pass(bench: &mut Bench, owner: u16, level: usize, idle: IdleType) -> Vec<(u32, u16)> {
    bench.queues.attached.clear();
    bench.balancer().pass(cpu(owner), level, idle);
    bench.queues.attached.clone()
}

#[test]
pub(super) fn intervals_of_a_24_cpu_llc() {
    for (policy, idle, busy) in
        [("5.5", 24, 768), ("5.9", 24, 768), ("5.15", 24, 383), ("6.1", 24, 383), ("7.2", 24, 383)]
    {
        let mut at_1000 = Bench::new("1 socket x 24 cores", &format!("{policy} hz=1000"));
        assert_eq!(at_1000.balancer().interval(cpu(3), 0, false), idle, "{policy}");
        assert_eq!(at_1000.balancer().interval(cpu(3), 0, true), busy, "{policy}");
    }
    // Milliseconds become jiffies rounded up: 24 ms are 6 of 4 ms, 384 ms 96.
    let mut at_250 = Bench::new("1 socket x 24 cores", "6.1");
    assert_eq!(at_250.balancer().interval(cpu(3), 0, false), 6);
    assert_eq!(at_250.balancer().interval(cpu(3), 0, true), 95);
    // Never longer than a tenth of a second for each CPU.
    let mut two = Bench::new(PAIR, "6.1 hz=1000");
    two.state.domain(cpu(0), 0).balance_interval_ms = 512;
    assert_eq!(two.balancer().interval(cpu(0), 0, true), 200);
    two.state.domain(cpu(0), 0).balance_interval_ms = 0;
    assert_eq!(two.balancer().interval(cpu(0), 0, false), 1);
}

#[test]
fn idle_scan_by_utilisation() {
    let table = [
        (8, [8, 7, 7, 7, 6, 5, 4, 2, 1, 0, 0]),
        (16, [16, 15, 15, 14, 12, 10, 8, 5, 2, 0, 0]),
        (24, [24, 23, 22, 21, 18, 15, 12, 7, 3, 0, 0]),
        (32, [32, 31, 30, 28, 25, 21, 16, 10, 4, 0, 0]),
        (52, [52, 51, 49, 45, 40, 34, 26, 17, 6, 0, 0]),
        (104, [104, 102, 98, 91, 81, 68, 52, 34, 13, 1, 0]),
    ];
    let averages = [0, 102, 205, 307, 410, 512, 614, 717, 819, 870, 876];
    for (weight, expected) in table {
        for (average, scan) in averages.into_iter().zip(expected) {
            assert_eq!(nr_idle_scan(average * weight, weight, 117), scan, "{weight} CPUs at {average}");
        }
    }
}

#[test]
fn idle_scan_is_kept_by_periodic_passes_at_the_llc() {
    for (policy, kept) in [("5.19", 0), ("6.1", 6), ("7.2", 6)] {
        let mut bench = bench(NODES, policy);
        // 2 of 8 CPUs with 1024 each: 256 on average.
        for busy in [1, 2] {
            bench.put(busy, 1);
            bench.queues.tasks.last_mut().expect("put").util = 1024;
        }
        bench.balancer().pass(cpu(0), 0, IdleType::NewlyIdle);
        let machine = bench.machine.clone();
        assert_eq!(bench.state.llc(&machine, cpu(5)).nr_idle_scan, 0, "{policy}: newly idle");
        bench.balancer().pass(cpu(0), 1, IdleType::Idle);
        assert_eq!(bench.state.llc(&machine, cpu(5)).nr_idle_scan, 0, "{policy}: above the LLC");
        bench.balancer().pass(cpu(0), 0, IdleType::Idle);
        let scan = bench.state.llc(&machine, cpu(5)).nr_idle_scan;
        assert_eq!(scan, if kept == 0 { 0 } else { nr_idle_scan(2048, 8, 117) }, "{policy}");
        assert_eq!(scan, kept + u32::from(kept > 0), "{policy}");
        assert_eq!(bench.state.llc(&machine, cpu(8)).nr_idle_scan, 0, "{policy}: the other LLC");
    }
}

#[test]
pub(super) fn imbalance_between_nodes_by_generation() {
    // Node 1 runs so many single tasks, node 0 none: how many are to move?
    for (policy, by_count) in [
        ("5.5", [0, 1, 1, 2, 2]),
        // Two tasks that talk may stay together.
        ("5.9", [0, 0, 1, 2, 2]),
        // A quarter of a node of 8 is 2.
        ("5.15", [0, 1, 1, 2, 2]),
        // imb_numa_nr is 2: up to a half lead of 2.
        ("5.19", [0, 0, 0, 0, 0]),
        // imb_numa_nr is 1, and the whole lead counts.
        ("6.1", [0, 0, 1, 2, 2]),
        ("6.6", [0, 0, 1, 2, 2]),
        ("6.12", [0, 0, 1, 2, 2]),
        ("7.2", [0, 0, 1, 2, 2]),
    ] {
        for (count, expected) in (1..).zip(by_count) {
            let mut bench = bench(NODES, policy);
            for n in 0..count {
                bench.put(8 + n, 1);
            }
            assert_eq!(imbalance(&mut bench, IdleType::Idle), tasks(expected), "{policy}: {count}");
        }
    }
}

#[test]
fn a_quarter_of_a_large_node_may_differ_in_5_15() {
    // 16 CPUs: fewer than 4 tasks and a half lead up to 2.
    for (count, expected) in [(2, 0), (3, 0), (4, 2), (5, 2)] {
        let mut bench = Bench::new("2 sockets x 1 node x 16 cores; distances 21", "5.15");
        for n in 0..count {
            bench.put(16 + n, 1);
        }
        assert_eq!(imbalance(&mut bench, IdleType::Idle), tasks(expected), "{count}");
    }
}

#[test]
fn an_overloaded_group_gives_by_utilisation_until_5_9_within_an_llc() {
    for policy in EVERY {
        // CPU 1 has 6 tasks of 300: more than one CPU does.
        let mut bench = bench(PAIR, policy);
        bench.put(1, 6);
        let by_util = bench.policy.kernel() <= Kernel::V5_9;
        let expected = if by_util { Imbalance { unit: Unit::Util, amount: 1024 } } else { tasks(3) };
        assert_eq!(imbalance(&mut bench, IdleType::Idle), expected, "{policy}");
        // Between nodes it is utilisation in all: the room of node 0.
        let mut nodes = self::bench("2 sockets x 1 node x 2 cores; distances 21", policy);
        nodes.put(2, 6).put(3, 6);
        let room = Imbalance { unit: Unit::Util, amount: 2048 };
        assert_eq!(imbalance(&mut nodes, IdleType::Idle), room, "{policy}");
        // Without room an idle CPU takes one.
        nodes.put(1, 1);
        nodes.queues.tasks.last_mut().expect("put").util = 1024;
        nodes.queues.capacity[0] = 0;
        assert_eq!(imbalance(&mut nodes, IdleType::Idle), tasks(1), "{policy}");
        let none = Imbalance { unit: Unit::Util, amount: 0 };
        assert_eq!(imbalance(&mut nodes, IdleType::Busy), none, "{policy}");
    }
}

#[test]
fn two_overloaded_groups_even_out_their_loads() {
    for policy in EVERY {
        let mut bench = bench(PAIR, policy);
        bench.put(0, 4).put(1, 8);
        // 4096 and 8192, 6144 on average; the lower of the two distances, times the capacity.
        let expected = Imbalance { unit: Unit::Load, amount: 2048 };
        assert_eq!(imbalance(&mut bench, IdleType::Busy), expected, "{policy}");
        assert!(relieves(&mut bench, IdleType::Busy), "{policy}");
        // 17 % more is not enough, 25 % is (more than the LLC's 117).
        for (load, worth) in [(1024 * 117 / 100, false), (1280, true)] {
            let mut bench = self::bench(PAIR, policy);
            bench.put(0, 4).put(1, 4);
            for task in &mut bench.queues.tasks[4..] {
                task.load = load;
            }
            assert_eq!(relieves(&mut bench, IdleType::Busy), worth, "{policy}: {load}");
        }
    }
}

#[test]
pub(super) fn a_group_with_room_is_relieved_only_of_a_clear_lead() {
    for policy in EVERY {
        let kernel = Policy::parse(policy).expect(policy).kernel();
        // Two clusters of 4 below an LLC (or 8 single CPUs): as many tasks as CPUs nowhere.
        let mut even = bench(NODES, policy);
        for n in [1, 2, 9, 10, 11] {
            even.put(n, 1);
        }
        assert!(!relieves(&mut even, IdleType::Idle), "{policy}: 3 to 2 of 8 each");
        even.put(12, 1);
        assert!(relieves(&mut even, IdleType::Idle), "{policy}: 4 to 2");
        // A busy CPU spreads over siblings as well, until v6.6.
        assert_eq!(relieves(&mut even, IdleType::Busy), kernel < Kernel::V6_6, "{policy}: busy");
        // One task to a CPU: nothing to gain.
        let mut single = bench("1 socket x 8 cores", policy);
        single.put(3, 1);
        assert!(!relieves(&mut single, IdleType::Idle), "{policy}: one task");
        single.put(3, 1);
        assert!(relieves(&mut single, IdleType::Idle), "{policy}: two on one");
        assert!(
            !relieves(&mut single, IdleType::Busy) || kernel < Kernel::V6_6,
            "{policy}: two on one, busy"
        );
    }
}

#[test]
pub(super) fn idle_cpus_must_lead_by_two() {
    // NUMA above NUMA: the child has no PREFER_SIBLING, so that idle CPUs are compared.
    let topology =
        "2 sockets x 2 nodes x 4 cores; distances 10 12 20 20 / 12 10 20 20 / 20 20 10 12 / 20 20 12 10";
    for policy in ["5.15", "6.1", "7.2"] {
        for (here, there, goes) in [(0, 1, false), (0, 2, true), (1, 2, false), (1, 3, true)] {
            let mut bench = bench(&format!("arch generic; {topology}; llc node"), policy);
            let top = bench.machine.domains().of(cpu(0)).len() - 1;
            assert!(top >= 2, "{policy}: {top}");
            for n in 0..here {
                bench.put(1 + n, 1);
            }
            for n in 0..there {
                bench.put(15 - n, 1);
            }
            assert_eq!(relieves(&mut bench, IdleType::Idle), goes, "{policy}: {here} {there}");
        }
    }
}

#[test]
fn leads_in_proportion_to_cores() {
    for (here, there, lead) in [
        ((4, 2), (8, 8), 3),
        ((1, 0), (2, 2), 2),
        ((2, 0), (10, 2), 2),
        ((2, 1), (10, 2), 1),
        ((2, 0), (10, 1), 1),
        ((8, 8), (4, 4), 1),
    ] {
        assert_eq!(proportional_lead(here, there), lead, "{here:?} {there:?}");
    }
}

#[test]
pub(super) fn the_busiest_queue_and_group_by_their_order() {
    for policy in EVERY {
        // Of CPUs with as many tasks the one that the ring meets first, from the puller's own group on.
        let mut bench = bench("1 socket x 8 cores", policy);
        bench.put(6, 2).put(3, 2);
        let moved = bench.newidle(5);
        assert_eq!(moved, [(1, 5)], "{policy}: CPU 6 comes first after 5");
        // Within a group the lowest number.
        let mut nodes = self::bench("2 sockets x 1 node x 4 cores; distances 21", policy);
        nodes.put(6, 3).put(5, 3);
        let moved = pass(&mut nodes, 0, 1, IdleType::Idle);
        assert!(!moved.is_empty() && moved.iter().all(|&(task, _)| task >= 3), "{policy}: {moved:?}");
        // A group without idle CPUs is busier than one with more tasks and idle ones.
        let mut three = self::bench("3 sockets x 2 cores", policy);
        three.put(2, 1).put(3, 1).put(4, 3);
        for task in &mut three.queues.tasks {
            task.util = 100;
        }
        let busiest = within(&mut three, 0, 1, IdleType::Idle, |balancer, env| {
            let groups = balancer.domain_stats(env).expect("local");
            groups.busiest.map(|group| group.group.span().to_string())
        });
        assert_eq!(busiest.as_deref(), Some("2-3"), "{policy}");
    }
}

#[test]
pub(super) fn tasks_leave_from_the_back_and_attach_last_first() {
    for policy in EVERY {
        let mut bench = bench(PAIR, policy);
        bench.put(1, 6);
        assert_eq!(pass(&mut bench, 0, 0, IdleType::Idle), [(3, 0), (2, 0), (1, 0)], "{policy}");
        let left: Vec<u32> = bench.queues.lists[1].iter().map(|id| id.0).collect();
        if bench.policy.kernel() > Kernel::V5_9 {
            assert_eq!(left, [0, 5, 4], "{policy}: the running task went round");
        } else {
            assert_eq!(left, [5, 4, 0], "{policy}: too large for what is left of the imbalance");
        }
        assert_eq!(bench.state.domain(cpu(0), 0).nr_balance_failed, 0);
    }
}

#[test]
pub(super) fn a_newidle_pass_of_a_preemptible_kernel_takes_one() {
    for (preemptible, count) in [(Preemptible::Yes, 1), (Preemptible::No, 3)] {
        let mut bench = bench(PAIR, "6.1");
        bench.state.preemptible = preemptible;
        bench.put(1, 6);
        assert_eq!(bench.newidle(0).len(), count, "{preemptible:?}");
        let mut periodic = self::bench(PAIR, "6.1");
        periodic.state.preemptible = preemptible;
        periodic.put(1, 6);
        assert_eq!(pass(&mut periodic, 0, 0, IdleType::Idle).len(), 3, "{preemptible:?}");
    }
}

#[test]
pub(super) fn nothing_leaves_a_queue_of_one() {
    for policy in EVERY {
        let mut bench = bench(PAIR, policy);
        bench.put(1, 1);
        bench.queues.tasks[0].state.running = false;
        assert_eq!(bench.newidle(0), [], "{policy}");
        // Two tasks, both movable: one stays.
        bench.put(1, 1);
        bench.queues.tasks[1].state.running = false;
        assert_eq!(bench.newidle(0).len(), 1, "{policy}");
        bench.queues.lists[0].clear();
        assert_eq!(bench.newidle(0), [], "{policy}");
        // 4 of 8 tasks are to move, two of each CPU: one goes.
        let mut nodes = self::bench("2 sockets x 1 node x 4 cores; distances 21", policy);
        nodes.put(4, 2).put(5, 2).put(6, 2).put(7, 2);
        for task in &mut nodes.queues.tasks {
            task.state.running = false;
        }
        assert_eq!(pass(&mut nodes, 0, 1, IdleType::Idle).len(), 1, "{policy}");
    }
}

#[test]
pub(super) fn hot_tasks_stay_until_passes_have_failed() {
    for policy in EVERY {
        let hot = |ago: u64, change: &dyn Fn(&mut Bench)| {
            let mut bench = bench(PAIR, policy);
            bench.put(1, 2);
            for task in &mut bench.queues.tasks {
                task.state.exec_start = bench.queues.now_ns - ago;
            }
            change(&mut bench);
            let moved = pass(&mut bench, 0, 0, IdleType::Idle).len();
            (moved, bench.state.domain(cpu(0), 0).nr_balance_failed)
        };
        assert_eq!(hot(499_999, &|_| {}), (0, 1), "{policy}: ran just now");
        assert_eq!(hot(500_000, &|_| {}), (1, 0), "{policy}: just cold");
        let idle_policy = |bench: &mut Bench| bench.queues.tasks[1].state.idle_policy = true;
        assert_eq!(hot(0, &idle_policy), (1, 0), "{policy}: SCHED_IDLE is never hot");
        // The LLC's cache_nice_tries is 1.
        let failed = |times| move |bench: &mut Bench| bench.state.domain(cpu(0), 0).nr_balance_failed = times;
        assert_eq!(hot(0, &failed(1)), (0, 2), "{policy}: one failure");
        assert_eq!(hot(0, &failed(2)), (1, 0), "{policy}: two");
        // Threads of one core share all caches.
        let mut smt = bench("1 socket x 1 cores x 2 threads", policy);
        smt.put(1, 2);
        for task in &mut smt.queues.tasks {
            task.state.exec_start = smt.queues.now_ns;
        }
        assert_eq!(pass(&mut smt, 0, 0, IdleType::Idle).len(), 1, "{policy}: SMT");
    }
}

#[test]
fn buddies_stay_while_the_destination_runs_something() {
    for policy in EVERY {
        for (setting, busy, moved) in
            [("", true, 0), ("", false, 1), (" -CACHE_HOT_BUDDY", true, 1), (" -CACHE_HOT_BUDDY", false, 1)]
        {
            let mut bench = bench(PAIR, &format!("{policy}{setting}"));
            bench.put(1, 5);
            for task in &mut bench.queues.tasks[1..] {
                task.state.buddy = true;
            }
            if busy {
                bench.put(0, 2);
            }
            for task in &mut bench.queues.tasks {
                task.util = 600;
            }
            let idle = if busy { IdleType::Busy } else { IdleType::Idle };
            let count = pass(&mut bench, 0, 0, idle).len();
            assert_eq!(count.min(1), moved, "{policy}{setting} busy {busy}");
        }
    }
}

#[test]
pub(super) fn affinity_sends_a_task_to_another_cpu_of_the_group() {
    for policy in EVERY {
        let mut bench = bench("2 sockets x 1 node x 4 cores; distances 21", policy);
        bench.put(4, 6);
        for task in &mut bench.queues.tasks {
            task.allowed = CpuSet::parse_list("2,4").expect("list");
        }
        assert_eq!(bench.newidle(0), [], "{policy}: not for a newly idle CPU");
        let moved = pass(&mut bench, 0, 1, IdleType::Idle);
        assert!(!moved.is_empty() && moved.iter().all(|&(_, to)| to == 2), "{policy}: {moved:?}");
    }
}

#[test]
fn pinned_tasks_stretch_the_interval_and_mark_the_level_above() {
    for policy in EVERY {
        let mut bench = bench("2 sockets x 1 node x 4 cores; distances 21", policy);
        bench.put(1, 4);
        for task in &mut bench.queues.tasks {
            task.allowed = CpuSet::parse_list("1").expect("list");
        }
        let parent = bench.machine.domains().of(cpu(0))[1].clone();
        let group = bench.machine.domains().groups_of(&parent).next().expect("local").sgc();
        let mut intervals = Vec::new();
        for _ in 0..9 {
            assert_eq!(pass(&mut bench, 0, 0, IdleType::Idle), [], "{policy}");
            intervals.push(bench.state.domain(cpu(0), 0).balance_interval_ms);
        }
        assert_eq!(intervals, [8, 16, 32, 64, 128, 256, 512, 512, 512], "{policy}");
        assert!(bench.state.is_imbalanced(group), "{policy}");
        // Balanced again: the mark goes, and the interval stays below its maximum only.
        bench.queues.lists[1].clear();
        assert_eq!(pass(&mut bench, 0, 0, IdleType::Idle), [], "{policy}");
        assert!(!bench.state.is_imbalanced(group), "{policy}");
        assert_eq!(bench.state.domain(cpu(0), 0).balance_interval_ms, 512, "{policy}");
    }
}

#[test]
fn intervals_double_up_to_twice_the_weight_and_reset_on_a_move() {
    let mut bench = bench("1 socket x 8 cores", "6.1");
    let mut intervals = Vec::new();
    for _ in 0..3 {
        pass(&mut bench, 0, 0, IdleType::Idle);
        intervals.push(bench.state.domain(cpu(0), 0).balance_interval_ms);
    }
    assert_eq!(intervals, [16, 16, 16]);
    bench.put(1, 3);
    assert_eq!(pass(&mut bench, 0, 0, IdleType::Idle).len(), 1);
    assert_eq!(bench.state.domain(cpu(0), 0).balance_interval_ms, 8);
    pass(&mut bench, 2, 0, IdleType::NewlyIdle);
    assert_eq!(bench.state.domain(cpu(2), 0).balance_interval_ms, 8, "newly idle passes leave it");
}

#[test]
fn delayed_tasks_and_bound_kthreads_stay() {
    let mut bench = bench(PAIR, "7.2");
    bench.put(1, 4);
    for task in &mut bench.queues.tasks[1..3] {
        task.state.delayed = true;
    }
    assert_eq!(pass(&mut bench, 0, 0, IdleType::Idle), [(3, 0)]);
    let mut kthreads = self::bench(PAIR, "6.1");
    kthreads.put(1, 4);
    kthreads.queues.tasks[1].state.per_cpu_kthread = true;
    assert_eq!(pass(&mut kthreads, 0, 0, IdleType::Idle), [(3, 0), (2, 0)]);
}

#[test]
fn loads_too_large_for_the_imbalance() {
    // 2 tasks against 2 and a large third: the lead is 3000, half of it below the large task's load.
    for (policy, failed, moves) in
        [("5.9", 0, true), ("5.15", 0, false), ("5.15", 1, true), ("6.12", 0, false), ("6.12", 2, true)]
    {
        let mut bench = bench(PAIR, policy);
        bench.put(0, 2).put(1, 3);
        for task in &mut bench.queues.tasks {
            (task.load, task.util) = (1000, 600);
        }
        bench.queues.tasks[3].load = 4000;
        bench.queues.tasks[4].state.delayed = true;
        bench.queues.tasks[4].allowed = CpuSet::parse_list("1").expect("list");
        bench.state.domain(cpu(0), 0).nr_balance_failed = failed;
        // Loads 2000 and 6000, each to come to 4000: 2000 is to move.
        assert_eq!(imbalance(&mut bench, IdleType::Busy), Imbalance { unit: Unit::Load, amount: 2000 });
        let moved = pass(&mut bench, 0, 0, IdleType::Busy);
        assert_eq!(!moved.is_empty(), moves, "{policy} after {failed}: {moved:?}");
    }
}
