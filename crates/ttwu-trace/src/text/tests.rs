//! The text reader on whole files.

use crate::{Format, Input, ReadError, TraceStream};
use std::fmt::Write;
use ttwu_model::{Event, EventKind, Pid, StateLetter, StrId, TaskId, TaskState, Time, Trace};
use ttwu_testing::{damage, shared};

fn try_read(text: &[u8]) -> Result<(Format, Trace), ReadError> {
    let stream = TraceStream::from_input(Input::from_bytes(text.to_vec(), "x"))?;
    Ok((stream.format(), stream.collect()?))
}

fn read(text: &str) -> Trace {
    try_read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).1
}

/// One event as a short line: `time cpu by flags kind fields`, tasks as `name:pid` by the name at that time.
fn show(trace: &Trace, event: &Event) -> String {
    let text = |id: Option<StrId>| id.map_or("-", |id| trace.strings().get(id));
    let task = |task: TaskId| {
        let name = text(trace.tasks().name_at(task, event.at));
        format!("{name}:{}", trace.tasks().get(task).pid)
    };
    let plus = |state: TaskState| if state.preempted().is_none() { "*" } else { "" };
    let mut line = format!("{:?} {} {} ", event.at, event.cpu, task(event.by));
    match event.flags.common_flags() {
        Some(flags) => write!(line, "{flags:02x} ").unwrap(),
        None => line.push_str("?? "),
    }
    let what = match event.kind {
        EventKind::Waking { wakee, prev_cpu, prio } => {
            format!("waking {} from {prev_cpu} {prio:?}", task(wakee))
        }
        EventKind::Wakeup { wakee, cpu, prio } => format!("wakeup {} on {cpu} {prio:?}", task(wakee)),
        EventKind::WakeupNew { wakee, cpu, prio } => format!("wakeup_new {} on {cpu} {prio:?}", task(wakee)),
        EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } => format!(
            "switch {} {prev_prio:?} {prev_state}{} > {} {next_prio:?}",
            task(prev),
            plus(prev_state),
            task(next)
        ),
        EventKind::Migrate { task: moved, orig_cpu, dest_cpu, prio } => {
            format!("migrate {} {orig_cpu}>{dest_cpu} {prio:?}", task(moved))
        }
        EventKind::Fork { parent, child } => format!("fork {} > {}", task(parent), task(child)),
        EventKind::Exit { task: gone } => format!("exit {}", task(gone)),
        EventKind::Exec { task: who, file } => format!("exec {} {}", task(who), text(file)),
        EventKind::StatRuntime { task: who, runtime_ns } => format!("runtime {} {runtime_ns}", task(who)),
        EventKind::StatWait { task: who, delay_ns } => format!("wait {} {delay_ns}", task(who)),
        EventKind::StatSleep { task: who, delay_ns } => format!("sleep {} {delay_ns}", task(who)),
        EventKind::IdleEnter { cpu, state } => format!("idle_enter {cpu} {state}"),
        EventKind::IdleExit { cpu } => format!("idle_exit {cpu}"),
        EventKind::Frequency { cpu, khz } => format!("frequency {cpu} {khz}"),
        EventKind::IpiSend { target, callsite } => format!("ipi_send {target} {}", text(callsite)),
        EventKind::IpiSendMask { mask, callsite } => format!("ipi_mask {} {}", text(mask), text(callsite)),
        EventKind::VectorEntry { name } => format!("vector_entry {}", text(Some(name))),
        EventKind::VectorExit { name } => format!("vector_exit {}", text(Some(name))),
        EventKind::IrqEntry { irq, name } => format!("irq_entry {irq} {}", text(name)),
        EventKind::IrqExit { irq } => format!("irq_exit {irq}"),
        EventKind::SoftirqRaise { vec } => format!("softirq_raise {vec}"),
        EventKind::SoftirqEntry { vec } => format!("softirq_entry {vec}"),
        EventKind::SoftirqExit { vec } => format!("softirq_exit {vec}"),
        EventKind::TimerExpire { function } => format!("timer {}", text(Some(function))),
        EventKind::WorkStart { function } => format!("work_start {}", text(Some(function))),
        EventKind::WorkEnd { function } => format!("work_end {}", text(function)),
        EventKind::Yield => "yield".to_owned(),
        EventKind::Lost { count } => format!("lost {}", count.map_or(0, std::num::NonZeroU32::get)),
        EventKind::Other { name } => format!("other {}", text(Some(name))),
    };
    line + &what
}

