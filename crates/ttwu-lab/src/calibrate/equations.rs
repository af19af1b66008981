//! What micro-benchmarks spend, solved for costs.
//!
//! ```text
//! leg on one CPU   = 2 syscall + pipe_write + 2 pipe_read + wake_base + enqueue_local + block + schedule + switch
//! leg to idle CPU  = syscall + pipe_write + wake_base + list_push + ipi_send + ipi_delivery + idle exit
//!                    + irq_entry + enqueue_local + irq_exit + schedule + switch_same + pipe_read + 2 pipe_lines + 2 pipe_far
//!  … if it polls   = syscall + pipe_write + wake_base + list_push + monitor_wake + idle exit
//!                    + enqueue_local + schedule + switch_same + pipe_read + 2 pipe_lines + 2 pipe_far
//! timer's lateness = idle exit + irq_entry + timer_handler + wake_base + enqueue_local + irq_exit + schedule + switch_same
//! ```
//!
//! Single wake-ups after a pause cost a waker far more than those of a ping-pong (three times on the machine where this was
//! written: its caches are cold), so that only their difference between CPUs is used. Costs that only occur together are
//! solved for as a sum, which the preset's proportion shares out.
//!
//! What is dearer because another CPU was there before is measured as a difference between calls of one batch. A stream's lines
//! (struct, page, wait queue) come once a visit, those of messages with each: `n` messages a visit cost `lines / n + far` each.
//! A waker takes lines of a busy CPU's run queue and of the task, and that CPU takes them back; the woken task's word, which
//! the benchmark itself adds, is taken off as one line.
//!
//! A leg is half a round trip. The sleeper on the same CPU has read in vain before it slept, so it reads twice; on another CPU
//! the first read and the sleep happen while the other side runs. From v5.19 an idle CPU gets its wake-ups over the wake
//! list. Where the sum of the known costs is more than what was measured, the one solved for is not determined: a remainder
//! below 0 is no cost, and 0 in its place would be no measurement either. It keeps the preset's value. Of a wake-up's
//! delivery and the idle exit, of which a round trip has the sum, the idle exit takes what the preset's delivery leaves.

use super::{FAR_MESSAGES, Measurement as M, PAGE_BYTES, QUEUED_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use ttwu_sim::{Basis, Cost as C, Costs};

/// The equations in words, for users.
pub const ABOUT: &str = "\
leg on one CPU   = 2 syscall + pipe_write + 2 pipe_read + wake_base + enqueue_local + block + schedule + switch
leg to idle CPU  = syscall + pipe_write + wake_base + list_push + ipi_send + ipi_delivery + idle exit + irq_entry
                   + enqueue_local + irq_exit + schedule + switch_same + pipe_read + 2 pipe_lines + 2 pipe_far
a far call       = the near one + lines / messages a visit + far
a far wake-up    = the near one + enqueue_remote - enqueue_local, and lines_back + line for the woken task's CPU
timer's lateness = idle exit + irq_entry + timer_handler + wake_base + enqueue_local + irq_exit + schedule + switch_same
";

/// Lines of a remote run queue beyond a local one's: 400 ns at 50-70 ns a line in the rows' sources.
const QUEUE_LINES: f64 = 6.0;

/// The remainder of an equation that is known to be below 0, but not by how much.
const BELOW: f64 = -1.0;

/// Ends the source of each cost of [`Solver::split`].
const SHARED: &str = ", shared out as in the preset";

/// A cost as solved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Solved {
    pub(super) value: f64,
    pub(super) basis: Basis,
    pub(super) source: String,
}

/// Equations, by cost and source, of which the remainder is below 0.
pub(super) type Rejected = BTreeSet<(C, String)>;

/// What follows from measurements.
pub(super) struct Solution {
    pub(super) solved: BTreeMap<C, Solved>,
    /// The equations that determine nothing. A cost may be solved by another one.
    pub(super) rejected: Rejected,
}

