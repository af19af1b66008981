//! A scenario without its seed: what an arm of an experiment is.

use ttwu_fair::Policy;
use ttwu_sim::Scenario;

/// A scenario without its seed, with the name of its machine.
#[derive(Clone, Debug)]
pub struct Setup {
    machine: String,
    /// Its seed means nothing.
    template: Scenario,
}

impl Setup {
    /// From a scenario of any seed.
    #[must_use]
    pub fn new(machine: impl Into<String>, scenario: Scenario) -> Self {
        Self { machine: machine.into(), template: Scenario { seed: 0, ..scenario } }
    }

    /// The machine's name as it was asked for.
    #[must_use]
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// All but the seed.
    #[must_use]
    pub const fn template(&self) -> &Scenario {
        &self.template
    }

    /// One run of it.
    #[must_use]
    pub fn scenario(&self, seed: u64) -> Scenario {
        Scenario { seed, ..self.template.clone() }
    }

    /// The same under another policy. Settings stay: they belong to the machine, unless the policy's kernel brings its own.
    #[must_use]
    pub fn under(&self, policy: Policy) -> Self {
        let template = Scenario { policy, ..self.template.clone() };
        Self { machine: self.machine.clone(), template }
    }
}
