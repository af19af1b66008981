//! schbench's latency histogram: which values its buckets can produce, and its percentiles.
//!
//! All generations share fio's log-linear buckets (19 groups of 256): below 512 exact, above that the middle of a bucket
//! whose width doubles with every power of two. What differs by generation is the minimum and which percentiles are printed.
//! Percentiles compare in floating point, as schbench does.

use super::schbench::{SchbenchBlock, SchbenchKind, SchbenchRow, SchbenchRowStyle};

const BITS: u32 = 8;
const GROUP: usize = 1 << BITS;
const BUCKETS: usize = 19 * GROUP;

/// The largest value that a percentile can print; longer latencies saturate there.
pub const VALUE_MAX: u64 = 67_043_328;

/// A state of schbench's sources, by what it prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// 2016: labels with four decimals, no counts, minimum always 0.
    A0,
    /// August 2019: one decimal.
    A1,
    /// From December 2021: counts, interval reports.
    B,
    /// April 2023 on: wake-up and request latencies, requests a second.
    C,
    /// The same with `-p`: wake-up latencies with the 20th percentile.
    CPipe,
}

impl Generation {
    /// The percentiles in tenths of a percent that a block of this kind prints.
    #[must_use]
    pub const fn percentiles(self, kind: SchbenchKind) -> &'static [u16] {
        match (self, kind) {
            (Self::A0 | Self::A1 | Self::B, _) => &[500, 750, 900, 950, 990, 995, 999],
            (Self::C | Self::CPipe, SchbenchKind::Rps) => &[200, 500, 900],
            (Self::C, _) => &[500, 900, 990, 999],
            (Self::CPipe, _) => &[200, 500, 900, 990, 999],
        }
    }

    /// The percentiles whose counts are subtracted from each other.
    const fn percentiles_internal(self) -> &'static [u16] {
        match self {
            Self::A0 | Self::A1 | Self::B => &[500, 750, 900, 950, 990, 995, 999],
            Self::C | Self::CPipe => &[200, 500, 900, 990, 999],
        }
    }

    const fn style(self) -> SchbenchRowStyle {
        match self {
            Self::A0 => SchbenchRowStyle::FourDecimals,
            Self::A1 => SchbenchRowStyle::OneDecimal,
            Self::B | Self::C | Self::CPipe => SchbenchRowStyle::Padded,
        }
    }
}

/// What schbench makes of the values that it has recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    generation: Generation,
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty one.
    #[must_use]
    pub fn new(generation: Generation) -> Self {
        Self { generation, counts: vec![0; BUCKETS], total: 0, min: 0, max: 0 }
    }

    /// Records a latency in microseconds; one of 0 is dropped, as schbench drops it.
    pub fn record(&mut self, latency_us: u64) {
        if latency_us > 0 {
            self.record_rate(latency_us);
        }
    }

    /// Records a number of requests a second, 0 included.
    pub fn record_rate(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
        self.max = self.max.max(value);
        match self.generation {
            // Begins at 0 and only goes down.
            Generation::A0 | Generation::A1 => {}
            // 0 means "not set yet".
            Generation::B | Generation::C | Generation::CPipe => {
                if self.min == 0 || value < self.min {
                    self.min = value;
                }
            }
        }
    }

    /// How many values were recorded.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The smallest value, as this generation understands it (A: always 0).
    #[must_use]
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// The largest value, exact.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The value that schbench prints for a percentile in tenths of a percent; 0 when nothing was recorded.
    #[must_use]
    pub fn percentile(&self, tenths: u16) -> u64 {
        self.percentile_and_count(tenths).0
    }

    /// The printed value, and how many values its bucket and those below hold.
    fn percentile_and_count(&self, tenths: u16) -> (u64, u64) {
        if self.total == 0 {
            return (0, 0);
        }
        let wanted = f64::from(tenths) / 10.0 / 100.0 * self.total as f64;
        let mut sum = 0;
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            sum += count;
            if sum as f64 >= wanted {
                return (value(index), sum);
            }
        }
        // 99.9 / 100 × n can come out above n only for a percentile of 100, which is never asked for.
        (self.counts.iter().rposition(|&count| count > 0).map_or(0, value), self.total)
    }

    /// The block that schbench prints; `runtime_s` is left out by generation A.
    #[must_use]
    pub fn block(&self, kind: SchbenchKind, runtime_s: u64) -> SchbenchBlock {
        let counted = match self.generation {
            Generation::A0 | Generation::A1 => false,
            Generation::B | Generation::C | Generation::CPipe => true,
        };
        let printed = self.generation.percentiles(kind);
        let marked = if kind == SchbenchKind::Rps { 500 } else { 990 };
        let mut below = 0;
        let mut rows = Vec::new();
        for &tenths in self.generation.percentiles_internal() {
            let (value, sum) = self.percentile_and_count(tenths);
            if printed.contains(&tenths) {
                let samples = counted.then(|| sum - below);
                rows.push(SchbenchRow { tenths, marked: tenths == marked, value, samples });
            }
            below = sum;
        }
        SchbenchBlock {
            kind,
            style: self.generation.style(),
            runtime_s: counted.then_some(runtime_s),
            samples_total: counted.then_some(self.total),
            rows,
            min: self.min,
            max: self.max,
        }
    }
}

