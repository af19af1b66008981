//! hackbench (rt-tests), and the lists of its runs that mails quote.
//!
//! Source: rt-tests 2.4's output. The task figures are derived, so the data hold groups and file descriptors only as printed:
//! a pasted text whose arithmetic is wrong still parses, and `check` says what is wrong.

use super::scan::{Lines, fixed};
use super::{Better, ParseError, Samples};

/// One run of hackbench: the three lines that it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hackbench {
    /// Threads (`-T`) or processes.
    pub threads: bool,
    /// Groups (`-g`).
    pub groups: u64,
    /// File descriptors a group: twice `-f`.
    pub fds: u64,
    /// All tasks: groups × file descriptors, as printed.
    pub tasks: u64,
    /// Messages that each sender passes to each receiver of its group (`-l`).
    pub loops: u64,
    /// Bytes a message (`-s`).
    pub bytes: u64,
    /// Run time in milliseconds, truncated.
    pub time_ms: u64,
}

impl Hackbench {
    /// What a run of these settings prints after `time_ns` nanoseconds (truncated to milliseconds, as hackbench does).
    ///
    /// `fds` is `-f`: senders a group, and receivers.
    #[must_use]
    pub const fn of_run(threads: bool, groups: u64, fds: u64, loops: u64, bytes: u64, time_ns: u64) -> Self {
        Self {
            threads,
            groups,
            fds: 2 * fds,
            tasks: groups * 2 * fds,
            loops,
            bytes,
            time_ms: time_ns / 1_000_000,
        }
    }

    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if("Running in ") else { return Ok(None) };
        if !scan.rest().contains(" mode with ") {
            return Ok(None);
        }
        let threads = match scan.word(&[], "`threaded` or `process`")? {
            "threaded" => true,
            "process" => false,
            _ => return Err(scan.fail("`threaded` or `process` before `mode`")),
        };
        scan.literal(" mode with ")?;
        let groups = scan.u64("the number of groups")?;
        scan.literal(" groups using ")?;
        let fds = scan.u64("the number of file descriptors")?;
        scan.literal(" file descriptors each (== ")?;
        let tasks = scan.u64("the number of tasks")?;
        scan.literal(" tasks)")?;
        scan.end()?;
        let mut scan = lines.next("`Each sender will pass … messages`")?;
        scan.literal("Each sender will pass ")?;
        let loops = scan.u64("the number of messages")?;
        scan.literal(" messages of ")?;
        let bytes = scan.u64("the message size")?;
        scan.literal(" bytes")?;
        scan.end()?;
        let mut scan = lines.next("`Time: `")?;
        scan.literal("Time: ")?;
        let time_ms = scan.fixed(3, "seconds")?;
        scan.end()?;
        Ok(Some(Self { threads, groups, fds, tasks, loops, bytes, time_ms }))
    }

    /// Appends the three lines.
    pub fn write(&self, out: &mut String) {
        let mode = if self.threads { "threaded" } else { "process" };
        out.push_str(&format!(
            "Running in {mode} mode with {} groups using {} file descriptors each (== {} tasks)\n\
             Each sender will pass {} messages of {} bytes\nTime: {}\n",
            self.groups,
            self.fds,
            self.tasks,
            self.loops,
            self.bytes,
            fixed(self.time_ms, 3)
        ));
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        vec![Samples::one("time", "s", Better::Lower, self.time_ms as f64 / 1e3)]
    }
}

/// A decimal number with its printed precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// The digits as one number: 1.260 is 1260.
    pub digits: u64,
    /// Digits after the point: 1.260 has 3.
    pub decimals: u32,
}

impl Decimal {
    /// `text` if it is digits with at most one point between them.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || text.ends_with('.') || text.len() > 18 {
            return None;
        }
        let decimals = u32::try_from(fraction.len()).ok()?;
        Some(Self { digits: format!("{whole}{fraction}").parse().ok()?, decimals })
    }

    /// The nearest `f64`.
    #[must_use]
    pub fn value(self) -> f64 {
        self.digits as f64 / 10f64.powi(self.decimals.cast_signed())
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.decimals == 0 {
            write!(f, "{}", self.digits)
        } else {
            f.write_str(&fixed(self.digits, self.decimals))
        }
    }
}

/// `w/o: 7.689 7.485 …=7.5853`: the times of runs in seconds and their mean, as scheduler mails list them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunList {
    /// What stands before the runs (`w/o: `), as printed; may be empty.
    pub label: String,
    /// The runs.
    pub runs: Vec<Decimal>,
    /// Their mean, as printed.
    pub mean: Decimal,
}

impl RunList {
    /// The list of these times in milliseconds, with the mean to four decimals, rounded half up.
    ///
    /// # Panics
    /// Without runs.
    #[must_use]
    pub fn of_runs(label: &str, times_ms: &[u64]) -> Self {
        let count = times_ms.len() as u64;
        assert!(count > 0, "a mean of nothing");
        let sum: u64 = times_ms.iter().sum();
        Self {
            label: label.to_owned(),
            runs: times_ms.iter().map(|&ms| Decimal { digits: ms, decimals: 3 }).collect(),
            mean: Decimal { digits: (sum * 10 + count / 2) / count, decimals: 4 },
        }
    }

    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(line) = lines.peek() else { return Ok(None) };
        let Some((front, mean)) = line.rsplit_once('=') else { return Ok(None) };
        let Some(mean) = Decimal::parse(mean) else { return Ok(None) };
        let label_end = front.rfind(':').map_or(0, |colon| colon + 1);
        let (label, numbers) = front.split_at(label_end);
        let spaces = numbers.len() - numbers.trim_start_matches(' ').len();
        let label = format!("{label}{}", &numbers[..spaces]);
        let runs: Option<Vec<Decimal>> = numbers[spaces..].split(' ').map(Decimal::parse).collect();
        let Some(runs) = runs.filter(|runs| runs.len() >= 2) else { return Ok(None) };
        lines.next("a list of runs")?;
        Ok(Some(Self { label, runs, mean }))
    }

    /// Appends the line.
    pub fn write(&self, out: &mut String) {
        let runs: Vec<String> = self.runs.iter().map(ToString::to_string).collect();
        out.push_str(&format!("{}{}={}\n", self.label, runs.join(" "), self.mean));
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        let name = self.label.trim().trim_end_matches(':').trim();
        let metric = if name.is_empty() { "time".to_owned() } else { format!("time {name}") };
        let values = self.runs.iter().map(|run| run.value()).collect();
        vec![Samples { metric, unit: "s", better: Better::Lower, values }]
    }
}
