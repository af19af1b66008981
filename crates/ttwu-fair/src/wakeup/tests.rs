//! The placement scenarios and worked examples of the specification, and laws that hold for all of them.

use super::*;
use crate::{Machine, Policy};
use ttwu_model::Topology;
use ttwu_testing::Rng;

/// A machine state in which a CPU runs one nice-0 task unless it is said to be idle.
#[derive(Clone)]
pub(super) struct State {
    pub(super) idle: CpuSet,
    pub(super) sched_idle: CpuSet,
    pub(super) nr: Vec<u32>,
    pub(super) load: Vec<u64>,
    pub(super) waker_load: u64,
    pub(super) wakee_load: u64,
    pub(super) idle_cores: bool,
    pub(super) nr_idle_scan: u32,
    pub(super) cost: ScanCost,
    pub(super) cleared: bool,
}

impl State {
    fn new(cpus: usize, idle: &str) -> Self {
        let idle = CpuSet::parse_list(idle).expect("list");
        let nr = (0..cpus).map(|cpu| u32::from(!idle.contains(CpuId::new(cpu as u16)))).collect();
        Self {
            idle,
            sched_idle: CpuSet::new(),
            nr,
            load: vec![0; cpus],
            waker_load: 0,
            wakee_load: 0,
            idle_cores: false,
            nr_idle_scan: cpus as u32,
            cost: ScanCost::BOOT,
            cleared: false,
        }
    }
}

impl View for State {
    fn available_idle(&mut self, cpu: CpuId) -> bool {
        self.idle.contains(cpu)
    }
    fn sched_idle(&mut self, cpu: CpuId) -> bool {
        self.sched_idle.contains(cpu)
    }
    fn nr_running(&mut self, cpu: CpuId) -> u32 {
        self.nr[cpu.index()]
    }
    fn nr_delayed(&mut self, _: CpuId) -> i64 {
        0
    }
    fn load(&mut self, cpu: CpuId) -> u64 {
        self.load[cpu.index()]
    }
    fn capacity(&mut self, _: CpuId) -> u64 {
        1024
    }
    fn task_load(&mut self, whose: TaskLoad) -> u64 {
        match whose {
            TaskLoad::Waker => self.waker_load,
            TaskLoad::Wakee => self.wakee_load,
        }
    }
    fn has_idle_cores(&mut self, _: CpuId) -> bool {
        self.idle_cores
    }
    fn clear_idle_cores(&mut self, _: CpuId) {
        self.cleared = true;
    }
    fn nr_idle_scan(&mut self, _: CpuId) -> u32 {
        self.nr_idle_scan
    }
    fn scan_cost(&mut self, _: CpuId) -> &mut ScanCost {
        &mut self.cost
    }
    fn scan_ns(&mut self, inspected: u32) -> u64 {
        u64::from(inspected) * 50
    }
}

/// The slow path of an idle machine; only asked where a test forks.
struct AllIdle;

impl SlowView for AllIdle {
    fn stats(&mut self, _: CpuId) -> CpuStats {
        CpuStats { idle: true, capacity: 1024, ..CpuStats::default() }
    }
    fn imbalanced(&mut self, _: ttwu_model::SgcId) -> bool {
        false
    }
    fn available_idle(&mut self, _: CpuId) -> bool {
        true
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
    fn idle_stamp(&mut self, cpu: CpuId) -> u64 {
        1 + u64::from(cpu.number())
    }
}

/// One question with its machine state; fields are changed by the tests.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) policy: Policy,
    pub(super) topology: Topology,
    pub(super) this: u16,
    pub(super) prev: u16,
    pub(super) recent: u16,
    pub(super) sync: bool,
    pub(super) irq: bool,
    pub(super) kthread: bool,
    pub(super) current_cpu: bool,
    pub(super) allowed: CpuSet,
    pub(super) flips: (u32, u32),
    pub(super) state: State,
}

pub(super) const A: &str = "1 socket x 8 cores";
pub(super) const B: &str = "2 sockets x 4 cores";

pub(super) fn case(machine: &str, policy: &str, this: u16, prev: u16, idle: &str) -> Case {
    let topology = Topology::parse(machine).expect(machine);
    let cpus = topology.cpu_bound();
    Case {
        policy: Policy::parse(policy).expect(policy),
        topology,
        this,
        prev,
        recent: prev,
        sync: false,
        irq: false,
        kthread: false,
        current_cpu: false,
        allowed: CpuSet::first(cpus),
        flips: (0, 0),
        state: State::new(cpus, idle),
    }
}

