//! Wakers: who woke whom.
//!
//! Only wake-ups made in task context have a waker that means something: in an interrupt the current task is whoever was
//! interrupted. Those are counted as woken by `hardirq`, `softirq` or `idle` instead.
//!
//! * *Pairs*: how often A woke B, and how far the CPU chosen for B was from A's.
//! * *Wide wakers*: how many different tasks one wakes, and its flips as the kernel counts them (a flip is a wake-up of
//!   another task than the last one; halved when more than a second has passed since the last halving). The kernel counts
//!   flips in interrupts too, to the account of the interrupted task, and only for wake-ups that reach placement; what is
//!   counted here is what a recording shows.
//! * *Ping-pong*: A wakes B as the next thing after B woke A, and so on. *Returns* of a pair are wake-ups of that kind.
//! * *Chains*: A wakes B, whose present run that wake-up started, and who wakes C …, within [`CHAIN_WINDOW`] and each task
//!   once. The longest ones show pipelines.
//!
//! What this does not do: critical paths; a chain does not say that its members waited for each other.

use crate::tally::{Tally, at, pair, unpair};
use crate::{Analysis, End, Levels, Measured, Moment, Needs, Relation, WakeContext, Who};
use ttwu_model::{Duration, Event, Level, Placed, TaskId, Time, Wait};

/// How many pairs, wakers, ping-pong pairs and chains are kept.
const KEPT: usize = 20;
/// A chain is not followed beyond this.
pub const CHAIN_WINDOW: Duration = Duration::from_ns(10_000_000);
/// Nor beyond this many tasks.
pub const CHAIN_TASKS_MAX: usize = 16;
/// The kernel's interval of halving flips.
const DECAY: Duration = Duration::from_ns(1_000_000_000);
/// Wake-ups remembered for walking chains back; older ones have left the window long ago.
const RING: usize = 1 << 14;

/// Who woke whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakers {
    /// Wake-ups by context, in the order of [`WakeContext::ALL`].
    pub by_context: [u64; WakeContext::ALL.len()],
    /// How many different pairs of tasks there are.
    pub pairs_total: u64,
    /// The pairs that occur most.
    pub pairs: Vec<WakePair>,
    /// Tasks that wake the most different ones.
    pub wide: Vec<WideWaker>,
    /// Pairs that wake each other in turn.
    pub ping_pong: Vec<PingPong>,
    /// The longest chains, longest first, no two with the same first and last task.
    pub chains: Vec<Chain>,
    /// Was `sched_waking` recorded? Otherwise a waker is who emitted `sched_wakeup`, which with the wake list is whoever
    /// was interrupted on the target.
    pub waking_recorded: bool,
}

/// One task waking another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakePair {
    /// Who woke.
    pub waker: Who,
    /// Who was woken.
    pub wakee: Who,
    /// How often.
    pub count: u64,
    /// CPU chosen on the waker's own CPU.
    pub same_cpu: u64,
    /// Of the others: sharing the last-level cache or something smaller; `None` where the topology is not known.
    pub same_llc: Option<u64>,
}

/// A task that wakes others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideWaker {
    /// Who.
    pub who: Who,
    /// Its wake-ups.
    pub wakeups: u64,
    /// Different tasks woken.
    pub wakees: u64,
    /// Wake-ups of another task than the one before.
    pub flips: u64,
    /// The most that the kernel's decaying counter can have reached.
    pub flips_max: u64,
}

impl WideWaker {
    /// Flips per 1000 seconds of `span`; integer so that tables sort and print alike everywhere.
    #[must_use]
    pub fn flips_per_ks(&self, span: Duration) -> Option<u64> {
        let ns = u128::from(span.as_ns());
        (ns != 0).then(|| u64::try_from(u128::from(self.flips) * 1_000_000_000_000 / ns).unwrap_or(u64::MAX))
    }
}

