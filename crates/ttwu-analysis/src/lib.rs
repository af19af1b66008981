//! Analyses: what a trace says about who was woken where, how long tasks waited, and why they were switched out.
//!
//! Each analysis is a fold over the events in time order with a [`Timeline`](ttwu_model::Timeline) beside it, so that a
//! recording larger than memory can be analysed while it is read. It declares which tracepoints it needs; where those
//! were not recorded its result is "not measured", never 0. Results are plain data; rendering is `ttwu-report`'s.
#![forbid(unsafe_code)]

mod analysis;
mod cpus;
mod distribution;
mod irqs;
mod latency;
mod migrations;
mod occupancy;
mod perf_compat;
mod placement;
mod relation;
mod run;
mod schbench;
#[cfg(test)]
mod script;
mod switches;
mod tally;
mod timehist;
mod wakers;
mod who;

pub use analysis::{Analysis, End, Measured, Moment, Needs, Recorded};
pub use cpus::{
    CpuUse, Cpus, CpusAnalysis, QUEUE_LENGTH_MAX, TaskCpus, TaskOnCpu, VIOLATION_BOUNDS_NS, VIOLATIONS_KEPT,
    Violation, Violations,
};
pub use distribution::{Distribution, EXACT_LIMIT, Quantile, Quantiles, Summary};
pub use irqs::{IpisSent, IrqMove, IrqOnCpu, IrqUse, Irqs, IrqsAnalysis, MOVES_KEPT};
pub use latency::{Censored, Latency, LatencyReport, LatencyRow, TaskFilter, WaitClass};
pub use migrations::{
    ByMigrationCause, MigrationCause, MigrationEvidence, Migrations, MigrationsAnalysis, Route,
};
pub use occupancy::{BINS_MAX, Occupancy};
pub use perf_compat::{
    LOG_BUCKETS, LostRecords, PerfIdle, PerfLatency, PerfLatencyOptions, PerfLatencyRow, PerfLatencyTable,
    PerfSortKey, PerfTimehist, PerfTimehistOptions, PerfTimehistRow, PerfTimehistSummary, PerfTimehistTask,
    PerfVersion,
};
pub use placement::{
    ByContext, EXAMPLES, NewTasks, Outcome, Placement, PlacementAnalysis, Stacked, StackedExample,
    TaskPlacement, WakeContext,
};
pub use relation::{ByRelation, Levels, Relation};
pub use run::{Analyser, AnalysisSet, Results, analyse, analyse_one};
pub use schbench::{SchbenchPercentile, SchbenchTable};
pub use switches::{
    ByCause, PreemptionPair, SwitchCause, SwitchEvidence, Switches, SwitchesAnalysis, TaskSwitches,
};
pub use timehist::{
    Left, Named, Timehist, TimehistFilter, TimehistRow, TimehistTotals, WaitBefore, WakeBefore,
};
pub use wakers::{
    CHAIN_TASKS_MAX, CHAIN_WINDOW, Chain, PingPong, WakePair, Wakers, WakersAnalysis, WideWaker,
};
pub use who::Who;