/// The answer, the CPUs looked at in order, and the wakee's new `recent_used_cpu`.
pub(super) fn ask(case: &mut Case) -> (Placement, Vec<u16>, u16) {
    let machine = Machine::new(&case.topology, &case.policy);
    let wakeup = Wakeup {
        kind: Kind::Wakeup,
        this_cpu: CpuId::new(case.this),
        prev_cpu: CpuId::new(case.prev),
        sync: case.sync,
        current_cpu: case.current_cpu,
        allowed: &case.allowed,
        wakee_is_idle_policy: false,
        waker_is_per_cpu_kthread: case.kthread,
        waker_is_idle_task: case.state.idle.contains(CpuId::new(case.this)),
        in_task: !case.irq,
        util: 0,
    };
    let mut waker = Flips { flips: case.flips.0, last_wakee: Some(7), decayed_at: 0 };
    let wakee = Flips { flips: case.flips.1, ..Flips::default() };
    let (mut recent, mut waker_recent) = (CpuId::new(case.recent), CpuId::new(case.this));
    let mut memory = Memory {
        waker: &mut waker,
        wakee: &wakee,
        wakee_key: 7,
        recent_used_cpu: &mut recent,
        waker_recent_used_cpu: &mut waker_recent,
        jiffies: 1,
    };
    let mut looked = Vec::new();
    let mut checks = |check: Check| looked.push(check.cpu.number());
    let answer =
        place(&case.policy, &machine, &wakeup, &mut memory, &mut case.state, &mut AllIdle, &mut checks);
    (answer, looked, recent.number())
}

#[track_caller]
pub(super) fn check(case: &Case, cpu: u16, rule: Rule) -> Vec<u16> {
    let (answer, looked, _) = ask(&mut case.clone());
    assert_eq!((answer.cpu.number(), answer.rule), (cpu, rule), "{}: looked at {looked:?}", case.policy);
    looked
}

#[test]
fn scenario_01_idle_prev_wins_by_rule_3() {
    check(&case(A, "6.1", 2, 5, "5"), 5, Rule::TargetIdle);
}

#[test]
fn scenario_02_sync_waker_and_idle_prev() {
    let (answer, ..) = ask(&mut Case { sync: true, ..case(A, "6.1", 2, 5, "5") });
    assert_eq!((answer.cpu.number(), answer.rule, answer.affine), (5, Rule::PrevIdle, Affine::SyncAlone));
}

#[test]
pub(super) fn scenario_03_scan_from_the_sync_waker_within_its_budget() {
    let case = Case { sync: true, ..case(A, "6.1", 2, 5, "7") };
    for (nr_idle_scan, cpu, rule) in [(5, 7, Rule::CpuIdle), (4, 2, Rule::TargetBusy)] {
        let mut case = case.clone();
        case.state.nr_idle_scan = nr_idle_scan;
        let looked = check(&case, cpu, rule);
        assert_eq!(looked.last(), Some(&if nr_idle_scan == 5 { 7 } else { 6 }));
    }
}

#[test]
fn scenario_04_idle_prev_is_found_whatever_the_weights_say() {
    for wakee_load in [0, 1024] {
        let mut case = case(A, "5.9", 2, 5, "5");
        case.state.wakee_load = wakee_load;
        case.state.load[5] = 2 * wakee_load;
        let (answer, ..) = ask(&mut case);
        assert_eq!(answer.cpu.number(), 5);
        let this_wins = wakee_load > 0;
        assert_eq!(answer.affine, if this_wins { Affine::WeightThis } else { Affine::WeightPrev });
    }
}

#[test]
pub(super) fn scenarios_05_to_07_an_interrupt_on_an_idle_cpu_of_the_other_llc() {
    let irq = |policy| Case { irq: true, ..case(B, policy, 1, 6, "1,6") };
    check(&irq("5.15"), 6, Rule::TargetIdle);
    check(&irq("5.15 wake_affine_idle=dirty"), 1, Rule::TargetIdle);
    let (answer, ..) = ask(&mut irq("5.9"));
    assert_eq!((answer.cpu.number(), answer.affine), (6, Affine::WeightPrev));
}

#[test]
pub(super) fn scenario_08_sync_pull_across_llcs_then_a_scan() {
    let case = Case { sync: true, ..case(B, "6.1", 1, 6, "3,6") };
    assert_eq!(check(&case, 3, Rule::CpuIdle), [1, 1, 2, 3]);
}