/// Two tasks that wake each other in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingPong {
    /// The one with the lower id.
    pub a: Who,
    /// The other.
    pub b: Who,
    /// Wake-ups that answered the other's wake-up.
    pub returns: u64,
    /// All wake-ups between the two.
    pub wakeups: u64,
}

/// Tasks that woke each other one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// When the first of them woke the second.
    pub at: Time,
    /// From that to the last wake-up.
    pub length: Duration,
    /// From what context the first of them was woken or, where that is not known, `Task`.
    pub root: WakeContext,
    /// The tasks.
    pub tasks: Vec<Who>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    count: u32,
    same_cpu: u32,
    same_llc: u32,
    returns: u32,
}

/// What is kept per task.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    wakeups: u32,
    last_wakee: Option<TaskId>,
    last_waker: Option<TaskId>,
    flips: u32,
    flips_decaying: u32,
    flips_max: u32,
    decayed_at: Time,
    /// Its last wake-up, in the ring; 0 is none.
    node: u64,
    root: Option<WakeContext>,
}

/// A wake-up in a chain.
#[derive(Clone, Copy, Debug)]
struct Node {
    at: Time,
    /// The wake-up that started the waker's run; 0 is none.
    parent: u64,
    waker: TaskId,
    /// No chain that ends here can be longer.
    depth: u16,
}

/// A chain before names are known.
#[derive(Clone, Debug)]
struct Found {
    at: Time,
    length: Duration,
    root: WakeContext,
    tasks: Vec<TaskId>,
}

/// The fold.
#[derive(Clone, Debug)]
pub struct WakersAnalysis {
    levels: Levels,
    by_context: [u64; WakeContext::ALL.len()],
    pairs: Tally<Cell>,
    rows: Vec<Row>,
    ring: Vec<Node>,
    /// Wake-ups so far; the ring's entry of wake-up `n` (counted from 1) is `n % RING`.
    nodes: u64,
    chains: Vec<Found>,
}

impl WakersAnalysis {
    /// Ready for the first event of a machine with these levels.
    #[must_use]
    pub fn new(levels: Levels) -> Self {
        Self {
            levels,
            by_context: Default::default(),
            pairs: Tally::default(),
            rows: Vec::new(),
            ring: Vec::new(),
            nodes: 0,
            chains: Vec::new(),
        }
    }

    fn placed(&mut self, placed: &Placed, now: Time) {
        let Placed { wakee, wake, .. } = *placed;
        let context = WakeContext::of(wake.context(), wake.waker);
        self.by_context[context as usize] += 1;
        let by_task =
            context == WakeContext::Task || (context == WakeContext::Unknown && !wake.waker.is_idle());
        if !by_task {
            let row = at(&mut self.rows, wakee.index());
            (row.last_waker, row.node, row.root) = (None, 0, Some(context));
            return;
        }
        let waker = wake.waker;
        let relation = self.levels.relation(Some(wake.waker_cpu), wake.cpu);
        let answered = self.rows.get(waker.index()).is_some_and(|row| row.last_waker == Some(wakee));
        let cell = self.pairs.entry(pair(waker.index() as u32, wakee.index() as u32));
        cell.count += 1;
        cell.same_cpu += u32::from(relation == Relation::At(Level::SameCpu));
        cell.same_llc +=
            u32::from(relation > Relation::At(Level::SameCpu) && relation <= Relation::At(Level::Llc));
        cell.returns += u32::from(answered);
        self.flip(waker, wakee, now);
        self.link(waker, wakee, wake.from().unwrap_or(now));
        at(&mut self.rows, wakee.index()).last_waker = Some(waker);
        // An answer answers once.
        at(&mut self.rows, waker.index()).last_waker.take_if(|last| *last == wakee);
    }

    fn flip(&mut self, waker: TaskId, wakee: TaskId, now: Time) {
        let row = at(&mut self.rows, waker.index());
        row.wakeups += 1;
        if now.saturating_since(row.decayed_at) > DECAY {
            row.flips_decaying /= 2;
            row.decayed_at = now;
        }
        if row.last_wakee != Some(wakee) {
            row.last_wakee = Some(wakee);
            row.flips += 1;
            row.flips_decaying += 1;
            row.flips_max = row.flips_max.max(row.flips_decaying);
        }
    }

