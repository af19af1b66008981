//! Outputs of benchmarks: recognised by content, read into plain data, written back byte for byte.
//!
//! A file is a [`Document`]: commands, results, exit codes and other text in order, so that several runs in one file, and
//! what a build printed before them, are kept. Every format is a type with the numbers as the tool printed them (integers in
//! the unit of the last printed digit where the tool prints fixed decimals) and two functions, `parse` and `write`.
//! What a tool prints instead of a result (usage, errors) is text, and [`Document::no_result`] says so; it is never a 0.
//!
//! Not done here: statistics, and judging whether printed figures agree (see `check`).

mod cyclictest;
mod dbench;
mod dmatest;
mod hackbench;
mod histogram;
mod massive_intr;
mod netperf;
mod perf_bench;
mod perf_sched;
mod rt_app;
pub(crate) mod scan;
mod schbench;
mod stress_ng;
mod unixbench;

pub use cyclictest::{
    CyclicHistogram, CyclicJson, CyclicJsonThread, CyclicOverflow, CyclicThread, CyclicVerbose, Cyclictest,
};
pub use dbench::{Dbench, DbenchCompleted, DbenchLine, DbenchOperation, DbenchPhase};
pub use dmatest::{CpusHit, DmatestSummary};
pub use hackbench::{Decimal, Hackbench, RunList};
pub use histogram::{Generation, Histogram, VALUE_MAX, bucket_value, is_producible};
pub use massive_intr::{MassiveIntr, MassiveIntrConfig, MassiveIntrTask};
pub use netperf::{Netperf, NetperfBody, NetperfWarning};
pub use perf_bench::{PerfMessaging, PerfPipe, PerfSimple};
pub use perf_sched::{PerfSchedDelay, PerfSchedLatency, PerfSchedRow, PerfSchedTotal, PerfSchedWho};
pub use rt_app::{RtAppLog, RtAppRow};
pub use schbench::{
    Schbench, SchbenchBlock, SchbenchEntry, SchbenchJson, SchbenchJsonGroup, SchbenchKind, SchbenchRow,
    SchbenchRowStyle,
};
pub use stress_ng::{StressNg, StressNgLine, StressNgYaml};
pub use unixbench::{UnixbenchCopy, UnixbenchCount, UnixbenchIndex, UnixbenchLog, UnixbenchReport};

use scan::Lines;

/// Which values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Times, latencies.
    Lower,
    /// Rates.
    Higher,
}

/// What a comparison takes: the values of one metric, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// Name, stable across files (`time`, `wakeup_latency_p99`).
    pub metric: String,
    /// Unit of the values (`s`, `us`, `MB/s`, `1/s`).
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// The values; never empty.
    pub values: Vec<f64>,
}

impl Samples {
    pub(crate) fn one(metric: impl Into<String>, unit: &'static str, better: Better, value: f64) -> Self {
        Self { metric: metric.into(), unit, better, values: vec![value] }
    }
}

/// A line that begins as a known format does, and then is not it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What had to come.
    pub expected: String,
    /// What came.
    pub found: String,
}

/// One result of one tool.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type that it holds")]
pub enum Output {
    Cyclictest(Cyclictest),
    Dbench(Dbench),
    Dmatest(DmatestSummary),
    DmatestCpusHit(CpusHit),
    Hackbench(Hackbench),
    RunList(RunList),
    MassiveIntr(MassiveIntr),
    Netperf(Netperf),
    PerfMessaging(PerfMessaging),
    PerfPipe(PerfPipe),
    PerfSimple(PerfSimple),
    PerfSchedLatency(PerfSchedLatency),
    RtAppLog(RtAppLog),
    Schbench(Schbench),
    StressNg(StressNg),
    StressNgYaml(StressNgYaml),
    UnixbenchCount(UnixbenchCount),
    UnixbenchReport(UnixbenchReport),
    UnixbenchLog(UnixbenchLog),
}

