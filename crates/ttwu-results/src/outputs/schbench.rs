//! schbench, all generations: percentile blocks, the lines between them, and the JSON line.
//!
//! Source: schbench at e7de637, 3d16b23 (2016), 3faa8b0 (2019), 0eda806 (2021), 48aed1d (2023), 24e32b8 (2025).

use super::scan::{Lines, Scan, fixed};
use super::{Better, ParseError, Samples};

/// What a block's percentiles are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchbenchKind {
    /// Generations A and B: wake-up latencies (with `-R`: completion latencies) in microseconds.
    Latency,
    /// Generation C: wake-up latencies in microseconds.
    Wakeup,
    /// Generation C: request latencies in microseconds.
    Request,
    /// Generation C: requests a second.
    Rps,
}

impl SchbenchKind {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Wakeup, "Wakeup Latencies percentiles (usec)", "wakeup_latency"),
        (Self::Request, "Request Latencies percentiles (usec)", "request_latency"),
        (Self::Rps, "RPS percentiles (requests)", "rps"),
        (Self::Latency, "Latency percentiles (usec)", "latency"),
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Wakeup => Self::ALL[0].1,
            Self::Request => Self::ALL[1].1,
            Self::Rps => Self::ALL[2].1,
            Self::Latency => Self::ALL[3].1,
        }
    }
}

/// How a row of a block is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchbenchRowStyle {
    /// `\t50.0000th: 34` (2016).
    FourDecimals,
    /// `\t50.0th: 29` (2019).
    OneDecimal,
    /// `\t50.0th: 29 (7 samples)` (2020).
    Counted,
    /// `\t  50.0th: 72         (22 samples)` (December 2021 on).
    Padded,
}

/// A percentile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchbenchRow {
    /// Tenths of a percent: 999 is the 99.9th percentile.
    pub tenths: u16,
    /// Starred: the one that schbench's own control uses.
    pub marked: bool,
    /// Microseconds, or requests a second.
    pub value: u64,
    /// Values since the previous percentile, where printed.
    pub samples: Option<u64>,
}

/// A block of percentiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchbenchBlock {
    /// Of what.
    pub kind: SchbenchKind,
    /// Layout of the rows.
    pub style: SchbenchRowStyle,
    /// Seconds run so far, from generation B on.
    pub runtime_s: Option<u64>,
    /// Values recorded, from generation B on.
    pub samples_total: Option<u64>,
    /// The percentiles, ascending.
    pub rows: Vec<SchbenchRow>,
    /// Smallest value; always 0 in generation A.
    pub min: u64,
    /// Largest value, exact.
    pub max: u64,
}

/// Percentiles in the JSON line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchbenchJsonGroup {
    /// `wakeup_latency`, `request_latency` or `rps`.
    pub name: String,
    /// Tenths of a percent, and the value.
    pub percentiles: Vec<(u16, u64)>,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

/// The JSON line (`-j`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchbenchJson {
    /// Kernel release.
    pub version: String,
    /// `-J`, with its quotes as they are: schbench does not escape them, which makes the line invalid JSON.
    pub job_name: Option<String>,
    /// Host.
    pub host_name: String,
    /// `disabled`, or the loaded scheduler's name.
    pub sched_ext: String,
    /// Command line, escaped as in the text.
    pub command_line: String,
    /// Seconds since 1970.
    pub time_s: u64,
    /// The groups in order.
    pub groups: Vec<SchbenchJsonGroup>,
    /// Seconds run.
    pub runtime_s: u64,
    /// No line end follows: the next stream's line begins in the same line.
    pub glued: bool,
}

