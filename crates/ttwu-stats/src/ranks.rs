//! Tests on ranks: Mann–Whitney and Wilcoxon's signed ranks. Exact without ties and up to [`EXACT_MAX`] samples an arm;
//! else the normal approximation with corrections for ties and continuity.

use crate::distribution::normal_upper;
use crate::hypothesis::differences;

/// The largest arm (or count of pairs) for which the exact distribution is computed.
pub(crate) const EXACT_MAX: usize = 50;

/// The outcome of a test on ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// Mann–Whitney's U of the new arm (pairs in which it is larger, ties half), or the sum of positive signed ranks.
    pub statistic: f64,
    /// Two-sided probability of a statistic at least as far from its middle without a difference.
    pub probability: f64,
    /// Whether the probability is exact.
    pub exact: bool,
}

/// Mann–Whitney's test of `new` against `base`; none where an arm is empty.
#[must_use]
pub fn mann_whitney(new: &[f64], base: &[f64]) -> Option<RankTest> {
    if new.is_empty() || base.is_empty() {
        return None;
    }
    let pooled: Vec<f64> = new.iter().chain(base).copied().collect();
    let ranked = Ranked::of(&pooled);
    let (n, m) = (new.len() as f64, base.len() as f64);
    let statistic = ranked.ranks[..new.len()].iter().sum::<f64>() - n * (n + 1.0) / 2.0;
    let far = statistic.max(n * m - statistic);
    if ranked.tie_term == 0.0 && new.len().max(base.len()) <= EXACT_MAX {
        let counts = rank_sum_counts(new.len(), base.len());
        return Some(RankTest { statistic, probability: two_sided(&counts, far), exact: true });
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ranked.tie_term / (total * (total - 1.0)));
    let probability = normal_two_sided(far - n * m / 2.0, variance);
    Some(RankTest { statistic, probability, exact: false })
}

/// Wilcoxon's signed-rank test on `new[i] - base[i]`. Pairs without a difference are left out, as Wilcoxon did; none of
/// unequal counts or where no pair differs.
#[must_use]
pub fn wilcoxon_signed_rank(new: &[f64], base: &[f64]) -> Option<RankTest> {
    let all = differences(new, base)?;
    let differences: Vec<f64> = all.iter().copied().filter(|&difference| difference != 0.0).collect();
    if differences.is_empty() {
        return None;
    }
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let ranked = Ranked::of(&sizes);
    let statistic: f64 = ranked
        .ranks
        .iter()
        .zip(&differences)
        .filter(|&(_, &difference)| difference > 0.0)
        .map(|(rank, _)| rank)
        .sum();
    let n = differences.len() as f64;
    let far = statistic.max(n * (n + 1.0) / 2.0 - statistic);
    if ranked.tie_term == 0.0 && differences.len() == all.len() && differences.len() <= EXACT_MAX {
        let counts = signed_rank_counts(differences.len());
        return Some(RankTest { statistic, probability: two_sided(&counts, far), exact: true });
    }
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ranked.tie_term / 48.0;
    let probability = normal_two_sided(far - n * (n + 1.0) / 4.0, variance);
    Some(RankTest { statistic, probability, exact: false })
}

/// Ranks from 1, ties sharing the middle, and the sum of t³ - t over groups of t ties.
struct Ranked {
    ranks: Vec<f64>,
    tie_term: f64,
}

impl Ranked {
    fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut ranks = vec![0.0; values.len()];
        let mut tie_term = 0.0;
        let mut before = 0.0;
        for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
            let size = group.len() as f64;
            tie_term += size * size * size - size;
            for &index in group {
                ranks[index] = before + (size + 1.0) / 2.0;
            }
            before += size;
        }
        Self { ranks, tie_term }
    }
}

/// In how many of all arrangements of `n` and `m` samples U is 0, 1, 2, … (as shares of one).
pub(crate) fn rank_sum_counts(n: usize, m: usize) -> Vec<f64> {
    // The generating function is the Gaussian binomial: the product of (1 - x^(m+i)) / (1 - x^i) for i = 1..n.
    let size = n * m;
    let mut counts = vec![0.0; size + 1];
    counts[0] = 1.0;
    for i in 1..=n {
        for index in (m + i..=size).rev() {
            counts[index] -= counts[index - m - i];
        }
        for index in i..=size {
            counts[index] += counts[index - i];
        }
    }
    normalised(counts)
}

/// In how many of all signings of `n` ranks the positive ones sum to 0, 1, 2, … (as shares of one).
pub(crate) fn signed_rank_counts(n: usize) -> Vec<f64> {
    let size = n * (n + 1) / 2;
    let mut counts = vec![0.0; size + 1];
    counts[0] = 1.0;
    for rank in 1..=n {
        for index in (rank..=size).rev() {
            counts[index] += counts[index - rank];
        }
    }
    normalised(counts)
}

fn normalised(mut counts: Vec<f64>) -> Vec<f64> {
    let total: f64 = counts.iter().sum();
    for count in &mut counts {
        *count /= total;
    }
    counts
}

/// Twice the share at or beyond `far`, at most 1; the distribution is symmetric.
fn two_sided(shares: &[f64], far: f64) -> f64 {
    let from = far.ceil() as usize;
    (2.0 * shares.iter().skip(from).sum::<f64>()).min(1.0)
}

fn normal_two_sided(distance: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    (2.0 * normal_upper((distance - 0.5) / variance.sqrt())).min(1.0)
}
