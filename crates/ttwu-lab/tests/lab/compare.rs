//! Comparisons whose answer is known.

use crate::arms::Scratch;
use crate::fake::{Fake, setup};
use std::num::NonZeroUsize;
use ttwu_fair::Feature;
use ttwu_lab::Cancel;
use ttwu_lab::arm::{Arm, Cell, KeptArm, SimulatedArm};
use ttwu_lab::compare::{CompareError, Comparison, Plan, Style, compare, render};
use ttwu_stats::Verdict;

fn plan() -> Plan {
    Plan {
        precision_pct: 1.0,
        pilot: 5,
        seeds_max: 200,
        margin_pct: 1.0,
        seed: 1,
        threads: NonZeroUsize::new(2).expect("not 0"),
    }
}

pub(crate) fn arm(policy: &str) -> Arm {
    let cells = vec![Cell { name: String::new(), setup: setup(policy) }];
    Arm::Simulated(SimulatedArm { label: policy.to_owned(), cells })
}

fn run(arms: &[Arm], fake: &Fake, plan: &Plan) -> Result<Comparison, CompareError> {
    compare(arms, plan, fake, &Cancel::new(), &mut |_| {})
}

fn two() -> [Arm; 2] {
    [arm("linux-6.12"), arm("linux-6.12 -RUN_TO_PARITY")]
}

fn planted(factor: f64) -> Fake {
    Fake {
        effects: vec![(Feature::RunToParity, factor)],
        shared_noise: 0.05,
        own_noise: 0.01,
        ..Fake::quiet()
    }
}

#[test]
fn a_planted_effect_is_found_with_sign_and_size() {
    // RUN_TO_PARITY makes it a quarter slower; the arm without it is 20 % faster.
    let comparison = run(&two(), &planted(1.25), &plan()).expect("compared");
    let row = &comparison.rows[0];
    let judgement = row.arms[1].judgement.as_ref().expect("judged");
    let change = judgement.change_pct.expect("a ratio");
    assert!(change.contains(-20.0), "{change:?}");
    assert!(change.high - change.low < 3.0, "{change:?}");
    assert_eq!(row.arms[1].verdict, Some(Verdict::Better));
    let first = &comparison.why[0][0];
    assert_eq!(first.counter, "ipis");
    assert!(
        first.z < -5.0
            && first
                .sentence()
                .starts_with("interrupts sent between CPUs fell from 12 632 to 10 070 a run (-20 %)"),
        "{first:?}"
    );
}

#[test]
fn no_effect_is_equivalent_or_cannot_be_told_and_never_a_difference() {
    let mut differences = 0;
    for first in 0..200 {
        let plan = Plan { seed: 1 + 1000 * first, ..plan() };
        let comparison = run(&two(), &planted(1.0), &plan).expect("compared");
        differences +=
            usize::from(matches!(comparison.rows[0].arms[1].verdict, Some(Verdict::Better | Verdict::Worse)));
    }
    // 5 % of 200 are 10; more than 20 would be one chance in a thousand.
    assert!(differences <= 20, "{differences} of 200");
    let comparison = run(&[arm("linux-6.12"), arm("linux-6.12")], &planted(1.0), &plan()).expect("compared");
    assert_eq!(comparison.rows[0].arms[1].verdict, Some(Verdict::Equivalent), "the same arm twice");
    assert_eq!(comparison.why[0], []);
}

/// The pilot decides how many seeds follow; that must not make false differences more frequent.
#[test]
fn choosing_the_number_of_seeds_by_the_pilot_keeps_the_level() {
    let (mut told, mut runs, repeats) = (0, 0, 2000);
    for first in 0..repeats {
        let plan = Plan { seed: 1 + 1000 * first, precision_pct: 1.5, ..plan() };
        let comparison = run(&two(), &planted(1.0), &plan).expect("compared");
        let judgement = comparison.rows[0].arms[1].judgement.as_ref().expect("judged");
        told += usize::from(judgement.change_pct.is_some_and(|change| !change.contains(0.0)));
        runs += comparison.seeds.expect("simulated").1;
    }
    let share = told as f64 / repeats as f64;
    let mean = runs as f64 / repeats as f64;
    assert!((0.03..=0.068).contains(&share), "{share} of null comparisons exclude 0, at {mean} seeds");
    assert!(mean > 6.0, "the pilot alone was enough: nothing was tested");
}

