//! Wake-up latencies counted and rounded as schbench does, so that a recording can be laid beside a schbench run.
//!
//! schbench counts microseconds in 19×256 buckets: exact below 512 µs, then each bucket spans a 256th of its power of two. A
//! percentile is the middle of the bucket in which the cumulative count reaches the percentage, both compared in double
//! precision. Latencies below one microsecond are not counted at all, which makes a fast machine look slower.
//!
//! What this does not do: know schbench's threads; it counts whatever tasks it is given. Where a task has more waits than
//! [`EXACT_LIMIT`](crate::EXACT_LIMIT), lengths come from a histogram and may fall into the next bucket.

use crate::distribution::Distribution;

const GROUPS: usize = 19;
const PER_GROUP: usize = 256;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchbenchPercentile {
    /// Per cent.
    pub percent: f64,
    /// The latency in microseconds.
    pub us: u64,
    /// Latencies above the previous percentile's bucket, up to this one's.
    pub samples: u64,
}

/// schbench's table in the forms of its generations.
#[derive(Clone, Debug, PartialEq)]
pub struct SchbenchTable {
    /// All counted latencies.
    pub samples: u64,
    /// Waits below one microsecond, which schbench drops.
    pub dropped: u64,
    /// Smallest counted, in whole microseconds.
    pub us_min: u64,
    /// Largest, in whole microseconds.
    pub us_max: u64,
    /// 50, 75, 90, 95, 99, 99.5, 99.9: generations A (2016) and B (2020).
    pub until_2023: Vec<SchbenchPercentile>,
    /// 20, 50, 90, 99, 99.9: generation C (2023); it prints no line for the 20th but takes its samples off the 50th.
    pub since_2023: Vec<SchbenchPercentile>,
}

impl Eq for SchbenchTable {}

impl SchbenchTable {
    /// The table of these latencies.
    #[must_use]
    pub fn new(latencies: &Distribution) -> Self {
        let mut counts = vec![0_u64; GROUPS * PER_GROUP];
        let (mut samples, mut dropped, mut us_min, mut us_max) = (0, 0, u64::MAX, 0);
        latencies.for_each(|ns, times| {
            let us = ns / 1000;
            if us == 0 {
                dropped += times;
                return;
            }
            counts[bucket(us)] += times;
            samples += times;
            us_min = us_min.min(us);
            us_max = us_max.max(us);
        });
        let us_min = if samples == 0 { 0 } else { us_min };
        let table = |list: &[f64]| percentiles(&counts, samples, list);
        let until_2023 = table(&[50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9]);
        let since_2023 = table(&[20.0, 50.0, 90.0, 99.0, 99.9]);
        Self { samples, dropped, us_min, us_max, until_2023, since_2023 }
    }
}

fn bucket(us: u64) -> usize {
    let bits = u64::BITS - us.leading_zeros();
    if bits <= 9 {
        return us as usize;
    }
    let error_bits = (bits - 9) as usize;
    let index = (error_bits + 1) * PER_GROUP + ((us >> error_bits) as usize & (PER_GROUP - 1));
    index.min(GROUPS * PER_GROUP - 1)
}

fn middle(bucket: usize) -> u64 {
    if bucket < 2 * PER_GROUP {
        return bucket as u64;
    }
    let error_bits = bucket / PER_GROUP - 1;
    let within = (bucket % PER_GROUP) as u64;
    // The lower edge is a power of two plus `within` steps; half a step more is the middle.
    let base = 1_u64 << (error_bits + 8);
    base + (within << error_bits) + (1_u64 << (error_bits - 1))
}

fn percentiles(counts: &[u64], samples: u64, list: &[f64]) -> Vec<SchbenchPercentile> {
    let mut lines = Vec::new();
    let (mut sum, mut printed, mut next) = (0_u64, 0_u64, 0);
    for (index, &count) in counts.iter().enumerate() {
        sum += count;
        while samples != 0 && next < list.len() && sum as f64 >= list[next] / 100.0 * samples as f64 {
            lines.push(SchbenchPercentile { percent: list[next], us: middle(index), samples: sum - printed });
            printed = sum;
            next += 1;
        }
    }
    for &percent in &list[next..] {
        lines.push(SchbenchPercentile { percent, us: 0, samples: 0 });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttwu_model::Time;

    #[test]
    fn buckets_are_schbenchs() {
        // Values that schbench printed in the kept outputs are middles of buckets.
        for value in [34, 511, 513, 8008, 15248, 19872, 61760, 73600, 278_016, 5176, 6152, 68992, 23648] {
            assert_eq!(middle(bucket(value)), value, "{value}");
        }
        assert_eq!(middle(bucket(u64::MAX)), 67_043_328);
        assert_ne!(middle(bucket(68_993)), 68_993);
    }

    #[test]
    fn percentiles_count_from_the_previous_one() {
        let mut latencies = Distribution::new();
        for us in [0_u64, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1000] {
            latencies.add(Time::ZERO, Time::from_ns(us * 1000));
        }
        let table = SchbenchTable::new(&latencies);
        assert_eq!((table.samples, table.dropped, table.us_min, table.us_max), (10, 1, 1, 1000));
        let lines: Vec<_> = table.since_2023.iter().map(|line| (line.us, line.samples)).collect();
        assert_eq!(lines, [(2, 2), (5, 3), (9, 4), (1001, 1), (1001, 0)]);
        let none = SchbenchTable::new(&Distribution::new());
        assert!(none.until_2023.iter().all(|line| line.us == 0 && line.samples == 0));
    }
}