fn check(text: &str, format: Format, expect: &[&str]) {
    let (found_format, trace) = try_read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let found: Vec<String> = trace.events().iter().map(|event| show(&trace, event)).collect();
    assert_eq!(found, expect, "from\n{text}");
    assert_eq!(found_format, format, "{text}");
}

/// Text formats by the manifest's names; its `format` column calls all of them differently.
const TEXT_FORMATS: [&str; 3] = ["text", "systrace/atrace html", "perf script text"];
/// What the manifest calls text and is not.
const NOT_TEXT: [&str; 2] = [
    "public/google+perfetto/one_page_sched_switch",
    "public/microsoft+LinuxTracepoints/perf.data.linux.json",
];

#[test]
fn public_files_have_the_manifests_counts() {
    let Some(manifest) = shared("traces/MANIFEST.tsv") else { return };
    let manifest_text = std::fs::read_to_string(&manifest).unwrap();
    let mut files = 0;
    for row in manifest_text.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let (file, format, events, counts) = (columns[0], columns[6], columns[9], columns[10]);
        if !TEXT_FORMATS.contains(&format) || NOT_TEXT.contains(&file) {
            continue;
        }
        let path = manifest.with_file_name(file);
        let trace =
            crate::read(&path).unwrap_or_else(|error| panic!("ttwu report {}: {error}", path.display()));
        println!("{file}: {:?}\n    {:?}", trace.meta().format, trace.health());
        let found = trace.event_counts();
        for count in counts.split_whitespace() {
            let (name, count) = count.split_once('=').unwrap();
            assert_eq!(
                found.get(name).copied().unwrap_or(0).to_string(),
                count,
                "{name} of {file}: {found:?}"
            );
        }
        assert_eq!(trace.events().len().to_string(), events, "events of {file}: {found:?}");
        files += 1;
    }
    assert_eq!(files, 22);
}

const TRACEFS: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 9/9   #P:2
#
#                                          _-----=> irqs-off/BH-disabled
#                                         / _----=> need-resched
#                                        | / _---=> hardirq/softirq
#                                        || / _--=> preempt-depth
#                                        ||| / _-=> migrate-disable
#                                        |||| /     delay
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
#              | |           |       |   |||||     |         |
            bash-9791    (   9791) [001] d..2.  1974.329586: sched_wakeup_new: comm=my task pid=9798 prio=120 target_cpu=000
          <idle>-0       (-------) [000] dNh4.  1974.329600: ipi_send_cpu: cpu=1 callsite=wakeup_preempt+0x92/0xa0 callback=0x0
          <idle>-0       (-------) [000] d..2.  1974.329613: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my task next_pid=9798 next_prio=120
CPU:1 [LOST 7 EVENTS]
           <...>-77      (   9791) [001] d.h..  1974.335628: hrtimer_expire_entry: hrtimer=000000009240482c function=tick_nohz_handler now=1974335622865
           <...>-77      (   9791) [001] ..s..  1974.335640: softirq_entry: vec=7 [action=SCHED]
           <...>-77      (   9791) [001] d..2.  1974.335700: sched_switch: prev_comm=a ==> b prev_pid=77 prev_prio=98 prev_state=R+ ==> next_comm=x next_pid=1 next_pid=78 next_prio=0
         my task-9798    (   9791) [000] D.s31  1974.335701: sched_migrate_task: comm=[0]=- : pid=78 prio=0 orig_cpu=0 dest_cpu=1
         my task-9798    (   9791) [000] .....  1974.335702: sched_process_exit: comm=my task pid=9798 prio=120 group_dead=true
         my task-9798    (   9791) [000] .l...  1974.335703: irq_handler_entry: irq=39 name=virtio2 out
";

