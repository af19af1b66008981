//! The tables of the five threads: complete, and honest about what is fitted.

use super::{Bound, Claim, EXPERIMENTS, Measure, Quantity, Samples, Standing, Verdict};

#[test]
fn every_scenario_can_be_built() {
    let names: Vec<String> =
        EXPERIMENTS.iter().flat_map(|experiment| experiment.scenarios(1)).map(|(name, _)| name).collect();
    assert!(names.len() >= 60, "{}", names.len());
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "a cell's name is its own");
}

/// The shipped files are the cells, neither more nor less; after a change of an experiment:
/// `cargo run -p ttwu-lab --example scenario_files -- scenarios/reproduce`.
#[test]
fn shipped_scenario_files_are_exactly_the_cells() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/reproduce"));
    let files = super::scenario_files();
    let scenarios: Vec<_> =
        EXPERIMENTS.iter().flat_map(|experiment| experiment.scenarios(1)).map(|(_, cell)| cell).collect();
    assert_eq!(files.len(), scenarios.len());
    for (file, cell) in files.iter().zip(&scenarios) {
        let text = std::fs::read_to_string(folder.join(&file.path))
            .unwrap_or_else(|error| panic!("{}: {error}; make them anew", file.path));
        let read = ttwu_sim::Scenario::parse(&text, &ttwu_sim::Nothing)
            .unwrap_or_else(|error| panic!("{}:{error}", file.path));
        assert_eq!(read.id(), cell.id(), "{} is another scenario; make them anew", file.path);
        assert_eq!(text, file.text, "{}; make them anew", file.path);
    }
    let mut there = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                there.push(path.strip_prefix(folder).expect("below").to_string_lossy().into_owned());
            }
        }
    }
    let mut expected: Vec<_> = files.into_iter().map(|file| file.path).collect();
    expected.sort();
    there.sort();
    assert_eq!(there, expected, "files that are no cells");
}

/// Cancelled after the first seed of all cells: the second is not half counted, and the report says so.
#[test]
fn an_interrupted_reproduction_has_whole_seeds_only() {
    let cancel = crate::Cancel::new();
    let experiment = super::Experiment::find("eevdf").expect("a thread");
    let cells = experiment.cells().count();
    let effort = super::Effort { seeds: 3, sensitivity_seeds: 1, threads: 1 };
    let done = experiment.reproduce_until(effort, &cancel, &|done, _| {
        if done == cells + 1 {
            cancel.cancel();
        }
    });
    assert!(done.interrupted);
    assert_eq!((done.effort.seeds, done.failed.len()), (1, 0));
    assert!(done.claims.iter().all(|judged| !judged.sensitivity_tried));
    let text = super::render_text(&done);
    assert!(text.contains("INTERRUPTED: what follows is of the 1 seed that all cells had run"), "{text}");
    assert_eq!(super::render_json(&[done])["interrupted"], true);
}

