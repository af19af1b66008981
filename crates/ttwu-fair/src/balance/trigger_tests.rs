//! When a CPU balances at all: newly idle, by the tick, for others; and what it keeps in mind.

use super::harness::Bench;
use super::*;
use crate::{Kernel, ScanCost};

const EVERY: [&str; 9] = ["5.5", "5.9", "5.15", "5.19", "6.1", "eevdf-2023-04", "6.6", "6.12", "7.2"];
const PAIR: &str = "1 socket x 2 cores";
const NODES: &str = "2 sockets x 1 node x 4 cores; distances 21";

fn cpu(number: u16) -> CpuId {
    CpuId::new(number)
}

/// A machine without chance.
fn bench(topology: &str, policy: &str) -> Bench {
    let bench = Bench::new(topology, policy);
    if bench.policy.has(crate::Feature::NiRandom) {
        return Bench::new(topology, &format!("{policy} -NI_RANDOM"));
    }
    bench
}

/// CPU 0 goes idle beside a CPU with two tasks.
fn goes_idle(policy: &str, change: impl Fn(&mut Bench)) -> (NewIdle, u64) {
    let mut bench = bench(PAIR, policy);
    bench.put(1, 2);
    bench.state.overloaded = true;
    change(&mut bench);
    let answer = bench.balancer().newidle(cpu(0));
    (answer, bench.state.cpu(cpu(0)).idle_stamp_ns)
}

#[test]
pub(super) fn newidle_is_skipped_when_it_cannot_pay() {
    for policy in EVERY {
        let kernel = Policy::parse(policy).expect(policy).kernel();
        let avg_idle = |ns| move |bench: &mut Bench| bench.state.cpu(cpu(0)).scan.avg_idle_ns = ns;
        let pulls = |change: &dyn Fn(&mut Bench)| goes_idle(policy, change).0.moved;
        assert_eq!(pulls(&|_| {}), 1, "{policy}");
        assert_eq!(pulls(&|bench| bench.state.overloaded = false), 0, "{policy}: nobody has two");
        // Until v5.15 a fixed time; then that of the lowest level's longest pass.
        let fixed = kernel <= Kernel::V5_15;
        assert_eq!(pulls(&avg_idle(500_000)), 1, "{policy}: just the migration cost");
        assert_eq!(pulls(&avg_idle(499_999)), u32::from(!fixed), "{policy}: less");
        let costly = |ns, cost_ns| {
            move |bench: &mut Bench| {
                bench.state.cpu(cpu(0)).scan.avg_idle_ns = ns;
                bench.state.domain(cpu(0), 0).max_newidle_lb_cost_ns = cost_ns;
            }
        };
        assert_eq!(pulls(&costly(600_000, 600_001)), 0, "{policy}: dearer than the time there is");
        assert_eq!(pulls(&costly(600_000, 600_000)), 1, "{policy}: just");
        let pending = |bench: &mut Bench| {
            bench.queues.pending.insert(cpu(0));
        };
        assert_eq!(pulls(&pending), u32::from(kernel == Kernel::V5_5), "{policy}: a wake-up is on its way");
    }
}

#[test]
fn a_pull_ends_idleness_before_it_began() {
    for policy in EVERY {
        let (answer, stamp) = goes_idle(policy, |_| {});
        assert_eq!((answer.moved, answer.has_work, stamp), (1, true, 0), "{policy}");
        assert_eq!((answer.work.cpus, answer.work.tasks_moved), (2, 1), "{policy}");
        // Two CPUs at 50 ns each.
        assert_eq!(answer.cost_ns, 100, "{policy}");
        let (answer, stamp) = goes_idle(policy, |bench| bench.state.overloaded = false);
        assert_eq!((answer, stamp), (NewIdle::default(), 4_000_000_000_000), "{policy}: skipped");
        assert_eq!(answer.work.cpus, 0);
    }
}

