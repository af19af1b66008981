//! The topology of a machine from its `/sys` tree: this machine's, or a copy of another one's.
//!
//! The tree's root is an argument, so that a tree copied from a machine that nobody can log in to reads like a live one,
//! and tests need no machine. Only files are read here; what they mean is decided by the model's checking constructor.
//!
//! The architecture and the reclaim distance come from `cpu/modalias`, which is in the tree itself: `/proc/cpuinfo` of the
//! reading machine would be wrong for a copy. What this does not do: follow CPUs that come and go.

use std::io::Read;
use std::path::{Path, PathBuf};
use ttwu_model::{
    Arch, CacheSharing, CpuId, CpuSet, NodeList, NodeMemory, SiblingLists, Topology, TopologyError,
};

/// No file that is read here is longer on a real machine; a directory full of something else must not fill memory.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Real CPUs have four or five.
const CACHES_MAX: usize = 32;

/// Why a tree gives no topology.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SysfsError {
    /// A file that every tree has could not be read.
    #[error("{}: {source}: expected a root directory that holds sys/devices/system/cpu", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file holds something else than it should.
    #[error("{}: expected {expected}, found `{found}`", path.display())]
    Value {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// The beginning of what it holds.
        found: String,
    },
    /// The files contradict each other.
    #[error("{}: {source}", root.display())]
    Topology {
        /// The tree.
        root: PathBuf,
        /// How.
        source: TopologyError,
    },
}

/// Reads the topology below `root`: `/` for this machine, or a directory with a copied `sys/devices/system`.
///
/// What the tree does not say stays unknown: no `cache` directory means no last-level information, no `node` directory a
/// kernel without NUMA. Offline CPUs are only numbers, as the kernel hides their place. Nodes that have neither CPUs nor
/// memory are left out.
///
/// # Errors
/// When `root` holds no such tree, a file is not what it should be, or the files contradict each other.
pub fn read_topology(root: &Path) -> Result<Topology, SysfsError> {
    let tree = Tree { system: root.join("sys/devices/system") };
    let online = tree.required("cpu/online")?;
    let (arch, reclaim_distance) = architecture(tree.optional("cpu/modalias").as_deref());
    let mut lists = SiblingLists::new(arch, tree.list("cpu/online", &online)?);
    lists.reclaim_distance = reclaim_distance;
    if let Some(present) = tree.optional_list("cpu/present")? {
        lists.offline = present.difference(&lists.online);
    }
    let mut caches = Vec::new();
    for cpu in lists.online.clone().iter() {
        read_cpu(&tree, cpu, &mut lists)?;
        read_caches(&tree, cpu, &mut caches)?;
    }
    caches.sort_by(|a: &CacheSharing, b| (a.level, &a.cpus).cmp(&(b.level, &b.cpus)));
    caches.dedup();
    lists.set_caches(&caches);
    read_nodes(&tree, &mut lists)?;
    Topology::from_sibling_lists(&lists)
        .map_err(|source| SysfsError::Topology { root: root.to_owned(), source })
}

/// An idle state as the kernel's table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// Its name, such as `C1E`.
    pub name: String,
    /// Exit latency, ns.
    pub exit_ns: u64,
    /// Target residency, ns.
    pub residency_ns: u64,
}

/// The idle states of CPU `cpu` below `root`, the polling one included, as the cpuidle driver gives them. Empty where there
/// is no driver: the kernel then halts by the architecture's own instruction.
///
/// # Errors
/// When a state's files are not what they should be.
pub fn read_idle_states(root: &Path, cpu: CpuId) -> Result<Vec<IdleState>, SysfsError> {
    // The kernel has room for ten.
    const STATES_MAX: usize = 10;
    let tree = Tree { system: root.join("sys/devices/system") };
    let mut states = Vec::new();
    for index in 0..STATES_MAX {
        let folder = format!("cpu/cpu{}/cpuidle/state{index}", cpu.index());
        let Some(name) = tree.optional(&format!("{folder}/name")) else { break };
        let ns = |file: &str| {
            let name = format!("{folder}/{file}");
            let text = tree.required(&name)?;
            let us: u64 = text.trim().parse().map_err(|_| tree.bad(&name, "a number of us", &text))?;
            Ok::<u64, SysfsError>(us.saturating_mul(1000))
        };
        states.push(IdleState {
            name: name.trim().to_owned(),
            exit_ns: ns("latency")?,
            residency_ns: ns("residency")?,
        });
    }
    Ok(states)
}

