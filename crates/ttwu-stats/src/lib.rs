//! Statistics on plain slices of `f64`: mmtests' definitions to the digit, intervals, tests, and the verdict on two arms.
//!
//! No type of ttwu's is used here, so that every function can be checked against another program's figures
//! (`tests/scipy.rs`). Nothing reads a clock or an environment; what is random takes a seed.
//!
//! An answer that does not exist (a standard deviation of one sample, a ratio to a mean of zero) is `None`, never a number
//! that looks like one.
#![forbid(unsafe_code)]

pub mod describe;
mod distribution;
mod equivalence;
mod hypothesis;
mod interval;
pub mod mmtests;
mod multiple;
mod permutation;
mod power;
mod random;
mod ranks;
mod selection;
mod verdict;

pub use distribution::{normal_quantile, student_t_quantile, student_t_two_sided};
pub use equivalence::{Equivalence, equivalence, equivalence_paired};
pub use hypothesis::{TTest, paired_t, welch_t};
pub use interval::{
    Interval, bca_bootstrap, hodges_lehmann, hodges_lehmann_paired, median_interval, ratio_of_means,
    ratio_of_means_paired,
};
pub use multiple::{benjamini_hochberg, holm};
pub use permutation::{Permutation, permutation_test, permutation_test_paired};
pub use power::{detectable_share, detectable_share_of_intervals};
pub use random::Random;
pub use ranks::{RankTest, mann_whitney, wilcoxon_signed_rank};
pub use verdict::{Better, Judgement, Pairing, Question, Verdict, judge};
