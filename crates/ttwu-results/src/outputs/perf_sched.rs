//! `perf sched latency`, stock, and with the sum of delays that a patched perf prints.
//!
//! Source: perf 6.1; the patched layout as quoted in mails of 2023 and 2024. Times are kept in microseconds and, where perf
//! prints fewer digits, in its last digit.

use super::scan::{Lines, Scan, fixed};
use super::{Better, ParseError, Samples};

/// Whose row it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerfSchedWho {
    /// So many threads of one name.
    Merged(u64),
    /// One task.
    Pid(u64),
}

/// The longest delay, or the sum of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerfSchedDelay {
    /// Stock perf: when the longest delay began and ended.
    Span {
        /// Begin, microseconds.
        start_us: u64,
        /// End, microseconds.
        end_us: u64,
    },
    /// Patched perf: the sum of all delays, microseconds.
    Sum(u64),
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfSchedRow {
    /// Task name.
    pub name: String,
    /// Threads or pid.
    pub who: PerfSchedWho,
    /// Run time, microseconds.
    pub runtime_us: u64,
    /// Context switches.
    pub switches: u64,
    /// Mean delay, microseconds.
    pub delay_us_avg: u64,
    /// Longest delay, microseconds.
    pub delay_us_max: u64,
    /// What stands behind them.
    pub delay: PerfSchedDelay,
}

/// The TOTAL row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfSchedTotal {
    /// Run time, microseconds.
    pub runtime_us: u64,
    /// Context switches.
    pub switches: u64,
    /// Patched perf: longest delay and sum of delays, microseconds.
    pub delays: Option<(u64, u64)>,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfSchedLatency {
    /// Rows, by mean delay.
    pub rows: Vec<PerfSchedRow>,
    /// The total, unless the table was cut off.
    pub total: Option<PerfSchedTotal>,
    /// Notes below it (`2.128% context switch bugs (1 out of 47)`).
    pub infos: Vec<String>,
}

const HEAD: &str = "  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    |";
const HEAD_SPAN: &str = " Max delay start           | Max delay end          |";
const HEAD_SUM: &str = " Sum delay ms     |";
const DASHES_SPAN: usize = 139;
const DASHES_SUM: usize = 107;

impl PerfSchedLatency {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let dashed = |line: &str| line.starts_with(" --") && line.trim().bytes().all(|byte| byte == b'-');
        if !lines.peek().is_some_and(dashed) || !lines.peek_at(1).is_some_and(|line| line.starts_with(HEAD)) {
            return Ok(None);
        }
        lines.next("")?;
        lines.next("")?;
        if !lines.peek().is_some_and(dashed) {
            return Err(lines.fail("a line of dashes"));
        }
        lines.next("")?;
        let mut rows = Vec::new();
        while lines.peek().is_some_and(|line| line.starts_with("  ") && line.contains(" | avg:")) {
            rows.push(row(lines.next("a row")?)?);
        }
        let mut total = None;
        let mut infos = Vec::new();
        if lines.peek().is_some_and(dashed) {
            lines.next("")?;
            total = Some(total_row(lines.next("`TOTAL:`")?)?);
            if !lines.peek().is_some_and(dashed) {
                return Err(lines.fail("a line of dashes"));
            }
            lines.next("")?;
            while let Some(scan) = lines.next_if("  INFO: ") {
                infos.push(scan.rest().to_owned());
            }
        }
        Ok(Some(Self { rows, total, infos }))
    }

    /// Appends the table. Without rows, stock perf's.
    pub fn write(&self, out: &mut String) {
        let sum = self.rows.iter().any(|row| matches!(row.delay, PerfSchedDelay::Sum(_)));
        let (head, dashes) = if sum { (HEAD_SUM, DASHES_SUM) } else { (HEAD_SPAN, DASHES_SPAN) };
        let dashes = "-".repeat(dashes);
        out.push_str(&format!(" {dashes}\n{HEAD}{head}\n {dashes}\n"));
        for row in &self.rows {
            row.write(out);
        }
        if let Some(total) = &self.total {
            let delays = total.delays.map_or_else(String::new, |(max, sum)| {
                format!("{:17}| {:>12} ms | {:>13} ms |", "", fixed(max, 3), fixed(sum, 3))
            });
            let below = if total.delays.is_some() { DASHES_SUM } else { 51 };
            let above = if total.delays.is_some() { DASHES_SUM } else { 113 };
            out.push_str(&format!(
                " {}\n  TOTAL:                |{:>11} ms |{:9} |{delays}\n {}\n",
                "-".repeat(above),
                fixed(total.runtime_us, 3),
                total.switches,
                "-".repeat(below)
            ));
        }
        for info in &self.infos {
            out.push_str(&format!("  INFO: {info}\n"));
        }
    }

    /// Mean and longest delay by name; a task that never waited has none.
    pub(crate) fn samples(&self) -> Vec<Samples> {
        let mut samples = Vec::new();
        for row in &self.rows {
            let waited = match row.delay {
                PerfSchedDelay::Span { end_us, .. } => end_us > 0,
                PerfSchedDelay::Sum(sum) => sum > 0,
            };
            if waited {
                let value = |us: u64| us as f64 / 1e3;
                let name = &row.name;
                samples.push(Samples::one(
                    format!("{name} delay_avg"),
                    "ms",
                    Better::Lower,
                    value(row.delay_us_avg),
                ));
                samples.push(Samples::one(
                    format!("{name} delay_max"),
                    "ms",
                    Better::Lower,
                    value(row.delay_us_max),
                ));
            }
        }
        if let Some(total) = &self.total {
            samples.push(Samples::one("switches", "switches", Better::Lower, total.switches as f64));
        }
        samples
    }
}

