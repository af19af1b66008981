//! UnixBench: the COUNT line of a test program, the report of `Run`, and its log.
//!
//! Source: UnixBench 6.0.0. The report's banner and machine description are other text to us.

use super::scan::{Lines, Scan, general};
use super::{Better, ParseError, Samples};

/// `COUNT|132539|1|lps`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixbenchCount {
    /// Loops done.
    pub count: u64,
    /// Time base: 1 for "a second".
    pub time_base: u64,
    /// Unit's name.
    pub unit: String,
}

impl UnixbenchCount {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if("COUNT|") else { return Ok(None) };
        let count = scan.u64("a count")?;
        scan.literal("|")?;
        let time_base = scan.u64("a time base")?;
        scan.literal("|")?;
        Ok(Some(Self { count, time_base, unit: scan.rest().to_owned() }))
    }

    /// Appends the line.
    pub fn write(&self, out: &mut String) {
        out.push_str(&format!("COUNT|{}|{}|{}\n", self.count, self.time_base, self.unit));
    }

    /// The count of the run, not a rate: the line does not say how long it ran.
    pub(crate) fn samples(&self) -> Vec<Samples> {
        vec![Samples::one("count", "loops", Better::Higher, self.count as f64)]
    }
}

/// A row of the index table.
#[derive(Debug, Clone, PartialEq)]
pub struct UnixbenchIndex {
    /// Test.
    pub name: String,
    /// What counts as 10.
    pub baseline: f64,
    /// Measured.
    pub result: f64,
    /// Ten times their ratio.
    pub index: f64,
}

/// One block of `Run`'s report: a number of copies.
#[derive(Debug, Clone, PartialEq)]
pub struct UnixbenchReport {
    /// When, as printed.
    pub when: String,
    /// CPUs of the system.
    pub cpus: u64,
    /// Copies at once.
    pub copies: u64,
    /// Test, score, unit, seconds, samples.
    pub results: Vec<(String, f64, String, f64, u64)>,
    /// Not all tests of the set were run.
    pub partial: bool,
    /// The index table.
    pub indices: Vec<UnixbenchIndex>,
    /// Geometric mean of the indices.
    pub score: f64,
}

impl UnixbenchReport {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(scan) = lines.next_if("Benchmark Run: ") else { return Ok(None) };
        let when = scan.rest().to_owned();
        let mut scan = lines.next("`… CPUs in system`")?;
        let cpus = scan.u64("a number of CPUs")?;
        scan.literal(if cpus == 1 { " CPU in system; running " } else { " CPUs in system; running " })?;
        let copies = scan.u64("a number of copies")?;
        scan.literal(if copies == 1 { " parallel copy of tests" } else { " parallel copies of tests" })?;
        lines.exact("")?;
        let mut results = Vec::new();
        while lines.peek().is_some_and(|line| !line.is_empty()) {
            results.push(result(lines.next("a test's score")?)?);
        }
        lines.exact("")?;
        let mut scan = lines.next("the index table's head")?;
        let partial = scan.have("System Benchmarks Partial Index ");
        if !partial {
            scan.literal("System Benchmarks Index Values ")?;
        }
        scan.literal("             BASELINE       RESULT    INDEX")?;
        let mut indices = Vec::new();
        while lines.peek().is_some_and(|line| !line.starts_with(' ')) {
            indices.push(index_row(&lines.next("a row of the index table")?)?);
        }
        lines.exact(&format!("{:>75}", "========"))?;
        let mut scan = lines.next("the index score")?;
        scan.literal("System Benchmarks Index Score")?;
        if partial {
            scan.literal(" (Partial Only)")?;
        }
        let score = scan.f64("a score")?;
        scan.end()?;
        Ok(Some(Self { when, cpus, copies, results, partial, indices, score }))
    }

    /// Appends the block, without the lines of dashes around it.
    pub fn write(&self, out: &mut String) {
        let plural = |count: u64, one: &'static str, many: &'static str| if count == 1 { one } else { many };
        out.push_str(&format!(
            "Benchmark Run: {}\n{} {} in system; running {} parallel {} of tests\n\n",
            self.when,
            self.cpus,
            plural(self.cpus, "CPU", "CPUs"),
            self.copies,
            plural(self.copies, "copy", "copies")
        ));
        for (name, score, unit, seconds, samples) in &self.results {
            out.push_str(&format!("{name:<40} {score:12.1} {unit:<5} ({seconds:.1} s, {samples} samples)\n"));
        }
        let title =
            if self.partial { "System Benchmarks Partial Index" } else { "System Benchmarks Index Values" };
        out.push_str(&format!("\n{title:<44} BASELINE       RESULT    INDEX\n"));
        for row in &self.indices {
            out.push_str(&format!(
                "{:<40} {:12.1} {:12.1} {:8.1}\n",
                row.name, row.baseline, row.result, row.index
            ));
        }
        let title = if self.partial {
            "System Benchmarks Index Score (Partial Only)"
        } else {
            "System Benchmarks Index Score"
        };
        out.push_str(&format!("{:>75}\n{title:<66} {:8.1}\n", "========", self.score));
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        let rows = self.results.iter();
        rows.map(|(name, score, _, _, _)| {
            Samples::one(format!("{name} × {}", self.copies), "1/s", Better::Higher, *score)
        })
        .collect()
    }
}

fn result(mut scan: Scan<'_>) -> Result<(String, f64, String, f64, u64), ParseError> {
    let Some((name, _)) = scan.rest().split_at_checked(40) else { return Err(scan.fail("a test's name")) };
    scan.literal(name)?;
    let score = scan.f64("a score")?;
    let unit = scan.word(&[], "a unit")?.to_owned();
    scan.pad();
    scan.literal("(")?;
    let seconds = scan.f64("seconds")?;
    scan.literal(" s, ")?;
    let samples = scan.u64("a number of samples")?;
    scan.literal(" samples)")?;
    scan.end()?;
    Ok((name.trim_end().to_owned(), score, unit, seconds, samples))
}

