//! Our domains against those that real kernels printed: levels, flags, attributes, spans, groups in ring order.
//!
//! Group capacities are compared as bounds only, since a kernel prints what interrupts left over.

use super::*;
use std::path::Path;

struct Recording {
    generation: Generation,
    topology: Topology,
    domains: String,
    dmesg: String,
}

fn read(directory: &Path, name: &str) -> String {
    let path = directory.join("state").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// From `cpu3/topology/core_cpus_list:3` lines: the lists with this file name.
fn lists(state: &str, file: &str) -> Vec<CpuSet> {
    let with_file = |line: &&str| line.split_once(':').is_some_and(|(path, _)| path.ends_with(file));
    state
        .lines()
        .filter(with_file)
        .map(|line| CpuSet::parse_list(line.split_once(':').unwrap().1).unwrap())
        .collect()
}

/// The guest's own `/sys`, as far as it was kept: sibling lists, nodes, distances. Cache sharing was not, so the last
/// level comes from the QEMU option (an L3 a socket).
fn recorded(directory: &Path) -> Recording {
    let state = read(directory, "topology");
    let numa = read(directory, "numa");
    let online = read(directory, "cpus");
    let online = online.lines().find_map(|line| line.strip_prefix("online:")).expect("online CPUs");
    let mut sibling = SiblingLists::new(Arch::X86, CpuSet::parse_list(online).unwrap());
    sibling.cores = lists(&state, "/core_cpus_list");
    sibling.clusters = lists(&state, "/cluster_cpus_list");
    sibling.dies = lists(&state, "/die_cpus_list");
    sibling.packages = lists(&state, "/package_cpus_list");
    sibling.llcs = sibling.packages.clone();
    let node = |(id, cpus)| NodeList { id, cpus, memory: NodeMemory::Present };
    sibling.nodes = (0u16..).zip(lists(&numa, "/cpulist")).map(node).collect();
    let row = |line: &str| {
        let (path, row) = line.split_once(':')?;
        path.ends_with("/distance").then(|| row.split_whitespace().map(|n| n.parse().unwrap()).collect())
    };
    sibling.distances = Some(numa.lines().filter_map(row).collect());
    let name = directory.file_name().unwrap().to_str().unwrap();
    Recording {
        generation: Generation::from_release(name).unwrap(),
        topology: Topology::from_sibling_lists(&sibling).unwrap(),
        domains: read(directory, "domains"),
        dmesg: read(directory, "dmesg"),
    }
}

/// The value of `domains/cpu3/domain1/name:MC`; flags without `SD_`.
fn value<'a>(domains: &'a str, cpu: CpuId, index: usize, file: &str) -> Option<&'a str> {
    let prefix = format!("domains/cpu{cpu}/domain{index}/{file}:");
    domains.lines().find_map(|line| line.strip_prefix(&prefix))
}

fn check_debugfs(recording: &Recording, name: &str) {
    let ours = SchedDomains::build(&recording.topology, recording.generation);
    let names = |flags: SdFlags| {
        flags.names(recording.generation).map(|flag| format!("SD_{flag}")).collect::<Vec<_>>().join(" ")
    };
    for cpu in recording.topology.online().iter() {
        for (index, domain) in ours.of(cpu).iter().enumerate() {
            let check = |file: &str, ours: String| {
                let theirs = value(&recording.domains, cpu, index, file);
                assert_eq!(
                    theirs.map(str::trim),
                    Some(ours.as_str()),
                    "{name}: CPU {cpu} domain {index} {file}"
                );
            };
            check("name", domain.level().name(recording.generation).to_owned());
            check("flags", names(domain.flags()));
            check("min_interval", domain.min_interval_ms().to_string());
            check("max_interval", domain.max_interval_ms().to_string());
            check("busy_factor", domain.busy_factor().to_string());
            check("imbalance_pct", domain.imbalance_pct().to_string());
            check("cache_nice_tries", domain.cache_nice_tries().to_string());
            if value(&recording.domains, cpu, index, "groups_flags").is_some() {
                check("groups_flags", names(ours.group(domain.groups()[0]).flags()));
            }
        }
        let more = value(&recording.domains, cpu, ours.of(cpu).len(), "name");
        assert_eq!(more, None, "{name}: CPU {cpu} has a domain that we removed");
    }
}

