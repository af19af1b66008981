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
//! What waits is a few stretches that are in order already, one or two per buffer, so they are merged straight into the
//! output: each event is moved once, where a sort would move it several times. Of equal times the earlier in the file comes
//! first. What comes later than a finished round allowed is moved up to the time already handed on, and counted.
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

/// More stretches than this in one round are sorted instead: finding the earliest would cost more than a sort.
const RUNS_MAX: usize = 32;
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

/// A stretch's next event: by time, then by place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    at: Time,
    next: usize,
    end: usize,
    run: usize,
}

/// Events that wait for their round.
#[derive(Debug)]
pub(super) struct Rounds<T> {
    /// In the file's order.
    waiting: Vec<T>,
    /// Where each stretch of `waiting` that is in time order begins.
    runs: Vec<usize>,
    /// Newest time seen.
    newest: Time,
    /// Newest time seen when the previous round ended.
    safe: Time,
    /// Everything up to here has been handed on.
    handed: Time,
    /// Events after a leap in time, at most one for each CPU.
    leaps: Vec<T>,
    /// Time of the last event in `waiting`.
    last: Time,
    /// How many events came too late, and by how much at most.
    late: u64,
    late_ns_max: u64,
    /// How many events leapt into the future alone.
    leapt: u64,
}

impl<T: Timed + Copy> Rounds<T> {
    pub(super) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            runs: Vec::new(),
            newest: Time::ZERO,
            safe: Time::ZERO,
            handed: Time::ZERO,
            leaps: Vec::new(),
            last: Time::ZERO,
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
        if item.at() < self.handed {
            self.late += 1;
            self.late_ns_max = self.late_ns_max.max(self.handed.saturating_since(item.at()).as_ns());
            item.set_at(self.handed);
        }
        let at = item.at();
        self.newest = self.newest.max(at);
        if at < self.last || self.runs.is_empty() {
            self.runs.push(self.waiting.len());
        }
        self.last = at;
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
        self.merge(self.safe, out);
        self.handed = self.handed.max(self.safe);
        self.safe = self.newest;
    }

    /// Ends the input; all that waits is appended to `out`.
    pub(super) fn finish(&mut self, out: &mut Vec<T>) {
        // Nothing contradicts these.
        for leap in std::mem::take(&mut self.leaps) {
            self.insert(leap);
        }
        self.merge(Time::MAX, out);
        self.handed = self.newest;
    }

    /// Moves what is not after `until` to `out`, in order.
    fn merge(&mut self, until: Time, out: &mut Vec<T>) {
        if self.runs.len() > RUNS_MAX {
            self.waiting.sort_by_key(T::at);
            self.runs.clear();
            self.runs.push(0);
        }
        let waiting = &self.waiting;
        let ends = self.runs.iter().skip(1).copied().chain([waiting.len()]);
        let heads = self.runs.iter().zip(ends).enumerate();
        let heads = heads.map(|(run, (&next, end))| Head { at: waiting[next].at(), next, end, run });
        let mut heads: Vec<Head> = heads.filter(|head| head.at <= until).collect();
        // Where each stretch's rest begins; its own begin where nothing is taken.
        let mut rests = self.runs.clone();
        while let Some((first, bound)) = earliest(&heads, until) {
            let head = &mut heads[first];
            // Take all that comes before every other stretch's next event, at once.
            let stretch = &waiting[head.next..head.end];
            let taken = stretch.iter().take_while(|item| item.at() < bound).count().max(1);
            match stretch[..taken] {
                // CPUs that alternate are the common case, and a copy of unknown length costs a call.
                [item] => out.push(item),
                ref items => out.extend_from_slice(items),
            }
            head.next += taken;
            rests[head.run] = head.next;
            match waiting[head.next..head.end].first() {
                Some(next) if next.at() <= until => head.at = next.at(),
                Some(_) | None => {
                    // In order, so that equal times go by place in the file.
                    heads.remove(first);
                }
            }
        }
        self.keep(&rests);
    }

    /// Keeps the rests of the stretches.
    fn keep(&mut self, rests: &[usize]) {
        let ends: Vec<usize> = self.runs.iter().skip(1).copied().chain([self.waiting.len()]).collect();
        self.runs.clear();
        let mut kept = 0;
        for (&start, &end) in rests.iter().zip(&ends) {
            if start == end {
                continue;
            }
            // Neighbours that are in order together become one.
            if self.waiting[start].at() < self.last || self.runs.is_empty() {
                self.runs.push(kept);
            }
            self.last = self.waiting[end - 1].at();
            self.waiting.copy_within(start..end, kept);
            kept += end - start;
        }
        self.waiting.truncate(kept);
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
}

/// The stretch with the earliest next event (of equal ones the first), and the time before which it goes on alone.
#[inline]
fn earliest(heads: &[Head], until: Time) -> Option<(usize, Time)> {
    let (mut first, mut at) = (0, heads.first()?.at);
    let mut bound = Time::from_ns(until.as_ns().saturating_add(1));
    for (index, head) in heads.iter().enumerate().skip(1) {
        if head.at < at {
            bound = at;
            (first, at) = (index, head.at);
        } else {
            bound = bound.min(head.at);
        }
    }
    Some((first, bound))
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
    fn merging_is_a_stable_sort() {
        let mut rng = ttwu_testing::Rng::new(7);
        for seed in 0..300 {
            let mut rounds = Rounds::new();
            let (mut out, mut all) = (Vec::new(), Vec::new());
            let spread = 1 + rng.below(40);
            for index in 0..rng.below(200) {
                let at =
                    (1 + index as u64 / 10 + rng.below(spread) as u64, char::from(b'a' + (index % 26) as u8));
                rounds.push(at);
                all.push(at);
            }
            // Everything is before the second mark, so nothing comes too late.
            rounds.finish_round(&mut out);
            assert!(out.is_empty(), "seed {seed}");
            let later = 1000 + rng.below(5) as u64;
            for item in [(later, 'x'), (later - 1, 'y')] {
                rounds.push(item);
                all.push(item);
            }
            rounds.finish_round(&mut out);
            rounds.finish(&mut out);
            all.sort_by_key(|item| item.0);
            assert_eq!(out, all, "seed {seed}");
        }
    }

    #[test]
    fn what_comes_too_late_is_moved_up_and_counted() {
        check("2 5 | 6 | 1x 7 | 8", "|25|5x6|78", 1);
    }
}
