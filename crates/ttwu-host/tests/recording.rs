//! Real recordings of real commands on this machine, checked against what else knows: getrusage, the number of rounds of a
//! ping-pong, the other back end recording at the same time.
//!
//! The recorded program and the recorder that gets killed are this test binary itself, run for one of the `helper_*` tests,
//! which are ignored otherwise. Where the machine forbids recording, that is said past the harness' capture and the test
//! ends: everything else is a failure.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use ttwu_host::record::{
    Backend, Ended, EventSet, RecordError, RecordOptions, SignalGuard, StopHandle, Summary, record,
};
use ttwu_model::{Event, EventKind, Pid, TaskId, Trace};

/// How many times the ping-pong helper sends a byte there and back.
const ROUNDS: u64 = 2000;

fn variable(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "how a test tells its helper process what to do")]
    std::env::var_os(name)
}

/// A command that runs one of this binary's helpers with some variables set, as a shell would.
fn helper(name: &str, variables: &[(&str, &str)]) -> Vec<OsString> {
    let exe = std::env::current_exe().expect("own path");
    let mut command: Vec<OsString> = vec!["env".into()];
    command.extend(variables.iter().map(|(name, value)| format!("{name}={value}").into()));
    command.extend([
        exe.into(),
        "--exact".into(),
        name.into(),
        "--ignored".into(),
        "--quiet".into(),
        "--nocapture".into(),
    ]);
    command
}

/// Records; `None` where the machine does not allow it, which is said.
fn recorded(options: &RecordOptions) -> Option<Summary> {
    let stop = StopHandle::new().expect("a descriptor");
    match record(options, &stop, &mut |_| {}) {
        Ok(summary) => Some(summary),
        Err(error) if error.is_forbidden() => {
            skip(&error.to_string());
            None
        }
        Err(error) => panic!("recording failed: {error}"),
    }
}

/// Not eprintln!: the harness captures that, and a skip must be seen.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn read(path: &Path) -> Trace {
    ttwu_trace::read(path).unwrap_or_else(|error| panic!("{} must be readable: {error}", path.display()))
}

fn pid_of(trace: &Trace, task: TaskId) -> Pid {
    trace.tasks().get(task).pid
}

/// The task with this pid and those forked by it, and so on: tasks are listed in the order of their forks.
fn players(trace: &Trace, pid: Pid) -> Vec<Pid> {
    let mut pids = vec![pid];
    for (_, task) in trace.tasks().iter() {
        if task.parent.is_some_and(|parent| pids.contains(&pid_of(trace, parent))) {
            pids.push(task.pid);
        }
    }
    pids
}

/// A byte there and back between two threads, [`ROUNDS`] times; then writes how often its own thread was switched out.
#[test]
#[ignore = "helper: what other tests record"]
fn helper_ping_pong() {
    let Some(result) = variable("TTWU_RESULT") else { return };
    let rounds = variable("TTWU_ROUNDS").map_or(ROUNDS, |text| text.to_str().unwrap().parse().unwrap());
    let (mut ping_read, mut ping) = std::io::pipe().expect("a pipe");
    let (mut pong_read, mut pong) = std::io::pipe().expect("a pipe");
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while ping_read.read_exact(&mut byte).is_ok() && pong.write_all(&byte).is_ok() {}
    });
    let mut byte = [7];
    for _ in 0..rounds {
        ping.write_all(&byte).expect("the other thread reads");
        pong_read.read_exact(&mut byte).expect("the other thread answers");
    }
    drop(ping);
    echo.join().expect("the other thread ends");
    std::fs::write(result, switches_of_this_thread().to_string()).expect("a place for the result");
}

/// How often the kernel says it switched this thread out, voluntarily or not. The same counters as getrusage's, which std
/// does not have.
fn switches_of_this_thread() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("/proc");
    status
        .lines()
        .filter_map(|line| line.split_once("_ctxt_switches:"))
        .map(|(_, count)| count.trim().parse::<u64>().expect("a number"))
        .sum()
}

