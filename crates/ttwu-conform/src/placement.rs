//! Placements: the model's answer to each recorded selection, under different knowledge.

use crate::format::{Decision, Selection};
use crate::score::{Cause, Miss, Score};
use crate::snapshot::{Altered, Knowledge, PF_EXITING, PF_KTHREAD, SlowSnapshot, Snapshot};
use crate::{ConformError, Recording};
use std::collections::VecDeque;
use ttwu_fair::{
    Check, Feature, Flips, Kernel, Kind, Memory, Placement, Site, View, WakeListQuery, Wakeup, place,
    queue_on_wake_list,
};
use ttwu_model::{CpuId, CpuSet};

/// Scores of one recording's selections.
#[derive(Clone, Debug, Default)]
pub struct PlacementReport {
    /// Given the answers of the kernel's idle checks: tests rules and order.
    pub given: Score,
    /// Given also the target of the idle search, where recorded: tests the search alone.
    pub given_target: Score,
    /// From the snapshot alone: tests idle detection too, less what changes before it is read.
    pub snapshot: Score,
    /// Given the answers: the CPU *and* the ordered list of checks must be equal.
    pub checks: Score,
    /// The answer of the wake-list question, same LLC.
    pub wake_list_same_llc: Score,
    /// The answer of the wake-list question, other LLC.
    pub wake_list_other_llc: Score,
    /// The answer of the wake-list question, the waker's own CPU.
    pub wake_list_self: Score,
    /// Fork and exec; only recordings whose layout has what they read.
    pub slow_path: Score,
    /// The target of `wake_affine` where recorded, given the answers.
    pub target: Score,
    /// Decisions in which no placement code ran, by kind.
    pub without_placement: std::collections::BTreeMap<String, u64>,
}

impl PlacementReport {
    /// Adds another recording's scores.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.given, &other.given),
            (&mut self.given_target, &other.given_target),
            (&mut self.snapshot, &other.snapshot),
            (&mut self.checks, &other.checks),
            (&mut self.wake_list_same_llc, &other.wake_list_same_llc),
            (&mut self.wake_list_other_llc, &other.wake_list_other_llc),
            (&mut self.wake_list_self, &other.wake_list_self),
            (&mut self.slow_path, &other.slow_path),
            (&mut self.target, &other.target),
        ] {
            ours.merge(theirs);
        }
        for (kind, count) in &other.without_placement {
            *self.without_placement.entry(kind.clone()).or_default() += count;
        }
    }
}

/// Puts every selection of `recording` to the model.
///
/// # Errors
/// When the decision file cannot be read.
pub fn placements(recording: &Recording) -> Result<PlacementReport, ConformError> {
    let mut report = PlacementReport::default();
    // A miss is looked into with the snapshots that follow it, so the last few decisions wait for those.
    let mut waiting: VecDeque<Numbered> = VecDeque::new();
    recording.decisions(|line, decision| {
        let selection = decision.sel.is_some() && decision.ret.is_some();
        // A snapshot that lacks a CPU cannot be put to the model.
        let whole = decision.rq.len() >= recording.machine().cpu_bound();
        if !selection || !whole {
            let kind = if selection { "incomplete snapshot" } else { decision.kind.as_str() };
            *report.without_placement.entry(kind.to_owned()).or_default() += 1;
            return Ok(());
        }
        waiting.push_back((line, decision));
        if waiting.len() > FOLLOWING {
            score_first(recording, &mut waiting, &mut report);
        }
        Ok(())
    })?;
    while !waiting.is_empty() {
        score_first(recording, &mut waiting, &mut report);
    }
    Ok(report)
}

/// How many later snapshots are asked for what changed: the file is in the order of the wake-ups' ends, so the next few
/// lines are the nearest in time.
const FOLLOWING: usize = 8;

/// A decision with its line.
type Numbered = (usize, Decision);

