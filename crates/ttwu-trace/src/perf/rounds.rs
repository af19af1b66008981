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
//!
//! One damaged time far in the future would make everything after it late. So a leap is believed only when the next event
//! of the same CPU is there too (buffers are in order); until then the event is held back.

use ttwu_model::{CpuId, RawEvent, Time, TraceHealth};

/// Something with a time.
pub(super) trait Timed {
    fn at(&self) -> Time;
    fn cpu(&self) -> CpuId;
    fn set_at(&mut self, at: Time);
}

/// A leap that needs a second witness: 18 minutes, longer than any CPU stays without an event.
const LEAP_NS: u64 = 1 << 40;

impl Timed for RawEvent {
    #[inline]
    fn at(&self) -> Time {
        self.event.at
    }

    fn cpu(&self) -> CpuId {
        self.event.cpu
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
    /// Events after a leap in time, at most one for each CPU.
    leaps: Vec<T>,
    /// Is `waiting` known to be sorted? Spares the sort at the end of many empty rounds.
    sorted: bool,
    /// How many events came too late, and by how much at most.
    late: u64,
    late_ns_max: u64,
    /// How many events leapt into the future alone.
    leapt: u64,
}

impl<T: Timed> Rounds<T> {
    pub(super) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            newest: Time::ZERO,
            safe: Time::ZERO,
            handed: Time::ZERO,
            leaps: Vec::new(),
            sorted: true,
            late: 0,
            late_ns_max: 0,
            leapt: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        if !self.leaps.is_empty() {
            self.judge_leap(&item);
        }
        let ahead = item.at().saturating_since(self.newest).as_ns();
        if ahead > LEAP_NS && self.newest > Time::ZERO {
            self.leaps.push(item);
        } else {
            self.insert(item);
        }
    }

    #[inline]
    fn insert(&mut self, mut item: T) {
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

    /// Decides on the event that leapt on the CPU of `next`.
    #[cold]
    fn judge_leap(&mut self, next: &T) {
        let Some(index) = self.leaps.iter().position(|leap| leap.cpu() == next.cpu()) else { return };
        let mut leap = self.leaps.swap_remove(index);
        if next.at().as_ns().saturating_add(LEAP_NS) < leap.at().as_ns() {
            self.leapt += 1;
            leap.set_at(next.at());
        }
        self.insert(leap);
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
        // Nothing contradicts these.
        for leap in std::mem::take(&mut self.leaps) {
            self.insert(leap);
        }
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

    /// Says what times had to be mended.
    pub(super) fn say_repairs(&self, health: &mut TraceHealth) {
        let (late, by) = (self.late, self.late_ns_max);
        if late > 0 {
            let text =
                format!("{late} events came later than perf's rounds allow (by up to {by} ns); moved up");
            health.add_repair(text);
        }
        if self.leapt > 0 {
            let text =
                format!("{} events with a time far in the future; moved to the next one's", self.leapt);
            health.add_repair(text);
        }
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

        fn cpu(&self) -> CpuId {
            CpuId::new(0)
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
