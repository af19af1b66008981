//! Whether the figures of a pasted table, a tool's output or a whole mail agree with each other.
//!
//! A printed figure stands for the interval of values that round to it, so a percentage is wrong only if no values inside the
//! intervals give it. What is checked: percentages (mmtests' cells, rows of before and after, pairs in the text, lists of
//! runs), means of listed runs, dmatest's two rates against one run time, hackbench's and perf's task arithmetic, percentiles
//! in order and in schbench's buckets, UnixBench's indices, delays of `perf sched latency`, the kernel test robot's changes.
//!
//! Not done: judging whether a difference is significant, and figures whose relation the text does not show. What cannot be
//! recognised is not counted as checked.

mod lkp;
mod percent;
mod percentiles;
mod runs;
mod text;
mod tools;

use std::fmt;
use text::{Token, normalise, tokens};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A percentage that its values do not give.
    Percentage,
    /// The size of a percentage is right and its sign is not that of the table's other rows.
    Sign,
    /// A mean that is not the listed runs'.
    Mean,
    /// dmatest's rates do not come from one run time, or its counts do not add up.
    Dmatest,
    /// Counts of CPUs hit.
    CpusHit,
    /// A number of tasks that groups and descriptors do not give.
    TaskArithmetic,
    /// Operations, time and rates of one run.
    Rate,
    /// A percentile below a lower one, or above the maximum.
    PercentileOrder,
    /// A value that no bucket of schbench's histogram prints.
    Bucket,
    /// More samples in the percentiles than in all.
    SampleCount,
    /// A UnixBench index.
    Index,
    /// A coefficient of variation.
    Variation,
    /// Minimum, mean and maximum out of order.
    Bounds,
    /// A total below its parts, or a delay that is not end less begin.
    Total,
}

impl Kind {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percentage => "percentage",
            Self::Sign => "sign",
            Self::Mean => "mean",
            Self::Dmatest => "dmatest",
            Self::CpusHit => "cpus-hit",
            Self::TaskArithmetic => "task-arithmetic",
            Self::Rate => "rate",
            Self::PercentileOrder => "percentile-order",
            Self::Bucket => "bucket",
            Self::SampleCount => "sample-count",
            Self::Index => "index",
            Self::Variation => "variation",
            Self::Bounds => "bounds",
            Self::Total => "total",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An inconsistency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Line, from 1.
    pub line: usize,
    /// The figure as printed.
    pub says: String,
    /// The figure, or the range, that the others give.
    pub should_be: String,
    /// What is wrong.
    pub kind: Kind,
    /// From which figures, and by how much.
    pub why: String,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Inconsistencies, by line.
    pub findings: Vec<Finding>,
    /// How many relations were checked. 0: there was nothing to check, which is not the same as "consistent".
    pub checked: usize,
}

impl Report {
    /// Counts a check; keeps what it found.
    fn check(&mut self, holds: bool, finding: impl FnOnce() -> Finding) {
        self.checked += 1;
        if !holds {
            self.findings.push(finding());
        }
    }
}

/// A line, without quote marks and with one kind of minus sign.
struct Line<'a> {
    number: usize,
    text: &'a str,
    tokens: &'a [Token<'a>],
}

/// Checks a text. Any text is fit: what is not recognised is passed over.
#[must_use]
pub fn check(text: &str) -> Report {
    let mut report = Report::default();
    let mut robot = lkp::Tables::default();
    let mut percentages = percent::Tables::default();
    let mut percentiles = percentiles::Blocks::default();
    let mut runs = runs::Lists::default();
    let mut tools = tools::Tools::default();
    for (index, raw) in text.lines().enumerate() {
        let clean = normalise(raw);
        let tokens = tokens(&clean);
        let line = Line { number: index + 1, text: &clean, tokens: &tokens };
        if robot.line(&line, &mut report) {
            continue;
        }
        tools.line(&line, &mut report);
        percentiles.line(&line, &mut report);
        percentages.line(&line, &mut report);
        runs.line(&line, &mut report);
    }
    percentages.finish(&mut report);
    report.findings.sort_by_key(|finding| (finding.line, finding.kind));
    report
}
