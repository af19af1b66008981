//! Many runs on all cores.
//!
//! Workers take the next job of the list, so that jobs begin in the list's order: who interleaves arms in the list interleaves
//! them in time. Results are put where their job stands, and are the same for any number of threads.

use super::{Cancel, Executor, Measured, RunError};
use crate::Setup;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// One run to be made.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Of what.
    pub setup: &'a Setup,
    /// With which seed.
    pub seed: u64,
}

/// Told to the caller, on its own thread, after each run.
#[derive(Clone, Copy, Debug)]
pub struct FinishedRun<'a> {
    /// The job's place in the list.
    pub index: usize,
    /// What came of it.
    pub result: &'a Result<Measured, RunError>,
    /// Runs that have ended, this one included.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
}

/// A result for each job, in their order; `None` for a run that did not begin because of a cancellation.
pub type Runs = Vec<Option<Result<Measured, RunError>>>;

/// Makes all runs, on `threads` threads; `finished` is called after each.
///
/// # Panics
/// When an executor panics outside a run.
pub fn run_all(
    executor: &dyn Executor,
    jobs: &[Job<'_>],
    threads: NonZeroUsize,
    cancel: &Cancel,
    finished: &mut dyn FnMut(FinishedRun<'_>),
) -> Runs {
    let work = |job: &Job<'_>| executor.run(&job.setup.scenario(job.seed), cancel);
    run_each(jobs, threads, cancel, work, &mut |index, result, done| {
        finished(FinishedRun { index, result, done, total: jobs.len() });
    })
}

/// The same for whatever is done for a job: `finished` gets the job's place, its result and how many have ended.
pub(crate) fn run_each<J: Sync, R: Send>(
    jobs: &[J],
    threads: NonZeroUsize,
    cancel: &Cancel,
    work: impl Fn(&J) -> R + Sync,
    finished: &mut dyn FnMut(usize, &R, usize),
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads.get().min(jobs.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while !cancel.is_cancelled() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    if sender.send((index, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (done, (index, result)) in receiver.iter().enumerate() {
            finished(index, &result, done + 1);
            results[index] = Some(result);
        }
    });
    results
}
