//! The text form of a topology: comfortable to write by hand, and what [`Topology`]'s `Display` prints.
//!
//! [`Topology::parse`] describes it. Printing prefers a shape where it says the same as the lists, so a regular machine
//! stays one line. What this does not do: check the machine; that is the constructor's part.

use super::shape::{Shape, Threads};
use super::{Arch, NodeList, NodeMemory, SiblingLists, Topology, TopologyError, Unit};
use crate::{CpuId, CpuSet};
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// Statements of one text, before they are put together.
struct Statements {
    arch: Arch,
    shape: Option<Shape>,
    threads: Threads,
    llc: Option<String>,
    cpus: Option<CpuSet>,
    offline: CpuSet,
    units: [Option<Vec<CpuSet>>; 5],
    nodes: Vec<(u16, CpuSet)>,
    memory: Vec<(CpuSet, NodeMemory)>,
    distances: Option<Vec<Vec<u8>>>,
    capacities: Vec<(CpuSet, u16)>,
    reclaim: u8,
}

impl Topology {
    /// Reads the text form that `Display` prints.
    ///
    /// ```text
    /// arch generic                                  # which mask rules: x86, or generic (also arm64, riscv)
    /// 2 sockets x 2 nodes x 6 clusters x 4 cores    # a regular machine in one line
    /// distances 10 12 20 22 / 12 10 22 24 / 20 22 10 12 / 22 24 12 10
    /// ```
    ///
    /// Statements end at a line's end or at `;`, and `#` starts a comment. Their order does not matter.
    ///
    /// | statement | meaning |
    /// |---|---|
    /// | `2 sockets x 1 node x 26 cores x 2 threads` | a shape, outermost first: sockets, dies, nodes, llcs, clusters, cores, threads. CPUs are numbered in that order. Without `nodes` there is one node, without `sockets` one package; dies and clusters are unknown unless said |
    /// | `threads last`, `threads adjacent` | numbering of a shape's second threads: after all first ones (bare-metal habit, the default) or next to them (QEMU) |
    /// | `llc node` | what of a shape shares the last-level cache: `socket`, `die`, `node`, `cluster`, `core`, `cpu` (a private last level), or `unknown`. Default: the `llcs` of the shape, else its innermost of socket, die and node |
    /// | `cpus 0-7` | the online CPUs; default: all that the other statements name, less the offline ones |
    /// | `offline 6-7` | CPUs that exist and do not run |
    /// | `core 0,4 \| 1,5`, `cluster …`, `llc …`, `die …`, `package …` | explicit lists; `0-95 by 4` is blocks of 4. They replace what a shape says of that kind. A CPU in no list: unknown (core: alone) |
    /// | `node 1: 4-7` | a node's CPUs; nothing after the colon is a node with memory only |
    /// | `memory 0`, `no-memory 1,3` | which nodes have memory; others are unknown |
    /// | `distances 10 21 / 21 10` | rows by ascending node number; one number alone is the distance of every two nodes |
    /// | `capacity 446: 0-3` | CPUs weaker than the strongest (1024) |
    /// | `reclaim 32` | the reclaim distance, 30 if not said |
    ///
    /// # Errors
    /// At the first statement that cannot be read, with its line, or when the whole is an impossible machine.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let mut all = Statements {
            arch: Arch::Generic,
            shape: None,
            threads: Threads::Last,
            llc: None,
            cpus: None,
            offline: CpuSet::new(),
            units: [const { None }; 5],
            nodes: Vec::new(),
            memory: Vec::new(),
            distances: None,
            capacities: Vec::new(),
            reclaim: Self::RECLAIM_DISTANCE,
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for statement in line.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
                all.read(index + 1, statement)?;
            }
        }
        Self::from_sibling_lists(&all.into_lists()?)
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        Self::parse(text)
    }
}

fn refuse(line: usize, expected: &'static str, found: &str) -> TopologyError {
    // A hostile text may be one huge word; the message stays one readable line.
    TopologyError::Text { line, expected, found: found.chars().take(60).collect() }
}