/// Records, possibly a ping-pong, and prints how it went.
#[test]
#[ignore = "helper: a recorder that other tests kill, limit, or run as somebody else"]
fn helper_recorder() {
    let (Some(file), Some(backend)) = (variable("TTWU_FILE"), variable("TTWU_BACKEND")) else { return };
    let seconds = variable("TTWU_SECONDS").map_or(20, |text| text.to_str().unwrap().parse().unwrap());
    let command = match variable("TTWU_RESULT") {
        Some(result) => {
            helper("helper_ping_pong", &[("TTWU_RESULT", result.to_str().unwrap()), ("TTWU_ROUNDS", "60000")])
        }
        None => Vec::new(),
    };
    let mut options = RecordOptions::new(file.into(), command);
    options.backend = if backend == "tracefs" { Backend::Tracefs } else { Backend::Perf };
    options.duration = Some(Duration::from_secs(seconds));
    options.buffer_bytes = variable("TTWU_BUFFER").map(|text| text.to_str().unwrap().parse().unwrap());
    let stop = StopHandle::new().expect("a descriptor");
    let signals = SignalGuard::install(&stop).expect("the only guard here");
    match record(&options, &stop, &mut |_| {}) {
        Ok(Summary { ended, command_pid, notes, .. }) => {
            println!("RESULT {ended:?} {:?} {command_pid:?} {notes:?}", signals.arrived());
        }
        Err(error) => println!("RESULT {error}"),
    }
}

#[test]
fn a_ping_pong_is_recorded_completely() {
    for backend in [Backend::Perf, Backend::Tracefs] {
        let scratch = Scratch::new();
        let result = scratch.path("result");
        let command = helper("helper_ping_pong", &[("TTWU_RESULT", result.to_str().unwrap())]);
        let mut options = RecordOptions::new(scratch.path("x.ttwu"), command);
        options.backend = backend;
        let Some(summary) = recorded(&options) else { continue };
        assert_eq!((summary.command_exit, summary.ended.clone()), (Some(0), Ended::Command), "{backend:?}");
        assert_eq!(summary.lost, 0, "{backend:?}: 8 MiB of buffer must do for this; {summary:?}");
        let trace = read(&summary.file);
        assert_eq!(trace.events().len() as u64, summary.events, "{backend:?}");
        assert!(trace.health().loss_windows.is_empty(), "{backend:?}: {:?}", trace.health());
        let pids = players(&trace, summary.command_pid.expect("pids of this namespace"));

        // Each byte wakes its reader, except where that had not yet gone to sleep.
        let wakes = count(&trace, |kind| {
            matches!(kind, EventKind::Waking { wakee, .. }
            if pids.contains(&pid_of(&trace, wakee)))
        });
        assert!(wakes >= ROUNDS, "{backend:?}: {wakes} wake-ups in {ROUNDS} rounds of two");

        // The kernel's own count of the test's thread, which the harness runs as a child of the main one.
        let told: u64 = std::fs::read_to_string(&result).expect("the helper's count").parse().unwrap();
        let out_of = |pid: Pid| {
            count(
                &trace,
                |kind| matches!(kind, EventKind::Switch { prev, .. } if pid_of(&trace, prev) == pid),
            )
        };
        // It is switched out some more times after it has counted.
        let close = pids.iter().map(|&pid| out_of(pid)).find(|&seen| seen >= told && seen <= told + 8);
        assert!(
            close.is_some(),
            "{backend:?}: the kernel counted {told} switches; in the trace {:?}",
            pids.iter().map(|&pid| (pid, out_of(pid))).collect::<Vec<_>>()
        );
    }
}

fn count(trace: &Trace, wanted: impl Fn(EventKind) -> bool) -> u64 {
    trace.events().iter().filter(|event| wanted(event.kind)).count() as u64
}

