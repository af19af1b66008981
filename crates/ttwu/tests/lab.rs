//! The laboratory's commands as users and scripts meet them. Each case is a real process.

use std::process::{Command, Output, Stdio};

fn ttwu(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ttwu")).args(args).stdin(Stdio::null()).output().expect("runs")
}

#[track_caller]
fn check(args: &[&str], code: i32, stderr_has: &str) -> String {
    let output = ttwu(args);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let repro = format!("ttwu {}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", args.join(" "));
    assert_eq!(output.status.code(), Some(code), "{repro}");
    assert!(stderr.contains(stderr_has), "no `{stderr_has}` on stderr: {repro}");
    stdout.into_owned()
}

/// A small workload, so that a case takes no time.
const SMALL: [&str; 4] = ["--workload", "hackbench:groups=1,fds=5,loops=10,pipe", "--machine", "uma-8"];

#[test]
fn a_comparison_names_arms_seeds_verdict_and_why_in_80_columns() {
    let text = check(&[&["compare", "linux-6.6", "linux-6.12"][..], &SMALL].concat(), 0, "");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    for part in ["linux-6.6 ", "linux-6.12", "with the same seeds", "time, s (-)", "why:"] {
        assert!(text.contains(part), "no `{part}`\n{text}");
    }
}

#[test]
fn a_feature_is_no_flag_wherever_it_stands() {
    let words = ["compare", "linux-6.12", "-RUN_TO_PARITY", "--seeds", "3", "--format", "json"];
    let text = check(&[&words[..], &SMALL].concat(), 0, "");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["schema"], "ttwu/compare/1");
    assert_eq!(json["arms"][1]["label"], "linux-6.12 -RUN_TO_PARITY");
    assert_eq!(json["rows"][0]["arms"][0]["n"], 3);
    for key in ["name", "unit", "better", "arms", "effect_pct", "ci_pct", "verdict"] {
        assert!(json["rows"][0].get(key).is_some(), "{key}\n{text}");
    }
}

#[test]
fn any_number_of_threads_prints_the_same() {
    let with = |threads: &str| {
        let words = ["compare", "linux-6.1", "linux-6.12", "--seeds", "4", "--style", "csv", "-j", threads];
        check(&[&words[..], &SMALL].concat(), 0, "")
    };
    assert_eq!(with("1"), with("5"));
}

#[test]
fn bad_arms_are_usage_errors_that_suggest() {
    check(&["compare", "linux-6.1", "linux-6,12"], 2, "did you mean `linux-6.12`?");
    check(&["compare", "linux-6.12"], 2, "expected two arms or more, or one with a change; found 1");
    check(&["compare", "linux-6.12", "+RUN_TO_PARTY"], 2, "did you mean `RUN_TO_PARITY`?");
    check(&["compare", "linux-6.1", "linux-6.12", "--workload", "hackbnech"], 2, "did you mean `hackbench`?");
    check(
        &["compare", "linux-6.1", "linux-6.12", "--machine", "kunpeng"],
        2,
        "no machine and no file is called `kunpeng`",
    );
    check(
        &["compare", "linux-6.1", "linux-6.12", "--set", "duration=1ms"],
        2,
        "were cut off at 1 ms of simulated time",
    );
    check(&["compare", "linux-6.1", "linux-6.12", "--on", "host"], 2, "cannot run on `host`: ");
    check(
        &["compare", "linux-6.1", "linux-6.12", "--set", "preemtion=full"],
        2,
        "did you mean `preemption`?",
    );
    check(&["compare", "linux-6.1", "linux-6.12", "--precision", "0"], 2, "0.5%");
}