#[test]
fn tracefs_text() {
    check(
        TRACEFS,
        Format::FtraceText,
        &[
            "1974.329586000s 1 bash:9791 01 wakeup_new my task:9798 on 0 prio120",
            "1974.329600000s 0 -:0 2d ipi_send 1 wakeup_preempt+0x92/0xa0",
            "1974.329613000s 0 -:0 01 switch -:0 prio120 R > my task:9798 prio120",
            "1974.335628000s 1 -:-1 ?? lost 7",
            "1974.335628000s 1 a ==> b:77 09 timer tick_nohz_handler",
            "1974.335640000s 1 a ==> b:77 10 softirq_entry 7",
            "1974.335700000s 1 a ==> b:77 01 switch a ==> b:77 prio98 R+ > x next_pid=1:78 prio0",
            "1974.335701000s 0 my task:9798 91 migrate [0]=- ::78 0>1 prio0",
            "1974.335702000s 0 my task:9798 00 exit my task:9798",
            "1974.335703000s 0 my task:9798 02 irq_entry 39 virtio2 out",
        ],
    );
    let trace = read(TRACEFS);
    assert_eq!(trace.meta().resolution_ns, 1000);
    assert_eq!(trace.meta().cpus_recorded, Some(2));
    assert_eq!(trace.health().lost_events, 7);
    assert_eq!(trace.health().notes, Vec::<String>::new());
    let tgid = |pid| {
        trace.tasks().iter().find(|(_, task)| task.pid == Pid::new(pid)).and_then(|(_, task)| task.tgid)
    };
    assert_eq!((tgid(77), tgid(9791), tgid(78)), (Some(Pid::new(9791)), Some(Pid::new(9791)), None));
}

const OLD_TRACEFS: &str = "\
# tracer: nop
#
#           TASK-PID    CPU#    TIMESTAMP  FUNCTION
#              | |       |          |         |
          atrace-14662 [000] 50260.647576: sched_switch: prev_comm=atrace prev_pid=14662 prev_prio=120 prev_state=S ==> next_comm=kworker/0:0 next_pid=13696 next_prio=120
     kworker/0:0-13696 [000] 50260.647590: sched_wakeup: comm=mmcqd/0 pid=95 prio=120 success=1 target_cpu=000
     kworker/0:0-13696 [000] 50260.647602: cpu_idle: state=4294967295 cpu_id=0
     kworker/0:0-13696 [000] 50260.647603: cpu_idle: state=2 cpu_id=0
     kworker/0:0-13696 [000] 50260.647604: cpu_frequency: state=600000 cpu_id=0
     kworker/0:0-13696 [000] 50260.647605: ipi_raise: target_mask=00000000,00000004 (Rescheduling interrupts)
     kworker/0:0-13696 [000] 50260.647605: ipi_raise: target_mask=0006 (Function call interrupts)
     kworker/0:0-13696 [000] 50260.647606: ipi_entry: (Rescheduling interrupts)
     kworker/0:0-13696 [000] 50260.647607: workqueue_execute_start: work struct 000000001b2c3d4e: function vmstat_update
     kworker/0:0-13696 [000] 50260.647608: workqueue_execute_end: work struct 000000001b2c3d4e
     kworker/0:0-13696 [000] 50260.647609: tracing_mark_write: B|22|a: b
     kworker/0:0-13696 [000] 50260.647610: sched_wakeup: task bash:7 [120] success=1 [001]
     kworker/0:0-13696 [000] 50260.647610: sys_sched_yield()
     kworker/0:0-13696 [000] 50260.647610: sys_sched_yield -> 0x0
     kworker/0:0-13696 [000] 50260.647610: sys_openat(dfd: 3, filename: 7f00, flags: 0, mode: 1.5: )
     kworker/0:0-13696 [000] 50260.647610: schedule <-do_exit
     kworker/0:0-13696 [000] 50260.647610: sched_switch: (__probestub_sched_switch+0x4/0x10) preempt=0 prev_state=1
     kworker/0:0-13696 [000] 50260.647611: sched_switch: task a b:13696 [120] (D|K) ==> swapper:0 [140]
";

