//! dbench 4 and tbench, which prints the same.
//!
//! Source: dbench 4.00 (Debian) and the fork that mmtests uses, which prints the time of every pass of the load file. The
//! throughput of the per-second lines is a running average: not independent samples, and not taken as such.

use super::scan::{Lines, Scan, general};
use super::{Better, ParseError, Samples};

/// What a per-second line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DbenchPhase {
    /// Before the measured time.
    Warmup,
    /// Measured.
    Execute,
}

/// One pass of the load file by one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DbenchCompleted {
    /// Client, from 0.
    pub client: u64,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// End since the start of the run, in milliseconds.
    pub at_ms: u64,
}

/// A line of the running report.
#[derive(Debug, Clone, PartialEq)]
pub enum DbenchLine {
    /// `2 of 2 processes prepared for launch   0 sec`
    Prepared {
        /// Ready.
        ready: u64,
        /// In all.
        clients: u64,
        /// Seconds since the start.
        at_s: u64,
    },
    /// `releasing clients`
    Releasing,
    /// The per-second line.
    Second {
        /// Clients at work.
        clients: u64,
        /// Lines of the load file a client.
        lines: u64,
        /// Running average in MB a second.
        mb_per_s: f64,
        /// Warm-up or measured.
        phase: DbenchPhase,
        /// Seconds.
        at_s: u64,
        /// Worst latency since the last line, milliseconds.
        latency_ms: f64,
    },
    /// `2  cleanup   4 sec`
    Cleanup {
        /// Clients left.
        clients: u64,
        /// Seconds.
        at_s: u64,
    },
    /// `0 completed in 333 ms at time 333 ms`
    Completed(DbenchCompleted),
}

/// A row of the operation table.
#[derive(Debug, Clone, PartialEq)]
pub struct DbenchOperation {
    /// Operation.
    pub name: String,
    /// How often.
    pub count: u64,
    /// Mean latency, milliseconds.
    pub latency_ms_avg: f64,
    /// Worst latency, milliseconds.
    pub latency_ms_max: f64,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Dbench {
    /// `4.00`
    pub version: String,
    /// Seconds asked for.
    pub runtime_s: u64,
    /// Load file.
    pub load: String,
    /// Seconds of warm-up.
    pub warmup_s: u64,
    /// The running report.
    pub lines: Vec<DbenchLine>,
    /// Width of the table's first column: 12 (4.00) or 22 (mmtests' fork).
    pub name_width: usize,
    /// The operation table.
    pub operations: Vec<DbenchOperation>,
    /// MB a second.
    pub mb_per_s: f64,
    /// ` (sync open)`, ` (sync dirs)`, as printed.
    pub flags: String,
    /// Clients.
    pub clients: u64,
    /// Processes.
    pub processes: u64,
    /// Worst latency, milliseconds.
    pub latency_ms_max: f64,
}

impl Dbench {
    /// `None` where the run failed and says so.
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if("dbench version ") else { return Ok(None) };
        let version = scan.word(&[], "a version")?.to_owned();
        scan.literal(" - Copyright Andrew Tridgell 1999-2004")?;
        lines.exact("")?;
        if lines.peek().is_some_and(|line| line.starts_with("Usage:")) {
            return Ok(None);
        }
        let mut scan = lines.next("`Running for … seconds`")?;
        scan.literal("Running for ")?;
        let runtime_s = scan.u64("seconds")?;
        scan.literal(" seconds with load '")?;
        let load = scan.until("' and minimum warmup ")?.to_owned();
        let warmup_s = scan.u64("seconds")?;
        scan.literal(" secs")?;
        scan.end()?;
        let mut report = Vec::new();
        loop {
            if lines.peek() == Some("") {
                lines.next("")?;
                break;
            }
            if lines.peek().is_some_and(is_failure) {
                return Ok(None);
            }
            report.push(line(lines)?);
        }
        let mut scan = lines.next("`Operation … Count`")?;
        scan.literal(" Operation")?;
        let before_count = scan.until("Count")?;
        scan.literal("    AvgLat    MaxLat")?;
        // The count's column is 8 wide and ends where the word does; the name's begins at the second character.
        let name_width =
            (9 + before_count.len() + 5).checked_sub(8).ok_or_else(|| scan.fail("a wider first column"))?;
        lines.exact(&format!(" {}", "-".repeat(name_width + 28)))?;
        let mut operations = Vec::new();
        while let Some(mut scan) = lines.next_if(" ") {
            operations.push(DbenchOperation {
                name: scan.word(&[], "an operation")?.to_owned(),
                count: scan.u64("a count")?,
                latency_ms_avg: scan.f64("milliseconds")?,
                latency_ms_max: scan.f64("milliseconds")?,
            });
            scan.end()?;
        }
        lines.exact("")?;
        let mut scan = lines.next("`Throughput`")?;
        scan.literal("Throughput ")?;
        let mb_per_s = scan.f64("MB a second")?;
        scan.literal(" MB/sec")?;
        let flags_end = scan.rest().rfind(')').map_or(0, |end| end + 1);
        let flags = scan.rest()[..flags_end].to_owned();
        scan.literal(&flags)?;
        scan.literal("  ")?;
        let clients = scan.u64("the number of clients")?;
        scan.literal(" clients  ")?;
        let processes = scan.u64("the number of processes")?;
        scan.literal(" procs  max_latency=")?;
        let latency_ms_max = scan.f64("milliseconds")?;
        scan.literal(" ms")?;
        scan.end()?;
        Ok(Some(Self {
            version,
            runtime_s,
            load,
            warmup_s,
            lines: report,
            name_width,
            operations,
            mb_per_s,
            flags,
            clients,
            processes,
            latency_ms_max,
        }))
    }