#[test]
fn levels_are_climbed_while_time_and_idleness_last() {
    for policy in EVERY {
        let climb = |change: &dyn Fn(&mut Bench)| {
            let mut bench = bench(NODES, policy);
            // Six tasks in the other node; between nodes a lead of up to two tasks may stay.
            bench.put(5, 6);
            bench.state.overloaded = true;
            change(&mut bench);
            let answer = bench.balancer().newidle(cpu(0));
            (answer.moved > 0, bench.queues.costs.iter().map(|work| work.cpus).collect::<Vec<_>>())
        };
        assert_eq!(climb(&|_| {}), (true, vec![4, 8]), "{policy}");
        // The first pass costs 200 ns.
        let second = |ns| move |bench: &mut Bench| bench.state.domain(cpu(0), 1).max_newidle_lb_cost_ns = ns;
        assert_eq!(climb(&second(999_800)), (true, vec![4, 8]), "{policy}");
        assert_eq!(climb(&second(999_801)), (false, vec![4]), "{policy}");
        // Work next door: the node is not left.
        let near = |bench: &mut Bench| {
            bench.put(1, 3);
        };
        assert_eq!(climb(&near), (true, vec![4]), "{policy}");
    }
}

#[test]
fn the_refresh_is_counted_with_the_first_level() {
    for policy in EVERY {
        let mut bench = bench(NODES, policy);
        bench.state.overloaded = true;
        bench.balancer().newidle(cpu(0));
        let refreshed: Vec<bool> = bench.queues.costs.iter().map(|work| work.refreshed).collect();
        assert_eq!(refreshed, [bench.policy.kernel() > Kernel::V5_15, false], "{policy}");
        assert_eq!(bench.queues.refreshed, [0], "{policy}");
        assert_eq!(bench.state.domain(cpu(0), 0).max_newidle_lb_cost_ns, 200, "{policy}");
        assert_eq!(bench.state.domain(cpu(0), 1).max_newidle_lb_cost_ns, 400, "{policy}");
        assert_eq!(bench.state.cpu(cpu(0)).max_idle_balance_cost_ns, 500_000, "{policy}");
        // The pass of the whole machine found no queue of two.
        assert!(!bench.state.overloaded, "{policy}");
    }
}

#[test]
fn success_ratios() {
    let mut bench = Bench::new(PAIR, "6.12");
    let domain = bench.state.domain(cpu(0), 0);
    // From 512 calls and 256 successes: 512 failures more leave a ratio of a quarter.
    for _ in 0..511 {
        domain.count_newidle(false, 0, 0);
    }
    assert_eq!((domain.newidle_calls, domain.newidle_ratio), (1023, 512));
    domain.count_newidle(false, 0, 0);
    assert_eq!((domain.newidle_calls, domain.newidle_success, domain.newidle_ratio), (512, 128, 256));
    // 512 successes of weight 2 make the chance certain.
    for _ in 0..512 {
        domain.count_newidle(false, 2, 0);
    }
    assert_eq!((domain.newidle_calls, domain.newidle_success, domain.newidle_ratio), (512, 576, 1152));
    // By time: 2³² ns for the counted passes add 1024.
    domain.newidle_success = 0;
    for _ in 0..512 {
        domain.count_newidle(true, 0, 1 << 31);
    }
    assert_eq!((domain.newidle_ratio, domain.newidle_stamp_ns), (512, 1 << 31));
    for _ in 0..512 {
        domain.count_newidle(true, 0, 1 << 40);
    }
    assert_eq!(domain.newidle_ratio, 1024);
}

#[test]
fn chance_follows_the_ratio() {
    for (policy, ratio, made) in [
        ("6.12", 0, 0..=40),
        ("6.12", 512, 440..=590),
        ("6.12", 1023, 1000..=1000),
        ("7.2", 1024, 1000..=1000),
    ] {
        let mut bench = Bench::new(PAIR, policy);
        let (mut passes, mut calls) = (0, 0);
        for _ in 0..1000 {
            bench.state.overloaded = true;
            let domain = bench.state.domain(cpu(0), 0);
            (domain.newidle_ratio, domain.newidle_calls) = (ratio, 0);
            bench.queues.costs.clear();
            bench.balancer().newidle(cpu(0));
            passes += bench.queues.costs.len();
            calls += bench.state.domain(cpu(0), 0).newidle_calls;
        }
        assert!(made.contains(&passes), "{policy} at {ratio}: {passes} of 1000");
        assert_eq!(calls, 1000, "made or not, each counts");
    }
    // A success at ratio 512 stands for two.
    let mut bench = Bench::new(PAIR, "6.12");
    bench.put(1, 3);
    while bench.queues.attached.is_empty() {
        bench.state.overloaded = true;
        bench.state.domain(cpu(0), 0).newidle_success = 0;
        bench.balancer().newidle(cpu(0));
    }
    assert_eq!(bench.state.domain(cpu(0), 0).newidle_success, (1024 + 513 / 2) / 513);
}

