//! Load balancing at work.

use super::Sim;

impl Sim<'_> {
    /// A CPU is about to go idle. What looking for work cost, ns; 0: it did not look.
    pub(super) fn newidle(&mut self, cpu: usize) -> u64 {
        let _ = cpu;
        0
    }

    /// A tick's balancing. Its time, ns.
    pub(super) fn tick_balance(&mut self, cpu: usize) -> u64 {
        let _ = cpu;
        0
    }

    /// A kicked CPU balances for all idle ones. Its time, ns.
    pub(super) fn nohz_balance(&mut self, cpu: usize) -> u64 {
        let _ = cpu;
        0
    }

    /// A task was queued on `cpu`.
    pub(super) fn queue_grew(&mut self, cpu: usize) {
        let _ = cpu;
    }

    /// `cpu` has stopped its tick.
    pub(super) fn nohz_enters(&mut self, cpu: usize) {
        let _ = cpu;
    }
}
