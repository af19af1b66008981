//! A machine on one screen: what shares what, and the scheduling domains that a kernel makes of it.
//!
//! The question it answers at a glance is "is my cluster mask right?". So it says for every kind of unit how many there
//! are and of what size, or that nothing is stated; draws the nesting once; and lists each domain level's spans once,
//! with the CPUs they belong to only where a span is not its own CPUs' (NUMA). Everything fits 80 columns, and equal
//! things share a line, so that 96 CPUs take no more room than 8.
//!
//! JSON (`ttwu/topology/1`) is the other way round: one entry a CPU, nothing folded.

mod format;

pub use format::render_json;

use std::fmt::Write as _;
use ttwu_model::{
    Arch, CpuId, CpuSet, DomainLevel, Generation, NodeMemory, SchedDomain, SchedDomains, SdFlags, Topology,
    Unit,
};

const COLUMNS: usize = 80;

/// The text form of a machine and of its domains under `generation`.
#[must_use]
pub fn render_text(topology: &Topology, generation: Generation) -> String {
    let domains = SchedDomains::build(topology, generation);
    let mut out = String::new();
    summary(&mut out, topology);
    out.push('\n');
    Tree::of(topology).render(&mut out, topology, 0);
    out.push('\n');
    domain_levels(&mut out, topology, &domains);
    out
}

/// How many of each kind, of what size, and what nobody states.
fn summary(out: &mut String, topology: &Topology) {
    let online = topology.online();
    let rules = match topology.arch() {
        Arch::X86 => "x86 mask rules",
        Arch::Generic => "generic mask rules",
    };
    let offline = if topology.offline().is_empty() {
        String::new()
    } else {
        format!(", offline {}", topology.offline())
    };
    let head = format!("{} {online}{offline}, {rules}", count(online.len(), "CPU"));
    wrapped(out, "", "  ", &head.split(' ').map(str::to_owned).collect::<Vec<_>>(), " ");
    for unit in Unit::ALL {
        let sets = online_sets(topology, unit);
        let known = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
        let unknown = online.difference(&known);
        let mut line = match unit {
            _ if sets.is_empty() => "not stated".to_owned(),
            Unit::Core | Unit::Cluster | Unit::Llc | Unit::Die | Unit::Package => sizes(&sets),
        };
        if !sets.is_empty() && !unknown.is_empty() {
            let _ = write!(line, "; not stated for {unknown}");
        }
        let _ = writeln!(out, "  {:<9} {line}", plural(unit.name()));
    }
    let nodes: Vec<CpuSet> = topology.nodes().iter().map(|node| node.cpus.intersection(online)).collect();
    let _ = writeln!(out, "  {:<9} {}", "nodes", sizes(&nodes));
    distances(out, topology);
    if topology.is_asymmetric() {
        let mut capacities: Vec<(u16, CpuId)> =
            online.iter().filter_map(|cpu| Some((topology.capacity(cpu)?, cpu))).collect();
        capacities.sort();
        let item = |same: &[(u16, CpuId)]| {
            format!("{} ({})", same[0].0, same.iter().map(|&(_, cpu)| cpu).collect::<CpuSet>())
        };
        let items: Vec<String> = capacities.chunk_by(|a, b| a.0 == b.0).map(item).collect();
        wrapped(out, "  capacity  ", "            ", &items, ", ");
    }
}

/// The distance table, where there is more than one node.
fn distances(out: &mut String, topology: &Topology) {
    let nodes = topology.nodes();
    if nodes.len() < 2 {
        return;
    }
    if !topology.distances_known() {
        let _ = writeln!(
            out,
            "  distances not stated; domains assume {} to another node, as Linux does",
            Topology::REMOTE_DISTANCE
        );
        return;
    }
    let row = |from| nodes.iter().filter_map(move |to| topology.node_distance(from, to.id));
    let all: Vec<u8> = nodes.iter().flat_map(|node| row(node.id)).collect();
    let mut remote: Vec<u8> = all.iter().copied().filter(|&d| d != Topology::LOCAL_DISTANCE).collect();
    remote.sort_unstable();
    remote.dedup();
    if remote.len() == 1 {
        let _ = writeln!(out, "  distances {} between any two nodes", remote[0]);
        return;
    }
    let _ = write!(out, "  distances    to");
    let wide = nodes.len() * 4 + 16 > COLUMNS;
    if wide {
        let list: Vec<String> = remote.iter().map(u8::to_string).collect();
        let _ = writeln!(out, " other nodes: {} (table in the text form)", list.join(" "));
        return;
    }
    for node in nodes {
        let _ = write!(out, " {:>3}", node.id);
    }
    out.push('\n');
    for node in nodes {
        let _ = write!(out, "    from {:>3}   ", node.id);
        for distance in row(node.id) {
            let _ = write!(out, " {distance:>3}");
        }
        out.push('\n');
    }
}

