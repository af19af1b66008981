//! Boundaries of single rules, the slow path, and the proof that broken placement rules are noticed.

use super::*;
use crate::mutation::Mutation;
use crate::{Machine, Policy};
use tests::{A, B, CLUSTERS, Case, ask, case, check};
use ttwu_model::{SgcId, Topology};

/// Per-CPU answers of the slow path.
#[derive(Clone)]
struct Slow {
    stats: Vec<CpuStats>,
    latency: Vec<Option<u64>>,
    stamp: Vec<u64>,
    sched_idle: CpuSet,
}

impl Slow {
    /// All idle, in one idle state, and since the same time.
    fn idle(cpus: usize) -> Self {
        let stats = CpuStats { idle: true, capacity: 1024, ..CpuStats::default() };
        let (latency, stamp) = (vec![Some(2)], vec![1000]);
        Self {
            stats: vec![stats; cpus],
            latency: latency.repeat(cpus),
            stamp: stamp.repeat(cpus),
            sched_idle: CpuSet::new(),
        }
    }

    /// `nr` tasks of this load and utilisation each.
    fn busy(mut self, cpu: usize, nr: u32, load: u64, util: u64) -> Self {
        let n = u64::from(nr);
        let sum =
            CpuStats { load: n * load, util: (n * util).min(1024), runnable: n * util, ..self.stats[cpu] };
        self.stats[cpu] = CpuStats { nr_running: nr, h_nr: nr, idle: false, ..sum };
        self
    }
}

impl SlowView for Slow {
    fn stats(&mut self, cpu: CpuId) -> CpuStats {
        self.stats[cpu.index()]
    }
    fn imbalanced(&mut self, _: SgcId) -> bool {
        false
    }
    fn available_idle(&mut self, cpu: CpuId) -> bool {
        self.stats[cpu.index()].idle
    }
    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.sched_idle.contains(cpu)
    }
    fn load(&mut self, cpu: CpuId) -> u64 {
        self.stats[cpu.index()].load
    }
    fn exit_latency(&mut self, cpu: CpuId) -> Option<u64> {
        self.latency[cpu.index()]
    }
    fn idle_stamp(&mut self, cpu: CpuId) -> u64 {
        self.stamp[cpu.index()]
    }
}

/// Where a child of a task on CPU 0 goes.
fn fork(topology: &str, policy: &str, slow: &Slow) -> u16 {
    fork_of(&Topology::parse(topology).expect(topology), policy, slow)
}

fn fork_of(topology: &Topology, policy: &str, slow: &Slow) -> u16 {
    let policy = Policy::parse(policy).expect(policy);
    let machine = Machine::new(topology, &policy);
    let wakeup = Wakeup {
        kind: Kind::Fork,
        this_cpu: CpuId::new(0),
        prev_cpu: CpuId::new(0),
        sync: false,
        current_cpu: false,
        allowed: topology.online(),
        wakee_is_idle_policy: false,
        waker_is_per_cpu_kthread: false,
        waker_is_idle_task: false,
        in_task: true,
        util: 0,
    };
    let (mut waker, wakee) = (Flips::default(), Flips::default());
    let (mut recent, mut waker_recent) = (CpuId::new(0), CpuId::new(0));
    let mut memory = Memory {
        waker: &mut waker,
        wakee: &wakee,
        wakee_key: 1,
        recent_used_cpu: &mut recent,
        waker_recent_used_cpu: &mut waker_recent,
        jiffies: 1,
    };
    let mut view = case(A, "6.1", 0, 0, "").state;
    let answer =
        place(&policy, &machine, &wakeup, &mut memory, &mut view, &mut slow.clone(), &mut |_: Check| {});
    answer.cpu.number()
}

const EVERY: [&str; 9] = ["5.5", "5.9", "5.15", "5.19", "6.1", "eevdf-2023-04", "6.6", "6.12", "7.2"];