#[test]
fn facts_pids_and_topology_are_in_the_file() {
    let scratch = Scratch::new();
    let options = RecordOptions::new(scratch.path("x.ttwu"), vec!["true".into()]);
    let Some(summary) = recorded(&options) else { return };
    let trace = read(&summary.file);
    let meta = trace.meta();
    assert_eq!(meta.recorder.as_deref(), Some(concat!("ttwu ", env!("CARGO_PKG_VERSION"))));
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(meta.kernel_release.as_deref(), Some(release.trim()));
    for fact in ["kernel.version", "kernel.cmdline", "kernel.preempt", "cpu.online", "target.pids"] {
        assert!(meta.facts.contains_key(fact), "no fact {fact} in {:?}", meta.facts);
    }
    let topology = meta.topology_text.as_deref().expect("a topology");
    assert!(ttwu_model::Topology::parse(topology).is_ok(), "{topology}");
    let own = Pid::new(i32::try_from(std::process::id()).unwrap());
    assert!(meta.recorder_pids.contains(&own), "{own:?} in {:?}", meta.recorder_pids);
    let target = summary.command_pid.expect("pids of this namespace").to_string();
    assert_eq!(meta.facts["target.pids"], target);
    // The command was held until its exec, so that is the first thing it does.
    let execs = count(&trace, |kind| {
        matches!(kind, EventKind::Exec { task, .. }
        if pid_of(&trace, task).to_string() == target)
    });
    assert_eq!(execs, 1);
}

