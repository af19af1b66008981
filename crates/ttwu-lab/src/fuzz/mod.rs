//! Random scenarios with all checkers; a failure is made as small as it goes and printed as a file that reproduces it.
//!
//! Scenarios are drawn as pieces of text (a topology, changes of a policy, settings, tasks with their operations), so that
//! each is a file from the beginning, and minimising is leaving pieces out. What the pieces make need not be sound: what
//! reading refuses is drawn anew. Nothing here knows a clock: the caller says when it is enough.

mod checkers;
mod draft;
mod minimise;

#[cfg(test)]
mod tests;

pub use checkers::all_checkers;

use draft::{Dice, Draft};
use std::any::Any;
use ttwu_sim::Scenario;

/// What a checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which checker; a failure of another one is another failure.
    pub checker: &'static str,
    /// What it found.
    pub message: String,
}

/// A failure, minimised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The scenario as a file.
    pub scenario: String,
    /// Which checker.
    pub checker: &'static str,
    /// What it found in the minimised scenario.
    pub message: String,
    /// The number of the run that found it, from 0; with the campaign's seed it names the unminimised scenario.
    pub run: u64,
}

/// What a campaign did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Campaign {
    /// Scenarios that were run with all checkers.
    pub runs: u64,
    /// Drafts that reading refused.
    pub refused: u64,
    /// What failed, each kind of message once.
    pub failures: Vec<Failure>,
}

/// Most tries to make a failure smaller.
const TRIES: usize = 2000;

/// Draws and checks scenarios as long as `go_on` says (it gets the campaign so far). Equal seeds draw equal scenarios.
pub fn fuzz(
    seed: u64,
    check: &dyn Fn(&Scenario) -> Result<(), Failed>,
    go_on: &mut dyn FnMut(&Campaign) -> bool,
) -> Campaign {
    let mut campaign = Campaign::default();
    let mut dice = Dice::new(seed);
    while go_on(&campaign) {
        let draft = Draft::random(&mut Dice::new(dice.next()));
        let Ok(scenario) = draft.scenario() else {
            campaign.refused += 1;
            continue;
        };
        let run = campaign.runs;
        campaign.runs += 1;
        let Err(failed) = check(&scenario) else { continue };
        if campaign.failures.iter().any(|known| is_alike(known.checker, &known.message, &failed)) {
            continue;
        }
        let mut last = failed.clone();
        let small = minimise::minimise(draft, TRIES, &mut |draft| match draft
            .scenario()
            .map(|scenario| check(&scenario))
        {
            Ok(Err(found)) if is_alike(failed.checker, &failed.message, &found) => {
                last = found;
                true
            }
            Ok(Ok(()) | Err(_)) | Err(_) => false,
        });
        let scenario = small.to_toml();
        campaign.failures.push(Failure { scenario, checker: last.checker, message: last.message, run });
    }
    campaign
}

/// The same failure, whatever numbers it speaks of?
fn is_alike(checker: &str, message: &str, found: &Failed) -> bool {
    let words = |text: &str| text.chars().filter(|char| !char.is_ascii_digit()).take(40).collect::<String>();
    checker == found.checker && words(message) == words(&found.message)
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