impl Output {
    /// The tool's name and form, for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cyclictest(_) => "cyclictest",
            Self::Dbench(_) => "dbench",
            Self::Dmatest(_) => "dmatest summary",
            Self::DmatestCpusHit(_) => "dmatest CPUs hit",
            Self::Hackbench(_) => "hackbench",
            Self::RunList(_) => "list of runs",
            Self::MassiveIntr(_) => "massive_intr",
            Self::Netperf(_) => "netperf",
            Self::PerfMessaging(_) => "perf bench sched messaging",
            Self::PerfPipe(_) => "perf bench sched pipe",
            Self::PerfSimple(_) => "perf bench simple",
            Self::PerfSchedLatency(_) => "perf sched latency",
            Self::RtAppLog(_) => "rt-app log",
            Self::Schbench(_) => "schbench",
            Self::StressNg(_) => "stress-ng metrics",
            Self::StressNgYaml(_) => "stress-ng YAML",
            Self::UnixbenchCount(_) => "UnixBench COUNT line",
            Self::UnixbenchReport(_) => "UnixBench report",
            Self::UnixbenchLog(_) => "UnixBench log",
        }
    }

    /// The family of benchmarks that it belongs to, by which results are told apart; none of what says nothing of the
    /// benchmark (a pasted list) or is of none. tbench's text is dbench's.
    #[must_use]
    pub const fn family(&self) -> Option<&'static str> {
        match self {
            Self::Cyclictest(_) => Some("cyclictest"),
            Self::Dbench(_) => Some("dbench"),
            Self::Dmatest(_) | Self::DmatestCpusHit(_) => Some("dmatest"),
            Self::Hackbench(_) | Self::PerfMessaging(_) => Some("hackbench"),
            Self::RunList(_) | Self::PerfSimple(_) => None,
            Self::MassiveIntr(_) => Some("massive_intr"),
            Self::Netperf(_) => Some("netperf"),
            Self::PerfPipe(_) => Some("perfpipe"),
            Self::PerfSchedLatency(_) => Some("perf sched"),
            Self::RtAppLog(_) => Some("rt-app"),
            Self::Schbench(_) => Some("schbench"),
            Self::StressNg(_) | Self::StressNgYaml(_) => Some("stress-ng"),
            Self::UnixbenchCount(_) | Self::UnixbenchReport(_) | Self::UnixbenchLog(_) => Some("unixbench"),
        }
    }

    /// What it was measured with, as far as it says: groups of hackbench, clients of dbench. mmtests names operations so.
    #[must_use]
    pub fn factor(&self) -> Option<String> {
        match self {
            Self::Hackbench(data) => Some(data.groups.to_string()),
            Self::PerfMessaging(data) => Some(data.groups.to_string()),
            Self::Dbench(data) => Some(data.clients.to_string()),
            Self::Cyclictest(_)
            | Self::Dmatest(_)
            | Self::DmatestCpusHit(_)
            | Self::RunList(_)
            | Self::MassiveIntr(_)
            | Self::Netperf(_)
            | Self::PerfPipe(_)
            | Self::PerfSimple(_)
            | Self::PerfSchedLatency(_)
            | Self::RtAppLog(_)
            | Self::Schbench(_)
            | Self::StressNg(_)
            | Self::StressNgYaml(_)
            | Self::UnixbenchCount(_)
            | Self::UnixbenchReport(_)
            | Self::UnixbenchLog(_) => None,
        }
    }

    /// The text that the tool prints for these numbers.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Cyclictest(data) => data.write(out),
            Self::Dbench(data) => data.write(out),
            Self::Dmatest(data) => data.write(out),
            Self::DmatestCpusHit(data) => data.write(out),
            Self::Hackbench(data) => data.write(out),
            Self::RunList(data) => data.write(out),
            Self::MassiveIntr(data) => data.write(out),
            Self::Netperf(data) => data.write(out),
            Self::PerfMessaging(data) => data.write(out),
            Self::PerfPipe(data) => data.write(out),
            Self::PerfSimple(data) => data.write(out),
            Self::PerfSchedLatency(data) => data.write(out),
            Self::RtAppLog(data) => data.write(out),
            Self::Schbench(data) => data.write(out),
            Self::StressNg(data) => data.write(out),
            Self::StressNgYaml(data) => data.write(out),
            Self::UnixbenchCount(data) => data.write(out),
            Self::UnixbenchReport(data) => data.write(out),
            Self::UnixbenchLog(data) => data.write(out),
        }
    }

    /// What can be compared.
    #[must_use]
    pub fn samples(&self) -> Vec<Samples> {
        match self {
            Self::Cyclictest(data) => data.samples(),
            Self::Dbench(data) => data.samples(),
            Self::Dmatest(data) => data.samples(),
            Self::DmatestCpusHit(_) => Vec::new(),
            Self::Hackbench(data) => data.samples(),
            Self::RunList(data) => data.samples(),
            Self::MassiveIntr(data) => data.samples(),
            Self::Netperf(data) => data.samples(),
            Self::PerfMessaging(data) => data.samples(),
            Self::PerfPipe(data) => data.samples(),
            Self::PerfSimple(data) => data.samples(),
            Self::PerfSchedLatency(data) => data.samples(),
            Self::RtAppLog(data) => data.samples(),
            Self::Schbench(data) => data.samples(),
            Self::StressNg(data) => data.samples(),
            Self::StressNgYaml(data) => data.samples(),
            Self::UnixbenchCount(data) => data.samples(),
            Self::UnixbenchReport(data) => data.samples(),
            Self::UnixbenchLog(data) => data.samples(),
        }
    }
}