#[test]
fn a_child_goes_to_the_shallowest_idle_cpu_then_to_the_latest() {
    let cores = "1 socket x 8 cores";
    for policy in EVERY {
        let busy = Slow::idle(8).busy(0, 1, 1024, 500);
        // Groups of one CPU each are equal: the first in ring order is kept.
        assert_eq!(fork(cores, policy, &busy), 1, "{policy}");
        // Within a group of CPUs: the parent's cluster and node lose to an idle one, then idle states decide.
        let mut slow = Slow::idle(8).busy(0, 1, 1024, 500);
        for cpu in 1..4 {
            slow = slow.busy(cpu, 1, 1024, 500);
        }
        let topology = "2 sockets x 1 node x 4 cores; distances 21";
        slow.latency = vec![Some(133); 8];
        slow.stamp = vec![1000, 1000, 1000, 1000, 1004, 1007, 1006, 1005];
        if matches!(policy, "5.19") {
            // imb_numa_nr is 1 and 4 tasks run: no allowance either.
            assert_eq!(fork(topology, policy, &slow), 5, "{policy}");
        }
        assert_eq!(fork(topology, policy, &slow), 5, "{policy}: the latest");
        slow.latency[7] = Some(2);
        assert_eq!(fork(topology, policy, &slow), 7, "{policy}: the shallowest");
        slow.latency = vec![None; 8];
        assert_eq!(fork(topology, policy, &slow), 5, "{policy}: without idle states, the latest");
        slow.latency = vec![Some(133); 8];
        slow.stamp = vec![1000; 8];
        assert_eq!(fork(topology, policy, &slow), 4, "{policy}: of equals the first");
    }
}

#[test]
fn a_cpu_with_sched_idle_tasks_is_taken_at_once() {
    for policy in EVERY {
        // The other node is less loaded; there the SCHED_IDLE tasks have most of the load, and nobody is idle.
        let mut slow = Slow::idle(4).busy(0, 2, 1024, 600).busy(1, 2, 1024, 600);
        slow = slow.busy(2, 1, 10, 500).busy(3, 1, 500, 500);
        assert_eq!(fork(TWO_NODES, policy, &slow), 2, "{policy}: the least loaded");
        slow.sched_idle.insert(CpuId::new(3));
        assert_eq!(fork(TWO_NODES, policy, &slow), 3, "{policy}");
    }
}

const TWO_NODES: &str = "2 sockets x 1 node x 2 cores; distances 21";

#[test]
fn groups_compete_by_idle_cpus_then_by_utilisation() {
    let topology = "3 sockets x 2 cores";
    for policy in EVERY {
        // One CPU busy in each socket: the child stays, and goes to the idle CPU beside its parent.
        let even = Slow::idle(6).busy(0, 1, 1024, 500).busy(2, 1, 1024, 500).busy(4, 1, 1024, 400);
        assert_eq!(fork(topology, policy, &even), 1, "{policy}: a tie stays");
        // The parent's socket full: of the two others the less used one, in v5.5 the first.
        let full = even.busy(1, 1, 1024, 500);
        assert_eq!(fork(topology, policy, &full), if policy == "5.5" { 3 } else { 5 }, "{policy}: full");
    }
}

#[test]
fn loaded_groups_keep_children_within_the_imbalance() {
    // All CPUs have two tasks of 600, more than there is: loads are compared.
    for (topology, numa) in [("2 sockets x 2 cores", false), (TWO_NODES, true)] {
        for policy in EVERY.into_iter().filter(|&policy| policy != "5.5") {
            let of = |here: u64, there: u64| {
                let mut slow = Slow::idle(4);
                for cpu in 0..4 {
                    slow = slow.busy(cpu, 2, if cpu < 2 { here } else { there }, 600);
                }
                fork(topology, policy, &slow) >= 2
            };
            // Averages are twice the load; the lead must exceed the percentage.
            let pct = if policy == "5.9" { 125 } else { 117 };
            assert!(!of(1000, 1000), "{policy}: equal");
            assert!(!of(50 * pct, 5000), "{policy}: just the percentage");
            assert!(of(50 * pct + 1, 5000), "{policy}: more");
            // Between nodes a small lead in all does not count.
            assert_eq!(of(100, 20), !numa, "{policy}: little in all");
        }
    }
}