#[test]
fn precision_decides_the_seeds_and_the_limit_is_said() {
    let arms = two();
    let rough = run(&arms, &planted(1.25), &Plan { precision_pct: 10.0, ..plan() }).expect("compared");
    assert_eq!(rough.seeds, Some((1, 5)));
    let fine = run(&arms, &planted(1.25), &Plan { precision_pct: 0.5, ..plan() }).expect("compared");
    assert!(fine.seeds.expect("simulated").1 > 10, "{:?}", fine.seeds);
    let cut =
        run(&arms, &planted(1.25), &Plan { precision_pct: 0.5, seeds_max: 8, ..plan() }).expect("compared");
    assert_eq!(cut.seeds, Some((1, 8)));
    assert!(cut.seeds_wanted.is_some_and(|wanted| wanted > 10), "{:?}", cut.seeds_wanted);
    assert!(cut.notes[0].starts_with("8 seeds, the limit; "), "{:?}", cut.notes);
}

#[test]
fn threads_do_not_change_an_answer() {
    let one = Plan { threads: NonZeroUsize::MIN, ..plan() };
    let many = Plan { threads: NonZeroUsize::new(8).expect("not 0"), ..plan() };
    let [one, mut many] = [one, many].map(|plan| run(&two(), &planted(1.1), &plan).expect("compared"));
    many.plan.threads = one.plan.threads;
    assert_eq!(one, many);
}

#[test]
fn an_interruption_gives_what_there_is() {
    let fake = Fake { cancels_at: Some(4), ..planted(1.25) };
    let comparison =
        run(&two(), &fake, &Plan { threads: NonZeroUsize::MIN, ..plan() }).expect("what there is");
    assert!(comparison.interrupted);
    assert_eq!((comparison.seeds, comparison.rows[0].arms[1].samples.len()), (Some((1, 3)), 3));
    assert!(render(&comparison, Style::Text).contains("INTERRUPTED"));
    let at_once = run(
        &two(),
        &Fake { cancels_at: Some(1), ..planted(1.25) },
        &Plan { threads: NonZeroUsize::MIN, ..plan() },
    );
    assert!(matches!(at_once, Err(CompareError::NoRuns { .. })), "{at_once:?}");
}

#[test]
fn a_failing_run_is_named() {
    let fake = Fake { panics_at: Some(3), ..Fake::quiet() };
    let error = run(&two(), &fake, &plan()).expect_err("failed");
    assert_eq!(error.to_string(), "linux-6.12: the run with seed 3 failed: planted");
}

fn kept(name: &str, content: &str) -> (Scratch, Arm) {
    let file = Scratch::file(name, content);
    let arm = KeptArm::open(&file.text()).expect("an arm");
    (file, Arm::Kept(arm))
}

const HACKBENCH: &str = "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\n\
                         Each sender will pass 100 messages of 100 bytes\n";

const PIPE: &str = "# Running 'sched/pipe' benchmark:\n# Executed 1000 pipe operations between two processes\n\n     \
                    Total time: 0.010 [sec]\n\n      10.000000 usecs/op\n         100000 ops/sec\n";

