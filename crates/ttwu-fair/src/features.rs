//! Scheduler features (`/sys/kernel/debug/sched/features`), one row each, with what they do and where they exist.

use crate::Kernel;
use std::fmt;

/// A switch with the kernel's own name, or of a proposal in one of the mailing-list threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each row of FEATURES documents its feature")]
#[repr(u8)]
pub enum Feature {
    GentleFairSleepers,
    StartDebit,
    NextBuddy,
    LastBuddy,
    PickBuddy,
    CacheHotBuddy,
    WakeupPreemption,
    AltPeriod,
    BaseSlice,
    PlaceLag,
    PlaceFudge,
    PlaceBonus,
    PlaceDeadlineInitial,
    PlaceRelDeadline,
    RunToParity,
    GentleEevdf,
    PreemptShort,
    DelayDequeue,
    DelayZero,
    TtwuQueue,
    SisProp,
    SisAvgCpu,
    SisUtil,
    WaIdle,
    WaWeight,
    WaBias,
    UtilEst,
    UtilEstFastup,
    NiRandom,
    NiRate,
    AttachAgeLoad,
    NontaskCapacity,
    Hrtick,
    LbMin,
    TickMinGranularity,
    WakeAffinePrev,
}

/// One feature.
#[derive(Clone, Copy, Debug)]
pub struct FeatureRow {
    /// Which.
    pub feature: Feature,
    /// The kernel's name.
    pub name: &'static str,
    /// First and last generation that has it (`None`: still there).
    pub exists: (Kernel, Option<Kernel>),
    /// Generations (of those) in which it is on by default, as a closed range; `None`: never.
    pub on: Option<(Kernel, Kernel)>,
    /// What it does.
    pub doc: &'static str,
    /// Why changing it is refused; `None`: it is modelled.
    pub refused: Option<&'static str>,
}

const fn row(
    feature: Feature,
    name: &'static str,
    exists: (Kernel, Option<Kernel>),
    on: Option<(Kernel, Kernel)>,
    doc: &'static str,
) -> FeatureRow {
    FeatureRow { feature, name, exists, on, doc, refused: None }
}

const fn refused(
    feature: Feature,
    name: &'static str,
    exists: (Kernel, Option<Kernel>),
    on: Option<(Kernel, Kernel)>,
    doc: &'static str,
    why: &'static str,
) -> FeatureRow {
    FeatureRow { feature, name, exists, on, doc, refused: Some(why) }
}

use Feature as F;
use Kernel as K;

const CFS: (Kernel, Option<Kernel>) = (K::V5_5, Some(K::V6_1));
const CFS_ON: Option<(Kernel, Kernel)> = Some((K::V5_5, K::V6_1));
const EEVDF: (Kernel, Option<Kernel>) = (K::Eevdf202304, None);
const ALWAYS: (Kernel, Option<Kernel>) = (K::V5_5, None);
const ALWAYS_ON: Option<(Kernel, Kernel)> = Some((K::V5_5, K::V7_2));
const SINCE_6_12: (Kernel, Option<Kernel>) = (K::V6_12, None);
const SINCE_6_12_ON: Option<(Kernel, Kernel)> = Some((K::V6_12, K::V7_2));

