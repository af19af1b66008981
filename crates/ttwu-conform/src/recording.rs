//! A recording: the kernel's policy and machine, and its decisions. A folder has all of it; of a trace file the caller says
//! what the file does not.

use crate::ConformError;
use crate::extract::Extract;
use crate::format::Decision;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use ttwu_fair::{Kernel, Machine, Policy};
use ttwu_model::{Arch, CpuSet, NodeList, NodeMemory, SchedDomains, SiblingLists, Topology};

/// Decisions recorded from a real kernel.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    name: String,
    policy: Policy,
    topology: Topology,
    machine: Machine,
    notes: Vec<String>,
    /// The trace, where the recording is more than its decisions.
    trace: Option<PathBuf>,
}

impl Recording {
    /// Reads the kernel's description; decisions are read when they are scored.
    ///
    /// # Errors
    /// When `state/` lacks something without which nothing can be scored.
    pub fn open(path: &Path) -> Result<Self, ConformError> {
        let state = |what: String| ConformError::State { path: path.to_owned(), what };
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let meta = read(&path.join("meta"))?;
        let release =
            value(&meta, "kernel=").ok_or_else(|| state("meta has no `kernel=` line".to_owned()))?;
        let (kernel, stands_for) = kernel_of(release)
            .ok_or_else(|| state(format!("kernel {release} is of no generation that is modelled")))?;
        let (policy, mut notes) = policy(path, kernel)?;
        notes.extend(stands_for);
        let topology = topology(path)?;
        let machine = Machine::new(&topology, &policy);
        let trace = ["trace.dat.zst", "trace.dat"].map(|name| path.join(name)).into_iter();
        let trace = trace.into_iter().find(|path| path.is_file());
        Ok(Self { path: path.to_owned(), name, policy, topology, machine, notes, trace })
    }

    /// A trace file, with the policy and the machine that its kernel had.
    #[must_use]
    pub fn of_trace(path: &Path, policy: Policy, topology: Topology, notes: Vec<String>) -> Self {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let machine = Machine::new(&topology, &policy);
        let trace = Some(path.to_owned());
        Self { path: path.to_owned(), name, policy, topology, machine, notes, trace }
    }

    /// The directory's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's policy, from the features that were on.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The machine under that policy.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The machine's topology.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The scheduling domains.
    #[must_use]
    pub const fn domains(&self) -> &SchedDomains {
        self.machine.domains()
    }

    /// What a reader of the scores should know of the recording: features that are not modelled and were not at their
    /// default.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The trace, where there is one.
    #[must_use]
    pub fn trace(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// Has it decisions that were extracted from its trace beforehand?
    fn extracted(&self) -> Option<PathBuf> {
        let folder = self.path.is_dir().then_some(&self.path)?;
        let files = ["decisions.jsonl.zst", "decisions.jsonl"].map(|name| folder.join(name));
        files.into_iter().find(|path| path.is_file())
    }

    /// How often the kernel missed each probe, from `kprobe_profile`'s third column; those never missed are left out.
    pub(crate) fn lost_probes(&self) -> BTreeMap<String, u64> {
        let profile = read(&self.path.join("kprobe_profile")).unwrap_or_default();
        let rows = profile.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            let missed: u64 = words.nth(1)?.parse().ok()?;
            (missed > 0).then(|| (name.to_owned(), missed))
        });
        rows.collect()
    }

    /// Calls `each` for every decision, with its line number.
    pub(crate) fn decisions(
        &self,
        mut each: impl FnMut(usize, Decision) -> Result<(), ConformError>,
    ) -> Result<(), ConformError> {
        let Some(path) = self.extracted() else { return self.decisions_of_trace(each) };
        lines(&path, |path, line, text| {
            let parsed = serde_json::from_str(text);
            let decision = parsed.map_err(|error| ConformError::Line {
                path: path.to_owned(),
                line,
                what: error.to_string(),
            })?;
            each(line, decision)
        })
    }

    /// Decisions from the trace's probe records, numbered in the order of their ends.
    fn decisions_of_trace(
        &self,
        mut each: impl FnMut(usize, Decision) -> Result<(), ConformError>,
    ) -> Result<(), ConformError> {
        let (mut extract, mut line, mut result) = (Extract::default(), 0, Ok(()));
        let mut visit = |record: &ttwu_trace::RawRecord<'_>| {
            if result.is_ok()
                && let Some(decision) = extract.take(record)
            {
                line += 1;
                result = each(line, decision);
            }
        };
        self.walk(&mut visit)?;
        result
    }

    /// Shows every record of the trace.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(&ttwu_trace::RawRecord<'_>)) -> Result<(), ConformError> {
        let bad = |what: String| ConformError::State { path: self.path.clone(), what };
        let trace = self.trace().ok_or_else(|| bad("expected a trace.dat.zst, found none".to_owned()))?;
        ttwu_trace::walk_records(trace, visit).map_err(|error| bad(error.to_string()))?;
        Ok(())
    }
}

