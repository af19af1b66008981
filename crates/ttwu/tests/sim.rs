//! `ttwu sim` as users and scripts meet it. Each case is a real process.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn ttwu_with(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ttwu"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("a pipe").write_all(stdin.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn check(args: &[&str], stdin: &str, code: i32, stdout_has: &str, stderr_has: &str) -> String {
    let output = ttwu_with(args, stdin);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let repro = format!("ttwu {}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", args.join(" "));
    assert_eq!(output.status.code(), Some(code), "{repro}");
    assert!(stdout.contains(stdout_has), "no `{stdout_has}` on stdout: {repro}");
    assert!(stderr.contains(stderr_has), "no `{stderr_has}` on stderr: {repro}");
    stdout.into_owned()
}

/// A file name that is free, and free again when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("ttwu-sim-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const SMALL: &str = "workload = \"hackbench:groups=1,fds=2,loops=20,pipe\"\nmachine = \"oracle-d\"\n";

#[test]
fn a_scenario_prints_what_the_original_prints_and_then_what_the_scheduler_did() {
    let text = check(&["sim", "-"], SMALL, 0, "\nTime: 0.00", "");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Running in process mode with 1 groups using 4 file descriptors each (== 4 tasks)");
    assert_eq!(lines[1], "Each sender will pass 20 messages of 100 bytes");
    assert!(lines[3..].iter().all(|line| line.starts_with('#')), "{text}");
    for has in [
        "# hackbench:",
        "oracle-d",
        "linux-6.12",
        "seed 1",
        "# simulated 0.00",
        "# switches ",
        "# decisions: ",
    ] {
        assert!(text.contains(has), "no `{has}`:\n{text}");
    }
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn json_has_the_keys_that_scripts_rely_on() {
    let text = check(&["sim", "-", "--format", "json"], SMALL, 0, "", "");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["schema"], "ttwu/sim/1");
    assert_eq!(json["outcome"], "completed");
    assert_eq!(json["scenario_id"].as_str().map(str::len), Some(32));
    let ns = json["result"]["meters"]["time"]["sum_ns"].as_u64().expect("the time");
    assert!(json["sim_ns"].as_u64().expect("a time") > ns);
    assert_eq!(json["result"]["metrics"]["time"]["value"].as_f64(), Some(ns as f64 / 1e9));
    assert_eq!(json["result"]["metrics"]["time"]["unit"], "s");
    let decisions = json["decisions"].as_object().expect("an object");
    let placed: u64 = decisions.values().map(|count| count.as_u64().expect("a count")).sum();
    let wakeups = json["wakeups"].as_u64().expect("a count");
    assert!(placed > 4 && placed <= wakeups + 8, "{placed} placed, {wakeups} woken");
    for end in ["hit", "budget", "exhausted"] {
        assert!(json["scans"][end].is_u64(), "{end}");
    }
    assert!(json["wall_ns"].as_u64().expect("a time") > 0 && json["events"].as_u64().expect("a count") > 100);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let run = |seed: &str| {
        let text = check(
            &[
                "sim",
                "rpc",
                "--set",
                "workload=rpc:runtime=1,load=20",
                "--set",
                "machine=oracle-d",
                "--set",
                "duration=50ms",
                "--seed",
                seed,
                "--format",
                "json",
            ],
            "",
            0,
            "",
            "cut off",
        );
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        (json["digest"].clone(), json["scenario_id"].clone())
    };
    assert_eq!(run("3"), run("3"));
    assert_ne!(run("3"), run("4"));
}

#[test]
fn a_trace_is_reported_like_any_other() {
    let trace = Scratch::new("run.ttwu");
    let said = check(&["sim", "-", "-o", trace.path()], SMALL, 0, "# trace: ", "");
    assert!(said.contains(" KiB"), "{said}");
    let sim: serde_json::Value =
        serde_json::from_str(&check(&["sim", "-", "--format", "json"], SMALL, 0, "", "")).expect("JSON");
    let text = check(&["report", trace.path(), "--format", "json"], "", 0, "", "");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["health"]["clean"], true);
    // The counter leaves out switches from idle, and the five tasks are forked once each.
    let events = |name: &str| report["events"][name].as_u64().unwrap_or(0);
    assert!(events("sched_switch") > sim["switches"].as_u64().expect("a count"), "{}", report["events"]);
    assert_eq!((events("sched_process_fork"), events("sched_process_exit")), (5, 5), "{}", report["events"]);
    for analysis in ["latency", "placement", "cpus", "migrations", "switches", "wakers", "timehist"] {
        check(&["report", trace.path(), analysis], "", 0, "", "");
    }
}

#[test]
fn a_trace_has_the_format_that_its_name_asks_for() {
    for (name, format) in [("run.pftrace", "perfetto"), ("run.json", "chrome")] {
        let trace = Scratch::new(name);
        check(&["sim", "-", "-q", "-o", trace.path()], SMALL, 0, "# trace: ", "");
        let bytes = std::fs::read(&trace.0).expect("the file");
        assert!(bytes.len() > 1000, "{format}");
        if format == "chrome" {
            let _: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        } else {
            check(&["report", trace.path()], "", 0, "hackbench", "");
        }
    }
    check(&["sim", "-", "-o", "/nonexistent/run.ttwu"], SMALL, 2, "", "cannot write /nonexistent/run.ttwu");
    check(&["sim", "-", "-o", "/dev/null"], SMALL, 0, "Time: ", "");
}

