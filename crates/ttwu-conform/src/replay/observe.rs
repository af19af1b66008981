//! What a record shows of an entity or a queue, compared with the model's and put in its place.

use super::*;

impl Replay {
    pub(super) fn entity(&mut self, named: &Named) -> Option<EntityId> {
        let known = self.addresses.get(&named.se).copied();
        if let Some(id) = known
            && (self.info[id.index()].group || self.info[id.index()].pid == named.pid)
        {
            return Some(id);
        }
        if !named.group && named.pid <= 0 {
            return None;
        }
        let id = match self.tasks.get(&named.pid) {
            Some(&id) if !named.group => id,
            _ => self.create(named),
        };
        if named.se != 0 {
            self.addresses.insert(named.se, id);
        }
        Some(id)
    }

    pub(super) fn create(&mut self, named: &Named) -> EntityId {
        let load = load_of(named.values.weight, named.group);
        let id = self.e.add(SchedEntity::new(load, TaskPolicy::Normal, &self.rules));
        self.info.push(Info { pid: named.pid, group: named.group, ..Info::default() });
        if !named.group {
            self.tasks.insert(named.pid, id);
        }
        id
    }

    pub(super) fn queue(&mut self, cfs: u64) -> &mut Queue {
        let kernel = self.rules.kernel;
        self.queues.entry(cfs).or_insert_with(|| Queue {
            rq: CfsRq::new(kernel),
            cpu: None,
            complete: false,
            matched: false,
            seen: false,
            touched: false,
            grouped: false,
            lost: false,
            zeros: VecDeque::new(),
        })
    }

    /// Can `slice` be the default one? A task keeps the value of its last placement, and during boot that grows with the CPUs
    /// on line.
    pub(super) fn is_base_slice(&self, slice: u64) -> bool {
        let tunables = &self.rules.tunables;
        let unscaled = tunables.base_slice_unscaled_ns;
        slice == tunables.base_slice_ns || (1..4).any(|factor| slice == factor * unscaled)
    }

    /// Compares what the model made of an entity with what is recorded, and takes the record's.
    pub(super) fn observe(&mut self, id: EntityId, values: &EntityValues, place: &'static str) {
        let info = self.info[id.index()];
        let ours = self.e[id];
        let pid = info.pid;
        let grouped =
            info.group || info.cfs.and_then(|cfs| self.queues.get(&cfs)).is_some_and(|queue| queue.grouped);
        let eevdf = self.rules.kernel.is_eevdf();
        let equal = ours.vruntime == values.vruntime
            && (!eevdf || (ours.deadline == values.deadline && ours.vlag == values.vlag))
            && (self.rules.kernel < Kernel::V7_2 || ours.vprot == values.vprot);
        if let Some(why) = self.info[id.index()].untold.take() {
            self.aside_answered(why, Some(equal));
        }
        if info.known && info.touched && grouped {
            self.aside_answered(GROUP_VALUES, Some(equal));
            self.info[id.index()].delayed = None;
        } else if info.known && info.touched && values.weight != ours.load.weight() {
            // A changed nice value shows only now; what was accounted since the change had another weight.
            self.aside_answered(REWEIGHTED, Some(equal));
            if let Some(queue) = info.cfs.and_then(|cfs| self.queues.get_mut(&cfs)) {
                queue.touched = false;
            }
        } else if info.known && info.touched {
            // What it left with is the reference point that the kernel read: ours, and as much as the results differ.
            let read = info
                .origin
                .map(|(of, zero)| (of, zero.wrapping_add(ours.vruntime.wrapping_sub(values.vruntime))));
            let had = read.is_some_and(|(of, read)| {
                self.queues.get(&of).is_some_and(|queue| queue.zeros.contains(&read))
            });
            self.add_told(
                |report| &mut report.vruntime,
                ours.vruntime == values.vruntime,
                had.then_some((Cause::Race, ORIGIN)),
                || format!("{place} pid {pid}: kernel {}, model {}", values.vruntime, ours.vruntime),
            );
            if eevdf {
                self.add(
                    |report| &mut report.deadline,
                    ours.deadline == values.deadline,
                    || format!("{place} pid {pid}: kernel {}, model {}", values.deadline, ours.deadline),
                );
                self.add(
                    |report| &mut report.vlag,
                    ours.vlag == values.vlag,
                    || format!("{place} pid {pid}: kernel {}, model {}", values.vlag, ours.vlag),
                );
            }
            if self.rules.kernel >= Kernel::V7_2 {
                self.add(
                    |report| &mut report.vprot,
                    ours.vprot == values.vprot,
                    || format!("{place} pid {pid}: kernel {}, model {}", values.vprot, ours.vprot),
                );
            }
        }
        if let Some(delayed) = self.info[id.index()].delayed.take() {
            self.add(
                |report| &mut report.delayed,
                delayed == values.delayed,
                || format!("{place} pid {pid}: kernel {}, model {delayed}", values.delayed),
            );
        }
        let load = load_of(values.weight, info.group);
        let policy = if values.weight == LoadWeight::of_idle_policy().weight() {
            TaskPolicy::Idle
        } else if ours.policy == TaskPolicy::Idle {
            TaskPolicy::Normal
        } else {
            ours.policy
        };
        let mut to = ours;
        // What was not the model's own, or cannot be followed, is taken in both ways.
        let follow = self.values == Values::Kept && info.known && !grouped && load == ours.load;
        if !follow {
            to.vruntime = values.vruntime;
            to.deadline = values.deadline;
            to.vlag = values.vlag;
            to.vprot = values.vprot;
            if info.known {
                self.report.resynchronised += u64::from(self.values == Values::Kept);
            }
        }
        to.load = load;
        to.slice = values.slice;
        to.custom_slice = info.group || !self.is_base_slice(values.slice);
        to.exec_start = values.exec_start;
        to.sum_exec_runtime = values.sum;
        to.prev_sum_exec_runtime = values.prev_sum;
        to.sched_delayed = values.delayed;
        to.rel_deadline = values.relative;
        to.policy = policy;
        let info = &mut self.info[id.index()];
        (info.known, info.touched, info.origin) = (true, false, None);
        match info.cfs.and_then(|cfs| self.queues.get_mut(&cfs)) {
            Some(queue) => queue.rq.correct(&mut self.e, &self.rules, id, &to),
            None => self.e[id] = to,
        }
    }