/// A piece of schbench's output, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchbenchEntry {
    /// Percentiles.
    Block(SchbenchBlock),
    /// `warmup done, zeroing stats`
    WarmupDone,
    /// `setting worker threads to N`
    WorkerThreads(u64),
    /// `sched delay: message 204 (usec) worker 343 (usec)`: means of the threads' schedstat.
    SchedDelay {
        /// Of the message threads, in microseconds.
        message_us: u64,
        /// Of the workers, in microseconds.
        worker_us: u64,
    },
    /// `current rps: 183.98`, in hundredths.
    CurrentRps(u64),
    /// `average rps: 141.17`, in hundredths.
    AverageRps(u64),
    /// `final rps goal was 0`
    FinalGoal(u64),
    /// `avg worker transfer: 65247.04 ops/sec 6.22MB/s`
    Transfer {
        /// Operations a second, in hundredths.
        ops_e2: u64,
        /// Amount a second, in hundredths of `unit`.
        amount_e2: u64,
        /// `B`, `KB`, `MB`, `GB`.
        unit: String,
    },
    /// Generation A with `-R`: the line on standard output.
    OldRps {
        /// Requests a second, in hundredths.
        rps_e2: u64,
        /// 95th percentile, microseconds.
        p95_us: u64,
        /// 99th percentile, microseconds.
        p99_us: u64,
        /// 95th percentile in hundredths of a percent of the CPU time.
        p95_share_e2: u64,
        /// 99th percentile likewise.
        p99_share_e2: u64,
    },
    /// The JSON line.
    Json(Box<SchbenchJson>),
}

/// What one run of schbench printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schbench {
    /// The pieces, in order. The last block of a kind is the result; the ones before are interval reports of the same counts.
    pub entries: Vec<SchbenchEntry>,
}

impl Schbench {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let mut entries = Vec::new();
        while let Some(entry) = entry(lines)? {
            // A second run in the same file begins with the seconds at or below the previous end's; a JSON line ends none.
            entries.push(entry);
        }
        Ok((!entries.is_empty()).then_some(Self { entries }))
    }

    /// Appends the pieces.
    pub fn write(&self, out: &mut String) {
        for entry in &self.entries {
            entry.write(out);
        }
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        let mut samples = Vec::new();
        for (kind, _, name) in SchbenchKind::ALL {
            let last = self.entries.iter().rev().find_map(|entry| match entry {
                SchbenchEntry::Block(block) if block.kind == kind => Some(block),
                _ => None,
            });
            let Some(block) = last.filter(|block| block.samples_total != Some(0)) else { continue };
            let (unit, better) =
                if kind == SchbenchKind::Rps { ("1/s", Better::Higher) } else { ("us", Better::Lower) };
            for row in &block.rows {
                let metric = format!("{name}_p{}", label(row.tenths));
                samples.push(Samples::one(metric, unit, better, row.value as f64));
            }
            samples.push(Samples::one(format!("{name}_max"), unit, better, block.max as f64));
        }
        for entry in &self.entries {
            match entry {
                SchbenchEntry::AverageRps(rps_e2) => {
                    samples.push(Samples::one("rps_average", "1/s", Better::Higher, *rps_e2 as f64 / 100.0));
                }
                SchbenchEntry::OldRps { rps_e2, .. } => {
                    samples.push(Samples::one("rps", "1/s", Better::Higher, *rps_e2 as f64 / 100.0));
                }
                SchbenchEntry::Transfer { ops_e2, .. } => {
                    samples.push(Samples::one("transfer", "1/s", Better::Higher, *ops_e2 as f64 / 100.0));
                }
                SchbenchEntry::Block(_)
                | SchbenchEntry::WarmupDone
                | SchbenchEntry::WorkerThreads(_)
                | SchbenchEntry::SchedDelay { .. }
                | SchbenchEntry::CurrentRps(_)
                | SchbenchEntry::FinalGoal(_)
                | SchbenchEntry::Json(_) => {}
            }
        }
        samples
    }
}

/// `99` for 990, `99.9` for 999.
fn label(tenths: u16) -> String {
    if tenths.is_multiple_of(10) { (tenths / 10).to_string() } else { fixed(u64::from(tenths), 1) }
}

