//! Many runs: the same on any number of threads, cancelled, failing.

use crate::fake::{Fake, setup};
use std::num::NonZeroUsize;
use ttwu_lab::{Cancel, Job, RunError, executor, run_all};

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("not 0")
}

#[test]
fn any_number_of_threads_gives_the_same_results() {
    let fake = Fake { shared_noise: 0.1, own_noise: 0.1, ..Fake::quiet() };
    let (a, b) = (setup("linux-6.1"), setup("linux-6.6"));
    let jobs: Vec<Job<'_>> =
        (1..=20).flat_map(|seed| [Job { setup: &a, seed }, Job { setup: &b, seed }]).collect();
    let mut seen = vec![false; jobs.len()];
    let one = run_all(&fake, &jobs, threads(1), &Cancel::new(), &mut |run| {
        assert_eq!((run.index + 1, run.total), (run.done, 40), "one thread works in order");
        seen[run.index] = true;
    });
    assert!(seen.iter().all(|seen| *seen));
    for count in [2, 7, 100] {
        let many = run_all(&fake, &jobs, threads(count), &Cancel::new(), &mut |_| {});
        assert_eq!(many, one, "{count} threads");
    }
    let first = one[0].as_ref().expect("made").as_ref().expect("measured");
    assert_ne!(first, one[1].as_ref().expect("made").as_ref().expect("measured"));
}

#[test]
fn a_cancellation_leaves_what_there_is() {
    let (fake, a) = (Fake { cancels_at: Some(4), ..Fake::quiet() }, setup("linux-6.1"));
    let jobs: Vec<Job<'_>> = (1..=10).map(|seed| Job { setup: &a, seed }).collect();
    let runs = run_all(&fake, &jobs, threads(1), &Cancel::new(), &mut |_| {});
    assert!(runs[..3].iter().all(|run| matches!(run, Some(Ok(_)))), "{runs:?}");
    assert_eq!(runs[3], Some(Err(RunError::Cancelled)));
    assert!(runs[4..].iter().all(Option::is_none), "{runs:?}");
}

#[test]
fn a_failed_run_names_its_seed_and_loses_no_other() {
    let (fake, a) = (Fake { panics_at: Some(2), ..Fake::quiet() }, setup("linux-6.1"));
    let jobs: Vec<Job<'_>> = (1..=3).map(|seed| Job { setup: &a, seed }).collect();
    let runs = run_all(&fake, &jobs, threads(2), &Cancel::new(), &mut |_| {});
    assert_eq!(runs[1], Some(Err(RunError::Panicked { seed: 2, message: "planted".to_owned() })));
    assert!(matches!((&runs[0], &runs[2]), (Some(Ok(_)), Some(Ok(_)))));
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    assert_eq!(executor("sim").map(ttwu_lab::Executor::name), Ok("sim"));
    for name in ["host", "vm", "qemu"] {
        let Err(error) = executor(name) else { panic!("{name}") };
        assert!(error.to_string().starts_with(&format!("cannot run on `{name}`: ")), "{error}");
    }
}

#[test]
fn the_simulator_measures_a_workload_in_its_own_terms() {
    let simulator = executor("sim").expect("known");
    let a = setup("linux-6.12");
    let jobs = [Job { setup: &a, seed: 1 }, Job { setup: &a, seed: 2 }];
    let runs = run_all(simulator, &jobs, threads(2), &Cancel::new(), &mut |_| {});
    let again = run_all(simulator, &jobs, threads(1), &Cancel::new(), &mut |_| {});
    assert_eq!(runs, again);
    let run = runs[0].as_ref().expect("made").as_ref().expect("measured");
    let row = &run.rows[0];
    assert_eq!((row.name.as_str(), row.unit.as_str()), ("pipe", "us/op"));
    // Ten round trips with the start of two processes in front; two wake-ups each.
    assert!(row.value > 1.0 && row.value < 1000.0, "{row:?}");
    assert!(ttwu_lab::find(&run.counters, "wakeups") >= Some(10.0), "{:?}", run.counters);
}