    /// Compares a queue's reference point with the recorded one, and takes the record's.
    pub(super) fn observe_zero(&mut self, cfs: u64, values: &QueueValues, place: &'static str) {
        let follow = self.values == Values::Kept;
        let unseen = self.unseen_inside(cfs);
        let queue = self.queue(cfs);
        let zero = queue.rq.zero_vruntime();
        let scored = queue.seen && queue.touched && queue.complete && !queue.grouped && !unseen;
        if !follow || !queue.complete || queue.grouped {
            queue.rq.set_zero_vruntime(values.zero);
        }
        (queue.seen, queue.touched) = (true, false);
        self.remember_zero(cfs);
        if scored {
            let text = || format!("{place}: kernel {}, model {zero}", values.zero);
            self.add(|report| &mut report.zero, zero == values.zero, text);
        }
    }

    /// An event of the queue is missing: what was followed of it is taken from the recording again.
    fn give_up(&mut self, cfs: u64, values: &QueueValues) {
        for info in self.info.iter_mut().filter(|info| info.cfs == Some(cfs) && info.known) {
            info.known = false;
            self.report.resynchronised += 1;
        }
        let queue = self.queue(cfs);
        queue.complete = false;
        queue.rq.set_zero_vruntime(values.zero);
    }

    /// Compares a queue's sums with the recorded ones.
    pub(super) fn observe_queue(&mut self, cfs: u64, values: &QueueValues, place: &'static str) {
        self.observe_zero(cfs, values, place);
        let queue = self.queue(cfs);
        let (sum, sum_weight) = queue.rq.sums();
        let (nr, weight) = (queue.rq.nr_queued(), queue.rq.load().weight());
        let equal =
            (nr, weight, sum, sum_weight) == (values.nr, values.weight, values.sum, values.sum_weight);
        let was_complete = queue.complete;
        queue.matched = equal;
        queue.complete |= equal;
        let lost = was_complete && !queue.grouped && (nr, weight) != (values.nr, values.weight);
        let was_lost = std::mem::replace(&mut queue.lost, lost);
        self.lost_here |= lost || was_lost;
        if lost && self.values == Values::Kept {
            self.give_up(cfs, values);
        }
        let next = self.addresses.get(&values.next).copied();
        // CFS shows no enqueue but a wake-up's, and what comes to a group's queue otherwise cannot be told from the CPU.
        let inside = !self.rules.kernel.is_eevdf()
            && self.info.iter().any(|info| info.group)
            && !self.cpus.iter().any(|cpu| cpu.root == Some(cfs));
        let queue = self.queue(cfs);
        queue.grouped |= inside;
        queue.rq.next = next;
        let grouped = queue.grouped;
        if grouped {
            self.aside_answered(GROUP_SUMS, Some(equal));
        } else if was_complete {
            self.add(
                |report| &mut report.rebuilt,
                equal,
                || {
                    format!(
                        "{place}: kernel {values:?}, model nr {nr} weight {weight} sums {sum} {sum_weight}"
                    )
                },
            );
        } else if !equal {
            // It becomes known with the first equal sums, so this one cannot be equal.
            self.aside(BEGAN);
        }
    }

