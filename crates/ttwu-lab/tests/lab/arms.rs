//! Words into arms.

use ttwu_lab::arm::{Arm, ArmError, Defaults, KeptArm, parse_arms};
use ttwu_sim::{Nothing, PreemptionModel};

fn defaults() -> Defaults {
    Defaults {
        policy: "linux-6.12".to_owned(),
        machine: "uma-8".to_owned(),
        workload: "pipe:loop=10".to_owned(),
        costs: None,
        sets: Vec::new(),
    }
}

fn parse(words: &[&str]) -> Result<Vec<Arm>, ArmError> {
    parse_arms(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &defaults(), &Nothing)
}

/// Label, policy and workload of each arm.
fn check(words: &[&str], expect: &[(&str, &str, &str)]) {
    let arms = parse(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let found: Vec<(String, String, String)> = arms
        .iter()
        .map(|arm| {
            let Arm::Simulated(arm) = arm else { panic!("{words:?}: simulated") };
            let scenario = arm.cells[0].setup.template();
            (arm.label.clone(), scenario.policy.to_string(), scenario.workload.name.clone())
        })
        .collect();
    let found: Vec<_> = found.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    assert_eq!(found, expect, "{words:?}");
}

#[test]
fn a_base_begins_an_arm_and_a_change_changes_the_one_before() {
    check(
        &["linux-6.6", "-RUN_TO_PARITY", "linux-6.12", "hz=250"],
        &[
            ("linux-6.6 -RUN_TO_PARITY", "linux-6.6 -RUN_TO_PARITY", "pipe:loop=10"),
            ("linux-6.12 hz=250", "linux-6.12 hz=250", "pipe:loop=10"),
        ],
    );
    check(
        &["linux-6.6 pipe:loop=20", "6.12"],
        &[("linux-6.6 pipe:loop=20", "linux-6.6", "pipe:loop=20"), ("6.12", "linux-6.12", "pipe:loop=10")],
    );
    check(
        &["linux-6.12", "linux-6.12"],
        &[("linux-6.12", "linux-6.12", "pipe:loop=10"), ("linux-6.12 (again)", "linux-6.12", "pipe:loop=10")],
    );
}

#[test]
fn a_lone_arm_with_changes_is_compared_without_them() {
    check(
        &["linux-6.6", "-RUN_TO_PARITY"],
        &[
            ("linux-6.6", "linux-6.6", "pipe:loop=10"),
            ("linux-6.6 -RUN_TO_PARITY", "linux-6.6 -RUN_TO_PARITY", "pipe:loop=10"),
        ],
    );
    assert_eq!(parse(&["linux-6.6"]).expect_err("one"), ArmError::TooFew { found: 1 });
    assert_eq!(parse(&[]).expect_err("none"), ArmError::TooFew { found: 0 });
}

#[test]
fn settings_and_costs_change_an_arm() {
    let arms = parse(&["linux-6.12", "preemption=full", "ipi_send_ns=999"]).expect("an arm");
    let Arm::Simulated(changed) = &arms[1] else { panic!("simulated") };
    let scenario = changed.cells[0].setup.template();
    assert_eq!(scenario.settings.preemption, PreemptionModel::Full);
    assert_eq!(scenario.costs.get(ttwu_sim::Cost::IpiSend), 999);
    let Arm::Simulated(plain) = &arms[0] else { panic!("simulated") };
    assert_eq!(plain.cells[0].setup.template().costs.get(ttwu_sim::Cost::IpiSend), 150);
}

#[test]
fn a_range_is_several_workloads_with_names_that_tell_them_apart() {
    let arms = parse(&["linux-6.6 hackbench:groups=1..4*2,pipe", "linux-6.12 hackbench:groups=1..4*2,pipe"]);
    let arms = arms.expect("arms");
    let Arm::Simulated(arm) = &arms[0] else { panic!("simulated") };
    let names: Vec<&str> = arm.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["groups=1", "groups=2", "groups=4"]);
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let refusal = |words: &[&str]| parse(words).expect_err("refused").to_string();
    assert_eq!(
        refusal(&["linux-6.6", "linux-6,12"]),
        "`linux-6,12` is no kernel, machine, workload or file; did you mean `linux-6.12`?"
    );
    assert_eq!(
        refusal(&["linux-6.1", "linux-6.13"]),
        "`linux-6.13` is no kernel, machine, workload or file; did you mean `linux-6.12`?"
    );
    assert_eq!(
        refusal(&["linux-6.6", "preemtion=full"]),
        "unknown setting `preemtion`; did you mean `preemption`?"
    );
    assert_eq!(
        refusal(&["linux-6.6", "ipi_snd_ns=1"]),
        "unknown setting `ipi_snd_ns`; did you mean `ipi_send_ns`?"
    );
    assert_eq!(
        refusal(&["linux-6.6", "-RUN_TO_PARTY"]),
        "linux-6.6 -RUN_TO_PARTY: unknown setting `RUN_TO_PARTY`; did you mean `RUN_TO_PARITY`?"
    );
    assert_eq!(
        refusal(&["linux-6.6", "hackbnech:g=1"]),
        "`hackbnech:g=1` is no kernel, machine, workload or file; did you mean `hackbench`?"
    );
    assert_eq!(
        refusal(&["-RUN_TO_PARITY"]),
        "`-RUN_TO_PARITY` changes what stands before it, and nothing does; name a policy, machine or workload first"
    );
    assert!(refusal(&["linux-6.6", "preemption=ful"]).contains("expected"));
}

/// A file that is gone when the test ends.
pub(crate) struct Scratch(pub(crate) std::path::PathBuf);