#[test]
fn losses_are_counted_and_placed() {
    for backend in [Backend::Perf, Backend::Tracefs] {
        let scratch = Scratch::new();
        let result = scratch.path("result");
        let variables = [("TTWU_RESULT", result.to_str().unwrap()), ("TTWU_ROUNDS", "1000000000")];
        let mut options = RecordOptions::new(scratch.path("x.ttwu"), helper("helper_ping_pong", &variables));
        options.backend = backend;
        options.buffer_bytes = Some(64 << 10);
        options.duration = Some(Duration::from_millis(2500));
        let stop = StopHandle::new().expect("a descriptor");
        // The recorder sleeps in its own progress report, so the buffers must overflow.
        let summary = match record(&options, &stop, &mut |_| std::thread::sleep(Duration::from_millis(500))) {
            Ok(summary) => summary,
            Err(error) if error.is_forbidden() => {
                skip(&error.to_string());
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let trace = read(&summary.file);
        let health = trace.health();
        assert!(summary.lost > 1000, "{backend:?}: {summary:?}");
        assert_eq!(health.lost_events + health.uncounted_gaps, summary.lost, "{backend:?}");
        assert!(!health.is_clean());
        let (first, last) = trace.span().unwrap();
        for window in &health.loss_windows {
            let sound = first <= window.from && window.from <= window.to && window.to <= last;
            assert!(sound && window.cpu.is_some(), "{backend:?}: {window:?}");
        }
        // Half a second of silence, less what the buffer still took, on a CPU that lost.
        let lengths =
            health.loss_windows.iter().map(|window| window.to.saturating_since(window.from).as_ns());
        let longest = lengths.max();
        assert!(longest > Some(50_000_000), "{backend:?}: {longest:?} ns");
        assert_eq!(trace.events().len() as u64, summary.events, "{backend:?}");
    }
}

/// What both back ends record: some events of every shape, one that counts nanoseconds, and those that bound the comparison.
const BOTH: &str = "wakeups,sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit,sched:sched_stat_runtime";

/// Both back ends record the same ping-pong at the same time. perf's may hold nothing that tracefs' lacks. The reverse does
/// not hold: perf events of tracepoints silently lack some (Linux 6.18, seen with `perf record` as well: a third of all
/// `sched_wakeup` of a ping-pong across two CPUs that go idle). Nor is the order the same: the kernel calls one tracer
/// after the other, and an interrupt in between is seen after the event by the first and before it by the second.
#[test]
fn both_back_ends_tell_the_same() {
    let scratch = Scratch::new();
    let result = scratch.path("result");
    let mut outer = RecordOptions::new(scratch.path("tracefs.ttwu"), Vec::new());
    outer.backend = Backend::Tracefs;
    outer.events = EventSet::parse(BOTH).unwrap();
    let stop = StopHandle::new().unwrap();
    let (summary, around) = std::thread::scope(|scope| {
        let around = scope.spawn(|| record(&outer, &stop, &mut |_| {}));
        // The outer one must have begun before the inner begins: its file exists only shortly before.
        std::thread::sleep(Duration::from_millis(1500));
        let command = helper("helper_ping_pong", &[("TTWU_RESULT", result.to_str().unwrap())]);
        let mut inner = RecordOptions::new(scratch.path("perf.ttwu"), command);
        inner.events = EventSet::parse(BOTH).unwrap();
        let summary = recorded(&inner);
        stop.stop();
        (summary, around.join().expect("no panic"))
    });
    let (Some(summary), Ok(around)) = (summary, around) else {
        return skip("needs both back ends");
    };
    if summary.lost + around.lost > 0 {
        return skip("events were lost on a busy machine; nothing to compare");
    }
    let (perf, tracefs) = (read(&summary.file), read(&around.file));
    let pids = players(&perf, summary.command_pid.unwrap());
    // From the command's exec to its last exit: events are switched on and off one after the other.
    let time_of = |wanted: fn(EventKind) -> bool| {
        let own = |event: &&Event| wanted(event.kind) && pids.contains(&pid_of(&perf, event.by));
        perf.events().iter().rfind(own).expect("the command's exec and exit").at
    };
    let first = time_of(|kind| matches!(kind, EventKind::Exec { .. }));
    let last = time_of(|kind| matches!(kind, EventKind::Exit { .. }));
    let lines = |trace: &Trace| {
        let mut lanes: Vec<Vec<String>> = vec![Vec::new(); 1024];
        let inside = |event: &&Event| event.at > first && event.at < last;
        for event in trace.events().iter().filter(inside) {
            if event.kind.tasks().iter().flatten().any(|&task| pids.contains(&pid_of(trace, task))) {
                let kind = event.kind.map_tasks(|task| pid_of(trace, task));
                lanes[event.cpu.index()].push(format!("{kind:?}"));
            }
        }
        lanes
    };
    let (perf, tracefs) = (lines(&perf), lines(&tracefs));
    for (cpu, (perf, tracefs)) in perf.iter().zip(&tracefs).enumerate() {
        let mut balance = std::collections::BTreeMap::<&String, i64>::new();
        for line in perf {
            *balance.entry(line).or_default() += 1;
        }
        for line in tracefs {
            *balance.entry(line).or_default() -= 1;
        }
        let invented: i64 = balance.values().filter(|difference| **difference > 0).sum();
        let missing: i64 =
            balance.values().filter(|difference| **difference < 0).map(|difference| -difference).sum();
        // The ends of the window are not cut at the same event.
        assert!(invented <= 4, "CPU {cpu}: perf has what tracefs lacks: {balance:?}");
        println!("CPU {cpu}: {missing} of tracefs' {} events are missing in perf's", tracefs.len());
    }
    let compared = perf.iter().map(Vec::len).sum::<usize>() as u64;
    assert!(compared > 4 * ROUNDS, "{compared} events compared, {pids:?}");
}

#[test]
fn a_killed_recorder_leaves_a_readable_file() {
    for backend in ["perf", "tracefs"] {
        let scratch = Scratch::new();
        let file = scratch.path("x.ttwu");
        let command =
            helper("helper_recorder", &[("TTWU_FILE", file.to_str().unwrap()), ("TTWU_BACKEND", backend)]);
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdout(Stdio::piped())
            .spawn()
            .expect("own binary runs");
        // Drained once a second at least; the head alone may take a moment.
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(50));
            if file.exists() || child.try_wait().expect("a child").is_some() {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(3500));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        if !file.exists() {
            let mut said = String::new();
            child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
            skip(&format!("{backend}: {said}"));
            continue;
        }
        let trace = read(&file);
        let switches = count(&trace, |kind| matches!(kind, EventKind::Switch { .. }));
        assert!(switches > 10, "{backend}: {switches} switches in {:?}", trace.event_counts());
        assert!(trace.meta().facts.contains_key("kernel.preempt"), "{backend}: {:?}", trace.meta());
        assert!(trace.meta().topology_text.is_some(), "{backend}");
        assert_eq!(trace.meta().recorder_pids.len(), 2, "{backend}: the harness and its test thread");
        leftovers_are_removed(&scratch);
    }
}

/// The next recording removes the instance of a recorder that was killed.
fn leftovers_are_removed(scratch: &Scratch) {
    let mut options = RecordOptions::new(scratch.path("next.ttwu"), vec!["true".into()]);
    options.backend = Backend::Tracefs;
    let Some(_) = recorded(&options) else { return };
    let Ok(instances) = std::fs::read_dir("/sys/kernel/tracing/instances") else { return };
    for entry in instances.flatten() {
        let name = entry.file_name().into_string().unwrap();
        if let Some(pid) = name.strip_prefix("ttwu-").and_then(|rest| rest.split('-').next()) {
            assert!(Path::new("/proc").join(pid).exists(), "instance {name} has no recorder");
        }
    }
}

#[test]
fn a_limited_file_size_costs_the_rest_only() {
    let scratch = Scratch::new();
    let file = scratch.path("x.ttwu");
    let result = scratch.path("result");
    let variables = [
        ("TTWU_FILE", file.to_str().unwrap()),
        ("TTWU_BACKEND", "perf"),
        ("TTWU_RESULT", result.to_str().unwrap()),
        // What a full disk costs is the drain that did not fit, so drains must be small against the limit.
        ("TTWU_BUFFER", "1048576"),
    ];
    // Enough for the head, and for some rounds of events.
    let mut shell = Command::new("bash");
    shell.args(["-c", "ulimit -f 9000; exec \"$@\"", "bash"]).args(helper("helper_recorder", &variables));
    let said = told_by(&mut shell);
    let Some(said) = said.filter(|said| !is_refusal(said)) else { return };
    assert!(said.starts_with("Output"), "{said}");
    let trace = read(&file);
    assert!(trace.events().len() > 100, "{said}");
    assert!(trace.health().notes.iter().any(|note| note.contains("ends early")), "{:?}", trace.health());
}

/// Did a helper's recorder meet a machine that forbids it? That is said.
fn is_refusal(said: &str) -> bool {
    let refused = said.starts_with("cannot");
    if refused {
        skip(said);
    }
    refused
}

/// What a recorder run as a helper says of its result; `None`, and said, where it could not be run.
fn told_by(command: &mut Command) -> Option<String> {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            skip(&format!("cannot run {:?}: {error}", command.get_program()));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let result = said.split_once("RESULT ").map(|(_, result)| result.lines().next().unwrap_or("").to_owned());
    if result.is_none() {
        skip(&format!("{command:?} says {said} {}", String::from_utf8_lossy(&output.stderr)));
    }
    result
}

#[test]
fn a_full_disk_costs_the_rest_only() {
    let scratch = Scratch::new();
    let small = scratch.path("small");
    std::fs::create_dir(&small).unwrap();
    let mount = |arguments: &[&str]| {
        Command::new(arguments[0])
            .args(&arguments[1..])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let place = small.to_str().unwrap();
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=9m", "tmpfs", place]) {
        return skip("needs the right to mount a small tmpfs");
    }
    let result = scratch.path("result");
    let command =
        helper("helper_ping_pong", &[("TTWU_RESULT", result.to_str().unwrap()), ("TTWU_ROUNDS", "60000")]);
    let options = RecordOptions::new(small.join("x.ttwu"), command);
    let summary = recorded(&options);
    let trace = summary.as_ref().map(|summary| read(&summary.file));
    assert!(mount(&["umount", place]), "umount {place}");
    let (Some(summary), Some(trace)) = (summary, trace) else { return };
    assert!(matches!(summary.ended, Ended::Output(_)), "{summary:?}");
    assert_eq!(summary.command_exit, Some(0), "the command is not to blame for a full disk: {summary:?}");
    assert!(trace.events().len() > 1000, "{summary:?}");
    assert!(trace.meta().topology_text.is_some(), "{summary:?}");
    assert!(trace.meta().facts["record.ended"].contains("could not grow"), "{:?}", trace.meta());
}

#[test]
fn a_failed_conversion_keeps_the_raw_recording() {
    let scratch = Scratch::new();
    // What stands where the converted file would be written.
    std::fs::create_dir(scratch.path("x.ttwu.part")).unwrap();
    let options = RecordOptions::new(scratch.path("x.ttwu"), vec!["true".into()]);
    let Some(summary) = recorded(&options) else { return };
    assert!(summary.kept_raw, "{summary:?}");
    assert!(summary.notes.iter().any(|note| note.contains("stays in perf's format")), "{summary:?}");
    let trace = read(&summary.file);
    assert_eq!(trace.events().len() as u64, summary.events);
    assert_eq!(trace.meta().facts["record.ended"], "the command ended");
    assert_eq!(trace.meta().facts["target.pids"], summary.command_pid.unwrap().to_string());
}

#[test]
fn the_commands_end_is_passed_on() {
    let check = |command: &[&str], duration: Option<Duration>, expect: (Option<i32>, Ended)| {
        let scratch = Scratch::new();
        let mut options =
            RecordOptions::new(scratch.path("x.ttwu"), command.iter().map(Into::into).collect());
        options.duration = duration;
        options.events = EventSet::parse("minimal").unwrap();
        let Some(summary) = recorded(&options) else { return };
        assert_eq!((summary.command_exit, summary.ended), expect, "{command:?}");
    };
    check(&["sh", "-c", "exit 7"], None, (Some(7), Ended::Command));
    check(&["sh", "-c", "kill -9 $$"], None, (Some(137), Ended::Command));
    check(&["sleep", "100"], Some(Duration::from_millis(300)), (Some(143), Ended::Duration));
}

#[test]
fn stopping_ends_it_with_a_good_file() {
    let scratch = Scratch::new();
    let options = RecordOptions::new(scratch.path("x.ttwu"), vec!["sleep".into(), "100".into()]);
    let stop = StopHandle::new().unwrap();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            stop.stop();
        });
        record(&options, &stop, &mut |_| {})
    });
    let summary = match result {
        Ok(summary) => summary,
        Err(error) if error.is_forbidden() => return skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    };
    assert_eq!((summary.command_exit, summary.ended), (Some(143), Ended::Stopped));
    assert_eq!(read(&summary.file).events().len() as u64, summary.events);
}