#[test]
pub(super) fn scenarios_09_to_11_a_bound_kworker_wakes_on_its_own_cpu() {
    let kworker = |policy, queued| {
        let mut case = Case { kthread: true, ..case(A, policy, 4, 4, "5") };
        case.state.nr[4] = queued;
        case
    };
    check(&kworker("5.5", 1), 5, Rule::CpuIdle);
    check(&kworker("5.9", 1), 4, Rule::KthreadStacking);
    check(&kworker("5.9", 2), 5, Rule::CpuIdle);
    check(&kworker("6.12", 1), 4, Rule::KthreadStacking);
    check(&Case { irq: true, ..kworker("6.12", 1) }, 5, Rule::CpuIdle);
    check(&Case { irq: true, ..kworker("5.9", 1) }, 4, Rule::KthreadStacking);
    check(&kworker("6.12 kthread_stacking=off", 1), 5, Rule::CpuIdle);
}

pub(super) const CLUSTERS: &str = "1 socket x 2 clusters x 4 cores";

#[test]
pub(super) fn scenarios_12_and_13_clusters() {
    let sync = |idle| Case { sync: true, ..case(CLUSTERS, "6.12", 1, 6, idle) };
    check(&sync("3,6"), 3, Rule::ClusterIdle);
    let mut only_prev = sync("6");
    only_prev.state.nr_idle_scan = 7;
    assert_eq!(check(&only_prev, 6, Rule::CpuIdle), [1, 1, 6, 2, 3, 0, 1, 4, 5, 6]);
    only_prev.state.nr_idle_scan = 5;
    check(&only_prev, 6, Rule::PrevKept);
}

#[test]
pub(super) fn scenario_14_a_wide_waker_searches_at_prev() {
    let case = Case { flips: (1000, 10), ..case(A, "6.1", 2, 5, "0") };
    let looked = check(&case, 0, Rule::CpuIdle);
    assert_eq!(looked, [5, 6, 7, 0]);
}

#[test]
fn the_bounce_of_the_xfs_trace() {
    let mut first = Case { recent: 3, ..case(A, "5.15", 2, 5, "3") };
    // The weight rule picks the waker's CPU.
    first.state.load[5] = 2048;
    first.state.wakee_load = 512;
    let (answer, _, recent) = ask(&mut first);
    assert_eq!((answer.cpu.number(), answer.rule, recent), (3, Rule::RecentIdle, 5));
    let mut second = Case { prev: 3, recent, sync: true, ..first };
    let (answer, ..) = ask(&mut second);
    assert_eq!((answer.cpu.number(), answer.rule), (3, Rule::PrevIdle));
}

#[test]
fn sis_util_may_forbid_the_scan() {
    let mut case = Case { sync: true, ..case(A, "6.1", 2, 5, "0,1,7") };
    case.state.nr_idle_scan = 0;
    let (answer, ..) = ask(&mut case);
    assert_eq!((answer.cpu.number(), answer.scan, answer.scanned), (2, ScanEnd::Forbidden, 0));
}

#[test]
pub(super) fn sis_prop_looks_at_one_cpu_less_than_its_budget() {
    // Target 6, only CPU 1 idle, a budget of 4. v5.9 begins with the target itself, v5.15 one after it.
    let mut old = case(A, "5.9", 6, 6, "1");
    old.state.cost.avg_idle_ns = 0;
    let looked = check(&old, 6, Rule::TargetBusy);
    assert_eq!(looked, [6, 6, 7, 0], "the target check, then the scan");
    let (answer, ..) = ask(&mut old.clone());
    assert_eq!((answer.scan, answer.scanned), (ScanEnd::Budget, 3));
    let mut merged = case(A, "5.15", 6, 6, "1");
    merged.state.cost.wake_avg_idle_ns = 0;
    assert_eq!(check(&merged, 1, Rule::CpuIdle), [6, 7, 0, 1]);
}

#[test]
pub(super) fn sis_prop_budgets() {
    for (span_weight, idle_ns, cost, nr) in [
        (24, 1_000_000 / 512, 2000, 23),
        (24, 50_000 / 512, 2000, 4),
        (24, 1_000_000 / 512, 500, 93),
        (52, 500_000 / 512, 3000, 16),
    ] {
        assert_eq!(
            idle_scan::budget(span_weight * idle_ns, cost + 1),
            nr,
            "old form {span_weight} {idle_ns} {cost}"
        );
    }
    for (span_weight, idle_ns, cost, nr) in
        [(24, 500_000, 2000, 5997), (24, 1000, 2000, 11), (24, 300, 2000, 4), (52, 20_000, 3000, 346)]
    {
        assert_eq!(
            idle_scan::budget(span_weight * idle_ns, cost + 1),
            nr,
            "merged form {span_weight} {idle_ns} {cost}"
        );
    }
}

