//! Two arms or more, compared: rows with effect, interval and verdict, and the counters that moved.
//!
//! **How many seeds.** All simulated arms run with the same seeds (common random numbers), so that a row's samples are pairs.
//! A pilot of [`Plan::pilot`] seeds gives the spread of the first row's paired differences; from it *alone* the number of seeds
//! that the wanted precision needs is computed, once; that many are run, and the comparison is read once, at the end. The rule
//! sees the spread, never the direction or the significance of a difference, and nobody looks twice: that is what keeps the
//! share of false differences at 5 % (a test measures it).
//!
//! **How sure.** Each row is judged by its 95 % interval (`ttwu-stats`). A row is called better or worse only if its probability
//! stays below 5 % after Holm's correction over all rows and arms of the comparison; equivalence needs the interval inside the
//! margin and is not corrected.

mod judged;
mod render;
mod simulate;
mod why;

pub use judged::{ArmInfo, Comparison, Row, RowArm};
pub use render::{Style, render};
pub(crate) use render::{csv_field, wrap};
pub use why::Moved;

use crate::arm::{Arm, KeptArm, SimulatedArm};
use crate::runs::{Cancel, Executor, FinishedRun, RunError};
use std::num::NonZeroUsize;

/// How much to run, and what matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The half width of the first row's interval that is wanted, percent.
    pub precision_pct: f64,
    /// Seeds of the pilot, at least 3.
    pub pilot: usize,
    /// Seeds at most.
    pub seeds_max: usize,
    /// A change of up to this many percent does not matter.
    pub margin_pct: f64,
    /// The first seed.
    pub seed: u64,
    /// Threads.
    pub threads: NonZeroUsize,
}

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The arms' samples cannot stand beside each other.
    #[error("{a} and {b} cannot be compared: {why}")]
    NotComparable {
        /// One arm.
        a: String,
        /// The other.
        b: String,
        /// The reason.
        why: String,
    },
    /// No seed gave a result in all arms.
    #[error("no run gave a result: {why}")]
    NoRuns {
        /// The first reason.
        why: String,
    },
    /// A run failed.
    #[error("{arm}: {error}")]
    Run {
        /// The arm.
        arm: String,
        /// Why.
        error: RunError,
    },
}

/// Compares the arms; the first is the baseline. `progress` is called after each run of each stage.
///
/// # Errors
/// When the arms are of different kinds or machines, or give no common rows; when nothing could be run.
pub fn compare(
    arms: &[Arm],
    plan: &Plan,
    executor: &dyn Executor,
    cancel: &Cancel,
    progress: &mut dyn FnMut(FinishedRun<'_>),
) -> Result<Comparison, CompareError> {
    let simulated: Vec<&SimulatedArm> = arms.iter().filter_map(|arm| simulated(arm)).collect();
    let kept: Vec<&KeptArm> = arms.iter().filter_map(|arm| measured(arm)).collect();
    if let (Some(a), Some(b)) = (simulated.first(), kept.first()) {
        let why = format!("one is simulated, the other is {}", b.kind);
        return Err(CompareError::NotComparable { a: a.label.clone(), b: b.label.clone(), why });
    }
    if simulated.is_empty() {
        judged::kept(&kept, plan)
    } else {
        simulate::run(&simulated, plan, executor, cancel, progress)
    }
}

const fn simulated(arm: &Arm) -> Option<&SimulatedArm> {
    match arm {
        Arm::Simulated(arm) => Some(arm),
        Arm::Kept(_) => None,
    }
}

const fn measured(arm: &Arm) -> Option<&KeptArm> {
    match arm {
        Arm::Simulated(_) => None,
        Arm::Kept(arm) => Some(arm),
    }
}
