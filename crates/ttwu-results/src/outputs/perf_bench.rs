//! `perf bench sched messaging` and `perf bench sched pipe`.
//!
//! Source: perf 6.1's output. Milliseconds and operations a second are truncated, so the writers derive them from
//! microseconds.

use super::scan::{Lines, fixed};
use super::{Better, ParseError, Samples};

/// One run of `perf bench sched messaging`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfMessaging {
    /// Threads (`-t`) or processes.
    pub threads: bool,
    /// Senders a group, and receivers: 20.
    pub senders: u64,
    /// Groups (`-g`).
    pub groups: u64,
    /// Tasks in all, as printed: groups × 2 × senders.
    pub tasks: u64,
    /// Run time in milliseconds, truncated.
    pub time_ms: u64,
}

impl PerfMessaging {
    /// What a run prints after `time_ns` nanoseconds.
    #[must_use]
    pub const fn of_run(threads: bool, groups: u64, time_ns: u64) -> Self {
        Self { threads, senders: 20, groups, tasks: groups * 40, time_ms: time_ns / 1_000_000 }
    }

    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        if lines.next_if("# Running 'sched/messaging' benchmark:").is_none() || is_usage(lines) {
            return Ok(None);
        }
        let mut scan = lines.next("`# … sender and receiver … per group`")?;
        scan.literal("# ")?;
        let senders = scan.u64("the number of senders")?;
        scan.literal(" sender and receiver ")?;
        let threads = match scan.word(&[], "`threads` or `processes`")? {
            "threads" => true,
            "processes" => false,
            _ => return Err(scan.fail("`threads` or `processes` before this")),
        };
        scan.literal(" per group")?;
        scan.end()?;
        let mut scan = lines.next("`# … groups == … run`")?;
        scan.literal("# ")?;
        let groups = scan.u64("the number of groups")?;
        scan.literal(" groups == ")?;
        let tasks = scan.u64("the number of tasks")?;
        scan.literal(if threads { " threads run" } else { " processes run" })?;
        scan.end()?;
        let time_ms = total_time(lines)?;
        Ok(Some(Self { threads, senders, groups, tasks, time_ms }))
    }

    /// Appends the five lines.
    pub fn write(&self, out: &mut String) {
        let what = if self.threads { "threads" } else { "processes" };
        out.push_str(&format!(
            "# Running 'sched/messaging' benchmark:\n# {} sender and receiver {what} per group\n# {} groups == {} {what} run\n",
            self.senders, self.groups, self.tasks
        ));
        write_total_time(self.time_ms, out);
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        vec![Samples::one("time", "s", Better::Lower, self.time_ms as f64 / 1e3)]
    }
}

/// One run of `perf bench sched pipe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfPipe {
    /// Threads (`-T`) or processes.
    pub threads: bool,
    /// Round trips (`-l`).
    pub loops: u64,
    /// Run time in milliseconds, truncated.
    pub time_ms: u64,
    /// Microseconds a round trip, in millionths.
    pub us_per_op_e6: u64,
    /// Round trips a second, truncated.
    pub ops_per_s: u64,
}

impl PerfPipe {
    /// What a run prints after `time_us` microseconds (perf reads the time of day).
    ///
    /// # Panics
    /// Without loops, or with no time.
    #[must_use]
    pub fn of_run(threads: bool, loops: u64, time_us: u64) -> Self {
        assert!(loops > 0 && time_us > 0, "a rate of nothing");
        Self {
            threads,
            loops,
            time_ms: time_us / 1000,
            us_per_op_e6: (time_us as f64 / loops as f64 * 1e6).round() as u64,
            ops_per_s: (loops as f64 / (time_us as f64 / 1e6)) as u64,
        }
    }

    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        if lines.next_if("# Running 'sched/pipe' benchmark:").is_none() || is_usage(lines) {
            return Ok(None);
        }
        let mut scan = lines.next("`# Executed … pipe operations`")?;
        scan.literal("# Executed ")?;
        let loops = scan.u64("the number of operations")?;
        scan.literal(" pipe operations between two ")?;
        let threads = match scan.word(&[], "`threads` or `processes`")? {
            "threads" => true,
            "processes" => false,
            _ => return Err(scan.fail("`threads` or `processes` before this")),
        };
        scan.end()?;
        let time_ms = total_time(lines)?;
        lines.exact("")?;
        let mut scan = lines.next("microseconds an operation")?;
        let us_per_op_e6 = scan.fixed(6, "microseconds")?;
        scan.literal(" usecs/op")?;
        scan.end()?;
        let mut scan = lines.next("operations a second")?;
        let ops_per_s = scan.u64("operations a second")?;
        scan.literal(" ops/sec")?;
        scan.end()?;
        Ok(Some(Self { threads, loops, time_ms, us_per_op_e6, ops_per_s }))
    }

    /// Appends the seven lines.
    pub fn write(&self, out: &mut String) {
        let what = if self.threads { "threads" } else { "processes" };
        out.push_str(&format!(
            "# Running 'sched/pipe' benchmark:\n# Executed {} pipe operations between two {what}\n",
            self.loops
        ));
        write_total_time(self.time_ms, out);
        out.push_str(&format!(
            "\n {:>14} usecs/op\n {:>14} ops/sec\n",
            fixed(self.us_per_op_e6, 6),
            self.ops_per_s
        ));
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        vec![
            Samples::one("pipe", "us/op", Better::Lower, self.us_per_op_e6 as f64 / 1e6),
            Samples::one("pipe_rate", "1/s", Better::Higher, self.ops_per_s as f64),
        ]
    }
}

/// `perf bench -f simple`: the seconds alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfSimple {
    /// Run time in milliseconds, truncated.
    pub time_ms: u64,
}

impl PerfSimple {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if("") else { return Ok(None) };
        let Ok(time_ms) = scan.fixed(3, "seconds") else { return Ok(None) };
        Ok(scan.end().is_ok().then_some(Self { time_ms }))
    }

    /// Appends the line.
    pub fn write(&self, out: &mut String) {
        out.push_str(&fixed(self.time_ms, 3));
        out.push('\n');
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        vec![Samples::one("time", "s", Better::Lower, self.time_ms as f64 / 1e3)]
    }
}

/// The suite's name is followed by its usage, not by a result.
fn is_usage(lines: &Lines<'_>) -> bool {
    (0..2).any(|ahead| lines.peek_at(ahead).is_some_and(|line| line.trim_start().starts_with("Usage:")))
}

fn total_time(lines: &mut Lines<'_>) -> Result<u64, ParseError> {
    lines.exact("")?;
    let mut scan = lines.next("`Total time:`")?;
    scan.pad();
    scan.literal("Total time: ")?;
    let time_ms = scan.fixed(3, "seconds")?;
    scan.literal(" [sec]")?;
    scan.end()?;
    Ok(time_ms)
}

fn write_total_time(time_ms: u64, out: &mut String) {
    out.push_str(&format!("\n {:>14}: {} [sec]\n", "Total time", fixed(time_ms, 3)));
}
