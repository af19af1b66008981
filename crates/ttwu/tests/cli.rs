//! The command as users and scripts meet it: output, exit codes, bad input. Each case is a real process.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn ttwu(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ttwu")).args(args).stdin(Stdio::null()).output().expect("runs")
}

#[track_caller]
fn check(args: &[&str], code: i32, stdout_has: &str, stderr_has: &str) -> String {
    let output = ttwu(args);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let repro = format!("ttwu {}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", args.join(" "));
    assert_eq!(output.status.code(), Some(code), "{repro}");
    assert!(stdout.contains(stdout_has), "no `{stdout_has}` on stdout: {repro}");
    assert!(stderr.contains(stderr_has), "no `{stderr_has}` on stderr: {repro}");
    stdout.into_owned()
}

fn sample() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/messaging.ttwu").to_owned()
}

/// A file of this content that is gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("ttwu-cli-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("temporary file");
        Self(path)
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

#[test]
fn the_embedded_sample_is_explained_on_one_screen() {
    let text = check(&["report", "sample"], 0, "1 100 wake-ups", "");
    assert!(text.lines().count() <= 42, "more than a screen");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "more than 80 columns: {line}");
    }
    assert!(!text.contains('\u{1b}'), "colours into a pipe");
}

#[test]
fn every_analysis_has_a_view_and_a_json_part() {
    for name in ["latency", "placement", "cpus", "migrations", "switches", "irqs", "wakers", "timehist"] {
        let text = check(&["report", &sample(), name], 0, "", "");
        assert!(!text.trim().is_empty(), "{name}");
    }
    let json = check(&["report", &sample(), "--format", "json"], 0, "\"ttwu/report/1\"", "");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for key in ["health", "events", "cpus", "span_ns", "latency", "placement", "migrations", "switches"] {
        assert!(value.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(value["events"]["sched_switch"], 1764);
    assert_eq!(value["placement"]["total"], 1100);
    assert_eq!(value["health"]["clean"], false);
    for key in ["clean", "lost_events", "lost_windows", "unknown_events", "notes"] {
        assert!(value["health"].get(key).is_some(), "health.{key} is missing");
    }
    for key in [
        "name",
        "pids",
        "runtime_ns",
        "switches",
        "delays",
        "delay_ns_sum",
        "delay_ns_avg",
        "delay_ns_max",
        "delay_ns",
        "censored",
    ] {
        assert!(value["latency"]["tasks"][0].get(key).is_some(), "latency.tasks[].{key} is missing");
    }
    for key in ["total", "by_prev", "by_waker", "context", "stacked_while_idle"] {
        assert!(value["placement"].get(key).is_some(), "placement.{key} is missing");
    }
    for key in ["voluntary", "wakeup_preemption", "tick", "yield", "exit", "unknown"] {
        assert!(value["switches"].get(key).is_some(), "switches.{key} is missing");
    }
}

#[test]
fn what_was_not_recorded_is_not_measured() {
    let output = ttwu(&["report", &sample(), "irqs"]);
    let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
    assert!(text.contains("not measured"), "{text}");
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let one_line = |args: &[&str], says: &str| {
        check(args, 2, "", says);
        let stderr = ttwu(args).stderr;
        assert_eq!(String::from_utf8_lossy(&stderr).lines().count(), 1, "{args:?}");
    };
    one_line(&["report", "/nonexistent/file"], "/nonexistent/file");
    one_line(&["report", "/"], "");
    let empty = Scratch::new("empty", b"");
    one_line(&["report", empty.path()], "empty");
    let noise = Scratch::new("noise", &[0x5a; 4096]);
    one_line(&["report", noise.path()], "format");
    let elf = Scratch::new("elf", b"\x7fELF\x02\x01\x01");
    one_line(&["report", elf.path()], "ELF");
    let magic = Scratch::new("magic", b"PERFILE2");
    one_line(&["report", magic.path()], "perf.data");
    one_line(&["topology", "no-such-machine"], "no-such-machine");
    one_line(&["policy", "linux-6.12", "-RUN_TO_PARTY"], "RUN_TO_PARITY");
    one_line(&["conform", "/nonexistent"], "/nonexistent");
    one_line(&["report", "/nonexistent/a\nb"], r"/nonexistent/a\nb: No such file or directory (os error 2)");
    one_line(&["report", &sample(), "--cpu", "abc"], "abc");
    one_line(&["report", &sample(), "timehist", "--show", "wz"], "unknown letter `z`");
    one_line(&["topology", "/dev/zero"], "zero bytes");
    let stderr = ttwu(&["report", "/nonexistent"]).stderr;
    assert_eq!(
        String::from_utf8_lossy(&stderr),
        "ttwu: cannot read /nonexistent: No such file or directory (os error 2)\n"
    );
}

/// A trace file is put to the model without a folder around it: one with the probes gives all scores, a plain one those of
/// plain events.
#[test]
fn conform_takes_trace_files() {
    let machine = Scratch::new("machine", b"2 sockets x 4 cores");
    let probes =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../ttwu-conform/fixtures/6.12-b-hackbench-P1/trace.dat.zst");
    let says = "placement_given         99.44 % (1249 of 1256)";
    check(&["conform", probes, "--machine", machine.path()], 0, says, "");
    let json = ttwu(&["conform", probes, "--machine", machine.path(), "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let row = &json["kernels"]["linux-6.12"];
    assert_eq!(row["placement_given"]["agree"], 1249);
    assert_eq!(row["placement_reconstructed"]["unreconstructible"], 278);
    assert_eq!(row["placement_reconstructed"]["always_prev"]["agree"], 786);
    assert_eq!(row["pick"]["total"], 722);
    assert!(row["examples"].as_array().is_some_and(|examples| !examples.is_empty()));
    let plain = ["conform", &sample(), "--kernel", "6.12", "--machine", machine.path()];
    check(&plain, 0, "without probes: only what plain events give", "");
    check(&["conform", probes], 2, "", "--machine");
}

#[test]
fn usage_errors_suggest_and_exit_with_2() {
    check(&["reprot", "x"], 2, "", "report");
    check(&["report"], 2, "", "FILE");
    check(&["report", &sample(), "latencies"], 2, "", "latency");
    check(&["record", "--duration", "minus", "--", "true"], 2, "", "minus");
}

#[test]
fn a_file_cut_anywhere_reads_up_to_there() {
    let whole = std::fs::read(sample()).expect("sample");
    for cut in [20, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        let file = Scratch::new(&format!("cut{cut}"), &whole[..cut]);
        let output = ttwu(&["report", file.path()]);
        let code = output.status.code();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(code, Some(0 | 2)), "cut at {cut}: {code:?} {stderr}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ttwu"))
        .args(["report", &sample(), "timehist"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn standard_output_and_error_may_be_full() {
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("opens");
    let code = |args: &[&str], out: Stdio, err: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ttwu"));
        command.args(args).stdout(out).stderr(err).status().expect("runs").code()
    };
    assert_eq!(code(&["report", "/nonexistent"], Stdio::null(), full().into()), Some(2));
    assert_eq!(code(&["completions", "bash"], full().into(), Stdio::null()), Some(2));
    assert_eq!(code(&[], Stdio::null(), full().into()), Some(0));
}

/// As on a full disk: no file may have a byte. Standard output is a pipe, which the limit does not mean.
fn ttwu_without_room(before: &str, args: &[&str]) -> Output {
    let line = format!("trap '' XFSZ; ulimit -f 0; exec {before} \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &line, "sh", env!("CARGO_BIN_EXE_ttwu")]).args(args);
    command.stdin(Stdio::null()).output().expect("runs")
}

/// A folder of its own, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ttwu-cli-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("temporary folder");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }

    /// All that is in it, folders below too.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_printed_result() {
    let folder = Folder::new("full");
    let (page, run, chrome) = (folder.file("page.html"), folder.file("run.ttwu"), folder.file("run.json"));
    let pipe = ["sim", "-q", "pipe", "--set", "workload=pipe:loop=10", "-o"];
    let report = sample();
    for (args, out, prints) in [
        (&["report", &report, "--html"][..], &page, "wake-ups"),
        (&pipe, &run, "ops/sec"),
        (&pipe, &chrome, "ops/sec"),
    ] {
        let args = [args, &[out.as_str()]].concat();
        let output = ttwu_without_room("", &args);
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stdout.contains(prints), "{args:?}: {stdout}");
        assert!(stderr.contains("cannot write") && stderr.contains("too large"), "{args:?}: {stderr}");
        assert_eq!(folder.files(), Vec::<PathBuf>::new(), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_left_without_empty_files() {
    let folder = Folder::new("full-rest");
    let recording = folder.file("run.ttwu");
    let output = ttwu_without_room("", &["record", "-q", "-o", &recording, "--", "true"]);
    // 3: this machine does not allow recordings at all.
    assert!(matches!(output.status.code(), Some(2 | 3)), "{output:?}");
    assert_eq!(folder.files(), Vec::<PathBuf>::new(), "{output:?}");

    let plan = folder.file("plan.toml");
    let text =
        "machines = [\"uma-8\"]\npolicies = [\"linux-6.12\"]\nworkloads = [\"pipe:loop=10\"]\nseeds = 1\n";
    std::fs::write(&plan, text).expect("a file");
    let output = ttwu_without_room("", &["sweep", "-q", &plan]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("too large"), "{output:?}");
    assert_eq!(folder.files(), [PathBuf::from(plan)], "{output:?}");
}

#[test]
fn a_calibration_tries_the_place_before_it_measures() {
    let output = ttwu(&["calibrate", "-o", "/nonexistent/host.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "ttwu: cannot write /nonexistent/host.toml: entity not found\n"
    );
}

/// One CPU in the mask, and no room for the file.
#[test]
fn a_calibration_keeps_to_its_mask_and_prints_what_it_cannot_write() {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("Linux");
    let first: String = list.trim().chars().take_while(char::is_ascii_digit).collect();
    let folder = Folder::new("calibrate");
    let file = folder.file("host.toml");
    let output = ttwu_without_room(
        &format!("taskset -c {first}"),
        &["calibrate", "-q", "--rounds", "1", "--format", "json", "-o", &file],
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(&format!("cannot write {file}: ")), "{stderr}");
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(json["measured"]["system_call"]["samples"].as_u64() >= Some(6), "{json:#}");
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        for what in ["pipe_other_cpu", "line", "busy_wake_far", "socket_far"] {
            let missing = &json["measured"][what]["missing"];
            assert_eq!(missing, "no such pair of CPUs in the affinity mask", "{what}");
        }
    }
}

#[test]
fn standard_output_is_no_place_for_a_file() {
    for path in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        for args in [
            &["sim", "rpc", "-o", path][..],
            &["report", "sample", "--html", path],
            &["calibrate", "-o", path],
        ] {
            let says = format!("cannot write {path}: standard output has the printed result");
            assert_eq!(check(args, 2, "", &says), "");
        }
    }
    check(&["record", "-o", "-", "--", "true"], 2, "", "cannot write -: ");
    assert!(!std::path::Path::new("-").exists());
    // By its own name.
    let both = Scratch::new("both.ttwu", b"");
    let out = std::fs::File::options().write(true).open(&both.0).expect("opens");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ttwu"));
    command.args(["sim", "pipe", "-o", both.path()]).stdout(out).stderr(Stdio::null());
    assert_eq!(command.status().expect("runs").code(), Some(2));
}

#[test]
fn policies_and_their_differences_fit_80_columns() {
    for args in [
        &["policy", "linux-6.1", "linux-6.12"][..],
        &["policy", "linux-6.6", "linux-7.2"],
        &["policy", "linux-6.12"],
    ] {
        for line in check(args, 0, "", "").lines() {
            assert!(line.chars().count() <= 80, "more than 80 columns: {line}");
        }
    }
}

#[test]
fn names_may_be_abbreviated() {
    check(&["topo", "uma-8"], 0, "8 CPUs", "");
    check(&["pol", "6.12"], 0, "RUN_TO_PARITY", "");
}

#[test]
fn conversions_keep_the_events() {
    for (ending, target) in [("pftrace", "perfetto"), ("ttwu", "ttwu"), ("json", "chrome")] {
        let out = Scratch::new(&format!("convert.{ending}"), b"");
        let json = check(&["convert", &sample(), out.path(), "--format", "json"], 0, target, "");
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(value["events_in"], 4137, "{target}");
        if ending != "json" {
            let json = check(&["report", out.path(), "placement", "--format", "json"], 0, "", "");
            let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!(value["placement"]["total"], 1100, "{target}");
        }
    }
}

#[test]
fn the_html_page_stands_alone() {
    let out = Scratch::new("page.html", b"");
    check(&["report", &sample(), "--html", out.path()], 0, "", "");
    let page = std::fs::read_to_string(&out.0).expect("page");
    assert!(page.to_ascii_lowercase().starts_with("<!doctype html>"), "{}", &page[..60.min(page.len())]);
    for outside in ["http://", "https://", "src=\"/"] {
        let found = page.find(outside).map(|at| &page[at..(at + 60).min(page.len())]);
        assert!(found.is_none_or(|text| text.starts_with("http://www.w3.org")), "{found:?}");
    }
}

/// perf's letters: `-s` prints the summary alone, `-S` the list with the summary.
#[test]
fn perf_summary_letters_are_perfs() {
    let lines = |show: &str| {
        let args = ["report", &sample(), "timehist", "--style", "perf-6.1", "--show", show];
        let text = check(&args, 0, "Runtime summary", "");
        (text.contains("wait time"), text.lines().count())
    };
    let (list_alone, short) = lines("s");
    let (list_too, long) = lines("S");
    assert!(!list_alone && list_too && long > short, "{list_alone} {short} {list_too} {long}");
}

/// A filter that cannot apply would pass the whole off as the part.
#[test]
fn filters_that_would_be_ignored_are_refused() {
    for flag in [["--from", "1"], ["--to", "2"], ["--cpu", "0"]] {
        check(&["report", &sample(), flag[0], flag[1]], 2, "", "timehist");
    }
    check(&["report", &sample(), "timehist", "--from", "5", "--to", "3"], 2, "", "--from is after --to");
}

#[test]
fn a_recording_may_come_through_standard_input() {
    let read = |file: &str| {
        let stdin = std::fs::File::open(sample()).expect("the sample");
        let run = Command::new(env!("CARGO_BIN_EXE_ttwu"))
            .args(["report", file, "switches"])
            .stdin(stdin)
            .output()
            .expect("runs");
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        run.stdout
    };
    assert_eq!(read("-"), read(&sample()));
}

#[test]
fn what_names_nothing_is_said() {
    check(
        &["report", &sample(), "timehist", "--task", "nosuch"],
        0,
        "",
        "no task of the recording is called `nosuch`",
    );
    check(&["topology", "--kernel", "0.0"], 2, "", "`0.0` is no kernel version from 4.14 on, such as 6.12");
    check(&["fuzz", "--time", "0"], 2, "", "invalid value '0' for '--time <SECONDS>'");
    check(&["convert", &sample(), "x.svg"], 2, "", "--to names one: x.svg: no format has this extension");
}

#[test]
fn placements_of_a_recording_are_rebuilt_and_explained() {
    let text = check(&["explain", &sample(), "--kernel", "6.12", "-n", "2"], 0, "rebuilt from", "");
    for has in
        ["wake-up 2 at ", "  rule        ", "  looked at   ", "  hangs on    ", "more (--limit 0 for all"]
    {
        assert!(text.contains(has), "no `{has}`: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    check(
        &["explain", &sample(), "--kernel", "6.12", "--task", "nosuch"],
        1,
        "",
        "no wake-up with a placement is of that task, or that late",
    );
}

#[test]
fn what_is_read_twice_may_come_through_a_pipe() {
    for command in ["explain", "conform"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ttwu"))
            .args([command, "-", "--kernel", "6.12"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        let bytes = std::fs::read(sample()).expect("the sample");
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), &bytes).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {stderr}");
    }
    check(&["conform", "/nonexistent"], 2, "", "ttwu: cannot read /nonexistent: No such file");
}
