//! The verdict on one row: better, worse, equivalent, or cannot tell – and what could have been told.
//!
//! One rule, so that every row of every command means the same: the 95 % interval of the ratio of means decides. Wholly
//! inside the margin: equivalent. Else wholly on one side of no change: better or worse. Else: cannot tell. Whether an
//! assumption behind the interval fails is shown beside it (a permutation test that disagrees, two modes, outliers) and
//! left to the reader; nothing is removed from the samples.

use crate::describe::{TwoModes, outliers_by_deviation, two_modes};
use crate::distribution::student_t_two_sided;
use crate::interval::{Interval, LogRatio, hodges_lehmann, hodges_lehmann_paired};
use crate::permutation::{Permutation, permutation_test, permutation_test_paired};
use crate::power::detectable_share_of_intervals;

/// Which direction of a value is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Times, latencies.
    Lower,
    /// Throughputs, rates.
    Higher,
}

/// How the samples of the two arms belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Not at all.
    Independent,
    /// Sample i of either arm shares its seed, boot or block.
    Paired,
}

/// One row to be judged. A sample is a run: samples from within a run are not independent, and nothing here can know.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Samples of the baseline.
    pub base: &'a [f64],
    /// Samples of the changed arm.
    pub new: &'a [f64],
    /// Which direction is better.
    pub better: Better,
    /// A change of up to this many percent of the baseline does not matter in practice.
    pub margin_pct: f64,
    /// How the samples belong together.
    pub pairing: Pairing,
    /// Seed of permutations where there are too many to try all.
    pub seed: u64,
}

/// What can be said of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The new arm is better.
    Better,
    /// The new arm is worse.
    Worse,
    /// The difference is smaller than the margin.
    Equivalent,
    /// The samples do not decide it.
    CannotTell {
        /// The change, in percent, that these samples would have shown four times in five; none where there is no spread to
        /// tell it from (fewer than two samples) or no ratio (a mean that is not positive).
        detectable_pct: Option<f64>,
    },
}

/// A verdict with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Change of the mean in percent of the baseline, with its 95 % interval; positive is a larger value, not a better one.
    /// None where there is no ratio of means.
    pub change_pct: Option<Interval>,
    /// Two-sided probability of the t test that belongs to the interval.
    pub probability: Option<f64>,
    /// The permutation test of the same difference.
    pub permutation: Option<Permutation>,
    /// The Hodges–Lehmann shift in the row's unit; none where the samples are too few for 95 %.
    pub shift: Option<Interval>,
    /// Whether interval and permutation test agree at 5 %; none where a test is missing.
    pub agree: Option<bool>,
    /// Two groups among the baseline's samples.
    pub base_modes: Option<TwoModes>,
    /// Two groups among the new arm's samples.
    pub new_modes: Option<TwoModes>,
    /// Indices of the baseline's outliers.
    pub base_outliers: Vec<usize>,
    /// Indices of the new arm's outliers.
    pub new_outliers: Vec<usize>,
}

/// Judges one row.
#[must_use]
pub fn judge(question: &Question<'_>) -> Judgement {
    let &Question { base, new, better, margin_pct, pairing, seed } = question;
    let (ratio, shift, permutation) = match pairing {
        Pairing::Independent => {
            (LogRatio::of(new, base), hodges_lehmann(new, base), permutation_test(new, base, seed))
        }
        Pairing::Paired => (
            LogRatio::of_pairs(new, base),
            hodges_lehmann_paired(new, base),
            permutation_test_paired(new, base, seed),
        ),
    };
    let probability = ratio.and_then(|ratio| {
        if ratio.error == 0.0 {
            return Some(if ratio.log == 0.0 { 1.0 } else { 0.0 });
        }
        student_t_two_sided(ratio.log / ratio.error, ratio.df)
    });
    let change_pct =
        ratio.and_then(|ratio| ratio.interval(0.025)).map(|ratio| ratio.map(|ratio| 100.0 * (ratio - 1.0)));
    let detectable_pct = ratio
        .and_then(|ratio| detectable_share_of_intervals(ratio.error, ratio.df))
        .map(|share| 100.0 * share.exp_m1());
    Judgement {
        verdict: verdict(change_pct, better, margin_pct, detectable_pct),
        change_pct,
        probability,
        permutation,
        shift,
        agree: probability
            .zip(permutation)
            .map(|(t, permutation)| (t < 0.05) == (permutation.probability < 0.05)),
        base_modes: two_modes(base),
        new_modes: two_modes(new),
        base_outliers: outliers_by_deviation(base),
        new_outliers: outliers_by_deviation(new),
    }
}

