//! Renderers: analyses' plain data as text. Nothing is computed here that is not a matter of units or widths.
//!
//! One file a view, one public function a file, each returning text or writing to a `dyn Write`.
#![forbid(unsafe_code)]

mod perf_latency;
mod perf_timehist;
pub mod topology;

pub use perf_latency::{perf_latency, perf_latency_histogram};
pub use perf_timehist::{PerfTimehistColumns, PerfTimehistPrinter};
