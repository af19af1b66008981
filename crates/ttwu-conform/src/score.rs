//! Scores: how many of how many, and the misses told apart.

use std::collections::BTreeMap;

/// Why the model decided otherwise, by a stated test on the recording's own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Changing one value that the kernel reads without a lock, between the snapshot and its use, explains the decision.
    Race,
    /// Nothing explains it: the rules are suspect.
    Model,
    /// No test was made: the snapshot alone cannot tell a race from a fault.
    Unexamined,
}

/// One disagreement, worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Line of the decision file.
    pub line: usize,
    /// Time of the decision, as recorded.
    pub ts: String,
    /// Why.
    pub cause: Cause,
    /// The kernel's and the model's answers, and what each looked at.
    pub text: String,
}

/// Agreement in one kind of decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Decisions in which the model agrees.
    pub agree: u64,
    /// Decisions put to it.
    pub total: u64,
    /// Misses by cause.
    pub causes: BTreeMap<Cause, u64>,
    /// The first few misses.
    pub examples: Vec<Miss>,
}

impl Score {
    /// Examples kept.
    pub const EXAMPLES: usize = 5;

    /// Counts a decision; `miss` is asked for only where the model disagrees.
    pub fn add(&mut self, agrees: bool, miss: impl FnOnce() -> Miss) {
        self.total += 1;
        if agrees {
            self.agree += 1;
            return;
        }
        let miss = miss();
        *self.causes.entry(miss.cause).or_default() += 1;
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(miss);
        }
    }

    /// Adds another recording's score.
    pub fn merge(&mut self, other: &Self) {
        self.agree += other.agree;
        self.total += other.total;
        for (&cause, count) in &other.causes {
            *self.causes.entry(cause).or_default() += count;
        }
        let room = Self::EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
    }

    /// Agreement in hundredths of a percent, rounded down; `None` without decisions.
    #[must_use]
    pub fn basis_points(&self) -> Option<u64> {
        (self.agree * 10_000).checked_div(self.total)
    }
}

impl std::fmt::Display for Score {
    /// `99.95 % (10271 of 10276)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.basis_points() {
            Some(points) => {
                write!(f, "{}.{:02} % ({} of {})", points / 100, points % 100, self.agree, self.total)
            }
            None => f.write_str("no decisions"),
        }
    }
}
