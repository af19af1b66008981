//! What happens next, in a total order: time, then class, then CPU, then the order of posting.
//!
//! Each CPU has a handful of places for what can be pending on it (the end of what it does, its tick, its slice timer, and
//! arrivals in a heap of their own), since most of them are moved and cancelled all the time; a tournament over the CPUs' nearest
//! gives the winner. A plain heap would have to skip what was cancelled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What kind of thing happens; at equal times the earlier in this list goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Class {
    /// Something arrives: an interrupt, a timer; for the world: a start, a device, a sample.
    Arrival,
    /// The tick.
    Tick,
    /// The high-resolution slice timer.
    Hrtick,
    /// What the CPU does ends.
    Step,
}

const CLASSES: [Class; 4] = [Class::Arrival, Class::Tick, Class::Hrtick, Class::Step];
/// Bits of a key for class and line; the rest, 49, is time: six days in ns.
const CLASS_BITS: u32 = 2;
const LINE_BITS: u32 = 13;
const NEVER: u64 = u64::MAX >> (CLASS_BITS + LINE_BITS);

/// Pending events. Payloads of arrivals are `A`.
#[derive(Debug)]
pub(super) struct EventQueue<A> {
    times: Vec<[u64; CLASSES.len()]>,
    arrivals: Vec<BinaryHeap<Reverse<Posted<A>>>>,
    /// A winner tree: leaf `width + line` holds the line's nearest, node i the lesser of 2i and 2i + 1. A key is time, class
    /// and line in one number.
    tree: Vec<u64>,
    width: usize,
    /// Lines whose leaf is out of date. What happens moves a few lines several times; the tree hears of it once.
    stale: Vec<u16>,
    is_stale: Vec<bool>,
    posted: u64,
}

#[derive(Debug)]
struct Posted<A> {
    at: u64,
    order: u64,
    what: A,
}

impl<A> PartialEq for Posted<A> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<A> Eq for Posted<A> {}

impl<A> PartialOrd for Posted<A> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<A> Ord for Posted<A> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<A> EventQueue<A> {
    /// A queue for `lines` CPUs (one of them may stand for the world).
    pub(super) fn new(lines: usize) -> Self {
        assert!(lines <= 1 << LINE_BITS, "at most {} CPUs", (1 << LINE_BITS) - 1);
        let width = lines.next_power_of_two();
        Self {
            times: vec![[NEVER; CLASSES.len()]; lines],
            arrivals: (0..lines).map(|_| BinaryHeap::new()).collect(),
            tree: vec![u64::MAX; 2 * width],
            width,
            stale: Vec::new(),
            is_stale: vec![false; lines],
            posted: 0,
        }
    }

    fn update(&mut self, line: usize) {
        let times = &self.times[line];
        let mut best = (NEVER, 0u8);
        for (&at, class) in times.iter().zip(0..) {
            if at < best.0 {
                best = (at, class);
            }
        }
        let key = if best.0 >= NEVER {
            u64::MAX
        } else {
            (best.0 << (CLASS_BITS + LINE_BITS)) | (u64::from(best.1) << LINE_BITS) | line as u64
        };
        let mut node = self.width + line;
        if self.tree[node] == key {
            return;
        }
        self.tree[node] = key;
        while node > 1 {
            let winner = self.tree[node].min(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == winner {
                break;
            }
            self.tree[node] = winner;
        }
    }

    /// Sets when a CPU's tick, slice timer or step comes; there is one of each.
    pub(super) fn set(&mut self, line: usize, class: Class, at: u64) {
        let at = at.min(NEVER);
        if self.times[line][class as usize] != at {
            self.times[line][class as usize] = at;
            if !std::mem::replace(&mut self.is_stale[line], true) {
                self.stale.push(line as u16);
            }
        }
    }

    /// Takes it back.
    pub(super) fn clear(&mut self, line: usize, class: Class) {
        self.set(line, class, NEVER);
    }

    /// When it is set for.
    pub(super) fn time(&self, line: usize, class: Class) -> Option<u64> {
        Some(self.times[line][class as usize]).filter(|&at| at != NEVER)
    }

    /// Posts an arrival.
    pub(super) fn post(&mut self, line: usize, at: u64, what: A) {
        self.posted += 1;
        let order = self.posted;
        let at = at.min(NEVER);
        self.arrivals[line].push(Reverse(Posted { at, order, what }));
        if at < self.times[line][Class::Arrival as usize] {
            self.set(line, Class::Arrival, at);
        }
    }

    /// The nearest arrival of a CPU for which `matches` holds: what an idle governor can foresee.
    pub(super) fn nearest(&self, line: usize, matches: impl Fn(&A) -> bool) -> Option<u64> {
        let posted = self.arrivals[line].iter().filter(|posted| matches(&posted.0.what));
        posted.map(|posted| posted.0.at).min()
    }

    /// What happens next: when, to whom, what. Its place is left as it is; whoever handles it clears or sets it.
    pub(super) fn next(&mut self) -> Option<(u64, usize, Class)> {
        while let Some(line) = self.stale.pop() {
            self.is_stale[usize::from(line)] = false;
            self.update(usize::from(line));
        }
        let key = self.tree[1];
        if key == u64::MAX {
            return None;
        }
        let class = CLASSES[(key >> LINE_BITS) as usize & ((1 << CLASS_BITS) - 1)];
        Some((key >> (CLASS_BITS + LINE_BITS), key as usize & ((1 << LINE_BITS) - 1), class))
    }

    /// Takes out the arrival that [`EventQueue::next`] announced.
    pub(super) fn take(&mut self, line: usize) -> A {
        let Reverse(posted) = self.arrivals[line].pop().expect("an arrival was announced");
        let next = self.arrivals[line].peek().map_or(NEVER, |next| next.0.at);
        self.set(line, Class::Arrival, next);
        posted.what
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_time_class_cpu_posting() {
        let mut queue = EventQueue::new(3);
        queue.set(2, Class::Step, 5);
        queue.set(1, Class::Tick, 5);
        queue.post(2, 5, 'b');
        queue.post(2, 5, 'c');
        queue.post(0, 6, 'd');
        queue.post(2, 4, 'a');
        let mut seen = String::new();
        while let Some((at, line, class)) = queue.next() {
            seen += &format!("{at}{class:?}{line}");
            match class {
                Class::Arrival => seen.push(queue.take(line)),
                Class::Tick | Class::Hrtick | Class::Step => queue.clear(line, class),
            }
            seen.push(' ');
        }
        assert_eq!(seen, "4Arrival2a 5Arrival2b 5Arrival2c 5Tick1 5Step2 6Arrival0d ");
    }
}