    /// Makes the recorded running entity the model's, where a switch went unseen.
    pub(super) fn align(&mut self, cfs: u64, address: u64, named: Option<&Named>) -> Option<EntityId> {
        let recorded = match named {
            Some(named) if address != 0 => self.entity(&Named { se: address, ..*named }),
            _ => self.addresses.get(&address).copied(),
        };
        if address != 0 && recorded.is_none() {
            return None;
        }
        self.queue(cfs);
        let queue = self.queues.get_mut(&cfs)?;
        if queue.rq.curr == recorded {
            return recorded;
        }
        if queue.rq.curr.is_some() {
            queue.rq.put_prev(&mut self.e, &self.rules, 0);
        }
        let id = recorded?;
        if self.e[id].on_rq && self.info[id.index()].cfs == Some(cfs) {
            let now = self.e[id].exec_start;
            queue.rq.set_next(&mut self.e, &self.rules, id, now, SwitchIn::PutBack);
        } else if let Some(named) = named
            && named.values.on_rq
        {
            self.take_from(id);
            (self.info[id.index()].cfs, self.info[id.index()].touched) = (Some(cfs), false);
            self.observe(id, &named.values, "adopted");
            let queue = self.queues.get_mut(&cfs)?;
            queue.rq.adopt(&mut self.e, &self.rules, id, true);
        } else {
            self.take_from(id);
            self.info[id.index()].cfs = Some(cfs);
            let queue = self.queues.get_mut(&cfs)?;
            queue.rq.curr = Some(id);
        }
        self.info[id.index()].touched = false;
        Some(id)
    }

    /// Takes an entity out of the queue that the model has it on.
    pub(super) fn take_from(&mut self, id: EntityId) {
        if let Some(queue) = self.info[id.index()].cfs.and_then(|cfs| self.queues.get_mut(&cfs)) {
            queue.rq.forget(&mut self.e, &self.rules, id);
        }
        self.info[id.index()].cfs = None;
    }

    /// An entity that is not queued goes to `cfs`: no other queue has it running any more.
    pub(super) fn join(&mut self, id: EntityId, cfs: u64) {
        if self.info[id.index()].cfs != Some(cfs) {
            self.take_from(id);
            self.info[id.index()].cfs = Some(cfs);
        }
    }

    /// An entity that is queued on `cfs` without the model knowing.
    pub(super) fn adopt(&mut self, id: EntityId, cfs: u64, values: &EntityValues) {
        self.take_from(id);
        self.info[id.index()].touched = false;
        self.observe(id, values, "adopted");
        self.info[id.index()].cfs = Some(cfs);
        self.queue(cfs);
        if let Some(queue) = self.queues.get_mut(&cfs) {
            queue.rq.adopt(&mut self.e, &self.rules, id, false);
        }
    }

    /// A blocked running task, where the kernel has no dequeue probe: the record says that it is gone, or delayed.
    pub(super) fn blocked(&mut self, cfs: u64, id: EntityId, values: &EntityValues) {
        let queued = self.e[id].on_rq;
        if !queued || (values.on_rq && values.delayed == self.e[id].sched_delayed) {
            return;
        }
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if values.on_rq && !values.delayed {
            // The model delayed it, the kernel did not.
            return;
        }
        if self.e[id].sched_delayed {
            queue.rq.forget(&mut self.e, &self.rules, id);
            queue.rq.curr = Some(id);
            return;
        }
        let flags = DequeueFlags { sleep: true, ..DequeueFlags::default() };
        let out = queue.rq.dequeue(&mut self.e, &self.rules, id, 0, flags);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        self.info[id.index()].blocked = Some((out.delayed, values.delayed));
        if out.delayed && !values.on_rq {
            queue.rq.forget(&mut self.e, &self.rules, id);
            queue.rq.curr = Some(id);
            self.e[id].sched_delayed = false;
        }
        self.untold_lag(id, cfs);
    }

    /// A delayed task that is seen awake without having been placed was woken where it stood. Was it?
    pub(super) fn requeued(&mut self, wakee: EntityId, values: &EntityValues) -> bool {
        if !self.e[wakee].sched_delayed || values.delayed || !self.e[wakee].on_rq {
            return false;
        }
        self.requeue(wakee);
        true
    }

    pub(super) fn requeue(&mut self, wakee: EntityId) {
        if let Some(queue) = self.info[wakee.index()].cfs.and_then(|cfs| self.queues.get_mut(&cfs)) {
            queue.rq.requeue_delayed(&mut self.e, &self.rules, wakee, 0);
            (queue.touched, self.info[wakee.index()].touched) = (true, true);
        }
        // Whether the kernel had delayed it cannot be seen any more.
        self.info[wakee.index()].delayed = None;
    }

    /// 7.2: the recorded queue lacks just its running task, so that was dequeued.
    pub(super) fn lacks_current(&mut self, cfs: u64, values: &QueueValues) {
        let Some(queue) = self.queues.get(&cfs) else { return };
        let Some(curr) = queue.rq.curr.filter(|&id| self.e[id].on_rq) else { return };
        let lacks = (
            queue.rq.nr_queued().saturating_sub(1),
            queue.rq.load().weight().saturating_sub(self.e[curr].load.weight()),
        );
        if self.rules.kernel >= Kernel::V7_2 && lacks == (values.nr, values.weight) {
            self.blocked(cfs, curr, &EntityValues::default());
        }
    }

    /// A dequeue without a probe: before a migration, or while an attribute changes.
    pub(super) fn leave(&mut self, id: EntityId, flags: DequeueFlags) {
        let Some(cfs) = self.info[id.index()].cfs else { return };
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        queue.rq.dequeue(&mut self.e, &self.rules, id, 0, flags);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        self.untold_lag(id, cfs);
    }
}
