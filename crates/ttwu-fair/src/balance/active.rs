//! Active balance: the stopper of a CPU pushes away the task that ran there.

use super::{ActiveBalance, Balancer};
use crate::EntityId;
use ttwu_model::CpuId;

impl Balancer<'_> {
    /// May the task that runs on `src` run on `dst`? Idle or a task of another class counts as allowed.
    pub(super) fn active_is_allowed(&mut self, dst: CpuId, src: CpuId) -> bool {
        match self.view.running_task(src) {
            Some(task) => self.view.allows(task, dst),
            None => true,
        }
    }

    /// Carries out a request once the stopper runs on `src`, so that no fair task runs there. Returns the task that moved.
    ///
    /// The first task from the back that may go is taken, hot or not.
    ///
    /// Models: active_load_balance_cpu_stop(), detach_one_task(), v5.5–v7.2. DEVIATION: before v5.12 a cache-hot task could
    /// still be refused after its level's failures had been reset meanwhile.
    pub fn active_balance(&mut self, request: ActiveBalance) -> Option<EntityId> {
        self.state.cpu(request.src).active_balance = false;
        let machine = self.machine;
        let domains = machine.domains().of(request.dst);
        let level = domains.iter().position(|domain| domain.span().contains(request.src))?;
        let mut chosen = None;
        // As many looks as there are tasks: each one that may not go is put to the front.
        for _ in 0..self.view.nr_running(request.src) {
            let Some(task) = self.view.last_task(request.src) else { break };
            let state = self.view.task(request.src, task);
            let may = !state.delayed && !state.running && !state.per_cpu_kthread;
            if may && self.view.allows(task, request.dst) {
                chosen = Some(task);
                break;
            }
            self.view.to_front(request.src, task);
        }
        let task = chosen?;
        self.view.detach(request.src, task);
        self.state.domain(request.dst, level).nr_balance_failed = 0;
        self.view.attach(request.dst, task);
        Some(task)
    }
}
