//! What a run measured, as named numbers.

mod counters;
mod rows;

#[cfg(test)]
mod tests;

pub use counters::counters;
pub use rows::rows;

use ttwu_stats::Better;

/// A named number of one run. What was not measured is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name; the same as a parser of the benchmark's output gives it, where there is one.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better; none of a counter.
    pub better: Option<Better>,
    /// Its value.
    pub value: f64,
}

impl Metric {
    fn row(name: impl Into<String>, unit: &str, better: Better, value: f64) -> Self {
        Self { name: name.into(), unit: unit.to_owned(), better: Some(better), value }
    }
}

/// The value of a metric; none when it was not measured.
#[must_use]
pub fn find(metrics: &[Metric], name: &str) -> Option<f64> {
    metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
}