#[test]
fn mmtests_tables_are_mmtests_own_below_one_line() {
    let Some(golden) = ttwu_testing::shared("golden/mmtests") else { return };
    let tree = golden.join("work/hb").to_string_lossy().into_owned();
    let arms = ["6.1.0-vanilla", "6.1.0-patchA", "6.1.0-patchB"];
    for (name, more) in [
        ("c1-hackbench.out", &[][..]),
        ("c1-hackbench-sig.out", &["--print-significance"]),
        ("c1-hackbench-ratio.out", &["--print-ratio"]),
    ] {
        let golden = std::fs::read_to_string(golden.join(name)).expect(name);
        let (_, golden) = golden.split_once('\n').expect("the command");
        let golden = golden.split("[exit ").next().expect("the table");
        let words = ["compare", "--mmtests", &tree, "--benchmark", "hackbench-process-pipes"];
        let words = [&words[..], &arms, &["--style", "mmtests-2024"], more].concat();
        let printed = check(&words, 0, "");
        let (first, table) = printed.split_once('\n').expect("the line above");
        assert!(
            first.starts_with("# style mmtests-2024; a star: |difference| > 1.96 (sd1 + sd2)"),
            "{first}"
        );
        assert_eq!(table, golden, "{name}");
    }
    check(
        &["compare", "--mmtests", &tree, "--benchmark", "hackbnech", arms[0]],
        2,
        "unknown benchmark `hackbnech`",
    );
}

#[test]
fn an_mmtests_tree_is_an_arm_of_our_own_comparison() {
    let Some(golden) = ttwu_testing::shared("golden/mmtests") else { return };
    let tree = golden.join("work/hb").to_string_lossy().into_owned();
    let words = ["compare", "--mmtests", &tree, "--benchmark", "hackbench-process-pipes"];
    let with =
        |more: &[&str]| -> Vec<String> { words.iter().chain(more).map(|word| (*word).to_owned()).collect() };
    let check = |more: &[&str], code, stderr_has| {
        let words = with(more);
        check(&words.iter().map(String::as_str).collect::<Vec<_>>(), code, stderr_has)
    };
    let text = check(&["6.1.0-vanilla", "6.1.0-patchA", "--format", "json"], 0, "");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["arms"][1]["label"], "6.1.0-patchA");
    let row = &json["rows"][0];
    assert_eq!(
        (&row["name"], &row["unit"], &row["arms"][0]["n"]),
        (&"time-1".into(), &"s".into(), &10.into())
    );
    // 0.2666 against 0.2195 s, as in the golden table: 17.67 % less.
    assert!((row["effect_pct"].as_f64().expect("an effect") + 17.67).abs() < 0.01, "{row}");
    assert_eq!(row["verdict"], "better");
    let text = check(&["6.1.0-vanilla", "6.1.0-patchA"], 0, "");
    assert!(
        text.contains("mmtests' hackbench-process-pipes, 1 iteration") && text.contains("better"),
        "{text}"
    );
    check(&["6.1.0-vanilla", "6.1.0-patchC"], 2, "did you mean `6.1.0-patchA`?");
    check(&["6.1.0-vanilla", "6.1.0-patchC", "--style", "mmtests-2024"], 2, "no arm `6.1.0-patchC` below ");
    check(
        &["6.1.0-vanilla", "6.1.0-patchA", "--sub-heading", "nope"],
        2,
        "begins with `nope`: there are time-1, time-4, time-7",
    );
    check(
        &["6.1.0-vanilla", "6.1.0-patchA", "--style", "mmtests-2024", "--sub-heading", "nope"],
        2,
        "begins with `nope`: there are time-1, time-4, time-7",
    );
    check(
        &["6.1.0-vanilla", "6.1.0-patchA", "--style", "mmtests-2024", "--altreport", "nope"],
        2,
        "has no report `nope` in style mmtests-2024: there is the main report only",
    );
    check(&["6.1.0-vanilla", "6.1.0-patchA", "--style", "strict", "--print-ratio"], 2, "mmtests' own tables");
}

#[test]
fn a_recording_is_no_simulation_and_one_run_tells_nothing() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/messaging.ttwu");
    check(&["compare", recording, "linux-6.12"], 2, "one is simulated, the other is a recording");
    let text = check(&["compare", recording, recording], 0, "");
    assert!(text.contains("a single run has no spread") && !text.contains("better"), "{text}");
}

