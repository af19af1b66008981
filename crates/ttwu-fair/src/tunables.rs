//! Tunables (`/sys/kernel/debug/sched/*_ns`), with the kernel's base values and scaling by CPU count.

use crate::Kernel;

/// A number that a policy may set as `name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each row of TUNABLES documents its tunable")]
pub enum Tunable {
    LatencyNs,
    MinGranularityNs,
    WakeupGranularityNs,
    IdleMinGranularityNs,
    BaseSliceNs,
    MigrationCostNs,
    NrMigrate,
    Hz,
}

/// One tunable.
#[derive(Clone, Copy, Debug)]
pub struct TunableRow {
    /// Which.
    pub tunable: Tunable,
    /// The kernel's name, with unit.
    pub name: &'static str,
    /// First and last generation that has it.
    pub exists: (Kernel, Option<Kernel>),
    /// Does the base value grow with the number of CPUs?
    pub scaled: bool,
    /// What it does.
    pub doc: &'static str,
}

use Kernel as K;
use Tunable as T;

/// All tunables, in the order in which a policy prints them.
pub const TUNABLES: &[TunableRow] = &[
    TunableRow {
        tunable: T::LatencyNs,
        name: "latency_ns",
        exists: (K::V5_5, Some(K::V6_1)),
        scaled: true,
        doc: "period in which each of up to 8 tasks runs once",
    },
    TunableRow {
        tunable: T::MinGranularityNs,
        name: "min_granularity_ns",
        exists: (K::V5_5, Some(K::V6_1)),
        scaled: true,
        doc: "least slice",
    },
    TunableRow {
        tunable: T::WakeupGranularityNs,
        name: "wakeup_granularity_ns",
        exists: (K::V5_5, Some(K::V6_1)),
        scaled: true,
        doc: "vruntime lead that a wakee needs to preempt",
    },
    TunableRow {
        tunable: T::IdleMinGranularityNs,
        name: "idle_min_granularity_ns",
        exists: (K::V5_19, Some(K::V6_1)),
        scaled: false,
        doc: "least slice of an idle-class entity beside others",
    },
    TunableRow {
        tunable: T::BaseSliceNs,
        name: "base_slice_ns",
        exists: (K::Eevdf202304, None),
        scaled: true,
        doc: "request length of a task without a custom slice",
    },
    TunableRow {
        tunable: T::MigrationCostNs,
        name: "migration_cost_ns",
        exists: (K::V5_5, None),
        scaled: false,
        doc: "a task that ran less than this ago is cache hot",
    },
    TunableRow {
        tunable: T::NrMigrate,
        name: "nr_migrate",
        exists: (K::V5_5, None),
        scaled: false,
        doc: "most tasks looked at in one balancing pass",
    },
    TunableRow {
        tunable: T::Hz,
        name: "hz",
        exists: (K::V5_5, None),
        scaled: false,
        doc: "ticks a second (a build option, CONFIG_HZ)",
    },
];

impl TunableRow {
    /// Does `kernel` have it?
    #[must_use]
    pub fn exists_in(&self, kernel: Kernel) -> bool {
        self.exists.0 <= kernel && self.exists.1.is_none_or(|last| kernel <= last)
    }
}

/// How scaled tunables grow with the number of CPUs (`tunable_scaling`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scaling {
    /// Not at all.
    None,
    /// 1 + ⌊log2(min(CPUs, 8))⌋, the default.
    Log,
    /// min(CPUs, 8).
    Linear,
}

impl Scaling {
    /// The factor for `cpus` CPUs on line.
    ///
    /// Models: get_update_sysctl_factor(), v5.5–v7.2.
    #[must_use]
    pub fn factor(self, cpus: usize) -> u64 {
        let cpus = cpus.clamp(1, 8);
        match self {
            Self::None => 1,
            Self::Log => 1 + u64::from(cpus.ilog2()),
            Self::Linear => cpus as u64,
        }
    }
}

