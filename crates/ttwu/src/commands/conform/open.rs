//! What a path names: a folder of decisions, or a trace file whose kernel and machine are found out.

use crate::args;
use crate::commands::topology::resolve;
use crate::exit::Failure;
use anyhow::anyhow;
use std::path::Path;
use ttwu_conform::{Recording, kernel_of, policy_with_features};
use ttwu_fair::Policy;
use ttwu_model::{Topology, TraceMeta};

/// A recording and what there is of it.
pub(crate) struct Opened {
    pub(crate) recording: Recording,
    /// It has placement decisions, extracted or as probe records.
    pub(crate) decisions: bool,
    /// Its trace has the queue probes.
    pub(crate) probes: bool,
    pub(crate) notes: Vec<String>,
}

/// Opens `path`; `None` where it is a folder of another kernel than the one asked for.
pub(crate) fn open(path: &Path, args: &args::Conform) -> Result<Option<Opened>, Failure> {
    if let Err(error) = std::fs::metadata(path) {
        return Err(Failure::input(anyhow!("cannot read {}: {error}", path.display())));
    }
    if path.join("meta").is_file() {
        let recording = Recording::open(path).map_err(Failure::input)?;
        let name = recording.policy().kernel().name();
        if args.kernel.as_ref().is_some_and(|wanted| !name.ends_with(wanted.as_str())) {
            return Ok(None);
        }
        let probes = recording.trace().is_some();
        return Ok(Some(Opened { recording, decisions: true, probes, notes: Vec::new() }));
    }
    open_trace(path, args).map(Some)
}

fn open_trace(path: &Path, args: &args::Conform) -> Result<Opened, Failure> {
    // The file's description first; the events are read when they are scored.
    let trace = ttwu_trace::read(path).map_err(Failure::input)?;
    let meta = trace.meta();
    let (policy, mut notes) = policy(path, meta, args.kernel.as_deref())?;
    let topology = topology(path, meta, args.machine.as_deref(), &mut notes)?;
    let counts = trace.event_counts();
    let probed = |name: &str| counts.contains_key(name);
    if !probed("sched_waking") || !probed("sched_switch") {
        let found = counts.keys().take(8).copied().collect::<Vec<_>>().join(", ");
        return Err(Failure::input(anyhow!(
            "{}: expected sched_waking and sched_switch events (`ttwu record` takes them), found {}",
            path.display(),
            if found.is_empty() { "none of any kind" } else { &found }
        )));
    }
    if !probed("sched_wakeup") {
        notes.push("no sched_wakeup events: wakees count as queued as soon as they are woken".to_owned());
    }
    if !trace.health().is_clean() {
        notes.push("the trace is not clean (ttwu report): what is missing shows as disagreement".to_owned());
    }
    let (decisions, probes) = (probed("sel_in") && probed("sel_out"), probed("place") && probed("pick_in"));
    let recording = Recording::of_trace(path, policy, topology, notes);
    Ok(Opened { recording, decisions, probes, notes: Vec::new() })
}

/// The policy asked for, else that of the file's kernel, with the features that the file says it had.
fn policy(path: &Path, meta: &TraceMeta, wanted: Option<&str>) -> Result<(Policy, Vec<String>), Failure> {
    if let Some(wanted) = wanted {
        if let Ok(policy) = Policy::parse(wanted) {
            return Ok((policy, Vec::new()));
        }
        if kernel_of(wanted).is_none() {
            return Policy::parse(wanted).map(|policy| (policy, Vec::new())).map_err(Failure::input);
        }
    }
    // A simulated trace says its whole policy.
    let own = meta.facts.get("policy").filter(|_| wanted.is_none());
    if let Some(policy) = own.and_then(|text| Policy::parse(text).ok()) {
        return Ok((policy, Vec::new()));
    }
    let release = wanted.or(meta.kernel_release.as_deref());
    let Some((kernel, stands_for)) = release.and_then(kernel_of) else {
        let said =
            release.map_or_else(|| "does not say its kernel".to_owned(), |name| format!("says `{name}`"));
        return Err(Failure::input(anyhow!(
            "{}: expected a kernel such as 6.12, the file {said}; name one with --kernel",
            path.display()
        )));
    };
    let features = meta.facts.get("sched.features").filter(|_| wanted.is_none());
    let (mut policy, mut notes) = policy_with_features(kernel, features.map_or("", String::as_str));
    notes.extend(stands_for);
    if features.is_none() {
        notes.push("features: the kernel's defaults, the file does not say them".to_owned());
    }
    if let Some(hz) = meta.facts.get("kernel.hz") {
        let _ = policy.apply(&format!("hz={hz}"));
    }
    Ok((policy, notes))
}

/// The machine asked for, else the file's own, else this one where it has as many CPUs.
fn topology(
    path: &Path,
    meta: &TraceMeta,
    wanted: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Topology, Failure> {
    if let Some(wanted) = wanted {
        let machine = resolve(wanted)?;
        let recorded = meta.cpus_recorded.and_then(|cpus| usize::try_from(cpus).ok());
        if let Some(cpus) = recorded.filter(|&cpus| cpus > machine.cpu_bound()) {
            return Err(Failure::input(anyhow!(
                "{}: the trace is of {cpus} CPUs, the machine `{wanted}` has {}",
                path.display(),
                machine.cpu_bound()
            )));
        }
        return Ok(machine);
    }
    if let Some(text) = &meta.topology_text {
        return Topology::parse(text).map_err(Failure::input);
    }
    let host = resolve("host")?;
    let recorded = meta.cpus_recorded.and_then(|cpus| usize::try_from(cpus).ok());
    if recorded == Some(host.cpu_bound()) {
        notes.push("machine: this one, as the file has no topology and as many CPUs".to_owned());
        return Ok(host);
    }
    Err(Failure::input(anyhow!(
        "{}: expected a topology, the file has none and {} CPUs, this machine {}; name one with --machine",
        path.display(),
        recorded.map_or_else(|| "an unknown number of".to_owned(), |cpus| cpus.to_string()),
        host.cpu_bound()
    )))
}
