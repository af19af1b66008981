//! The tasks that exist when a recording starts, from /proc.
//!
//! A task that sleeps through the recording, or is only ever woken, is named by few events or none; and which threads form
//! a process no scheduler event says. So both are noted once at the start.

use crate::sys;
use std::fmt::Write as _;
use std::fs;
use ttwu_model::{CpuId, CpuSet};

/// A thread of the machine, as /proc shows it in our pid namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) tgid: i32,
    pub(crate) tid: i32,
    /// At most 15 bytes, as tracepoints print it.
    pub(crate) name: String,
    /// State letter at that moment.
    pub(crate) state: char,
}

/// All threads, sorted by process and thread.
pub(crate) fn all() -> Vec<Thread> {
    let mut threads = Vec::new();
    for tgid in numbers("/proc") {
        threads.extend(of_process(tgid));
    }
    threads
}

/// The threads of one process; none when it is gone.
pub(crate) fn of_process(tgid: i32) -> Vec<Thread> {
    let directory = format!("/proc/{tgid}/task");
    let read = |tid: i32| {
        let stat = fs::read_to_string(format!("{directory}/{tid}/stat")).ok()?;
        parse_stat(&stat).map(|(name, state)| Thread { tgid, tid, name, state })
    };
    numbers(&directory).into_iter().filter_map(read).collect()
}

/// Name and state from a /proc stat line. The name stands in parentheses and may itself contain some.
fn parse_stat(stat: &str) -> Option<(String, char)> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let state = rest.trim_start().chars().next()?;
    Some((tracepoint_name(name).to_owned(), state))
}

/// The name as tracepoints print it: /proc adds to a worker's name what it works on, after `-` or `+`.
fn tracepoint_name(name: &str) -> &str {
    let base = match name.strip_prefix("kworker/").and_then(|rest| rest.find(['-', '+'])) {
        Some(at) => &name[..at + "kworker/".len()],
        None => name,
    };
    let mut end = base.len().min(15);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    &base[..end]
}

/// Directory entries that are numbers, sorted.
fn numbers(directory: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The process `pid` and all its descendants, in our pid namespace.
pub(crate) fn family(pid: i32) -> Vec<i32> {
    let mut family = vec![pid];
    let mut at = 0;
    while at < family.len() {
        for thread in numbers(&format!("/proc/{}/task", family[at])) {
            let path = format!("/proc/{}/task/{thread}/children", family[at]);
            let children = fs::read_to_string(path).unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
                if !family.contains(&child) {
                    family.push(child);
                }
            }
        }
        at += 1;
    }
    family
}

/// The threads that may not run on all of `online`, as `CPUs: tid tid …; …`, at most about 32 KiB of it.
///
/// No event says where a task may run, and "an idle CPU was there" depends on it.
pub(crate) fn restricted(threads: &[Thread], online: &CpuSet) -> String {
    const BYTES_MAX: usize = 32 << 10;
    let mut by_mask: std::collections::BTreeMap<String, Vec<i32>> = std::collections::BTreeMap::new();
    for thread in threads {
        let Ok(mask) = sys::affinity_mask(thread.tid) else { continue };
        let set = cpu_set(&mask).intersection(online);
        if set != *online {
            by_mask.entry(set.to_string()).or_default().push(thread.tid);
        }
    }
    let mut text = String::new();
    for (cpus, tids) in by_mask {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{cpus}:");
        for tid in tids {
            if text.len() > BYTES_MAX {
                text.push_str(" …");
                return text;
            }
            let _ = write!(text, " {tid}");
        }
    }
    text
}

/// A kernel bit mask (native longs) as a set.
pub(crate) fn cpu_set(mask: &[u8]) -> CpuSet {
    const WORD: usize = size_of::<libc::c_ulong>();
    let mut set = CpuSet::new();
    for (index, word) in mask.chunks_exact(WORD).enumerate() {
        let word = libc::c_ulong::from_ne_bytes(word.try_into().expect("a long"));
        for bit in (0..WORD * 8).filter(|bit| word & (1 << bit) != 0) {
            if let Ok(cpu) = CpuId::try_from((index * WORD * 8 + bit) as u64) {
                set.insert(cpu);
            }
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_give_tracepoint_names() {
        let check = |stat: &str, expect: (&str, char)| {
            assert_eq!(parse_stat(stat), Some((expect.0.to_owned(), expect.1)), "{stat}");
        };
        check("12 (cat) R 1", ("cat", 'R'));
        check("12 (a) b (c) S 1", ("a) b (c", 'S'));
        check("12 (kworker/0:2-events_unbound) I 2", ("kworker/0:2", 'I'));
        check("12 (kworker/u8:3+flush-253:0) I 2", ("kworker/u8:3", 'I'));
        check("12 (a-name-longer-than-15) D 2", ("a-name-longer-t", 'D'));
        assert_eq!(parse_stat("12 cat"), None);
    }

    #[test]
    fn this_process_is_among_all_threads() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all().iter().any(|thread| thread.tgid == own && thread.tid == own));
    }

    #[test]
    fn masks_become_sets() {
        let mut mask = vec![0_u8; 2 * size_of::<libc::c_ulong>()];
        mask[..size_of::<libc::c_ulong>()].copy_from_slice(&(0b1001 as libc::c_ulong).to_ne_bytes());
        mask[size_of::<libc::c_ulong>()..].copy_from_slice(&(0b10 as libc::c_ulong).to_ne_bytes());
        assert_eq!(cpu_set(&mask).to_string(), format!("0,3,{}", libc::c_ulong::BITS + 1));
    }
}