impl SchbenchEntry {
    /// Appends this piece's lines.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Block(block) => block.write(out),
            Self::WarmupDone => out.push_str("warmup done, zeroing stats\n"),
            Self::WorkerThreads(threads) => out.push_str(&format!("setting worker threads to {threads}\n")),
            Self::SchedDelay { message_us, worker_us } => {
                out.push_str(&format!(
                    "sched delay: message {message_us} (usec) worker {worker_us} (usec)\n"
                ));
            }
            Self::CurrentRps(rps_e2) => out.push_str(&format!("current rps: {}\n", fixed(*rps_e2, 2))),
            Self::AverageRps(rps_e2) => out.push_str(&format!("average rps: {}\n", fixed(*rps_e2, 2))),
            Self::FinalGoal(goal) => out.push_str(&format!("final rps goal was {goal}\n")),
            Self::Transfer { ops_e2, amount_e2, unit } => out.push_str(&format!(
                "avg worker transfer: {} ops/sec {}{unit}/s\n",
                fixed(*ops_e2, 2),
                fixed(*amount_e2, 2)
            )),
            Self::OldRps { rps_e2, p95_us, p99_us, p95_share_e2, p99_share_e2 } => out.push_str(&format!(
                "rps: {} p95 (usec) {p95_us} p99 (usec) {p99_us} p95/cputime {}% p99/cputime {}%\n",
                fixed(*rps_e2, 2),
                fixed(*p95_share_e2, 2),
                fixed(*p99_share_e2, 2)
            )),
            Self::Json(json) => json.write(out),
        }
    }
}

fn entry(lines: &mut Lines<'_>) -> Result<Option<SchbenchEntry>, ParseError> {
    for (kind, title, _) in SchbenchKind::ALL {
        // Mails put column heads behind the title; a block's title ends there or goes on with its run time.
        let is_title = lines
            .peek()
            .and_then(|line| line.strip_prefix(title))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(" runtime "));
        if is_title && let Some(scan) = lines.next_if(title) {
            return Ok(Some(SchbenchEntry::Block(block(kind, scan, lines)?)));
        }
    }
    if lines.peek() == Some("warmup done, zeroing stats") {
        lines.next("")?;
        return Ok(Some(SchbenchEntry::WarmupDone));
    }
    if let Some(mut scan) = lines.next_if("setting worker threads to ") {
        return Ok(Some(SchbenchEntry::WorkerThreads(scan.u64("the number of threads")?)));
    }
    if let Some(mut scan) = lines.next_if("sched delay: message ") {
        let message_us = scan.u64("microseconds")?;
        scan.literal(" (usec) worker ")?;
        let worker_us = scan.u64("microseconds")?;
        scan.literal(" (usec)")?;
        scan.end()?;
        return Ok(Some(SchbenchEntry::SchedDelay { message_us, worker_us }));
    }
    if let Some(mut scan) = lines.next_if("current rps: ") {
        return Ok(Some(SchbenchEntry::CurrentRps(scan.fixed(2, "requests a second")?)));
    }
    if let Some(mut scan) = lines.next_if("average rps: ") {
        return Ok(Some(SchbenchEntry::AverageRps(scan.fixed(2, "requests a second")?)));
    }
    if let Some(mut scan) = lines.next_if("final rps goal was ") {
        return Ok(Some(SchbenchEntry::FinalGoal(scan.u64("requests a second")?)));
    }
    if let Some(mut scan) = lines.next_if("avg worker transfer: ") {
        let ops_e2 = scan.fixed(2, "operations a second")?;
        scan.literal(" ops/sec ")?;
        let amount_e2 = scan.fixed(2, "an amount a second")?;
        let unit = scan.until("/s")?.to_owned();
        scan.end()?;
        return Ok(Some(SchbenchEntry::Transfer { ops_e2, amount_e2, unit }));
    }
    if let Some(mut scan) = lines.next_if("rps: ") {
        let rps_e2 = scan.fixed(2, "requests a second")?;
        scan.literal(" p95 (usec) ")?;
        let p95_us = scan.u64("microseconds")?;
        scan.literal(" p99 (usec) ")?;
        let p99_us = scan.u64("microseconds")?;
        scan.literal(" p95/cputime ")?;
        let p95_share_e2 = scan.fixed(2, "percent")?;
        scan.literal("% p99/cputime ")?;
        let p99_share_e2 = scan.fixed(2, "percent")?;
        scan.literal("%")?;
        scan.end()?;
        return Ok(Some(SchbenchEntry::OldRps { rps_e2, p95_us, p99_us, p95_share_e2, p99_share_e2 }));
    }
    if let Some(scan) = lines.next_if(r#"{"normal": {"version": ""#) {
        return Ok(Some(SchbenchEntry::Json(Box::new(SchbenchJson::parse(scan, lines)?))));
    }
    Ok(None)
}