/// All features, in the order in which a policy prints them.
pub const FEATURES: &[FeatureRow] = &[
    row(
        F::GentleFairSleepers,
        "GENTLE_FAIR_SLEEPERS",
        CFS,
        CFS_ON,
        "a sleeper is credited half the latency target instead of all of it",
    ),
    row(F::StartDebit, "START_DEBIT", CFS, CFS_ON, "a new task starts one slice behind"),
    row(
        F::NextBuddy,
        "NEXT_BUDDY",
        ALWAYS,
        None,
        "a wake-up that preempts marks the wakee to be picked next",
    ),
    row(F::LastBuddy, "LAST_BUDDY", CFS, CFS_ON, "a preempted task is preferred at the next pick"),
    row(F::PickBuddy, "PICK_BUDDY", SINCE_6_12, SINCE_6_12_ON, "the pick honours the next buddy"),
    row(F::CacheHotBuddy, "CACHE_HOT_BUDDY", ALWAYS, ALWAYS_ON, "balancing leaves buddies where they are"),
    row(
        F::WakeupPreemption,
        "WAKEUP_PREEMPTION",
        ALWAYS,
        ALWAYS_ON,
        "a woken task may preempt the running one",
    ),
    row(
        F::AltPeriod,
        "ALT_PERIOD",
        (K::V5_15, Some(K::V6_1)),
        Some((K::V5_15, K::V6_1)),
        "the period counts all fair tasks of the CPU, not those of one group",
    ),
    row(
        F::BaseSlice,
        "BASE_SLICE",
        (K::V5_15, Some(K::V6_1)),
        Some((K::V5_15, K::V6_1)),
        "a slice is at least min_granularity",
    ),
    row(F::PlaceLag, "PLACE_LAG", EEVDF, Some((K::Eevdf202304, K::V7_2)), "a task keeps its lag over sleep"),
    row(
        F::PlaceFudge,
        "PLACE_FUDGE",
        (K::Eevdf202304, Some(K::Eevdf202304)),
        Some((K::Eevdf202304, K::Eevdf202304)),
        "limits the lag of a placed task against the queue's mean slice",
    ),
    row(
        F::PlaceBonus,
        "PLACE_BONUS",
        (K::Eevdf202304, Some(K::Eevdf202304)),
        None,
        "gives a woken task half a slice of credit",
    ),
    row(
        F::PlaceDeadlineInitial,
        "PLACE_DEADLINE_INITIAL",
        EEVDF,
        Some((K::Eevdf202304, K::V7_2)),
        "a new task starts with half a slice",
    ),
    row(
        F::PlaceRelDeadline,
        "PLACE_REL_DEADLINE",
        SINCE_6_12,
        SINCE_6_12_ON,
        "a migrated task keeps its relative deadline",
    ),
    row(
        F::RunToParity,
        "RUN_TO_PARITY",
        (K::V6_6, None),
        Some((K::V6_6, K::V7_2)),
        "the running task keeps the CPU to the end of its slice (7.2: of a window) while eligible",
    ),
    row(
        F::GentleEevdf,
        "GENTLE_EEVDF",
        EEVDF,
        None,
        "proposal of 2023-04: the running task keeps the CPU while eligible",
    ),
    row(
        F::PreemptShort,
        "PREEMPT_SHORT",
        SINCE_6_12,
        SINCE_6_12_ON,
        "a wakee with a shorter slice may break the running task's protection",
    ),
    row(
        F::DelayDequeue,
        "DELAY_DEQUEUE",
        SINCE_6_12,
        SINCE_6_12_ON,
        "a task that blocks with negative lag stays queued until it is eligible",
    ),
    row(
        F::DelayZero,
        "DELAY_ZERO",
        SINCE_6_12,
        SINCE_6_12_ON,
        "positive lag at the end of a delayed dequeue is cut to 0",
    ),
    row(
        F::TtwuQueue,
        "TTWU_QUEUE",
        ALWAYS,
        ALWAYS_ON,
        "remote wake-ups may be queued on the target's wake list",
    ),
    row(
        F::SisProp,
        "SIS_PROP",
        (K::V5_5, Some(K::V6_6)),
        Some((K::V5_5, K::V5_19)),
        "idle search limited by mean idle time against mean scan cost",
    ),
    row(
        F::SisAvgCpu,
        "SIS_AVG_CPU",
        (K::V5_5, Some(K::V5_9)),
        None,
        "no idle search when the mean idle time is below the mean scan cost",
    ),
    row(
        F::SisUtil,
        "SIS_UTIL",
        (K::V6_1, None),
        Some((K::V6_1, K::V7_2)),
        "idle search limited by the LLC's utilisation",
    ),
    row(F::WaIdle, "WA_IDLE", ALWAYS, ALWAYS_ON, "wake_affine looks at idle CPUs first"),
    row(F::WaWeight, "WA_WEIGHT", ALWAYS, ALWAYS_ON, "wake_affine compares loads"),
    row(
        F::WaBias,
        "WA_BIAS",
        ALWAYS,
        ALWAYS_ON,
        "wake_affine's load comparison favours the waker's CPU by half the imbalance percentage",
    ),
    row(F::UtilEst, "UTIL_EST", ALWAYS, ALWAYS_ON, "CPU utilisation includes the estimate of queued tasks"),
    row(
        F::UtilEstFastup,
        "UTIL_EST_FASTUP",
        (K::V5_9, Some(K::V6_6)),
        Some((K::V5_9, K::V6_6)),
        "the estimate follows a rise at once",
    ),
    row(
        F::NiRandom,
        "NI_RANDOM",
        (K::V6_1, None),
        Some((K::V6_1, K::V7_2)),
        "newidle balancing is skipped at random where it rarely succeeds",
    ),
    row(F::NiRate, "NI_RATE", (K::V7_2, None), SINCE_7_2_ON, "newidle success ratio ages with time"),
    refused(
        F::AttachAgeLoad,
        "ATTACH_AGE_LOAD",
        ALWAYS,
        ALWAYS_ON,
        "blocked load decays before a task attaches",
        "only the default is modelled",
    ),
    refused(
        F::NontaskCapacity,
        "NONTASK_CAPACITY",
        ALWAYS,
        ALWAYS_ON,
        "capacity excludes interrupt and real-time pressure",
        "pressure by other classes is not modelled",
    ),
    row(F::Hrtick, "HRTICK", ALWAYS, SINCE_7_2_ON, "a high-resolution timer ends slices"),
    refused(
        F::LbMin,
        "LB_MIN",
        ALWAYS,
        None,
        "balancing leaves tasks of minimal load alone",
        "only the default is modelled",
    ),
    row(
        F::TickMinGranularity,
        "TICK_MIN_GRANULARITY",
        EEVDF,
        None,
        "proposal of 2023-04: no tick preemption before min_granularity",
    ),
    row(
        F::WakeAffinePrev,
        "WAKE_AFFINE_PREV",
        ALWAYS,
        Some((K::V5_15, K::V7_2)),
        "rule 3 of wake_affine_idle: an idle previous CPU is taken",
    ),
];

