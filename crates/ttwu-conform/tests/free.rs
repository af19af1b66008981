//! Values followed without being set right, and whole recordings run by the model alone.

use std::path::Path;
use ttwu_conform::{Recording, free_run, queues_followed};

/// With decisions fed back, not one value goes wrong from the first event to the last.
#[test]
fn values_are_followed_without_a_wrong_one() {
    for (name, values) in [("6.12-b-preempt", 23774), ("6.12-a-batch", 22332)] {
        let Some(path) = ttwu_testing::shared(&format!("oracle/recordings/{name}")) else { return };
        let report = queues_followed(&Recording::open(&path).expect(name)).expect(name);
        for (what, score) in report.scores() {
            assert_eq!(score.agree, score.total, "{name}: {what}: {:?}", score.misses);
        }
        assert_eq!((report.vruntime.total, report.resynchronised), (values, 0), "{name}");
    }
}

/// The kernel itself says that it missed two placements there: what they would have shown is taken from the recording, and the
/// lags of tasks that leave such a queue are not told.
#[test]
fn lost_placements_are_noticed() {
    let Some(path) = ttwu_testing::shared("oracle/recordings/7.2-b-msgwork") else { return };
    let report = queues_followed(&Recording::open(&path).expect("opens")).expect("reads");
    for (what, score) in
        [("vruntime", &report.vruntime), ("deadline", &report.deadline), ("vprot", &report.vprot)]
    {
        assert_eq!((score.agree, score.total), (30407, 30407), "{what}: {:?}", score.misses);
    }
    assert_eq!(report.lost_probes.get("place"), Some(&2));
    assert_eq!((report.resynchronised, report.vlag.total - report.vlag.agree), (10, 0));
}

/// The same recording gives the same run, and it is no worse than it was.
#[test]
fn the_model_runs_a_recording_by_itself() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/6.12-b-hackbench-P1");
    let recording = Recording::open(&path).expect("opens");
    let trace = ttwu_trace::read(recording.trace().expect("has a trace")).expect("readable");
    let run = || free_run(&trace, recording.policy(), recording.machine());
    let (report, again) = (run(), run());
    assert_eq!(format!("{report:?}"), format!("{again:?}"));
    let totals = [report.placements.total, report.preemptions.total, report.picks.total];
    assert_eq!(totals, [1113, 29, 1205], "{report:?}");
    assert!(report.picks.equal >= 888, "{report:?}");
    assert!(report.first.is_some(), "a divergence is explained");
}
