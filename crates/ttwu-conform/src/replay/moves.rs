//! Records that move entities: accounting, switches, placements, dequeues, migrations.

use super::*;

impl Replay {
    pub(super) fn runtime(&mut self, exec: usize, pid: i64, runtime: u64) {
        if self.cpus[exec].accounted.take() == Some(pid) {
            return;
        }
        let Some(&id) = self.tasks.get(&pid) else { return };
        let Some(cfs) = self.info[id.index()].cfs else { return };
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if queue.rq.curr != Some(id) {
            return;
        }
        let now = self.e[id].exec_start.wrapping_add(runtime);
        let undo = Undo { cfs, rq: queue.rq.clone(), id, entity: self.e[id], now };
        let resched = queue.rq.update_curr(&mut self.e, &self.rules, now);
        self.cpus[exec].undo = Some(undo);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        let (cpu, matched, complete) = (queue.cpu, queue.matched, queue.complete);
        let nr = queue.rq.nr_queued();
        let root = cpu.is_some_and(|cpu| self.cpus[cpu].root == Some(cfs));
        self.remember_zero(cfs);
        if self.cpus[exec].window.is_some() || self.rules.kernel < Kernel::V6_6 {
            return;
        }
        let aside = if self.cpus[exec].blind {
            Some(BLIND)
        } else if !self.info[id.index()].known || !complete {
            Some(BEGAN)
        } else if !matched {
            Some(SUMS)
        } else if !root {
            Some(GROUPS)
        } else {
            None
        };
        match (cpu, aside) {
            (Some(cpu), _) => {
                self.cpus[exec].expected =
                    Some(Expected { cpu, resched, seen: None, tick: false, pid, nr, aside });
            }
            (None, Some(why)) => self.aside(why),
            (None, None) => {}
        }
    }

    /// Where there is no dequeue probe, the switch tells whether the blocked task's state forbids a delay.
    pub(super) fn settle_delay(&mut self, exec: usize, prev: i64, special: bool) {
        let Some(&id) = self.tasks.get(&prev) else { return };
        let Some((model, kernel)) = self.info[id.index()].blocked.take() else { return };
        if !self.rules.has(Feature::DelayDequeue) {
            return;
        }
        let model = model && !special;
        let cfs = self.info[id.index()].cfs;
        if cfs.and_then(|cfs| self.queues.get(&cfs)).is_some_and(|queue| queue.grouped) {
            return;
        }
        let text = || format!("cpu {exec} pid {prev}: kernel {kernel}, model {model}");
        self.add(|report| &mut report.delayed, model == kernel, text);
    }

