//! Renderers: analyses' plain data as text. Nothing is computed here that is not a matter of units or widths.
//!
//! One file a view, one public function a file, each returning text or writing to a `dyn Write`.
#![forbid(unsafe_code)]

mod latency;
mod latency_json;
mod perf_latency;
mod perf_timehist;
mod schbench;
mod timehist;
pub mod topology;
mod units;

pub use latency::{RowsBy, latency};
pub use latency_json::latency_json;
pub use perf_latency::{perf_latency, perf_latency_histogram, perf_latency_sum};
pub use perf_timehist::{PerfTimehistColumns, PerfTimehistPrinter};
pub use schbench::{SchbenchGeneration, schbench};
pub use timehist::{timehist_header, timehist_row};