/// Lines of a file, compressed or not.
fn lines(
    path: &Path,
    mut each: impl FnMut(&Path, usize, &str) -> Result<(), ConformError>,
) -> Result<(), ConformError> {
    let failed = |source| ConformError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|ending| ending == "zst") {
        let decoder = ruzstd::decoding::StreamingDecoder::new(BufReader::new(file));
        Box::new(decoder.map_err(|error| failed(std::io::Error::other(error)))?)
    } else {
        Box::new(file)
    };
    let mut reader = BufReader::with_capacity(1 << 20, reader);
    let mut line = String::new();
    let mut number = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        number += 1;
        if !line.trim().is_empty() {
            each(path, number, line.trim_end())?;
        }
    }
}

fn read(path: &Path) -> Result<String, ConformError> {
    std::fs::read_to_string(path).map_err(|source| ConformError::Io { path: path.to_owned(), source })
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// The generation that a kernel release belongs to; of a release between two the older one, with a note that says so.
#[must_use]
pub fn kernel_of(release: &str) -> Option<(Kernel, Option<String>)> {
    let mut parts = release.strip_prefix("linux-").unwrap_or(release).split(|c: char| !c.is_ascii_digit());
    let version: (u32, u32) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let known = Kernel::ALL.into_iter().filter_map(|kernel| {
        let (major, minor) = kernel.name().strip_prefix("linux-")?.split_once('.')?;
        Some(((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?), kernel))
    });
    let (of, kernel) = known.filter(|&(of, _)| of <= version).max_by_key(|&(of, _)| of)?;
    let note = format!("kernel {release} is not among the modelled ones: {kernel} stands for it");
    Some((kernel, (of != version).then_some(note)))
}

/// `kernel`'s policy with the features that a kernel printed (`sched/features`). Names outside the model are left out;
/// what is refused is noted.
#[must_use]
pub fn policy_with_features(kernel: Kernel, features: &str) -> (Policy, Vec<String>) {
    let mut policy = Policy::of(kernel);
    let mut notes = Vec::new();
    for word in features.split_whitespace() {
        match policy.apply(word) {
            Ok(()) | Err(ttwu_fair::PolicyError::UnknownSetting { .. }) => {}
            Err(error) => notes.push(format!("{word}: {error}")),
        }
    }
    (policy, notes)
}

/// The features and tunables that the kernel said it had.
fn policy(path: &Path, kernel: Kernel) -> Result<(Policy, Vec<String>), ConformError> {
    let debug = read(&path.join("state").join("debug_sched"))?;
    let (mut policy, notes) = policy_with_features(kernel, value(&debug, "features:").unwrap_or_default());
    for (key, name) in [("base_slice_ns:", "base_slice_ns"), ("migration_cost_ns:", "migration_cost_ns")] {
        if let Some(number) = value(&debug, key) {
            let _ = policy.apply(&format!("{name}={number}"));
        }
    }
    let config = read(&path.join("config.sched")).unwrap_or_default();
    if let Some(hz) = value(&config, "CONFIG_HZ=") {
        let _ = policy.apply(&format!("hz={hz}"));
    }
    Ok((policy, notes))
}

/// The CPUs that share each last-level cache, from the rows of `/sys` on caches: the highest level that each CPU has. Empty
/// where the rows are missing.
///
/// A package can have several: taking it for one LLC gave wake-ups on two dies a search over both.
fn last_level_caches(rows: &str) -> Result<Vec<CpuSet>, String> {
    let mut levels = BTreeMap::new();
    let mut shared = BTreeMap::new();
    for (name, text) in rows.lines().filter_map(|line| line.split_once(':')) {
        let Some((cpu, cache)) = name.split_once("/cache/") else { continue };
        match cache.split_once('/') {
            Some((index, "level")) => {
                let level: u32 = text.trim().parse().map_err(|_| format!("{name}: no level: {text}"))?;
                levels.insert((cpu, index), level);
            }
            Some((index, "shared_cpu_list")) => {
                let cpus = CpuSet::parse_list(text).map_err(|error| format!("{name}: {error}"))?;
                shared.insert((cpu, index), cpus);
            }
            Some(_) | None => {}
        }
    }
    let mut highest = BTreeMap::new();
    for (&(cpu, index), &level) in &levels {
        let best = highest.entry(cpu).or_insert((level, index));
        *best = (level, index).max(*best);
    }
    Ok(highest.into_iter().filter_map(|(cpu, (_, index))| shared.remove(&(cpu, index))).collect())
}

/// The machine as the guest's own `/sys` describes it.
fn topology(path: &Path) -> Result<Topology, ConformError> {
    let state = path.join("state");
    let bad = |what: String| ConformError::State { path: path.to_owned(), what };
    let (siblings, numa, cpus) =
        (read(&state.join("topology"))?, read(&state.join("numa"))?, read(&state.join("cpus"))?);
    let list = |text: &str| CpuSet::parse_list(text).map_err(|error| bad(error.to_string()));
    let lists = |text: &str, file: &str| -> Result<Vec<CpuSet>, ConformError> {
        let rows = text.lines().filter_map(|line| line.split_once(':'));
        rows.filter(|(name, _)| name.ends_with(file)).map(|(_, cpus)| list(cpus)).collect()
    };
    let online = value(&cpus, "online:").ok_or_else(|| bad("state/cpus has no `online:` line".to_owned()))?;
    let mut found = SiblingLists::new(Arch::X86, list(online)?);
    found.cores = lists(&siblings, "/core_cpus_list")?;
    found.clusters = lists(&siblings, "/cluster_cpus_list")?;
    found.dies = lists(&siblings, "/die_cpus_list")?;
    found.packages = lists(&siblings, "/package_cpus_list")?;
    found.llcs = last_level_caches(&siblings).map_err(bad)?;
    if found.llcs.is_empty() {
        found.llcs.clone_from(&found.packages);
    }
    let nodes = lists(&numa, "/cpulist")?;
    found.nodes =
        (0..).zip(nodes).map(|(id, cpus)| NodeList { id, cpus, memory: NodeMemory::Present }).collect();
    let distances =
        numa.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.ends_with("/distance"));
    let distances: Option<Vec<Vec<u8>>> = distances
        .map(|(_, row)| row.split_whitespace().map(|number| number.parse().ok()).collect())
        .collect();
    found.distances = distances.filter(|rows| !rows.is_empty());
    Topology::from_sibling_lists(&found).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::last_level_caches;

    fn check(rows: &str, expected: &[&str]) {
        let found: Vec<String> =
            last_level_caches(rows).expect("well formed").iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{rows}");
    }

    /// A package of two dies has two LLCs: they had been taken for one, and a fifth of a recording's placements missed.
    #[test]
    fn a_package_can_have_several_last_level_caches() {
        let rows = |cpu: u16, l2: &str, l3: &str| {
            format!(
                "cpu{cpu}/topology/package_cpus_list:0-3\n\
                 cpu{cpu}/cache/index0/level:1\ncpu{cpu}/cache/index0/type:Data\n\
                 cpu{cpu}/cache/index0/shared_cpu_list:{cpu}\n\
                 cpu{cpu}/cache/index2/level:2\ncpu{cpu}/cache/index2/shared_cpu_list:{l2}\n\
                 cpu{cpu}/cache/index3/level:3\ncpu{cpu}/cache/index3/shared_cpu_list:{l3}\n"
            )
        };
        check(&[rows(0, "0", "0-1"), rows(2, "2", "2-3")].concat(), &["0-1", "2-3"]);
        check("cpu0/cache/index2/level:2\ncpu0/cache/index2/shared_cpu_list:0-1\n", &["0-1"]);
        check("cpu0/topology/package_cpus_list:0-3\n", &[]);
        assert!(last_level_caches("cpu0/cache/index3/level:three\n").is_err());
    }
}