    /// Appends the wake-up to the chain that the waker's present run belongs to.
    fn link(&mut self, waker: TaskId, wakee: TaskId, now: Time) {
        let parent = self.rows[waker.index()].node;
        let root = self.rows[waker.index()].root.unwrap_or(WakeContext::Task);
        let depth = match self.node(parent) {
            Some(before) if now.saturating_since(before.at) <= CHAIN_WINDOW => before.depth.saturating_add(1),
            Some(_) | None => 2,
        };
        if usize::from(depth) >= self.shortest() {
            self.walk_back(waker, wakee, parent, now, root);
        }
        self.nodes += 1;
        let slot = (self.nodes % RING as u64) as usize;
        let new = Node { at: now, parent, waker, depth };
        if slot >= self.ring.len() {
            self.ring.resize(slot + 1, new);
        }
        self.ring[slot] = new;
        let row = at(&mut self.rows, wakee.index());
        (row.node, row.root) = (self.nodes, Some(root));
    }

    /// How many tasks a chain must have to be kept.
    fn shortest(&self) -> usize {
        if self.chains.len() < KEPT { 3 } else { self.chains[KEPT - 1].tasks.len() + 1 }
    }

    /// Follows the chain to its beginning: out of the window, or back at a task that it has already.
    fn walk_back(&mut self, waker: TaskId, wakee: TaskId, parent: u64, now: Time, root: WakeContext) {
        let mut tasks = [wakee; CHAIN_TASKS_MAX];
        let (mut known, mut first) = (1, now);
        let (mut woke_at, mut node, mut task) = (now, parent, waker);
        while known < CHAIN_TASKS_MAX && !tasks[..known].contains(&task) {
            tasks[known] = task;
            known += 1;
            first = woke_at;
            match self.node(node) {
                Some(before) if now.saturating_since(before.at) <= CHAIN_WINDOW => {
                    (woke_at, node, task) = (before.at, before.parent, before.waker);
                }
                Some(_) | None => break,
            }
        }
        self.remember(&tasks[..known], first, now, root);
    }

    fn node(&self, number: u64) -> Option<&Node> {
        let old = number == 0 || self.nodes - number >= RING as u64;
        if old { None } else { self.ring.get((number % RING as u64) as usize) }
    }

    /// Keeps a chain if it is among the longest; `tasks` has the last one first.
    fn remember(&mut self, tasks: &[TaskId], first: Time, now: Time, root: WakeContext) {
        if tasks.len() < self.shortest() {
            return;
        }
        let ends = (tasks[tasks.len() - 1], tasks[0]);
        // The same chain, shorter: it has grown, or another of the same kind was there before.
        let same = |found: &Found| {
            let grown = found.tasks.len() < tasks.len()
                && found.tasks.iter().eq(tasks.iter().rev().take(found.tasks.len()))
                && found.at == first;
            grown || (found.tasks[0], found.tasks[found.tasks.len() - 1]) == ends
        };
        if let Some(index) = self.chains.iter().position(same) {
            if self.chains[index].tasks.len() >= tasks.len() {
                return;
            }
            self.chains.remove(index);
        }
        let place = self.chains.partition_point(|kept| kept.tasks.len() >= tasks.len());
        let length = now.saturating_since(first);
        self.chains
            .insert(place, Found { at: first, length, root, tasks: tasks.iter().rev().copied().collect() });
        self.chains.truncate(KEPT);
    }
}

impl Analysis for WakersAnalysis {
    type Output = Wakers;

    fn needs(&self) -> Needs {
        &[&["sched_waking", "sched_wakeup"]]
    }

    fn observe(&mut self, moment: &Moment<'_>, event: &Event) {
        if let Some(placed) = moment.timeline.placed()
            && placed.wait == Wait::Wakeup
        {
            self.placed(placed, event.at);
        }
    }