impl PerfSchedRow {
    fn write(&self, out: &mut String) {
        let who = match self.who {
            PerfSchedWho::Merged(count) => format!("{}:({count})", self.name),
            PerfSchedWho::Pid(pid) => format!("{}:{pid}", self.name),
        };
        let delay = match self.delay {
            PerfSchedDelay::Span { start_us, end_us } => {
                format!(" max start: {:>12} s | max end: {:>12} s", fixed(start_us, 6), fixed(end_us, 6))
            }
            PerfSchedDelay::Sum(sum) => format!(" sum:{:>10} ms |", fixed(sum, 3)),
        };
        out.push_str(&format!(
            "  {who:<22}|{:>11} ms |{:9} | avg:{:>8} ms | max:{:>8} ms |{delay}\n",
            fixed(self.runtime_us, 3),
            self.switches,
            fixed(self.delay_us_avg, 3),
            fixed(self.delay_us_max, 3)
        ));
    }
}

fn row(mut scan: Scan<'_>) -> Result<PerfSchedRow, ParseError> {
    let who = scan.until("|")?.trim();
    let (name, who) =
        who.rsplit_once(':').ok_or_else(|| scan.fail("`name:pid` or `name:(threads)` before this"))?;
    let count = who.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let who = match count {
        Some(count) => count.parse().map(PerfSchedWho::Merged),
        None => who.parse().map(PerfSchedWho::Pid),
    }
    .map_err(|_| scan.fail("`name:pid` or `name:(threads)` before this"))?;
    let runtime_us = scan.fixed(3, "milliseconds")?;
    scan.literal(" ms |")?;
    let switches = scan.u64("a number of switches")?;
    scan.literal(" | avg:")?;
    let delay_us_avg = scan.fixed(3, "milliseconds")?;
    scan.literal(" ms | max:")?;
    let delay_us_max = scan.fixed(3, "milliseconds")?;
    scan.literal(" ms | ")?;
    let delay = if scan.have("sum:") {
        let sum = scan.fixed(3, "milliseconds")?;
        scan.literal(" ms |")?;
        PerfSchedDelay::Sum(sum)
    } else {
        scan.literal("max start:")?;
        let start_us = scan.fixed(6, "seconds")?;
        scan.literal(" s | max end:")?;
        let end_us = scan.fixed(6, "seconds")?;
        scan.literal(" s")?;
        PerfSchedDelay::Span { start_us, end_us }
    };
    scan.end()?;
    Ok(PerfSchedRow { name: name.to_owned(), who, runtime_us, switches, delay_us_avg, delay_us_max, delay })
}

fn total_row(mut scan: Scan<'_>) -> Result<PerfSchedTotal, ParseError> {
    scan.literal("  TOTAL:")?;
    scan.pad();
    scan.literal("|")?;
    let runtime_us = scan.fixed(3, "milliseconds")?;
    scan.literal(" ms |")?;
    let switches = scan.u64("a number of switches")?;
    scan.literal(" |")?;
    let mut delays = None;
    if !scan.rest().is_empty() {
        scan.pad();
        scan.literal("|")?;
        let max = scan.fixed(3, "milliseconds")?;
        scan.literal(" ms |")?;
        let sum = scan.fixed(3, "milliseconds")?;
        scan.literal(" ms |")?;
        delays = Some((max, sum));
    }
    scan.end()?;
    Ok(PerfSchedTotal { runtime_us, switches, delays })
}
