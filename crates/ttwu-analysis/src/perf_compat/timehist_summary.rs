//! The summary of `perf sched timehist -s`, with its tasks in perf's order.
//!
//! perf prints threads as its tables hold them. In 6.1 these are 256 trees by the low bits of the thread id, each with a list
//! of the dead behind it; in 7.3 they are 8 hash tables. The order means nothing, but a difference in order hides a
//! difference in figures, so it is kept.

use super::PerfVersion;
use super::threads::{Step, ThreadId, Threads};
use super::timehist::{PerfTimehist, RunStats};
use ttwu_model::{Strings, TaskTable};

/// A line of the summary.
#[derive(Clone, Debug, PartialEq)]
pub struct PerfTimehistTask {
    /// `comm[tid/pid]`.
    pub name: String,
    /// The thread that forked it; −1 where perf does not know.
    pub parent: i32,
    /// Switches out, which perf calls sched-in.
    pub count: u64,
    /// All runs.
    pub run_ns: u64,
    /// Shortest run.
    pub run_ns_min: u64,
    /// Mean run, rounded down.
    pub run_ns_avg: u64,
    /// Longest run.
    pub run_ns_max: u64,
    /// Standard error of the mean, in per cent of it.
    pub stddev_percent: f32,
    /// Migrations, if they were asked for.
    pub migrations: u64,
    /// 6.1 lists it below "Terminated tasks".
    pub terminated: bool,
}

/// What perf says of one CPU's idle task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerfIdle {
    /// The CPU.
    pub cpu: u32,
    /// Time idle.
    ///
    /// PERF: `None` where the idle task was never switched out. perf prints "idle entire time window" for that, which is true
    /// of a CPU that never left idle and equally printed for one that was never idle.
    pub idle_ns: Option<u64>,
    /// Of the whole time.
    pub percent: f64,
}

/// The summary.
#[derive(Clone, Debug, PartialEq)]
pub struct PerfTimehistSummary {
    /// Whose rules made it.
    pub version: PerfVersion,
    /// The lines in perf's order, those of terminated tasks last.
    pub tasks: Vec<PerfTimehistTask>,
    /// CPUs in order.
    pub idle: Vec<PerfIdle>,
    /// Switches out, of idle tasks too.
    pub switches: u64,
    /// Run time of all lines.
    pub run_ns: u64,
    /// First to last switch.
    pub span_ns: u64,
    /// What perf multiplies that by: CPUs on line, or the highest CPU number seen if that is more.
    pub max_cpu: u32,
}

pub(super) fn summary(fold: &PerfTimehist, strings: &Strings, tasks: &TaskTable) -> PerfTimehistSummary {
    let version = fold.options().version;
    let order = match version {
        PerfVersion::V6_1 => order_6_1(&fold.threads),
        PerfVersion::V7 => order_7(&fold.threads),
    };
    let mut lines: Vec<PerfTimehistTask> =
        order.into_iter().filter_map(|thread| line(fold, thread, strings, tasks)).collect();
    lines.sort_by_key(|line| line.terminated);
    let span_ns = fold.first.map_or(0, |first| fold.last.saturating_since(first).as_ns());
    let mut switches = lines.iter().map(|line| line.count).sum();
    let mut idle = Vec::new();
    for (cpu, runtime) in (0..).zip(&fold.idle) {
        let Some(runtime) = runtime else { continue };
        switches += runtime.stats.count;
        let idle_ns = (runtime.stats.count != 0).then_some(runtime.total_ns);
        let percent = 100.0 * runtime.total_ns as f64 / span_ns as f64;
        idle.push(PerfIdle { cpu, idle_ns, percent });
    }
    let run_ns = lines.iter().map(|line| line.run_ns).sum();
    PerfTimehistSummary { version, tasks: lines, idle, switches, run_ns, span_ns, max_cpu: fold.max_cpu }
}

fn line(
    fold: &PerfTimehist,
    thread: ThreadId,
    strings: &Strings,
    tasks: &TaskTable,
) -> Option<PerfTimehistTask> {
    let runtime = fold.runtimes.get(thread.index()).filter(|runtime| runtime.stats.count != 0)?;
    let stats = &runtime.stats;
    let row = fold.threads.get(thread);
    Some(PerfTimehistTask {
        name: fold.label_of(thread, strings, tasks),
        parent: row.parent,
        count: stats.count,
        run_ns: runtime.total_ns,
        run_ns_min: stats.min,
        run_ns_avg: stats.mean as u64,
        run_ns_max: stats.max,
        stddev_percent: stddev_percent(stats) as f32,
        migrations: runtime.migrations,
        terminated: row.dead,
    })
}

/// Of the mean, not of the runs: perf divides the variance by the count once more.
fn stddev_percent(stats: &RunStats) -> f64 {
    if stats.count < 2 || stats.mean == 0.0 {
        return 0.0;
    }
    let count = stats.count as f64;
    let variance = stats.squares / (count - 1.0);
    100.0 * (variance / count).sqrt() / stats.mean
}

fn order_6_1(threads: &Threads) -> Vec<ThreadId> {
    let mut order: Vec<_> = threads.iter().collect();
    order.sort_by_key(|(_, thread)| {
        let table = thread.tid.cast_unsigned() % 256;
        match thread.removed {
            None => (table, 0, i64::from(thread.tid)),
            Some(nth) => (table, 1, i64::from(nth)),
        }
    });
    order.into_iter().map(|(id, _)| id).collect()
}

/// perf 7.3's `hashmap`: chains in order of the upper bits of the key times a constant, newest first, doubled when three
/// quarters full.
#[derive(Default)]
struct HashTable {
    bits: u32,
    chains: Vec<Vec<ThreadId>>,
    len: usize,
}

impl HashTable {
    fn chain(bits: u32, tid: i32) -> usize {
        let key = i64::from(tid).cast_unsigned();
        (key.wrapping_mul(11_400_714_819_323_198_485) >> (64 - bits)) as usize
    }

    fn insert(&mut self, thread: ThreadId, threads: &Threads) {
        if self.chains.is_empty() || (self.len + 1) * 4 / 3 > self.chains.len() {
            self.bits = (self.bits + 1).max(2);
            let old = std::mem::take(&mut self.chains);
            self.chains = vec![Vec::new(); 1 << self.bits];
            // Chains are read from their head, which is each vector's end.
            for thread in old.iter().flat_map(|chain| chain.iter().rev()) {
                let chain = Self::chain(self.bits, threads.get(*thread).tid);
                self.chains[chain].push(*thread);
            }
        }
        let chain = Self::chain(self.bits, threads.get(thread).tid);
        self.chains[chain].push(thread);
        self.len += 1;
    }
}

fn order_7(threads: &Threads) -> Vec<ThreadId> {
    let mut tables: [HashTable; 8] = std::array::from_fn(|_| HashTable::default());
    // Threads come in the order in which perf added them; those it removed again matter for the size of the tables only
    // while they were there, and a table never shrinks.
    for step in threads.history() {
        let (Step::Added(thread) | Step::Removed(thread)) = *step;
        let tid = threads.get(thread).tid;
        let table = &mut tables[(tid.cast_unsigned() % 8) as usize];
        if let Step::Added(_) = step {
            table.insert(thread, threads);
        } else {
            let chain = HashTable::chain(table.bits, tid);
            table.chains[chain].retain(|&other| other != thread);
            table.len -= 1;
        }
    }
    tables
        .iter()
        .flat_map(|table| table.chains.iter().flat_map(|chain| chain.iter().rev().copied()))
        .collect()
}
