//! Sweeps: complete, resumed, in parts.

use crate::fake::Fake;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use ttwu_fair::Feature;
use ttwu_lab::Cancel;
use ttwu_lab::sweep::{Shard, SweepPlan, Swept, render_json, render_text, survey, sweep};
use ttwu_sim::Nothing;

const PLAN: &str = r#"
machines = ["uma-8", "i7-4790"]
policies = ["linux-6.12", "linux-6.12 -RUN_TO_PARITY"]
workloads = ["pipe:loop=10..20+10"]
settings = ["", "preemption=full"]
seeds = 4
"#;

fn plan() -> SweepPlan {
    SweepPlan::parse(PLAN, &Nothing).expect("a plan")
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ttwu-sweep-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.0.join("cells")).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
    }

    fn dataset(&self) -> String {
        std::fs::read_to_string(self.0.join("results.csv")).expect("a dataset")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(folder: &Folder, shard: Shard, threads: usize, fake: &Fake) -> Swept {
    let threads = NonZeroUsize::new(threads).expect("not 0");
    sweep(&plan(), &folder.0, shard, threads, fake, &Cancel::new(), &mut |_| {}).expect("swept")
}

fn fake() -> Fake {
    Fake { effects: vec![(Feature::RunToParity, 1.25)], shared_noise: 0.05, own_noise: 0.01, ..Fake::quiet() }
}

#[test]
fn a_matrix_is_run_once_and_has_a_map() {
    let folder = Folder::new("whole");
    let swept = run(&folder, Shard::WHOLE, 2, &fake());
    // 2 machines × 2 policies × 2 workloads × 2 settings × 4 seeds.
    assert_eq!((swept.cells_plan, swept.cells, swept.done, swept.run), (64, 64, 64, 64));
    let again = run(&folder, Shard::WHOLE, 2, &fake());
    assert_eq!((again.done, again.run), (64, 0));
    let text = render_text(&again);
    for line in text.lines() {
        assert!(line.chars().count() <= 80 || line.contains("results.csv"), "{line}");
    }
    assert_eq!(text.matches("\u{2593} +").count() + text.matches("\u{2592} +").count(), 8, "{text}");
    let json: serde_json::Value = serde_json::from_str(&render_json(&again)).expect("JSON");
    assert_eq!(
        (&json["schema"], &json["cells"], &json["done"], &json["failed"]),
        (&"ttwu/sweep/1".into(), &64.into(), &64.into(), &0.into())
    );
    assert_eq!(json["table"].as_array().map(Vec::len), Some(16));
}

#[test]
fn a_sweep_that_was_ended_goes_on_and_ends_as_if_it_had_not_been() {
    let (ended, whole) = (Folder::new("ended"), Folder::new("unended"));
    // Seeds turn slowest: 16 setups of seeds 1 and 2 come before seed 3.
    let first = run(&ended, Shard::WHOLE, 1, &Fake { cancels_at: Some(3), ..fake() });
    assert!(first.interrupted);
    assert_eq!((first.done, first.run), (32, 32));
    let half = ended.names();
    // A kill in the middle of writing leaves a file aside, and may leave a damaged one.
    let damaged = half.first().expect("some");
    std::fs::write(ended.0.join("cells").join(damaged), "{\"schema\":").expect("written");
    std::fs::write(ended.0.join("cells/x.1.tmp"), "{").expect("written");
    let second = run(&ended, Shard::WHOLE, 2, &fake());
    assert_eq!((second.done, second.run), (64, 33));
    run(&whole, Shard::WHOLE, 2, &fake());
    assert_eq!(ended.dataset(), whole.dataset());
}

#[test]
fn parts_are_disjoint_and_together_the_whole() {
    let (parts, whole) = (Folder::new("parts"), Folder::new("one"));
    let mut sum = 0;
    for index in 0..5 {
        let before = if index == 0 { BTreeSet::new() } else { parts.names() };
        let part = run(&parts, Shard { index, count: 5 }, 2, &fake());
        assert_eq!((part.cells, part.run), (part.done, part.cells), "nothing of this part was there before");
        assert_eq!(parts.names().len(), before.len() + part.run);
        sum += part.cells;
    }
    assert_eq!(sum, 64);
    run(&whole, Shard::WHOLE, 2, &fake());
    assert_eq!(parts.names(), whole.names());
    assert_eq!(parts.dataset(), whole.dataset());
    assert_eq!(survey(&plan(), &parts.0, Shard::WHOLE).expect("there").done, 64);
}

#[test]
fn failed_cells_are_reported_and_tried_again() {
    let folder = Folder::new("failed");
    let swept = run(&folder, Shard::WHOLE, 2, &Fake { panics_at: Some(2), ..fake() });
    assert_eq!((swept.done, swept.failed.len()), (48, 16));
    assert!(render_text(&swept).contains("the run with seed 2 failed: planted"));
    let again = run(&folder, Shard::WHOLE, 2, &fake());
    assert_eq!((again.done, again.run, again.failed.len()), (64, 16, 0));
}

#[test]
fn bad_plans_are_refused_with_their_place() {
    let refusal = |text: &str| SweepPlan::parse(text, &Nothing).expect_err("refused").to_string();
    let base = "machines = [\"uma-8\"]\npolicies = [\"linux-6.12\"]\n";
    assert!(refusal(base).ends_with("plan: `workloads` is missing or empty"), "{}", refusal(base));
    let text = refusal(&format!("{base}workloads = [\"hackbnech\"]\n"));
    assert!(text.starts_with("3:14: ") && text.contains("did you mean `hackbench`?"), "{text}");
    let text = refusal(&format!("{base}workloads = [\"pipe\"]\nsetings = []\n"));
    assert!(text.starts_with("4:1: ") && text.contains("settings"), "{text}");
    let text = refusal(&format!("{base}workloads = [\"pipe\"]\nsettings = [\"preemtion=full\"]\n"));
    assert!(text.starts_with("4:13: ") && text.contains("did you mean `preemption`?"), "{text}");
    let text = refusal(&format!("{base}workloads = [\"pipe\"]\nseeds = 1000000000\n"));
    assert!(text.starts_with("4:9: "), "{text}");
    assert!(refusal("sweep = 2\n").contains("a newer ttwu reads it"));
}

#[test]
fn the_shipped_plan_reads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/sweeps/generations.toml");
    let plan = SweepPlan::parse(&std::fs::read_to_string(path).expect(path), &Nothing).expect(path);
    assert_eq!((plan.setups().len(), plan.cells().len()), (60, 300));
    let folder = Folder::new("shipped");
    let swept =
        sweep(&plan, &folder.0, Shard::WHOLE, NonZeroUsize::MIN, &fake(), &Cancel::new(), &mut |_| {})
            .expect("swept");
    for line in render_text(&swept).lines().filter(|line| !line.contains("results.csv")) {
        assert!(line.chars().count() <= 80, "five policies: {line}");
    }
}