/// Scores the first decision that waits; the others are what followed it.
fn score_first(recording: &Recording, waiting: &mut VecDeque<Numbered>, report: &mut PlacementReport) {
    let Some((line, decision)) = waiting.pop_front() else { return };
    let Some(ret) = decision.ret else { return };
    let Some(sel) = &decision.sel else { return };
    let case = Case { recording, line, decision: &decision, ret, later: waiting };
    match kind(sel) {
        Kind::Wakeup => score_wakeup(&case, report),
        Kind::Fork | Kind::Exec => {
            if decision.rq.iter().all(|rq| rq.ist.is_some()) {
                let (answer, looked) = answer(recording, &decision, Knowledge::Answers, Altered::default());
                report.slow_path.add(answer.cpu.number() == ret, || {
                    let cause = explain_slow(&case);
                    miss(&case, &answer, &looked, cause)
                });
            }
        }
    }
}

/// A decision to be scored, with the decisions that follow it.
struct Case<'a> {
    recording: &'a Recording,
    line: usize,
    decision: &'a Decision,
    ret: u16,
    later: &'a VecDeque<Numbered>,
}

impl Case<'_> {
    /// Later snapshots, nearest first.
    fn later(&self) -> impl Iterator<Item = &Decision> {
        self.later.iter().map(|(_, decision)| decision).filter(|later| later.ts >= self.decision.ts)
    }
}

const WF_EXEC: u32 = 2;
const WF_FORK: u32 = 4;
const WF_SYNC: u32 = 0x10;
const WF_CURRENT_CPU: u32 = 0x40;
const SCHED_IDLE: u32 = 5;

fn kind(sel: &Selection) -> Kind {
    if sel.wf & WF_FORK != 0 {
        Kind::Fork
    } else if sel.wf & WF_EXEC != 0 {
        Kind::Exec
    } else {
        Kind::Wakeup
    }
}

fn score_wakeup(case: &Case<'_>, report: &mut PlacementReport) {
    let Case { recording, decision, ret, .. } = *case;
    let chosen = |placement: &Placement, _: &[Check]| placement.cpu.number() == ret;
    let ask = |knowledge| answer(recording, decision, knowledge, Altered::default());
    let (given, looked) = ask(Knowledge::Answers);
    let right = given.cpu.number() == ret;
    let (alone, alone_looked) = ask(Knowledge::Snapshot);
    report.snapshot.add(alone.cpu.number() == ret, || {
        let cause = if contradicted(case) {
            (Cause::Race, "an idle check's own answer differs from the snapshot")
        } else if right {
            (Cause::Race, "with the recorded answers and loads the model agrees")
        } else {
            explain(case, chosen)
        };
        miss(case, &alone, &alone_looked, cause)
    });
    let checks_agree = recorded_order(recording, &looked) == decision.idle;
    report.given.add(right, || miss(case, &given, &looked, explain(case, chosen)));
    let (near, near_looked) = ask(Knowledge::AnswersAndTarget);
    report
        .given_target
        .add(near.cpu.number() == ret, || miss(case, &near, &near_looked, explain(case, chosen)));
    report.checks.add(right && checks_agree, || {
        let cause = explain(case, |placement, looked| {
            placement.cpu.number() == ret && recorded_order(recording, looked) == decision.idle
        });
        miss(case, &given, &looked, cause)
    });
    if let Some(recorded) = decision.inlined("i_sis", 0) {
        let reached = |placement: &Placement| i64::from(placement.target.number()) == recorded;
        report.target.add(reached(&given), || {
            let cause = explain(case, |placement, _| reached(placement));
            miss(case, &given, &looked, cause)
        });
    }
    score_wake_list(case, report);
}

/// Does an idle check's own answer differ from what the snapshot says of that CPU?
fn contradicted(case: &Case<'_>) -> bool {
    let Case { recording, decision, .. } = *case;
    let mut view = Snapshot::new(recording, decision, Knowledge::Snapshot, Altered::default());
    let counts = decision.sel.as_ref().is_none_or(|sel| sel.pol != SCHED_IDLE);
    let combined = recording.policy().kernel() >= Kernel::V7_2;
    decision.idle.iter().any(|&(cpu, answer)| {
        let cpu = CpuId::new(cpu);
        let now = if combined { view.choose_idle(cpu, counts) } else { view.available_idle(cpu) };
        now != (answer != 0)
    })
}

