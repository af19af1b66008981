//! Whole recordings through the rebuilt queues, one of each kernel: every decision must agree.

use ttwu_conform::{Cause, QueueReport, Recording, queues};

fn report(name: &str) -> Option<QueueReport> {
    let path = ttwu_testing::shared(&format!("oracle/recordings/{name}"))?;
    let recording = Recording::open(&path).expect(name);
    Some(queues(&recording).expect(name))
}

fn check(name: &str, expected: &[(&str, u64, u64)]) {
    let Some(report) = report(name) else { return };
    for (what, agree, total) in expected {
        let score = report.scores().into_iter().find(|(kind, _)| kind == what).expect(what).1;
        assert_eq!((score.agree, score.total), (*agree, *total), "{name}: {what}: {:?}", score.misses);
    }
}

#[test]
fn preemptions_of_6_12_all_agree() {
    check(
        "6.12-b-preempt",
        &[
            ("rebuilt", 25788, 25788),
            ("pick_schedule", 6303, 6303),
            ("pick_wakeup", 1490, 1490),
            ("preempt", 1498, 1498),
            ("preempt_already", 1560, 1560),
            ("vruntime", 23774, 23774),
            ("deadline", 23774, 23774),
            ("vlag", 23774, 23774),
            ("zero", 14564, 14564),
            ("slice_end", 8969, 8969),
            ("tick", 7217, 7217),
            ("delayed", 3018, 3018),
        ],
    );
}

#[test]
fn idle_policy_of_7_2_agrees() {
    check(
        "7.2-b-idlewakee",
        &[
            ("rebuilt", 11449, 11449),
            ("pick_schedule", 2357, 2357),
            ("preempt", 1075, 1075),
            ("vprot", 11698, 11698),
        ],
    );
}

#[test]
fn preemptions_of_6_1_agree() {
    check(
        "6.1-b-preempt",
        &[
            ("rebuilt", 25023, 25023),
            ("pick_schedule", 5304, 5304),
            ("preempt", 1960, 1960),
            ("vruntime", 24945, 24945),
        ],
    );
}

/// Buddies, in the repository: a dozen tasks a CPU on 6.1, where the check marks the last one; on 6.12 NEXT_BUDDY marks the
/// wakee even where a reschedule is pending, and the buddy is taken without a pick.
#[test]
fn buddies_are_picked_as_the_kernel_picks_them() {
    for (name, picks, preemptions) in [("6.1-i-crowd-buddies", 121, 154), ("6.12-i-crowd-buddies", 63, 29)] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let report = queues(&Recording::open(&path).expect(name)).expect(name);
        for (score, total) in [(&report.pick_buddy, picks), (&report.preempt, preemptions)] {
            assert_eq!((score.agree, score.total), (total, total), "{name}: {:?}", score.misses);
        }
    }
}

/// Timer interrupts that came while another probe was at work show no probe of their own: what they asked for is not known.
#[test]
fn interrupts_without_probes_do_not_count() {
    let Some(report) = report("7.2-a-mix") else { return };
    let aside =
        report.set_aside.iter().find(|(why, _)| why.starts_with("a timer interrupt during another probe"));
    assert!(aside.is_some_and(|(_, aside)| aside.count > aside.would_agree), "{:?}", report.set_aside);
    assert!(report.slice_end.total - report.slice_end.agree <= 2, "{:?}", report.slice_end.misses);
}

/// A delayed task that is woken where it stands, on a CPU that is idle, has no record but the wake-up's own.
#[test]
fn delayed_tasks_are_woken_on_idle_cpus() {
    let Some(report) = report("6.12-b-msgwork-v2") else { return };
    assert_eq!(report.vlag.count(Cause::Model), 0, "{:?}", report.vlag.misses);
}

/// The recordings in the repository, everywhere: one of CFS, one of EEVDF.
#[test]
fn the_repository_recordings_all_agree() {
    for (name, picks, preemptions) in [("6.1-b-nice", 1500, 614), ("6.12-b-hackbench-P1", 437, 331)] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let report = queues(&Recording::open(&path).expect(name)).expect(name);
        for (what, score) in report.scores() {
            assert_eq!(score.agree, score.total, "{name}: {what}: {:?}", score.misses);
        }
        assert_eq!((report.pick_schedule.total, report.preempt.total), (picks, preemptions), "{name}");
    }
}