#[test]
fn costs_decay_once_a_second() {
    for policy in EVERY {
        let mut bench = bench(PAIR, policy);
        let stamps = bench.policy.kernel() > Kernel::V5_15;
        bench.state.domain(cpu(0), 0).note_cost(&bench.policy, 1_000_000, 2000, 250);
        let domain = *bench.state.domain(cpu(0), 0);
        assert_eq!(domain.max_newidle_lb_cost_ns, 1_000_000, "{policy}");
        // The stamp is 1000 from boot, or 2000 from the raise.
        assert_eq!(domain.last_decay, if stamps { 2000 } else { 1000 }, "{policy}");
        let domain = bench.state.domain(cpu(0), 0);
        domain.last_decay = 2000;
        assert!(!domain.decay_cost(2250, 250), "{policy}: just a second");
        assert!(domain.decay_cost(2251, 250), "{policy}");
        assert_eq!(domain.max_newidle_lb_cost_ns, 988_281, "{policy}: 253/256");
        // The pass that decays also lowers the limit of the mean idle time, to no less than the migration cost.
        domain.last_decay = 0;
        bench.state.cpu(cpu(0)).max_idle_balance_cost_ns = 5_000_000;
        bench.balancer().rebalance(cpu(0), IdleType::Idle);
        assert_eq!(bench.state.cpu(cpu(0)).max_idle_balance_cost_ns, 988_281 * 253 / 256, "{policy}");
    }
}

#[test]
fn mean_idle_time() {
    for (policy, before, idle, after) in [
        ("5.5", 1_000_000, 0, 875_000),
        ("6.1", 1_000_000, 0, 875_000),
        // −1 rounds down in v5.5, to zero later.
        ("5.5", 1_000, 999, 999),
        ("5.9", 1_000, 999, 1_000),
        ("7.2", 1_000, 1_009, 1_001),
        ("6.12", 900_000, 9_000_000, 1_000_000),
    ] {
        let mut bench = bench(PAIR, policy);
        let policy_value = bench.policy.clone();
        bench.state.cpu(cpu(0)).scan.avg_idle_ns = before;
        bench.state.cpu(cpu(0)).idle_stamp_ns = 50;
        bench.state.end_idle(&policy_value, cpu(0), 50 + idle, 77);
        let state = *bench.state.cpu(cpu(0));
        assert_eq!((state.scan.avg_idle_ns, state.idle_stamp_ns), (after, 0), "{policy}: {before} {idle}");
        let ages = (Kernel::V5_15..=Kernel::V6_6).contains(&policy_value.kernel());
        let expected = if ages { (after / 2, 77) } else { (ScanCost::BOOT.wake_avg_idle_ns, 0) };
        assert_eq!((state.scan.wake_avg_idle_ns, state.scan.wake_stamp), expected, "{policy}");
        // Not idle: nothing happens.
        bench.state.end_idle(&policy_value, cpu(0), 999_999, 78);
        assert_eq!(*bench.state.cpu(cpu(0)), state, "{policy}");
    }
}

#[test]
pub(super) fn one_cpu_of_a_group_balances() {
    let threads = "2 sockets x 1 node x 2 cores x 2 threads; threads adjacent; distances 21";
    for policy in EVERY {
        let kernel = Policy::parse(policy).expect(policy).kernel();
        let chosen = |busy: &[u16], level: usize, idle: IdleType| -> Vec<u16> {
            (0..4)
                .filter(|&number| {
                    let mut bench = bench(threads, policy);
                    for &cpu in busy {
                        bench.put(cpu, 1);
                    }
                    !bench.balancer().pass(cpu(number), level, idle).refused
                })
                .collect()
        };
        let node = 2;
        assert_eq!(chosen(&[0, 1, 2, 3], node, IdleType::Busy), [0], "{policy}: all busy: the first");
        // CPU 1 is an idle thread of a busy core; from v6.6 on the wholly idle core goes first.
        let core = if kernel >= Kernel::V6_6 { 2 } else { 1 };
        assert_eq!(chosen(&[0], node, IdleType::Idle), [core], "{policy}: an idle core");
        assert_eq!(chosen(&[0, 3], node, IdleType::Idle), [1], "{policy}: idle threads only");
        assert_eq!(chosen(&[0, 1], node, IdleType::Idle), [2], "{policy}: one idle core");
        assert_eq!(chosen(&[0], 0, IdleType::Idle), [0, 1, 2, 3], "{policy}: SMT: each its own group");
        let refuses = if kernel >= Kernel::V6_1 { vec![1, 2, 3] } else { vec![0, 1, 2, 3] };
        assert_eq!(chosen(&[0], node, IdleType::NewlyIdle), refuses, "{policy}: got work meanwhile");
    }
}