#[test]
fn changes_on_the_command_line_are_changes_of_the_file() {
    let id = |args: &[&str]| check(&[&["sim", "-", "--scenario-id"], args].concat(), SMALL, 0, "", "");
    let printed = check(
        &[
            "sim",
            "-",
            "--print-scenario",
            "--set",
            "policy=linux-6.6",
            "--set",
            "base_slice_ns=1000000",
            "--set=-RUN_TO_PARITY",
            "--set",
            "deepest_idle=1",
            "--set",
            "syscall_ns=2/1",
            "--seed",
            "9",
        ],
        SMALL,
        0,
        "seed = 9",
        "",
    );
    assert!(printed.contains("deepest_idle = 1"), "{printed}");
    assert!(
        printed.contains("linux-6.6")
            && printed.contains("-RUN_TO_PARITY")
            && printed.contains("base_slice_ns=1000000"),
        "{printed}"
    );
    assert_ne!(id(&[]), id(&["--seed", "2"]));
    assert_eq!(id(&["--seed", "2"]), id(&["--set", "seed=2"]));
    let again = ttwu_with(&["sim", "-", "--print-scenario"], &printed);
    assert_eq!(String::from_utf8_lossy(&again.stdout), printed);
}

#[test]
fn faults_are_named_with_their_place() {
    check(&["sim", "hackbensh"], "", 2, "", "did you mean `hackbench`?");
    check(
        &["sim", "-"],
        "workload = \"pipe\"\nmachine = \"oracle-z\"\n",
        2,
        "",
        "standard input:2:11: machine: no machine",
    );
    check(&["sim", "-", "--set", "govenor=menu"], SMALL, 2, "", "--set govenor=menu: ");
    check(&["sim", "-", "--set", "nothing"], SMALL, 2, "", "expected KEY=VALUE");
    check(&["sim", "-"], "\u{0}\u{1}", 2, "", "standard input:1:");
    check(&["sim", "/nonexistent.toml"], "", 2, "", "no file and no example");
}

#[test]
fn examples_are_listed_and_may_name_files_beside_them() {
    check(&["sim", "--list"], "", 0, "rt-app ", "");
    check(&["sim", "rt-app", "--set", "duration=200ms", "-q"], "", 0, "wu_lat", "");
}

#[test]
fn a_stuck_run_is_a_no_and_starved_tasks_are_named() {
    let stuck = "machine = \"oracle-d\"\n[workload]\nname = \"stuck\"\n[workload.objects]\nnever = \"semaphore 0\"\n\
        [[workload.tasks]]\nname = \"waiter\"\ndo = \"wait never\"\n";
    check(&["sim", "-"], stuck, 1, "# stuck: ", "all tasks wait for each other");
    let starved = "machine = { text = \"1 socket x 1 cores x 1 threads\" }\ncosts.preset = \"vm\"\nduration = \"300ms\"\n\
        settings.starved = \"1us\"\n[workload]\nname = \"two\"\nuntil = \"200ms\"\n\
        [[workload.tasks]]\nname = \"hog\"\ncount = 2\ndo = \"forever { run 1s }\"\n";
    check(&["sim", "-"], starved, 0, "", "waited longer than 0.000001 s to run; the longest: hog");
}

#[test]
fn an_interrupt_gives_what_there_is() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ttwu"))
        .args([
            "sim",
            "hackbench",
            "--set",
            "workload=hackbench:groups=10,loops=1000000",
            "--set",
            "duration=3600s",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    std::thread::sleep(std::time::Duration::from_millis(700));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    // It looks for signals every 65536 steps: a moment, and never an hour.
    let code = child.wait().expect("it ends").code();
    let output = child.wait_with_output().expect("its output");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(code, Some(130), "{stdout}{stderr}");
    assert!(
        stdout.contains("# interrupted: simulated ") && stderr.contains("interrupted after"),
        "{stdout}{stderr}"
    );
}

#[test]
fn fuzzing_says_how_much_it_ran_and_what_failed() {
    let text = check(&["fuzz", "--time", "1", "--seed", "5", "--format", "json"], "", 0, "", "");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&json["schema"], &json["seed"]), (&"ttwu/fuzz/1".into(), &5.into()));
    assert!(json["runs"].as_u64().expect("a count") >= 1, "{json}");
    assert_eq!(json["failures"].as_array().map(Vec::len), Some(0), "{json}");
}

#[test]
fn a_place_where_no_trace_can_be_is_found_before_the_run() {
    // A scenario that would run for minutes.
    let long = "workload = \"hackbench:groups=100,loops=1000000\"\nmachine = \"oracle-d\"\n";
    let folder = std::env::temp_dir();
    let folder = folder.to_str().expect("UTF-8");
    for (path, says) in [
        (folder, "it is a directory\n"),
        ("/nonexistent/run.ttwu", "cannot write /nonexistent/run.ttwu: entity not found\n"),
        ("run.svg", "run.svg: no format has this extension; known: .ttwu, .pftrace, .json, .parquet\n"),
    ] {
        check(&["sim", "-", "-o", path], long, 2, "", says);
    }
}