fn block(
    kind: SchbenchKind,
    mut title: Scan<'_>,
    lines: &mut Lines<'_>,
) -> Result<SchbenchBlock, ParseError> {
    let (mut runtime_s, mut samples_total) = (None, None);
    if title.have(" runtime ") {
        runtime_s = Some(title.u64("seconds")?);
        title.literal(" (s) (")?;
        samples_total = Some(title.u64("the number of samples")?);
        title.literal(" total samples)")?;
    }
    title.end()?;
    let mut rows: Vec<SchbenchRow> = Vec::new();
    let mut style = None;
    loop {
        let mut scan = lines.next("a percentile, or `min=`")?;
        scan.literal("\t")?;
        let indented = scan.have("  ");
        if scan.have("min=") {
            let Some(style) = style else { return Err(scan.fail("a percentile before the minimum")) };
            let min = scan.u64("the minimum")?;
            scan.literal(", max=")?;
            let max = scan.u64("the maximum")?;
            scan.end()?;
            return Ok(SchbenchBlock { kind, style, runtime_s, samples_total, rows, min, max });
        }
        let starred = !indented && scan.have("*");
        let starred_indented = starred && scan.have(" ");
        let percent = scan.word(&['t'], "a percentile")?;
        scan.literal("th: ")?;
        let value = scan.u64("a value")?;
        let decimals = percent.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let tenths = percent
            .parse::<f64>()
            .ok()
            .filter(|percent| (0.0..=100.0).contains(percent))
            .map(|percent| (percent * 10.0).round() as u16)
            .ok_or_else(|| scan.fail("a percentile of 0 to 100 before this"))?;
        let mut samples = None;
        if !scan.rest().is_empty() {
            scan.pad();
            scan.literal("(")?;
            samples = Some(scan.u64("the number of samples")?);
            scan.literal(" samples)")?;
        }
        scan.end()?;
        let row_style = match (decimals, samples.is_some(), indented || starred_indented) {
            (4, false, _) => SchbenchRowStyle::FourDecimals,
            (_, false, _) => SchbenchRowStyle::OneDecimal,
            (_, true, false) => SchbenchRowStyle::Counted,
            (_, true, true) => SchbenchRowStyle::Padded,
        };
        if *style.get_or_insert(row_style) != row_style {
            return Err(scan.fail("a row laid out as the ones above"));
        }
        rows.push(SchbenchRow { tenths, marked: starred, value, samples });
    }
}

impl SchbenchBlock {
    /// Appends title, rows, minimum and maximum.
    pub fn write(&self, out: &mut String) {
        out.push_str(self.kind.title());
        if let (Some(runtime), Some(total)) = (self.runtime_s, self.samples_total) {
            out.push_str(&format!(" runtime {runtime} (s) ({total} total samples)"));
        }
        out.push('\n');
        for row in &self.rows {
            let percent = fixed(u64::from(row.tenths), 1);
            let samples = row.samples.unwrap_or(0);
            let line = match self.style {
                SchbenchRowStyle::FourDecimals => {
                    format!("\t{}{percent}000th: {}\n", star(row.marked), row.value)
                }
                SchbenchRowStyle::OneDecimal => format!("\t{}{percent}th: {}\n", star(row.marked), row.value),
                SchbenchRowStyle::Counted => {
                    format!("\t{}{percent}th: {} ({samples} samples)\n", star(row.marked), row.value)
                }
                SchbenchRowStyle::Padded => {
                    let star = if row.marked { "* " } else { "  " };
                    format!("\t{star}{percent}th: {:<10} ({samples} samples)\n", row.value)
                }
            };
            out.push_str(&line);
        }
        let indent = if self.style == SchbenchRowStyle::Padded { "  " } else { "" };
        out.push_str(&format!("\t{indent}min={}, max={}\n", self.min, self.max));
    }
}

