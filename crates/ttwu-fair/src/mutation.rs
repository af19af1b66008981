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
    pub(crate) const ALL: [Self; 13] = [
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

    /// Does one of `checks` fail with the rule broken?
    pub(crate) fn is_caught(self, checks: &[fn()]) -> bool {
        ACTIVE.set(Some(self));
        let caught = checks.iter().any(|check| std::panic::catch_unwind(check).is_err());
        ACTIVE.set(None);
        caught
    }
}
