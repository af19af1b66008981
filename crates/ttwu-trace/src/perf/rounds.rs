//! Time order from perf's rounds.
//!
//! perf empties the per-CPU buffers one after the other and then writes a `FINISHED_ROUND` record. While it empties the
//! last buffer the first one fills again, so a round's events are complete only up to the newest time of the round
//! *before*: that much is sorted and handed on at each round's end, and no more than two rounds are ever held.
//!
//! ```text
//! round 1: cpu0 ──t1────t3   cpu1 ──t2──────t5  │ newest 5, nothing is safe yet
//! round 2: cpu0 ──t4────t8   cpu1 ──t6────t9    │ all up to 5 is safe: t1 t2 t3 t4 t5
//! ```
//!
//! The sort is stable, so events of equal time keep the file's order, and it makes use of the per-buffer runs that are in
//! order already. What comes later than a finished round allowed is moved up to the time already handed on, and counted.

use ttwu_model::{RawEvent, Time};

/// Something with a time.
pub(super) trait Timed {
    fn at(&self) -> Time;
    fn set_at(&mut self, at: Time);
}

impl Timed for RawEvent {
    #[inline]
    fn at(&self) -> Time {
        self.event.at
    }

    fn set_at(&mut self, at: Time) {
        self.event.at = at;
    }
}

/// Events that wait for their round.
#[derive(Debug)]
pub(super) struct Rounds<T> {
    waiting: Vec<T>,
    /// Newest time seen.
    newest: Time,
    /// Newest time seen when the previous round ended.
    safe: Time,
    /// Everything up to here has been handed on.
    handed: Time,
    /// Is `waiting` known to be sorted? Spares the sort at the end of many empty rounds.
    sorted: bool,
    /// How many events came too late, and by how much at most.
    pub(super) late: u64,
    pub(super) late_ns_max: u64,
}

impl<T: Timed> Rounds<T> {
    pub(super) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            newest: Time::ZERO,
            safe: Time::ZERO,
            handed: Time::ZERO,
            sorted: true,
            late: 0,
            late_ns_max: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, mut item: T) {
        let at = item.at();
        if at >= self.newest {
            self.newest = at;
        } else {
            self.sorted = false;
            if at < self.handed {
                self.late += 1;
                self.late_ns_max = self.late_ns_max.max(self.handed.saturating_since(at).as_ns());
                item.set_at(self.handed);
            }
        }
        self.waiting.push(item);
    }

    /// Ends a round; what it makes safe is appended to `out`.
    pub(super) fn finish_round(&mut self, out: &mut Vec<T>) {
        self.sort();
        let safe = self.waiting.partition_point(|item| item.at() <= self.safe);
        out.extend(self.waiting.drain(..safe));
        self.handed = self.handed.max(self.safe);
        self.safe = self.newest;
    }

    /// Ends the input; all that waits is appended to `out`.
    pub(super) fn finish(&mut self, out: &mut Vec<T>) {
        self.sort();
        self.handed = self.newest;
        if out.is_empty() {
            std::mem::swap(out, &mut self.waiting);
        } else {
            out.append(&mut self.waiting);
        }
    }

    /// Everything up to here has been handed on.
    pub(super) fn handed(&self) -> Time {
        self.handed
    }

    /// What waits, to update places in it; times must stay.
    pub(super) fn waiting_mut(&mut self) -> &mut [T] {
        &mut self.waiting
    }

    fn sort(&mut self) {
        if !self.sorted {
            self.waiting.sort_by_key(T::at);
            self.sorted = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Timed for (u64, char) {
        fn at(&self) -> Time {
            Time::from_ns(self.0)
        }

        fn set_at(&mut self, at: Time) {
            self.0 = at.as_ns();
        }
    }

    /// Digits are events with that time (letters tell equal ones apart); `|` ends a round.
    fn check(input: &str, expect: &str, late: u64) {
        let mut rounds = Rounds::new();
        let (mut out, mut text) = (Vec::new(), String::new());
        let mut show = |out: &mut Vec<(u64, char)>, end: &str| {
            for (at, mark) in out.drain(..) {
                text.push_str(&format!("{at}{mark}"));
            }
            text.push_str(end);
        };
        for word in input.split_whitespace() {
            if word == "|" {
                rounds.finish_round(&mut out);
                show(&mut out, "|");
            } else {
                let mark = word.chars().nth(1).unwrap_or(' ');
                rounds.push((u64::from(word.as_bytes()[0] - b'0'), mark));
            }
        }
        rounds.finish(&mut out);
        show(&mut out, "");
        assert_eq!((&*text.replace(' ', ""), rounds.late), (expect, late), "{input}");
    }

    #[test]
    fn a_round_releases_what_the_one_before_made_safe() {
        check("1 3 2 5 | 4 8 6 9 | 7 9", "|12345|67899", 0);
        check("3a 1 3b 2", "123a3b", 0);
        check("| | 1 |", "|||1", 0);
        check("1 | 2 | 3 | 4", "|1|2|34", 0);
    }

    #[test]
    fn what_comes_too_late_is_moved_up_and_counted() {
        check("2 5 | 6 | 1x 7 | 8", "|25|5x6|78", 1);
    }
}
