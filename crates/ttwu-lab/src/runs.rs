//! Runs: what makes one, and many of them side by side.

mod executor;
mod pool;

pub use executor::{Cancel, Executor, Measured, RunError, Simulator, UnknownExecutor, executor};
pub use pool::{FinishedRun, Job, Runs, run_all};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The results of `work` on all jobs, in their order, whatever the number of threads.
pub(crate) fn in_parallel<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
    work: impl Fn(usize, &J) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1).min(jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { return };
                    let result = work(at, job);
                    *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    let finished = results.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    finished.map(|result| result.expect("a scope ends when every job has")).collect()
}
