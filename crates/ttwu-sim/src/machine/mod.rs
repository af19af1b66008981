//! The machine.

use crate::{Options, Outcome, Scenario};

/// Runs a scenario to its end.
///
/// # Panics
/// On a fault of this crate, with the seed; and for a workload that names what it does not have.
#[must_use]
#[expect(clippy::unimplemented, reason = "the types come first, so that others can build on them")]
pub fn run(scenario: &Scenario, options: &mut Options<'_>) -> Outcome {
    let _ = (scenario, options, crate::rng::Rng::new(0, 0).below(1), scenario.costs.idle_states());
    unimplemented!("the machine is not built yet")
}