/// A piece of a file, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// `$ command`, as a recorder or a paste puts it before the output.
    Command(String),
    /// `[exit N]`, after it.
    Exit(i32),
    /// A line of no format that is known here, without its line end.
    Text(String),
    /// A result.
    Result(Output),
}

/// A file of outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What is in it, in order.
    pub items: Vec<Item>,
    /// Whether the last line is ended.
    ended: bool,
}

impl Document {
    /// Reads any number of outputs, of any known formats.
    ///
    /// # Errors
    /// Where something begins as a known format and then breaks off or deviates.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let text = text.replace("\r\n", "\n");
        let mut lines = Lines::new(&text);
        let mut items: Vec<Item> = Vec::new();
        // Kept, not searched for: a file may hold a hundred thousand outputs.
        let mut last_command: Option<String> = None;
        while let Some(line) = lines.peek() {
            let first_or_after_exit = matches!(items.last(), None | Some(Item::Exit(_)));
            if let Some(command) = line.strip_prefix("$ ").filter(|_| first_or_after_exit) {
                items.push(Item::Command(command.to_owned()));
                last_command = Some(command.to_owned());
                lines.next(line)?;
                continue;
            }
            let code = line.strip_prefix("[exit ").and_then(|rest| rest.strip_suffix(']'));
            if let Some(code) = code.and_then(|code| code.parse().ok()) {
                items.push(Item::Exit(code));
                lines.next(line)?;
                continue;
            }
            let start = lines.position();
            if let Some(output) = output_at(&mut lines, last_command.as_deref())? {
                items.push(Item::Result(output));
            } else {
                lines.reset(start);
                items.push(Item::Text(line.to_owned()));
                lines.next(line)?;
            }
        }
        Ok(Self { items, ended: text.ends_with('\n') || text.is_empty() })
    }

    /// The same bytes, for the same numbers.
    #[must_use]
    pub fn write(&self) -> String {
        let mut out = String::new();
        for item in &self.items {
            match item {
                Item::Command(command) => out.push_str(&format!("$ {command}\n")),
                Item::Exit(code) => out.push_str(&format!("[exit {code}]\n")),
                Item::Text(line) => {
                    out.push_str(line);
                    out.push('\n');
                }
                Item::Result(output) => output.write(&mut out),
            }
        }
        if !self.ended && out.ends_with('\n') {
            out.pop();
        }
        out
    }

    /// Every result, whether its command succeeded or not.
    pub fn results(&self) -> impl Iterator<Item = &Output> {
        self.items.iter().filter_map(|item| match item {
            Item::Result(output) => Some(output),
            Item::Command(_) | Item::Exit(_) | Item::Text(_) => None,
        })
    }

    /// The samples of all results, values of one metric together in the order of the file.
    ///
    /// Left out: results whose command then failed, and a second COUNT line of one UnixBench command (its child's).
    #[must_use]
    pub fn samples(&self) -> Vec<Samples> {
        let mut all: Vec<Samples> = Vec::new();
        let mut counted = false;
        let exits = self.exits();
        for (index, item) in self.items.iter().enumerate() {
            let output = match item {
                Item::Result(output) => output,
                Item::Command(_) => {
                    counted = false;
                    continue;
                }
                Item::Exit(_) | Item::Text(_) => continue,
            };
            if matches!(output, Output::UnixbenchCount(_)) && std::mem::replace(&mut counted, true) {
                continue;
            }
            if exits[index].is_some_and(|code| code != 0) {
                continue;
            }
            for samples in output.samples() {
                match all.iter_mut().find(|have| have.metric == samples.metric && have.unit == samples.unit) {
                    Some(have) => have.values.extend(samples.values),
                    None => all.push(samples),
                }
            }
        }
        all
    }

    /// By item: the exit code of the command that printed it, where one is recorded.
    fn exits(&self) -> Vec<Option<i32>> {
        let mut exit = None;
        let mut exits: Vec<Option<i32>> = Vec::with_capacity(self.items.len());
        for item in self.items.iter().rev() {
            match item {
                Item::Exit(code) => exit = Some(*code),
                Item::Command(_) => exit = None,
                Item::Text(_) | Item::Result(_) => {}
            }
            exits.push(exit);
        }
        exits.reverse();
        exits
    }

    /// Why there is nothing to compare: the line that says so (an error, a usage text), or that there is no known output.
    #[must_use]
    pub fn no_result(&self) -> Option<String> {
        const SIGNS: [&str; 12] = [
            "unrecognized option",
            "invalid option",
            "unknown option",
            "Unknown option",
            "requires an integer",
            "ERROR",
            "Error",
            "error:",
            "failed",
            "Usage",
            "usage",
            "not found",
        ];
        if !self.samples().is_empty() {
            return None;
        }
        let texts = self.items.iter().filter_map(|item| match item {
            Item::Text(line) => Some(line.trim()),
            Item::Command(_) | Item::Exit(_) | Item::Result(_) => None,
        });
        let told = texts.clone().find(|line| SIGNS.iter().any(|sign| line.contains(sign)));
        let exit = self.items.iter().find_map(|item| match item {
            Item::Exit(code) if *code != 0 => Some(*code),
            Item::Exit(_) | Item::Command(_) | Item::Text(_) | Item::Result(_) => None,
        });
        let results = self.results().next();
        Some(match (told, exit, results) {
            (Some(line), _, _) => line.to_owned(),
            (None, Some(code), _) => format!("the command failed with exit code {code}"),
            (None, None, Some(output)) => format!("{} without a measured value", output.name()),
            (None, None, None) => "no known benchmark output".to_owned(),
        })
    }
}

