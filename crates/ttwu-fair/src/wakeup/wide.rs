//! Flips: does a waker wake many different tasks, so that pulling them to itself is pointless?

use crate::mutation::{Mutation, broken};

/// A task's history of waking others.
///
/// Models: wakee_flips, last_wakee, wakee_flip_decay_ts of struct task_struct, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flips {
    /// How often it woke another task than the time before, halved once a second at most.
    pub flips: u32,
    /// Whom it woke last.
    pub last_wakee: Option<u64>,
    /// When the count was last halved, jiffies.
    pub decayed_at: u64,
}

impl Flips {
    /// The task wakes `wakee` at `jiffies`.
    ///
    /// However long it was silent, the count is halved once.
    ///
    /// Models: record_wakee(), v5.5–v7.2.
    pub fn record(&mut self, wakee: u64, jiffies: u64, hz: u64) {
        // time_after(): jiffies wrap, so the comparison is signed.
        if (jiffies.wrapping_sub(self.decayed_at.wrapping_add(hz))).cast_signed() > 0 {
            self.flips >>= 1;
            self.decayed_at = jiffies;
        }
        if self.last_wakee != Some(wakee) || broken(Mutation::FlipsCountAll) {
            self.last_wakee = Some(wakee);
            self.flips += 1;
        }
    }
}

/// Are both sides so busy with others that affinity does not pay? `llc_size` is that of the waker's CPU.
///
/// Models: wake_wide(), v5.5–v7.2.
pub(super) fn wake_wide(waker: u32, wakee: u32, llc_size: u32) -> bool {
    let (master, slave) = (waker.max(wakee), waker.min(wakee));
    let factor = if broken(Mutation::WideWithoutFactor) { 1 } else { u64::from(llc_size) };
    slave >= llc_size && u64::from(master) >= u64::from(slave) * factor
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    pub(in crate::wakeup) fn wide_by_llc_and_flips() {
        for (llc, a, b, wide) in [
            (24, 24, 576, true),
            (24, 24, 575, false),
            (24, 23, 10000, false),
            (8, 8, 64, true),
            (1, 1, 1, true),
            (1, 0, 5, false),
        ] {
            assert_eq!(wake_wide(a, b, llc), wide, "llc {llc}: {a} {b}");
            assert_eq!(wake_wide(b, a, llc), wide, "llc {llc}: {b} {a}");
        }
    }

    #[test]
    pub(in crate::wakeup) fn flips_count_changes_and_halve_once() {
        let mut flips = Flips::default();
        for wakee in [1, 2, 2, 1] {
            flips.record(wakee, 100, 250);
        }
        assert_eq!(flips.flips, 3);
        flips.record(1, 350, 250);
        assert_eq!(
            flips.flips,
            3 >> 1,
            "100 jiffies after boot the stamp is still 0, so this is the first decay"
        );
        flips.record(1, 100_000, 250);
        assert_eq!(flips.flips, 0);
    }
}