/// Units by nesting: the model guarantees that no two cross.
struct Tree {
    /// `package 0`, `node 1`, `llc`; several where they are the same CPUs.
    names: Vec<String>,
    kind: &'static str,
    cpus: CpuSet,
    inner: Vec<Self>,
}

impl Tree {
    fn of(topology: &Topology) -> Self {
        let mut units: Vec<(usize, usize, Self)> = Vec::new();
        let mut add = |rank: usize, kind: &'static str, name: String, cpus: CpuSet| {
            if !cpus.is_empty() {
                units.push((cpus.len(), rank, Self { names: vec![name], kind, cpus, inner: Vec::new() }));
            }
        };
        for (index, package) in online_sets(topology, Unit::Package).into_iter().enumerate() {
            add(0, "package", format!("package {index}"), package);
        }
        for node in topology.nodes() {
            let memory = match node.memory {
                NodeMemory::Unknown | NodeMemory::Present => "",
                NodeMemory::Absent => " (no memory)",
            };
            add(1, "node", format!("node {}{memory}", node.id), node.cpus.intersection(topology.online()));
        }
        let cores = topology.units(Unit::Core);
        for (rank, unit) in [(2, Unit::Die), (3, Unit::Llc), (4, Unit::Cluster)] {
            // A unit that is one core says nothing that the core does not; the summary has its number.
            for cpus in online_sets(topology, unit).into_iter().filter(|cpus| !cores.contains(cpus)) {
                if cpus.len() > 1 {
                    add(rank, unit.name(), unit.name().to_owned(), cpus);
                }
            }
        }
        // Outer units first; of equal ones in the order of ranks.
        units.sort_by(|a, b| (b.0, a.1, &a.2.cpus).cmp(&(a.0, b.1, &b.2.cpus)));
        let mut root =
            Self { names: Vec::new(), kind: "", cpus: topology.online().clone(), inner: Vec::new() };
        for (_, _, unit) in units {
            root.insert(unit);
        }
        root
    }

    fn insert(&mut self, unit: Self) {
        if unit.cpus == self.cpus {
            self.names.extend(unit.names);
            return;
        }
        match self.inner.iter_mut().find(|inner| unit.cpus.is_subset(&inner.cpus)) {
            Some(inner) => inner.insert(unit),
            None => self.inner.push(unit),
        }
    }

    fn render(&self, out: &mut String, topology: &Topology, depth: usize) {
        let indent = "  ".repeat(depth);
        let deeper = format!("{indent}  ");
        let names = if self.names.is_empty() { "machine".to_owned() } else { self.names.join(" = ") };
        let title = [format!("{names}:"), count(self.cpus.len(), "CPU"), self.cpus.to_string()];
        wrapped(out, &indent, &format!("{deeper}  "), &title, " ");
        if self.inner.iter().any(|inner| !inner.inner.is_empty() || inner.names.len() > 1) {
            for inner in &self.inner {
                inner.render(out, topology, depth + 1);
            }
            return;
        }
        // The innermost units differ only in their CPUs: one line for all of a kind.
        let mut inner: Vec<&Self> = self.inner.iter().collect();
        inner.sort_by_key(|unit| unit.kind);
        let mut drawn = CpuSet::new();
        for same in inner.chunk_by(|a, b| a.kind == b.kind) {
            let named = matches!(same[0].kind, "node" | "package");
            if named || same.len() == 1 {
                for unit in same {
                    unit.render(out, topology, depth + 1);
                    drawn = drawn.union(&unit.cpus);
                }
            } else {
                let sets: Vec<CpuSet> = same.iter().map(|unit| unit.cpus.clone()).collect();
                let label = format!("{deeper}{} {}: ", sets.len(), plural(same[0].kind));
                set_lines(out, &label, &format!("{deeper}    "), &sets);
            }
        }
        self.render_cores(out, topology, &drawn, &deeper);
    }

    /// Cores of several threads that no unit below has `drawn`.
    fn render_cores(&self, out: &mut String, topology: &Topology, drawn: &CpuSet, indent: &str) {
        let own = self.cpus.difference(drawn);
        let cores: Vec<CpuSet> = online_sets(topology, Unit::Core)
            .into_iter()
            .filter(|core| core.is_subset(&own) && core.len() > 1)
            .collect();
        if cores.is_empty() {
            return;
        }
        let label = format!("{indent}{}: ", count(cores.len(), "threaded core"));
        set_lines(out, &label, &format!("{indent}    "), &cores);
    }
}