/// The checks that were probed, in the probes' form.
fn recorded_order(recording: &Recording, looked: &[Check]) -> Vec<(u16, i64)> {
    let probed = |site: Site| match site {
        // 7.2's probe is on choose_idle_cpu(), which these do not call.
        Site::AffineThis | Site::AffinePrev | Site::Core => recording.policy().kernel() < Kernel::V7_2,
        Site::Target | Site::Prev | Site::Recent | Site::Smt | Site::Cluster | Site::Cpu | Site::Capacity => {
            true
        }
    };
    looked
        .iter()
        .filter(|check| probed(check.site))
        .map(|check| (check.cpu.number(), i64::from(check.idle)))
        .collect()
}

/// Does one value that the kernel reads without a lock, as a later snapshot shows it or altered by hand, explain the
/// decision? Otherwise the model is suspect.
fn explain(case: &Case<'_>, explains: impl Fn(&Placement, &[Check]) -> bool) -> (Cause, &'static str) {
    let Case { recording, decision, .. } = *case;
    let try_with = |altered: Altered| {
        let (placement, looked) = answer(recording, decision, Knowledge::Answers, altered);
        explains(&placement, &looked)
    };
    let prev = decision.sel.as_ref().map_or(decision.cpu, |sel| sel.prev);
    for later in case.later() {
        for cpu in [decision.cpu, prev] {
            let (now, then) = (&decision.rq[usize::from(cpu)], &later.rq[usize::from(cpu)]);
            let scan = u32::try_from(then.is.max(0)).ok();
            let delta = then.n - now.n;
            let load = i64::try_from(then.la).unwrap_or(0) - i64::try_from(now.la).unwrap_or(0);
            let seen = [
                (
                    Altered { nr_idle_scan: scan, ..Altered::default() },
                    "nr_idle_scan, as a later snapshot has it",
                ),
                (
                    Altered { has_idle_cores: Some(then.ic != 0), ..Altered::default() },
                    "has_idle_cores, as a later snapshot has it",
                ),
                (
                    Altered { nr_running_delta: delta, ..Altered::default() },
                    "nr_running, as a later snapshot has it",
                ),
                (
                    Altered { load_delta: Some((cpu, load)), ..Altered::default() },
                    "a load, as a later snapshot has it",
                ),
            ];
            if let Some((_, test)) = seen.into_iter().find(|&(altered, _)| try_with(altered)) {
                return (Cause::Race, test);
            }
        }
    }
    // 7.2's probe leaves out the checks of the core scan: there a CPU's state in the snapshot stands for the answer.
    let cores = recording.machine().cpu_bound();
    for later in case.later().filter(|_| recording.policy().kernel() >= Kernel::V7_2) {
        for cpu in 0..cores {
            let mut other = decision.clone();
            other.rq[cpu].clone_from(&later.rq[cpu]);
            let (placement, looked) = answer(recording, &other, Knowledge::Answers, Altered::default());
            if explains(&placement, &looked) {
                return (Cause::Race, "the state of one CPU, as a later snapshot has it");
            }
        }
    }
    let cpus = u32::try_from(recording.machine().cpu_bound()).unwrap_or(u32::MAX);
    let scans = (0..=cpus).map(|count| Altered { nr_idle_scan: Some(count), ..Altered::default() });
    let cores = [true, false].map(|flag| Altered { has_idle_cores: Some(flag), ..Altered::default() });
    let running = [-1, 1].map(|delta| Altered { nr_running_delta: delta, ..Altered::default() });
    let deltas = [-1024, -256, -64, -16, -4, -1, 1, 4, 16, 64, 256, 1024];
    let loads = deltas
        .into_iter()
        .flat_map(|delta| [decision.cpu, prev].map(|cpu| (cpu, delta)))
        .map(|change| Altered { load_delta: Some(change), ..Altered::default() });
    let occupied = (0..recording.machine().cpu_bound())
        .map(|cpu| Altered { sched_idle_flip: u16::try_from(cpu).ok(), ..Altered::default() });
    let one: Vec<Altered> = scans.chain(cores).chain(running).chain(loads).chain(occupied).collect();
    if one.iter().any(|&altered| try_with(altered)) {
        return (Cause::Race, "one value that is read without a lock, altered by hand");
    }
    if recording.policy().has(Feature::SisProp) {
        // The budget is the LLC's weight times 1 ms of idle time over the cost, at least 4.
        let costs = [0, 1, 2, 3]
            .map(|part| 1_000_000u64 << part)
            .into_iter()
            .chain((1..=u64::from(cpus)).map(|budget| u64::from(cpus) * 1_000_000 / budget));
        let with_cost = |cost| Altered { scan_cost_ns: Some(cost), ..Altered::default() };
        if costs.chain([0]).any(|cost| try_with(with_cost(cost))) {
            return (Cause::State, "SIS_PROP: the mean idle time and scan cost are not recorded");
        }
    }
    let target = Altered { other_target: true, ..Altered::default() };
    let with_scan = |count| Altered { nr_idle_scan: Some(count), ..target };
    if try_with(target) || (0..=cpus).any(|count| try_with(with_scan(count))) {
        return (Cause::Race, "loads and nr_idle_scan, both altered by hand");
    }
    (Cause::Model, "no one value that is read without a lock")
}