#[test]
fn sis_prop_ages_the_allowance_of_a_waker_that_is_not_woken() {
    // 8 CPUs, 1600 ns left and 100 ns a scan: 8·1600/101 is 126, after 3 jiffies 8·200/101 is 15, after 9 the floor of 4.
    for (stamp, looked_at) in [(1, 8), (0, 8)] {
        let mut case = case(A, "5.15", 6, 6, "");
        case.state.cost =
            ScanCost { avg_idle_ns: 0, wake_avg_idle_ns: 404, wake_stamp: stamp, avg_scan_cost_ns: 500 };
        let (answer, ..) = ask(&mut case);
        // 8·404/501 is 6; after one jiffy 8·202/501 is 3, so the floor.
        assert_eq!(answer.scanned, if stamp == 1 { 5 } else { 3 }, "stamp {stamp} of {looked_at}");
        assert_eq!(answer.scan, ScanEnd::Budget);
    }
}

#[test]
fn whole_cores_go_first_while_the_flag_is_set() {
    let threads = "1 socket x 4 cores x 2 threads; threads adjacent";
    for policy in ["5.15", "5.19", "6.1", "6.12", "7.2"] {
        // CPU 3 is an idle thread of a busy core; core 6, 7 is idle.
        let mut with_flag = Case { sync: true, ..case(threads, policy, 0, 0, "3,6,7") };
        with_flag.state.idle_cores = true;
        check(&with_flag, 6, Rule::CoreIdle);
        let mut without = with_flag.clone();
        without.state.idle_cores = false;
        check(&without, 3, Rule::CpuIdle);
        // The flag was wrong: the thread is taken after all, and the flag goes.
        let mut stale = case(threads, policy, 0, 0, "3");
        stale.state.idle_cores = true;
        check(&stale, 3, Rule::CpuIdle);
        ask(&mut stale);
        assert!(stale.state.cleared, "{policy}");
    }
}

#[test]
fn guesses_respect_affinity() {
    let threads = "1 socket x 4 cores x 2 threads; threads adjacent";
    for policy in ["5.15", "6.1", "6.12"] {
        let mut sibling = case(threads, policy, 0, 0, "1,5");
        sibling.allowed = CpuSet::parse_list("0,2-7").expect("list");
        check(&sibling, 5, Rule::CpuIdle);
        let mut recent = Case { recent: 3, ..case(A, policy, 2, 2, "3,6") };
        recent.allowed = CpuSet::parse_list("0-2,4-7").expect("list");
        check(&recent, 6, Rule::CpuIdle);
        recent.allowed = CpuSet::first(8);
        check(&recent, 3, Rule::RecentIdle);
        let (_, _, remembered) = ask(&mut Case { prev: 4, ..recent.clone() });
        assert_eq!(remembered, 4, "{policy}");
    }
}

#[test]
fn a_kthread_stacks_what_ran_on_its_own_cpu_only() {
    for policy in ["5.15", "6.1", "7.2"] {
        let other = Case { kthread: true, ..case(A, policy, 4, 5, "7") };
        let (answer, ..) = ask(&mut other.clone());
        assert_eq!((answer.cpu.number(), answer.rule), (7, Rule::CpuIdle), "{policy}");
    }
}

#[test]
fn a_sync_waker_pulls_when_it_is_alone() {
    for (running, affine) in [(1, Affine::SyncAlone), (2, Affine::WeightPrev)] {
        let mut case = Case { sync: true, ..case(B, "6.1", 1, 6, "") };
        case.state.nr[1] = running;
        case.state.load[1] = 500;
        let (answer, ..) = ask(&mut case);
        assert_eq!(answer.affine, affine, "{running}");
    }
}