#[test]
pub(super) fn weights() {
    for (this, prev, wakee, sync, waker, pulls) in [
        (512, 1024, 256, false, 0, true),
        (700, 1024, 256, false, 0, false),
        (0, 0, 0, false, 0, false),
        (0, 0, 0, true, 0, true),
        (512, 512, 512, true, 512, false),
        (300, 99_999, 5, true, 301, true),
    ] {
        let mut case = Case { sync, ..case(A, "5.9", 2, 5, "") };
        (case.state.load[2], case.state.load[5]) = (this, prev);
        (case.state.wakee_load, case.state.waker_load) = (wakee, waker);
        // Two running tasks keep rule 2 from firing.
        case.state.nr[2] = 2;
        let (answer, ..) = ask(&mut case);
        assert_eq!(answer.affine == Affine::WeightThis, pulls, "{this} {prev} {wakee} sync {sync} {waker}");
    }
}

#[test]
pub(super) fn an_interrupt_on_an_idle_cpu_under_each_proposal() {
    // (prev idle, same LLC) → which CPU is the target; None: the weight rule decides.
    let this = Some(1);
    for (prev_idle, same_llc, expected) in [
        (true, true, [Some(2), this, this, this]),
        (true, false, [Some(6), this, Some(6), Some(6)]),
        (false, true, [this; 4]),
        (false, false, [None, this, None, None]),
    ] {
        let prev = if same_llc { 2 } else { 6 };
        let idle = if prev_idle { format!("1,{prev}") } else { "1".to_owned() };
        for (variant, target) in ["vanilla", "dirty", "hillf1", "hillf2"].into_iter().zip(expected) {
            let policy = format!("5.15 wake_affine_idle={variant}");
            let (answer, ..) = ask(&mut Case { irq: true, ..case(B, &policy, 1, prev, &idle) });
            let by_weight = matches!(answer.affine, Affine::WeightPrev | Affine::WeightThis);
            let found = (!by_weight).then(|| answer.target.number());
            assert_eq!(found, target, "{variant}, prev idle {prev_idle}, same LLC {same_llc}");
        }
    }
}

#[test]
fn wf_current_cpu_takes_the_wakers_cpu() {
    check(&Case { current_cpu: true, ..case(A, "6.12", 2, 5, "5") }, 2, Rule::CurrentCpu);
    check(&Case { current_cpu: true, ..case(A, "6.1", 2, 5, "5") }, 5, Rule::TargetIdle);
}

#[test]
pub(super) fn a_wake_up_on_the_wake_list() {
    let row = |cpu_state: &str, on_cpu: bool| -> Vec<bool> {
        ["5.5", "5.19", "6.1 wake_list=rfc", "6.1"]
            .into_iter()
            .map(|policy| {
                let mut case = case(A, policy, 0, 5, if cpu_state == "idle" { "5" } else { "" });
                case.state.nr[5] = match cpu_state {
                    "idle" | "descheduling" => 0,
                    "one" => 1,
                    _ => 2,
                };
                let machine = Machine::new(&case.topology, &case.policy);
                let query = WakeListQuery {
                    this_cpu: CpuId::new(0),
                    cpu: CpuId::new(5),
                    on_cpu,
                    allowed: true,
                    active: true,
                    stopper: false,
                };
                queue_on_wake_list(&case.policy, &machine, &query, &mut case.state)
            })
            .collect()
    };
    assert_eq!(row("idle", false), [false, false, true, true]);
    assert_eq!(row("one", false), [false, false, false, false]);
    assert_eq!(row("one", true), [false, true, true, false]);
    assert_eq!(row("descheduling", true), [false, true, true, true]);
    assert_eq!(row("two", true), [false, false, false, false]);
}

#[test]
pub(super) fn the_wake_list_across_llcs_and_to_oneself() {
    for policy in ["5.5", "5.9", "5.15", "5.19", "6.1 wake_list=rfc", "6.1", "6.6", "6.12", "7.2"] {
        let mut case = case(B, policy, 0, 5, "");
        let machine = Machine::new(&case.topology, &case.policy);
        let mut to = |cpu| {
            let cpu = CpuId::new(cpu);
            let this_cpu = CpuId::new(0);
            let query =
                WakeListQuery { this_cpu, cpu, on_cpu: true, allowed: true, active: true, stopper: false };
            queue_on_wake_list(&case.policy, &machine, &query, &mut case.state)
        };
        assert!(to(5), "{policy}: other LLC");
        assert!(!to(0), "{policy}: self");
    }
}

