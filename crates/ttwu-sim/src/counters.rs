//! What happened how often: the material for saying *why* two runs differ.

use std::collections::BTreeMap;
use ttwu_fair::{Rule, ScanEnd};
use ttwu_model::Level;

/// A histogram with 32 equal buckets to each power of two (error at most 1/32), exact below 32.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    samples: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    const BITS: u32 = 5;

    fn bucket(value: u64) -> usize {
        let low = 1 << Self::BITS;
        if value < low {
            return value as usize;
        }
        let shift = value.ilog2() - Self::BITS;
        ((u64::from(shift + 1) << Self::BITS) + ((value >> shift) - low)) as usize
    }

    /// The least value that falls into a bucket.
    fn least(bucket: usize) -> u64 {
        let low = 1u64 << Self::BITS;
        let bucket = bucket as u64;
        if bucket < low {
            return bucket;
        }
        let shift = (bucket >> Self::BITS) - 1;
        (low + (bucket & (low - 1))) << shift
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        let bucket = Self::bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.samples += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// How many values.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The greatest, exactly; 0 without any.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The mean, rounded down; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        (self.samples > 0).then(|| (self.sum / u128::from(self.samples)) as u64)
    }

    /// The least value of the bucket in which the value of this rank lies (`permille` of 500 is the median); `None` without
    /// values.
    #[must_use]
    pub fn quantile(&self, permille: u32) -> Option<u64> {
        if self.samples == 0 {
            return None;
        }
        let rank = (u128::from(self.samples) * u128::from(permille)).div_ceil(1000).max(1);
        let mut seen = 0u128;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                return Some(Self::least(bucket));
            }
        }
        Some(self.max)
    }

    /// Buckets that are not empty: least value and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let each = self.counts.iter().enumerate();
        each.filter(|&(_, &count)| count > 0).map(|(bucket, &count)| (Self::least(bucket), count))
    }
}

/// Figures of all tasks of one name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TaskCounters {
    /// Tasks of that name.
    pub tasks: u64,
    /// Time on a CPU, ns.
    pub runtime_ns: u64,
    /// Times switched in.
    pub switches: u64,
    /// Times switched out by preemption (of wake-up or tick).
    pub preempted: u64,
    /// Sum of waits from runnable to running, ns.
    pub delay_ns_sum: u64,
    /// The longest, ns.
    pub delay_ns_max: u64,
    /// From wake-up to running, ns.
    pub wake_latency_ns: Histogram,
}

/// Counts by the nearest thing that two CPUs share, in [`Level::ALL`]'s order.
pub type ByLevel = [u64; Level::ALL.len()];