impl Solution {
    /// The equation that would have determined a cost that none determines.
    pub(super) fn not_determined(&self, cost: C) -> Option<&str> {
        let found = self.rejected.iter().find(|(rejected, _)| *rejected == cost);
        let (_, source) = found.filter(|_| !self.solved.contains_key(&cost))?;
        // Nothing is shared out.
        Some(source.strip_suffix(SHARED).unwrap_or(source))
    }
}

struct Solver<'a> {
    value: &'a dyn Fn(M) -> Option<f64>,
    base: &'a Costs,
    known: &'a [C],
    solved: BTreeMap<C, Solved>,
    rejected: Rejected,
    /// Which equations determine nothing has been found before: the others do, with 0 as the least value.
    settled: bool,
}

/// Solves for all that the measurements determine. With `rejected`, those equations and no others are left out, so that
/// moving a measurement within its interval does not change by which equations costs are solved.
pub(super) fn solve(
    value: &dyn Fn(M) -> Option<f64>,
    base: &Costs,
    known: &[C],
    rejected: Option<&Rejected>,
) -> Solution {
    let mut solver = Solver {
        value,
        base,
        known,
        solved: BTreeMap::new(),
        rejected: rejected.cloned().unwrap_or_default(),
        settled: rejected.is_some(),
    };
    solver.calls();
    solver.same_cpu();
    solver.lines();
    solver.far();
    solver.other_cpu();
    Solution { solved: solver.solved, rejected: solver.rejected }
}

/// The measurements that machines may lack, by the costs that wait for them.
const NEEDS: &[(C, &[M])] = &[
    (C::IpiDelivery, &[M::PipeOtherCpu]),
    (C::Idle1Exit, &[M::TimerLate]),
    (C::IpiSend, &[M::FutexWakeOtherCpu]),
    (C::IpiDeliveryNode, &[M::PipeOtherNode]),
    (C::ListPush, &[M::Line]),
    (C::MonitorWake, &[M::Line]),
    (C::EnqueueRemote, &[M::BusyWakeFar, M::Line]),
    (C::LinesBack, &[M::BusyBackFar]),
    (C::PipeLines, &[M::PipeFar]),
    (C::PipeFar, &[M::PipeFar]),
    (C::SocketLines, &[M::SocketFar]),
    (C::SocketFar, &[M::SocketFar]),
    (C::SwitchOther, &[M::PipeProcesses]),
    (C::SmtThroughput, &[M::PipeSmt]),
    (C::LinesLlc, &[M::LineOtherLlc]),
    (C::LinesNode, &[M::LineOtherNode]),
];

/// What a cost waits for, to say why it was not measured.
pub(super) fn needs(cost: C) -> &'static [M] {
    NEEDS.iter().find(|row| row.0 == cost).map_or(&[], |row| row.1)
}

