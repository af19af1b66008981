//! Scores: how many of how many, and the misses told apart.

use std::collections::BTreeMap;

/// Why the model decided otherwise, by a stated test on the recording's own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// State changed between the probe (or event) that recorded it and the kernel's reading of it.
    Race,
    /// The recording does not have a value that the decision depends on.
    State,
    /// Nothing explains it: the rules are suspect.
    Model,
}

impl Cause {
    /// All, in the order in which they are printed.
    pub const ALL: [Self; 3] = [Self::Race, Self::State, Self::Model];

    /// One word, for people and for JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::State => "state",
            Self::Model => "model",
        }
    }
}

/// One disagreement, worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Line of the decision file, or number of the event.
    pub line: usize,
    /// Time of the decision, as recorded.
    pub ts: String,
    /// Why.
    pub cause: Cause,
    /// The test that says so.
    pub test: &'static str,
    /// The rule by which the model decided.
    pub rule: String,
    /// The kernel's and the model's answers, and what each looked at.
    pub text: String,
}

/// Disagreements of one cause, rule and test, with the first of them worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// How many.
    pub count: u64,
    /// The first.
    pub example: Miss,
}

/// Agreement in one kind of decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Decisions in which the model agrees.
    pub agree: u64,
    /// Decisions put to it.
    pub total: u64,
    /// Misses by cause, rule and test.
    pub misses: BTreeMap<(Cause, String, &'static str), Found>,
}

impl Score {
    /// Counts a decision; `miss` is asked for only where the model disagrees.
    pub fn add(&mut self, agrees: bool, miss: impl FnOnce() -> Miss) {
        self.total += 1;
        if agrees {
            self.agree += 1;
            return;
        }
        let miss = miss();
        let key = (miss.cause, miss.rule.clone(), miss.test);
        self.misses.entry(key).or_insert(Found { count: 0, example: miss }).count += 1;
    }

    /// Adds another recording's score.
    pub fn merge(&mut self, other: &Self) {
        self.agree += other.agree;
        self.total += other.total;
        for (key, found) in &other.misses {
            self.misses
                .entry(key.clone())
                .or_insert_with(|| Found { count: 0, example: found.example.clone() })
                .count += found.count;
        }
    }

    /// Misses of one cause.
    #[must_use]
    pub fn count(&self, cause: Cause) -> u64 {
        self.misses.iter().filter(|((of, ..), _)| *of == cause).map(|(_, found)| found.count).sum()
    }

    /// One worked example of each cause, rule and test.
    pub fn examples(&self) -> impl Iterator<Item = &Found> {
        self.misses.values()
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

/// Decisions that are not put to the model, by a test that does not look at whether it would agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// How many.
    pub count: u64,
    /// Of how many the model gave an answer all the same.
    pub answered: u64,
    /// How many of those answers agree with the kernel.
    pub would_agree: u64,
}

impl Aside {
    /// Counts one; `answer` is whether the model would have agreed, where it gave an answer.
    pub fn add(&mut self, answer: Option<bool>) {
        self.count += 1;
        self.answered += u64::from(answer.is_some());
        self.would_agree += u64::from(answer == Some(true));
    }

    /// Adds another recording's.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.answered += other.answered;
        self.would_agree += other.would_agree;
    }
}
