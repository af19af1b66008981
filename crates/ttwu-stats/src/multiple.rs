//! Many rows at once: probabilities adjusted for their number. Both keep the order of what they are given.

/// Holm's step-down adjustment: comparing it with α keeps the chance of *any* false claim below α. For a list of claims.
#[must_use]
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let order = ascending(probabilities);
    let mut adjusted = vec![0.0; probabilities.len()];
    let mut least = 0.0_f64;
    for (place, &index) in order.iter().enumerate() {
        least = least.max(probabilities[index] * (probabilities.len() - place) as f64).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// Benjamini and Hochberg's step-up adjustment: comparing it with α keeps the *share* of false ones among what is reported
/// below α. For exploring.
#[must_use]
pub fn benjamini_hochberg(probabilities: &[f64]) -> Vec<f64> {
    let order = ascending(probabilities);
    let mut adjusted = vec![0.0; probabilities.len()];
    let mut most = 1.0_f64;
    for (place, &index) in order.iter().enumerate().rev() {
        most = most.min(probabilities[index] * probabilities.len() as f64 / (place + 1) as f64);
        adjusted[index] = most;
    }
    adjusted
}

fn ascending(probabilities: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    order
}
