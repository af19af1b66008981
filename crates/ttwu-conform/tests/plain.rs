//! Placements rebuilt from plain events, and decisions taken out of a bare trace.

use std::path::{Path, PathBuf};
use ttwu_conform::{Cause, ReconstructReport, Recording, placements, reconstruct};

fn plain(path: &Path) -> ReconstructReport {
    let recording = Recording::open(path).unwrap_or_else(|error| panic!("{error}"));
    let trace = ttwu_trace::read(recording.trace().expect("has a trace")).expect("readable");
    reconstruct(&trace, recording.policy(), recording.machine())
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Agreement to the decision: model, always-prev, always-this, total, unreconstructible.
#[test]
fn the_repository_recordings() {
    for (name, expected) in
        [("6.1-b-nice", [885, 876, 837, 894, 11]), ("6.12-b-hackbench-P1", [815, 786, 163, 1054, 278])]
    {
        let report = plain(&fixture(name));
        let found = [
            report.model.agree,
            report.always_prev.agree,
            report.always_this.agree,
            report.model.total,
            report.unreconstructible_count(),
        ];
        assert_eq!(found, expected, "{name}: {:?}", report.model.misses);
        assert_eq!(
            report.always_prev.total, report.model.total,
            "{name}: the baselines answer the same questions"
        );
        let told = Cause::ALL.iter().map(|&cause| report.model.count(cause)).sum::<u64>();
        assert_eq!(told, report.model.total - report.model.agree, "{name}: every miss has a cause");
    }
}

/// Where tasks move, the model must know more than "it stays where it was".
#[test]
fn messages_beat_the_previous_cpu() {
    for name in
        ["6.1-b-msgwork", "6.12-b-msgwork-v2", "6.12-b-msgwork-icount", "6.12-c-msgwork", "7.2-b-msgwork"]
    {
        let Some(path) = ttwu_testing::shared(&format!("oracle/recordings/{name}")) else { return };
        let report = plain(&path);
        assert!(
            report.model.agree > report.always_prev.agree,
            "{name}: model {}, always the previous CPU {}",
            report.model,
            report.always_prev
        );
        assert!(report.model.agree * 100 >= 83 * report.model.total, "{name}: {}", report.model);
    }
}

/// A bare trace with the probes gives the same decisions as the folder's extracted ones.
#[test]
fn decisions_of_a_bare_trace() {
    for name in ["6.1-b-nice", "6.12-b-hackbench-P1"] {
        let folder = Recording::open(&fixture(name)).expect(name);
        let bare = Recording::of_trace(
            folder.trace().expect("has a trace"),
            folder.policy().clone(),
            folder.topology().clone(),
            Vec::new(),
        );
        let (ours, theirs) = (placements(&bare).expect(name), placements(&folder).expect(name));
        for (what, ours, theirs) in [
            ("given", &ours.given, &theirs.given),
            ("snapshot", &ours.snapshot, &theirs.snapshot),
            ("checks", &ours.checks, &theirs.checks),
            ("slow path", &ours.slow_path, &theirs.slow_path),
            ("wake list", &ours.wake_list_same_llc, &theirs.wake_list_same_llc),
            ("wake list", &ours.wake_list_other_llc, &theirs.wake_list_other_llc),
        ] {
            assert_eq!((ours.agree, ours.total), (theirs.agree, theirs.total), "{name}: {what}");
        }
        assert_eq!(ours.without_placement, theirs.without_placement, "{name}");
    }
}
