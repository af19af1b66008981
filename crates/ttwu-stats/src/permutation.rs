//! Permutation tests of the difference of means: all arrangements where they are few, else a seeded sample of them.

use crate::describe::mean;
use crate::hypothesis::differences;
use crate::random::Random;

/// Up to this many arrangements all are tried. C(20, 10) = 184 756 is below it, as is 2^17.
pub(crate) const ARRANGEMENTS_MAX: u64 = 200_000;

/// The outcome of a permutation test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Permutation {
    /// Two-sided: the share of arrangements whose means differ at least as much. Of a sample, with the arrangement that was
    /// measured counted in, so that it is never 0.
    pub probability: f64,
    /// How many arrangements were tried.
    pub arrangements: u64,
    /// Whether these were all there are.
    pub exact: bool,
}

/// Arrangements tried where not all are, of arms that are not large.
const TRIALS: u64 = 20_000;

/// Arrangements tried of arms of any size: a probability of 5 % is then known to 0.7 %.
const TRIALS_MIN: u64 = 1000;

/// Samples that are exchanged in all trials together, above which there are fewer trials.
const EXCHANGES_MAX: u64 = 100_000_000;

/// How many arrangements of `exchanged` samples each are tried.
fn trials(exchanged: usize) -> u64 {
    (EXCHANGES_MAX / (exchanged as u64).max(1)).clamp(TRIALS_MIN, TRIALS)
}

/// Equal sums that were added in another order may differ in their last digits; arrangements that near count as equal.
const SLACK: f64 = 1e-12;

/// Exchanges samples between the arms; none where an arm is empty. `seed` matters only where not all arrangements are tried.
#[must_use]
pub fn permutation_test(new: &[f64], base: &[f64], seed: u64) -> Option<Permutation> {
    let centre = mean(&[mean(new)?, mean(base)?])?;
    // The smaller arm's sum decides the difference of means, once all samples are taken around a common centre.
    let (small, large) = if new.len() <= base.len() { (new, base) } else { (base, new) };
    let mut pooled: Vec<f64> = small.iter().chain(large).map(|sample| sample - centre).collect();
    let total: f64 = pooled.iter().sum();
    let share = small.len() as f64 / pooled.len() as f64;
    let scale: f64 = pooled.iter().map(|value| value.abs()).sum();
    let distance = |sum: f64| (sum - total * share).abs();
    let observed = distance(pooled[..small.len()].iter().sum()) - SLACK * scale;
    let arrangements = combinations(pooled.len() as u64, small.len() as u64);
    if let Some(arrangements) = arrangements.filter(|&count| count <= ARRANGEMENTS_MAX) {
        let mut far = 0_u64;
        each_combination(&pooled, small.len(), 0.0, &mut |sum| far += u64::from(distance(sum) >= observed));
        return Some(Permutation {
            probability: far as f64 / arrangements as f64,
            arrangements,
            exact: true,
        });
    }
    let trials = trials(small.len());
    let mut random = Random::new(seed);
    let mut far = 1_u64;
    for _ in 0..trials {
        random.choose_front(&mut pooled, small.len());
        far += u64::from(distance(pooled[..small.len()].iter().sum()) >= observed);
    }
    Some(Permutation { probability: far as f64 / (trials + 1) as f64, arrangements: trials, exact: false })
}

/// Exchanges the two samples of a pair; none of no pairs or of unequal counts. `seed` matters only where not all
/// arrangements are tried.
#[must_use]
pub fn permutation_test_paired(new: &[f64], base: &[f64], seed: u64) -> Option<Permutation> {
    let differences = differences(new, base).filter(|differences| !differences.is_empty())?;
    let scale: f64 = differences.iter().map(|difference| difference.abs()).sum();
    let observed = differences.iter().sum::<f64>().abs() - SLACK * scale;
    let arrangements =
        1_u64.checked_shl(u32::try_from(differences.len()).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
    let signed = |signs: u64| -> f64 {
        differences
            .iter()
            .enumerate()
            .map(|(index, difference)| if signs >> index & 1 == 1 { -difference } else { *difference })
            .sum()
    };
    if arrangements <= ARRANGEMENTS_MAX {
        let far = (0..arrangements).filter(|&signs| signed(signs).abs() >= observed).count();
        return Some(Permutation {
            probability: far as f64 / arrangements as f64,
            arrangements,
            exact: true,
        });
    }
    let trials = trials(differences.len());
    let mut random = Random::new(seed);
    let mut far = 1_u64;
    for _ in 0..trials {
        let sum: f64 = differences
            .chunks(64)
            .map(|chunk| {
                let signs = random.bits();
                let flip = |(index, difference): (usize, &f64)| {
                    if signs >> index & 1 == 1 { -difference } else { *difference }
                };
                chunk.iter().enumerate().map(flip).sum::<f64>()
            })
            .sum();
        far += u64::from(sum.abs() >= observed);
    }
    Some(Permutation { probability: far as f64 / (trials + 1) as f64, arrangements: trials, exact: false })
}

/// How many ways there are to choose `chosen` of `count`; none beyond 64 bits.
fn combinations(count: u64, chosen: u64) -> Option<u64> {
    (0..chosen).try_fold(1_u64, |ways, step| Some(ways.checked_mul(count - step)? / (step + 1)))
}

/// Calls `visit` with the sum of every choice of `chosen` of `values`.
fn each_combination(values: &[f64], chosen: usize, sum: f64, visit: &mut dyn FnMut(f64)) {
    if chosen == 0 {
        visit(sum);
        return;
    }
    for index in 0..=values.len() - chosen {
        each_combination(&values[index + 1..], chosen - 1, sum + values[index], visit);
    }
}
