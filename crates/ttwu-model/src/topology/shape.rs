//! `2 sockets x 2 nodes x 6 clusters x 4 cores`: a regular machine as nested counts.
//!
//! A shape is only a way to write sibling lists; nothing else in the program knows it.

use super::{NodeList, NodeMemory, SiblingLists, Topology, TopologyError, Unit};
use crate::{CpuId, CpuSet};
use std::fmt;

/// How second and further hardware threads of a shape are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    /// All first threads, then all second ones: siblings are c and c + cores.
    Last,
    /// Siblings side by side.
    Adjacent,
}

impl Threads {
    pub(super) fn parse(line: usize, word: &str) -> Result<Self, TopologyError> {
        match word {
            "last" => Ok(Self::Last),
            "adjacent" => Ok(Self::Adjacent),
            _ => Err(refuse(line, "`last` or `adjacent`", word)),
        }
    }
}

/// What a shape counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Package,
    Die,
    Node,
    Llc,
    Cluster,
    Core,
    Thread,
}

impl Word {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "socket" | "sockets" | "package" | "packages" => Some(Self::Package),
            "die" | "dies" => Some(Self::Die),
            "node" | "nodes" => Some(Self::Node),
            "llc" | "llcs" | "ccx" | "ccxs" => Some(Self::Llc),
            "cluster" | "clusters" => Some(Self::Cluster),
            "core" | "cores" | "cpu" | "cpus" => Some(Self::Core),
            "thread" | "threads" => Some(Self::Thread),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Package => "socket",
            Self::Die => "die",
            Self::Node => "node",
            Self::Llc => "llc",
            Self::Cluster => "cluster",
            Self::Core => "core",
            Self::Thread => "thread",
        }
    }
}

/// Counts from the outside in, and the statements that a printed shape needs beside it.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    counts: Vec<(Word, usize)>,
    threads: Threads,
    llc: Option<&'static str>,
}

fn refuse(line: usize, expected: &'static str, found: &str) -> TopologyError {
    TopologyError::Text { line, expected, found: found.chars().take(60).collect() }
}

impl Shape {
    /// Reads `2 sockets x 4 cores`.
    pub(super) fn parse(line: usize, text: &str) -> Result<Self, TopologyError> {
        let mut counts: Vec<(Word, usize)> = Vec::new();
        let mut product = 1usize;
        for part in text.split(['×', '*']).flat_map(|part| part.split(" x ")) {
            let (count, word) = part.trim().split_once(char::is_whitespace).unwrap_or((part.trim(), ""));
            let expected = "`COUNT WORD`, WORD one of sockets, dies, nodes, llcs, clusters, cores, threads";
            let word = Word::parse(word.trim()).ok_or_else(|| refuse(line, expected, part))?;
            let count = count.parse().map_err(|_| refuse(line, expected, part))?;
            if counts.iter().any(|&(known, _)| known == word) {
                return Err(refuse(line, "each word once", part));
            }
            let after = counts.last().map(|&(last, _)| last);
            let late = match after {
                Some(Word::Thread) => true,
                Some(Word::Core) => word != Word::Thread,
                Some(Word::Package | Word::Die | Word::Node | Word::Llc | Word::Cluster) | None => {
                    word == Word::Thread
                }
            };
            if late {
                return Err(refuse(line, "cores last, or cores and then threads", part));
            }
            product = product.saturating_mul(count);
            if product == 0 || product > Topology::CPUS_MAX {
                return Err(refuse(line, "1 to 8192 CPUs in all", text));
            }
            counts.push((word, count));
        }
        if !counts.iter().any(|&(word, _)| word == Word::Core) {
            return Err(refuse(line, "a number of cores", text));
        }
        Ok(Self { counts, threads: Threads::Last, llc: None })
    }

    /// Writes the shape's sibling lists into `lists`, where `llc` is the text's own word for the last level.
    pub(super) fn fill(
        &self,
        lists: &mut SiblingLists,
        threads: Threads,
        llc: Option<&str>,
    ) -> Result<(), TopologyError> {
        let all = self.blocks(None, threads).remove(0);
        let has = |word| self.counts.iter().any(|&(known, _)| known == word);
        let blocks = |word| self.blocks(Some(word), threads);
        lists.cores = blocks(Word::Core);
        lists.packages = if has(Word::Package) { blocks(Word::Package) } else { vec![all.clone()] };
        if has(Word::Die) {
            lists.dies = blocks(Word::Die);
        }
        if has(Word::Cluster) {
            lists.clusters = blocks(Word::Cluster);
        }
        if has(Word::Node) {
            let node = |(id, cpus)| NodeList {
                id: u16::try_from(id).expect("at most 8192 nodes"),
                cpus,
                memory: NodeMemory::Unknown,
            };
            lists.nodes = blocks(Word::Node).into_iter().enumerate().map(node).collect();
        }
        let innermost =
            self.counts.iter().rev().find(|(word, _)| matches!(word, Word::Package | Word::Die | Word::Node));
        lists.llcs =
            match llc {
                None if has(Word::Llc) => blocks(Word::Llc),
                None => innermost.map_or_else(|| vec![all], |&(word, _)| blocks(word)),
                Some("unknown") => Vec::new(),
                Some("cpu") => all.iter().map(|cpu| CpuSet::from_iter([cpu])).collect(),
                Some(text) => {
                    let word = Word::parse(text).filter(|&word| has(word) && word != Word::Thread);
                    blocks(word.ok_or_else(|| {
                        refuse(1, "`llc` with a word of the shape, `cpu` or `unknown`", text)
                    })?)
                }
            };
        Ok(())
    }

