//! rt-app files: the golden one, every event, and what is refused where.

use super::{Imported, import};
use crate::{Bench, MachineInfo, MeterRef, ObjectKind, Op, Start, Times, Until, Workload};

const TWO: MachineInfo = MachineInfo { cpus: 2 };

fn read(text: &str) -> Imported {
    import(text, "test", &TWO).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn fault(text: &str) -> String {
    import(text, "test", &TWO).expect_err("faulty").to_string()
}

fn program<'a>(workload: &'a Workload, name: &str) -> &'a [Op] {
    let task = workload.tasks.iter().find(|task| task.name == name).unwrap_or_else(|| panic!("{name}"));
    &workload.programs[task.program as usize].ops
}

/// The events of a task with one phase.
fn events(text: &str) -> Vec<Op> {
    let workload = read(&format!("{{\"tasks\": {{\"t\": {{\"loop\": 1, {text}}}}}}}")).workload;
    let [Op::Repeat { body, .. }] = program(&workload, "t-0") else { panic!("{text}") };
    let [Op::Repeat { body, .. }] = &body[..] else { panic!("{text}") };
    assert!(matches!(body[0], Op::Stamp(_)));
    body[1..body.len() - 2].to_vec()
}

/// The verbs of operations, for short expectations.
fn verbs(ops: &[Op]) -> String {
    let name = |op: &Op| format!("{op:?}").split([' ', '(']).next().expect("a word").to_owned();
    ops.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_golden_file_imports_as_rt_app_ran_it() {
    let Some(path) = ttwu_testing::shared("golden/rt-app/t1.json") else { return };
    let text = std::fs::read_to_string(path).expect("readable");
    let Imported { workload, notes } = read(&text);
    let names: Vec<&str> = workload.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["periodic-0", "periodic-1", "ping-2", "pong-3", "phased-4"]);
    assert_eq!(workload.until, Until::Time(2_000_000_000));
    let Bench::RtApp(bench) = &workload.bench else { panic!() };
    assert_eq!((bench.duration_s, bench.threads.len(), bench.threads[2].rounds), (Some(2), 5, MeterRef(6)));
    assert_eq!(
        notes,
        [
            "`suspend` and `resume` have no memory: a resume before its suspend is lost, and both tasks may then wait for ever"
        ]
    );
    let body = |name: &str| match program(&workload, name) {
        [Op::Repeat { body, .. }] => body.clone(),
        other => panic!("{other:?}"),
    };
    // 20 as the task's, and 20 as its only phase's.
    let [Op::Repeat { times: Times::Count(20), body: round, .. }] = &body("periodic-0")[..] else { panic!() };
    assert_eq!(verbs(round), "Stamp Run Periodic Sample Sample Count");
    let [Op::Repeat { body: ping, .. }] = &body("ping-2")[..] else { panic!() };
    assert_eq!(verbs(ping), "Stamp Run PostAll Wait Sample Count");
    let [Op::Repeat { body: pong, .. }] = &body("pong-3")[..] else { panic!() };
    assert_eq!(verbs(pong), "Stamp Wait Run PostAll Sample Count");
    // Phases in order, each with its CPUs: the second's own, the first's all.
    assert_eq!(verbs(&body("phased-4")), "SetAffinity Repeat SetAffinity Repeat");
    assert!(matches!(program(&workload, "phased-4"), [Op::Repeat { times: Times::Count(2), .. }]));
    let sets: Vec<String> = workload
        .objects
        .iter()
        .filter_map(
            |object| if let ObjectKind::Cpus(set) = &object.kind { Some(set.to_string()) } else { None },
        )
        .collect();
    assert_eq!(sets, ["0-1", "1"]);
    // The logged phases of phased-4: 3, 3, 3, 3 rounds, 12 rows.
    let rounds: u64 = body("phased-4")
        .iter()
        .map(|op| if let Op::Repeat { times: Times::Count(count), .. } = op { *count } else { 0 })
        .sum();
    assert_eq!(rounds * 2, 12);
}

