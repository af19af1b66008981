//! The laboratory: many runs of scenarios, and what can be said of their differences.
//!
//! ```text
//! arms (policy, machine, workload, settings, seed) ─► runs on all cores ─► metrics ─► compare · attribute · sweep · reproduce
//! ```
//!
//! Parallelism is over runs only, and results stand in the order of the jobs, so that any number of threads gives the same
//! answer. Nothing here prints, reads a clock or knows how runs are made: an [`Executor`] does that.
#![forbid(unsafe_code)]

pub mod arm;
pub mod attribute;
pub mod calibrate;
pub mod compare;
pub mod fuzz;
mod metrics;
mod printed;
pub mod reproduce;
mod runs;
mod setup;
pub mod sweep;

pub use metrics::{Metric, counters, find, rows};
pub use printed::{printed, printed_text};
pub use runs::{
    Cancel, Executor, FinishedRun, Job, Measured, RunError, Runs, Simulator, UnknownExecutor, executor,
    run_all,
};
pub use setup::Setup;