/// `domain-0: span=0-3 level=MC` and the `groups:` line after it, as the kernel prints them.
fn check_dmesg(recording: &Recording, name: &str) {
    let ours = SchedDomains::build(&recording.topology, recording.generation);
    let mut cpu = None;
    let mut at = 0;
    let mut seen = 0;
    for line in recording.dmesg.lines().filter_map(|line| line.split_once("] ")).map(|(_, text)| text.trim())
    {
        if let Some(rest) =
            line.strip_prefix("CPU").and_then(|rest| rest.strip_suffix(" attaching sched-domain(s):"))
        {
            cpu = Some(CpuId::new(rest.parse().unwrap()));
            at = 0;
        } else if let (Some(cpu), true) = (cpu, line.starts_with("domain-")) {
            let domain = &ours.of(cpu)[at];
            let printed = format!(
                "domain-{at}: span={} level={}",
                domain.span(),
                domain.level().name(recording.generation)
            );
            assert_eq!(line, printed, "{name}: CPU {cpu}");
        } else if let (Some(cpu), Some(groups)) = (cpu, line.strip_prefix("groups: ")) {
            check_ring(&ours, &ours.of(cpu)[at], groups, &format!("{name}: CPU {cpu} domain {at}"));
            at += 1;
            seen += 1;
        }
    }
    let expected: usize = recording.topology.online().iter().map(|cpu| ours.of(cpu).len()).sum();
    assert_eq!(seen, expected, "{name}: number of domains printed");
}

/// `0:{ span=0-3 cap=4057 }, 4:{ span=4-7 }`.
fn check_ring(ours: &SchedDomains, domain: &SchedDomain, printed: &str, context: &str) {
    let mut groups = ours.groups_of(domain);
    for text in printed.split("}, ") {
        let group = groups.next().unwrap_or_else(|| panic!("{context}: more groups than ours: {printed}"));
        let mut words = text.trim_end_matches('}').split_whitespace();
        assert_eq!(words.next(), Some(format!("{}:{{", group.balance_cpu()).as_str()), "{context}");
        assert_eq!(words.next(), Some(format!("span={}", group.span()).as_str()), "{context}");
        let capacity: u32 =
            words.next().map_or(1024, |word| word.strip_prefix("cap=").unwrap().parse().unwrap());
        let most = group.capacity();
        assert!((most * 9 / 10..=most).contains(&capacity), "{context}: capacity {capacity}, ours {most}");
    }
    assert!(groups.next().is_none(), "{context}: fewer groups than ours: {printed}");
}

#[test]
fn domains_equal_those_of_recorded_kernels() {
    let Some(recordings) = ttwu_testing::shared("oracle/recordings") else { return };
    let mut kinds = std::collections::BTreeSet::new();
    let entries = std::fs::read_dir(&recordings).unwrap();
    for directory in
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.join("state/domains").exists())
    {
        let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
        let recording = recorded(&directory);
        check_debugfs(&recording, &name);
        check_dmesg(&recording, &name);
        let mut parts = name.split('-');
        let kind = (parts.next().unwrap().to_owned(), parts.next().unwrap().to_owned());
        let named = Machine::find(&format!("oracle-{}", kind.1)).unwrap().topology();
        let by_name = SchedDomains::build(&named, recording.generation);
        let by_state = SchedDomains::build(&recording.topology, recording.generation);
        for cpu in named.online().iter() {
            assert_eq!(by_name.of(cpu), by_state.of(cpu), "{name}: the named machine is another one");
        }
        kinds.insert(kind);
    }
    let kinds: Vec<String> =
        kinds.into_iter().map(|(kernel, topology)| format!("{kernel}-{topology}")).collect();
    assert_eq!(kinds, ["6.1-b", "6.12-a", "6.12-b", "6.12-c", "7.2-a", "7.2-b", "7.2-c"]);
}
