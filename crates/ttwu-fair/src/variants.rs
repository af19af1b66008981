//! Choices among several forms of one rule: those of successive kernels, and those proposed in the threads.

use crate::Kernel;

/// Rule 1 of `wake_affine_idle()`: when does an idle waker's CPU win?
///
/// Models: wake_affine_idle(), v4.14–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeAffineIdle {
    /// v4.14, and the "dirty" patch of the DMA-engine thread: an idle `this` wins, wherever `prev` is.
    AnyIdle,
    /// After 7332dec055f2 (v4.16-rc), and Hillf Danton's second proposal: only if `prev` shares the cache.
    SharedCache,
    /// After 806486c377e3 (v4.16) until today: if `prev` shares the cache, and `prev` wins when idle itself.
    SharedCachePrevFirst,
    /// Hillf Danton's first proposal: sharing the cache, an idle `this` wins; else an idle `prev`.
    SharedCacheElsePrev,
}

/// When is a remote wake-up put on the target's wake list?
///
/// Models: ttwu_queue_cond(), v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeList {
    /// v5.5: only across LLCs.
    OtherLlc,
    /// v5.9: or if the wakee is still switching out and at most one task is queued.
    OnCpu,
    /// v5.15–v5.19: the same, target must be active.
    OnCpuActive,
    /// The RFC of May 2022: or if the target is idle.
    Rfc,
    /// v6.0–v6.6: or if nothing is queued on the target.
    NothingQueued,
    /// v6.12–v7.2: the same, but never for stopper and sched_ext tasks.
    NothingQueuedFairOnly,
    /// Experiment: any remote wake-up.
    Always,
    /// Experiment: none.
    Never,
}

/// May a per-CPU kernel thread stack its wakee on its own CPU?
///
/// Models: select_idle_sibling(), is_per_cpu_kthread(), v5.6–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KthreadStacking {
    /// Before v5.6.
    Off,
    /// v5.6–v5.16: also when an interrupt hits it (from v5.14 the idle task passes as per-CPU kthread).
    AnyContext,
    /// v5.17 on: in task context only.
    InTask,
}

/// What the scheduler knows of clusters (CPUs sharing an L2 or an L3 tag below the LLC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cluster {
    /// Nothing.
    Off,
    /// RFC v2's domain level "CL" alone.
    RfcDomain,
    /// RFC v2: domain level and `select_idle_cluster()`.
    RfcV2,
    /// RFC v3: the idle scan walks from the cluster to the LLC with one budget.
    RfcV3,
    /// v5.16: domain level only.
    Domain,
    /// v6.7: domain level, cluster stage of the idle scan, cluster-aware candidates.
    Wakeup,
}

impl WakeAffineIdle {
    /// `kernel`'s form.
    #[must_use]
    pub const fn of(_kernel: Kernel) -> Self {
        Self::SharedCachePrevFirst
    }
}

impl WakeList {
    /// `kernel`'s form.
    #[must_use]
    pub const fn of(kernel: Kernel) -> Self {
        match kernel {
            Kernel::V5_5 => Self::OtherLlc,
            Kernel::V5_9 => Self::OnCpu,
            Kernel::V5_15 | Kernel::V5_19 => Self::OnCpuActive,
            Kernel::V6_1 | Kernel::Eevdf202304 | Kernel::V6_6 => Self::NothingQueued,
            Kernel::V6_12 | Kernel::V7_2 => Self::NothingQueuedFairOnly,
        }
    }
}

impl KthreadStacking {
    /// `kernel`'s form.
    #[must_use]
    pub const fn of(kernel: Kernel) -> Self {
        match kernel {
            Kernel::V5_5 => Self::Off,
            Kernel::V5_9 | Kernel::V5_15 => Self::AnyContext,
            Kernel::V5_19
            | Kernel::V6_1
            | Kernel::Eevdf202304
            | Kernel::V6_6
            | Kernel::V6_12
            | Kernel::V7_2 => Self::InTask,
        }
    }
}

impl Cluster {
    /// `kernel`'s form.
    #[must_use]
    pub const fn of(kernel: Kernel) -> Self {
        match kernel {
            Kernel::V5_5 | Kernel::V5_9 | Kernel::V5_15 => Self::Off,
            Kernel::V5_19 | Kernel::V6_1 | Kernel::Eevdf202304 | Kernel::V6_6 => Self::Domain,
            Kernel::V6_12 | Kernel::V7_2 => Self::Wakeup,
        }
    }
}

/// One variant: a setting `name=value` with the values it takes.
#[derive(Clone, Copy, Debug)]
pub struct VariantRow {
    /// The setting's name.
    pub name: &'static str,
    /// Values, each with its meaning.
    pub values: &'static [(&'static str, &'static str)],
    /// What is chosen.
    pub doc: &'static str,
}

/// All variants, in the order in which a policy prints them. Values stand in the order of the enum's variants.
pub const VARIANTS: &[VariantRow] = &[
    VariantRow {
        name: "wake_affine_idle",
        values: &[
            ("dirty", "an idle waker's CPU wins wherever prev is (v4.14; the thread's dirty patch)"),
            ("hillf2", "it wins if prev shares the cache (7332dec055f2; Danton's second proposal)"),
            ("vanilla", "if prev shares the cache; an idle prev wins over it (806486c377e3, v4.16 on)"),
            ("hillf1", "if prev shares the cache, else an idle prev wins (Danton's first proposal)"),
        ],
        doc: "rule 1 of wake_affine_idle()",
    },
    VariantRow {
        name: "wake_list",
        values: &[
            ("5.5", "other LLC only"),
            ("5.9", "or wakee still on its CPU and nr_running <= 1"),
            ("5.19", "the same, target active"),
            ("rfc", "or target idle (May 2022)"),
            ("6.0", "or nothing queued on the target"),
            ("6.12", "the same, not for stopper tasks"),
            ("always", "any remote wake-up"),
            ("never", "none"),
        ],
        doc: "when a wake-up is put on the target's wake list",
    },
    VariantRow {
        name: "kthread_stacking",
        values: &[
            ("off", "never"),
            ("any_context", "a per-CPU kthread, also under an interrupt (v5.6)"),
            ("in_task", "a per-CPU kthread in task context (v5.17)"),
        ],
        doc: "wakee stays on the CPU of the per-CPU kthread that wakes it",
    },
    VariantRow {
        name: "cluster",
        values: &[
            ("off", "no cluster level"),
            ("rfc_domain", "RFC v2's domain level without select_idle_cluster"),
            ("rfc_v2", "RFC v2 with select_idle_cluster"),
            ("rfc_v3", "RFC v3: one budget from the cluster to the LLC"),
            ("domain", "the v5.16 domain level"),
            ("wakeup", "v6.7: domain level and cluster-aware wake-up"),
        ],
        doc: "what the scheduler knows of clusters",
    },
];