impl Solver<'_> {
    fn get(&self, cost: C) -> f64 {
        self.solved.get(&cost).map_or_else(|| self.base.get(cost) as f64, |solved| solved.value)
    }

    fn sum(&self, costs: &[C]) -> f64 {
        costs.iter().map(|&cost| self.get(cost)).sum()
    }

    fn preset(&self, cost: C) -> f64 {
        self.base.get(cost) as f64
    }

    fn put(&mut self, cost: C, value: f64, source: &str) {
        self.put_as(cost, value, Basis::Measured, source);
    }

    fn put_as(&mut self, cost: C, value: f64, basis: Basis, source: &str) {
        if self.known.contains(&cost) {
            return;
        }
        let equation = (cost, source.to_owned());
        if value < 0.0 && !self.settled {
            self.rejected.insert(equation);
        } else if !self.rejected.contains(&equation) {
            let value = value.max(0.0);
            self.solved.insert(cost, Solved { value, basis, source: source.to_owned() });
        }
    }

    fn is_rejected(&self, cost: C) -> bool {
        self.rejected.iter().any(|(rejected, _)| *rejected == cost)
    }

    /// Costs of which only the sum is known, in the preset's proportion.
    fn split(&mut self, costs: &[C], sum: f64, source: &str) {
        let whole: f64 = costs.iter().map(|&cost| self.preset(cost)).sum();
        for &cost in costs {
            let share = if whole > 0.0 { self.preset(cost) / whole } else { 1.0 / costs.len() as f64 };
            // A cost that has no part in the preset is not determined either where the sum is below 0.
            self.put(cost, if sum < 0.0 { sum } else { sum * share }, &format!("{source}{SHARED}"));
        }
    }

    /// Calls that do not sleep.
    fn calls(&mut self) {
        let value = self.value;
        if let Some(call) = value(M::SystemCall) {
            self.put(C::Syscall, call, "system_call");
        }
        let call = self.get(C::Syscall);
        if let Some(pipe) = value(M::PipeByte) {
            self.split(&[C::PipeWrite, C::PipeRead], pipe - 2.0 * call, "pipe_byte - 2 syscall_ns");
            if let Some(page) = value(M::PipePage) {
                let kib = PAGE_BYTES as f64 / 1024.0;
                self.put(C::CopyKib, (page - pipe) / (2.0 * kib), "(pipe_page - pipe_byte) / 8 KiB");
            }
        }
        if let Some(socket) = value(M::SocketByte) {
            self.split(&[C::SocketWrite, C::SocketRead], socket - 2.0 * call, "socket_byte - 2 syscall_ns");
        }
        if let Some(wake) = value(M::FutexWakeNobody) {
            self.put(C::FutexWake, wake - call, "futex_wake_nobody - syscall_ns");
        }
        if let Some(wait) = value(M::FutexWaitNot) {
            self.put(C::FutexWait, wait - call, "futex_wait_not - syscall_ns");
        }
    }

    /// Sleeps, wake-ups and switches on one CPU.
    fn same_cpu(&mut self) {
        let value = self.value;
        let call = self.get(C::Syscall);
        if let Some(alone) = value(M::YieldAlone) {
            self.split(&[C::Yield, C::Schedule], alone - call, "yield_alone - syscall_ns");
            if let Some(switch) = value(M::YieldSwitch) {
                self.put(C::SwitchSame, switch - alone, "yield_switch - yield_alone");
            }
        }
        let Some(round) = value(M::PipeSameCpu) else { return };
        let before = 2.0 * call
            + self.get(C::PipeWrite)
            + 2.0 * self.get(C::PipeRead)
            + self.sum(&[C::Schedule, C::SwitchSame]);
        self.split(
            &[C::WakeBase, C::EnqueueLocal, C::Block],
            round / 2.0 - before,
            "pipe_same_cpu / 2 - all else of a leg on one CPU",
        );
        if let Some(processes) = value(M::PipeProcesses) {
            let other = self.get(C::SwitchSame) + (processes - round) / 2.0;
            self.put(C::SwitchOther, other, "switch_same_ns + (pipe_processes - pipe_same_cpu) / 2");
        }
    }

    fn lines(&mut self) {
        let Some(line) = (self.value)(M::Line) else { return };
        self.put(C::ListPush, line, "line: one atomic operation on a remote line");
        self.put(C::MonitorWake, line, "line: one line transfer");
        let remote = self.get(C::EnqueueLocal) + QUEUE_LINES * line;
        self.put_as(
            C::EnqueueRemote,
            remote,
            Basis::Estimate,
            "enqueue_local_ns + 6 line; the number of lines is an estimate",
        );
    }

    /// What is dearer where another CPU was before.
    fn far(&mut self) {
        let value = self.value;
        let streams = [
            (M::PipeFar, M::PipeFarMany, C::PipeLines, C::PipeFar, "pipe"),
            (M::SocketFar, M::SocketFarMany, C::SocketLines, C::SocketFar, "socket"),
        ];
        for (one, many, lines, far, name) in streams {
            if let (Some(one), Some(many)) = (value(one), value(many)) {
                let messages = FAR_MESSAGES as f64;
                let visit = (one - many) * messages / (messages - 1.0);
                let lines_source = format!("({name}_far - {name}_far_many) 8 / 7");
                let far_source = format!("{name}_far - {name}_lines_ns");
                // Samples of these differences end at 0, so that a median of 0 stands for any value below it too.
                let nothing = one <= 0.0;
                self.put(lines, if nothing { BELOW } else { visit }, &lines_source);
                self.put(far, if nothing { BELOW } else { one - self.get(lines) }, &far_source);
            }
        }
        if let (Some(few), Some(many)) = (value(M::SocketFew), value(M::SocketMany)) {
            let outside = 1.0 - (self.get(C::RefillKibMax) * 1024.0 / QUEUED_BYTES as f64).min(0.9);
            let source =
                "(socket_many - socket_few) / share of the queued messages that refill_kib_max cannot hold";
            self.put(C::SocketCold, (many - few) / outside, source);
        }
        if let (Some(near), Some(far)) = (value(M::BusyWakeNear), value(M::BusyWakeFar)) {
            let remote = self.get(C::EnqueueLocal) + far - near;
            self.put(C::EnqueueRemote, remote, "enqueue_local_ns + busy_wake_far - busy_wake_near");
        }
        if let (Some(near), Some(far), Some(line)) =
            (value(M::BusyBackNear), value(M::BusyBackFar), value(M::Line))
        {
            self.put(C::LinesBack, far - near - line, "busy_back_far - busy_back_near - line");
        }
    }

    /// Wake-ups of idle CPUs.
    fn other_cpu(&mut self) {
        let value = self.value;
        let clock = value(M::ClockRead).unwrap_or(0.0);
        let polls = self.base.get(C::IdleMonitors) > 1;
        if let (Some(other), Some(same)) = (value(M::FutexWakeOtherCpu), value(M::FutexWakeSameCpu))
            && !polls
        {
            self.put(
                C::IpiSend,
                other - same + self.get(C::EnqueueLocal) - self.get(C::ListPush),
                "futex_wake_other_cpu - futex_wake_same_cpu + enqueue_local_ns - list_push_ns",
            );
        }
        let interrupted = self.sum(&[C::IrqEntry, C::EnqueueLocal, C::IrqExit, C::Schedule, C::SwitchSame]);
        if let Some(late) = value(M::TimerLate) {
            let rest = interrupted + self.sum(&[C::TimerHandler, C::WakeBase]);
            self.put(C::Idle1Exit, late - clock - rest, "timer_late - clock_read - all else of it");
        }
        // Both calls of a leg find the pipe as the other CPU left it.
        let lines = 2.0 * self.sum(&[C::PipeLines, C::PipeFar]);
        let sends = self.sum(&[C::Syscall, C::PipeWrite, C::PipeRead, C::WakeBase, C::ListPush]) + lines;
        if let Some(round) = value(M::PipeOtherCpu) {
            if polls {
                let rest = sends + self.sum(&[C::Idle1Exit, C::EnqueueLocal, C::Schedule, C::SwitchSame]);
                self.put(C::MonitorWake, round / 2.0 - rest, "pipe_other_cpu / 2 - all else of a leg");
            } else {
                let rest = sends + interrupted + self.get(C::IpiSend);
                let left = round / 2.0 - rest - self.get(C::Idle1Exit);
                self.put(C::IpiDelivery, left, "pipe_other_cpu / 2 - all else of a leg to an idle CPU");
                if self.is_rejected(C::IpiDelivery) {
                    self.put_as(
                        C::Idle1Exit,
                        round / 2.0 - rest - self.preset(C::IpiDelivery),
                        Basis::Estimate,
                        "pipe_other_cpu / 2 - all else of a leg, with the preset's ipi_delivery_ns: less than timer_late shows",
                    );
                }
            }
        }
        if let Some(round) = value(M::PipeOtherNode)
            && !polls
        {
            let rest = sends + interrupted + self.sum(&[C::IpiSend, C::Idle1Exit]);
            self.put(C::IpiDeliveryNode, round / 2.0 - rest, "pipe_other_node / 2 - all else of a leg");
        }
    }
}