#[test]
fn events_keep_their_order_and_begin_with_their_names() {
    let ops = events(
        r#""run0": 5, "runtime_x": 7, "sleep": 1, "run1": 9, "lock_a": "m", "unlock_a": "m", "yield": "", "sem_post": "s",
        "sem_wait": "s", "sync": {"ref": "q", "mutex": "m"}, "wait": {"ref": "q", "mutex": "m"}, "signal": "q", "broadx": "q""#,
    );
    assert_eq!(
        verbs(&ops),
        "Run Spin Sleep Run Lock Unlock Yield Post Wait Lock Post WaitUnlock Unlock WaitUnlock Post PostAll"
    );
    assert_eq!(ops[0], Op::Run(crate::Dist::constant(5_000)));
    assert_eq!(ops[3], Op::Run(crate::Dist::constant(9_000)));
}

#[test]
fn work_is_whole_loops_of_the_calibration() {
    let workload =
        read(r#"{"global": {"calibration": 300}, "tasks": {"t": {"loop": 1, "run": 1}}}"#).workload;
    // 1000 ns are three loops of 300 ns.
    assert!(format!("{:?}", program(&workload, "t-0")).contains("Constant(900)"));
}

#[test]
fn a_barrier_has_as_many_parties_as_instances_use_it() {
    let text = r#"{"tasks": {"a": {"instance": 3, "loop": 2, "run": 1, "barrier": "b"}, "c": {"loop": 2, "barrier1": "b", "run": 2}}}"#;
    let workload = read(text).workload;
    let parties: Vec<u32> = workload
        .objects
        .iter()
        .filter_map(
            |object| if let ObjectKind::Barrier { parties } = object.kind { Some(parties) } else { None },
        )
        .collect();
    assert_eq!(parties, [4]);
}

#[test]
fn a_fork_makes_a_thread_of_a_task_that_is_only_defined() {
    let text = r#"{"tasks": {"main": {"loop": 1, "run": 10, "fork": "child", "fork1": "child"}, "child": {"instance": 0, "loop": 1, "run": 5}}}"#;
    let workload = read(text).workload;
    let starts: Vec<(&str, Start)> =
        workload.tasks.iter().map(|task| (task.name.as_str(), task.start)).collect();
    assert_eq!(starts, [("main-0", Start::At(0)), ("child-1", Start::Forked), ("child-2", Start::Forked)]);
    assert_eq!(workload.check(), Ok(()));
}

#[test]
fn properties_reach_the_task() {
    let text = r#"{"tasks": {"t": {"loop": 1, "delay": 100, "policy": "SCHED_BATCH", "priority": 5, "dl-runtime": 3000, "cpus": [1],
        "taskgroup": "/a/b", "phases": {"p": {"loop": 2, "priority": -3, "run": 1}}}}}"#;
    let workload = read(text).workload;
    let task = &workload.tasks[0];
    assert_eq!((task.nice, task.batch_policy, task.slice_ns), (5, true, Some(3_000_000)));
    assert_eq!(task.allowed.as_ref().map(ToString::to_string).as_deref(), Some("1"));
    assert_eq!(workload.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["/a", "/a/b"]);
    assert_eq!(verbs(program(&workload, "t-0")), "Sleep SetGroup Repeat");
}

#[test]
fn json_c_liberties_are_taken() {
    let text = "{ /* a comment */ 'tasks': { \"t\": { \"loop\": 1, // so\n \"run\": 5, \"run\": 6, }, } }";
    let Imported { workload, notes } = read(text);
    assert!(format!("{:?}", program(&workload, "t-0")).contains("Constant(6000)"));
    assert_eq!(
        notes,
        [
            "`run` occurs twice in one object, of which JSON keeps the last value only: number them, `run0`, `run1`"
        ]
    );
}