    fn finish(self, end: &End<'_>) -> Measured<Wakers> {
        let needs = self.needs();
        end.recorded.measured(needs, || self.result(end))
    }
}

impl WakersAnalysis {
    fn result(self, end: &End<'_>) -> Wakers {
        let who = |index: u32| Who::of(end.parts, TaskId::new(index));
        let cells = self.pairs.sorted();
        let mut wakees = vec![0_u64; self.rows.len()];
        for &(key, _) in &cells {
            wakees[unpair(key).0 as usize] += 1;
        }
        let mut wide: Vec<usize> = (0..self.rows.len()).filter(|&index| wakees[index] > 1).collect();
        wide.sort_by_key(|&index| (std::cmp::Reverse((wakees[index], self.rows[index].wakeups)), index));
        let wide = wide.into_iter().take(KEPT).map(|index| {
            let row = &self.rows[index];
            WideWaker {
                who: Who::at(end.parts, index),
                wakeups: row.wakeups.into(),
                wakees: wakees[index],
                flips: row.flips.into(),
                flips_max: row.flips_max.into(),
            }
        });
        let mut top: Vec<&(u64, Cell)> = cells.iter().collect();
        top.sort_by_key(|(key, cell)| (std::cmp::Reverse(cell.count), *key));
        let pair_of = |&&(key, cell): &&(u64, Cell)| WakePair {
            waker: who(unpair(key).0),
            wakee: who(unpair(key).1),
            count: cell.count.into(),
            same_cpu: cell.same_cpu.into(),
            same_llc: self.levels.has_llcs().then_some(cell.same_llc.into()),
        };
        let chain = |found: &Found| Chain {
            at: found.at,
            length: found.length,
            root: found.root,
            tasks: found.tasks.iter().map(|&task| Who::of(end.parts, task)).collect(),
        };
        Wakers {
            by_context: self.by_context,
            pairs_total: cells.len() as u64,
            pairs: top.iter().take(KEPT).map(pair_of).collect(),
            wide: wide.collect(),
            ping_pong: ping_pong(&cells, who),
            chains: self.chains.iter().map(chain).collect(),
            waking_recorded: end.recorded.has("sched_waking"),
        }
    }
}