const fn star(marked: bool) -> &'static str {
    if marked { "*" } else { "" }
}

impl SchbenchJson {
    fn parse<'a>(mut scan: Scan<'a>, lines: &mut Lines<'a>) -> Result<Self, ParseError> {
        let version = scan.until("\",")?.to_owned();
        let job_name = if scan.have("\"jobname\": \"") {
            // The name's own quotes are not escaped: it ends where the next key begins.
            let name = scan.until("\",\"hostname\": \"")?;
            Some(name.to_owned())
        } else {
            scan.literal("\"hostname\": \"")?;
            None
        };
        let host_name = scan.until("\",\"sched_ext\": \"")?.to_owned();
        let sched_ext = scan.until("\",\"cmdline\": \"")?.to_owned();
        let command_line = scan.until("\"},\"int\": {\"time\": ")?.to_owned();
        let time_s = scan.u64("seconds since 1970")?;
        scan.literal(", \"")?;
        let mut groups: Vec<SchbenchJsonGroup> = Vec::new();
        while !scan.have("runtime\": ") {
            groups.push(json_group(&mut scan)?);
            scan.literal(", \"")?;
        }
        let runtime_s = scan.u64("seconds")?;
        scan.literal("}}")?;
        let glued = !scan.rest().is_empty();
        if glued {
            lines.put_back(scan.rest());
        }
        Ok(Self { version, job_name, host_name, sched_ext, command_line, time_s, groups, runtime_s, glued })
    }

    /// Appends the line; its end only where it is not glued to the next one.
    pub fn write(&self, out: &mut String) {
        let job = self.job_name.as_ref().map_or_else(String::new, |name| format!("\"jobname\": \"{name}\","));
        out.push_str(&format!(
            "{{\"normal\": {{\"version\": \"{}\",{job}\"hostname\": \"{}\",\"sched_ext\": \"{}\",\"cmdline\": \"{}\"}},\
             \"int\": {{\"time\": {}, ",
            self.version, self.host_name, self.sched_ext, self.command_line, self.time_s
        ));
        for group in &self.groups {
            let name = &group.name;
            for (tenths, value) in &group.percentiles {
                out.push_str(&format!("\"{name}_pct{}\": {value}, ", fixed(u64::from(*tenths), 1)));
            }
            out.push_str(&format!("\"{name}_min\": {},\"{name}_max\": {}, ", group.min, group.max));
        }
        out.push_str(&format!("\"runtime\": {}}}}}", self.runtime_s));
        if !self.glued {
            out.push('\n');
        }
    }
}

/// One group, from its first key's name up to its maximum.
fn json_group(scan: &mut Scan<'_>) -> Result<SchbenchJsonGroup, ParseError> {
    let mut percentiles = Vec::new();
    loop {
        let key = scan.until("\": ")?;
        let value = scan.u64("a value")?;
        if let Some(name) = key.strip_suffix("_min") {
            scan.literal(&format!(",\"{name}_max\": "))?;
            let max = scan.u64("the maximum")?;
            return Ok(SchbenchJsonGroup { name: name.to_owned(), percentiles, min: value, max });
        }
        let tenths = key
            .rsplit_once("_pct")
            .and_then(|(_, percent)| percent.parse::<f64>().ok())
            .filter(|percent| (0.0..=100.0).contains(percent))
            .map(|percent| (percent * 10.0).round() as u16)
            .ok_or_else(|| scan.fail("a percentile's key before this"))?;
        percentiles.push((tenths, value));
        scan.literal(", \"")?;
    }
}