#[test]
fn what_is_unknown_or_not_modelled_is_refused_by_name_and_place() {
    let task = |body: &str| format!("{{\"tasks\": {{\n\"t\": {{{body}}}}}}}");
    for (body, message) in [
        ("\"rnu\": 5", "2:7: a task or phase has no `rnu`; did you mean `run`?"),
        ("\"run\": \"5\"", "2:14: run: expected a whole number, found a string"),
        ("\"run\": -5", "2:14: run: expected a whole number from 0 to 86400000000, found -5"),
        ("\"mem\": 5", "2:7: mem: how long it takes depends on memory or device; give that time as `run`"),
        (
            "\"memrun\": 5",
            "2:7: memrun: how long it takes depends on memory or device; give that time as `run`",
        ),
        (
            "\"policy\": \"SCHED_FIFO\"",
            "2:17: policy: SCHED_FIFO is not modelled; SCHED_OTHER, SCHED_BATCH and SCHED_IDLE are",
        ),
        ("\"util_min\": 3", "2:7: util_min: utilisation clamps are not modelled"),
        ("\"cpus\": [2], \"run\": 1", "2:16: cpus: expected a whole number from 0 to 1, found 2"),
        (
            "\"timer\": {\"ref\": \"unique\", \"perod\": 3}",
            "2:34: a timer has no `perod`; did you mean `period`?",
        ),
        (
            "\"instance\": 2, \"run\": 1, \"timer\": {\"ref\": \"tick\", \"period\": 10}",
            "2:32: timer: a timer that several threads share is not modelled; begin its `ref` with `unique`",
        ),
        ("\"fork\": \"t\", \"loop\": 1", "2:1: t forks itself, directly or through others"),
        (
            "\"run\": 1, \"fork\": \"u\"",
            "2:17: fork: a fork that is repeated is not modelled; its task and phase need `\"loop\": 1`",
        ),
        (
            "\"phases\": {\"p\": {\"loop\": 1, \"run\": 1}}, \"sleep\": 1",
            "2:47: sleep: events stand in the phases where there are some",
        ),
    ] {
        assert_eq!(fault(&task(body)), message, "{body}");
    }
    assert_eq!(
        fault("{\"global\": {\"duraton\": 1}}"),
        "1:13: global has no `duraton`; did you mean `duration`?"
    );
    assert_eq!(fault("{\"tasks\": {}}"), "1:1: `tasks` is missing or empty");
    assert!(fault("{\"tasks\": ").starts_with("1:"), "{}", fault("{\"tasks\": "));
    assert!(fault("").ends_with("expected an object, found nothing"));
}

#[test]
fn hostile_files_are_refused() {
    for open in ["[", "{\"a\":", "{\"tasks\":{\"t\":{\"phases\":"] {
        assert!(import(&open.repeat(100_000), "test", &TWO).is_err(), "{open}");
    }
    // Each forks the next one twice: 2^40 threads.
    let tasks: Vec<String> = (0..40)
        .map(|n| {
            format!(
                "\"t{n}\": {{\"instance\": {}, \"loop\": 1, \"fork\": \"t{m}\", \"fork1\": \"t{m}\"}}",
                u8::from(n == 0),
                m = n + 1
            )
        })
        .collect();
    let text = format!("{{\"tasks\": {{{}, \"t40\": {{\"instance\": 0, \"run\": 1}}}}}}", tasks.join(", "));
    assert!(fault(&text).ends_with("expected at most 100000 threads"));
}

#[test]
fn a_damaged_file_is_an_error_or_a_workload_never_a_panic() {
    let text = r#"{"global": {"duration": 2}, "tasks": {"a": {"instance": 2, "run": 20, "timer": {"ref": "unique", "period": 100}},
        "b": {"phases": {"p": {"loop": 3, "cpus": [1], "run": 1, "sync": {"ref": "q", "mutex": "m"}, "barrier": "x"}}}}}"#;
    let mut read = 0;
    for seed in 0..500 {
        let damaged = ttwu_testing::damage(text.as_bytes(), seed);
        if let Ok(Imported { workload, .. }) = import(&String::from_utf8_lossy(&damaged), "test", &TWO) {
            read += 1;
            assert_eq!(workload.check(), Ok(()), "seed {seed}");
        }
    }
    assert!(read > 0, "no damage was harmless");
}