/// What happened how often.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Wake-ups that made a task runnable.
    pub wakeups: u64,
    /// Wake-ups that found the task still queued (it had not slept yet, or was delayed).
    pub wakeups_still_queued: u64,
    /// Wake-ups of tasks bound to one CPU: nothing is chosen.
    pub wakeups_pinned: u64,
    /// Placements by the rule that decided.
    pub by_rule: BTreeMap<Rule, u64>,
    /// Placements where waker and wakee were both so busy with others that affinity was not asked.
    pub wide: u64,
    /// Scans by how they ended.
    pub scans: BTreeMap<ScanEnd, u64>,
    /// CPUs looked at by scans.
    pub cpus_scanned: u64,
    /// Wake-ups that kept the wakee on its CPU.
    pub kept_prev: u64,
    /// Wake-ups that pulled it to the waker's.
    pub pulled_this: u64,
    /// Wake-ups onto a CPU that had something to run.
    pub stacked: u64,
    /// Wake-ups by the distance from the waker's CPU to the chosen one.
    pub wake_distance: ByLevel,
    /// Migrations by distance.
    pub migrations: ByLevel,
    /// Migrations by waking up elsewhere.
    pub migrations_wake: u64,
    /// By starting elsewhere (fork) or exec.
    pub migrations_fork: u64,
    /// By a CPU that was about to go idle.
    pub migrations_newidle: u64,
    /// By the periodic pass of a CPU.
    pub migrations_periodic: u64,
    /// By a pass on behalf of an idle CPU.
    pub migrations_nohz: u64,
    /// Of running tasks, by the stopper.
    pub migrations_active: u64,
    /// By affinity or group changes.
    pub migrations_forced: u64,
    /// Activations through a wake list.
    pub wake_list: u64,
    /// Waits for a task that was still switching out.
    pub on_cpu_spins: u64,
    /// Interrupts sent from CPU to CPU.
    pub ipis: u64,
    /// Idle CPUs woken by their reschedule flag alone.
    pub polled_wakes: u64,
    /// Exits from idle by state.
    pub idle_exits: Vec<u64>,
    /// Wake-ups that asked for preemption of the running task.
    pub preempt_wake: u64,
    /// Ticks that did.
    pub preempt_tick: u64,
    /// Switches because the task slept.
    pub switches_voluntary: u64,
    /// Switches of a task that could have gone on.
    pub switches_involuntary: u64,
    /// Calls of `sched_yield()`.
    pub yields: u64,
    /// Ticks taken.
    pub ticks: u64,
    /// Device interrupts taken.
    pub interrupts: u64,
    /// Balancing passes.
    pub balance_passes: u64,
    /// Newidle passes that were tried.
    pub newidle_passes: u64,
    /// Waits for run-queue locks, ns.
    pub rq_lock_wait_ns: u64,
    /// Waits for wait-queue locks, ns.
    pub wait_queue_lock_wait_ns: u64,
    /// How often a wait-queue lock was found held.
    pub wait_queue_lock_waits: u64,
    /// Time that wakers spent in wake-ups, lock waits included, ns.
    pub waker_ns: u64,
    /// Time that tasks refilled caches, ns of full speed.
    pub refill_ns: u64,
    /// Busy time of all CPUs, ns.
    pub busy_ns: u64,
    /// Time of all CPUs in idle states, and on the way out of them, ns. With the busy time it is the run's, CPU by CPU.
    pub idle_ns: u64,
    /// Busy time in interrupts, ns.
    pub irq_ns: u64,
    /// Time from each task's switching in until it blocks or gives way, ns; the interrupts that it met are in it.
    pub task_ns: u64,
    /// Samples that meters took and did not keep: beyond [`crate::SAMPLES_MAX`] a meter keeps as many, each with the same chance.
    pub samples_dropped: u64,
    /// Length of the chosen queue when a task was enqueued.
    pub queue_length: Histogram,
    /// From wake-up to running, of all tasks, ns.
    pub wake_latency_ns: Histogram,
    /// By task name.
    pub tasks: BTreeMap<String, TaskCounters>,
}

impl Counters {
    /// All switches.
    #[must_use]
    pub const fn switches(&self) -> u64 {
        self.switches_voluntary + self.switches_involuntary
    }

    /// All migrations.
    #[must_use]
    pub fn migrations(&self) -> u64 {
        self.migrations.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    #[test]
    fn buckets_hold_their_values() {
        for value in [0, 1, 31, 32, 33, 63, 64, 1000, 123_456_789, u64::MAX] {
            let bucket = Histogram::bucket(value);
            let least = Histogram::least(bucket);
            assert!(least <= value && value - least <= value / 32, "{value} {least}");
            assert_eq!(Histogram::bucket(least), bucket);
        }
    }

    #[test]
    fn quantiles_and_sums() {
        let mut h = Histogram::default();
        (1..=1000).for_each(|value| h.add(value));
        assert_eq!((h.samples(), h.sum(), h.max(), h.mean()), (1000, 500_500, 1000, Some(500)));
        assert_eq!((h.quantile(500), h.quantile(1000), h.quantile(0)), (Some(496), Some(992), Some(1)));
        assert_eq!(Histogram::default().quantile(500), None);
    }
}
