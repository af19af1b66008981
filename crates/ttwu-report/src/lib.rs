//! Renderers: analyses' plain data as text, JSON and HTML. Nothing is computed here that is not a matter of units or widths.
//!
//! One file a view, one public function a file, each returning text or writing to a `dyn Write`.
#![forbid(unsafe_code)]

mod cpus;
mod html;
mod irqs;
mod json;
mod latency;
mod latency_json;
mod layout;
mod migrations;
mod overview;
mod perf_latency;
mod perf_timehist;
mod placement;
mod report;
mod schbench;
mod svg;
mod switches;
mod timehist;
pub mod topology;
mod units;
mod wakers;

pub use cpus::cpus;
pub use html::report_html;
pub use irqs::irqs;
pub use json::report_json;
pub use latency::{RowsBy, latency};
pub use latency_json::latency_json;
pub use migrations::migrations;
pub use overview::overview;
pub use perf_latency::{perf_latency, perf_latency_histogram, perf_latency_sum};
pub use perf_timehist::{PerfTimehistColumns, PerfTimehistPrinter};
pub use placement::placement;
pub use report::{Report, health_faults};
pub use schbench::{SchbenchGeneration, schbench};
pub use switches::switches;
pub use timehist::{timehist_header, timehist_row};
pub use wakers::wakers;
