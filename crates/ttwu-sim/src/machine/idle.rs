//! Idle CPUs: which state they choose, and how they come out of it.

use super::cpu::Context;
use super::queue::Class;
use super::schedule::Why;
use super::{Arrival, Sim, cpu_id};
use crate::{Cost, Governor, Polling, Switch};

/// An idle state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) exit_ns: u64,
    pub(crate) residency_ns: u64,
}

/// What an idle CPU chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) state: u8,
    pub(super) keeps_tick: bool,
}

/// What the governor takes for a span that a tick cut short: nine tenths of its longest interesting time, 50 ms.
const LONG_SPAN_US: u64 = 45_000;

impl Sim<'_> {
    /// The idle task, awake: is there something to do?
    ///
    /// Models: do_idle(), v5.5–v7.2.
    pub(super) fn idle_loop(&mut self, cpu: usize) {
        self.cpus[cpu].enter(Context::IdleLoop, self.now);
        if !self.cpus[cpu].pending.is_empty() {
            self.take_interrupt(cpu);
            return;
        }
        if !self.cpus[cpu].wake_list.is_empty() {
            let ns = self.drain_wake_list(cpu);
            if ns > 0 {
                self.begin(cpu, ns * 1000, true);
                return;
            }
        }
        if self.cpus[cpu].need_resched.is_some() {
            self.schedule(cpu, Why::Idle);
            return;
        }
        self.enter_idle(cpu);
    }

    fn enter_idle(&mut self, cpu: usize) {
        let Choice { state, keeps_tick } = self.choose_state(cpu);
        let now = self.now;
        let this = &mut self.cpus[cpu];
        this.enter(Context::Idle, now);
        this.idle_state = state;
        this.idle_from = now;
        self.queue.clear(cpu, Class::Hrtick);
        self.set_busy(cpu, false);
        self.event(7, cpu, u32::from(state));
        self.trace_idle(cpu, Some(u32::from(state)));
        if !keeps_tick {
            self.queue.clear(cpu, Class::Tick);
            self.nohz_enters(cpu);
        }
    }

    /// The deepest state that fits the predicted idle time, and whether the tick goes on: where it still runs, and the sleep is
    /// expected to be over before a whole one has passed. Such a CPU is not one of those that others balance for, and no state is
    /// chosen that the next tick would cut short.
    ///
    /// Models: menu_select() in outline, v5.5–v7.2: the next timer, or the mean of the last eight spans without outliers if they
    /// agree. DEVIATION: without the correction factors by bucket, and without the latency limits of PM QoS.
    pub(super) fn choose_state(&self, cpu: usize) -> Choice {
        let settings = &self.scenario.settings.idle;
        let deepest = (self.idle_states.len() - 1) as u8;
        let limit = settings.deepest.unwrap_or(deepest).min(deepest);
        match settings.governor {
            Governor::Fixed(state) => Choice { state: state.min(deepest), keeps_tick: false },
            Governor::Menu => {
                let timer = self.next_timer(cpu);
                let mut expected = self.typical_span(cpu).map_or(timer, |span| span.min(timer));
                let tick = self.queue.time(cpu, Class::Tick).filter(|_| expected < self.tick_ns);
                if let Some(at) = tick {
                    expected = expected.min(at.saturating_sub(self.now));
                }
                let fits = |state: &State| state.residency_ns <= expected;
                let found = self.idle_states[..=usize::from(limit)].iter().rposition(fits);
                // It does not poll unless a timer is due at once.
                let shallowest = self.idle_states.get(1).is_some_and(|first| first.residency_ns <= timer);
                let state = found.unwrap_or(0).max(usize::from(shallowest && limit > 0)) as u8;
                Choice { state, keeps_tick: tick.is_some() }
            }
        }
    }

    /// How far away the next timer of `cpu` is, ns; the tick is none.
    fn next_timer(&self, cpu: usize) -> u64 {
        let timer = self.queue.nearest(cpu, |what| matches!(what, Arrival::Timer(_)));
        timer.map_or(u64::MAX, |at| at.saturating_sub(self.now))
    }

    /// The tick that went on was what ended a CPU's idleness: it would have slept on, so the span counts as a long one unless a timer
    /// is near.
    ///
    /// Models: menu_update(), v5.5–v7.2.
    pub(super) fn tick_ended_idle(&mut self, cpu: usize) {
        if self.next_timer(cpu) > self.tick_ns {
            let this = &mut self.cpus[cpu];
            this.spans[usize::from((this.span_at + 7) % 8)] = LONG_SPAN_US;
        }
    }

    /// What the last spans agree on, ns.
    ///
    /// Models: get_typical_interval(), v5.5–v7.2: the mean if the spread is small, else again without the longest.
    fn typical_span(&self, cpu: usize) -> Option<u64> {
        let this = &self.cpus[cpu];
        let count = usize::from(this.span_count);
        if count < this.spans.len() {
            return None;
        }
        let mut ceiling = u64::MAX;
        loop {
            let kept = || this.spans.iter().copied().filter(|&us| us <= ceiling);
            let n = kept().count() as u64;
            if n == 0 {
                return None;
            }
            let mean = kept().sum::<u64>() / n;
            let variance = kept().map(|us| us.abs_diff(mean).pow(2)).sum::<u64>() / n;
            let steady = mean.pow(2) > variance.saturating_mul(36) && n * 4 >= this.spans.len() as u64 * 3;
            if steady || variance <= 400 {
                return Some(mean * 1000);
            }
            if n * 4 <= this.spans.len() as u64 * 3 {
                return None;
            }
            let longest = kept().max()?;
            ceiling = longest.checked_sub(1)?;
        }
    }

    /// Something ends a CPU's idleness, after `delay`.
    pub(super) fn wake_idle(&mut self, cpu: usize, delay: u64) {
        let now = self.now;
        let entering = self.costs.get(Cost::IdleEnter);
        let counted = match self.scenario.settings.idle.spans_count_exit {
            Switch::On => self.idle_states[usize::from(self.cpus[cpu].idle_state)].exit_ns,
            Switch::Off => 0,
        };
        let this = &mut self.cpus[cpu];
        debug_assert_eq!(this.context, Context::Idle);
        let span = now - this.idle_from;
        this.spans[usize::from(this.span_at)] = (span + counted) / 1000;
        this.span_at = (this.span_at + 1) % 8;
        this.span_count = (this.span_count + 1).min(8);
        this.enter(Context::IdleExit, now);
        let state = usize::from(this.idle_state);
        let exit = self.idle_states[state].exit_ns;
        // Woken on its way in, it must first get there.
        let ns = delay + exit + entering.saturating_sub(span);
        self.begin(cpu, ns * 1000, false);
        if ns == 0 {
            self.queue.set(cpu, Class::Step, now);
        }
    }

    pub(super) fn left_idle(&mut self, cpu: usize) {
        let state = self.cpus[cpu].idle_state;
        self.counters.idle_exits[usize::from(state)] += 1;
        // Only the deepest of several states loses its caches.
        if usize::from(state) + 1 == self.idle_states.len() && self.idle_states.len() > 3 {
            self.cpus[cpu].flushed_at = self.now;
        }
        self.set_busy(cpu, true);
        self.event(8, cpu, u32::from(state));
        self.trace_idle(cpu, None);
        self.idle_loop(cpu);
    }

    /// How many states are watched by the CPU itself.
    pub(super) fn monitored(costs: &crate::Costs, polling: Polling) -> u8 {
        match polling {
            Polling::Machine => costs.get(Cost::IdleMonitors).min(255) as u8,
            Polling::Never => 0,
        }
    }

    /// Speeds of cores follow their use.
    ///
    /// Models: a ramp such as schedutil's: 1.25 times the busy fraction, falling at most half way a sample.
    pub(super) fn sample_frequency(&mut self) {
        let Some(setting) = self.scenario.settings.frequency else { return };
        for cpu in 0..self.cpus.len() {
            self.account_busy(cpu);
        }
        for cpu in 0..self.cpus.len() {
            let core = self.machine.smt(cpu_id(cpu)).lowest().map_or(cpu, ttwu_model::CpuId::index);
            let threads =
                std::iter::once(cpu).chain(self.siblings[cpu].iter().map(|&other| usize::from(other)));
            let busy =
                threads.map(|thread| self.cpus[thread].busy_ns - self.cpus[thread].busy_at_sample).max();
            let share = busy.unwrap_or(0) * 1000 / setting.sample_ns;
            let min = u64::from(setting.min_permille);
            let wanted = (share * 5 / 4).clamp(min, 1000);
            let old = self.cpus[cpu].frequency;
            let new = if wanted < old { (old - (old - wanted) / 2).max(min) } else { wanted };
            if new != old {
                self.cpus[cpu].frequency = new;
                if core == cpu {
                    self.trace_frequency(cpu, new);
                }
            }
        }
        for cpu in 0..self.cpus.len() {
            self.cpus[cpu].busy_at_sample = self.cpus[cpu].busy_ns;
            self.retime(cpu);
        }
        self.queue.post(self.cpus.len(), self.now + setting.sample_ns, Arrival::Frequency);
    }
}
