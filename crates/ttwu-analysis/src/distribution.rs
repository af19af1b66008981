//! A distribution of lengths of time: count, sum, extremes with their times, and quantiles.
//!
//! The first [`EXACT_LIMIT`] lengths are kept as they are; most tasks of a recording never have more, and a histogram a task
//! would cost more memory than the recording. Beyond that, an HDR histogram with three significant digits takes over.
//!
//! **Quantile** q of n lengths is the nearest rank: the smallest length such that at least ⌈q·n⌉ (and at least one) of
//! the lengths are not longer. No interpolation: every figure printed did occur. From the histogram it is the upper end of
//! the bucket that holds that length, at most 0.1 % above it, and never above the exact maximum.

use hdrhistogram::Histogram;
use ttwu_model::Time;

/// Up to this many lengths quantiles are exact.
pub const EXACT_LIMIT: usize = 16_384;

/// Lengths beyond this (about 52 days) all count as this in the histogram, as [`Histogram`] must know its end; sums and extremes
/// stay exact.
const LONGEST_NS: u64 = 1 << 52;

/// A quantile as an exact fraction, so that the rank does not depend on rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Parts per [`Quantile::SCALE`].
    pub parts: u32,
}

impl Quantile {
    /// Quantiles are given in tenths of a per cent.
    pub const SCALE: u32 = 1000;

    /// The quantile of `tenths` tenths of a per cent: 995 is p99.5.
    #[must_use]
    pub const fn permille(tenths: u32) -> Self {
        Self { parts: tenths }
    }

    /// The rank of this quantile among `count` sorted values, from 1; `count` must not be 0.
    #[must_use]
    pub fn rank(self, count: u64) -> u64 {
        let exact = u128::from(count) * u128::from(self.parts);
        let rank = exact.div_ceil(u128::from(Self::SCALE));
        u64::try_from(rank).expect("not more than count").clamp(1, count)
    }
}

/// Figures of a distribution, ready to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many lengths.
    pub count: u64,
    /// Their sum.
    pub ns_sum: u64,
    /// The largest; 0 if there are none.
    pub ns_max: u64,
    /// When the largest began (the first of equal ones); zero if there are none.
    pub max_from: Time,
    /// When it ended.
    pub max_to: Time,
    /// The quantiles; `None` if there are no lengths.
    pub ns: Option<Quantiles>,
}

impl Summary {
    /// The mean, rounded down; `None` if there are no lengths.
    #[must_use]
    pub const fn ns_avg(&self) -> Option<u64> {
        self.ns_sum.checked_div(self.count)
    }
}

/// The usual quantiles, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Median.
    pub p50: u64,
    /// 75 %.
    pub p75: u64,
    /// 90 %.
    pub p90: u64,
    /// 95 %.
    pub p95: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.5 %.
    pub p99_5: u64,
    /// 99.9 %.
    pub p99_9: u64,
}

#[derive(Clone, Debug)]
enum Lengths {
    Exact(Vec<u64>),
    Histogram(Box<Histogram<u64>>),
}

/// Lengths being collected.
#[derive(Clone, Debug)]
pub struct Distribution {
    lengths: Lengths,
    summary: Summary,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// No lengths.
    #[must_use]
    pub const fn new() -> Self {
        let summary =
            Summary { count: 0, ns_sum: 0, ns_max: 0, max_from: Time::ZERO, max_to: Time::ZERO, ns: None };
        Self { lengths: Lengths::Exact(Vec::new()), summary }
    }

    /// Adds the time from `from` to `to` (zero if `to` is before `from`).
    pub fn add(&mut self, from: Time, to: Time) {
        let ns = to.saturating_since(from).as_ns();
        let summary = &mut self.summary;
        if ns > summary.ns_max || summary.count == 0 {
            summary.ns_max = ns;
            summary.max_from = from;
            summary.max_to = to;
        }
        summary.count += 1;
        summary.ns_sum = summary.ns_sum.saturating_add(ns);
        match &mut self.lengths {
            Lengths::Exact(values) if values.len() < EXACT_LIMIT => values.push(ns),
            Lengths::Exact(_) | Lengths::Histogram(_) => record(self.histogram(), ns),
        }
    }

    /// The histogram, from now on instead of the exact lengths.
    fn histogram(&mut self) -> &mut Histogram<u64> {
        if let Lengths::Exact(values) = &self.lengths {
            let mut histogram = Box::new(Histogram::new(3).expect("three digits are allowed"));
            values.iter().for_each(|&value| record(&mut histogram, value));
            self.lengths = Lengths::Histogram(histogram);
        }
        match &mut self.lengths {
            Lengths::Histogram(histogram) => histogram,
            Lengths::Exact(_) => unreachable!("replaced above"),
        }
    }