#[test]
fn lists_of_runs_from_a_mail_are_compared_whatever_their_names() {
    let (_a, without) = kept("list-a", "w/o: 7.689 7.485 7.585 7.492 7.573=7.5648\n");
    let (_b, with) = kept("list-b", "w/: 6.689 6.485 6.585 6.492 6.573=6.5648\n");
    let comparison = run(&[without, with], &Fake::quiet(), &plan()).expect("compared");
    let row = &comparison.rows[0];
    assert_eq!((row.arms[0].samples.len(), row.arms[1].samples.len()), (5, 5));
    // 6.5648 for 7.5648: 13.22 % better, as mails count.
    let text = render(&comparison, Style::Lkml);
    assert!(text.contains(": 6.5648 (+13.22%)\n  6.6890 6.4850 "), "{text}");
    assert_eq!(row.arms[1].verdict, Some(Verdict::Better));
    assert!(comparison.notes[0].contains("the only results there are"), "{:?}", comparison.notes);
}

#[test]
fn what_cannot_stand_side_by_side_is_refused_with_the_reason() {
    let (_a, hackbench) = kept("cmp-a", &format!("{HACKBENCH}Time: 0.250\n"));
    let (_b, pipe) = kept("cmp-b", PIPE);
    let refusal = |arms: &[Arm]| run(arms, &Fake::quiet(), &plan()).expect_err("refused").to_string();
    let text = refusal(&[arm("linux-6.12"), hackbench.clone()]);
    assert!(text.contains("one is simulated, the other is output of hackbench"), "{text}");
    let text = refusal(&[hackbench, pipe]);
    assert!(text.contains("they have no result in common: time against pipe, pipe_rate"), "{text}");
}

