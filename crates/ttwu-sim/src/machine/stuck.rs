//! Runs in which nothing can go on any more, and who waits for what in them.
//!
//! A run ends by time while all its tasks wait for each other just as it does while they work; without a word about it, its
//! figures would be those of a machine that idled. What waits is read off the objects when the run ends, so that running costs
//! nothing.

use super::Sim;
use super::objects::Object;
use super::task::{NOBODY, Next, State};
use crate::{End, Waiting, WaitsFor};
use ttwu_workload::{ObjectId, TaskRef};

impl Sim<'_> {
    /// Can no task of the workload ever go on? Timers, devices and workers with work can still change that.
    pub(super) fn is_stuck(&self) -> bool {
        let device = self.in_flight.len() > self.free_flights.len();
        if self.alive == 0 || self.to_start > 0 || device || self.has_work_items() {
            return false;
        }
        let waits = self.waits();
        self.tasks.iter().zip(&waits).zip(0..).all(|((task, waits), index)| {
            // Noise neither waits for others nor do others for it.
            let other = task.spec == NOBODY && task.pool == NOBODY;
            let over = matches!(task.state, State::New | State::Dead);
            other || over || waits.is_some() || self.is_idle_worker(index)
        })
    }

    /// Who can never go on.
    pub(super) fn stuck(&self, end: End) -> Vec<Waiting> {
        let row = |index: usize, what| Waiting {
            task: Some(self.tasks[index].spec).filter(|&spec| spec != NOBODY).map(TaskRef),
            index: index as u32,
            what,
        };
        if let Some((task, object)) = self.unlocked {
            return vec![row(task as usize, WaitsFor::Unlocks(ObjectId(object)))];
        }
        let waits = self.waits().into_iter().enumerate();
        let waits = waits.filter_map(|(index, what)| Some((index, what?)));
        match end {
            End::Stuck => waits.map(|(index, what)| row(index, what)).collect(),
            End::Completed | End::TimeLimit | End::Cancelled => waits
                .filter(|&(index, _)| self.waits_for_itself(index))
                .map(|(index, what)| row(index, what))
                .collect(),
        }
    }

    /// Does a task wait for the end of one that waits for its own end, over however many others?
    fn waits_for_itself(&self, index: usize) -> bool {
        let joined = |of: u32| self.tasks.iter().position(|task| task.joiners.contains(&of));
        let mut at = index as u32;
        // A chain longer than there are tasks goes round.
        for _ in 0..=self.tasks.len() {
            match joined(at) {
                Some(next) => at = next as u32,
                None => return false,
            }
        }
        true
    }

    /// By task: what it sleeps or spins at, if that is another task's to end.
    fn waits(&self) -> Vec<Option<WaitsFor>> {
        let mut found = vec![None; self.tasks.len()];
        let mut put = |task: u32, what| found[task as usize] = Some(what);
        for (object, id) in self.objects.iter().zip(0..) {
            let what = WaitsFor::Object(ObjectId(id));
            match object {
                Object::Stream(stream) => {
                    let sides = stream.sides.iter().flat_map(|side| &side.sleepers);
                    sides.for_each(|&(task, _)| put(task, what));
                }
                Object::Futex { sleepers, .. }
                | Object::Semaphore { sleepers, .. }
                | Object::Mutex { sleepers, .. }
                | Object::Condition { sleepers }
                | Object::Barrier { sleepers, .. }
                | Object::Queue { sleepers, .. } => sleepers.iter().for_each(|&task| put(task, what)),
                Object::Work { again, flushers, .. } => {
                    again.iter().chain(flushers).for_each(|&task| put(task, what));
                }
                Object::Spin { .. }
                | Object::List(_)
                | Object::Cell(_)
                | Object::Device { .. }
                | Object::WorkQueue
                | Object::Data { .. }
                | Object::Cpus(_) => {}
            }
        }
        for (task, index) in self.tasks.iter().zip(0..) {
            task.joiners.iter().for_each(|&joiner| put(joiner, WaitsFor::End(index)));
        }
        for (task, found) in self.tasks.iter().zip(&mut found) {
            match task.state {
                // Woken or about to be: whatever it waited for has come.
                State::New | State::Waking | State::Dead => *found = None,
                State::Sleeping => {}
                State::Runnable => *found = self.spins_in_vain(task),
            }
        }
        found
    }

    fn spins_in_vain(&self, task: &super::task::Task) -> Option<WaitsFor> {
        let object = task.exec.object;
        let state = self.objects.get(object as usize)?;
        let tries = task.exec.next == Next::SpinTry
            && matches!(state, Object::Spin { owner, .. } if *owner != NOBODY);
        let looks = task.exec.next == Next::SpinLook
            && matches!(state, Object::Futex { set: false, .. } | Object::Semaphore { count: 0, .. });
        let in_vain = tries || looks;
        in_vain.then_some(WaitsFor::Spins(ObjectId(object)))
    }
}