#[test]
pub(super) fn periodic_passes_are_made_when_due() {
    for policy in EVERY {
        let mut bench = bench(NODES, policy);
        bench.put(0, 1).put(1, 2);
        for level in 0..2 {
            bench.state.domain(cpu(2), level).last_balance = bench.queues.jiffies;
        }
        // An idle CPU of a 4-CPU LLC: 4 ms, one jiffy.
        bench.balancer().softirq(cpu(2));
        assert_eq!(bench.queues.attached, [], "{policy}: not due");
        assert_eq!(bench.state.cpu(cpu(2)).next_balance, bench.queues.jiffies + 1, "{policy}");
        assert!(!bench.balancer().tick(cpu(2)).balance, "{policy}");
        bench.queues.jiffies += 1;
        assert!(bench.balancer().tick(cpu(2)).balance, "{policy}");
        bench.balancer().softirq(cpu(2));
        assert_eq!(
            bench.queues.attached,
            [(1 + 1, 2)],
            "{policy}: the first from the back that does not run"
        );
        // It is busy now: 4 ms times the factor, less a jiffy since v5.10.
        let busy = if bench.policy.kernel() <= Kernel::V5_9 { 32 } else { 15 };
        assert_eq!(bench.state.cpu(cpu(2)).next_balance, bench.queues.jiffies + busy, "{policy}");
    }
}

#[test]
pub(super) fn a_kick_needs_a_reason_and_somebody_idle() {
    for policy in EVERY {
        let kick = |change: &dyn Fn(&mut Bench)| {
            let mut bench = bench(NODES, policy);
            for idle in [1, 2, 3, 5, 6, 7] {
                bench.balancer().nohz_enter(cpu(idle));
            }
            change(&mut bench);
            bench.balancer().tick(cpu(0)).kick.map(|(cpu, reason)| (cpu.number(), reason))
        };
        let two = |bench: &mut Bench| _ = bench.put(0, 2);
        assert_eq!(kick(&two), Some((1, KickReason::Overloaded)), "{policy}");
        assert_eq!(kick(&|bench| _ = bench.put(0, 1)), None, "{policy}: one task");
        assert_eq!(kick(&|_| {}), None, "{policy}: an idle CPU's tick");
        let early = |bench: &mut Bench| {
            bench.put(0, 2);
            bench.state.nohz_next_balance = bench.queues.jiffies + 1;
        };
        assert_eq!(kick(&early), None, "{policy}: not due");
        // CPU 1 was woken and has not had a tick yet.
        let woken = |bench: &mut Bench| _ = bench.put(0, 2).put(1, 1);
        assert_eq!(kick(&woken), Some((2, KickReason::Overloaded)), "{policy}");
        let reduced = |bench: &mut Bench| {
            bench.put(0, 1);
            bench.queues.capacity[0] = 800;
        };
        assert_eq!(kick(&reduced), Some((1, KickReason::CapacityReduced)), "{policy}");
        let busy_llc = |bench: &mut Bench| {
            bench.put(0, 1).put(1, 1);
            bench.balancer().nohz_exit(cpu(1));
        };
        assert_eq!(kick(&busy_llc), Some((2, KickReason::LlcBusy)), "{policy}");
        let none = |bench: &mut Bench| {
            bench.put(0, 2);
            for idle in 1..8 {
                bench.balancer().nohz_exit(cpu(idle));
            }
        };
        assert_eq!(kick(&none), None, "{policy}: no tickless CPU");
    }
}