#[test]
fn old_tracefs_text() {
    check(
        OLD_TRACEFS,
        Format::FtraceText,
        &[
            "50260.647576000s 0 atrace:14662 ?? switch atrace:14662 prio120 S > kworker/0:0:13696 prio120",
            "50260.647590000s 0 kworker/0:0:13696 ?? wakeup mmcqd/0:95 on 0 prio120",
            "50260.647602000s 0 kworker/0:0:13696 ?? idle_exit 0",
            "50260.647603000s 0 kworker/0:0:13696 ?? idle_enter 0 2",
            "50260.647604000s 0 kworker/0:0:13696 ?? frequency 0 600000",
            "50260.647605000s 0 kworker/0:0:13696 ?? ipi_send 2 Rescheduling interrupts",
            "50260.647605000s 0 kworker/0:0:13696 ?? ipi_mask 0006 Function call interrupts",
            "50260.647606000s 0 kworker/0:0:13696 ?? vector_entry Rescheduling interrupts",
            "50260.647607000s 0 kworker/0:0:13696 ?? work_start vmstat_update",
            "50260.647608000s 0 kworker/0:0:13696 ?? work_end -",
            "50260.647609000s 0 kworker/0:0:13696 ?? other tracing_mark_write",
            "50260.647610000s 0 kworker/0:0:13696 ?? wakeup bash:7 on 1 prio120",
            "50260.647610000s 0 kworker/0:0:13696 ?? yield",
            "50260.647610000s 0 kworker/0:0:13696 ?? other sys_exit_sched_yield",
            "50260.647610000s 0 kworker/0:0:13696 ?? other sys_enter_openat",
            "50260.647610000s 0 kworker/0:0:13696 ?? other function",
            "50260.647610000s 0 kworker/0:0:13696 ?? other sched_switch (probe)",
            "50260.647611000s 0 a b:13696 ?? switch a b:13696 prio120 D > swapper:0 prio140",
        ]
        .map(|line| line.replace("swapper:0", "-:0"))
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>(),
    );
}

const REPORT_PLUGIN: &str = "\
version = 6
CPU 3 is empty
cpus=2
       trace-cmd-10378 [000]   541.520319953: sched_switch:         trace-cmd:10378 [120] S ==> swapper/0:0 [120]
 sched-messaging-10379 [001]   541.520330257: sched_wakeup:         migration/1:21 [0] CPU:001
 sched-messaging-10379 [001]   541.520333294: sched_switch:         x:10379 [120] R ==> migration/1:21 [0]
     migration/1-21    [001]   541.520339678: sched_migrate_task:   comm=trace-cmd pid=10379 prio=120 orig_cpu=1 dest_cpu=0
CPU:1 [3 EVENTS DROPPED]
          <idle>-0     [001]   541.520351544: sched_switch:         kworker/1:1:33 [120] W ==> a:7 [1] S ==> b:10379 [120] Latency: 8.371 usecs
            b:10-10379 [001]   541.520386534: sched_switch:         b:10379 [120] X ==> swapper/1:0 [120]
";

#[test]
fn trace_cmd_report_with_plugins() {
    check(
        REPORT_PLUGIN,
        Format::FtraceText,
        &[
            "541.520319953s 0 trace-cmd:10378 ?? switch trace-cmd:10378 prio120 S* > -:0 prio120",
            "541.520330257s 1 x:10379 ?? wakeup migration/1:21 on 1 prio0",
            "541.520333294s 1 x:10379 ?? switch x:10379 prio120 R* > migration/1:21 prio0",
            "541.520339678s 1 migration/1:21 ?? migrate trace-cmd:10379 1>0 prio120",
            "541.520351544s 1 -:-1 ?? lost 3",
            "541.520351544s 1 kworker/1:1:33 ?? switch kworker/1:1:33 prio120 I* > a:7 [1] S ==> b:10379 prio120",
            "541.520386534s 1 b:10379 ?? switch b:10379 prio120 Z* > -:0 prio120",
        ],
    );
    assert_eq!(read(REPORT_PLUGIN).meta().resolution_ns, 1);
}

const REPORT_LATENCY: &str = "\
cpus=12
sched-me-10379   1dN.4.   541.520330257: sched_wakeup:         migration/1:21 [0] CPU:011
  <idle>-0      11d.h2.   541.520351544: sched_wakeup:         comm=a pid=7 prio=120 target_cpu=000
