//! What a recording says about the machine before its first event: who, which CPUs, which clock, which tracepoints.

use super::events::Selection;
use super::facts;
use super::spool::TracingData;
use super::tracefs::{Tracefs, Tracepoint};
use crate::sys;
use std::collections::BTreeMap;
use std::fs;
use ttwu_model::{CpuSet, TraceMeta};

/// The name under which this recorder signs.
pub(crate) fn recorder_name() -> String {
    format!("ttwu {}", env!("CARGO_PKG_VERSION"))
}

/// CPUs on line, in order.
pub(crate) fn online_cpus() -> Vec<u16> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let set = CpuSet::parse_list(&list).unwrap_or_default();
    if set.is_empty() { vec![0] } else { set.iter().map(ttwu_model::CpuId::number).collect() }
}

/// One more than the highest CPU number that this machine can have.
pub(crate) fn possible_cpus() -> usize {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let set = CpuSet::parse_list(&list).unwrap_or_default();
    set.iter().last().map_or(0, |cpu| cpu.index() + 1)
}

/// Is `CLOCK_MONOTONIC` read without leaving the CPU? It is read once per event; an emulated timer would cost more than the
/// event itself.
pub(crate) fn clock_is_cheap() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(path).unwrap_or_default();
    ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource", "xen", "timebase", "tod", "riscv"]
        .iter()
        .any(|cheap| source.starts_with(cheap))
}

/// Wall clock and `CLOCK_MONOTONIC` at one moment, so that recordings can be put beside logs.
pub(crate) fn clock_pair() -> String {
    #[expect(clippy::disallowed_types, reason = "the recording says when it was made")]
    let wall = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{} at {} ns of CLOCK_MONOTONIC", wall.as_nanos(), sys::monotonic_ns())
}

/// The meta data of a recording of `selection` on `cpus`, stamped by `clock`.
pub(crate) fn describe_machine(selection: &Selection, cpus: &[u16], clock: &str) -> TraceMeta {
    let uname = sys::uname();
    let command: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    TraceMeta {
        format: "ttwu".to_owned(),
        recorder: Some(recorder_name()),
        kernel_release: Some(uname.release),
        arch: Some(uname.machine),
        hostname: Some(uname.nodename),
        clock: Some(clock.to_owned()),
        command: Some(command.join(" ")),
        cpus_recorded: u32::try_from(cpus.len()).ok(),
        cpus_online: Some(cpus.iter().map(|&cpu| ttwu_model::CpuId::new(cpu)).collect()),
        events_recorded: Some(selection.tracepoints.iter().map(Tracepoint::full_name).collect()),
        resolution_ns: 1,
        facts: facts::gather(),
        ..TraceMeta::default()
    }
}

/// What a reader needs to decode the selection's payloads.
pub(crate) fn tracing_data(tracefs: &Tracefs, selection: &mut Selection) -> TracingData {
    let symbols = if selection.wants_symbols() { functions_of(selection.symbols()) } else { Vec::new() };
    let mut systems: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for point in &selection.tracepoints {
        systems.entry(&point.system).or_default().push(point.format.clone());
    }
    TracingData {
        header_page: tracefs.file("events/header_page"),
        header_event: tracefs.file("events/header_event"),
        systems: systems.into_iter().map(|(system, formats)| (system.to_owned(), formats)).collect(),
        symbols,
    }
}

/// The kernel's functions by address, where they are shown to us.
fn functions_of(symbols: &str) -> Vec<u8> {
    let mut functions = String::with_capacity(symbols.len() / 2);
    for line in symbols.lines() {
        let kind = line.split_ascii_whitespace().nth(1);
        if matches!(kind, Some("t" | "T" | "w" | "W")) && !line.starts_with("0000000000000000") {
            functions.push_str(line);
            functions.push('\n');
        }
    }
    functions.into_bytes()
}
