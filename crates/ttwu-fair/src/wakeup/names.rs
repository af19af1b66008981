//! Names and meanings of what a placement is made of: for tables, files and explanations.

use super::{Affine, Rule, ScanEnd, Site};
use crate::PreemptReason;

/// An enum's names, one a line: `ALL`, `name` and what it means.
macro_rules! named {
    ($type:ident: $($variant:ident $name:literal $meaning:literal)*) => {
        impl $type {
            /// All, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in tables and files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What it means, as part of a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)*
                }
            }
        }
    };
}

named! { Rule:
    CurrentCpu "current_cpu" "the waker asked for its own CPU"
    TargetIdle "target_idle" "the target is idle"
    PrevIdle "prev_idle" "the previous CPU is idle and shares the target's cache"
    KthreadStacking "kthread_stacking" "the waker is a per-CPU kernel thread on the previous CPU and about to sleep"
    RecentIdle "recent_idle" "the recently used CPU is idle and shares the target's cache"
    SmtIdle "smt_idle" "a sibling thread of the target or the previous CPU is idle"
    CoreIdle "core_idle" "a whole core of the LLC is idle"
    ClusterIdle "cluster_idle" "a CPU of the target's cluster is idle"
    CpuIdle "cpu_idle" "a CPU of the LLC is idle"
    CapacityIdle "capacity_idle" "an idle CPU has the capacity that the task needs"
    PrevKept "prev_kept" "the scan found nothing; the previous CPU, idle but of another cluster, was kept for that"
    RecentKept "recent_kept" "the scan found nothing; the recently used CPU, idle but of another cluster, was kept for that"
    TargetBusy "target_busy" "no idle CPU was found, so the target as it is"
    NoLlc "no_llc" "there is no LLC domain to search, so the target"
    Idlest "idlest" "the slow path's idlest group and CPU"
    NoBalanceDomain "no_balance_domain" "no domain balances here, so the previous CPU"
}

named! { Affine:
    NotTried "not_tried" "not asked: a wide waker, an affinity, or no domain with both CPUs; the previous CPU"
    SameCpu "same_cpu" "the waker's CPU is the previous one"
    ThisIdle "this_idle" "the waker's CPU counts as idle and shares the cache: it"
    BothIdle "both_idle" "both CPUs are idle: the previous one"
    SyncAlone "sync_alone" "a sync waker is alone on its CPU: that CPU"
    PrevIdle "prev_idle" "the previous CPU is idle: it"
    WeightThis "weight_this" "the waker's CPU would be less loaded: it"
    WeightPrev "weight_prev" "the waker's CPU would not be less loaded: the previous one"
    Off "off" "neither WA_IDLE nor WA_WEIGHT is on: the previous CPU"
}

named! { ScanEnd:
    None "none" "no scan was made"
    Hit "hit" "the scan found a CPU"
    Budget "budget" "the scan's budget ran out"
    Exhausted "exhausted" "the scan looked everywhere in vain"
    Forbidden "forbidden" "SIS_UTIL allowed no scan at all"
}

named! { Site:
    AffineThis "affine_this" "the waker's CPU, for wake_affine"
    AffinePrev "affine_prev" "the previous CPU, for wake_affine"
    Target "target" "the target"
    Prev "prev" "the previous CPU"
    Recent "recent" "the recently used CPU"
    Smt "smt" "sibling threads"
    Core "core" "whole cores"
    Cluster "cluster" "the target's cluster"
    Cpu "cpu" "CPUs of the LLC"
    Capacity "capacity" "CPUs by capacity"
}

named! { PreemptReason:
    Itself "itself" "the wakee is the running task"
    NeedsResched "needs_resched" "a reschedule was requested already"
    FeatureOff "feature_off" "WAKEUP_PREEMPTION is off"
    CurrIdle "curr_idle" "the running task is of the idle policy, the wakee is not"
    WakeeIdle "wakee_idle" "the wakee is of the idle policy, the running task is not"
    Batch "batch" "a batch task does not preempt"
    Lead "lead" "the wakee leads by more than its granularity"
    NoLead "no_lead" "the wakee does not lead by its granularity"
    Picked "picked" "a pick now takes the wakee"
    PickedShort "picked_short" "its shorter slice broke the running task's protection, and a pick takes it"
    Kept "kept" "a pick now keeps the running task"
    Other "other" "a pick now takes a third entity"
    Fork "fork" "a new task does not preempt"
    Delayed "delayed" "a task that was still queued does not preempt"
    SyncBuddy "sync_buddy" "the sync waker has run long enough and the wakee's deadline is earlier"
    SyncWait "sync_wait" "the sync waker may run on"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_all_are_listed() {
        fn check<T: Copy + Ord + std::fmt::Debug>(all: &[T], name: impl Fn(T) -> &'static str) {
            let names: BTreeSet<&str> = all.iter().map(|&one| name(one)).collect();
            assert_eq!(names.len(), all.len());
            assert!(all.is_sorted(), "{all:?} in the order of the enum");
        }
        check(Rule::ALL, Rule::name);
        check(Affine::ALL, Affine::name);
        check(ScanEnd::ALL, ScanEnd::name);
        check(Site::ALL, Site::name);
        check(PreemptReason::ALL, PreemptReason::name);
        // `match` in the macro fails to compile when one is missing.
    }
}