#[test]
fn a_pipe_that_nobody_reads_can_be_interrupted() {
    let fifo = Scratch::new("fifo");
    assert!(Command::new("mkfifo").arg(&fifo.0).status().expect("coreutils").success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_ttwu"))
        .args(["sim", "-q", "pipe", "--set", "workload=pipe:loop=10", "-o", fifo.path()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("runs");
    // It waits for a reader by then, or is still on the way there: a signal ends it in both cases.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("coreutils").success());
    for _ in 0..100 {
        if child.try_wait().expect("a child").is_some() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    child.kill().expect("a child");
    panic!("still there ten seconds after SIGINT");
}

#[test]
fn names_of_the_wrong_kind_get_a_hint() {
    for (args, says) in [
        (
            &["sim", "hackbench:groups=1,pipe,threads"][..],
            "is a workload, and a scenario is expected; its workload is changed by `--set workload=hackbench:groups=1,pipe,threads`\n",
        ),
        (&["sim", "hackbenc:groups=1"][..], "no file and no example is called"),
        (&["sim", "--set", "loops=5"][..], "a workload's own options belong to its line"),
        (
            &["sim", "--set", "policy=linux-6.13.7"][..],
            "unknown kernel `linux-6.13.7`; the nearest is linux-6.12;",
        ),
    ] {
        check(args, "", 2, "", says);
    }
}

#[test]
fn a_simulated_trace_has_the_reasons_of_its_placements() {
    let trace = Scratch::new("explained.ttwu");
    check(
        &["sim", "-q", "-", "--set=-SIS_UTIL", "-o", trace.path()],
        &SMALL.replace("groups=1,fds=2", "groups=3,fds=4"),
        0,
        "",
        "",
    );
    let text =
        check(&["explain", trace.path(), "--against", "linux-5.5"], "", 0, "as the simulator decided", "");
    assert!(text.contains(".ttwu, linux-6.12 -SIS_UTIL\n"), "the trace's own policy: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json = check(
        &["explain", trace.path(), "--limit", "0", "--against", "linux-5.5", "--format", "json"],
        "",
        0,
        "",
        "",
    );
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["schema"], &json["source"]), (&"ttwu/explain/1".into(), &"decided".into()));
    let wakeups = json["wakeups"].as_array().expect("a list");
    assert_eq!(json["explained"].as_u64(), Some(wakeups.len() as u64));
    assert!(wakeups.len() > 20, "{}", wakeups.len());
    for wakeup in wakeups {
        assert_eq!((&wakeup["chosen"], &wakeup["certain"]), (&wakeup["model"], &true.into()), "{wakeup}");
        if wakeup["rule"].as_str().is_some_and(|rule| rule.ends_with("_idle")) {
            let looks = wakeup["candidates"].as_array().expect("a list");
            let found = |look: &serde_json::Value| look["cpu"] == wakeup["chosen"] && look["idle"] == true;
            assert!(looks.iter().any(found), "{wakeup}");
        }
    }
    let rules = json["rules"].as_object().expect("counts").values();
    assert_eq!(rules.map(|count| count.as_u64().expect("a count")).sum::<u64>(), wakeups.len() as u64);
    // Named by number, a wake-up is the same.
    let number = wakeups[7]["index"].to_string();
    let one = check(&["explain", trace.path(), "--wakeup", &number, "--format", "json"], "", 0, "", "");
    let one: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(one["wakeups"][0]["at_ns"], wakeups[7]["at_ns"]);
    check(
        &["explain", trace.path(), "--wakeup", "1000000"],
        "",
        1,
        "",
        "there is no wake-up 1000000: the trace has",
    );
    // The same rules are no difference.
    let own = "linux-6.12 -SIS_UTIL";
    let same = check(&["explain", trace.path(), "--against", own, "--format", "json"], "", 0, "", "");
    let same: serde_json::Value = serde_json::from_str(&same).expect("JSON");
    assert_eq!(same["counterfactual_differs"], 0, "{same:#}");
    assert!(same["counterfactual_compared"].as_u64() > Some(10), "{same:#}");
    // A copy keeps the reasons; what cannot hold them says so.
    let copy = Scratch::new("copy.ttwu");
    check(&["convert", trace.path(), copy.path()], "", 0, "", "events read");
    check(&["explain", copy.path()], "", 0, "as the simulator decided", "");
    let flow = Scratch::new("copy.pftrace");
    check(&["convert", trace.path(), flow.path()], "", 0, "", "cannot hold the simulator's reasons");
    check(
        &["explain", trace.path(), "--kernel", "6.6"],
        "",
        2,
        "",
        "--against puts its wake-ups to other rules",
    );
    check(&["explain", trace.path(), "--against", "linux-6.7"], "", 2, "", "the nearest is linux-6.6");
}