    pub(super) fn switch(&mut self, exec: usize, prev: i64, prev_blocked: bool, next: i64) {
        self.arrive(exec);
        if prev_blocked
            && let Some(&id) = self.tasks.get(&prev)
            && let Some(cfs) = self.info[id.index()].cfs
            && self.queues.get(&cfs).is_some_and(|queue| queue.rq.curr == Some(id))
        {
            let gone = EntityValues {
                on_rq: self.e[id].sched_delayed,
                delayed: self.e[id].sched_delayed,
                ..EntityValues::default()
            };
            self.blocked(cfs, id, &gone);
        }
        let mut chain = std::mem::take(&mut self.cpus[exec].chain);
        if let Some(&id) = self.tasks.get(&next) {
            match (self.info[id.index()].cfs, chain.iter().any(|&(_, picked)| picked == id)) {
                // A buddy is taken without a pick.
                (Some(cfs), false) => {
                    self.buddy_taken(exec, cfs, id);
                    chain.retain(|&(level, _)| level != cfs);
                    chain.push((cfs, id));
                }
                (_, true) => {}
                (None, false) => chain.clear(),
            }
        } else {
            chain.clear();
        }
        for (&cfs, queue) in &mut self.queues {
            let chosen = chain.iter().find(|&&(level, _)| level == cfs).map(|&(_, id)| id);
            if queue.cpu != Some(exec) && chosen.is_none() || queue.rq.curr == chosen {
                continue;
            }
            if queue.rq.curr.is_some() {
                queue.rq.put_prev(&mut self.e, &self.rules, 0);
            }
            let Some(id) = chosen.filter(|id| self.info[id.index()].cfs == Some(cfs)) else { continue };
            let now = self.e[id].exec_start;
            queue.cpu = Some(exec);
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::Picked);
            self.info[id.index()].touched = true;
        }
        let cpu = &mut self.cpus[exec];
        (cpu.current, cpu.need) = (next, None);
    }

    /// A switch without a pick: EEVDF up to 6.12 takes the buddy before the pick proper.
    fn buddy_taken(&mut self, exec: usize, cfs: u64, id: EntityId) {
        let (least, most) = (Kernel::Eevdf202304, Kernel::V7_2);
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        let known = queue.complete && queue.matched && !queue.grouped && queue.cpu == Some(exec);
        if self.rules.kernel < least || self.rules.kernel >= most || queue.rq.nr_queued() < 2 || !known {
            return;
        }
        let model = queue.rq.pick(&self.e, &self.rules);
        let name = |id: EntityId| self.info[id.index()].pid;
        let text = format!(
            "cpu {exec}: kernel {} without a pick, buddy {:?}, model {:?}",
            name(id),
            queue.rq.next.map(name),
            model.map(name)
        );
        self.add(|report| &mut report.pick_buddy, model == Some(id), || text);
    }

    pub(super) fn wakeup_new(&mut self, pid: i64, cpu: usize) {
        if self.rules.kernel.is_eevdf() || cpu >= self.cpus.len() {
            return;
        }
        if let Some(&id) = self.tasks.get(&pid) {
            self.comes(cpu, id);
            self.arrive(cpu);
        }
    }

    /// CFS: a task is on its way to `cpu`. Where that queue is not known yet, neither its time nor its order there is.
    fn comes(&mut self, cpu: usize, id: EntityId) {
        self.info[id.index()].known &= self.cpus[cpu].root.is_some();
        self.cpus[cpu].arriving.push(id);
    }

    /// CFS: of a batch only the one whose check this is has been queued for certain.
    pub(super) fn arrive_one(&mut self, cpu: usize, pid: i64) {
        let wakee = self.tasks.get(&pid).copied();
        let others: Vec<EntityId> = std::mem::take(&mut self.cpus[cpu].arriving);
        let (own, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|&id| Some(id) == wakee);
        self.cpus[cpu].arriving = own;
        let batch = !self.cpus[cpu].arriving.is_empty();
        if !batch {
            self.cpus[cpu].arriving = others;
            self.arrive(cpu);
            return;
        }
        self.arrive(cpu);
        self.cpus[cpu].arriving = others;
    }

    /// CFS: queues the tasks that have come to `cpu` without a probe of their own.
    pub(super) fn arrive(&mut self, cpu: usize) {
        if cpu >= self.cpus.len() || self.cpus[cpu].arriving.is_empty() {
            return;
        }
        let Some(cfs) = self.cpus[cpu].root else { return };
        self.queue(cfs);
        // A batch is attached in the reverse of the order in which it was detached.
        let arriving = std::mem::take(&mut self.cpus[cpu].arriving);
        for id in arriving.into_iter().rev() {
            if self.e[id].on_rq {
                continue;
            }
            self.join(id, cfs);
            let Some(queue) = self.queues.get_mut(&cfs) else { return };
            queue.rq.enqueue(&mut self.e, &self.rules, id, 0, EnqueueFlags::default());
            queue.touched = true;
            let info = &mut self.info[id.index()];
            (info.relative, info.touched, info.known) = (false, true, info.known && queue.seen);
        }
    }

    pub(super) fn place_eevdf(&mut self, cfs: u64, flags: u64, named: &Named, values: &QueueValues) {
        let initial = flags & if self.rules.kernel >= Kernel::V7_2 { 0x8_0000 } else { 0x80 } != 0;
        let migrated = flags & if self.rules.kernel >= Kernel::V7_2 { 0x4_0000 } else { 0x40 } != 0;
        if initial && !named.group {
            if let Some(id) = self.tasks.remove(&named.pid) {
                self.take_from(id);
            }
            self.addresses.remove(&named.se);
        }
        let Some(id) = self.entity(named) else { return };
        self.queue(cfs).grouped |= named.group;
        if self.e[id].on_rq && named.values.on_rq && self.e[id].sched_delayed {
            // A delayed task is woken and placed again.
            if let Some(queue) = self.queues.get_mut(&cfs) {
                queue.rq.requeue_delayed(&mut self.e, &self.rules, id, 0);
                (queue.touched, self.info[id.index()].touched) = (true, true);
            }
            if let Some(delayed) = self.info[id.index()].delayed.take() {
                let text = || format!("woken: kernel true, model {delayed}");
                self.add(|report| &mut report.delayed, delayed, text);
            }
            return;
        }
        if self.e[id].on_rq {
            self.leave(id, DequeueFlags { save: true, ..DequeueFlags::default() });
        }
        let load = load_of(named.values.weight, named.group);
        if !self.e[id].on_rq && load != self.e[id].load {
            CfsRq::reweight_unqueued(&mut self.e, &self.rules, id, load);
            self.info[id.index()].touched = true;
        }
        self.observe(id, &named.values, "placed");
        self.align(cfs, values.curr, None);
        self.lacks_current(cfs, values);
        self.observe_queue(cfs, values, "place");
        self.join(id, cfs);
        let enqueue = EnqueueFlags { wakeup: flags & 1 != 0, migrated, initial };
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        // On a queue that is not known its place cannot be told.
        let told = queue.complete && queue.matched;
        if self.info[id.index()].known && !told {
            self.info[id.index()].untold = Some(if queue.complete { SUMS } else { BEGAN });
        }
        self.info[id.index()].known &= told;
        queue.rq.enqueue(&mut self.e, &self.rules, id, 0, enqueue);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        let running = !named.group && self.cpus.iter().any(|cpu| cpu.current == named.pid);
        if running && queue.rq.curr.is_none() {
            let now = self.e[id].exec_start;
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::PutBack);
        }
    }

    pub(super) fn place_cfs(&mut self, cfs: u64, flags: u64, named: &Named, values: &QueueValues) {
        let initial = flags & 1 != 0;
        if initial && !named.group {
            if let Some(id) = self.tasks.remove(&named.pid) {
                self.take_from(id);
            }
            self.addresses.remove(&named.se);
        }
        let Some(id) = self.entity(named) else { return };
        self.queue(cfs).grouped |= named.group;
        if let Some(cpu) = self.queue(cfs).cpu {
            self.arrive(cpu);
        }
        if self.e[id].on_rq {
            self.take_from(id);
        }
        self.align(cfs, values.curr, None);
        // The reference point that the placement starts from is recorded with it.
        self.observe_zero(cfs, values, "place");
        if self.info[id.index()].relative && !initial {
            let zero = self.queue(cfs).rq.zero_vruntime();
            self.e[id].vruntime = self.e[id].vruntime.wrapping_add(zero);
            (self.info[id.index()].relative, self.info[id.index()].touched) = (false, true);
        }
        self.join(id, cfs);
        self.observe(id, &named.values, "placed");
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if initial {
            self.info[id.index()].known &= queue.complete && queue.matched;
            queue.rq.fork_cfs(&mut self.e, &self.rules, id, 0);
            self.info[id.index()].relative = true;
        } else {
            let woken = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            queue.rq.enqueue(&mut self.e, &self.rules, id, 0, woken);
        }
        (queue.touched, self.info[id.index()].touched) = (true, true);
        self.observe_queue(cfs, values, "place");
    }

    pub(super) fn dequeue(&mut self, exec: usize, flags: u64, named: &Named, values: &QueueValues) {
        let Some(id) = self.entity(named) else { return };
        let Some(cfs) = self.info[id.index()].cfs else { return };
        if let Some(cpu) = self.queue(cfs).cpu {
            self.arrive(cpu);
        }
        if !self.e[id].on_rq {
            self.adopt(id, cfs, &named.values);
        }
        self.align(cfs, values.curr, None);
        self.observe(id, &named.values, "dequeued");
        self.observe_queue(cfs, values, "dequeue");
        self.untold_lag(id, cfs);
        self.cpus[exec].pending = Some(Pending::Dequeue { id, flags, accounted: false });
    }

    pub(super) fn complete(&mut self, pending: Pending) {
        let (Pending::Dequeue { id, .. } | Pending::Yield { id, .. }) = pending;
        let Some(cfs) = self.info[id.index()].cfs else { return };
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if !self.e[id].on_rq {
            return;
        }
        (queue.touched, self.info[id.index()].touched) = (true, true);
        let Pending::Dequeue { flags, .. } = pending else {
            queue.rq.yield_task(&mut self.e, &self.rules, 0);
            return;
        };
        // DEQUEUE_SAVE alone keeps the order for an attribute; with DEQUEUE_MOVE the task changes its group.
        let returns = flags & 2 != 0;
        let flags = DequeueFlags {
            sleep: flags & 1 != 0,
            special: flags & 0x10 != 0,
            delayed: flags & 0x200 != 0,
            save: returns && flags & 4 == 0,
        };
        let out = queue.rq.dequeue(&mut self.e, &self.rules, id, 0, flags);
        self.remember_zero(cfs);
        if flags.delayed
            && let Some(delayed) = self.info[id.index()].delayed.take()
        {
            let text = || format!("finished: kernel true, model {delayed}");
            self.add(|report| &mut report.delayed, delayed, text);
        }
        if self.rules.has(Feature::DelayDequeue) && flags.sleep && !flags.special && !flags.delayed {
            self.info[id.index()].delayed = Some(out.delayed);
        }
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if self.rules.kernel.is_eevdf() || !returns {
            self.info[id.index()].detached = !flags.sleep;
            return;
        }
        // CFS puts it back without a probe.
        let running = queue.rq.curr == Some(id);
        if running {
            queue.rq.put_prev(&mut self.e, &self.rules, 0);
        }
        queue.rq.enqueue(&mut self.e, &self.rules, id, 0, EnqueueFlags::default());
        if running {
            let now = self.e[id].exec_start;
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::PutBack);
        }
    }

    /// A delayed task was woken where it stood. Where its lag was positive its placement said so before; where the CPU is idle
    /// no check says it either.
    pub(super) fn woken(&mut self, exec: usize, pid: i64) {
        let Some(&id) = self.tasks.get(&pid) else { return };
        if !self.e[id].on_rq || !self.e[id].sched_delayed {
            return;
        }
        self.requeue(id);
        if !self.cpus[exec].blind {
            return;
        }
        // It may have been placed: that would be left out too.
        self.info[id.index()].known = false;
        if let Some(queue) = self.info[id.index()].cfs.and_then(|cfs| self.queues.get_mut(&cfs)) {
            queue.complete = false;
        }
    }

    pub(super) fn yields(&mut self, exec: usize, cpu: usize, curr: &Named, values: &QueueValues) {
        if cpu >= self.cpus.len() {
            return;
        }
        let Some(cfs) = self.cpus[cpu].root else { return };
        let Some(&id) = self.tasks.get(&curr.pid) else { return };
        if self.info[id.index()].cfs != Some(cfs) {
            return;
        }
        self.observe(id, &curr.values, "yield");
        self.observe_queue(cfs, values, "yield");
        self.cpus[exec].pending = Some(Pending::Yield { id, accounted: false });
    }

    pub(super) fn migrate(&mut self, to: usize, from: usize, named: &Named) {
        let Some(id) = self.entity(named) else { return };
        self.arrive(from);
        let cfs = self.info[id.index()].cfs;
        if self.rules.kernel.is_eevdf() {
            if self.e[id].on_rq {
                self.leave(id, DequeueFlags::default());
            }
            self.observe(id, &named.values, "migrated");
            return;
        }
        if named.values.on_rq || self.e[id].on_rq || to >= self.cpus.len() {
            return;
        }
        let waking = !std::mem::take(&mut self.info[id.index()].detached) && !self.info[id.index()].relative;
        self.observe(id, &named.values, "migrated");
        if waking {
            if let Some(queue) = cfs.and_then(|cfs| self.queues.get(&cfs)).filter(|queue| queue.seen) {
                let zero = queue.rq.zero_vruntime();
                self.e[id].vruntime = self.e[id].vruntime.wrapping_sub(zero);
                self.info[id.index()].touched = true;
                self.info[id.index()].origin = cfs.map(|cfs| (cfs, zero));
            } else {
                self.info[id.index()].known = false;
            }
            self.info[id.index()].relative = true;
        } else {
            self.comes(to, id);
        }
        self.info[id.index()].cfs = None;
    }
}
