//! The tables of `perf sched` themselves, to the digit.
//!
//! People have years of `perf sched latency` output to compare with, so ttwu can print the same table from the same file.
//! perf's figures follow from a state machine of its own, which differs between perf versions and in places contradicts
//! the events; hence folds of their own here, which repeat perf's rules and not ours. Where such a rule makes a figure
//! wrong, the comment beside it says `PERF:`, and COMPARE.md lists it.
//!
//! What this does not do: improve on perf. `latency` and `timehist` are the analyses to trust.

mod latency;
mod threads;
mod timehist;
mod timehist_summary;

pub use latency::{
    LOG_BUCKETS, LostRecords, PerfLatency, PerfLatencyOptions, PerfLatencyRow, PerfLatencyTable, PerfSortKey,
};

pub use timehist::{PerfTimehist, PerfTimehistOptions, PerfTimehistRow};
pub use timehist_summary::{PerfIdle, PerfTimehistSummary, PerfTimehistTask};

use ttwu_model::{StateLetter, TaskState};

/// Whose rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PerfVersion {
    /// perf 6.1 (and its neighbours: the rules are those of 5.11 to about 6.9).
    V6_1,
    /// perf 7.3.
    V7,
}

impl PerfVersion {
    /// The letter that perf has for the state of a task switched out.
    ///
    /// PERF: 6.1 numbers the bits of `prev_state` by the letters `RSDTtZXxKWP`, which is how kernels before 4.14 numbered
    /// them. On later kernels it prints `W` for `R+`, `K` for `I`, `Z` for `X` and `X` for `Z`; what is more, it takes a
    /// task preempted in the kernel (`R+`) for one that went to sleep. 7.3 reads the letters from the file.
    #[must_use]
    pub const fn state_letter(self, state: TaskState) -> char {
        let old = matches!(self, Self::V6_1);
        match state.letter() {
            StateLetter::Running if old && matches!(state.preempted(), Some(true)) => 'W',
            StateLetter::Running => 'R',
            StateLetter::Sleeping => 'S',
            StateLetter::DiskSleep => 'D',
            StateLetter::Stopped => 'T',
            StateLetter::Traced => 't',
            StateLetter::Dead if old => 'Z',
            StateLetter::Dead => 'X',
            StateLetter::Zombie if old => 'X',
            StateLetter::Zombie => 'Z',
            StateLetter::Parked if old => 'x',
            StateLetter::Parked => 'P',
            StateLetter::Idle if old => 'K',
            StateLetter::Idle => 'I',
            StateLetter::Other | StateLetter::Unknown => '?',
        }
    }

    /// Does perf take a task switched out in `state` for one that waits for a CPU?
    const fn waits(self, state: TaskState) -> bool {
        matches!(self.state_letter(state), 'R')
    }
}

/// Which of `sched_waking` and `sched_wakeup` begins a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WakeupChoice {
    prefers_waking: bool,
}

impl WakeupChoice {
    /// perf's choice for a recording with or without `sched_waking`; `None` where its list of events is not known: then the
    /// first `sched_waking` that is seen decides.
    const fn new(waking_recorded: Option<bool>) -> Self {
        Self { prefers_waking: matches!(waking_recorded, Some(true)) }
    }
}

#[cfg(test)]
mod tests;
