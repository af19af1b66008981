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

    /// Does one of `checks` fail with the rule broken?
    pub(crate) fn is_caught(self, checks: &[fn()]) -> bool {
        ACTIVE.set(Some(self));
        let caught = checks.iter().any(|check| std::panic::catch_unwind(check).is_err());
        ACTIVE.set(None);
        caught
    }
}