fn list(line: usize, text: &str) -> Result<CpuSet, TopologyError> {
    CpuSet::parse_list(text).map_err(|source| TopologyError::List { line, source })
}

impl Statements {
    fn read(&mut self, line: usize, statement: &str) -> Result<(), TopologyError> {
        if statement.starts_with(|first: char| first.is_ascii_digit()) {
            if self.shape.is_some() {
                return Err(refuse(line, "one shape only", statement));
            }
            self.shape = Some(Shape::parse(line, statement)?);
            return Ok(());
        }
        let (word, rest) = statement.split_once(char::is_whitespace).unwrap_or((statement, ""));
        let rest = rest.trim();
        match word {
            "arch" => self.arch = arch(line, rest)?,
            "threads" => self.threads = Threads::parse(line, rest)?,
            "llc" | "llcs" if rest.starts_with(char::is_alphabetic) => self.llc = Some(rest.to_owned()),
            "cpus" => self.cpus = Some(self.cpus.take().unwrap_or_default().union(&list(line, rest)?)),
            "offline" => self.offline = self.offline.union(&list(line, rest)?),
            "node" => {
                let (id, cpus) = rest.split_once(':').ok_or_else(|| refuse(line, "`node ID: CPUS`", rest))?;
                let id = id.trim().parse().map_err(|_| refuse(line, "a node number", id))?;
                self.nodes.push((id, list(line, cpus)?));
            }
            "memory" => self.memory.push((list(line, rest)?, NodeMemory::Present)),
            "no-memory" => self.memory.push((list(line, rest)?, NodeMemory::Absent)),
            "distances" | "distance" => self.distances = Some(distances(line, rest)?),
            "capacity" => {
                let (capacity, cpus) =
                    rest.split_once(':').ok_or_else(|| refuse(line, "`capacity N: CPUS`", rest))?;
                let number = capacity.trim().parse();
                let capacity = number.map_err(|_| refuse(line, "a capacity from 1 to 1024", capacity))?;
                self.capacities.push((list(line, cpus)?, capacity));
            }
            "reclaim" => self.reclaim = rest.parse().map_err(|_| refuse(line, "a distance", rest))?,
            _ => {
                let unit = unit(word).ok_or_else(|| {
                    refuse(line, "a shape such as `2 sockets x 4 cores` or a known statement", word)
                })?;
                self.units[unit as usize].get_or_insert_default().extend(sets(line, rest)?);
            }
        }
        Ok(())
    }

    fn into_lists(self) -> Result<SiblingLists, TopologyError> {
        let mut lists = SiblingLists::new(self.arch, CpuSet::new());
        lists.offline = self.offline;
        match &self.shape {
            Some(shape) => shape.fill(&mut lists, self.threads, self.llc.as_deref())?,
            None if self.llc.as_deref().is_some_and(|word| word != "unknown") => {
                return Err(refuse(
                    1,
                    "a shape beside `llc WORD`, or lists of CPUs",
                    &self.llc.unwrap_or_default(),
                ));
            }
            None => {}
        }
        for (unit, explicit) in Unit::ALL.into_iter().zip(self.units) {
            if let Some(explicit) = explicit {
                match unit {
                    Unit::Core => lists.cores = explicit,
                    Unit::Cluster => lists.clusters = explicit,
                    Unit::Llc => lists.llcs = explicit,
                    Unit::Die => lists.dies = explicit,
                    Unit::Package => lists.packages = explicit,
                }
            }
        }
        if !self.nodes.is_empty() {
            let unknown = NodeMemory::Unknown;
            lists.nodes =
                self.nodes.into_iter().map(|(id, cpus)| NodeList { id, cpus, memory: unknown }).collect();
        }
        lists.online = match self.cpus {
            Some(cpus) => cpus,
            None => named(&lists).difference(&lists.offline),
        };
        set_memory(&mut lists, &self.memory)?;
        let nodes = lists.nodes.len();
        lists.distances = self.distances.map(|rows| match rows.as_slice() {
            [row] if row.len() == 1 && nodes != 1 => uniform(nodes, row[0]),
            _ => rows,
        });
        if let (Some(_), 0) = (&lists.distances, nodes) {
            lists.distances = None;
        }
        lists.capacities = self.capacities;
        lists.reclaim_distance = self.reclaim;
        Ok(lists)
    }
}