impl Scratch {
    pub(crate) fn file(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ttwu-lab-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("temporary file");
        Self(path)
    }

    pub(crate) fn text(&self) -> String {
        self.0.to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn an_output_gives_one_value_a_run_and_failed_runs_none() {
    let file = Scratch::file(
        "hackbench",
        "$ hackbench\nRunning in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\n\
         Each sender will pass 100 messages of 100 bytes\nTime: 0.250\n[exit 0]\n\
         $ hackbench\nRunning in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\n\
         Each sender will pass 100 messages of 100 bytes\nTime: 9.000\n[exit 1]\n",
    );
    let arm = KeptArm::open(&file.text()).expect("an arm");
    assert_eq!((arm.series[0].name.as_str(), arm.series[0].unit.as_str()), ("time", "s"));
    assert_eq!(arm.series[0].values, [0.25]);
    let empty = Scratch::file("empty", "nothing here\n");
    let refusal = KeptArm::open(&empty.text()).expect_err("nothing");
    assert!(
        refusal.to_string().ends_with("has no result to compare: no known benchmark output"),
        "{refusal}"
    );
}

#[test]
fn a_recording_is_one_run_of_an_arm_and_a_folder_of_them_several() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../ttwu/fixtures/messaging.ttwu");
    let arm = KeptArm::open(recording).expect("an arm");
    assert_eq!(arm.kind, "a recording");
    let value = |name: &str| {
        let series = arm.series.iter().find(|series| series.name == name);
        series.unwrap_or_else(|| panic!("{name}: {arm:?}")).values.clone()
    };
    let [delay] = value("sched-messaging delay_avg")[..] else { panic!("{arm:?}") };
    assert!(delay > 0.01 && delay < 10.0, "{delay} ms");
    assert_eq!(value("switch_rate").len(), 1);
    let folder = std::env::temp_dir().join(format!("ttwu-lab-{}-recordings", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["a.ttwu", "b.ttwu"] {
        std::fs::copy(recording, folder.join(name)).expect("copied");
    }
    let both = KeptArm::open(folder.to_str().expect("UTF-8")).expect("an arm");
    std::fs::remove_dir_all(&folder).expect("removed");
    let found = both.series.iter().find(|series| series.name == "sched-messaging delay_avg").expect("there");
    assert_eq!(found.values, [delay, delay]);
}

const RUN: &str = "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\n\
                   Each sender will pass 100 messages of 100 bytes\n";

#[test]
fn files_of_a_folder_without_a_result_are_named_and_do_not_count() {
    let folder = std::env::temp_dir().join(format!("ttwu-lab-{}-left-out", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, content) in [
        ("1", format!("{RUN}Time: 0.250\n")),
        ("2", format!("{RUN}Time: nan\n")),
        ("3", String::new()),
        ("4", format!("$ hackbench\n{RUN}Time: 0.300\n[exit 1]\n")),
        ("5", format!("{RUN}Time: 0.260\n")),
    ] {
        std::fs::write(folder.join(name), content).expect("a file");
    }
    let arm = KeptArm::open(folder.to_str().expect("UTF-8")).expect("an arm");
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(arm.series[0].values, [0.25, 0.26]);
    assert_eq!(arm.left_out.as_deref(), Some("3 of 5 files have no result: 2, 3, 4"));
}

fn kept_json(samples: &str) -> String {
    format!(
        "{{\"schema\": \"ttwu/compare/1\", \"seeds\": null, \"arms\": [{{\"label\": \"a\"}}, {{\"label\": \"b\"}}], \
         \"rows\": [{{\"name\": \"time\", \"unit\": \"s\", \"better\": \"lower\", \
         \"arms\": [{{\"samples\": [{samples}]}}, {{\"samples\": [1.0]}}]}}]}}"
    )
}

#[test]
fn values_that_no_run_can_have_are_refused_with_file_and_value() {
    for (samples, end) in [
        ("1.0, 1e308", "`time` of 1e308 s is beyond what can be computed with (1e-100 to 1e100)"),
        ("1e-300", "`time` of 1e-300 s is beyond what can be computed with (1e-100 to 1e100)"),
        ("1.0, -0.5", "`time` of -0.5 s is a negative time"),
        ("1.0, null", "a sample of `time` is null, which is no number"),
        ("\"inf\"", "a sample of `time` is \"inf\", which is no number"),
    ] {
        let file = Scratch::file("implausible.json", &kept_json(samples));
        let refusal = KeptArm::open(&format!("{}@1", file.text())).expect_err("refused").to_string();
        assert!(refusal.ends_with(&format!("{}: {end}", file.text())), "{refusal}");
        KeptArm::open(&format!("{}@2", file.text())).expect("the other arm is sound");
    }
}

#[test]
fn an_arm_that_a_kept_comparison_does_not_have_is_said_with_those_it_has() {
    let file = Scratch::file("choose.json", &kept_json("1.0"));
    let name = file.text();
    for chosen in ["0", "3", "x", ""] {
        let refusal = KeptArm::open(&format!("{name}@{chosen}")).expect_err("refused").to_string();
        let end = format!("there is no arm `{chosen}` in {name}: {name}@1 is a, {name}@2 is b");
        assert!(refusal.ends_with(&end), "{refusal}");
    }
    let plain = Scratch::file("choose-plain", &format!("{RUN}Time: 0.250\n"));
    let refusal = KeptArm::open(&format!("{}@2", plain.text())).expect_err("refused").to_string();
    assert!(refusal.ends_with("is no kept comparison: there is no arm `2` in it"), "{refusal}");
}