/// The size of a CPU's second-level cache, KiB, where sysfs under `root` says so.
#[must_use]
pub fn private_cache_kib(root: &Path, cpu: CpuId) -> Option<u64> {
    let caches = root.join(format!("sys/devices/system/cpu/cpu{}/cache", cpu.index()));
    (0..8).find_map(|index| {
        let read = |name: &str| std::fs::read_to_string(caches.join(format!("index{index}/{name}"))).ok();
        let level = read("level")?;
        let size = read("size")?;
        (level.trim() == "2").then(|| size.trim().strip_suffix('K')?.parse().ok())?
    })
}

/// Does this machine run under a hypervisor that says so? Known on x86 only, from its CPU flags.
#[must_use]
pub fn under_hypervisor() -> bool {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

struct Tree {
    system: PathBuf,
}

impl Tree {
    fn required(&self, name: &str) -> Result<String, SysfsError> {
        let path = self.system.join(name);
        read_short(&path).map_err(|source| SysfsError::Read { path, source })
    }

    /// `None` also where the file is there and cannot be read: some are, for CPUs that are going away.
    fn optional(&self, name: &str) -> Option<String> {
        read_short(&self.system.join(name)).ok()
    }

    fn bad(&self, name: &str, expected: &'static str, found: &str) -> SysfsError {
        let found = found.trim().chars().take(60).collect();
        SysfsError::Value { path: self.system.join(name), expected, found }
    }

    fn list(&self, name: &str, text: &str) -> Result<CpuSet, SysfsError> {
        CpuSet::parse_list(text).map_err(|_| self.bad(name, "a list such as `0-3,8`", text))
    }

    fn optional_list(&self, name: &str) -> Result<Option<CpuSet>, SysfsError> {
        self.optional(name).map(|text| self.list(name, &text)).transpose()
    }

    /// The first of these lists that is there (kernels have renamed some).
    fn first_list(&self, names: &[String]) -> Result<Option<CpuSet>, SysfsError> {
        for name in names {
            if let Some(list) = self.optional_list(name)? {
                return Ok(Some(list));
            }
        }
        Ok(None)
    }

    fn optional_number<T: std::str::FromStr>(
        &self,
        name: &str,
        expected: &'static str,
    ) -> Result<Option<T>, SysfsError> {
        let number = |text: String| text.trim().parse().map_err(|_| self.bad(name, expected, &text));
        self.optional(name).map(number).transpose()
    }
}

fn read_short(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// From `cpu:type:x86,ven0002fam0019mod0001:feature:…`: vendor 2 is AMD, 9 Hygon; Zen is family 17h and later.
fn architecture(modalias: Option<&str>) -> (Arch, u8) {
    let default = Topology::RECLAIM_DISTANCE;
    let Some(text) = modalias else {
        let x86 = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
        return (if x86 { Arch::X86 } else { Arch::Generic }, default);
    };
    let Some(rest) = text.strip_prefix("cpu:type:x86,ven") else { return (Arch::Generic, default) };
    let number = |text: Option<&str>| text.and_then(|text| u16::from_str_radix(text, 16).ok());
    let vendor = number(rest.get(..4));
    let family =
        number(rest.get(4..).and_then(|rest| rest.strip_prefix("fam")).and_then(|rest| rest.get(..4)));
    let zen = matches!((vendor, family), (Some(2), Some(0x17..)) | (Some(9), Some(0x18..)));
    (Arch::X86, if zen { 32 } else { default })
}

fn read_cpu(tree: &Tree, cpu: CpuId, lists: &mut SiblingLists) -> Result<(), SysfsError> {
    let name = |file: &str| format!("cpu/cpu{cpu}/topology/{file}");
    lists.cores.extend(tree.first_list(&[name("core_cpus_list"), name("thread_siblings_list")])?);
    lists.packages.extend(tree.first_list(&[name("package_cpus_list"), name("core_siblings_list")])?);
    lists.dies.extend(tree.optional_list(&name("die_cpus_list"))?);
    // A kernel that knows no cluster lists the CPU alone, or its core, under the id -1 (also seen as 65535).
    let id = tree.optional(&name("cluster_id"));
    if !matches!(id.as_deref().map(str::trim), Some("-1" | "65535")) {
        lists.clusters.extend(tree.optional_list(&name("cluster_cpus_list"))?);
    }
    let capacity = format!("cpu/cpu{cpu}/cpu_capacity");
    if let Some(capacity) = tree.optional_number(&capacity, "a capacity from 1 to 1024")?
        && capacity != 1024
    {
        lists.capacities.push((CpuSet::from_iter([cpu]), capacity));
    }
    Ok(())
}

fn read_caches(tree: &Tree, cpu: CpuId, caches: &mut Vec<CacheSharing>) -> Result<(), SysfsError> {
    for index in 0..CACHES_MAX {
        let name = |file: &str| format!("cpu/cpu{cpu}/cache/index{index}/{file}");
        let Some(level) = tree.optional_number(&name("level"), "a cache level")? else { break };
        if tree.optional(&name("type")).is_some_and(|kind| kind.trim() == "Instruction") {
            continue;
        }
        if let Some(cpus) = tree.optional_list(&name("shared_cpu_list"))? {
            caches.push(CacheSharing { level, cpus });
        }
    }
    Ok(())
}

fn read_nodes(tree: &Tree, lists: &mut SiblingLists) -> Result<(), SysfsError> {
    // Node lists have the form of CPU lists.
    let Some(ids) = tree.optional_list("node/online")? else { return Ok(()) };
    let with_memory = tree.optional_list("node/has_memory")?;
    let mut rows = Vec::new();
    let mut keep = Vec::new();
    for id in ids.iter() {
        let name = |file: &str| format!("node/node{id}/{file}");
        let memory = match &with_memory {
            None => NodeMemory::Unknown,
            Some(nodes) if nodes.contains(id) => NodeMemory::Present,
            Some(_) => NodeMemory::Absent,
        };
        let cpus = tree.optional_list(&name("cpulist"))?.unwrap_or_default();
        let distance = tree.optional(&name("distance")).unwrap_or_default();
        let number = |text: &str| text.parse().map_err(|_| tree.bad(&name("distance"), "distances", text));
        rows.push(distance.split_whitespace().map(number).collect::<Result<Vec<u8>, _>>()?);
        // Firmware may announce nodes for memory that can be added later.
        keep.push(!cpus.is_empty() || memory == NodeMemory::Present);
        lists.nodes.push(NodeList { id: id.number(), cpus, memory });
    }
    let kept = |index: usize| keep.get(index).copied().unwrap_or(true);
    let mut index = 0..;
    lists.nodes.retain(|_| index.next().is_some_and(kept));
    // Rows and columns are in the order of online nodes. A tree without distances has empty rows.
    if rows.iter().all(|row| !row.is_empty()) {
        let row =
            |row: &Vec<u8>| (0..).zip(row).filter(|&(column, _)| kept(column)).map(|(_, &d)| d).collect();
        lists.distances =
            Some(rows.iter().zip(&keep).filter(|&(_, &kept)| kept).map(|(r, _)| row(r)).collect());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttwu_model::{Generation, SchedDomains, Unit};

    /// A tree of `name: text` lines below `sys/devices/system`; `cpu{0-3}/…` stands for that file of each of them.
    fn tree(files: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let system = directory.path().join("sys/devices/system");
        let write = |name: &str, text: &str| {
            let path = system.join(name);
            std::fs::create_dir_all(path.parent().expect("a name with a directory")).expect("a directory");
            std::fs::write(path, format!("{text}\n")).expect("a file");
        };
        for line in files.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, text) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            match name.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?))) {
                None => write(name, text),
                Some((start, (list, end))) => {
                    for cpu in CpuSet::parse_list(list).expect(list).iter() {
                        write(&format!("{start}{cpu}{end}"), text);
                    }
                }
            }
        }
        directory
    }

    fn check(files: &str, expect: &str) -> Topology {
        let directory = tree(files);
        let topology = read_topology(directory.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(topology.to_string(), expect);
        topology
    }

    fn check_error(files: &str, expect: &str) {
        let directory = tree(files);
        let error = read_topology(directory.path()).expect_err("an error").to_string();
        let place = format!("{}/", directory.path().display());
        assert_eq!(error.replace(&place, "").replace(place.trim_end_matches('/'), "."), expect);
    }

    #[test]
    fn two_virtual_cpus_without_cache_information() {
        let topology = check(
            "cpu/online: 0-1
             cpu/present: 0-1
             cpu/modalias: cpu:type:x86,ven0000fam0006mod00CF:feature:,0000
             cpu/cpu{0-1}/topology/package_cpus_list: 0-1
             cpu/cpu0/topology/core_cpus_list: 0
             cpu/cpu1/topology/core_cpus_list: 1",
            "arch x86\n1 socket x 2 cores\nllc unknown\n",
        );
        assert!(!topology.is_known(Unit::Llc));
        let domains = SchedDomains::build(&topology, Generation::V6_12);
        assert!(domains.llc(CpuId::new(0)).is_none());
    }

    #[test]
    fn one_cpu() {
        check(
            "cpu/online: 0\ncpu/modalias: cpu:type:aarch64:feature:",
            "arch generic\ncpus 0\ncore 0\nnode 0: 0\n",
        );
    }

    #[test]
    fn hybrid_with_offline_cpus_and_a_hole_in_the_numbers() {
        // Two strong cores of two threads, of which one thread is off; a module of four weak ones numbered from 8.
        check(
            "cpu/online: 0-2,8-11
             cpu/present: 0-3,8-11
             cpu/modalias: cpu:type:x86,ven0000fam0006mod009A:feature:,0000
             cpu/cpu{0-1}/topology/core_cpus_list: 0-1
             cpu/cpu2/topology/core_cpus_list: 2
             cpu/cpu8/topology/core_cpus_list: 8
             cpu/cpu9/topology/core_cpus_list: 9
             cpu/cpu10/topology/core_cpus_list: 10
             cpu/cpu11/topology/core_cpus_list: 11
             cpu/cpu{0-2,8-11}/topology/package_cpus_list: 0-2,8-11
             cpu/cpu{0-2,8-11}/cache/index0/level: 1
             cpu/cpu{0-2,8-11}/cache/index0/type: Instruction
             cpu/cpu{0-2,8-11}/cache/index0/shared_cpu_list: 0
             cpu/cpu{0-2,8-11}/cache/index1/level: 2
             cpu/cpu{0-1}/cache/index1/shared_cpu_list: 0-1
             cpu/cpu2/cache/index1/shared_cpu_list: 2
             cpu/cpu{8-11}/cache/index1/shared_cpu_list: 8-11
             cpu/cpu{0-2,8-11}/cache/index2/level: 3
             cpu/cpu{0-2,8-11}/cache/index2/shared_cpu_list: 0-2,8-11
             cpu/cpu{0-2}/cpu_capacity: 1024
             cpu/cpu{8-11}/cpu_capacity: 593",
            "arch x86
cpus 0-2,8-11
core 0-1 | 2 | 8-11 by 1
cluster 0-1 | 2 | 8-11
llc 0-2,8-11
package 0-2,8-11
node 0: 0-2,8-11
offline 3
capacity 593: 8-11
",
        );
    }

    const SNC: &str = "cpu/online: 0-7
             cpu/modalias: cpu:type:x86,ven0002fam0019mod0001:feature:,0000
             cpu/cpu{0-7}/topology/core_siblings_list: 0-7
             cpu/cpu{0-7}/cache/index0/level: 3
             cpu/cpu{0-7}/cache/index0/shared_cpu_list: 0-7
             node/online: 0-3
             node/has_memory: 0,2
             node/node0/cpulist: 0-3
             node/node1/cpulist: 4-7
             node/node2/cpulist:
             node/node3/cpulist:
             node/node0/distance: 10 12 20 30
             node/node1/distance: 12 10 20 30
             node/node2/distance: 20 20 10 30
             node/node3/distance: 30 30 30 10";

    #[test]
    fn nodes_inside_a_package_without_memory_or_without_cpus() {
        // Node 1 has no memory, node 2 only memory, node 3 nothing.
        let topology = check(
            SNC,
            "arch x86
cpus 0-7
core 0-7 by 1
llc 0-7
package 0-7
node 0: 0-3
node 1: 4-7
node 2:
memory 0,2
no-memory 1
distances 10 12 20 / 12 10 20 / 20 20 10
reclaim 32
",
        );
        let domains = SchedDomains::build(&topology, Generation::V6_12);
        assert_eq!(domains.llc(CpuId::new(5)).expect("an LLC").span().to_string(), "4-7");
        assert_eq!(domains.numa(CpuId::new(5)).expect("NUMA").span().to_string(), "0-7");
    }

    #[test]
    fn clusters_of_a_generic_machine() {
        let cluster = "cpu/online: 0-3
             cpu/modalias: cpu:type:aarch64:feature:,0000
             cpu/cpu{0-3}/topology/package_cpus_list: 0-3
             cpu/cpu{0-1}/topology/cluster_cpus_list: 0-1
             cpu/cpu{2-3}/topology/cluster_cpus_list: 2-3
             cpu/cpu{0-3}/cache/index0/level: 2
             cpu/cpu0/cache/index0/shared_cpu_list: 0
             cpu/cpu1/cache/index0/shared_cpu_list: 1
             cpu/cpu2/cache/index0/shared_cpu_list: 2
             cpu/cpu3/cache/index0/shared_cpu_list: 3";
        check(cluster, "arch generic\n1 socket x 2 clusters x 2 cores\nllc core\n");
        let unknown = format!("{cluster}\ncpu/cpu{{0-3}}/topology/cluster_id: -1");
        check(&unknown, "arch generic\n1 socket x 4 cores\nllc core\n");
    }

    #[test]
    fn idle_states_come_from_the_drivers_table() {
        let directory = tree(
            "cpu/cpu0/cpuidle/state0/name: POLL
             cpu/cpu0/cpuidle/state0/latency: 0
             cpu/cpu0/cpuidle/state0/residency: 0
             cpu/cpu0/cpuidle/state1/name: C1E
             cpu/cpu0/cpuidle/state1/latency: 10
             cpu/cpu0/cpuidle/state1/residency: 20
             cpu/cpu1/cpuidle/state0/name: POLL
             cpu/cpu1/cpuidle/state0/latency: soon",
        );
        let states = read_idle_states(directory.path(), CpuId::new(0)).expect("readable");
        let c1e = IdleState { name: "C1E".to_owned(), exit_ns: 10_000, residency_ns: 20_000 };
        assert_eq!((states.len(), &states[1]), (2, &c1e));
        let error = read_idle_states(directory.path(), CpuId::new(1)).expect_err("no number");
        assert!(error.to_string().ends_with("expected a number of us, found `soon`"), "{error}");
        assert_eq!(read_idle_states(directory.path(), CpuId::new(2)).expect("no driver"), []);
    }

    #[test]
    fn broken_trees_are_refused_with_the_file() {
        let nothing = "sys/devices/system/cpu/online: No such file or directory (os error 2): \
                       expected a root directory that holds sys/devices/system/cpu";
        check_error("node/online: 0", nothing);
        check_error(
            "cpu/online: zero",
            "sys/devices/system/cpu/online: expected a list such as `0-3,8`, found `zero`",
        );
        check_error(
            "cpu/online: 0\ncpu/cpu0/cpu_capacity: -1",
            "sys/devices/system/cpu/cpu0/cpu_capacity: expected a capacity from 1 to 1024, found `-1`",
        );
        check_error(
            "cpu/online: 0-1\nnode/online: 0\nnode/node0/cpulist: 0\nnode/node0/distance: 10",
            ".: online CPU 1 is in no node: expected it in one",
        );
    }

    #[test]
    fn damaged_trees_never_panic() {
        for seed in 0..40 {
            let mut lines = Vec::new();
            for (line, text) in (seed * 1000..).zip(SNC.lines()) {
                let (name, value) =
                    text.trim().split_once(": ").unwrap_or((text.trim().trim_end_matches(':'), ""));
                let damaged = if line % 5 == seed % 5 {
                    ttwu_testing::damage(value.as_bytes(), line)
                } else {
                    value.as_bytes().to_vec()
                };
                lines.push(format!(
                    "{name}: {}",
                    String::from_utf8_lossy(&damaged).replace(['\n', '\r'], " ")
                ));
            }
            let directory = tree(&lines.join("\n"));
            if let Ok(topology) = read_topology(directory.path()) {
                assert_eq!(Topology::parse(&topology.to_string()), Ok(topology), "seed {seed}");
            }
        }
    }

    #[test]
    fn this_machine() {
        let root = Path::new("/");
        if !root.join("sys/devices/system/cpu/online").exists() {
            // Not eprintln!: the harness captures that, and a skip must be seen.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"SKIPPED: no /sys here\n");
            return;
        }
        let topology = read_topology(root).unwrap_or_else(|error| panic!("{error}"));
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").expect("online CPUs");
        assert_eq!(topology.online().to_string(), online.trim());
        assert_eq!(Topology::parse(&topology.to_string()), Ok(topology));
    }
}