/// Pairs of which both directions occur and answer each other.
fn ping_pong(cells: &[(u64, Cell)], who: impl Fn(u32) -> Who) -> Vec<PingPong> {
    let other = |key: u64| {
        let (waker, wakee) = unpair(key);
        cells.binary_search_by_key(&pair(wakee, waker), |&(key, _)| key).ok().map(|index| cells[index].1)
    };
    let both = cells.iter().filter(|&&(key, _)| unpair(key).0 < unpair(key).1).filter_map(|&(key, there)| {
        let back = other(key)?;
        let returns = u64::from(there.returns) + u64::from(back.returns);
        let wakeups = u64::from(there.count) + u64::from(back.count);
        (returns > 0).then_some((key, returns, wakeups))
    });
    let mut both: Vec<_> = both.collect();
    both.sort_by_key(|&(key, returns, _)| (std::cmp::Reverse(returns), key));
    both.into_iter()
        .take(KEPT)
        .map(|(key, returns, wakeups)| {
            let (a, b) = unpair(key);
            PingPong { a: who(a), b: who(b), returns, wakeups }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse_one;
    use crate::script::{lines, trace};
    use std::fmt::Write;

    fn check(script: &str, expected: &str) {
        let trace = trace(script);
        let measured = analyse_one(&trace, WakersAnalysis::new(Levels::unknown()));
        let Measured::Measured(out) = measured else { panic!("{measured:?}") };
        let mut text = String::new();
        for context in WakeContext::ALL {
            if out.by_context[context as usize] > 0 {
                writeln!(text, "from {} {}", context.name(), out.by_context[context as usize]).unwrap();
            }
        }
        for pair in &out.pairs {
            let WakePair { waker, wakee, count, same_cpu, .. } = pair;
            writeln!(text, "{}->{} {count} same cpu {same_cpu}", waker.name, wakee.name).unwrap();
        }
        for wide in &out.wide {
            writeln!(text, "wide {} {} wakees {} flips", wide.who.name, wide.wakees, wide.flips).unwrap();
        }
        for pair in &out.ping_pong {
            writeln!(text, "ping-pong {} {} {}/{}", pair.a.name, pair.b.name, pair.returns, pair.wakeups)
                .unwrap();
        }
        for chain in &out.chains {
            let names: Vec<&str> = chain.tasks.iter().map(|task| task.name.as_str()).collect();
            writeln!(text, "chain {} {}+{}", names.join(">"), chain.at.as_ns(), chain.length.as_ns())
                .unwrap();
        }
        assert_eq!(lines(&text), lines(expected), "script:\n{script}");
    }

    /// `a>b` for each pair: a wakes b, who then runs and sleeps again.
    fn wakes(pairs: &[&str]) -> String {
        let mut script = "0 0 idle . sw idle R a\n".to_owned();
        for (index, pair) in pairs.iter().enumerate() {
            let (waker, wakee) = pair.split_once('>').expect("a pair");
            let at = index * 100 + 1;
            write!(
                script,
                "{at} 0 {waker} . waking {wakee} 0\n{} 0 {waker} . wakeup {wakee} 0\n{} 0 {waker} . sw {waker} S {wakee}\n",
                at + 1,
                at + 2
            )
            .unwrap();
        }
        script
    }

    #[test]
    fn two_tasks_in_turn_are_a_ping_pong_and_no_chain() {
        check(
            &wakes(&["a>b", "b>a", "a>b", "b>a"]),
            "from task 4
             a->b 2 same cpu 2
             b->a 2 same cpu 2
             ping-pong a b 3/4",
        );
    }

    #[test]
    fn a_pipeline_is_a_chain() {
        check(
            &wakes(&["a>b", "b>c", "c>d"]),
            "from task 3
             a->b 1 same cpu 1
             b->c 1 same cpu 1
             c->d 1 same cpu 1
             chain a>b>c>d 1+200",
        );
    }

    #[test]
    fn a_ring_gives_each_task_once() {
        check(
            &wakes(&["a>b", "b>c", "c>a", "a>b"]),
            "from task 4
             a->b 2 same cpu 2
             b->c 1 same cpu 1
             c->a 1 same cpu 1
             chain a>b>c 1+100
             chain b>c>a 101+100
             chain c>a>b 201+100",
        );
    }

    #[test]
    fn a_dispatcher_is_wide() {
        check(
            "0 0 d . waking a 0
             1 0 d . wakeup a 0
             2 0 d . waking b 1
             3 0 d . wakeup b 1
             4 0 d . waking c 1
             5 0 d . wakeup c 1
             6 0 d . sw d S a
             7 0 a . sw a S d
             8 0 d . waking a 0
             9 0 d . wakeup a 0",
            "from task 4
             d->a 2 same cpu 2
             d->b 1 same cpu 0
             d->c 1 same cpu 0
             wide d 3 wakees 4 flips",
        );
    }

    #[test]
    fn interrupts_are_nobody() {
        check(
            "0 0 x h waking a 0\n1 0 x h wakeup a 0\n2 0 x . sw x R a\n3 0 a s waking b 0\n4 0 a s wakeup b 0\n5 1 idle . waking c 1\n6 1 idle . wakeup c 1",
            "from softirq 1
             from hardirq 1
             from idle 1",
        );
    }

    #[test]
    fn a_chain_ends_at_the_window() {
        let far = wakes(&["a>b"]) + "20000000 0 b . waking c 0\n20000001 0 b . wakeup c 0";
        check(&far, "from task 2\n a->b 1 same cpu 1\n b->c 1 same cpu 1");
    }
}
