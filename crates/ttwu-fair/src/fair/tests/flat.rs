//! Without groups a CPU's fair class is its one queue: the same operations on a bare [`CfsRq`], which recordings of real
//! kernels hold bit for bit, give the same entities.

use super::*;
use crate::queue::tests::ALL;
use crate::{PreemptQuery, wakeup_preempt};
use ttwu_testing::Rng;

struct Pair {
    world: World,
    e: Entities,
    queue: CfsRq,
}

impl Pair {
    fn pick_alone(&mut self) -> Option<EntityId> {
        let (rules, now) = (*self.world.fair.rules(), self.world.now);
        loop {
            if self.queue.nr_queued() == 0 {
                return None;
            }
            if self.queue.curr.is_some_and(|id| self.e[id].on_rq) {
                self.queue.update_curr(&mut self.e, &rules, now);
            }
            let id = self.queue.pick(&self.e, &rules)?;
            if !self.e[id].sched_delayed {
                return Some(id);
            }
            self.queue.dequeue(&mut self.e, &rules, id, now, DequeueFlags { delayed: true, ..SLEEP });
        }
    }

    fn schedule(&mut self) {
        let (rules, now) = (*self.world.fair.rules(), self.world.now);
        let next = self.pick_alone();
        if self.queue.curr != next {
            self.queue.put_prev(&mut self.e, &rules, now);
            if let Some(next) = next {
                self.queue.set_next(&mut self.e, &rules, next, now, SwitchIn::Picked);
            }
        }
        assert_eq!(self.world.schedule(CPU0), next);
    }

    fn wake(&mut self, id: EntityId) {
        let (rules, now) = (*self.world.fair.rules(), self.world.now);
        let delayed = self.e[id].sched_delayed;
        if delayed {
            self.queue.requeue_delayed(&mut self.e, &rules, id, now);
        } else {
            self.queue.enqueue(&mut self.e, &rules, id, now, WOKEN);
        }
        let answer = self.queue.curr.map(|curr| {
            let query = PreemptQuery {
                wakee: id,
                policy: self.e[id].policy,
                curr_policy: self.e[curr].policy,
                fork: false,
                sync: false,
                rq_selected: false,
                delayed,
                need_resched: None,
                now,
            };
            wakeup_preempt(&mut self.queue, &mut self.e, &rules, &query)
        });
        assert_eq!(self.world.wake(CPU0, id), answer);
    }

    fn step(&mut self, what: usize, id: EntityId, rng: &mut Rng) {
        let (rules, now) = (*self.world.fair.rules(), self.world.now);
        let fair = &mut self.world.fair;
        let running = fair.curr(CPU0) == Some(id);
        match what {
            0..=2 if !self.e[id].on_rq || self.e[id].sched_delayed => self.wake(id),
            3 | 4 if self.e[id].on_rq && running && !self.e[id].sched_delayed => {
                let alone = self.queue.dequeue(&mut self.e, &rules, id, now, SLEEP);
                assert_eq!(fair.dequeue_task(id, now, SLEEP), alone);
                self.schedule();
            }
            5 => {
                let to = TaskAttributes::nice(rng.below(40) as i8 - 20);
                let queue = &mut self.queue;
                queue.change(&mut self.e, &rules, id, now, to.load(), to.policy);
                fair.set_attributes(id, now, to);
            }
            6 if self.queue.curr.is_some_and(|id| self.e[id].on_rq) => {
                let nr = self.queue.nr_queued();
                let alone = crate::entity_tick(&mut self.queue, &mut self.e, &rules, now, nr);
                assert_eq!(fair.tick(CPU0, now), Some(alone));
            }
            7 => {
                let alone = self.queue.yield_task(&mut self.e, &rules, now);
                assert_eq!(fair.yield_task(CPU0, now), alone);
            }
            _ => self.schedule(),
        }
    }
}

#[test]
fn a_flat_cpu_is_its_queue() {
    for policy in ALL {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut world = World::new(policy, 8);
            let ids: Vec<EntityId> =
                (0..9).map(|_| world.spawn(CPU0, [0, 0, 5, -5, 19][rng.below(5)], GroupId::ROOT)).collect();
            // The bare queue begins as a copy.
            let (e, queue) = (world.fair.e.clone(), world.fair.root(CPU0).clone());
            let mut pair = Pair { world, e, queue };
            for step in 0..300 {
                pair.world.now += [0, 100, 40_000, 900_000, 4 * MS][rng.below(5)];
                let (what, id) = (rng.below(10), ids[rng.below(ids.len())]);
                pair.step(what, id, &mut rng);
                let at = format!("{policy} seed {seed} step {step} action {what}");
                assert_eq!(*pair.world.fair.root(CPU0), pair.queue, "{at}");
                for &id in &ids {
                    assert_eq!(pair.world.fair.e[id], pair.e[id], "{at}: {id:?}");
                }
            }
        }
    }
}