#[test]
fn the_kicked_cpu_balances_for_all_itself_last() {
    let mut bench = bench("1 socket x 8 cores", "6.1");
    bench.put(0, 6);
    for idle in [2, 3, 5, 7] {
        bench.balancer().nohz_enter(cpu(idle));
    }
    bench.balancer().nohz_pass(cpu(3));
    assert_eq!(bench.queues.refreshed, [5, 7, 2, 3]);
    let went: Vec<u16> = bench.queues.attached.iter().map(|&(_, to)| to).collect();
    // Half of the lead each time: 6 to 0, 3 to 0 (CPU 0), 3 to 0 (CPU 5), 2 to 0.
    assert_eq!(went, [5, 5, 5, 7, 2, 3]);
}

#[test]
fn a_pass_for_others_ends_with_work_of_its_own() {
    let mut bench = bench("1 socket x 8 cores", "6.1");
    for idle in [2, 3, 5] {
        bench.balancer().nohz_enter(cpu(idle));
    }
    bench.put(3, 1);
    assert_eq!(bench.balancer().nohz_pass(cpu(3)), Work::default(), "busy when the interrupt arrives");
    assert_eq!(bench.queues.refreshed, []);
}

#[test]
fn the_stopper_is_asked_after_failures() {
    for policy in EVERY {
        let asked = |failed: u32, change: &dyn Fn(&mut Bench)| {
            let mut bench = bench(PAIR, policy);
            bench.put(1, 2);
            // The one that could go is bound elsewhere, so that only the running one is left.
            bench.queues.tasks[1].state.delayed = true;
            bench.queues.tasks[1].allowed = ttwu_model::CpuSet::first(0);
            bench.state.domain(cpu(0), 0).nr_balance_failed = failed;
            change(&mut bench);
            bench.balancer().pass(cpu(0), 0, IdleType::Idle);
            bench
        };
        // cache_nice_tries is 1: the fourth failure in a row asks.
        assert_eq!(asked(2, &|_| {}).queues.requests, [], "{policy}");
        let mut bench = asked(3, &|_| {});
        let request = ActiveBalance { src: cpu(1), dst: cpu(0) };
        assert_eq!(bench.queues.requests, [request], "{policy}");
        // Asked once only.
        bench.state.domain(cpu(0), 0).nr_balance_failed = 9;
        bench.balancer().pass(cpu(0), 0, IdleType::Idle);
        assert_eq!(bench.queues.requests.len(), 1, "{policy}");
        // The stopper has taken the CPU from the task.
        bench.queues.tasks[0].state.running = false;
        assert_eq!(bench.balancer().active_balance(request).map(|id| id.0), Some(0), "{policy}");
        assert_eq!(bench.counts(), [1, 1], "{policy}");
        assert_eq!(bench.state.domain(cpu(0), 0).nr_balance_failed, 0, "{policy}");
        // The running task may not come here.
        let pinned = |bench: &mut Bench| bench.queues.tasks[0].allowed = ttwu_model::CpuSet::first(0);
        assert_eq!(asked(9, &pinned).queues.requests, [], "{policy}");
        // A single task on a CPU of which others take a third.
        let single = |bench: &mut Bench| {
            bench.queues.lists[1].pop_front();
            bench.queues.capacity[1] = 680;
        };
        let requests = asked(0, &single).queues.requests;
        assert_eq!(requests, [], "{policy}: a group with one task is not relieved");
    }
}

#[test]
fn idle_cores_are_told() {
    let mut bench = bench("1 socket x 2 cores x 2 threads; threads adjacent", "6.1");
    let machine = bench.machine.clone();
    bench.state.begin_idle(&machine, cpu(0), |_| false);
    assert!(!bench.state.llc(&machine, cpu(3)).has_idle_cores);
    bench.state.begin_idle(&machine, cpu(0), |sibling| sibling == cpu(1));
    assert!(bench.state.llc(&machine, cpu(3)).has_idle_cores);
    let mut single = self::bench(PAIR, "6.1");
    let machine = single.machine.clone();
    single.state.begin_idle(&machine, cpu(0), |_| true);
    assert!(!single.state.llc(&machine, cpu(0)).has_idle_cores, "no SMT, no flag");
}

#[test]
fn state_is_small() {
    let levels = 7;
    let bytes = size_of::<DomainState>() * levels + size_of::<CpuState>() + size_of::<LlcState>();
    assert!(bytes <= 1024, "{bytes} bytes a CPU");
}