/// Each level's spans once, its numbers and flags once.
fn domain_levels(out: &mut String, topology: &Topology, domains: &SchedDomains) {
    let generation = domains.generation();
    let _ = writeln!(out, "scheduling domains as Linux {generation} makes them");
    let mut rows: Vec<(DomainLevel, SdFlags, CpuId, &SchedDomain)> = Vec::new();
    let mut without = CpuSet::new();
    for cpu in topology.online().iter() {
        let own = domains.of(cpu);
        if own.is_empty() {
            without.insert(cpu);
        }
        rows.extend(own.iter().map(|domain| (domain.level(), domain.flags(), cpu, domain)));
    }
    rows.sort_by_key(|&(level, flags, cpu, _)| (level, flags, cpu));
    let common = rows.iter().fold(None, |common: Option<SdFlags>, &(_, flags, _, _)| {
        Some(common.map_or(flags, |common| common.without(common.without(flags))))
    });
    let common = common.unwrap_or(SdFlags::EMPTY);
    let mut levels: Vec<_> = rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).collect();
    levels.sort_by_key(|rows| (rows[0].0, rows[0].2));
    for level in levels {
        domain_level(out, generation, level, common);
    }
    if !without.is_empty() {
        wrapped(out, "  no domain: CPUs ", "    ", &[without.to_string()], " ");
    }
    if rows.is_empty() {
        return;
    }
    let names: Vec<String> = common.names(generation).map(str::to_owned).collect();
    wrapped(out, "  flags of all: ", "    ", &names, " ");
    cache_line(out, topology, domains);
}

fn domain_level(
    out: &mut String,
    generation: Generation,
    rows: &[(DomainLevel, SdFlags, CpuId, &SchedDomain)],
    common: SdFlags,
) {
    let (level, flags, _, first) = rows[0];
    let within = match level {
        DomainLevel::Numa(distance) => format!(" within {distance}"),
        DomainLevel::Smt
        | DomainLevel::Cl
        | DomainLevel::Cls
        | DomainLevel::Mc
        | DomainLevel::Pkg
        | DomainLevel::Node => String::new(),
    };
    let mut owners: Vec<(&CpuSet, CpuSet)> = Vec::new();
    let mut sorted: Vec<_> = rows.iter().map(|&(_, _, cpu, domain)| (domain.span(), cpu)).collect();
    sorted.sort();
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        owners.push((same[0].0, same.iter().map(|&(_, cpu)| cpu).collect()));
    }
    let label = format!("  {}{within}", level.name(generation));
    if owners.iter().all(|(span, cpus)| *span == cpus) {
        let spans: Vec<CpuSet> = owners.iter().map(|(span, _)| (*span).clone()).collect();
        set_lines(out, &format!("{label}, {}: ", sizes(&spans)), "      ", &spans);
    } else {
        let items: Vec<String> = owners.iter().map(|(span, cpus)| format!("{span} for {cpus}")).collect();
        wrapped(out, &format!("{label}: "), "      ", &items, " | ");
    }
    let groups = range(rows.iter().map(|(_, _, _, domain)| domain.groups().len()));
    let mut numbers = vec![format!("{groups} groups"), format!("imbalance {} %", first.imbalance_pct())];
    let imbalances: Vec<u32> = rows.iter().filter_map(|(_, _, _, domain)| domain.imb_numa_nr()).collect();
    if flags.contains(SdFlags::NUMA) && !imbalances.is_empty() {
        numbers.push(format!("imb_numa_nr {}", range(imbalances.into_iter())));
    }
    numbers.extend(flags.without(common).names(generation).map(str::to_owned));
    wrapped(out, "      ", "      ", &numbers, ", ");
}

/// What the wake-up search takes as the last-level cache, which may be more or less than what is stated.
fn cache_line(out: &mut String, topology: &Topology, domains: &SchedDomains) {
    let mut spans: Vec<CpuSet> = Vec::new();
    let mut alone = CpuSet::new();
    for cpu in topology.online().iter() {
        match domains.llc(cpu) {
            Some(llc) if llc.span().lowest() == Some(cpu) => spans.push(llc.span().clone()),
            Some(_) => {}
            None => {
                alone.insert(cpu);
            }
        }
    }
    if !spans.is_empty() {
        set_lines(out, &format!("  sd_llc, {}: ", sizes(&spans)), "      ", &spans);
    }
    if !alone.is_empty() {
        wrapped(out, "  no sd_llc (a cache of their own): CPUs ", "      ", &[alone.to_string()], " ");
    }
    let stated = online_sets(topology, Unit::Llc);
    let stated: Vec<CpuSet> = stated.into_iter().filter(|set| set.len() > 1).collect();
    if stated != spans {
        let why =
            if topology.is_known(Unit::Llc) { "differs from the stated llcs" } else { "no llcs are stated" };
        let _ = writeln!(out, "      ({why}: this is what the kernel works with)");
    }
}

