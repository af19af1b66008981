//! Arms of a comparison: what the words on a command line mean.
//!
//! A word is a base (a kernel, a machine, a workload, a file) or a change (`+FEATURE`, `-FEATURE`, `key=value`) of what stands
//! before it. Words in one argument belong to one arm; a base in an argument of its own begins the next arm. One arm with changes
//! alone is compared with itself without them.

mod kept;
mod traced;
mod words;

pub use kept::{KeptArm, Series};
pub use words::{ArmError, Defaults, parse_arms, set_words};

use crate::Setup;

/// A workload of an arm, with what tells it from the arm's other workloads.
#[derive(Clone, Debug)]
pub struct Cell {
    /// `groups=1`; empty where there is one workload only.
    pub name: String,
    /// What is run.
    pub setup: Setup,
}

/// An arm that is run.
#[derive(Clone, Debug)]
pub struct SimulatedArm {
    /// As it was asked for.
    pub label: String,
    /// One workload, or as many as a range in its name stands for.
    pub cells: Vec<Cell>,
}

/// An arm.
#[derive(Clone, Debug)]
pub enum Arm {
    /// It is run.
    Simulated(SimulatedArm),
    /// It was measured before.
    Kept(KeptArm),
}

impl Arm {
    /// Its name in tables.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Simulated(arm) => &arm.label,
            Self::Kept(arm) => &arm.label,
        }
    }

    fn label_mut(&mut self) -> &mut String {
        match self {
            Self::Simulated(arm) => &mut arm.label,
            Self::Kept(arm) => &mut arm.label,
        }
    }
}