const SINCE_7_2_ON: Option<(Kernel, Kernel)> = Some((K::V7_2, K::V7_2));

impl FeatureRow {
    /// The row of `feature`.
    #[must_use]
    pub fn of(feature: Feature) -> &'static Self {
        FEATURES.iter().find(|row| row.feature == feature).expect("every feature has a row; a test holds it")
    }

    /// Does `kernel` have it?
    #[must_use]
    pub fn exists_in(&self, kernel: Kernel) -> bool {
        self.exists.0 <= kernel && self.exists.1.is_none_or(|last| kernel <= last)
    }

    /// Is it on by default in `kernel`?
    #[must_use]
    pub fn on_in(&self, kernel: Kernel) -> bool {
        self.exists_in(kernel) && self.on.is_some_and(|(first, last)| (first..=last).contains(&kernel))
    }
}

/// Which features are on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// The defaults of `kernel`.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        let mut set = Self(0);
        for row in FEATURES.iter().filter(|row| row.on_in(kernel)) {
            set.set(row.feature, Switch::On);
        }
        set
    }

    /// Is `feature` on?
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u8) != 0
    }

    pub(crate) const fn set(&mut self, feature: Feature, switch: Switch) {
        match switch {
            Switch::On => self.0 |= 1 << feature as u8,
            Switch::Off => self.0 &= !(1 << feature as u8),
        }
    }
}

/// On or off, where a bare `bool` would not say which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

impl fmt::Debug for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(FEATURES.iter().filter(|row| self.has(row.feature)).map(|row| row.name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_complete_and_distinct() {
        for (index, row) in FEATURES.iter().enumerate() {
            assert!(
                FEATURES[..index].iter().all(|other| other.feature != row.feature && other.name != row.name)
            );
            assert_eq!(FeatureRow::of(row.feature).name, row.name);
            assert!(!row.doc.is_empty());
        }
        assert_eq!(FEATURES.len(), Feature::WakeAffinePrev as usize + 1, "a feature without a row");
    }

    /// The modelled features' defaults as the recorded kernels print them in `debug/sched/features`.
    #[test]
    fn defaults_are_those_of_the_recorded_kernels() {
        let recorded = [
            (
                K::V6_1,
                "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK NONTASK_CAPACITY TTWU_QUEUE NO_SIS_PROP SIS_UTIL NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP NI_RANDOM ALT_PERIOD BASE_SLICE",
            ),
            (
                K::V6_12,
                "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION NO_HRTICK NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST NI_RANDOM",
            ),
            (
                K::V7_2,
                "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION HRTICK NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST NI_RANDOM NI_RATE",
            ),
        ];
        for (kernel, text) in recorded {
            let listed: Vec<&str> = text.split(' ').map(|name| name.trim_start_matches("NO_")).collect();
            for name in text.split(' ') {
                let (bare, on) = name.strip_prefix("NO_").map_or((name, true), |bare| (bare, false));
                // `NONTASK_CAPACITY` begins with NO without being a negation.
                let row =
                    FEATURES.iter().find(|row| row.name == bare).unwrap_or_else(|| panic!("{kernel} {name}"));
                assert_eq!(row.on_in(kernel), on, "{kernel} {name}");
            }
            let ours = ["GENTLE_EEVDF", "TICK_MIN_GRANULARITY", "WAKE_AFFINE_PREV"];
            for row in FEATURES.iter().filter(|row| row.exists_in(kernel) && !ours.contains(&row.name)) {
                assert!(listed.contains(&row.name), "{kernel} does not list {}", row.name);
            }
        }
    }
}