fn index_row(scan: &Scan<'_>) -> Result<UnixbenchIndex, ParseError> {
    let mut scan = scan.clone();
    let Some((name, _)) = scan.rest().split_at_checked(40) else { return Err(scan.fail("a test's name")) };
    scan.literal(name)?;
    let baseline = scan.f64("a baseline")?;
    let result = scan.f64("a result")?;
    let index = scan.f64("an index")?;
    scan.end()?;
    Ok(UnixbenchIndex { name: name.trim_end().to_owned(), baseline, result, index })
}

/// One copy's result in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct UnixbenchCopy {
    /// Loops done.
    pub count: u64,
    /// Time base.
    pub time_base: u64,
    /// Unit.
    pub unit: String,
    /// Run time, microseconds.
    pub elapsed_us: u64,
    /// Process id.
    pub pid: u64,
    /// Exit status.
    pub status: i64,
}

/// One test in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct UnixbenchLog {
    /// Test and copies, as printed (`Pipe-based Context Switching -- 1 copy`).
    pub title: String,
    /// The command line, as printed.
    pub command: String,
    /// Passes: the copies' counts, and their sum.
    pub passes: Vec<(Vec<UnixbenchCopy>, f64)>,
    /// Copies.
    pub copies: u64,
    /// Score: loops a second.
    pub score: f64,
    /// Mean seconds.
    pub time: f64,
    /// Passes that count.
    pub iterations: u64,
}

const HASHES: &str = "########################################################";

impl UnixbenchLog {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        if lines.peek() != Some(HASHES) || !lines.peek_at(1).is_some_and(|line| line.contains(" -- ")) {
            return Ok(None);
        }
        lines.next("")?;
        let title = lines.next("a title")?.rest().to_owned();
        let mut scan = lines.next("`==> `")?;
        scan.literal("==> ")?;
        let command = scan.rest().to_owned();
        lines.exact("")?;
        let mut passes = Vec::new();
        while lines.peek().is_some_and(|line| line.starts_with("#### Pass ")) {
            passes.push(pass(lines, passes.len() + 1)?);
        }
        let mut scan = lines.next("`>>>> Results of …`")?;
        if !scan.have(">>>> Sum of ") {
            scan.literal(">>>> Results of ")?;
        }
        let copies = scan.u64("a number of copies")?;
        let mut value = |key: &str| -> Result<Scan<'_>, ParseError> {
            let mut scan = lines.next(key)?;
            scan.literal(&format!(">>>> {key}: "))?;
            Ok(scan)
        };
        let score = value("score")?.f64("a score")?;
        let time = value("time")?.f64("seconds")?;
        let iterations = value("iterations")?.u64("iterations")?;
        Ok(Some(Self { title, command, passes, copies, score, time, iterations }))
    }

    /// Appends the block.
    pub fn write(&self, out: &mut String) {
        out.push_str(&format!("{HASHES}\n{}\n==> {}\n\n", self.title, self.command));
        for (index, (copies, sum)) in self.passes.iter().enumerate() {
            out.push_str(&format!("#### Pass {}\n\n\n", index + 1));
            for copy in copies {
                out.push_str(&format!(
                    "# COUNT0: {}\n# COUNT1: {}\n# COUNT2: {}\n# elapsed: {}\n# pid: {}\n# status: {}\n\n",
                    copy.count,
                    copy.time_base,
                    copy.unit,
                    super::scan::fixed(copy.elapsed_us, 6),
                    copy.pid,
                    copy.status
                ));
            }
            out.push_str(&format!("Count score: {sum:12.1}\n\n"));
        }
        let (word, copies) = if self.copies == 1 { ("Results of", "copy") } else { ("Sum of", "copies") };
        out.push_str(&format!(
            ">>>> {word} {} {copies}\n>>>> score: {}\n>>>> time: {}\n>>>> iterations: {}\n",
            self.copies,
            general(self.score, 15),
            general(self.time, 15),
            self.iterations
        ));
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        let name = self.title.split(" -- ").next().unwrap_or(&self.title);
        vec![Samples::one(format!("{name} × {}", self.copies), "1/s", Better::Higher, self.score)]
    }
}

fn pass(lines: &mut Lines<'_>, number: usize) -> Result<(Vec<UnixbenchCopy>, f64), ParseError> {
    lines.exact(&format!("#### Pass {number}"))?;
    lines.exact("")?;
    lines.exact("")?;
    let mut copies = Vec::new();
    while lines.peek().is_some_and(|line| line.starts_with("# COUNT0: ")) {
        let mut value = |key: &str| -> Result<Scan<'_>, ParseError> {
            let mut scan = lines.next(key)?;
            scan.literal(&format!("# {key}: "))?;
            Ok(scan)
        };
        copies.push(UnixbenchCopy {
            count: value("COUNT0")?.u64("a count")?,
            time_base: value("COUNT1")?.u64("a time base")?,
            unit: value("COUNT2")?.rest().to_owned(),
            elapsed_us: value("elapsed")?.fixed(6, "seconds")?,
            pid: value("pid")?.u64("a process id")?,
            status: value("status")?.i64("a status")?,
        });
        lines.exact("")?;
    }
    let mut scan = lines.next("`Count score:`")?;
    scan.literal("Count score: ")?;
    let sum = scan.f64("a score")?;
    lines.exact("")?;
    Ok((copies, sum))
}
