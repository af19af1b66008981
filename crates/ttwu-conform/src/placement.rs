//! Placements: the model's answer to each recorded selection, under different knowledge.

use crate::format::{Decision, Selection};
use crate::score::{Cause, Miss, Score};
use crate::snapshot::{Altered, Knowledge, PF_EXITING, PF_KTHREAD, SlowSnapshot, Snapshot};
use crate::{ConformError, Recording};
use ttwu_fair::{
    Check, Flips, Kernel, Kind, Memory, Placement, Site, WakeListQuery, Wakeup, place, queue_on_wake_list,
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
    recording.decisions(|line, decision| {
        let (Some(sel), Some(ret)) = (&decision.sel, decision.ret) else {
            *report.without_placement.entry(decision.kind.clone()).or_default() += 1;
            return Ok(());
        };
        // A snapshot that lacks a CPU cannot be put to the model.
        if decision.rq.len() < recording.machine().cpu_bound() {
            *report.without_placement.entry("incomplete snapshot".to_owned()).or_default() += 1;
            return Ok(());
        }
        match kind(sel) {
            Kind::Wakeup => score_wakeup(recording, line, &decision, ret, &mut report),
            Kind::Fork | Kind::Exec => {
                if decision.rq.iter().all(|rq| rq.ist.is_some()) {
                    let (answer, _) = answer(recording, &decision, Knowledge::Answers, Altered::default());
                    report.slow_path.add(answer.cpu.number() == ret, || {
                        miss(line, &decision, ret, &answer, &[], Cause::Unexamined)
                    });
                }
            }
        }
        Ok(())
    })?;
    Ok(report)
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

fn score_wakeup(
    recording: &Recording,
    line: usize,
    decision: &Decision,
    ret: u16,
    report: &mut PlacementReport,
) {
    let (alone, looked) = answer(recording, decision, Knowledge::Snapshot, Altered::default());
    report
        .snapshot
        .add(alone.cpu.number() == ret, || miss(line, decision, ret, &alone, &looked, Cause::Unexamined));
    let (given, looked) = answer(recording, decision, Knowledge::Answers, Altered::default());
    let checks_agree = recorded_order(recording, &looked) == decision.idle;
    let right = given.cpu.number() == ret;
    report.given.add(right, || {
        let cause = explain(recording, decision, |placement, _| placement.cpu.number() == ret);
        miss(line, decision, ret, &given, &looked, cause)
    });
    let (near, near_looked) = answer(recording, decision, Knowledge::AnswersAndTarget, Altered::default());
    report.given_target.add(near.cpu.number() == ret, || {
        let cause = explain(recording, decision, |placement, _| placement.cpu.number() == ret);
        miss(line, decision, ret, &near, &near_looked, cause)
    });
    report.checks.add(right && checks_agree, || {
        let cause = explain(recording, decision, |placement, looked| {
            placement.cpu.number() == ret && recorded_order(recording, looked) == decision.idle
        });
        miss(line, decision, ret, &given, &looked, cause)
    });
    if let Some(recorded) = decision.inlined("i_sis", 0) {
        let target = i64::from(given.target.number());
        report
            .target
            .add(target == recorded, || miss(line, decision, ret, &given, &looked, Cause::Unexamined));
    }
    score_wake_list(recording, line, decision, ret, report);
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

/// Does one value that the kernel reads without a lock, altered, explain the decision? Otherwise the model is suspect.
fn explain(
    recording: &Recording,
    decision: &Decision,
    explains: impl Fn(&Placement, &[Check]) -> bool,
) -> Cause {
    let try_with = |altered: Altered| {
        let (placement, looked) = answer(recording, decision, Knowledge::Answers, altered);
        explains(&placement, &looked)
    };
    let cpus = u32::try_from(recording.machine().cpu_bound()).unwrap_or(u32::MAX);
    let scans = (0..=cpus).map(|count| Altered { nr_idle_scan: Some(count), ..Altered::default() });
    let cores = [true, false].map(|flag| Altered { has_idle_cores: Some(flag), ..Altered::default() });
    let running = [-1, 1].map(|delta| Altered { nr_running_delta: delta, ..Altered::default() });
    let deltas = [-1024, -256, -64, -16, -4, -1, 1, 4, 16, 64, 256, 1024];
    let prev = decision.sel.as_ref().map_or(decision.cpu, |sel| sel.prev);
    let loads = deltas
        .into_iter()
        .flat_map(|delta| [decision.cpu, prev].map(|cpu| (cpu, delta)))
        .map(|change| Altered { load_delta: Some(change), ..Altered::default() });
    let occupied = (0..recording.machine().cpu_bound())
        .map(|cpu| Altered { sched_idle_flip: u16::try_from(cpu).ok(), ..Altered::default() });
    let explained = scans.chain(cores).chain(running).chain(loads).chain(occupied).any(try_with);
    if explained { Cause::Race } else { Cause::Model }
}

fn score_wake_list(
    recording: &Recording,
    line: usize,
    decision: &Decision,
    ret: u16,
    report: &mut PlacementReport,
) {
    // The last question about the chosen CPU belongs to the placement.
    let Some(&(cpu, queued, on_cpu)) = decision.wl.iter().rev().find(|question| question.0 == ret) else {
        return;
    };
    let mut view = Snapshot::new(recording, decision, Knowledge::Snapshot, Altered::default());
    if let Some(&(_, idle)) = decision.idle.iter().rev().find(|check| check.0 == cpu) {
        // A CPU that was answered idle has nothing queued.
        let recorded = decision.rq[usize::from(cpu)].n;
        if idle != 0 {
            let altered = Altered { nr_running_delta: -recorded, ..Altered::default() };
            view = Snapshot::new(recording, decision, Knowledge::Snapshot, altered);
        }
    }
    let query = WakeListQuery {
        this_cpu: CpuId::new(decision.cpu),
        cpu: CpuId::new(cpu),
        on_cpu: on_cpu != 0,
        allowed: true,
        active: true,
        stopper: false,
    };
    let ours = queue_on_wake_list(recording.policy(), recording.machine(), &query, &mut view);
    let same_llc = recording.domains().same_llc(query.this_cpu, query.cpu);
    let score = if decision.cpu == cpu {
        &mut report.wake_list_self
    } else if same_llc {
        &mut report.wake_list_same_llc
    } else {
        &mut report.wake_list_other_llc
    };
    score.add(ours == (queued != 0), || Miss {
        line,
        ts: decision.ts.clone(),
        cause: if same_llc && decision.cpu != cpu { Cause::Unexamined } else { Cause::Model },
        text: format!("wake list of CPU {cpu}: kernel {queued}, model {}", u8::from(ours)),
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

fn miss(
    line: usize,
    decision: &Decision,
    ret: u16,
    ours: &Placement,
    looked: &[Check],
    cause: Cause,
) -> Miss {
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
    Miss { line, ts: decision.ts.clone(), cause, text }
}
