//! stress-ng's metrics: the log lines (`--metrics-brief`, `--metrics`) and the YAML file.
//!
//! Source: stress-ng 0.15.06. Its other log lines are other text to us.

use super::scan::{Lines, Scan};
use super::{Better, ParseError, Samples};

/// A metrics line.
#[derive(Debug, Clone, PartialEq)]
pub enum StressNgLine {
    /// A stressor's row.
    Row {
        /// Stressor.
        stressor: String,
        /// Its own operations.
        bogo_ops: u64,
        /// Seconds on the clock.
        real_s: f64,
        /// Seconds in user mode.
        user_s: f64,
        /// Seconds in the kernel.
        system_s: f64,
        /// Operations a second of real time.
        ops_per_real_s: f64,
        /// Operations a second of CPU time.
        ops_per_cpu_s: f64,
        /// `--metrics` only: percent of a CPU an instance, and KiB resident.
        full: Option<(f64, u64)>,
    },
    /// `miscellaneous metrics:`
    Title,
    /// A stressor's own metric.
    Own {
        /// Stressor.
        stressor: String,
        /// Value.
        value: f64,
        /// What it is, as printed.
        description: String,
    },
}

/// The metrics lines of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct StressNg {
    /// Process id in the log lines.
    pub pid: u64,
    /// With the two columns of `--metrics`.
    pub full: bool,
    /// The lines.
    pub lines: Vec<StressNgLine>,
}

const PREFIX: &str = "stress-ng: metrc: [";
const HEAD: &str = "stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s";
const HEAD_FULL: &str = " CPU used per       RSS Max";
const HEAD_2: &str = "                          (secs)    (secs)    (secs)   (real time) (usr+sys time)";
const HEAD_2_FULL: &str = " instance (%)          (KB)";

impl StressNg {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if(PREFIX) else { return Ok(None) };
        let pid = scan.u64("a process id")?;
        scan.literal("] ")?;
        scan.literal(HEAD)?;
        let full = scan.have(HEAD_FULL);
        scan.end()?;
        let mut scan = lines.next("the second line of the head")?;
        scan.literal(&format!("{PREFIX}{pid}] {HEAD_2}"))?;
        if full {
            scan.literal(HEAD_2_FULL)?;
        }
        scan.end()?;
        let mut rows = Vec::new();
        let mut own = false;
        while let Some(mut scan) = lines.next_if(&format!("{PREFIX}{pid}] ")) {
            if scan.have("miscellaneous metrics:") {
                scan.end()?;
                own = true;
                rows.push(StressNgLine::Title);
                continue;
            }
            rows.push(if own { own_row(scan)? } else { row(scan, full)? });
        }
        Ok(Some(Self { pid, full, lines: rows }))
    }

    /// Appends the lines.
    pub fn write(&self, out: &mut String) {
        let prefix = format!("{PREFIX}{}] ", self.pid);
        let (full, full_2) = if self.full { (HEAD_FULL, HEAD_2_FULL) } else { ("", "") };
        out.push_str(&format!("{prefix}{HEAD}{full}\n{prefix}{HEAD_2}{full_2}\n"));
        for line in &self.lines {
            out.push_str(&prefix);
            match line {
                StressNgLine::Row {
                    stressor,
                    bogo_ops,
                    real_s,
                    user_s,
                    system_s,
                    ops_per_real_s,
                    ops_per_cpu_s,
                    full,
                } => {
                    out.push_str(&format!(
                        "{stressor:<13} {bogo_ops:9} {real_s:9.2} {user_s:9.2} {system_s:9.2} {ops_per_real_s:12.2} {ops_per_cpu_s:14.2}"
                    ));
                    if let Some((cpu, kib)) = full {
                        out.push_str(&format!(" {cpu:12.2} {kib:13}"));
                    }
                }
                StressNgLine::Title => out.push_str("miscellaneous metrics:"),
                StressNgLine::Own { stressor, value, description } => {
                    out.push_str(&format!("{stressor:<13} {value:13.2} {description}"));
                }
            }
            out.push('\n');
        }
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        self.lines
            .iter()
            .filter_map(|line| match line {
                StressNgLine::Row { stressor, ops_per_real_s, .. } => {
                    Some(Samples::one(format!("{stressor} ops"), "1/s", Better::Higher, *ops_per_real_s))
                }
                StressNgLine::Own { stressor, value, description } => {
                    own_samples(stressor, *value, description)
                }
                StressNgLine::Title => None,
            })
            .collect()
    }
}