/// Does the state of one CPU, or of all, as a later snapshot shows it explain a fork's or exec's choice?
fn explain_slow(case: &Case<'_>) -> (Cause, &'static str) {
    let Case { recording, decision, ret, .. } = *case;
    let agrees = |decision: &Decision| {
        answer(recording, decision, Knowledge::Answers, Altered::default()).0.cpu.number() == ret
    };
    for later in case.later() {
        for cpu in 0..recording.machine().cpu_bound() {
            let mut other = decision.clone();
            other.rq[cpu].clone_from(&later.rq[cpu]);
            if agrees(&other) {
                return (
                    Cause::Race,
                    "with the state of one CPU as a later snapshot has it the model agrees",
                );
            }
        }
        let mut other = decision.clone();
        other.rq.clone_from(&later.rq);
        if agrees(&other) {
            return (Cause::Race, "with the state as a later snapshot has it the model agrees");
        }
    }
    for cpu in 0..recording.machine().cpu_bound() {
        let mut other = decision.clone();
        let rq = &mut other.rq[cpu];
        (rq.n, rq.h, rq.c, rq.ist) = if rq.c == 0 { (1, 1, -1, Some(0)) } else { (0, 0, 0, Some(u64::MAX)) };
        rq.hr = rq.hr.map(|_| rq.h);
        if agrees(&other) {
            return (
                Cause::Race,
                "one CPU idle instead of busy, or busy instead of idle, between the stages",
            );
        }
    }
    (Cause::Model, "no change of one CPU explains it")
}

fn score_wake_list(case: &Case<'_>, report: &mut PlacementReport) {
    let Case { recording, line, decision, ret, .. } = *case;
    // The last question about the chosen CPU belongs to the placement.
    let Some(&(cpu, queued, on_cpu)) = decision.wl.iter().rev().find(|question| question.0 == ret) else {
        return;
    };
    let recorded = decision.rq[usize::from(cpu)].n;
    let query = WakeListQuery {
        this_cpu: CpuId::new(decision.cpu),
        cpu: CpuId::new(cpu),
        on_cpu: on_cpu != 0,
        allowed: true,
        active: true,
        stopper: false,
    };
    let ask = |running: i64| {
        let altered = Altered { nr_running_delta: running - recorded, ..Altered::default() };
        let mut view = Snapshot::new(recording, decision, Knowledge::Snapshot, altered);
        queue_on_wake_list(recording.policy(), recording.machine(), &query, &mut view) == (queued != 0)
    };
    // A CPU that was answered idle has nothing queued.
    let idle = decision.idle.iter().rev().find(|check| check.0 == cpu).is_some_and(|check| check.1 != 0);
    let agrees = ask(if idle { 0 } else { recorded });
    let same_llc = recording.domains().same_llc(query.this_cpu, query.cpu);
    let score = if decision.cpu == cpu {
        &mut report.wake_list_self
    } else if same_llc {
        &mut report.wake_list_same_llc
    } else {
        &mut report.wake_list_other_llc
    };
    score.add(agrees, || {
        let (cause, test) = if idle && ask(recorded.max(1)) {
            (Cause::Race, "answered idle, and given something to run before the question")
        } else if case.later().any(|later| ask(later.rq[usize::from(cpu)].n)) {
            (Cause::Race, "nr_running, as a later snapshot has it")
        } else if ask(0) || ask(1) {
            (Cause::Race, "nr_running, altered by hand")
        } else {
            (Cause::Model, "no value of nr_running")
        };
        Miss {
            line,
            ts: decision.ts.clone(),
            cause,
            test,
            rule: "ttwu_queue_cond".to_owned(),
            text: format!("wake list of CPU {cpu}: kernel {queued}, model {}", u8::from(queued == 0)),
        }
    });
}

