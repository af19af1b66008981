//! dmatest's kernel log: the summary line, and the line of CPUs hit that a local patch adds.
//!
//! Source: drivers/dma/dmatest.c (5.0 on) and the mails of January 2022. Rates are computed as the kernel computes them: in
//! binary fixed point with 8 bits, truncated.

use super::scan::{Lines, fixed};
use super::{Better, ParseError, Samples};

/// `…: summary 1000 tests, 0 failures 65291.19 iops 4178636 KB/s (0)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmatestSummary {
    /// Everything before ` summary`: time stamp, module, thread (`dmatest: dma0chan0-copy0:`).
    pub prefix: String,
    /// Transfers.
    pub tests: u64,
    /// Of which failed.
    pub failures: u64,
    /// Transfers a second in hundredths, as printed.
    pub iops_e2: u64,
    /// KiB a second, truncated; the kernel prints it as KB/s.
    pub kb_per_s: u64,
    /// The thread's result; 0 is success.
    pub result: i64,
}

impl DmatestSummary {
    /// What the kernel logs for transfers of `kib` KiB in all that took `time_us` microseconds (without filling and
    /// verifying).
    #[must_use]
    pub fn of_run(prefix: &str, tests: u64, failures: u64, kib: u64, time_us: u64, result: i64) -> Self {
        Self {
            prefix: prefix.to_owned(),
            tests,
            failures,
            iops_e2: iops_e2(per_second_e8(time_us, tests)),
            kb_per_s: (per_second_e8(time_us, kib) >> 8) as u64,
            result,
        }
    }

    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if("") else { return Ok(None) };
        if !(scan.rest().contains(": summary ") && scan.rest().contains(" iops ")) {
            return Ok(None);
        }
        let prefix = scan.until(" summary ")?.to_owned();
        let tests = scan.u64("the number of tests")?;
        scan.literal(" tests, ")?;
        let failures = scan.u64("the number of failures")?;
        scan.literal(" failures ")?;
        let iops_e2 = scan.fixed(2, "transfers a second")?;
        scan.literal(" iops ")?;
        let kb_per_s = scan.u64("KB a second")?;
        scan.literal(" KB/s (")?;
        let result = scan.i64("the result")?;
        scan.literal(")")?;
        scan.end()?;
        Ok(Some(Self { prefix, tests, failures, iops_e2, kb_per_s, result }))
    }

    /// Appends the line.
    pub fn write(&self, out: &mut String) {
        out.push_str(&format!(
            "{} summary {} tests, {} failures {} iops {} KB/s ({})\n",
            self.prefix,
            self.tests,
            self.failures,
            fixed(self.iops_e2, 2),
            self.kb_per_s,
            self.result
        ));
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        if self.result != 0 || self.tests == 0 {
            return Vec::new();
        }
        vec![
            Samples::one("iops", "1/s", Better::Higher, self.iops_e2 as f64 / 100.0),
            Samples::one("throughput", "KiB/s", Better::Higher, self.kb_per_s as f64),
        ]
    }
}

/// A count a second with 8 binary digits after the point, truncated; 0 without time, as the kernel has it.
///
/// Models: dmatest_persec(), v5.0–v7.2
pub(crate) fn per_second_e8(time_us: u64, count: u64) -> u128 {
    if time_us == 0 {
        return 0;
    }
    // Above 32 bits of microseconds (71 minutes) the kernel halves the time and doubles the second, where it had to halve
    // both: its rates are four times too high for each halving.
    let shift = 64 - time_us.leading_zeros().min(32) - 32;
    let scaled = (1_000_000u128 << shift) * u128::from(count);
    (scaled << 8) / u128::from(time_us >> shift)
}

/// Hundredths as the kernel prints them: two digits of the 8-bit fraction, truncated.
pub(crate) fn iops_e2(rate_e8: u128) -> u64 {
    let whole = (rate_e8 >> 8) as u64;
    let fraction = ((rate_e8 & 255) as u64 * 100) >> 8;
    whole.saturating_mul(100).saturating_add(fraction)
}

/// ` CPUs hit: #52:417 #63:583  (times)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpusHit {
    /// Everything before `CPUs hit:`.
    pub prefix: String,
    /// CPU, and how many transfers ended on it; CPUs ascending.
    pub hits: Vec<(u32, u64)>,
}

impl CpusHit {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(mut scan) = lines.next_if("") else { return Ok(None) };
        if !scan.rest().contains("CPUs hit: #") {
            return Ok(None);
        }
        let prefix = scan.until("CPUs hit:")?.to_owned();
        let mut hits = Vec::new();
        while scan.have(" #") {
            let cpu = scan.u32("a CPU's number")?;
            scan.literal(":")?;
            hits.push((cpu, scan.u64("a count")?));
        }
        scan.literal("  (times)")?;
        scan.end()?;
        Ok(Some(Self { prefix, hits }))
    }

    /// Appends the line.
    pub fn write(&self, out: &mut String) {
        out.push_str(&self.prefix);
        out.push_str("CPUs hit:");
        for (cpu, count) in &self.hits {
            out.push_str(&format!(" #{cpu}:{count}"));
        }
        out.push_str("  (times)\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quoted_lines_come_from_whole_run_times() {
        for (time_us, iops, kb) in [(15_316, 6_529_119, 4_178_636), (13_128, 7_617_306, 4_875_076)] {
            let line = DmatestSummary::of_run("dmatest: dma0chan0-copy0:", 1000, 0, 64_000, time_us, 0);
            assert_eq!((line.iops_e2, line.kb_per_s), (iops, kb));
        }
    }

    #[test]
    fn more_than_71_minutes_and_no_time_are_the_kernel_s() {
        assert_eq!(per_second_e8(0, 5), 0);
        // 10,000 s are halved twice: the true 100 a second are printed as 1600.
        assert_eq!(iops_e2(per_second_e8(10_000_000_000, 1_000_000)), 160_000);
    }
}
