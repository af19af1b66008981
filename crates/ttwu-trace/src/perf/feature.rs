//! Header features: what perf notes about the machine and itself.
//!
//! In a seekable file they are sections behind the data; in pipe mode, records in front of it. The content is the same.

use super::bytes::Bytes;
use super::topology::PerfTopology;
use super::tracing::{self, Tracing};
use crate::Endian;
use crate::source::Source;
use ttwu_model::{Pid, TraceMeta};

/// Features by their bit (`HEADER_*` in perf).
pub(super) mod bit {
    pub(in crate::perf) const TRACING_DATA: u32 = 1;
    pub(super) const HOSTNAME: u32 = 3;
    pub(super) const OSRELEASE: u32 = 4;
    pub(super) const VERSION: u32 = 5;
    pub(super) const ARCH: u32 = 6;
    pub(super) const NRCPUS: u32 = 7;
    pub(super) const CPUDESC: u32 = 8;
    pub(super) const TOTAL_MEM: u32 = 10;
    pub(super) const CMDLINE: u32 = 11;
    pub(super) const CPU_TOPOLOGY: u32 = 13;
    pub(super) const NUMA_TOPOLOGY: u32 = 14;
    pub(super) const CACHE: u32 = 20;
    pub(super) const CLOCKID: u32 = 23;
    pub(super) const DIR_FORMAT: u32 = 24;
    pub(super) const COMPRESSED: u32 = 27;
    pub(super) const CLOCK_DATA: u32 = 29;
    /// Not perf's, which ends far below and passes over what it does not know: what ttwu's recorder adds to its raw
    /// recordings, so that one whose recorder was killed is as well described as a finished one. Name and text in turn.
    pub(super) const TTWU: u32 = 255;
}

/// Longest feature that is read; tracing data with all of a kernel's formats takes a few MiB.
pub(super) const FEATURE_BYTES_MAX: u64 = 256 << 20;

/// What features say that later steps need.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) tracing: Option<Tracing>,
    /// CPUs that the machine can have; sample CPUs are below it.
    pub(super) cpus_possible: Option<u32>,
    pub(super) topology: PerfTopology,
}

impl Facts {
    /// Takes in one feature. One that cannot be read is said in the health.
    pub(super) fn add(&mut self, feature: u32, bytes: &[u8], endian: Endian, source: &mut Source) {
        if self.parse(feature, Bytes::new(bytes, endian), source).is_none() {
            source.health.add_repair(format!("ignored header feature {feature}: it ends early"));
        }
    }

    fn parse(&mut self, feature: u32, mut bytes: Bytes<'_>, source: &mut Source) -> Option<()> {
        let meta = &mut source.meta;
        match feature {
            bit::TRACING_DATA => self.tracing = Some(tracing::parse(bytes.rest(), source)),
            bit::HOSTNAME => meta.hostname = Some(bytes.string()?),
            bit::OSRELEASE => meta.kernel_release = Some(bytes.string()?),
            bit::VERSION => meta.recorder = Some(format!("perf version {}", bytes.string()?)),
            bit::ARCH => meta.arch = Some(bytes.string()?),
            bit::NRCPUS => {
                self.cpus_possible = Some(bytes.u32()?);
                meta.facts.insert("cpus_online_count".to_owned(), bytes.u32()?.to_string());
            }
            bit::CPUDESC => {
                meta.facts.insert("cpu_model".to_owned(), bytes.string()?);
            }
            bit::TOTAL_MEM => {
                meta.facts.insert("memory_kib".to_owned(), bytes.u64()?.to_string());
            }
            bit::CMDLINE => meta.command = Some(bytes.strings()?.join(" ")),
            bit::CPU_TOPOLOGY => self.topology.add_cpus(&mut bytes, self.cpus_possible)?,
            bit::NUMA_TOPOLOGY => self.topology.add_nodes(&mut bytes)?,
            bit::CACHE => self.topology.add_caches(&mut bytes)?,
            bit::CLOCKID => {
                meta.facts.insert("clock_resolution_ns".to_owned(), bytes.u64()?.to_string());
            }
            bit::CLOCK_DATA => {
                let _version = bytes.u32()?;
                let clockid = bytes.u32()?.cast_signed();
                let (wall_ns, clock_ns) = (bytes.u64()?, bytes.u64()?);
                let text = format!("{}={clock_ns} wall={wall_ns}", clock_name(clockid));
                meta.facts.insert("clock_pair_ns".to_owned(), text);
            }
            bit::COMPRESSED => {
                let (_version, kind, level) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
                if kind != 1 {
                    source
                        .health
                        .add_note(format!("compressed by method {kind} level {level}, which ttwu lacks"));
                }
            }
            bit::DIR_FORMAT => {
                source.health.add_note(
                    "this is one file of a perf.data directory; events of its other files are not in it"
                        .to_owned(),
                );
            }
            bit::TTWU => {
                for pair in bytes.strings()?.chunks_exact(2) {
                    add_own(meta, &pair[0], &pair[1]);
                }
            }
            // Build ids, PMU capabilities and the like say nothing about scheduling.
            _ => {}
        }
        Some(())
    }
}

/// Takes in what ttwu's recorder says beyond perf's features.
fn add_own(meta: &mut TraceMeta, name: &str, text: &str) {
    match name {
        "recorder" => meta.recorder = Some(text.to_owned()),
        "command" => meta.command = Some(text.to_owned()),
        "topology" => meta.topology_text = Some(text.to_owned()),
        "recorder_pids" => {
            let pids = text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
            meta.recorder_pids = pids.map(Pid::new).collect();
        }
        _ => {
            meta.facts.insert(name.to_owned(), text.to_owned());
        }
    }
}

/// A clock by its number in `clock_gettime`, under the name that ftrace has for it.
pub(super) fn clock_name(clockid: i32) -> String {
    match clockid {
        0 => "realtime".to_owned(),
        1 => "mono".to_owned(),
        4 => "mono_raw".to_owned(),
        7 => "boot".to_owned(),
        11 => "tai".to_owned(),
        other => format!("clockid {other}"),
    }
}