/// What the next lines are, if any format begins so. `None` may leave `lines` anywhere.
fn output_at(lines: &mut Lines<'_>, command: Option<&str>) -> Result<Option<Output>, ParseError> {
    type Parser = fn(&mut Lines<'_>) -> Result<Option<Output>, ParseError>;
    const PARSERS: &[Parser] = &[
        |lines| Ok(Hackbench::parse(lines)?.map(Output::Hackbench)),
        |lines| Ok(RunList::parse(lines)?.map(Output::RunList)),
        |lines| Ok(Schbench::parse(lines)?.map(Output::Schbench)),
        |lines| Ok(PerfMessaging::parse(lines)?.map(Output::PerfMessaging)),
        |lines| Ok(PerfPipe::parse(lines)?.map(Output::PerfPipe)),
        |lines| Ok(PerfSchedLatency::parse(lines)?.map(Output::PerfSchedLatency)),
        |lines| Ok(Dbench::parse(lines)?.map(Output::Dbench)),
        |lines| Ok(DmatestSummary::parse(lines)?.map(Output::Dmatest)),
        |lines| Ok(CpusHit::parse(lines)?.map(Output::DmatestCpusHit)),
        |lines| Ok(Cyclictest::parse(lines)?.map(Output::Cyclictest)),
        |lines| Ok(MassiveIntr::parse(lines)?.map(Output::MassiveIntr)),
        |lines| Ok(Netperf::parse(lines)?.map(Output::Netperf)),
        |lines| Ok(RtAppLog::parse(lines)?.map(Output::RtAppLog)),
        |lines| Ok(StressNg::parse(lines)?.map(Output::StressNg)),
        |lines| Ok(StressNgYaml::parse(lines)?.map(Output::StressNgYaml)),
        |lines| Ok(UnixbenchCount::parse(lines)?.map(Output::UnixbenchCount)),
        |lines| Ok(UnixbenchReport::parse(lines)?.map(Output::UnixbenchReport)),
        |lines| Ok(UnixbenchLog::parse(lines)?.map(Output::UnixbenchLog)),
    ];
    let start = lines.position();
    // A bare figure is a result only where the command is known to print one.
    if command.is_some_and(|command| command.contains("perf bench"))
        && let Some(simple) = PerfSimple::parse(lines)?
    {
        return Ok(Some(Output::PerfSimple(simple)));
    }
    for parser in PARSERS {
        lines.reset(start);
        if let Some(output) = parser(lines)? {
            return Ok(Some(output));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod many_tests {
    use super::Document;

    #[test]
    fn a_file_of_very_many_outputs_is_read_in_one_pass() {
        // Looking back from each output for its command would be quadratic.
        let one = "Running in process mode with 1 groups using 40 file descriptors each (== 40 tasks)\n\
                   Each sender will pass 100 messages of 100 bytes\nTime: 0.500\n";
        let samples = Document::parse(&one.repeat(200_000)).expect("outputs").samples();
        assert_eq!((samples.len(), samples[0].values.len()), (1, 200_000));
    }
}