#[test]
fn an_attribution_has_factors_shares_and_the_generation() {
    let words = ["attribute", "linux-6.6", "linux-6.12", "--seeds", "3", "--orders", "1", "--format", "json"];
    let text = check(&[&words[..], &SMALL].concat(), 0, "");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["schema"], "ttwu/attribute/1");
    let features = json["features"].as_array().expect("a list");
    for name in ["DELAY_DEQUEUE", "generation"] {
        assert!(features.iter().any(|feature| feature["name"] == name), "{name}\n{text}");
    }
    let sum: f64 = features.iter().filter_map(|feature| feature["effect_pct"].as_f64()).sum();
    let total = json["total_pct"].as_f64().expect("a number");
    assert!((sum - total).abs() < 1e-6, "{sum} {total}");
    check(&["attribute", "linux-6.12", "uma-8"], 2, "expected two policies on one machine and workload");
}

/// A folder that is gone when the test ends.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ttwu-lab-cli-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_sweep_is_run_in_parts_and_goes_on() {
    let folder = Folder::new("sweep");
    let plan = folder.0.join("plan.toml");
    let text = "machines = [\"uma-8\"]\npolicies = [\"linux-6.6\", \"linux-6.12\"]\n\
                workloads = [\"pipe:loop=20\"]\nseeds = 3\n";
    std::fs::write(&plan, text).expect("written");
    let plan = plan.to_str().expect("UTF-8");
    let json = |words: &[&str]| -> serde_json::Value {
        let text = check(&[&["sweep", plan, "--format", "json"], words].concat(), 0, "");
        serde_json::from_str(&text).expect("JSON")
    };
    let first = json(&["--shard", "1/2"]);
    assert_eq!((&first["cells"], &first["done"], &first["failed"]), (&3.into(), &3.into(), &0.into()));
    let rest = json(&[]);
    assert_eq!((&rest["cells"], &rest["done"], &rest["run"]), (&6.into(), &6.into(), &3.into()));
    let dataset = std::fs::read_to_string(folder.0.join("plan/results.csv")).expect("a dataset");
    assert_eq!(
        dataset.lines().filter(|line| line.contains(",row,pipe,us/op,lower,")).count(),
        6,
        "{dataset}"
    );
    check(&["sweep", plan, "--shard", "3/2"], 2, "counted from 1");
    check(&["sweep", "/nowhere.toml"], 2, "cannot read /nowhere.toml");
}

/// What a run prints that gets SIGINT after so long; it must still run by then, or nothing is tested.
fn interrupted_after(ms: u64, args: &[&str]) -> serde_json::Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ttwu"))
        .args(args)
        .args(["--seeds", "100000", "-q", "--format", "json", "-j", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    std::thread::sleep(std::time::Duration::from_millis(ms));
    assert!(child.try_wait().expect("its state").is_none(), "{args:?} has ended");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{args:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["interrupted"], true, "{args:?}");
    json
}

#[test]
fn an_interrupted_comparison_gives_what_there_is_and_130() {
    let mut args = vec!["compare", "linux-6.6", "linux-6.12"];
    args.extend(SMALL);
    let json = interrupted_after(1500, &args);
    let count = json["rows"][0]["arms"][0]["n"].as_u64().expect("a number");
    assert!((3..100_000).contains(&count), "{count}");
}

#[test]
fn an_interrupted_reproduction_prints_what_there_is_and_130() {
    let json = interrupted_after(2000, &["reproduce", "eevdf"]);
    assert_eq!(json["threads"][0]["name"], "eevdf");
    assert!(json["threads"][0]["seeds"].as_u64().expect("a number") < 100_000);
}

#[test]
fn a_cell_of_a_reproduction_is_a_scenario_file() {
    let text = check(&["reproduce", "dma", "--list"], 0, "");
    let (cell, path) = text.lines().next().and_then(|line| line.split_once("  ")).expect("a line");
    assert_eq!((cell.trim(), path.trim()), ("dma/epyc/vanilla", "scenarios/reproduce/dma/epyc/vanilla.toml"));
    let folder = Folder::new("cells");
    let written = check(&["reproduce", "dma", "--write", folder.0.to_str().expect("UTF-8")], 0, "");
    assert!(written.starts_with(&format!("{} scenarios written", text.lines().count())), "{written}");
    let cell = folder.0.join("dma/epyc/vanilla.toml");
    check(&["sim", cell.to_str().expect("UTF-8"), "--format", "json"], 0, "");
}