short-44         0-0x2d   541.520351544: (+1)  sched_stat_wait: comm=a pid=7 delay=0 [ns]
short-44         0.....   541.520351545: sched_process_exec:   filename=/usr/bin/my perf pid=44 old_pid=44
";

#[test]
fn trace_cmd_report_in_latency_format() {
    check(
        REPORT_LATENCY,
        Format::FtraceText,
        &[
            "541.520330257s 1 -:10379 25 wakeup migration/1:21 on 11 prio0",
            "541.520351544s 11 -:0 09 wakeup a:7 on 0 prio120",
            "541.520351544s 0 short:44 2d wait a:7 0",
            "541.520351545s 0 short:44 00 exec short:44 /usr/bin/my perf",
        ],
    );
}

const REPORT_RAW: &str = "\
cpus=2
 sched-messaging-9854  [000]-0x25   524.001002744: sched_wakeup:          comm=migration/0 pid=18 prio=0 target_cpu=0
 sched-messaging-9854  [000]-0x1   524.001011115: sched_switch:          prev_comm=trace-cmd prev_pid=9854 prev_prio=120 prev_state=256 next_comm=migration/0 next_pid=18 next_prio=0
 sched-messaging-9854  [000]   524.022028687: sched_process_fork:    parent_comm=a parent_pid=9854 child_comm=b child_pid=9855
 sched-messaging-9854  [000]   524.022028688: sched_stat_runtime:    comm=a pid=9854 runtime=12 vruntime=5
     rcu_preempt-15    [000]   524.022028689: sched_switch:          prev_comm=rcu_preempt prev_pid=15 prev_prio=120 prev_state=128 next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn trace_cmd_report_of_raw_fields() {
    check(
        REPORT_RAW,
        Format::FtraceText,
        &[
            "524.001002744s 0 trace-cmd:9854 25 wakeup migration/0:18 on 0 prio0",
            "524.001011115s 0 trace-cmd:9854 01 switch trace-cmd:9854 prio120 R+ > migration/0:18 prio0",
            "524.022028687s 0 a:9854 ?? fork a:9854 > b:9855",
            "524.022028688s 0 a:9854 ?? runtime a:9854 12",
            "524.022028689s 0 rcu_preempt:15 ?? switch rcu_preempt:15 prio120 I > -:0 prio120",
        ],
    );
}

const PERF_FULL: &str = "\
# ========
# captured on    : Mon Nov 30 12:00:00 2026
# hostname : box
# os release : 6.18.44
# perf version : 6.1.187
# event : name = sched:sched_switch, , id = { 1, 2 }, type = 2, size = 136
# ========
#
            perf  8971 [000]  1949.037662812:                sched:sched_switch: prev_comm=perf prev_pid=8971 prev_prio=120 prev_state=R+ ==> next_comm=a b next_pid=8141 next_prio=120
        ffffffff8b2c1f5a __schedule+0x3ea ([kernel.kallsyms])
        ffffffff8b2c1f5a inner (inlined)
            7f2b3c4d5e6f [unknown] (/lib/x86: 1.5: a)
 source.c:12

             a b  8141/8142 [001]  1949.037691345:                sched:sched_waking: comm=migration/0 pid=18 prio=0 target_cpu=000
          :-1    -1 [001]  1949.037700000:  1 syscalls:sys_enter_sched_yield: 
   my - task: 3  8142 [001] d.h.  1949.037700001:          2500 cycles:u:      7f2b3c4d5e6f [unknown] (x)
            perf  8971 [000]  1949.037700002: PERF_RECORD_LOST lost 23
            perf  8971 [000]  1949.037700002: PERF_RECORD_COMM: perf:8971/8971
            perf  8971 [000]  1949.037700003:  irq_vectors:local_timer_entry: vector=236
            perf  8971 [000]  1949.037700004:   sched:sched_stat_sleep: comm=a pid=2450 delay=1802051076 [ns]
";