    /// Appends the whole output.
    pub fn write(&self, out: &mut String) {
        out.push_str(&format!(
            "dbench version {} - Copyright Andrew Tridgell 1999-2004\n\nRunning for {} seconds with load '{}' and minimum warmup {} secs\n",
            self.version, self.runtime_s, self.load, self.warmup_s
        ));
        for line in &self.lines {
            line.write(out);
        }
        let width = self.name_width;
        out.push_str(&format!(
            "\n {:<width$}   Count    AvgLat    MaxLat\n {}\n",
            "Operation",
            "-".repeat(width + 28)
        ));
        for row in &self.operations {
            out.push_str(&format!(
                " {:<width$} {:7} {:9.3} {:9.3}\n",
                row.name, row.count, row.latency_ms_avg, row.latency_ms_max
            ));
        }
        out.push_str(&format!(
            "\nThroughput {} MB/sec{}  {} clients  {} procs  max_latency={:.3} ms\n",
            general(self.mb_per_s, 6),
            self.flags,
            self.clients,
            self.processes,
            self.latency_ms_max
        ));
    }

    /// The passes of the load file, throughput and worst latency; a warm-up that measured no time has neither of the last.
    pub(crate) fn samples(&self) -> Vec<Samples> {
        let passes: Vec<f64> = self
            .lines
            .iter()
            .filter_map(|line| match line {
                DbenchLine::Completed(pass) => Some(pass.duration_ms as f64),
                DbenchLine::Prepared { .. }
                | DbenchLine::Releasing
                | DbenchLine::Second { .. }
                | DbenchLine::Cleanup { .. } => None,
            })
            .collect();
        let mut samples = Vec::new();
        if !passes.is_empty() {
            samples.push(Samples {
                metric: "loadfile".to_owned(),
                unit: "ms",
                better: Better::Lower,
                values: passes,
            });
        }
        if self.mb_per_s > 0.0 {
            samples.push(Samples::one("throughput", "MB/s", Better::Higher, self.mb_per_s));
            samples.push(Samples::one("latency_max", "ms", Better::Lower, self.latency_ms_max));
        }
        samples
    }
}

impl DbenchLine {
    /// Appends the line.
    pub fn write(&self, out: &mut String) {
        let line = match self {
            Self::Prepared { ready, clients, at_s } => {
                format!("{ready} of {clients} processes prepared for launch {at_s:3} sec\n")
            }
            Self::Releasing => "releasing clients\n".to_owned(),
            Self::Second { clients, lines, mb_per_s, phase, at_s, latency_ms } => {
                let phase = match phase {
                    DbenchPhase::Warmup => "warmup",
                    DbenchPhase::Execute => "execute",
                };
                format!(
                    "{clients:4}  {lines:8}  {mb_per_s:7.2} MB/sec  {phase} {at_s:3} sec  latency {latency_ms:.3} ms\n"
                )
            }
            Self::Cleanup { clients, at_s } => format!("{clients:4}  cleanup {at_s:3} sec\n"),
            Self::Completed(pass) => {
                format!("{:4} completed in {} ms at time {} ms\n", pass.client, pass.duration_ms, pass.at_ms)
            }
        };
        out.push_str(&line);
    }
}

fn line(lines: &mut Lines<'_>) -> Result<DbenchLine, ParseError> {
    let mut scan = lines.next("a line of the running report, or `Throughput`")?;
    if scan.have("releasing clients") {
        scan.end()?;
        return Ok(DbenchLine::Releasing);
    }
    let first = scan.u64("a number of clients")?;
    if scan.have(" of ") {
        let clients = scan.u64("a number of clients")?;
        scan.literal(" processes prepared for launch ")?;
        return Ok(DbenchLine::Prepared { ready: first, clients, at_s: seconds(scan)? });
    }
    if scan.have(" completed in ") {
        let duration_ms = scan.u64("milliseconds")?;
        scan.literal(" ms at time ")?;
        let at_ms = scan.u64("milliseconds")?;
        scan.literal(" ms")?;
        scan.end()?;
        return Ok(DbenchLine::Completed(DbenchCompleted { client: first, duration_ms, at_ms }));
    }
    if scan.have("  cleanup ") {
        return Ok(DbenchLine::Cleanup { clients: first, at_s: seconds(scan)? });
    }
    let lines_done = scan.u64("lines of the load file")?;
    let mb_per_s = scan.f64("MB a second")?;
    scan.literal(" MB/sec  ")?;
    let phase = if scan.have("warmup ") {
        DbenchPhase::Warmup
    } else {
        scan.literal("execute ")?;
        DbenchPhase::Execute
    };
    let at_s = scan.u64("seconds")?;
    scan.literal(" sec  latency ")?;
    let latency_ms = scan.f64("milliseconds")?;
    scan.literal(" ms")?;
    scan.end()?;
    Ok(DbenchLine::Second { clients: first, lines: lines_done, mb_per_s, phase, at_s, latency_ms })
}

fn seconds(mut scan: Scan<'_>) -> Result<u64, ParseError> {
    let seconds = scan.u64("seconds")?;
    scan.literal(" sec")?;
    scan.end()?;
    Ok(seconds)
}

fn is_failure(line: &str) -> bool {
    line.contains("failed") || line.contains("ERROR")
}