/// All CPUs that some list names.
fn named(lists: &SiblingLists) -> CpuSet {
    let units = [&lists.cores, &lists.clusters, &lists.llcs, &lists.dies, &lists.packages];
    let nodes = lists.nodes.iter().map(|node| &node.cpus);
    units
        .into_iter()
        .flatten()
        .chain(nodes)
        .chain([&lists.online])
        .fold(CpuSet::new(), |all, set| all.union(set))
}

fn uniform(nodes: usize, distance: u8) -> Vec<Vec<u8>> {
    let local = |same| if same { Topology::LOCAL_DISTANCE } else { distance };
    (0..nodes).map(|from| (0..nodes).map(|to| local(from == to)).collect()).collect()
}

fn set_memory(lists: &mut SiblingLists, memory: &[(CpuSet, NodeMemory)]) -> Result<(), TopologyError> {
    for (ids, state) in memory {
        for id in ids.iter().map(CpuId::number) {
            if id == 0 && lists.nodes.is_empty() {
                lists.nodes.push(NodeList { id, cpus: named(lists), memory: *state });
            } else {
                let node = lists.nodes.iter_mut().find(|node| node.id == id);
                let missing = || refuse(1, "memory of a node that exists", &id.to_string());
                node.ok_or_else(missing)?.memory = *state;
            }
        }
    }
    // A node that was given no CPUs can only be there for its memory.
    for node in lists.nodes.iter_mut().filter(|node| node.cpus.is_empty()) {
        if node.memory == NodeMemory::Unknown {
            node.memory = NodeMemory::Present;
        }
    }
    Ok(())
}

fn arch(line: usize, word: &str) -> Result<Arch, TopologyError> {
    match word {
        "x86" | "x86_64" => Ok(Arch::X86),
        "generic" | "arm64" | "aarch64" | "riscv" => Ok(Arch::Generic),
        _ => Err(refuse(line, "`x86` or `generic`", word)),
    }
}

fn unit(word: &str) -> Option<Unit> {
    match word {
        "core" | "cores" => Some(Unit::Core),
        "cluster" | "clusters" => Some(Unit::Cluster),
        "llc" | "llcs" => Some(Unit::Llc),
        "die" | "dies" => Some(Unit::Die),
        "package" | "packages" | "socket" | "sockets" => Some(Unit::Package),
        _ => None,
    }
}

/// `0-3 | 4-7 | 8-15 by 2`.
fn sets(line: usize, text: &str) -> Result<Vec<CpuSet>, TopologyError> {
    let mut sets = Vec::new();
    for item in text.split('|').map(str::trim) {
        let Some((cpus, size)) = item.split_once(" by ") else {
            sets.push(list(line, item)?);
            continue;
        };
        let cpus: Vec<CpuId> = list(line, cpus)?.iter().collect();
        let size: usize = size.trim().parse().unwrap_or(0);
        if size == 0 || !cpus.len().is_multiple_of(size) {
            return Err(refuse(line, "`CPUS by N` with N a divisor of the number of CPUs", item));
        }
        sets.extend(cpus.chunks(size).map(|block| block.iter().copied().collect::<CpuSet>()));
    }
    Ok(sets)
}

fn distances(line: usize, text: &str) -> Result<Vec<Vec<u8>>, TopologyError> {
    let number = |word: &str| word.parse::<u8>().map_err(|_| refuse(line, "a distance from 10 to 254", word));
    text.split('/').map(|row| row.split_whitespace().map(number).collect()).collect()
}