#[test]
fn perf_script_text() {
    check(
        PERF_FULL,
        Format::PerfScript,
        &[
            "1949.037662812s 0 perf:8971 ?? switch perf:8971 prio120 R+ > a b:8141 prio120",
            "1949.037691345s 1 a b:8142 ?? waking migration/0:18 from 0 prio0",
            "1949.037700000s 1 -:-1 ?? yield",
            "1949.037700001s 1 a b:8142 09 other cycles:u",
            "1949.037700002s 0 -:-1 ?? lost 23",
            "1949.037700003s 0 perf:8971 ?? vector_entry local_timer",
            "1949.037700004s 0 perf:8971 ?? sleep a:2450 1802051076",
        ]
        .map(|line| line.replace("a b:8142", "my - task: 3:8142"))
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>(),
    );
    let trace = read(PERF_FULL);
    assert_eq!(trace.meta().kernel_release.as_deref(), Some("6.18.44"));
    assert_eq!(trace.meta().recorder.as_deref(), Some("perf version 6.1.187"));
    assert!(trace.meta().events_recorded.as_ref().is_some_and(|names| names.contains("sched:sched_switch")));
    assert_eq!(trace.health().unknown_records.len(), 0, "{:?}", trace.health());
    assert_eq!(trace.health().notes, ["1 call stacks were skipped"]);
}

const PERF_PLUGIN: &str = "\
    perf    8971   0  1949.037662812: sched:sched_switch: perf:8971 [120] R ==> qemu:8141 [120]
migratio      18   0  1949.037728641: sched:sched_wakeup: perf:8971 [120] CPU:001
";

#[test]
fn perf_script_in_latency_format_with_plugin_text() {
    check(
        PERF_PLUGIN,
        Format::PerfScript,
        &[
            "1949.037662812s 0 perf:8971 ?? switch perf:8971 prio120 R* > qemu:8141 prio120",
            "1949.037728641s 0 -:18 ?? wakeup perf:8971 on 1 prio120",
        ],
    );
}

#[test]
fn perf_script_with_other_fields() {
    let event = "sched:sched_waking: comm=b pid=18 prio=0 target_cpu=000";
    let expect = |by: &str| format!("1.500000000s 3 {by} ?? waking b:18 from 0 prio0");
    for (prefix, by) in [
        ("a task [003]     1.500000:", "-:-1"),
        ("  44 [003]     1.500000:", "-:44"),
        (" 40/44 [003]     1.500000:", "-:44"),
        ("[003]     1.500000:", "-:-1"),
        ("a task    44 [003]     1.500000:", "a task:44"),
        ("a task    40/44    [003]     1.500000:", "a task:44"),
    ] {
        check(&format!("{prefix} {event}\n"), Format::PerfScript, &[&expect(by)]);
    }
}