fn online_sets(topology: &Topology, unit: Unit) -> Vec<CpuSet> {
    let online = topology.units(unit).iter().map(|set| set.intersection(topology.online()));
    online.filter(|set| !set.is_empty()).collect()
}

/// `3`, or `3 to 6`.
fn range<T: Ord + Copy + std::fmt::Display>(numbers: impl Iterator<Item = T> + Clone) -> String {
    match (numbers.clone().min(), numbers.max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (None, _) | (_, None) => String::new(),
    }
}

fn same_sizes(sets: &[CpuSet]) -> bool {
    sets.windows(2).all(|pair| pair[0].len() == pair[1].len())
}

/// `4 of 24 CPUs`, `2 of 1 CPU, 4 of 8 CPUs`.
fn sizes(sets: &[CpuSet]) -> String {
    let mut lengths: Vec<usize> = sets.iter().map(CpuSet::len).collect();
    lengths.sort_unstable();
    let item = |same: &[usize]| format!("{} of {}", same.len(), count(same[0], "CPU"));
    lengths.chunk_by(|a, b| a == b).map(item).collect::<Vec<_>>().join(", ")
}

fn count(number: usize, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

fn plural(word: &str) -> String {
    format!("{word}s")
}

/// Sets on as few lines as possible: spelled out while that is short, else by their pattern.
fn set_lines(out: &mut String, label: &str, indent: &str, sets: &[CpuSet]) {
    let items: Vec<String> = sets.iter().map(CpuSet::to_string).collect();
    let spelled: usize = items.iter().map(|item| item.len() + 3).sum();
    if label.len() + spelled <= COLUMNS + 3 {
        return wrapped(out, label, indent, &items, " | ");
    }
    match pattern(sets) {
        Some(pattern) => wrapped(out, label, indent, &[pattern], " "),
        None => wrapped(out, label, indent, &items, " | "),
    }
}

/// `0-95 by 4` for consecutive blocks, `0-51 with 52-103` for siblings at a fixed offset.
fn pattern(sets: &[CpuSet]) -> Option<String> {
    let size = sets.first()?.len();
    if size == 0 || !same_sizes(sets) {
        return None;
    }
    let all = sets.iter().fold(CpuSet::new(), |all, set| all.union(set));
    let cpus: Vec<CpuId> = all.iter().collect();
    if cpus.chunks(size).zip(sets).all(|(block, set)| block.iter().copied().collect::<CpuSet>() == *set) {
        return Some(format!("{all} by {size}"));
    }
    let column = |nth: usize| sets.iter().filter_map(|set| set.iter().nth(nth)).collect::<Vec<CpuId>>();
    let columns: Vec<Vec<CpuId>> = (0..size).map(column).collect();
    let one_range =
        |column: &Vec<CpuId>| column.windows(2).all(|pair| pair[0].index() + 1 == pair[1].index());
    columns.iter().all(one_range).then(|| {
        let lists = columns.into_iter().map(|column| column.into_iter().collect::<CpuSet>().to_string());
        lists.collect::<Vec<_>>().join(" with ")
    })
}

/// `label` and then the items, broken between items before column 80; an item too long for a line is broken at commas.
fn wrapped(out: &mut String, label: &str, indent: &str, items: &[String], separator: &str) {
    let mut line = label.to_owned();
    let mut fresh = true;
    for (index, item) in items.iter().enumerate() {
        let item = if index + 1 < items.len() { format!("{item}{separator}") } else { item.clone() };
        let long = indent.len() + item.trim_end().len() > COLUMNS;
        let pieces: Vec<&str> = if long { item.split_inclusive(',').collect() } else { vec![&item] };
        for piece in pieces {
            if !fresh && line.len() + piece.trim_end().len() > COLUMNS {
                let _ = writeln!(out, "{}", line.trim_end());
                line = indent.to_owned();
            }
            line.push_str(if line == indent { piece.trim_start() } else { piece });
            fresh = false;
        }
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

#[cfg(test)]
mod tests;
