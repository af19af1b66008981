//! Rules broken on purpose, for the test that shows that the tests would notice.
//!
//! Outside of tests [`broken`] is constantly false and leaves no trace in the code. A table of mutations in the source, rather
//! than a tool that edits it, keeps each one where its rule is, compiled and reviewed with it.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// An equal key goes before those present.
    TieGoesFirst,
    /// A virtual time at the average is not eligible.
    StrictEligibility,
    /// Lag is stored without limit.
    UnclampedLag,
    /// Lag is not widened for the weight that joins.
    LagNotWidened,
    /// The average truncates where it should be a floor.
    TruncatedAverage,
    /// A request ends only past its deadline.
    LateRenewal,
    /// The running entity wins a tie of deadlines.
    RunningWinsTie,
    /// Every blocking task stays queued, eligible or not.
    DelayAlways,
    /// Requests of shorter slices do not shorten the protected window.
    WideWindow,
    /// CFS: a lead of just the granularity preempts.
    LeadInclusive,
    /// CFS: a woken task loses what it had been ahead.
    PlacementResets,
    /// CFS: least virtual time may go back.
    MinimumGoesBack,
    /// Removal does not recompute what nodes know of their subtrees.
    StaleSubtree,
    /// The scan begins at the target, not after it.
    ScanFromTarget,
    /// A scan looks at one CPU more than its budget.
    BudgetInclusive,
    /// SIS_UTIL looks at one CPU less.
    SisUtilOffByOne,
    /// SIS_PROP's budget has no floor.
    PropFloorMissing,
    /// SIS_PROP's allowance does not age.
    PropNotAged,
    /// The scan does not ask where the task may run.
    ScanIgnoresAffinity,
    /// Whole cores are not preferred.
    CoreScanSkipped,
    /// A core scan in vain leaves the flag.
    IdleCoresFlagKept,
    /// The scan of the LLC meets the target's cluster again.
    ClusterScannedTwice,
    /// An idle previous CPU is taken whatever its cluster.
    PrevOfOtherClusterTaken,
    /// A bound kthread's wakee need not have run here.
    KthreadStacksAnywhere,
    /// A bound kthread's wakee stacks behind others.
    KthreadStacksBusy,
    /// An interrupt on a bound kthread counts as its own wake-up.
    KthreadStacksInInterrupt,
    /// The recently used CPU is never replaced.
    RecentNotUpdated,
    /// The recently used CPU is taken though the task may no longer run there.
    RecentIgnoresAffinity,
    /// A sibling thread is taken though the task may not run there.
    SmtIgnoresAffinity,
    /// The waker's idle CPU wins over an idle previous one.
    AffineThisFirst,
    /// The waker's idle CPU wins across caches.
    AffineAcrossLlcs,
    /// A sync waker is alone with another.
    SyncAloneAtTwo,
    /// Equal loads pull.
    WeightInclusive,
    /// A sync waker does not win a tie of loads.
    SyncTieLost,
    /// Every wake-up is a flip.
    FlipsCountAll,
    /// A wide waker needs no lead.
    WideWithoutFactor,
    /// A CPU with one task gets wake-ups on its list.
    WakeListForOne,
    /// Other caches get no wake-ups on their list.
    WakeListWithinLlcOnly,
    /// The wakee need not be switching out.
    WakeListAlways,
    /// An equally idle group gets the child.
    ForkOnTie,
    /// Any lead of load sends the child away.
    ForkOnSmallLead,
    /// Equally idle groups are not told apart by utilisation.
    UtilTieIgnored,
    /// Of CPUs that went idle at once the last is taken.
    LastOfEquallyIdle,
    /// A deep idle state does not count.
    IdleStateIgnored,
    /// The slow path does not take a CPU with SCHED_IDLE tasks at once.
    SchedIdleNotTaken,
    /// The busiest group is the one with most tasks, however many of its CPUs are idle.
    BusiestIgnoresIdle,
    /// A lead of one idle CPU is enough to pull.
    IdleCpusInclusive,
    /// The whole lead moves, not half of it.
    WholeImbalance,
    /// Nodes may not differ at all.
    NumaAllowanceMissing,
    /// Of equally busy queues the last is taken.
    LastOfEquallyBusy,
    /// An idle CPU takes the only task of another.
    LastTaskPulled,
    /// A newidle pass of a preemptible kernel goes on after one task.
    NewidleTakesMany,
    /// Tasks attach in the order in which they were detached.
    FirstDetachedFirst,
    /// Balancing moves tasks wherever it likes.
    AffinityIgnored,
    /// Balancing takes the running task.
    RunningTaskPulled,
    /// A task is hot at just the migration cost.
    HotInclusive,
    /// Every idle CPU balances for its group.
    EveryIdleBalances,
    /// A CPU looks for work though nobody has two tasks.
    OverloadIgnored,
    /// A mean idle time of just the migration cost is too short.
    AvgIdleInclusive,
    /// A busy CPU balances as often as an idle one.
    BusyFactorMissing,
    /// Two tasks are no reason to wake an idle CPU.
    KickAtThree,
    /// Groups: an entity does not learn how many tasks below want to run.
    GroupRunnableKept,
    /// Groups: a task that sleeps does not leave its group preferred.
    GroupNotPreferred,
    /// Groups: load attached or detached below is not handed up.
    LoadNotPropagated,
    /// The load of a task that was moved in its sleep stays.
    RemovedLoadKept,
    /// Groups: every CPU gets all shares.
    SharesOnEveryCpu,
    /// Groups: buddies are marked on the lowest level only.
    BuddyOnOneLevel,
}