    /// The CPUs of each block of `word`, in order; of the whole machine for `None`.
    fn blocks(&self, word: Option<Word>, threads: Threads) -> Vec<CpuSet> {
        let count_of =
            |wanted| self.counts.iter().find(|&&(known, _)| known == wanted).map_or(1, |&(_, count)| count);
        let per_core = count_of(Word::Thread);
        let cores: usize = self.counts.iter().map(|&(_, count)| count).product::<usize>() / per_core;
        let blocks: usize = match word {
            None => 1,
            Some(word) => {
                let until = self.counts.iter().position(|&(known, _)| known == word).map_or(0, |at| at + 1);
                self.counts[..until].iter().map(|&(_, count)| count).product()
            }
        };
        let size = cores / blocks;
        let cpu = |core: usize, thread: usize| {
            let number = match threads {
                Threads::Last => core + thread * cores,
                Threads::Adjacent => core * per_core + thread,
            };
            CpuId::new(u16::try_from(number).expect("at most 8192 CPUs"))
        };
        let block = |block: usize| {
            let cores = block * size..(block + 1) * size;
            cores.flat_map(|core| (0..per_core).map(move |thread| cpu(core, thread))).collect()
        };
        (0..blocks).map(block).collect()
    }

    /// The shape that `topology` may have; the caller checks that it says the same.
    pub(super) fn of(topology: &Topology) -> Option<Self> {
        let cpus = topology.places.iter().flatten().count();
        let mut blocks: Vec<(Word, usize)> = Vec::new();
        let count = |unit: Unit| topology.units(unit).len();
        for (word, unit) in [
            (Word::Package, Unit::Package),
            (Word::Die, Unit::Die),
            (Word::Cluster, Unit::Cluster),
            (Word::Core, Unit::Core),
        ] {
            if count(unit) > 0 {
                blocks.push((word, count(unit)));
            }
        }
        // A lone node needs no word, unless it is the node list that carries memory or another number than 0.
        if topology.nodes.len() > 1 {
            blocks.push((Word::Node, topology.nodes.len()));
        }
        // Fewer blocks are further out; where two kinds are the same CPUs, the order of the words decides.
        blocks.sort_by_key(|&(word, count)| (count, word as usize));
        let innermost =
            blocks.iter().rev().find(|(word, _)| matches!(word, Word::Package | Word::Die | Word::Node));
        let llcs = count(Unit::Llc);
        let llc = if llcs == 0 {
            Some("unknown")
        } else if innermost.is_some_and(|&(_, count)| count == llcs) {
            None
        } else if let Some(&(word, _)) = blocks.iter().rev().find(|&&(_, count)| count == llcs) {
            Some(word.name())
        } else if llcs == cpus {
            Some("cpu")
        } else {
            blocks.push((Word::Llc, llcs));
            blocks.sort_by_key(|&(word, count)| (count, word as usize));
            None
        };
        let mut counts = Vec::new();
        let mut outside = 1;
        for (word, blocks) in blocks {
            if blocks % outside != 0 {
                return None;
            }
            counts.push((word, blocks / outside));
            outside = blocks;
        }
        if outside == 0 || !cpus.is_multiple_of(outside) {
            return None;
        }
        if cpus > outside {
            counts.push((Word::Thread, cpus / outside));
        }
        let adjacent = topology.units(Unit::Core).first()?.iter().nth(1).is_some_and(|cpu| {
            Some(cpu.index()) == topology.units(Unit::Core)[0].lowest().map(|low| low.index() + 1)
        });
        let threads = if adjacent { Threads::Adjacent } else { Threads::Last };
        Some(Self { counts, threads, llc })
    }
}

impl fmt::Display for Shape {
    /// The shape's line and the `threads` and `llc` lines where their defaults do not hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(word, count)) in self.counts.iter().enumerate() {
            let separator = if index == 0 { "" } else { " x " };
            let plural = if count == 1 { "" } else { "s" };
            write!(f, "{separator}{count} {}{plural}", word.name())?;
        }
        writeln!(f)?;
        let smt = self.counts.iter().any(|&(word, _)| word == Word::Thread);
        if smt && self.threads == Threads::Adjacent {
            writeln!(f, "threads adjacent")?;
        }
        match self.llc {
            Some(word) => writeln!(f, "llc {word}"),
            None => Ok(()),
        }
    }
}