#[test]
fn a_fork_on_an_idle_two_socket_machine() {
    // v5.9 stays in the node; later kernels as well while the node runs few tasks.
    for policy in ["5.9", "5.15", "6.12"] {
        let mut case = case("2 sockets x 16 cores", policy, 0, 0, "0-31");
        let machine = Machine::new(&case.topology, &case.policy);
        let wakeup = Wakeup {
            kind: Kind::Fork,
            this_cpu: CpuId::new(0),
            prev_cpu: CpuId::new(0),
            sync: false,
            current_cpu: false,
            allowed: &case.allowed,
            wakee_is_idle_policy: false,
            waker_is_per_cpu_kthread: false,
            waker_is_idle_task: false,
            in_task: true,
            util: 0,
        };
        let mut waker = Flips::default();
        let (mut recent, mut waker_recent) = (CpuId::new(0), CpuId::new(0));
        let mut memory = Memory {
            waker: &mut waker,
            wakee: &Flips::default(),
            wakee_key: 1,
            recent_used_cpu: &mut recent,
            waker_recent_used_cpu: &mut waker_recent,
            jiffies: 1,
        };
        let answer =
            place(&case.policy, &machine, &wakeup, &mut memory, &mut case.state, &mut AllIdle, &mut |_| {});
        assert_eq!(answer.rule, Rule::Idlest, "{policy}");
        assert!(answer.cpu.number() < 16, "{policy}: {:?}", answer.cpu);
    }
}

/// Affinity is respected, an answer is repeatable, and an idle allowed CPU in the LLC is never overlooked when the budget
/// allows the whole scan.
#[test]
pub(super) fn laws_over_random_questions() {
    let machines =
        [A, B, CLUSTERS, "1 socket x 4 cores x 2 threads", "2 sockets x 2 clusters x 2 cores x 2 threads"];
    let policies = [
        "5.5",
        "5.9",
        "5.15",
        "5.19",
        "6.1",
        "eevdf-2023-04",
        "6.6",
        "6.12",
        "7.2",
        "5.9 cluster=rfc_v2",
        "5.9 cluster=rfc_v3",
    ];
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let machine = machines[rng.below(machines.len())];
        let policy = policies[rng.below(policies.len())];
        let mut question = case(machine, policy, 0, 0, "");
        let cpus = question.topology.cpu_bound();
        let pick = |rng: &mut Rng| rng.below(cpus) as u16;
        (question.this, question.prev, question.recent) = (pick(&mut rng), pick(&mut rng), pick(&mut rng));
        let set = |rng: &mut Rng| -> CpuSet {
            let bits = rng.next_u64();
            (0..cpus as u16).filter(|cpu| bits >> cpu & 1 == 1).map(CpuId::new).collect()
        };
        question.allowed = set(&mut rng);
        question.allowed.insert(CpuId::new(question.prev));
        question.state.idle = set(&mut rng).intersection(&set(&mut rng));
        question.state.idle_cores = rng.below(2) == 0;
        question.sync = rng.below(3) == 0;
        question.irq = rng.below(3) == 0;
        question.kthread = rng.below(8) == 0;
        for cpu in 0..cpus {
            let idle = question.state.idle.contains(CpuId::new(cpu as u16));
            question.state.nr[cpu] = if idle { 0 } else { 1 + rng.below(3) as u32 };
            question.state.load[cpu] = rng.below(3000) as u64;
        }
        let (answer, looked, _) = ask(&mut question.clone());
        let repro = format!("seed {seed}: {policy} on {machine}: {answer:?}, looked at {looked:?}");
        assert!(question.allowed.contains(answer.cpu), "{repro}");
        let (again, looked_again, _) = ask(&mut question.clone());
        assert_eq!((answer, looked.clone()), (again, looked_again), "{repro}");
        if matches!(answer.scan, ScanEnd::Exhausted) {
            let built = Machine::new(&question.topology, &question.policy);
            let llc = built.domains().llc(answer.target).expect("a scan needs an LLC").span();
            let free = llc.intersection(&question.allowed).intersection(&question.state.idle);
            let kept = matches!(answer.rule, Rule::PrevKept | Rule::RecentKept);
            assert!(free.is_empty() || kept, "{repro}: {free} was free");
        }
    }
}