/// The value that schbench prints for a latency: the middle of its bucket.
#[must_use]
pub fn bucket_value(latency: u64) -> u64 {
    value(bucket(latency))
}

/// Whether a bucket prints this value.
#[must_use]
pub fn is_producible(printed: u64) -> bool {
    printed <= VALUE_MAX && bucket_value(printed) == printed
}

fn bucket(latency: u64) -> usize {
    if latency < 2 * GROUP as u64 {
        return latency as usize;
    }
    let error_bits = latency.ilog2() - BITS;
    let index = (error_bits as usize + 1) * GROUP + ((latency >> error_bits) as usize & (GROUP - 1));
    index.min(BUCKETS - 1)
}

const fn value(index: usize) -> u64 {
    if index < 2 * GROUP {
        return index as u64;
    }
    let error_bits = index / GROUP - 1;
    let place = (index % GROUP) as u64;
    // Lower edge and half a bucket; the half of a bucket of width 2 and more is whole.
    (1 << (error_bits + BITS as usize)) + (place << error_bits) + (1 << (error_bits - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_print_their_middle() {
        for (latency, printed) in [
            (0, 0),
            (511, 511),
            (512, 513),
            (1024, 1026),
            (69_106, 68_992),
            (68_993, 68_992),
            (145_152, 145_152),
            (u64::MAX, VALUE_MAX),
        ] {
            assert_eq!(bucket_value(latency), printed, "{latency}");
        }
        assert!(is_producible(68_992) && is_producible(278_016) && is_producible(VALUE_MAX));
        assert!(!is_producible(68_993) && !is_producible(512) && !is_producible(VALUE_MAX + 131_072));
        // The stated relative error of a bucket.
        for shift in 0..25 {
            let latency = (1u64 << shift) + 3;
            assert!(bucket_value(latency).abs_diff(latency) * 512 <= latency + 511, "{latency}");
        }
    }

    #[test]
    fn percentiles_and_counts_are_schbench_s() {
        let mut histogram = Histogram::new(Generation::B);
        histogram.record(0);
        for latency in 1..=200 {
            histogram.record(latency);
        }
        assert_eq!(histogram.total(), 200);
        let block = histogram.block(SchbenchKind::Latency, 30);
        let rows: Vec<(u16, u64, Option<u64>)> =
            block.rows.iter().map(|row| (row.tenths, row.value, row.samples)).collect();
        assert_eq!(rows[..3], [(500, 100, Some(100)), (750, 150, Some(50)), (900, 180, Some(30))]);
        assert_eq!(rows[4..], [(990, 198, Some(8)), (995, 199, Some(1)), (999, 200, Some(1))]);
        assert_eq!((block.min, block.max), (1, 200));
        let mut old = Histogram::new(Generation::A0);
        old.record(77);
        assert_eq!((old.min(), old.max(), old.percentile(999)), (0, 77, 77));
        assert_eq!(Histogram::new(Generation::C).percentile(990), 0);
    }

    #[test]
    fn the_20th_percentile_is_hidden_in_the_counts_of_generation_c() {
        // The five wake-ups of a recorded run: counts 2, 2, 0, 0 of 5, as the first is below the 20th percentile.
        let mut histogram = Histogram::new(Generation::C);
        for latency in [12, 40, 79, 100, 219] {
            histogram.record(latency);
        }
        let block = histogram.block(SchbenchKind::Wakeup, 4);
        let counts: Vec<Option<u64>> = block.rows.iter().map(|row| row.samples).collect();
        assert_eq!(counts, [Some(2), Some(2), Some(0), Some(0)]);
        // A rate's first sample is a spurious 0, which the minimum forgets.
        let mut rates = Histogram::new(Generation::C);
        for rate in [0, 97, 183] {
            rates.record_rate(rate);
        }
        let block = rates.block(SchbenchKind::Rps, 2);
        assert_eq!((block.min, block.max, block.rows[0].value, block.rows[1].value), (97, 183, 0, 97));
    }
}