impl fmt::Display for Topology {
    /// The text form, one statement a line; [`Topology::parse`] gives back an equal topology.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "arch {}", self.arch.name())?;
        let common = self.common_statements()?;
        let shaped = Shape::of(self).map(|shape| format!("{shape}{common}"));
        let head = format!("arch {}\n", self.arch.name());
        match shaped {
            Some(text) if Self::parse(&format!("{head}{text}")).as_ref() == Ok(self) => f.write_str(&text),
            Some(_) | None => {
                self.explicit_statements(f)?;
                f.write_str(&common)
            }
        }
    }
}

impl Topology {
    /// What both the shape and the explicit form need beside them.
    fn common_statements(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        if !self.offline.is_empty() {
            writeln!(out, "offline {}", self.offline)?;
        }
        let with = |state| {
            let ids = self.nodes.iter().filter(move |node| node.memory == state);
            ids.map(|node| CpuId::new(node.id.number())).collect::<CpuSet>()
        };
        for (word, state) in [("memory", NodeMemory::Present), ("no-memory", NodeMemory::Absent)] {
            let ids = with(state);
            if !ids.is_empty() {
                writeln!(out, "{word} {ids}")?;
            }
        }
        if let Some(table) = &self.distances {
            let rows = table.chunks(self.nodes.len());
            let row = |row: &[u8]| row.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
            writeln!(out, "distances {}", rows.map(row).collect::<Vec<_>>().join(" / "))?;
        }
        let placed = |cpu: &usize| self.places[*cpu].is_some();
        let mut cpus: Vec<(u16, CpuId)> = (0..self.places.len())
            .filter(placed)
            .map(|cpu| CpuId::new(u16::try_from(cpu).expect("below 8192")))
            .filter_map(|cpu| Some((self.capacity(cpu)?, cpu)))
            .filter(|&(capacity, _)| capacity != 1024)
            .collect();
        cpus.sort();
        for same in cpus.chunk_by(|a, b| a.0 == b.0) {
            let cpus: CpuSet = same.iter().map(|&(_, cpu)| cpu).collect();
            writeln!(out, "capacity {}: {cpus}", same[0].0)?;
        }
        if self.reclaim_distance != Self::RECLAIM_DISTANCE {
            writeln!(out, "reclaim {}", self.reclaim_distance)?;
        }
        Ok(out)
    }

    fn explicit_statements(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cpus {}", self.online)?;
        for unit in Unit::ALL {
            write_sets(f, unit.name(), self.units(unit))?;
        }
        for node in &self.nodes {
            let space = if node.cpus.is_empty() { "" } else { " " };
            writeln!(f, "node {}:{space}{}", node.id, node.cpus)?;
        }
        Ok(())
    }
}

/// `core 0-7 by 2` lines, wrapped; runs of equal blocks of consecutive CPUs are one item.
fn write_sets(f: &mut fmt::Formatter<'_>, word: &str, sets: &[CpuSet]) -> fmt::Result {
    let consecutive = |set: &CpuSet| {
        let (low, high) = (set.iter().next()?.index(), set.iter().last()?.index());
        (high - low + 1 == set.len()).then_some((low, high + 1))
    };
    let follows = |a: &CpuSet, b: &CpuSet| match (consecutive(a), consecutive(b)) {
        (Some((low, middle)), Some((start, high))) => middle == start && middle - low == high - start,
        (None, _) | (_, None) => false,
    };
    let mut line = String::new();
    for run in sets.chunk_by(follows) {
        let all = run.iter().fold(CpuSet::new(), |all, set| all.union(set));
        let item = if run.len() > 1 { format!("{all} by {}", run[0].len()) } else { all.to_string() };
        if !line.is_empty() && line.len() + item.len() > 76 {
            writeln!(f, "{line}")?;
            line.clear();
        }
        if line.is_empty() {
            write!(line, "{word} {item}")?;
        } else {
            write!(line, " | {item}")?;
        }
    }
    if line.is_empty() { Ok(()) } else { writeln!(f, "{line}") }
}
