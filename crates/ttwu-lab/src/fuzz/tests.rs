//! Scenarios are drawn that mean something, and minimising takes away what a failure does not need.

use super::draft::{Dice, Draft, Work};
use super::{Campaign, Failed, all_checkers, fuzz};
use ttwu_sim::{Nothing, Scenario};

#[test]
fn most_drafts_are_scenarios_and_of_many_kinds() {
    let mut dice = Dice::new(1);
    let drafts: Vec<Draft> = (0..200).map(|_| Draft::random(&mut dice)).collect();
    let refused: Vec<String> = drafts.iter().filter_map(|draft| draft.scenario().err()).collect();
    assert!(refused.len() < 100, "{} refused, such as {:?}", refused.len(), &refused[..4]);
    let sound = || drafts.iter().filter(|draft| draft.scenario().is_ok());
    assert!(sound().filter(|draft| matches!(draft.work, Work::Own(_))).count() > 30);
    assert!(sound().filter(|draft| !draft.changes.is_empty()).count() > 30);
    assert!(sound().filter(|draft| draft.topology[0].starts_with('4')).count() > 3);
}

#[test]
fn a_failing_checker_is_minimised_to_what_it_needs() {
    // A deliberate fault: any run with a task at nice -20 on more than one CPU "fails".
    let check = |scenario: &Scenario| {
        let nice = scenario.workload.tasks.iter().any(|task| task.nice == -20);
        if nice && scenario.topology.online().len() > 1 {
            return Err(Failed { checker: "deliberate", message: "nice".to_owned() });
        }
        Ok(())
    };
    let campaign = fuzz(7, &check, &mut |so_far: &Campaign| so_far.failures.is_empty() && so_far.runs < 2000);
    let [failure] = &campaign.failures[..] else { panic!("{campaign:?}") };
    assert_eq!(failure.checker, "deliberate");
    let scenario = Scenario::parse(&failure.scenario, &Nothing).expect("a file that reproduces it");
    assert!(check(&scenario).is_err());
    assert_eq!(scenario.topology.online().len(), 2, "{}", failure.scenario);
    let [task] = &scenario.workload.tasks[..] else { panic!("{}", failure.scenario) };
    assert_eq!((task.nice, scenario.workload.programs.len(), scenario.seed), (-20, 1, 1));
    assert_eq!(scenario.settings, ttwu_sim::Settings::of(scenario.policy.kernel()), "{}", failure.scenario);
    assert!(scenario.costs.changed().is_empty() && scenario.until_ns <= 100_000, "{}", failure.scenario);
    assert!(!failure.scenario.contains("linux-6.1 "), "no changes of the policy:\n{}", failure.scenario);
}

#[test]
fn a_panic_of_the_simulator_is_a_failure_that_campaigns_survive_and_repeat() {
    let check = |scenario: &Scenario| {
        let panicked = std::panic::catch_unwind(|| assert!(!scenario.seed.is_multiple_of(3), "seed"));
        panicked.map_err(|_| Failed { checker: "assertion", message: "seed".to_owned() })
    };
    let go = || fuzz(3, &check, &mut |so_far: &Campaign| so_far.runs < 20);
    let campaign = go();
    assert_eq!((campaign.failures.len(), campaign.runs), (1, 20));
    assert_eq!(campaign, go());
}

#[test]
fn the_simulator_passes_a_short_campaign() {
    let campaign = fuzz(1, &all_checkers, &mut |so_far: &Campaign| so_far.runs < 25);
    for failure in &campaign.failures {
        println!("{}: {}\n{}", failure.checker, failure.message, failure.scenario);
    }
    assert!(campaign.failures.is_empty());
}
