//! rt-app's log of one thread.
//!
//! Source: rt-app 1.0. All times are microseconds.

use super::scan::Lines;
use super::{Better, ParseError, Samples};

/// One loop of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtAppRow {
    /// Number of the thread.
    pub index: u64,
    /// Work asked for, as calibrated loops.
    pub perf: u64,
    /// Time in run events.
    pub run_us: u64,
    /// From start to end.
    pub period_us: u64,
    /// Start on the machine's clock.
    pub start_us: u64,
    /// End on the machine's clock.
    pub end_us: u64,
    /// Start since the beginning of the run.
    pub relative_start_us: i64,
    /// Planned minus real end; negative on overrun.
    pub slack_us: i64,
    /// Configured duration.
    pub configured_duration_us: u64,
    /// Configured period.
    pub configured_period_us: u64,
    /// Wake-up latency.
    pub wakeup_latency_us: i64,
}

/// The log of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtAppLog {
    /// `SCHED_OTHER` and the like.
    pub policy: String,
    /// Priority.
    pub priority: i64,
    /// The loops.
    pub rows: Vec<RtAppRow>,
}

const HEAD: &str = "#idx     perf      run   period           start             end          rel_st      slack c_duration   c_period     wu_lat";

impl RtAppLog {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if("# Policy : ") else { return Ok(None) };
        let policy = scan.word(&[], "a policy")?.to_owned();
        scan.literal(" priority : ")?;
        let priority = scan.i64("a priority")?;
        scan.end()?;
        lines.exact(HEAD)?;
        let mut rows = Vec::new();
        while lines.peek().is_some_and(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())) {
            let mut scan = lines.next("a loop")?;
            rows.push(RtAppRow {
                index: scan.u64("a thread's number")?,
                perf: scan.u64("loops")?,
                run_us: scan.u64("run")?,
                period_us: scan.u64("period")?,
                start_us: scan.u64("start")?,
                end_us: scan.u64("end")?,
                relative_start_us: scan.i64("relative start")?,
                slack_us: scan.i64("slack")?,
                configured_duration_us: scan.u64("configured duration")?,
                configured_period_us: scan.u64("configured period")?,
                wakeup_latency_us: scan.i64("wake-up latency")?,
            });
            scan.end()?;
        }
        Ok(Some(Self { policy, priority, rows }))
    }

    /// Appends the log.
    pub fn write(&self, out: &mut String) {
        out.push_str(&format!("# Policy : {} priority : {}\n{HEAD}\n", self.policy, self.priority));
        for row in &self.rows {
            out.push_str(&format!(
                "{:4} {:8} {:8} {:8} {:15} {:15} {:15} {:10} {:10} {:10} {:10}\n",
                row.index,
                row.perf,
                row.run_us,
                row.period_us,
                row.start_us,
                row.end_us,
                row.relative_start_us,
                row.slack_us,
                row.configured_duration_us,
                row.configured_period_us,
                row.wakeup_latency_us
            ));
        }
    }

    /// Latency and slack of threads with a period; run and period of all.
    pub(crate) fn samples(&self) -> Vec<Samples> {
        let series = |metric: &str, better, take: &dyn Fn(&RtAppRow) -> Option<f64>| {
            let values: Vec<f64> = self.rows.iter().filter_map(take).collect();
            (!values.is_empty()).then(|| Samples { metric: metric.to_owned(), unit: "us", better, values })
        };
        // Without a timer rt-app writes 0 for what it did not measure.
        let timed = |row: &RtAppRow| row.configured_period_us > 0;
        [
            series("run", Better::Lower, &|row| Some(row.run_us as f64)),
            series("period", Better::Lower, &|row| Some(row.period_us as f64)),
            series("slack", Better::Higher, &|row| timed(row).then_some(row.slack_us as f64)),
            series("wakeup_latency", Better::Lower, &|row| {
                timed(row).then_some(row.wakeup_latency_us as f64)
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