/// Arms of an mmtests tree, in a folder that is gone when the test ends.
struct Tree(std::path::PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ttwu-lab-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn log(&self, arm: &str, iteration: usize, benchmark: &str, file: &str, text: &str) {
        let logs = self.0.join(format!("{arm}/iter-{iteration}/{benchmark}/logs"));
        std::fs::create_dir_all(&logs).expect("directories");
        std::fs::write(logs.join(file), text).expect("a log");
    }

    fn hackbench(&self, arm: &str, iteration: usize, groups: u32, times: &[f64]) {
        let text: String = times.iter().map(|time| format!("     Total time: {time:.3} [sec]\n")).collect();
        self.log(arm, iteration, "hackbench-process-pipes", &format!("hackbench-{groups}"), &text);
    }

    fn arm(&self, word: &str) -> Arm {
        Arm::Kept(KeptArm::open(&self.0.join(word).to_string_lossy()).expect("an arm"))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const BASE: [f64; 5] = [1.00, 1.02, 0.98, 1.01, 0.99];
const FASTER: [f64; 5] = [0.80, 0.82, 0.78, 0.81, 0.79];

#[test]
fn mmtests_trees_are_judged_row_by_row() {
    let tree = Tree::new("tree");
    for (arm, times) in [("vanilla", BASE), ("patched", FASTER)] {
        tree.hackbench(arm, 0, 1, &times);
        tree.hackbench(arm, 0, 4, &BASE);
    }
    let comparison =
        run(&[tree.arm("vanilla"), tree.arm("patched")], &Fake::quiet(), &plan()).expect("compared");
    let rows: Vec<_> =
        comparison.rows.iter().map(|row| (row.name.as_str(), row.arms[1].samples.len())).collect();
    assert_eq!(rows, [("time-1", 5), ("time-4", 5)]);
    assert_eq!(comparison.rows[0].arms[1].verdict, Some(Verdict::Better));
    assert_ne!(comparison.rows[1].arms[1].verdict, Some(Verdict::Better));
    let change = comparison.rows[0].arms[1].judgement.as_ref().and_then(|judged| judged.change_pct);
    assert!((change.expect("a change").estimate + 20.0).abs() < 1e-9, "{change:?}");
    assert_eq!(comparison.arms[0].what, "mmtests' hackbench-process-pipes, 1 iteration");
    let told = |note: &&String| note.contains("how boots differ is not known");
    assert!(comparison.notes.iter().any(|note| told(&note)), "{:?}", comparison.notes);
}

/// Runs of one boot say nothing of how boots differ: with three of each, the boot is the unit.
#[test]
fn from_three_iterations_on_an_iteration_is_the_unit() {
    let tree = Tree::new("boots");
    for (arm, shift) in [("vanilla", 0.0), ("patched", 0.1)] {
        for iteration in 0..3 {
            let boot = [0.0, 0.3, -0.3][iteration] + shift;
            tree.hackbench(arm, iteration, 1, &BASE.map(|time| time + boot));
        }
    }
    let comparison =
        run(&[tree.arm("vanilla"), tree.arm("patched")], &Fake::quiet(), &plan()).expect("compared");
    assert_eq!(comparison.rows[0].arms[1].samples.len(), 3);
    assert!(matches!(comparison.rows[0].arms[1].verdict, Some(Verdict::CannotTell { .. })));
}

#[test]
fn a_tree_stands_beside_files_of_the_same_benchmark_and_no_other() {
    let tree = Tree::new("mixed");
    tree.hackbench("vanilla", 0, 1, &BASE);
    tree.hackbench("vanilla", 0, 10, &BASE);
    let ten: String = FASTER.iter().map(|time| format!("{HACKBENCH}Time: {time:.3}\n")).collect();
    let (_a, file) = kept("mixed-file", &ten);
    let comparison = run(&[tree.arm("vanilla"), file], &Fake::quiet(), &plan()).expect("compared");
    assert_eq!(comparison.rows[0].arms[1].samples, Vec::<f64>::new(), "no run of 1 group");
    assert_eq!(
        (comparison.rows[1].name.as_str(), comparison.rows[1].arms[1].verdict),
        ("time-10", Some(Verdict::Better))
    );
    let (_b, pipe) = kept("mixed-pipe", PIPE);
    let refused =
        run(&[tree.arm("vanilla"), pipe], &Fake::quiet(), &plan()).expect_err("refused").to_string();
    assert!(
        refused.contains("they have no result in common: time-1, time-10 against pipe, pipe_rate"),
        "{refused}"
    );
    tree.log("vanilla", 0, "schbench", "schbench-1.log", "");
    let two =
        KeptArm::open(&tree.0.join("vanilla").to_string_lossy()).expect_err("two benchmarks").to_string();
    assert!(two.contains("@hackbench-process-pipes: there are hackbench-process-pipes, schbench"), "{two}");
    let named = tree.arm("vanilla@hackbench-process-pipes");
    assert!(named.label().ends_with("vanilla@hackbench-process-pipes"));
    let (_c, loops) = kept("mixed-loops", "005111\t00000091\n005112\t00000092\n");
    let (_d, count) = kept("mixed-count", "COUNT|100|1|lps\n");
    let refused = run(&[loops, count], &Fake::quiet(), &plan()).expect_err("refused").to_string();
    assert!(refused.ends_with("one is of massive_intr, the other of unixbench"), "{refused}");
}

#[test]
fn kept_results_read_back_and_other_machines_are_refused() {
    let comparison = run(&two(), &planted(1.25), &plan()).expect("compared");
    let json = render(&comparison, Style::Json);
    let file = Scratch::file("kept.json", &json);
    let refusal = KeptArm::open(&file.text()).expect_err("two arms").to_string();
    assert!(refusal.contains("@1 is linux-6.12, "), "{refusal}");
    let first = KeptArm::open(&format!("{}@1", file.text())).expect("the first");
    let second = KeptArm::open(&format!("{}@2", file.text())).expect("the second");
    assert_eq!(first.series[0].values, comparison.rows[0].arms[0].samples);
    let again = run(&[Arm::Kept(first.clone()), Arm::Kept(second.clone())], &Fake::quiet(), &plan())
        .expect("compared");
    // The pairs are kept with their seeds, so that nothing of the answer is lost.
    assert_eq!(again.rows, comparison.rows);
    assert_eq!((again.pairing, again.seeds), (comparison.pairing, comparison.seeds));
    let text = render(&again, Style::Text);
    assert!(text.contains("with the same seeds") && !text.contains("no counter moved"), "{text}");
    let other = Arm::Kept(KeptArm { seeds: Some((100, 5)), ..second.clone() });
    let apart = run(&[Arm::Kept(first.clone()), other], &Fake::quiet(), &plan()).expect("compared");
    assert_eq!((apart.pairing, apart.seeds), (ttwu_stats::Pairing::Independent, None));
    assert!(apart.notes[0].contains("the files do not say which runs belong together"), "{:?}", apart.notes);
    assert!(render(&apart, Style::Text).contains("kept runs, not paired"));
    let elsewhere = KeptArm { machine: Some("host".to_owned()), ..second };
    let refusal =
        run(&[Arm::Kept(first), Arm::Kept(elsewhere)], &Fake::quiet(), &plan()).expect_err("refused");
    assert!(refusal.to_string().ends_with("they are from different machines, uma-8 and host"), "{refusal}");
}

#[test]
fn missing_is_missing_in_every_style() {
    let runs: String = (0..5).map(|run| format!("{HACKBENCH}Time: 0.25{run}\n")).collect();
    let (_a, more) = kept("miss-a", &format!("{runs}{PIPE}"));
    let (_b, less) = kept("miss-b", &runs);
    let comparison = run(&[more, less], &Fake::quiet(), &plan()).expect("compared");
    assert_eq!(comparison.rows.len(), 3, "time, pipe, pipe_rate");
    assert_eq!(comparison.rows[1].arms[1].verdict, None);
    for style in [Style::Text, Style::Mmtests2020, Style::Mmtests2024, Style::Strict, Style::Lkml] {
        let text = render(&comparison, style);
        assert!(text.contains("missing"), "{style:?}\n{text}");
        let row = text.lines().find(|line| line.contains("missing")).expect("found above");
        // The baseline's own change is 0.00%.
        assert!(row.matches("0.00%)").count() <= 1, "{style:?}\n{text}");
    }
    assert!(render(&comparison, Style::Json).contains("\"verdict\": \"missing\""));
}

#[test]
fn every_style_says_its_rule_and_text_has_80_columns() {
    let comparison = run(&two(), &planted(1.25), &plan()).expect("compared");
    let text = render(&comparison, Style::Text);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    assert!(text.contains("better") && text.contains("why:"), "{text}");
    for (style, start) in [
        (Style::Mmtests2020, "# style mmtests-2020; a star: p < 0.10"),
        (Style::Mmtests2024, "# style mmtests-2024; a star: |difference| > 1.96"),
        (Style::Strict, "# style strict; no stars"),
        (Style::Lkml, "# style lkml; no stars"),
    ] {
        let text = render(&comparison, style);
        assert!(text.starts_with(start), "{style:?}\n{text}");
    }
    let old = render(&comparison, Style::Mmtests2020);
    let amean = old.lines().find(|line| line.starts_with("Amean")).expect("a row");
    assert!(amean.contains(" *") && amean.ends_with("%*"), "{old}");
    let json: serde_json::Value = serde_json::from_str(&render(&comparison, Style::Json)).expect("JSON");
    assert_eq!(json["schema"], "ttwu/compare/1");
    assert_eq!(json["rows"][0]["verdict"], "better");
    assert_eq!(json["rows"][0]["arms"][1]["n"], json["seeds"]["count"]);
    assert!(json["rows"][0]["ci_pct"][1].as_f64().expect("a number") < 0.0);
    assert_eq!(json["why"][0]["counter"], "ipis");
    let csv = render(&comparison, Style::Csv);
    assert!(csv.starts_with("row,unit,better,arm,run,value\ntime,s,lower,linux-6.12,1,"), "{csv}");
}

/// Ten rows of noise and one effect that a single test would just see.
#[test]
fn a_row_that_is_one_of_many_must_be_surer() {
    let runs = |shift: f64| -> String {
        let mut random = ttwu_stats::Random::new(3);
        let mut text = String::new();
        for run in 0..8 {
            text.push_str(&format!("{HACKBENCH}Time: {:.3}\n", 10.0 + shift + 0.1 * random.normal()));
            // Percentile rows without any difference.
            text.push_str("Latency percentiles (usec)\n");
            for (percentile, base) in [
                ("50.0", 10.0),
                ("75.0", 20.0),
                ("90.0", 30.0),
                ("95.0", 40.0),
                ("99.0", 50.0),
                ("99.5", 60.0),
                ("99.9", 70.0),
            ] {
                let star = if percentile == "99.0" { "*" } else { " " };
                text.push_str(&format!(
                    "\t{star}{percentile}th: {:.0}\n",
                    base + 3.0 * random.unit() + f64::from(run)
                ));
            }
            text.push_str("\tmin=0, max=90\n");
        }
        text
    };
    let (_a, base) = kept("many-a", &runs(0.0));
    let (_b, new) = kept("many-b", &runs(0.18));
    let comparison = run(&[base, new], &Fake::quiet(), &plan()).expect("compared");
    assert!(
        comparison.rows.len() >= 8,
        "{:?}",
        comparison.rows.iter().map(|row| &row.name).collect::<Vec<_>>()
    );
    let time = comparison.rows.iter().find(|row| row.name == "time").expect("there");
    let arm = &time.arms[1];
    let raw = arm.judgement.as_ref().and_then(|judgement| judgement.probability).expect("tested");
    let holm = arm.probability_holm.expect("corrected");
    assert!(raw < 0.05 && holm >= 0.05, "{raw} {holm}");
    let Some(Verdict::CannotTell { detectable_pct: Some(detectable) }) = arm.verdict else {
        panic!("{arm:?}")
    };
    // 2.8 standard errors of 0.1 · √(2/8) on 10: about 1.4 to 1.8 %.
    assert!((0.5..3.0).contains(&detectable), "{detectable}");
    assert!(render(&comparison, Style::Text).contains("of this many rows it may be chance"));
}

#[test]
fn kept_simulated_results_do_not_stand_beside_measured_ones() {
    let comparison = run(&two(), &planted(1.25), &plan()).expect("compared");
    let file = Scratch::file("kept-sim.json", &render(&comparison, Style::Json));
    let simulated = Arm::Kept(KeptArm::open(&format!("{}@1", file.text())).expect("the first"));
    let other = Arm::Kept(KeptArm::open(&format!("{}@2", file.text())).expect("the second"));
    let runs: String = (0..3).map(|run| format!("{HACKBENCH}Time: 0.25{run}\n")).collect();
    let (_a, measured) = kept("kept-sim-a", &runs);
    let refused = |arms: &[Arm]| run(arms, &Fake::quiet(), &plan()).expect_err("refused").to_string();
    let text = refused(&[simulated.clone(), measured.clone()]);
    assert!(
        text.ends_with(
            "one is simulated (a kept simulated result), the other measured (output of hackbench)"
        ),
        "{text}"
    );
    // What was kept twice still says what it is, and so does what was measured.
    let again = run(&[simulated.clone(), other], &Fake::quiet(), &plan()).expect("compared");
    let file = Scratch::file("kept-sim-2.json", &render(&again, Style::Json));
    let twice = Arm::Kept(KeptArm::open(&format!("{}@2", file.text())).expect("the second"));
    assert!(refused(&[measured.clone(), twice]).contains("one is measured (output of hackbench)"));
    let apart = run(&[measured.clone(), measured.clone()], &Fake::quiet(), &plan()).expect("compared");
    let file = Scratch::file("kept-sim-3.json", &render(&apart, Style::Json));
    let kept = Arm::Kept(KeptArm::open(&format!("{}@1", file.text())).expect("the first"));
    assert!(refused(&[simulated, kept.clone()]).ends_with("the other measured (a kept measured result)"));
    run(&[measured, kept], &Fake::quiet(), &plan()).expect("both measured");
}