#[test]
fn claims_name_cells_that_exist_and_costs_that_are_known() {
    let mut ids = Vec::new();
    for experiment in EXPERIMENTS {
        let cells: Vec<_> = experiment.cells().map(|(setup, variant)| (setup.id, variant.id)).collect();
        for claim in experiment.claims {
            assert!(claim.id.starts_with(experiment.name), "{}", claim.id);
            ids.push(claim.id);
            for measure in [Some(claim.measure), claim.without_condition].into_iter().flatten() {
                for cell in measure.cells() {
                    assert!(cells.contains(&cell), "{}: no cell {cell:?}", claim.id);
                }
            }
        }
        for cost in experiment.uncertain {
            ttwu_sim::Costs::find(cost).expect("a known cost");
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "a claim's name is its own");
}

/// The count: claims that can fail.
#[test]
fn at_least_25_claims_have_a_verdict() {
    let with_verdict = |claim: &&Claim| !matches!(claim.standing, Standing::NotClaimed(_));
    let count = EXPERIMENTS.iter().flat_map(|experiment| experiment.claims).filter(with_verdict).count();
    assert!(count >= 25, "{count}");
}

/// Costs are fitted on baselines; a claim that reads a baseline alone would be the fit over again.
#[test]
fn no_claim_rests_on_a_fitted_baseline_alone() {
    for experiment in EXPERIMENTS.iter().filter(|experiment| !experiment.fitted.is_empty()) {
        for claim in experiment.claims {
            let one_cell = matches!(claim.measure, Measure::Mean { quantity, .. }
                if !matches!(quantity, Quantity::CpusHit(_) | Quantity::TaskShare(_)));
            let claimed = !matches!(claim.standing, Standing::NotClaimed(_));
            assert!(!(one_cell && claimed), "{}", claim.id);
        }
    }
}

/// A bound that takes in 1 says nothing of a published change; it is for claims of "no change" and signs only.
#[test]
fn bounds_take_in_what_was_published() {
    for claim in EXPERIMENTS.iter().flat_map(|experiment| experiment.claims) {
        if let (Some(value), false) =
            (claim.published_value, matches!(claim.standing, Standing::NotClaimed(_)))
        {
            assert!(claim.bound.holds(value), "{}: {value} is not {}", claim.id, claim.bound);
        }
    }
}

const A: super::CellId = ("setup", "a");
const B: super::CellId = ("setup", "b");

fn samples(a: &[f64], b: &[f64]) -> Samples {
    let mut samples = Samples::default();
    for (&a, &b) in a.iter().zip(b) {
        samples.push(A, &[Quantity::Switches], vec![Some(a)]);
        samples.push(B, &[Quantity::Switches], vec![Some(b)]);
    }
    samples
}

const RATIO: Measure = Measure::Ratio { quantity: Quantity::Switches, new: A, base: B };

fn claim(bound: Bound) -> Claim {
    Claim {
        id: "x.y",
        text: "",
        published: "",
        published_value: None,
        standing: Standing::Robust,
        measure: RATIO,
        without_condition: None,
        bound,
    }
}

#[test]
fn verdicts_follow_the_interval() {
    let wide = RATIO.estimate(&samples(&[100.0, 120.0, 110.0], &[100.0, 100.0, 100.0]));
    let estimate = wide.expect("three pairs").estimate;
    assert!((estimate - 1.1).abs() < 1e-9, "{estimate}");
    assert_eq!(claim(Bound::AtLeast(0.5)).verdict(wide), Verdict::Holds);
    assert_eq!(claim(Bound::AtLeast(1.09)).verdict(wide), Verdict::Leans);
    assert_eq!(claim(Bound::AtLeast(1.2)).verdict(wide), Verdict::Fails);
    assert_eq!(claim(Bound::AtLeast(1.2)).verdict(None), Verdict::Missing);
}

#[test]
fn equal_runs_are_exactly_one_and_none_is_exactly_nothing() {
    let same = RATIO.estimate(&samples(&[7.0, 7.0], &[7.0, 7.0])).expect("constant");
    assert_eq!((same.low, same.estimate, same.high), (1.0, 1.0, 1.0));
    let none = RATIO.estimate(&samples(&[0.0, 0.0], &[7.0, 8.0])).expect("nothing against something");
    assert_eq!((none.low, none.high), (0.0, 0.0));
}

#[test]
fn a_missing_figure_is_missing() {
    let mut samples = samples(&[1.0], &[1.0]);
    samples.push(A, &[Quantity::Switches], vec![None]);
    assert_eq!(RATIO.estimate(&samples), None);
}

#[test]
fn headlines_are_claims_of_every_thread() {
    for experiment in EXPERIMENTS {
        let count = experiment.claims.iter().filter(|claim| super::HEADLINES.contains(&claim.id)).count();
        assert!(count >= 1, "{}", experiment.name);
    }
    let known = |id: &&str| {
        EXPERIMENTS.iter().any(|experiment| experiment.claims.iter().any(|claim| claim.id == *id))
    };
    assert!(super::HEADLINES.iter().all(known));
}

/// The whole of it takes long without optimisation; two threads show the form.
#[test]
fn headlines_fit_a_screen() {
    let effort = super::Effort { seeds: 2, sensitivity_seeds: 0, threads: 2 };
    let done: Vec<_> = ["dma", "eevdf"]
        .map(|name| super::Experiment::find(name).expect("a thread").headlines(effort, &|_, _| {}))
        .into();
    let text = super::render_headlines(&done);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(text.matches("published ").count(), 4, "{text}");
    let duty = done[1].claims.iter().find(|judged| judged.claim.id == "eevdf.67-33").expect("a headline");
    assert_eq!(duty.verdict, Verdict::Holds, "{text}");
}

#[test]
fn explanations_are_of_claims_that_exist() {
    let explained = EXPERIMENTS
        .iter()
        .flat_map(|experiment| experiment.claims)
        .filter(|claim| claim.explanation().is_some());
    assert_eq!(explained.count(), 5);
}