    /// Adds all lengths of `other`.
    pub fn merge(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.summary, &other.summary);
        let larger = theirs.ns_max > mine.ns_max
            || (theirs.ns_max == mine.ns_max && theirs.max_from < mine.max_from)
            || mine.count == 0;
        if theirs.count != 0 && larger {
            mine.ns_max = theirs.ns_max;
            mine.max_from = theirs.max_from;
            mine.max_to = theirs.max_to;
        }
        mine.count += theirs.count;
        mine.ns_sum = mine.ns_sum.saturating_add(theirs.ns_sum);
        match (&mut self.lengths, &other.lengths) {
            (Lengths::Exact(mine), Lengths::Exact(theirs)) if mine.len() + theirs.len() <= EXACT_LIMIT => {
                mine.extend_from_slice(theirs);
            }
            (_, Lengths::Exact(theirs)) => {
                let histogram = self.histogram();
                theirs.iter().for_each(|&value| record(histogram, value));
            }
            (_, Lengths::Histogram(theirs)) => {
                let added = self.histogram().add(&**theirs);
                added.expect("both have three digits and grow by themselves");
            }
        }
    }

    /// Calls `visit` with each length (or the upper end of its bucket) and how often it occurs, in no particular order.
    pub fn for_each(&self, mut visit: impl FnMut(u64, u64)) {
        match &self.lengths {
            Lengths::Exact(values) => values.iter().for_each(|&value| visit(value, 1)),
            Lengths::Histogram(histogram) => {
                for bucket in histogram.iter_recorded() {
                    visit(bucket.value_iterated_to(), bucket.count_since_last_iteration());
                }
            }
        }
    }

    /// How many lengths there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.summary.count
    }

    /// The lengths at `quantiles`, which must ascend; `None` if there are no lengths.
    #[must_use]
    pub fn quantiles<const N: usize>(&self, quantiles: [Quantile; N]) -> Option<[u64; N]> {
        if self.summary.count == 0 {
            return None;
        }
        let ranks = quantiles.map(|quantile| quantile.rank(self.summary.count));
        match &self.lengths {
            Lengths::Exact(values) => {
                // Selection instead of sorting: of each next rank only the part above the last one is looked at, so that
                // all quantiles together cost about two passes. This is most of the time of a report.
                let mut values = values.clone();
                let mut below = 0;
                Some(ranks.map(|rank| {
                    let index = usize::try_from(rank).expect("within the vector") - 1;
                    if index >= below {
                        values[below..].select_nth_unstable(index - below);
                        below = index + 1;
                    }
                    values[index]
                }))
            }
            Lengths::Histogram(histogram) => {
                let mut out = [self.summary.ns_max; N];
                let (mut seen, mut next) = (0, 0);
                for bucket in histogram.iter_recorded() {
                    seen += bucket.count_since_last_iteration();
                    while next < N && ranks[next] <= seen {
                        out[next] = bucket.value_iterated_to().min(self.summary.ns_max);
                        next += 1;
                    }
                }
                Some(out)
            }
        }
    }

    /// All figures.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let usual = [500, 750, 900, 950, 990, 995, 999].map(Quantile::permille);
        let ns = self.quantiles(usual).map(|[p50, p75, p90, p95, p99, p99_5, p99_9]| Quantiles {
            p50,
            p75,
            p90,
            p95,
            p99,
            p99_5,
            p99_9,
        });
        Summary { ns, ..self.summary }
    }
}

fn record(histogram: &mut Histogram<u64>, ns: u64) {
    histogram.record(ns.min(LONGEST_NS)).expect("the histogram grows by itself");
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttwu_testing::Rng;

    /// By the definition, without cleverness: count how many are not longer.
    fn by_definition(values: &[u64], permille: u64) -> u64 {
        let need = (permille * values.len() as u64).div_ceil(1000).max(1);
        let enough = |bound: &u64| values.iter().filter(|&value| value <= bound).count() as u64 >= need;
        values.iter().copied().filter(enough).min().expect("there are values")
    }

    fn of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::new();
        for &value in values {
            distribution.add(Time::from_ns(7), Time::from_ns(7 + value));
        }
        distribution
    }

    #[test]
    fn quantiles_follow_the_definition() {
        let mut rng = Rng::new(1);
        for n in [1, 2, 3, 9, 10, 11, 99, 100, 101, 400] {
            let values: Vec<u64> = (0..n).map(|_| rng.below(300) as u64).collect();
            for permille in [0, 1, 500, 750, 900, 950, 990, 995, 999, 1000] {
                let got = of(&values).quantiles([Quantile::permille(permille)]);
                let expected = by_definition(&values, u64::from(permille));
                assert_eq!(got, Some([expected]), "n={n} permille={permille} {values:?}");
            }
        }
        assert_eq!(of(&[]).quantiles([Quantile::permille(500)]), None);
    }

    #[test]
    fn a_histogram_errs_by_a_thousandth_upwards_at_most() {
        let mut rng = Rng::new(2);
        let n = 3 * EXACT_LIMIT;
        let mut values: Vec<u64> = (0..n).map(|_| rng.next_u64() >> (24 + rng.below(40))).collect();
        let summary = of(&values).summary();
        values.sort_unstable();
        let quantiles = summary.ns.expect("there are values");
        for (got, permille) in
            [(quantiles.p50, 500), (quantiles.p90, 900), (quantiles.p99, 990), (quantiles.p99_9, 999)]
        {
            let exact = values[(n * permille).div_ceil(1000) - 1];
            assert!(got >= exact && got <= exact + exact / 1000, "p{permille}: {got} for {exact}");
        }
        assert_eq!(summary.ns_max, *values.last().expect("not empty"), "the maximum is exact");
    }

    #[test]
    fn merging_is_as_if_all_had_been_added_to_one() {
        let mut rng = Rng::new(3);
        for n in [0, 5, EXACT_LIMIT - 2, EXACT_LIMIT + 5] {
            let left: Vec<u64> = (0..n).map(|_| rng.below(1_000_000) as u64).collect();
            let right: Vec<u64> = (0..40).map(|_| rng.below(2_000_000) as u64).collect();
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let all: Vec<u64> = left.iter().chain(&right).copied().collect();
            assert_eq!(merged.summary(), of(&all).summary(), "n={n}");
        }
    }

    #[test]
    fn lengths_beyond_the_histogram_keep_sum_and_maximum() {
        let mut distribution = of(&vec![1; EXACT_LIMIT]);
        distribution.add(Time::ZERO, Time::MAX);
        let summary = distribution.summary();
        assert_eq!((summary.ns_max, summary.count), (u64::MAX, EXACT_LIMIT as u64 + 1));
    }
}
