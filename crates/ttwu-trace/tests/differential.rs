//! One recording in two formats gives equal traces.
//!
//! The binary file and the text that the recording tool printed of it go through different code down to the events; what
//! the text cannot carry is named as a lenience, everything else must be equal. See
//! `../shared/traces/own/README.txt` for the commands that made the files.

use ttwu_model::{Event, EventKind, Lenience, StateLetter, Trace, WhereUnknown};
use ttwu_testing::shared;

/// Exact times, but the text has no flags, drops losses, and says nothing of the context of tasks that are gone.
const PERF_SCRIPT: Lenience = Lenience {
    flags: WhereUnknown::Matches,
    by: WhereUnknown::Matches,
    lost: WhereUnknown::Matches,
    ..Lenience::NONE
};
/// libtraceevent's plugin text has no `+`, and letters that are ambiguous where nothing in the file tells them apart.
const PLUGIN: WhereUnknown = WhereUnknown::Matches;

fn read(name: &str) -> Option<Trace> {
    let path = shared(&format!("traces/own/{name}"))?;
    Some(ttwu_trace::read(&path).unwrap_or_else(|error| panic!("ttwu report {}: {error}", path.display())))
}

/// Compares a recording with several texts of it.
fn check(recording: &str, texts: &[(&str, Lenience)]) {
    let Some(binary) = read(recording) else { return };
    assert!(!binary.events().is_empty(), "{recording} has no events");
    let mut different = Vec::new();
    for &(text, lenience) in texts {
        let Some(read) = read(text) else { return };
        // All of these texts hold what tells the letters apart, so that only the `+` may be lost.
        let unknown = |event: &&Event| matches!(event.kind, EventKind::Switch { prev_state, .. } if prev_state.letter() == StateLetter::Unknown);
        assert_eq!(read.events().iter().find(unknown), None, "{text}");
        if let Some(difference) = binary.difference(&read, lenience) {
            different.push(format!("{recording} against {text}: {difference}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn perf_data_against_perf_script() {
    for name in ["hs", "hs-full", "hs-lost"] {
        let plugin = Lenience { states: PLUGIN, ..PERF_SCRIPT };
        check(
            &format!("{name}.data.xz"),
            &[
                (&format!("oracle/{name}.perf61.script-ns.txt.xz"), PERF_SCRIPT),
                (&format!("oracle/{name}.perf61.script-L.txt.xz"), PERF_SCRIPT),
                (&format!("oracle/{name}.perf73.script-ns.txt.xz"), plugin),
                (&format!("oracle/{name}.perf73.script-L.txt.xz"), plugin),
            ],
        );
    }
}

#[test]
fn trace_dat_against_trace_cmd_report() {
    let no_flags = Lenience { flags: WhereUnknown::Matches, ..Lenience::NONE };
    let plugin = Lenience { states: PLUGIN, ..no_flags };
    // `N` is printed for NEED_RESCHED with and without PREEMPT_RESCHED, and BH-off not at all.
    let latency = Lenience { flags_ignored: 0xa0, ..plugin };
    for name in ["hack", "hack-v6", "hack-v7-none"] {
        check(
            &format!("{name}.dat.xz"),
            &[
                (&format!("oracle/{name}.tracecmd316.report-tR.txt.xz"), no_flags),
                (&format!("oracle/{name}.tracecmd316.report-tN.txt.xz"), no_flags),
                (&format!("oracle/{name}.tracecmd316.report-t.txt.xz"), plugin),
                (&format!("oracle/{name}.tracecmd316.report-tl.txt.xz"), latency),
            ],
        );
    }
}

/// trace-cmd 3.3.1 prints the flag byte itself: nothing at all may differ.
#[test]
fn trace_dat_against_raw_fields_with_flags() {
    check("hack.dat.xz", &[("oracle/hack.tracecmd331.report-tR.txt.xz", Lenience::NONE)]);
}

/// `report -w` prints microseconds, rounded to the nearest.
#[test]
fn trace_dat_against_microseconds() {
    let rounded = Lenience { time_ns: 500, flags: WhereUnknown::Matches, states: PLUGIN, ..Lenience::NONE };
    check("hack.dat.xz", &[("oracle/hack.tracecmd316.report-w.txt.xz", rounded)]);
}

/// The kernel's own text of the pages that the directory holds: microseconds, rounded to the nearest. The directory has
/// descriptions of the scheduler's tracepoints only, so only those are compared; flags with them.
#[test]
fn tracefs_pages_against_the_trace_file() {
    let (Some(pages), Some(text)) = (read("tracefs"), read("tracefs/trace.txt.xz")) else { return };
    let only_scheduler = |trace: &Trace| {
        let is_scheduler =
            |event: &&Event| event.kind.tracepoint().is_some_and(|name| name.starts_with("sched_"));
        let events: Vec<Event> = trace.events().iter().filter(is_scheduler).copied().collect();
        Trace::from_parts(trace.parts().clone(), events)
    };
    let (pages, text) = (only_scheduler(&pages), only_scheduler(&text));
    assert_eq!(pages.events().len(), 2035);
    let difference = pages.difference(&text, Lenience { time_ns: 500, ..Lenience::NONE });
    assert_eq!(difference.map(|difference| difference.to_string()), None);
}