/// Only descriptions whose direction is certain: durations and rates.
fn own_samples(stressor: &str, value: f64, description: &str) -> Option<Samples> {
    let what = description.split(" (").next().unwrap_or(description);
    let metric = format!("{stressor} {what}");
    if what.starts_with("nanosecs per ") || what.starts_with("ns duration per ") {
        Some(Samples::one(metric, "ns", Better::Lower, value))
    } else if what.contains(" per sec") {
        Some(Samples::one(metric, "1/s", Better::Higher, value))
    } else {
        None
    }
}

fn row(mut scan: Scan<'_>, full: bool) -> Result<StressNgLine, ParseError> {
    let stressor = scan.word(&[], "a stressor")?.to_owned();
    let bogo_ops = scan.u64("operations")?;
    let real_s = scan.f64("seconds")?;
    let user_s = scan.f64("seconds")?;
    let system_s = scan.f64("seconds")?;
    let ops_per_real_s = scan.f64("operations a second")?;
    let ops_per_cpu_s = scan.f64("operations a second")?;
    let full = if full { Some((scan.f64("percent")?, scan.u64("KiB")?)) } else { None };
    scan.end()?;
    Ok(StressNgLine::Row {
        stressor,
        bogo_ops,
        real_s,
        user_s,
        system_s,
        ops_per_real_s,
        ops_per_cpu_s,
        full,
    })
}

fn own_row(mut scan: Scan<'_>) -> Result<StressNgLine, ParseError> {
    let stressor = scan.word(&[], "a stressor")?.to_owned();
    let value = scan.f64("a value")?;
    scan.literal(" ")?;
    Ok(StressNgLine::Own { stressor, value, description: scan.rest().to_owned() })
}

/// The `metrics:` list of the YAML file: per stressor, keys and values as printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StressNgYaml {
    /// Stressor, and its keys.
    pub stressors: Vec<(String, Vec<(String, String)>)>,
}

impl StressNgYaml {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        if lines.peek() != Some("metrics:")
            || !lines.peek_at(1).is_some_and(|line| line.starts_with("    - stressor: "))
        {
            return Ok(None);
        }
        lines.next("")?;
        let mut stressors = Vec::new();
        while let Some(scan) = lines.next_if("    - stressor: ") {
            let mut keys = Vec::new();
            while let Some(mut scan) = lines.next_if("      ") {
                let key = scan.until(": ")?.to_owned();
                keys.push((key, scan.rest().to_owned()));
            }
            stressors.push((scan.rest().to_owned(), keys));
            if lines.peek() == Some("") {
                lines.next("")?;
            }
        }
        Ok(Some(Self { stressors }))
    }

    /// Appends the list.
    pub fn write(&self, out: &mut String) {
        out.push_str("metrics:\n");
        for (stressor, keys) in &self.stressors {
            out.push_str(&format!("    - stressor: {stressor}\n"));
            for (key, value) in keys {
                out.push_str(&format!("      {key}: {value}\n"));
            }
            out.push('\n');
        }
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        let mut samples = Vec::new();
        for (stressor, keys) in &self.stressors {
            for (key, value) in keys {
                let Some(value) = value.parse().ok().filter(|value: &f64| value.is_finite()) else {
                    continue;
                };
                if key == "bogo-ops-per-second-real-time" {
                    samples.push(Samples::one(format!("{stressor} ops"), "1/s", Better::Higher, value));
                } else if key.starts_with("nanosecs-per-") {
                    samples.push(Samples::one(format!("{stressor} {key}"), "ns", Better::Lower, value));
                }
            }
        }
        samples
    }
}
