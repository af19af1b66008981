//! Runs: what makes one, and many of them side by side.

mod executor;
mod pool;

pub(crate) use executor::simulate;
pub use executor::{Cancel, Executor, Measured, RunError, Simulator, UnknownExecutor, executor};
pub(crate) use pool::run_each;
pub use pool::{FinishedRun, Job, Runs, run_all};