#[test]
fn a_signal_ends_it_with_a_good_file() {
    for (backend, signal, number) in [("perf", "INT", 2), ("tracefs", "TERM", 15)] {
        let scratch = Scratch::new();
        let file = scratch.path("x.ttwu");
        let command =
            helper("helper_recorder", &[("TTWU_FILE", file.to_str().unwrap()), ("TTWU_BACKEND", backend)]);
        let mut recorder = Command::new(&command[0]);
        recorder.args(&command[1..]).stdout(Stdio::piped());
        let recorder = recorder.spawn().expect("own binary runs");
        std::thread::sleep(Duration::from_secs(3));
        // Not there: it has ended already, because the machine forbids it.
        let pid = recorder.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status().expect("kill runs");
        let output = recorder.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let result = said.split_once("RESULT ").map_or("", |(_, result)| result);
        if is_refusal(result) {
            continue;
        }
        assert!(sent.success());
        assert!(result.starts_with(&format!("Stopped Some({number})")), "{backend}: {said}");
        assert!(read(&file).meta().facts["record.ended"].contains("user"), "{backend}");
        assert!(!scratch.path("x.ttwu.part").exists());
        let instance = Path::new("/sys/kernel/tracing/instances").join(format!("ttwu-{pid}"));
        assert!(!instance.exists(), "{} is left", instance.display());
    }
}