#[test]
fn a_scan_meets_each_cpu_once() {
    for policy in ["6.12", "7.2"] {
        let sync = Case { sync: true, ..case(CLUSTERS, policy, 1, 1, "") };
        assert_eq!(check(&sync, 1, Rule::TargetBusy), [1, 2, 3, 0, 1, 4, 5, 6, 7], "{policy}");
    }
    // An idle previous CPU of the other cluster waits until the target's own was searched.
    let kept = Case { sync: true, ..case(CLUSTERS, "6.12", 1, 6, "2,6") };
    check(&kept, 2, Rule::ClusterIdle);
}

#[test]
fn machines_of_512_cpus() {
    let text = "arch x86; 2 sockets x 1 node x 16 llcs x 8 cores x 2 threads; distances 32; reclaim 32";
    let one_llc = "arch generic; 1 socket x 512 cores; llc socket";
    let topology = Topology::parse(one_llc).expect("valid");
    assert_eq!(topology.online().len(), 512);
    for policy in EVERY {
        // The only idle CPU is the last, or just before the target: the whole LLC is searched.
        for idle in ["511", "299", "0"] {
            let mut question = Case { sync: true, ..case(one_llc, policy, 300, 300, idle) };
            question.state.cost.avg_idle_ns = 1 << 40;
            question.state.cost.wake_avg_idle_ns = 1 << 40;
            let (answer, looked, _) = ask(&mut question);
            assert_eq!(answer.cpu.to_string(), idle, "{policy}");
            let old = matches!(policy, "5.5" | "5.9");
            let cpu: usize = idle.parse().expect("a number");
            // From the target (old) or the one after it, round to the idle one; the target itself is asked first.
            let steps = (cpu + 512 - 300) % 512 + usize::from(old);
            assert_eq!(looked.len(), steps + 1, "{policy}: {idle}");
        }
        let mut slow = Slow::idle(512);
        for cpu in 0..256 {
            slow = slow.busy(cpu, 1, 1024, 500);
        }
        slow.stamp[401] = 2000;
        let chosen = fork(text, policy, &slow);
        assert!(chosen >= 256 || chosen == 0, "{policy}: {chosen}");
    }
}

#[test]
fn broken_rules_are_noticed() {
    let checks: Vec<fn()> = vec![
        a_child_goes_to_the_shallowest_idle_cpu_then_to_the_latest,
        a_cpu_with_sched_idle_tasks_is_taken_at_once,
        groups_compete_by_idle_cpus_then_by_utilisation,
        loaded_groups_keep_children_within_the_imbalance,
        sis_prop_ages_the_allowance_of_a_waker_that_is_not_woken,
        whole_cores_go_first_while_the_flag_is_set,
        guesses_respect_affinity,
        a_kthread_stacks_what_ran_on_its_own_cpu_only,
        a_sync_waker_pulls_when_it_is_alone,
        a_scan_meets_each_cpu_once,
        tests::scenario_03_scan_from_the_sync_waker_within_its_budget,
        tests::scenarios_05_to_07_an_interrupt_on_an_idle_cpu_of_the_other_llc,
        tests::scenario_08_sync_pull_across_llcs_then_a_scan,
        tests::scenarios_09_to_11_a_bound_kworker_wakes_on_its_own_cpu,
        tests::scenarios_12_and_13_clusters,
        tests::scenario_14_a_wide_waker_searches_at_prev,
        tests::sis_prop_looks_at_one_cpu_less_than_its_budget,
        tests::sis_prop_budgets,
        tests::weights,
        tests::an_interrupt_on_an_idle_cpu_under_each_proposal,
        tests::a_wake_up_on_the_wake_list,
        tests::the_wake_list_across_llcs_and_to_oneself,
        wide::tests::wide_by_llc_and_flips,
        wide::tests::flips_count_changes_and_halve_once,
        tests::laws_over_random_questions,
    ];
    let unnoticed: Vec<Mutation> =
        Mutation::PLACEMENT.into_iter().filter(|mutation| !mutation.is_caught(&checks)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} go unnoticed");
}