fn verdict(
    change_pct: Option<Interval>,
    better: Better,
    margin_pct: f64,
    detectable_pct: Option<f64>,
) -> Verdict {
    let Some(change) = change_pct else { return Verdict::CannotTell { detectable_pct } };
    // A share below is a larger factor than the same share above: the margin is symmetric as a ratio, as the interval is.
    let below = 100.0 * (1.0 / (1.0 + margin_pct / 100.0) - 1.0);
    if change.low >= below && change.high <= margin_pct {
        return Verdict::Equivalent;
    }
    let risen = change.low > 0.0;
    let fallen = change.high < 0.0;
    match better {
        Better::Lower if fallen => Verdict::Better,
        Better::Lower if risen => Verdict::Worse,
        Better::Higher if risen => Verdict::Better,
        Better::Higher if fallen => Verdict::Worse,
        Better::Lower | Better::Higher => Verdict::CannotTell { detectable_pct },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn judged(base: &[f64], new: &[f64], better: Better, pairing: Pairing) -> Judgement {
        judge(&Question { base, new, better, margin_pct: 1.0, pairing, seed: 1 })
    }

    const BASE: [f64; 6] = [10.0, 10.2, 9.9, 10.1, 9.8, 10.05];

    #[test]
    fn a_clear_fall_is_better_or_worse_by_direction() {
        let new = BASE.map(|sample| sample * 0.9);
        let lower = judged(&BASE, &new, Better::Lower, Pairing::Independent);
        assert_eq!(lower.verdict, Verdict::Better);
        let change = lower.change_pct.expect("a ratio");
        assert!((change.estimate + 10.0).abs() < 1e-9, "{change:?}");
        assert_eq!(judged(&BASE, &new, Better::Higher, Pairing::Independent).verdict, Verdict::Worse);
    }

    #[test]
    fn pairs_show_what_independent_samples_hide() {
        let base = [10.0, 14.0, 9.0, 12.0, 11.0, 13.0];
        let new: Vec<f64> =
            base.iter().enumerate().map(|(index, sample)| sample * (0.97 + 0.001 * index as f64)).collect();
        assert_eq!(judged(&base, &new, Better::Lower, Pairing::Paired).verdict, Verdict::Better);
        let apart = judged(&base, &new, Better::Lower, Pairing::Independent);
        let Verdict::CannotTell { detectable_pct: Some(detectable) } = apart.verdict else {
            panic!("{apart:?}")
        };
        assert!((30.0..40.0).contains(&detectable), "{detectable}");
    }

    #[test]
    fn equivalent_only_with_the_whole_interval_inside_the_margin() {
        let tight: Vec<f64> = (0..10).map(|index| 100.0 + 0.1 * f64::from(index % 3)).collect();
        assert_eq!(judged(&tight, &tight, Better::Lower, Pairing::Independent).verdict, Verdict::Equivalent);
        let wide = [90.0, 110.0, 95.0, 105.0];
        let judgement = judged(&wide, &wide, Better::Lower, Pairing::Independent);
        assert!(
            matches!(judgement.verdict, Verdict::CannotTell { detectable_pct: Some(_) }),
            "{judgement:?}"
        );
    }

    #[test]
    fn what_cannot_be_computed_is_not_a_number() {
        let one = judged(&[1.0], &[2.0], Better::Lower, Pairing::Independent);
        assert_eq!(one.verdict, Verdict::CannotTell { detectable_pct: None });
        assert_eq!((one.change_pct, one.probability), (None, None));
        let zero = judged(&[0.0, 0.0], &[1.0, 1.0], Better::Lower, Pairing::Independent);
        assert_eq!(zero.verdict, Verdict::CannotTell { detectable_pct: None });
        let unequal = judged(&[1.0, 2.0], &[1.0, 2.0, 3.0], Better::Lower, Pairing::Paired);
        assert_eq!(unequal.verdict, Verdict::CannotTell { detectable_pct: None });
    }

    /// All of it grows about as fast as the samples: a hundred thousand an arm, as concatenated outputs give them, took tens
    /// of gigabytes when all pairs were stored.
    #[test]
    fn a_hundred_thousand_samples_an_arm_are_judged() {
        let mut random = Random::new(5);
        let mut arm = |mean: f64| -> Vec<f64> { (0..100_000).map(|_| mean + random.normal()).collect() };
        let (base, new) = (arm(100.0), arm(99.0));
        let apart = judged(&base, &new, Better::Lower, Pairing::Independent);
        let shift = apart.shift.expect("a shift");
        assert!(shift.contains(-1.0) && shift.high - shift.low < 0.03, "{shift:?}");
        assert_eq!(apart.permutation.map(|test| test.arrangements), Some(1000));
        assert_eq!(apart.new_modes, None);
        let pairs = judged(&base, &new, Better::Lower, Pairing::Paired).shift.expect("a shift");
        assert!(pairs.contains(-1.0) && pairs.high - pairs.low < 0.03, "{pairs:?}");
    }
}