/// Values in force on a machine, already scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunables {
    /// CFS: scheduling period, ns.
    pub latency_ns: u64,
    /// CFS: least slice, ns.
    pub min_granularity_ns: u64,
    /// CFS: wake-up preemption granularity, ns.
    pub wakeup_granularity_ns: u64,
    /// CFS: least slice of idle-class entities, ns; not scaled.
    pub idle_min_granularity_ns: u64,
    /// EEVDF: base slice, ns.
    pub base_slice_ns: u64,
    /// EEVDF: base slice before scaling, ns (7.2's shortest protection window).
    pub base_slice_unscaled_ns: u64,
    /// Cache-hot time, ns; not scaled.
    pub migration_cost_ns: u64,
    /// Most tasks looked at in one balancing pass.
    pub nr_migrate: u64,
    /// Ticks a second.
    pub hz: u64,
}

impl Tunables {
    /// Number of runnable tasks up to which the CFS period is `latency_ns`.
    pub const NR_LATENCY: u64 = 8;

    /// `kernel`'s defaults for `cpus` CPUs on line.
    ///
    /// Models: sysctl_sched_* and update_sysctl(), v5.5–v7.2.
    #[must_use]
    pub fn of(kernel: Kernel, cpus: usize, scaling: Scaling) -> Self {
        let factor = scaling.factor(cpus);
        let base_slice_unscaled_ns = if kernel >= Kernel::V6_12 { 700_000 } else { 750_000 };
        Self {
            latency_ns: 6_000_000 * factor,
            min_granularity_ns: 750_000 * factor,
            wakeup_granularity_ns: 1_000_000 * factor,
            idle_min_granularity_ns: 750_000,
            base_slice_ns: base_slice_unscaled_ns * factor,
            base_slice_unscaled_ns,
            migration_cost_ns: 500_000,
            nr_migrate: 32,
            hz: 250,
        }
    }

    /// Length of a tick in ns, rounded as the kernel rounds it.
    #[must_use]
    pub const fn tick_ns(&self) -> u64 {
        (1_000_000_000 + self.hz / 2) / self.hz
    }

    /// The value of one.
    #[must_use]
    pub const fn get(&self, tunable: Tunable) -> u64 {
        match tunable {
            T::LatencyNs => self.latency_ns,
            T::MinGranularityNs => self.min_granularity_ns,
            T::WakeupGranularityNs => self.wakeup_granularity_ns,
            T::IdleMinGranularityNs => self.idle_min_granularity_ns,
            T::BaseSliceNs => self.base_slice_ns,
            T::MigrationCostNs => self.migration_cost_ns,
            T::NrMigrate => self.nr_migrate,
            T::Hz => self.hz,
        }
    }

    pub(crate) const fn set(&mut self, tunable: Tunable, value: u64) {
        match tunable {
            T::LatencyNs => self.latency_ns = value,
            T::MinGranularityNs => self.min_granularity_ns = value,
            T::WakeupGranularityNs => self.wakeup_granularity_ns = value,
            T::IdleMinGranularityNs => self.idle_min_granularity_ns = value,
            T::BaseSliceNs => self.base_slice_ns = value,
            T::MigrationCostNs => self.migration_cost_ns = value,
            T::NrMigrate => self.nr_migrate = value,
            T::Hz => self.hz = value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_follows_the_table_of_cpu_counts() {
        for (cpus, latency) in [(1, 6), (2, 12), (3, 12), (4, 18), (7, 18), (8, 24), (96, 24)] {
            assert_eq!(
                Tunables::of(Kernel::V6_1, cpus, Scaling::Log).latency_ns,
                latency * 1_000_000,
                "{cpus}"
            );
        }
        assert_eq!(Tunables::of(Kernel::V6_12, 8, Scaling::Log).base_slice_ns, 2_800_000);
        assert_eq!(Tunables::of(Kernel::V6_6, 8, Scaling::Log).base_slice_ns, 3_000_000);
        assert_eq!(Tunables::of(Kernel::V6_6, 4, Scaling::None).base_slice_ns, 750_000);
        assert_eq!(Tunables::of(Kernel::V6_6, 6, Scaling::Linear).base_slice_ns, 4_500_000);
    }
}