/// A limit that was raised for the recorder's many descriptors is not the command's.
#[test]
fn the_command_has_the_limits_of_the_recorder() {
    let scratch = Scratch::new();
    let limits = scratch.path("limits");
    let script = format!("ulimit -Sn >{}", limits.display());
    let options = RecordOptions::new(scratch.path("x.ttwu"), vec!["sh".into(), "-c".into(), script.into()]);
    let Some(_) = recorded(&options) else { return };
    // Other tests may be recording: ask for the limits of a process that no recorder touched.
    let own =
        std::fs::read_to_string(format!("/proc/{}/limits", std::os::unix::process::parent_id())).unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let own = own.split_ascii_whitespace().next().unwrap();
    assert_eq!(std::fs::read_to_string(&limits).unwrap().trim(), own);
}

/// Inside a pid namespace the command has a small number; the trace has the machine's.
#[test]
fn pids_are_the_root_namespaces_even_inside_another() {
    let scratch = Scratch::new();
    let file = scratch.path("x.ttwu");
    let result = scratch.path("result");
    let variables = [
        ("TTWU_FILE", file.to_str().unwrap()),
        ("TTWU_BACKEND", "perf"),
        ("TTWU_RESULT", result.to_str().unwrap()),
    ];
    let mut inside = Command::new("unshare");
    inside.args(["--pid", "--fork", "--mount-proc"]).args(helper("helper_recorder", &variables));
    let Some(said) = told_by(&mut inside).filter(|said| !is_refusal(said)) else { return };
    assert!(said.starts_with("Command"), "{said}");
    let trace = read(&file);
    let pid: i32 = trace.meta().facts["target.pids"].parse().expect("one number");
    let task = trace.tasks().iter().find(|(_, task)| task.pid == Pid::new(pid));
    let (id, info) = task.unwrap_or_else(|| panic!("no task {pid}"));
    assert_eq!(info.tgid, Some(info.pid));
    let execs = count(&trace, |kind| matches!(kind, EventKind::Exec { task, .. } if task == id));
    assert!(execs >= 1, "the command's exec is its first event");
    assert!(players(&trace, info.pid).len() >= 2, "its threads are its children");
    let own = &trace.meta().recorder_pids;
    assert!(!own.is_empty() && own.iter().all(|own| own.number() > 10), "{own:?}");
}

