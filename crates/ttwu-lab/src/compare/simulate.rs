//! Running arms with common seeds: pilot, then as many as the precision needs.

use super::judged::{ArmInfo, Comparison, Samples, rows};
use super::why::moved;
use super::{CompareError, Plan};
use crate::arm::SimulatedArm;
use crate::metrics::Metric;
use crate::runs::{Cancel, Executor, FinishedRun, Job, Measured, RunError, run_all};
use ttwu_sim::End;
use ttwu_stats::{Pairing, describe, student_t_quantile};

/// What one seed gave: by arm, by workload.
type Block = Vec<Vec<Measured>>;

pub(super) fn run(
    arms: &[&SimulatedArm],
    plan: &Plan,
    executor: &dyn Executor,
    cancel: &Cancel,
    progress: &mut dyn FnMut(FinishedRun<'_>),
) -> Result<Comparison, CompareError> {
    let Some(base) = arms.first() else {
        return Err(CompareError::NoRuns { why: "there is no arm".to_owned() });
    };
    for arm in &arms[1..] {
        if arm.cells.len() != base.cells.len() {
            let why = format!("they have {} and {} workloads", base.cells.len(), arm.cells.len());
            return Err(CompareError::NotComparable { a: base.label.clone(), b: arm.label.clone(), why });
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    let pilot = plan.pilot.clamp(3, plan.seeds_max.max(3));
    add_seeds(&mut blocks, arms, pilot, plan, executor, cancel, progress)?;
    if let Some(why) = cut_off(arms, &blocks) {
        return Err(CompareError::NoRuns { why });
    }
    let mut seeds_wanted = None;
    if !cancel.is_cancelled() {
        let wanted = seeds_for_precision(&samples(arms, &blocks)?, plan);
        seeds_wanted = wanted.filter(|wanted| *wanted > plan.seeds_max);
        let more = wanted.unwrap_or(pilot).min(plan.seeds_max).saturating_sub(blocks.len());
        add_seeds(&mut blocks, arms, more, plan, executor, cancel, progress)?;
    }
    if blocks.is_empty() {
        let why = "it was interrupted before the first seed had run in all arms".to_owned();
        return Err(CompareError::NoRuns { why });
    }
    let samples = samples(arms, &blocks)?;
    let mut notes = notes(arms, &blocks);
    if let Some(wanted) = seeds_wanted {
        notes.push(format!(
            "{} seeds, the limit; a precision of {} % would need about {wanted}",
            plan.seeds_max, plan.precision_pct
        ));
    }
    let infos = arms.iter().map(|arm| {
        let setup = &arm.cells[0].setup;
        let (policy, workload) = (&setup.template().policy, &setup.template().workload.name);
        let range =
            if arm.cells.len() > 1 { format!(" and {} more", arm.cells.len() - 1) } else { String::new() };
        let (label, machine) = (arm.label.clone(), Some(setup.machine().to_owned()));
        ArmInfo { label, machine, what: format!("{policy}, {workload}{range}"), simulated: true }
    });
    let why = (1..arms.len()).map(|arm| moved(&counters(&blocks, 0), &counters(&blocks, arm)));
    Ok(Comparison {
        arms: infos.collect(),
        rows: rows(samples, Pairing::Paired, plan),
        why: why.collect(),
        counted: true,
        pairing: Pairing::Paired,
        seeds: Some((plan.seed, blocks.len())),
        seeds_wanted,
        plan: *plan,
        interrupted: cancel.is_cancelled(),
        notes,
    })
}

/// Why an arm has no result at all, if all its runs of the first seed were cut off.
fn cut_off(arms: &[&SimulatedArm], blocks: &[Block]) -> Option<String> {
    let whole = |cells: &[Measured]| cells.iter().any(|run| run.end == End::Completed);
    let (_, arm) = blocks.first()?.iter().zip(arms).find(|(cells, _)| !whole(cells))?;
    let until = arm.cells[0].setup.template().until_ns / 1_000_000;
    Some(format!("runs of {} were cut off at {until} ms of simulated time; set `duration`", arm.label))
}

/// Runs `count` further seeds in all arms, the arms of a seed next to each other. A seed that a cancellation cut is left out,
/// in all arms.
fn add_seeds(
    blocks: &mut Vec<Block>,
    arms: &[&SimulatedArm],
    count: usize,
    plan: &Plan,
    executor: &dyn Executor,
    cancel: &Cancel,
    progress: &mut dyn FnMut(FinishedRun<'_>),
) -> Result<(), CompareError> {
    let first = plan.seed + blocks.len() as u64;
    let mut jobs = Vec::new();
    for seed in first..first + count as u64 {
        for arm in arms {
            jobs.extend(arm.cells.iter().map(|cell| Job { setup: &cell.setup, seed }));
        }
    }
    let mut results = run_all(executor, &jobs, plan.threads, cancel, progress).into_iter();
    for _ in 0..count {
        let mut block: Option<Block> = Some(Vec::new());
        for arm in arms {
            let mut cells = Vec::new();
            for _ in &arm.cells {
                match results.next().flatten() {
                    Some(Ok(measured)) => cells.push(measured),
                    None | Some(Err(RunError::Cancelled)) => block = None,
                    Some(Err(error)) => return Err(CompareError::Run { arm: arm.label.clone(), error }),
                }
            }
            if let Some(block) = &mut block {
                block.push(cells);
            }
        }
        // What follows a cut seed ran on another set of seeds than was planned: leave it, so that seeds are a range.
        let Some(block) = block else { break };
        blocks.push(block);
    }
    Ok(())
}

/// The rows of the baseline with the samples of all arms.
fn samples(arms: &[&SimulatedArm], blocks: &[Block]) -> Result<Vec<Samples>, CompareError> {
    let mut all = Vec::new();
    let Some(first) = blocks.first() else { return Ok(all) };
    for (cell, measured) in first[0].iter().enumerate() {
        for row in &measured.rows {
            let Some(better) = row.better else { continue };
            let take = |arm: usize| -> Vec<f64> {
                // A row that a seed lacks is missing as a whole: seeds must stay pairs.
                let values = blocks.iter().map(|block| find(&block[arm][cell].rows, row));
                values.map(|found| found.map(|found| found.value)).collect::<Option<_>>().unwrap_or_default()
            };
            let label = &arms[0].cells[cell].name;
            let name = if label.is_empty() { row.name.clone() } else { format!("{} {label}", row.name) };
            let arms = (0..arms.len()).map(take).collect();
            all.push(Samples { name, unit: row.unit.clone(), better, arms });
        }
    }
    if let Some(missing) = (1..arms.len()).find(|arm| all.iter().all(|row| row.arms[*arm].is_empty())) {
        let rows = |arm: usize| {
            let names = first[arm]
                .iter()
                .flat_map(|cell| &cell.rows)
                .map(|row| format!("{} ({})", row.name, row.unit));
            let names: Vec<String> = names.take(4).collect();
            if names.is_empty() { "nothing, as it was cut off".to_owned() } else { names.join(", ") }
        };
        let why = format!("they have no result in common: {} against {}", rows(0), rows(missing));
        return Err(CompareError::NotComparable {
            a: arms[0].label.clone(),
            b: arms[missing].label.clone(),
            why,
        });
    }
    Ok(all)
}

fn find<'a>(rows: &'a [Metric], like: &Metric) -> Option<&'a Metric> {
    rows.iter().find(|row| row.name == like.name && row.unit == like.unit)
}

/// Seeds with which the interval of the first row's change becomes as narrow as wanted, from the spread of the pilot; for
/// several arms the most that one needs. None without a spread to compute it from.
fn seeds_for_precision(all: &[Samples], plan: &Plan) -> Option<usize> {
    let row = all.first()?;
    let base = row.arms.first()?;
    let needed = row.arms[1..].iter().filter_map(|new| {
        let (base_mean, new_mean) = (describe::mean(base)?, describe::mean(new)?);
        if base_mean <= 0.0 || new_mean <= 0.0 || base.len() != new.len() {
            return None;
        }
        let differences: Vec<f64> =
            new.iter().zip(base).map(|(new, base)| 100.0 * (new / new_mean - base / base_mean)).collect();
        let spread = describe::variance(&differences)?.sqrt();
        // Stein's first stage: the pilot's degrees of freedom, as the spread is known no better than that.
        let reach = student_t_quantile(0.975, (differences.len() - 1) as f64)?;
        Some(((reach * spread / plan.precision_pct).powi(2).ceil() as usize).max(differences.len()))
    });
    needed.max()
}

/// Counters of an arm: a list a seed, the workloads one after another.
fn counters(blocks: &[Block], arm: usize) -> Vec<Vec<Metric>> {
    let of = |block: &Block| {
        let mut sums: Vec<Metric> = Vec::new();
        for metric in block[arm].iter().flat_map(|cell| &cell.counters) {
            match sums.iter_mut().find(|have| have.name == metric.name) {
                Some(have) => have.value += metric.value,
                None => sums.push(metric.clone()),
            }
        }
        sums
    };
    blocks.iter().map(of).collect()
}

fn notes(arms: &[&SimulatedArm], blocks: &[Block]) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, arm) in arms.iter().enumerate() {
        let cut =
            blocks.iter().flat_map(|block| &block[index]).filter(|run| run.end != End::Completed).count();
        if cut > 0 {
            let until = arm.cells[0].setup.template().until_ns / 1_000_000;
            notes.push(format!(
                "{cut} runs of {} were cut off at {until} ms of simulated time and have no result; set `duration`",
                arm.label
            ));
        }
    }
    notes
}