fn answer(
    recording: &Recording,
    decision: &Decision,
    knowledge: Knowledge,
    altered: Altered,
) -> (Placement, Vec<Check>) {
    let sel = decision.sel.as_ref().expect("only selections are asked");
    let waker = &decision.rq[usize::from(decision.cpu)];
    let allowed: CpuSet = (0..64).filter(|cpu| sel.mask >> cpu & 1 == 1).map(CpuId::new).collect();
    let wakeup = Wakeup {
        kind: kind(sel),
        this_cpu: CpuId::new(decision.cpu),
        prev_cpu: CpuId::new(sel.prev),
        sync: sel.wf & WF_SYNC != 0 && waker.cpf & PF_EXITING == 0,
        current_cpu: sel.wf & WF_CURRENT_CPU != 0,
        allowed: &allowed,
        wakee_is_idle_policy: sel.pol == SCHED_IDLE,
        waker_is_per_cpu_kthread: waker.c != 0 && waker.cpf & PF_KTHREAD != 0 && waker.cnca == 1,
        waker_is_idle_task: waker.c == 0,
        in_task: matches!(decision.ctx.as_bytes().get(2), Some(b'.')),
        util: sel.util,
    };
    let mut flips =
        Flips { flips: waker.cf, last_wakee: (waker.cl != 0).then_some(waker.cl), decayed_at: waker.cd };
    let wakee = Flips { flips: sel.flips, ..Flips::default() };
    let (mut recent, mut waker_recent) = (CpuId::new(sel.rec), CpuId::new(decision.cpu));
    let mut memory = Memory {
        waker: &mut flips,
        wakee: &wakee,
        wakee_key: sel.p,
        recent_used_cpu: &mut recent,
        waker_recent_used_cpu: &mut waker_recent,
        jiffies: sel.jif,
    };
    let mut looked = Vec::new();
    let mut view = Snapshot::new(recording, decision, knowledge, altered);
    let mut slow = SlowSnapshot(Snapshot::new(recording, decision, knowledge, altered));
    let placement = place(
        recording.policy(),
        recording.machine(),
        &wakeup,
        &mut memory,
        &mut view,
        &mut slow,
        &mut |check| looked.push(check),
    );
    (placement, looked)
}

fn miss(case: &Case<'_>, ours: &Placement, looked: &[Check], (cause, test): (Cause, &'static str)) -> Miss {
    let Case { line, decision, ret, .. } = *case;
    let sel = decision.sel.as_ref().expect("only selections are asked");
    let list = |checks: &mut dyn Iterator<Item = (u16, i64)>| {
        checks.map(|(cpu, idle)| format!("{cpu}:{idle}")).collect::<Vec<_>>().join(" ")
    };
    let theirs = list(&mut decision.idle.iter().copied());
    let model = list(&mut looked.iter().map(|check| (check.cpu.number(), i64::from(check.idle))));
    let text = format!(
        "{} on CPU {} (prev {}, flags {:#x}): kernel {ret} after {theirs}; model {} by {:?} (target {}, {:?}) after {model}",
        sel.comm, decision.cpu, sel.prev, sel.wf, ours.cpu, ours.rule, ours.target, ours.affine
    );
    Miss { line, ts: decision.ts.clone(), cause, test, rule: format!("{:?}", ours.rule), text }
}
