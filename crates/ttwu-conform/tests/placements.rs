//! Recorded placements put to the model: the repository's recordings everywhere, all of them where they are at hand.

use std::path::Path;
use ttwu_conform::{PlacementReport, Recording, placements};

fn score(path: &Path) -> PlacementReport {
    let recording = Recording::open(path).unwrap_or_else(|error| panic!("{error}"));
    placements(&recording).unwrap_or_else(|error| panic!("{error}"))
}

/// Agreement to the decision. A change that moves a figure must say so here, and why.
#[test]
fn the_repository_recordings() {
    let rows: [(&str, [(u64, u64); 6]); 9] = [
        ("6.1-b-nice", [(897, 897), (896, 897), (896, 897), (30, 30), (28, 28), (839, 839)]),
        ("6.12-a-batch", [(3331, 3333), (3331, 3333), (3331, 3333), (114, 114), (0, 0), (3219, 3219)]),
        (
            "6.12-b-hackbench-P1",
            [(1249, 1256), (1203, 1256), (1246, 1256), (732, 737), (244, 244), (275, 275)],
        ),
        ("6.1-d-mix", [(2256, 2256), (2232, 2256), (2254, 2256), (1304, 1304), (347, 347), (605, 605)]),
        ("6.1-i-crowd-buddies", [(152, 152), (152, 152), (152, 152), (21, 21), (0, 0), (131, 131)]),
        // Two LLCs in one package.
        ("6.12-e-mix", [(1119, 1120), (1118, 1120), (1118, 1120), (92, 92), (154, 154), (874, 874)]),
        ("6.12-i-crowd-buddies", [(63, 63), (63, 63), (63, 63), (16, 16), (0, 0), (47, 47)]),
        ("7.2-e-hackbench-P1", [(414, 414), (413, 414), (413, 414), (115, 116), (59, 59), (239, 239)]),
        ("7.2-b-idlewakee", [(1592, 1593), (1592, 1593), (1592, 1593), (34, 48), (23, 23), (1522, 1522)]),
    ];
    for (name, expected) in rows {
        let report = score(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name));
        let found = [
            &report.given,
            &report.snapshot,
            &report.checks,
            &report.wake_list_same_llc,
            &report.wake_list_other_llc,
            &report.wake_list_self,
        ]
        .map(|score| (score.agree, score.total));
        assert_eq!(found, expected, "{name}: given, snapshot, checks, wake list same LLC, other LLC, self");
    }
}

/// The bounds that the model is held to, over everything recorded.
#[test]
fn all_recordings_at_hand() {
    let Some(folder) = ttwu_testing::shared("oracle/recordings") else { return };
    let mut total = PlacementReport::default();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names {
        total.merge(&score(&path));
    }
    let at_least = |what: &str, agree: u64, total: u64, per_10_000: u64| {
        assert!(
            agree * 10_000 >= per_10_000 * total,
            "{what}: {agree} of {total}, wanted {per_10_000} of 10,000"
        );
    };
    at_least("placement_given", total.given.agree, total.given.total, 9_990);
    at_least("placement_snapshot", total.snapshot.agree, total.snapshot.total, 9_740);
    at_least("checks", total.checks.agree, total.checks.total, 9_960);
    at_least("slowpath", total.slow_path.agree, total.slow_path.total, 9_300);
    let lists = [&total.wake_list_same_llc, &total.wake_list_other_llc, &total.wake_list_self];
    let (agree, all) = lists.iter().fold((0, 0), |(agree, all), list| (agree + list.agree, all + list.total));
    at_least("wakelist", agree, all, 9_950);
    for list in &lists[1..] {
        assert_eq!(list.agree, list.total, "other LLC and self are decided by rule alone");
    }
}
