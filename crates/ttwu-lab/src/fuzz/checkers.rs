//! What must hold of every run.

use super::{Failed, message};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ttwu_model::{CpuSet, EventKind, TaskId, Trace};
use ttwu_sim::{Nothing, Options, Outcome, Scenario, run};
use ttwu_workload::{Op, TaskSpec, Workload};

/// Runs a scenario three times with all checkers.
///
/// # Errors
/// The first that fails: `assertion` (the simulator's own, in a run), `round-trip`, `determinism`, `trace` (a trace changes
/// the run), `one-cpu`, `affinity`, `time`.
pub fn all_checkers(scenario: &Scenario) -> Result<(), Failed> {
    let failed = |checker, message: String| Failed { checker, message };
    let go = |options: &mut Options<'_>| {
        catch_unwind(AssertUnwindSafe(|| run(scenario, options)))
            .map_err(|payload| failed("assertion", message(&*payload)))
    };
    let first = go(&mut Options::quiet())?;
    let printed = scenario.to_toml();
    let again = Scenario::parse(&printed, &Nothing)
        .map_err(|error| failed("round-trip", format!("the printed scenario is refused: {error}")))?;
    if again.id() != scenario.id() {
        return Err(failed("round-trip", "the printed scenario is another".to_owned()));
    }
    let second = catch_unwind(AssertUnwindSafe(|| run(&again, &mut Options::quiet())))
        .map_err(|payload| failed("assertion", message(&*payload)))?;
    if (first.digest, first.events, first.sim_ns) != (second.digest, second.events, second.sim_ns) {
        return Err(failed(
            "determinism",
            format!("digests {:016x} and {:016x}", first.digest, second.digest),
        ));
    }
    let traced = go(&mut Options::traced())?;
    if first.digest != traced.digest || first.counters != traced.counters {
        let digests = format!("digests {:016x} without and {:016x} with", first.digest, traced.digest);
        return Err(failed("trace", digests));
    }
    time(scenario, &traced).map_err(|message| failed("time", message))?;
    let Some(trace) = &traced.trace else { return Err(failed("trace", "none was made".to_owned())) };
    one_cpu(trace).map_err(|message| failed("one-cpu", message))?;
    affinity(scenario, trace).map_err(|message| failed("affinity", message))
}

/// Time is conserved: CPUs are busy for no longer than the run, tasks run for no longer than CPUs are busy.
fn time(scenario: &Scenario, outcome: &Outcome) -> Result<(), String> {
    let c = &outcome.counters;
    let all = outcome.sim_ns * scenario.topology.online().len() as u64;
    if c.busy_ns > all {
        return Err(format!("CPUs were busy for {} of {all} ns", c.busy_ns));
    }
    let runtime: u64 = c.tasks.values().map(|tasks| tasks.runtime_ns).sum();
    if runtime > c.busy_ns {
        return Err(format!("tasks ran for {runtime} ns, CPUs were busy for {}", c.busy_ns));
    }
    Ok(())
}

/// No task runs on two CPUs at a time, and each switch continues the one before.
fn one_cpu(trace: &Trace) -> Result<(), String> {
    let mut current: BTreeMap<u16, TaskId> = BTreeMap::new();
    for event in trace.events() {
        let EventKind::Switch { prev, next, .. } = event.kind else { continue };
        let cpu = event.cpu.number();
        let before = current.get(&cpu).copied().unwrap_or(TaskId::IDLE);
        if prev != before {
            return Err(format!("CPU {cpu} leaves {prev:?}, and {before:?} ran there: {event:?}"));
        }
        if !next.is_idle()
            && let Some((other, _)) = current.iter().find(|(other, task)| **other != cpu && **task == next)
        {
            return Err(format!("{next:?} runs on CPUs {other} and {cpu}: {event:?}"));
        }
        current.insert(cpu, next);
    }
    Ok(())
}

/// Tasks run where they may. Those that change their affinity themselves are left out.
fn affinity(scenario: &Scenario, trace: &Trace) -> Result<(), String> {
    for event in trace.events() {
        let EventKind::Switch { next, .. } = event.kind else { continue };
        if !scenario.topology.online().contains(event.cpu) {
            return Err(format!("CPU {} is off line: {event:?}", event.cpu.number()));
        }
        let pid = trace.tasks().get(next).pid.number();
        let spec = usize::try_from(pid - 1000).ok().and_then(|index| scenario.workload.tasks.get(index));
        let Some(spec) = spec.filter(|spec| !moves_itself(&scenario.workload, spec)) else { continue };
        let allowed = allowed(scenario, spec);
        if !allowed.contains(event.cpu) {
            return Err(format!(
                "{} (pid {pid}) runs on CPU {}, allowed are {allowed}",
                spec.name,
                event.cpu.number()
            ));
        }
    }
    Ok(())
}

fn allowed(scenario: &Scenario, spec: &TaskSpec) -> CpuSet {
    let online = scenario.topology.online();
    let own = spec.allowed.as_ref().map_or_else(|| online.clone(), |set| set.intersection(online));
    match &scenario.settings.allowed {
        Some(set) if !spec.kernel_thread && set.intersects(&own) => own.intersection(set),
        Some(_) | None => own,
    }
}

fn moves_itself(workload: &Workload, spec: &TaskSpec) -> bool {
    let mut bodies: Vec<&[Op]> = vec![&workload.programs[spec.program as usize].ops];
    while let Some(body) = bodies.pop() {
        for op in body {
            if matches!(op, Op::SetAffinity(_)) {
                return true;
            }
            if let Op::Repeat { body, .. } | Op::TakeAll { body, .. } = op {
                bodies.push(body);
            } else if let Op::IfReady { then, otherwise, .. } | Op::Choose { then, otherwise, .. } = op {
                bodies.extend([&then[..], otherwise]);
            }
        }
    }
    false
}
