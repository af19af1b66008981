//! A matrix of runs: machines × policies × workloads × settings × seeds. docs/sweep.md is its manual.
//!
//! A cell is one run. Done cells are files named by their scenario's id, each written aside and renamed, so that a sweep that
//! was killed at any moment goes on with the cells that are missing, and parts of a sweep on several machines can share a folder
//! or be put together by copying. A cell of another version of ttwu does not count as done.

#[cfg(feature = "parquet")]
mod parquet_dataset;
mod plan;
mod store;
mod table;

pub use plan::{PlanError, SweepPlan};
pub use table::{render_json, render_text};

use crate::Setup;
use crate::runs::{Cancel, Executor, FinishedRun, Job, Measured, RunError, run_all};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use store::Store;

/// One run of the matrix.
#[derive(Clone, Debug)]
pub struct SweepCell {
    /// Which setup of the plan.
    pub setup: usize,
    /// Its seed.
    pub seed: u64,
    /// The scenario's id.
    pub id: String,
}

/// A setup of the matrix under the names of its plan.
#[derive(Clone, Debug)]
pub struct SweepSetup {
    /// Machine.
    pub machine: String,
    /// Policy.
    pub policy: String,
    /// Workload, ranges resolved.
    pub workload: String,
    /// Settings; empty where the plan has none.
    pub settings: String,
    /// What is run.
    pub setup: Setup,
}

/// Part `index` (from 0) of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0.
    pub index: usize,
    /// Of how many.
    pub count: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Does it contain the cell of this place in the plan? Parts take turns, so that each has cheap and dear cells.
    #[must_use]
    pub const fn has(self, cell: usize) -> bool {
        cell % self.count == self.index
    }
}

/// What came of a sweep.
#[derive(Clone, Debug)]
pub struct Swept {
    /// The folder.
    pub out: PathBuf,
    /// Setups, in the plan's order.
    pub setups: Vec<SweepSetup>,
    /// The plan's row, if it names one.
    pub row: Option<String>,
    /// Policies in the plan's order.
    pub policies: Vec<String>,
    /// Cells of the whole plan.
    pub cells_plan: usize,
    /// Cells of this part.
    pub cells: usize,
    /// Of these, done now.
    pub done: usize,
    /// Of these, done by this call.
    pub run: usize,
    /// Of these, failed, with the reason.
    pub failed: Vec<(String, RunError)>,
    /// All results of the plan that are in the folder, of other parts too.
    pub results: Vec<(SweepCell, Measured)>,
    /// Somebody ended it.
    pub interrupted: bool,
}

/// Why there is no sweep.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A file could not be written or read.
    #[error("cannot use {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Runs what is missing of a part, and writes the dataset `results.csv` of all that is there (in builds with the feature
/// `parquet`, `results.parquet` too).
///
/// # Errors
/// When the folder cannot be used. What was done before stays.
pub fn sweep(
    plan: &SweepPlan,
    out: &Path,
    shard: Shard,
    threads: NonZeroUsize,
    executor: &dyn Executor,
    cancel: &Cancel,
    progress: &mut dyn FnMut(FinishedRun<'_>),
) -> Result<Swept, SweepError> {
    let store = Store::open(out)?;
    let cells = plan.cells();
    let mine: Vec<&SweepCell> =
        cells.iter().enumerate().filter(|(index, _)| shard.has(*index)).map(|(_, cell)| cell).collect();
    let todo: Vec<&SweepCell> = mine.iter().filter(|cell| store.read(&cell.id).is_none()).copied().collect();
    let jobs: Vec<Job<'_>> =
        todo.iter().map(|cell| Job { setup: &plan.setups()[cell.setup].setup, seed: cell.seed }).collect();
    let (mut failed, mut run, mut broken) = (Vec::new(), 0, None);
    run_all(executor, &jobs, threads, cancel, &mut |finished| {
        let id = &todo[finished.index].id;
        match finished.result {
            Ok(measured) => match store.write(id, measured) {
                Ok(()) => run += 1,
                Err(error) => {
                    // Nothing that follows could be kept either.
                    cancel.cancel();
                    broken.get_or_insert(error);
                }
            },
            Err(RunError::Cancelled) => {}
            Err(error) => failed.push((id.clone(), error.clone())),
        }
        progress(finished);
    });
    if let Some(error) = broken {
        return Err(error);
    }
    collect(plan, store, &cells, mine.len(), shard, (run, failed), cancel.is_cancelled())
}

/// What is in the folder, without running anything.
///
/// # Errors
/// As [`sweep`].
pub fn survey(plan: &SweepPlan, out: &Path, shard: Shard) -> Result<Swept, SweepError> {
    let cells = plan.cells();
    let mine = (0..cells.len()).filter(|cell| shard.has(*cell)).count();
    collect(plan, Store::open(out)?, &cells, mine, shard, (0, Vec::new()), false)
}

fn collect(
    plan: &SweepPlan,
    store: Store,
    cells: &[SweepCell],
    mine: usize,
    shard: Shard,
    (run, failed): (usize, Vec<(String, RunError)>),
    interrupted: bool,
) -> Result<Swept, SweepError> {
    let mut results = Vec::new();
    let mut done = 0;
    for (index, cell) in cells.iter().enumerate() {
        if let Some(measured) = store.read(&cell.id) {
            done += usize::from(shard.has(index));
            results.push((cell.clone(), measured));
        }
    }
    store.write_dataset(plan.setups(), &results)?;
    Ok(Swept {
        out: store.into_folder(),
        setups: plan.setups().to_vec(),
        row: plan.row().map(str::to_owned),
        policies: plan.policies().to_vec(),
        cells_plan: cells.len(),
        cells: mine,
        done,
        run,
        failed,
        results,
        interrupted,
    })
}
