//! How often each rule claims a difference where there is none, and how often each interval holds the truth.
//!
//! `cargo run --release -p ttwu-stats --example coverage [COMPARISONS]` (default 4 000 a cell, some minutes on one core).
//! Both arms are drawn from the same distribution, so every claim is false; intervals are of a ratio of 1 or a shift of 0.
//! Seeds are fixed: the same table every time. Standard error of a share of 5 % of 4 000 comparisons: 0.35 points.

use std::process::ExitCode;
use ttwu_stats::{
    Better, Pairing, Question, Random, Verdict, bca_bootstrap, hodges_lehmann, judge, mann_whitney, mmtests,
    permutation_test, ratio_of_means, welch_t,
};

/// A distribution of run results: name and how one is drawn.
type Distribution = (&'static str, fn(&mut Random) -> f64);

const DISTRIBUTIONS: [Distribution; 3] = [
    ("normal, CV 3 %", |random| 100.0 + 3.0 * random.normal()),
    ("lognormal, sigma 0.5", |random| (0.5 * random.normal()).exp()),
    // Two placements at the start, the slower one in three of ten runs.
    ("bimodal, 30 % at +20 %", |random| {
        let mode = if random.unit() < 0.3 { 120.0 } else { 100.0 };
        mode + 2.0 * random.normal()
    }),
];

const SIZES: [usize; 3] = [5, 10, 20];

/// Resamples of a bootstrap interval here; a report takes more.
const RESAMPLES: usize = 500;

/// What is counted: name, and whether a pair of arms is a false claim (rules) or holds the truth (intervals); none where
/// the samples are too few for the rule.
type Count = (&'static str, fn(&[f64], &[f64]) -> Option<bool>);

const RULES: [Count; 7] = [
    ("mmtests 2018-2024 (p < 0.10)", |new, base| {
        Some(mmtests::pooled_df_probability(summary(base), summary(new)) < 0.10)
    }),
    ("mmtests since 2024 (1.96 sd)", |new, base| Some(interval_ratio(new, base)?.abs() > 1.0)),
    ("Welch t, 5 %", |new, base| Some(welch_t(new, base)?.probability < 0.05)),
    ("Mann-Whitney, 5 %", |new, base| Some(mann_whitney(new, base)?.probability < 0.05)),
    ("permutation, 5 %", |new, base| Some(permutation_test(new, base, 1)?.probability < 0.05)),
    ("ratio of means excludes 1, 95 %", |new, base| Some(!ratio_of_means(new, base)?.contains(1.0))),
    ("our verdict (better or worse)", |new, base| {
        let question = Question {
            base,
            new,
            better: Better::Lower,
            margin_pct: 1.0,
            pairing: Pairing::Independent,
            seed: 1,
        };
        Some(matches!(judge(&question).verdict, Verdict::Better | Verdict::Worse))
    }),
];

const INTERVALS: [Count; 3] = [
    ("ratio of means", |new, base| Some(ratio_of_means(new, base)?.contains(1.0))),
    ("Hodges-Lehmann shift", |new, base| Some(hodges_lehmann(new, base)?.contains(0.0))),
    ("BCa bootstrap of the ratio", |new, base| {
        let ratio = |new: &[f64], base: &[f64]| {
            mmtests::amean(new).unwrap_or(f64::NAN) / mmtests::amean(base).unwrap_or(f64::NAN)
        };
        Some(bca_bootstrap(&ratio, new, base, RESAMPLES, 1)?.contains(1.0))
    }),
];

fn main() -> ExitCode {
    let comparisons = match std::env::args().nth(1).map(|text| text.parse::<usize>()) {
        None => 4_000,
        Some(Ok(count)) if count > 0 => count,
        Some(_) => {
            eprintln!("expected a number of comparisons above 0");
            return ExitCode::from(2);
        }
    };
    println!("False claims in percent of {comparisons} comparisons without a difference\n");
    table(&RULES, comparisons);
    println!("\nIntervals that hold the truth, in percent (95 is what they promise)\n");
    table(&INTERVALS, comparisons);
    ExitCode::SUCCESS
}

fn table(counts: &[Count], comparisons: usize) {
    print!("| rule |");
    for (name, _) in DISTRIBUTIONS {
        for size in SIZES {
            print!(" {name}, n = {size} |");
        }
    }
    println!("\n|---|{}", "---:|".repeat(DISTRIBUTIONS.len() * SIZES.len()));
    for (name, count) in counts {
        print!("| {name} |");
        for (index, (_, draw)) in DISTRIBUTIONS.iter().enumerate() {
            for size in SIZES {
                match share(*count, *draw, size, comparisons, index as u64) {
                    Some(share) => print!(" {:.2} |", 100.0 * share),
                    None => print!(" too few samples |"),
                }
            }
        }
        println!();
    }
}

/// The share of comparisons that count; none where one could not be made.
fn share(
    count: fn(&[f64], &[f64]) -> Option<bool>,
    draw: fn(&mut Random) -> f64,
    size: usize,
    comparisons: usize,
    seed: u64,
) -> Option<f64> {
    // The same samples for every rule.
    let mut random = Random::new(1000 * seed + size as u64);
    let mut counted = 0_usize;
    for _ in 0..comparisons {
        let base: Vec<f64> = (0..size).map(|_| draw(&mut random)).collect();
        let new: Vec<f64> = (0..size).map(|_| draw(&mut random)).collect();
        counted += usize::from(count(&new, &base)?);
    }
    Some(counted as f64 / comparisons as f64)
}

fn summary(samples: &[f64]) -> mmtests::Summary {
    mmtests::Summary {
        mean: mmtests::amean(samples).unwrap_or(f64::NAN),
        stddev: mmtests::stddev(samples).unwrap_or(0.0),
        count: samples.len(),
    }
}

fn interval_ratio(new: &[f64], base: &[f64]) -> Option<f64> {
    let interval = |samples: &[f64]| {
        let half = mmtests::interval_half_width(mmtests::stddev(samples)?);
        let mean = mmtests::amean(samples)?;
        Some((mean, (mean - half, mean + half)))
    };
    let ((new, new_interval), (base, base_interval)) = (interval(new)?, interval(base)?);
    Some(mmtests::interval_ratio(base, base_interval, new, new_interval))
}
