//! Analyses: what a trace says about who was woken where, how long tasks waited, and why they were switched out.
//!
//! Each analysis is a fold over the events in time order with a [`Timeline`](ttwu_model::Timeline) beside it, so that a
//! recording larger than memory can be analysed while it is read. It declares which tracepoints it needs; where those
//! were not recorded its result is "not measured", never 0. Results are plain data; rendering is `ttwu-report`'s.
#![forbid(unsafe_code)]

mod analysis;
mod distribution;
mod latency;
mod perf_compat;
mod run;
mod schbench;

pub use analysis::{Analysis, End, Measured, Moment, Needs, Recorded};
pub use distribution::{Distribution, EXACT_LIMIT, Quantile, Quantiles, Summary};
pub use latency::{Censored, Latency, LatencyReport, LatencyRow, TaskFilter};
pub use perf_compat::{
    LOG_BUCKETS, LostRecords, PerfLatency, PerfLatencyOptions, PerfLatencyRow, PerfLatencyTable, PerfSortKey,
    PerfVersion,
};
pub use run::{Analyser, AnalysisSet, Results, analyse, analyse_one};
pub use schbench::{SchbenchPercentile, SchbenchTable};
