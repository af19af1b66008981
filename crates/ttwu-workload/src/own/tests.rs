//! The text form: reading, errors at their place, and back.

use crate::{Bench, MachineInfo, Op, Start, Until, Workload, workloads};

const FOUR: MachineInfo = MachineInfo { cpus: 4 };

const SERVICE: &str = r#"name = "a service"
until = "2s"

[objects]
requests = "queue"
"the lock" = "mutex"
disk = { device = { interrupt = 2, requests = [{ service = "80us", latency = "uniform(5us..10us)", hard = "post @0" }] } }
done = "semaphore"

[groups]
front = { shares = 2048 }
back = { parent = "front" }

[meters]
response = "samples"

[[tasks]]
name = "client"
do = """
forever {
    periodic r0 exponential(1ms)   # open load
    send requests r0
}
"""

[[tasks]]
name = "worker"
count = "cpus"
process = "pool"
links = ["done"]
group = "back"
do = '''
forever {
    receive requests r0
    lock "the lock"; run 10us; unlock "the lock"
    choose 100 { submit disk 0; wait @0 } else { run 20us }
    sample response r0
}
'''

[[tasks]]
name = "boss"
process = "pool"
nice = -5
policy = "batch"
slice = "3ms"
cpus = "0-1"
working_set = "64KiB"
do = "spawn helper; sleep 1ms; join helper"

[[tasks]]
name = "helper"
start = "forked"
count = 2
do = "run 5us"
"#;

#[test]
fn a_service_reads_as_it_is_written() {
    let workload = Workload::from_toml(SERVICE, &FOUR).expect("valid");
    assert_eq!((workload.tasks.len(), workload.objects.len(), workload.meters.len()), (8, 4, 1));
    assert_eq!((workload.until, &workload.bench), (Until::Time(2_000_000_000), &Bench::Own));
    assert_eq!(workload.groups[1].parent, Some(crate::GroupRef(0)));
    let processes: Vec<u32> = workload.tasks.iter().map(|task| task.process).collect();
    assert_eq!(processes, [0, 1, 1, 1, 1, 1, 6, 7]);
    let boss = &workload.tasks[5];
    assert_eq!((boss.nice, boss.batch_policy, boss.slice_ns), (-5, true, Some(3_000_000)));
    let ops = &workload.programs[boss.program as usize].ops;
    let helpers = [crate::TaskRef(6), crate::TaskRef(7)];
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Spawn(task) if helpers.contains(task))).count(), 2);
    assert_eq!(workload.tasks[7].start, Start::Forked);
}

#[test]
fn the_text_of_any_workload_reads_back_as_it() {
    let mut all = vec![Workload::from_toml(SERVICE, &FOUR).expect("valid")];
    for doc in workloads() {
        all.push(Workload::parse(doc.name, &FOUR).expect("named"));
    }
    for text in [
        "pipe:threaded,cgroups & noise",
        "schbench:rps=30,threads=3,runtime=2",
        "dmatest:polled,start=1,cpus=0-1",
    ] {
        all.push(Workload::parse(text, &FOUR).expect("named"));
    }
    for workload in all {
        for table in ["", "workload"] {
            let text = workload.to_toml(table);
            let text = if table.is_empty() {
                text
            } else {
                text.replacen("[workload]\n", "", 1).replace("[workload.", "[").replace("[[workload.", "[[")
            };
            let back = Workload::from_toml(&text, &FOUR)
                .unwrap_or_else(|error| panic!("{}: {error}", workload.name));
            assert_eq!(back, Workload { bench: Bench::Own, ..workload.clone() }, "{}", workload.name);
            assert_eq!(back.to_toml(""), workload.to_toml(""));
        }
    }
}

fn fault(text: &str) -> String {
    Workload::from_toml(text, &FOUR).expect_err("faulty").to_string()
}

#[test]
fn errors_point_at_line_and_column() {
    let with = |body: &str| format!("[objects]\nrequests = \"queue\"\n\n[[tasks]]\nname = \"t\"\n{body}\n");
    for (body, message) in [
        ("do = \"\"\"\nrun 10us\n  rnu 5us\n\"\"\"", "8:3: unknown operation `rnu`; did you mean `run`?"),
        (
            "do = \"run 10us; send reqests r0\"",
            "6:22: no object is named `reqests`; did you mean `requests`?",
        ),
        ("do = 'run 10'", "6:11: expected a unit after `10`: ns, us, ms or s"),
        ("do = 'forever { run 1us'", "6:15: `{` without `}`"),
        ("do = 'run 1us }'", "6:15: `}` without `{`"),
        ("do = 'send requests r9'", "6:21: expected a register, r0 to r7, found `r9`"),
        ("do = 'run 1us run 2us'", "6:15: expected the end of the line or `;`"),
        ("do = 'run uniform(1us'", "6:11: `(` without `)`"),
        ("do = 'run 1us'\nnicee = 3", "7:1: task 0: unknown key `nicee`; did you mean `nice`?"),
        ("do = 'run 1us'\nnice = 20", "7:8: nice: expected -20 to 19, found 20"),
        (
            "do = 'run 1us'\npolicy = 'fifo'",
            "7:10: policy: expected one of normal, batch, idle, found `fifo`",
        ),
        ("program = 'x'", "6:11: no program is named `x`"),
        (
            "do = 'lock requests'",
            "4:1: task t (0): expected a lock, found requests: Lock(Fixed(ObjectId(0)))",
        ),
        ("do = 'run 1us'\ncount = 0", "7:9: count: expected 1 to 1000000, or \"cpus\", found `0`"),
    ] {
        assert_eq!(fault(&with(body)), message, "{body}");
    }
    assert_eq!(
        fault("[objects]\na = \"pip\"\n"),
        "2:5: object a: expected pipe, unix, tcp, udp, futex, semaphore, mutex, spinlock, condition, barrier, list, cell, queue, data, cpus, or a table with `device`, `workqueue` or `work`, found `pip`; did you mean `pipe`?"
    );
    assert_eq!(fault("until = \n").split(' ').next(), Some("1:9:"));
    assert_eq!(fault("name = \"x\""), "1:1: expected at least one task");
}

#[test]
fn a_program_nested_without_end_is_refused() {
    let text = format!("[[tasks]]\nname = \"t\"\ndo = \"{}\"", "forever { ".repeat(10_000));
    assert!(fault(&text).contains("expected at most 32 bodies inside each other"));
}