#[cfg(test)]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Is this rule broken now?
#[cfg(test)]
pub(crate) fn broken(mutation: Mutation) -> bool {
    ACTIVE.get() == Some(mutation)
}

/// Is this rule broken now? Never, outside of tests.
#[cfg(not(test))]
#[inline]
pub(crate) const fn broken(_: Mutation) -> bool {
    false
}

#[cfg(test)]
impl Mutation {
    /// Rules of queues.
    pub(crate) const QUEUE: [Self; 13] = [
        Self::TieGoesFirst,
        Self::StrictEligibility,
        Self::UnclampedLag,
        Self::LagNotWidened,
        Self::TruncatedAverage,
        Self::LateRenewal,
        Self::RunningWinsTie,
        Self::DelayAlways,
        Self::WideWindow,
        Self::LeadInclusive,
        Self::PlacementResets,
        Self::MinimumGoesBack,
        Self::StaleSubtree,
    ];

    /// Rules of placement.
    pub(crate) const PLACEMENT: [Self; 32] = [
        Self::ScanFromTarget,
        Self::BudgetInclusive,
        Self::SisUtilOffByOne,
        Self::PropFloorMissing,
        Self::PropNotAged,
        Self::ScanIgnoresAffinity,
        Self::CoreScanSkipped,
        Self::IdleCoresFlagKept,
        Self::ClusterScannedTwice,
        Self::PrevOfOtherClusterTaken,
        Self::KthreadStacksAnywhere,
        Self::KthreadStacksBusy,
        Self::KthreadStacksInInterrupt,
        Self::RecentNotUpdated,
        Self::RecentIgnoresAffinity,
        Self::SmtIgnoresAffinity,
        Self::AffineThisFirst,
        Self::AffineAcrossLlcs,
        Self::SyncAloneAtTwo,
        Self::WeightInclusive,
        Self::SyncTieLost,
        Self::FlipsCountAll,
        Self::WideWithoutFactor,
        Self::WakeListForOne,
        Self::WakeListWithinLlcOnly,
        Self::WakeListAlways,
        Self::ForkOnTie,
        Self::ForkOnSmallLead,
        Self::UtilTieIgnored,
        Self::LastOfEquallyIdle,
        Self::IdleStateIgnored,
        Self::SchedIdleNotTaken,
    ];

    /// Rules of balancing.
    pub(crate) const BALANCE: [Self; 16] = [
        Self::BusiestIgnoresIdle,
        Self::IdleCpusInclusive,
        Self::WholeImbalance,
        Self::NumaAllowanceMissing,
        Self::LastOfEquallyBusy,
        Self::LastTaskPulled,
        Self::NewidleTakesMany,
        Self::FirstDetachedFirst,
        Self::AffinityIgnored,
        Self::RunningTaskPulled,
        Self::HotInclusive,
        Self::EveryIdleBalances,
        Self::OverloadIgnored,
        Self::AvgIdleInclusive,
        Self::BusyFactorMissing,
        Self::KickAtThree,
    ];

    /// What concerns hierarchies and loads, not single queues.
    pub(crate) const GROUPS: [Self; 6] = [
        Self::GroupRunnableKept,
        Self::GroupNotPreferred,
        Self::LoadNotPropagated,
        Self::RemovedLoadKept,
        Self::SharesOnEveryCpu,
        Self::BuddyOnOneLevel,
    ];

    /// Does one of `checks` fail with the rule broken?
    pub(crate) fn is_caught(self, checks: &[fn()]) -> bool {
        ACTIVE.set(Some(self));
        let caught = checks.iter().any(|check| std::panic::catch_unwind(check).is_err());
        ACTIVE.set(None);
        caught
    }
}