#[test]
fn text_without_what_is_needed_is_refused_with_the_remedy() {
    let refused = |text: &str| try_read(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
    let no_cpu = refused("perf  44  1.500000: sched:sched_waking: comm=b pid=18 prio=0 target_cpu=000\n");
    assert_eq!(
        no_cpu,
        "perf script text: none of 1 lines is an event (first: line without a CPU 1); \
         perf script -F comm,tid,cpu,time,event,trace prints all that is needed"
    );
    let no_time = refused("[000] sched:sched_waking: comm=b pid=18 prio=0 target_cpu=000\n");
    assert!(no_time.contains("(first: line without a time stamp 1)"), "{no_time}");
    let html = refused("<!DOCTYPE html>\n<html><body></body></html>\n");
    assert!(html.contains("is HTML or XML without a systrace inside"), "{html}");
    let html = refused("<!DOCTYPE html>\n<script class=\"trace-data\">\nH4sIAAAA</script>\n");
    assert!(html.ends_with("its trace is JSON or compressed, which ttwu does not read"), "{html}");
    let json = refused("{\"traceEvents\": []}");
    assert!(json.contains("Chrome's JSON"), "{json}");
    let nothing = refused("# tracer: function\n#\nnonsense\nmore\n");
    assert_eq!(
        nothing,
        "ftrace text: none of 4 lines is an event (first: line without a time stamp 3); \
         expected lines like `task-12 [001] d..2. 3.456789: sched_switch: …`"
    );
}

#[test]
fn an_empty_trace_is_a_trace() {
    check("# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:2\n#\n", Format::FtraceText, &[]);
}

fn script_line(at: u64, cpu: usize) -> String {
    format!("a-1 [{cpu:03}] d..2. {}.{:06}: cpu_idle: state=1 cpu_id={cpu}\n", at / 1_000_000, at % 1_000_000)
}

#[test]
fn html_javascript_and_json_hold_the_same_trace() {
    let lines = [script_line(5, 0), script_line(7, 1)];
    let plain = lines.concat();
    let html = format!(
        "<!DOCTYPE html>\n<script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n{plain}  </script>\n"
    );
    let script = lines.concat().replace('\n', "\\n\\\n");
    let old = format!("<html>\n<script>\nvar linuxPerfData = \"\\\n{script}\\n\";\n</script>\n");
    let json = format!("{{\"traceEvents\":[],\"systemTraceEvents\":\"{}\"}}", plain.replace('\n', "\\n"));
    for text in [plain, html, old, format!("# tracer: nop\\n\\\n{script}"), json] {
        check(
            &text,
            Format::FtraceText,
            &["0.000005000s 0 a:1 01 idle_enter 0 1", "0.000007000s 1 a:1 01 idle_enter 1 1"],
        );
    }
}

#[test]
fn disorder_within_the_window_is_sorted_and_said() {
    let text = [script_line(5, 0), script_line(3, 1), script_line(5, 1), script_line(4, 0)].concat();
    let trace = read(&text);
    let order: Vec<_> =
        trace.events().iter().map(|event| (event.at.as_ns() / 1000, event.cpu.index())).collect();
    assert_eq!(order, [(3, 1), (4, 0), (5, 0), (5, 1)]);
    assert_eq!(trace.health().clock_steps_total, 1);
    assert_eq!(trace.health().repairs, ["2 lines were out of time order and have been sorted in"]);
}

#[test]
fn files_of_single_cpus_behind_one_another_are_sorted_however_long() {
    let mut text = String::new();
    for cpu in 0..2 {
        for at in 0..150_000 {
            text.push_str(&script_line(at * 10 + cpu as u64, cpu));
        }
    }
    let trace = read(&text);
    assert_eq!(trace.events().len(), 300_000);
    assert!(trace.events().iter().enumerate().all(|(index, event)| {
        event.at == Time::from_ns((index as u64 / 2 * 10 + index as u64 % 2) * 1000)
    }));
    assert_eq!(trace.health().repairs, ["149999 lines were out of time order and have been sorted in"]);
}

#[test]
fn what_comes_too_late_is_moved_and_said() {
    // One early event in a long file, at no sampled place.
    let mut text: String = (0..200_000).map(|at| script_line(at * 10 + 10, 0)).collect();
    text.push_str(&script_line(1, 1));
    text.push_str(&script_line(2_000_020, 0));
    let trace = read(&text);
    assert_eq!(trace.events().len(), 200_002);
    assert_eq!(trace.health().repairs.len(), 2, "{:?}", trace.health().repairs);
    assert!(trace.health().repairs[1].starts_with("1 of them came more than 65536 events late"));
}

#[test]
fn unknown_lines_are_counted_by_kind_and_a_cut_end_is_said() {
    let text = format!(
        "{}nonsense\na-1 [70000] d..2. 1.000001: cpu_idle: state=1 cpu_id=1\na-1 [001] d..2. 1.000002: sched_waking: comm=a\n\
         a-1 [001] d..2. 1.000003: not an event\na-1 [00",
        script_line(5, 0)
    );
    let trace = read(&text);
    let unknown: Vec<_> =
        trace.health().unknown_records.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(
        unknown,
        [
            ("line with a CPU number above 65535", 1),
            ("line without a time stamp", 2),
            ("line without an event name", 1),
            ("sched_waking with unreadable fields", 1),
        ]
    );
    assert_eq!(trace.health().truncated_at, Some(text.len() as u64));
}

#[test]
fn a_switch_that_ends_behind_its_first_task_is_kept() {
    let trace = read("bash-14840 [005]  7115.450093: sched_switch:  prev_comm=bash prev_pid=14840\n");
    let unknown = TaskState::new(StateLetter::Unknown, None);
    assert!(matches!(trace.events()[0].kind, EventKind::Switch { prev_state, .. } if prev_state == unknown));
    assert_eq!(trace.health().unknown_records.get("sched_switch cut short"), Some(&1));
}

#[test]
fn damaged_text_neither_panics_nor_hangs() {
    let html = format!("<!DOCTYPE html>\n<script class=\"trace-data\">\n{TRACEFS}</script>\n");
    let json =
        format!("{{\"traceEvents\":[],\"systemTraceEvents\":\"{}\"}}", OLD_TRACEFS.replace('\n', "\\n"));
    let script = OLD_TRACEFS.replace('\n', "\\n\\\n");
    let styles = [
        TRACEFS,
        OLD_TRACEFS,
        REPORT_PLUGIN,
        REPORT_LATENCY,
        REPORT_RAW,
        PERF_FULL,
        PERF_PLUGIN,
        &html,
        &json,
        &script,
    ];
    for (style, text) in styles.iter().enumerate() {
        for seed in 0..400 {
            let bytes = damage(text.as_bytes(), seed);
            let done = std::panic::catch_unwind(|| try_read(&bytes).is_ok());
            assert!(done.is_ok(), "style {style}, damage seed {seed}");
        }
    }
}

/// Each would take hours if any step looked at the rest of the line for each of its beginnings.
#[test]
fn lines_of_a_megabyte_take_no_quadratic_time() {
    for piece in
        [": ", " 1.1: ", "a-1 [001] 1.1: ", ":1 [1] x ==> ", " prev_pid=1", " ", "a-1 ( [001] 1.1: x <"]
    {
        let long = piece.repeat((1 << 20) / piece.len() - 10);
        for head in ["", "a-1 [001] 1.1: sched_switch: ", "a-1 [001] 1.1: sched_wakeup: prev_comm="] {
            let text = format!("# tracer: nop\n{head}{long}\na-1 [001] 1.1: x: y\n");
            assert!(!read(&text).events().is_empty(), "{head}{piece}…");
        }
    }
}

#[test]
fn our_own_oracle_texts_have_the_recordings_counts() {
    // Switch, waking, wakeup, wakeup_new, migrate, as the manifest counts them in the binary files.
    let recordings = [
        ("hack.tracecmd316.report-t", [2130, 1743, 1743, 40, 74]),
        ("hack.tracecmd316.report-tN", [2130, 1743, 1743, 40, 74]),
        ("hack.tracecmd316.report-tR", [2130, 1743, 1743, 40, 74]),
        ("hack.tracecmd316.report-tl", [2130, 1743, 1743, 40, 74]),
        ("hack.tracecmd316.report-w", [2130, 1743, 1743, 40, 74]),
        ("hack.tracecmd331.report-tR", [2130, 1743, 1743, 40, 74]),
        ("hack-v6.tracecmd316.report-t", [1498, 1077, 1077, 66, 53]),
        ("hack-v6.tracecmd316.report-tR", [1498, 1077, 1077, 66, 53]),
        ("hack-v7-none.tracecmd316.report-tl", [1522, 1115, 1115, 40, 48]),
        ("hack-v7-none.tracecmd316.report-tN", [1522, 1115, 1115, 40, 48]),
        ("hs.perf61.script-ns", [2340, 1344, 0, 40, 77]),
        ("hs.perf61.script-L", [2340, 1344, 0, 40, 77]),
        ("hs.perf73.script-ns", [2340, 1344, 0, 40, 77]),
        ("hs.perf73.script-L", [2340, 1344, 0, 40, 77]),
        ("hs-full.perf61.script-L", [1764, 1102, 1101, 40, 48]),
        ("hs-full.perf73.script-ns", [1764, 1102, 1101, 40, 48]),
        ("hs-lost.perf61.script-ns", [1199, 550, 0, 0, 0]),
    ];
    let names = ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task"];
    for (file, expect) in recordings {
        let Some(path) = shared(&format!("traces/own/oracle/{file}.txt.xz")) else { return };
        let trace =
            crate::read(&path).unwrap_or_else(|error| panic!("ttwu report {}: {error}", path.display()));
        let counts = trace.event_counts();
        assert_eq!(names.map(|name| counts.get(name).copied().unwrap_or(0)), expect, "{file}");
        assert!(trace.health().unknown_records.is_empty(), "{file}: {:?}", trace.health().unknown_records);
    }
}
