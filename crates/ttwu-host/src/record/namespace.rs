//! Pids as the root namespace knows them, for a recorder inside a pid namespace.
//!
//! Tracepoints speak in pids of the root namespace; a process in a container knows only its own, and /proc there shows
//! nothing of the outside (`NSpid` lists namespaces downwards only). But an event emitted by a task carries both when perf is
//! asked for the thread id: perf translates that to the recorder's namespace, and the payload's `common_pid` is the root's.
//! So the pairs are read out of the recording itself.

use super::spool::{RECORD_SAMPLE, SampleLayout, Spool};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use ttwu_model::Pid;

/// The root pid namespace's inode number, fixed in the kernel.
const ROOT_NAMESPACE: &str = "pid:[4026531836]";

/// Is this process in the root pid namespace? Where that cannot be told, it is taken to be.
pub(crate) fn is_root() -> bool {
    fs::read_link("/proc/self/ns/pid").map_or(true, |link| link.to_string_lossy() == ROOT_NAMESPACE)
}

/// From our pids to the root's.
#[derive(Debug)]
pub(crate) enum Pids {
    /// They are the same.
    Same,
    /// Those that occur as the current task of some event.
    Seen(BTreeMap<i32, i32>),
}

impl Pids {
    /// Reads the pairs out of a raw recording, where its samples have them.
    pub(crate) fn of(spool: &Spool, layout: SampleLayout) -> io::Result<Self> {
        if !layout.tid {
            return Ok(Self::Same);
        }
        let mut file = BufReader::with_capacity(1 << 20, File::open(spool.path())?);
        file.seek(SeekFrom::Start(spool.events_at()))?;
        pairs(file, layout).map(Self::Seen)
    }

    /// The root's pid for ours, where known.
    pub(crate) fn root(&self, pid: i32) -> Option<Pid> {
        match self {
            Self::Same => Some(Pid::new(pid)),
            Self::Seen(pairs) => pairs.get(&pid).map(|&root| Pid::new(root)),
        }
    }
}

/// Walks whole records up to the end.
fn pairs(mut records: impl Read, layout: SampleLayout) -> io::Result<BTreeMap<i32, i32>> {
    // `common_pid` follows type, flags and preempt count in every kernel's records.
    const COMMON_PID: usize = 4;
    let mut pairs = BTreeMap::new();
    let mut record = Vec::new();
    let word = |record: &[u8], at: usize| -> Option<i32> {
        Some(i32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?))
    };
    loop {
        let mut header = [0; 8];
        match records.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(pairs),
            Err(error) => return Err(error),
        }
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        record.clear();
        record.extend_from_slice(&header);
        record.resize(size.max(8), 0);
        if records.read_exact(&mut record[8..]).is_err() {
            return Ok(pairs);
        }
        if kind != RECORD_SAMPLE {
            continue;
        }
        let payload = layout.raw_offset() + 4;
        if let (Some(ours), Some(root)) =
            (word(&record, SampleLayout::TID_OFFSET), word(&record, payload + COMMON_PID))
            && ours > 0
            && root > 0
        {
            pairs.insert(ours, root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_from_samples_of_visible_tasks() {
        let layout = SampleLayout { tid: true, period: true };
        let sample = |tid: i32, root: i32| {
            let mut body = vec![0; 8];
            body.extend([7_i32.to_ne_bytes(), tid.to_ne_bytes()].concat());
            body.extend([0_u8; 24]);
            body.extend(16_u32.to_ne_bytes());
            body.extend([[0; 4], root.to_ne_bytes(), [0; 4], [0; 4], [0; 4]].concat());
            let mut record = RECORD_SAMPLE.to_ne_bytes().to_vec();
            record.extend([0, 0]);
            record.extend(u16::try_from(8 + body.len()).unwrap().to_ne_bytes());
            record.extend(body);
            record
        };
        let mut bytes = [sample(5, 905), sample(0, 77), sample(6, 906)].concat();
        bytes.truncate(bytes.len() - 4);
        let found = pairs(&bytes[..], layout).unwrap();
        assert_eq!(found, BTreeMap::from([(5, 905)]));
    }
}