#[test]
fn a_target_process_is_marked_and_waited_for() {
    let scratch = Scratch::new();
    let mut target = Command::new("sleep").arg("1").spawn().expect("sleep runs");
    let pid = i32::try_from(target.id()).unwrap();
    let mut options = RecordOptions::new(scratch.path("x.ttwu"), Vec::new());
    options.pid = Some(pid);
    let result = recorded(&options);
    target.wait().unwrap();
    let Some(summary) = result else { return };
    assert_eq!(summary.ended, Ended::Target);
    assert_eq!(read(&summary.file).meta().facts["target.pids"], pid.to_string());
}

#[test]
fn what_cannot_be_recorded_leaves_no_file() {
    let scratch = Scratch::new();
    let file = scratch.path("x.ttwu");
    let stop = StopHandle::new().unwrap();
    let fails = |options: &RecordOptions| record(options, &stop, &mut |_| {}).expect_err("must fail");
    let missing = fails(&RecordOptions::new(file.clone(), vec!["no-such-program-ttwu".into()]));
    assert_eq!(missing.to_string(), "cannot run `no-such-program-ttwu`: no such program in PATH");
    let script = scratch.path("script");
    std::fs::write(&script, "not a program").unwrap();
    let error = fails(&RecordOptions::new(file.clone(), vec![script.into()]));
    assert!(matches!(error, RecordError::Command { .. }) || error.is_forbidden(), "{error}");
    let mut nobody = RecordOptions::new(file.clone(), Vec::new());
    nobody.pid = Some(i32::MAX);
    let error = fails(&nobody);
    assert!(matches!(error, RecordError::NoProcess { .. }) || error.is_forbidden(), "{error}");
    assert!(!file.exists(), "a failed recording left {}", file.display());
}

#[test]
fn an_unprivileged_user_learns_what_is_missing() {
    let scratch = Scratch::new();
    // The build directory may not be open to others. Copied by another process: while this one has it open for writing,
    // a fork of another test's thread would keep it busy.
    let exe = scratch.path("tests");
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&exe).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp to {}", exe.display());
    let open = Command::new("chmod").args(["-R", "a+rwx", scratch.0.path().to_str().unwrap()]).status();
    if !open.is_ok_and(|status| status.success()) {
        return skip("chmod does not work here");
    }
    let mut nobody = Command::new("setpriv");
    nobody
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&exe)
        .args(["--exact", "helper_recorder", "--ignored", "--nocapture"])
        .env("TTWU_FILE", scratch.path("x.ttwu"))
        .env("TTWU_BACKEND", "perf")
        .env("TTWU_SECONDS", "1");
    let Some(result) = told_by(&mut nobody) else { return };
    if result.starts_with("Duration") {
        return skip("this machine lets everybody record");
    }
    let first = &*result;
    assert!(first.starts_with("cannot "), "{first}");
    let named = ["tracefs belongs", "mount -t tracefs", "CAP_PERFMON", "seccomp"];
    assert!(named.iter().any(|right| first.contains(right)), "no missing right in: {first}");
    assert!(!scratch.path("x.ttwu").exists());
}
