//! Records that show a decision: picks, wake-up checks, ticks.

use super::*;

/// A known entity and the queue that it is on.
type Located = Option<(EntityId, u64)>;

impl Replay {
    pub(super) fn pick_in(
        &mut self,
        exec: usize,
        cfs: u64,
        curr: &Named,
        values: &QueueValues,
        picked_last: bool,
    ) {
        let window = self.cpus[exec].window.as_ref().map(|window| (window.cpu, window.cfs, window.short));
        if window.is_none() {
            let cpu = &mut self.cpus[exec];
            if !picked_last && cpu.root.is_none() {
                cpu.root = Some(cfs);
            }
            if cpu.root == Some(cfs) {
                cpu.chain.clear();
            }
            self.queue(cfs).cpu = Some(exec);
            self.arrive(exec);
        }
        let short = window.is_some_and(|(_, of, short)| short && of == Some(cfs));
        if let Some(id) = self.align(cfs, values.curr, Some(curr)) {
            self.blocked(cfs, id, &curr.values);
            self.observe(id, &curr.values, "current");
        }
        self.observe_queue(cfs, values, "pick");
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        let buddy = queue.rq.next.or(queue.rq.last).is_some();
        // The check asks for the pick proper; schedule() of EEVDF up to 6.12 looks at the buddy before.
        let before = self.rules.kernel < Kernel::V7_2 && window.is_none();
        let model = if self.rules.kernel.is_eevdf() && !before {
            let protect = if short { Protect::No } else { Protect::Yes };
            queue.rq.pick_eevdf(&self.e, &self.rules, protect)
        } else {
            queue.rq.pick(&self.e, &self.rules)
        };
        let several = values.nr > 1;
        let unseen = self.unseen_inside(cfs);
        let Some(queue) = self.queues.get(&cfs) else { return };
        // CFS has no sums that would show whether the virtual times of group entities are right.
        let untold = queue.grouped && !self.rules.kernel.is_eevdf();
        let scored = several && queue.complete && queue.matched && !untold && !unseen;
        let why = match (untold, queue.complete && !unseen) {
            (true, _) => GROUP_VALUES,
            (false, true) => SUMS,
            (false, false) => BEGAN,
        };
        let aside = (!scored).then_some(why);
        self.cpus[exec].pick = Some(OpenPick { cfs, model, several, buddy, aside });
    }

    pub(super) fn pick(&mut self, exec: usize, named: &Named) {
        let Some(open) = self.cpus[exec].pick.take() else { return };
        let OpenPick { cfs, model, several, buddy, aside } = open;
        let Some(id) = self.entity(named) else { return };
        let window = self.cpus[exec].window.is_some();
        if let Some(why) = aside.filter(|_| several) {
            self.aside_answered(why, Some(model == Some(id)));
        } else if several {
            let describe = |id: EntityId, e: &Entities, info: &[Info]| {
                format!("{} v {} d {}", info[id.index()].pid, e[id].vruntime, e[id].deadline)
            };
            let text = match model {
                Some(ours) if ours != id => format!(
                    "kernel {}, model {}",
                    describe(id, &self.e, &self.info),
                    describe(ours, &self.e, &self.info)
                ),
                _ => format!("kernel {}, model {model:?}", describe(id, &self.e, &self.info)),
            };
            if window {
                self.add(|report| &mut report.pick_wakeup, model == Some(id), || text);
            } else {
                if buddy {
                    self.add(|report| &mut report.pick_buddy, model == Some(id), || text.clone());
                }
                self.add(|report| &mut report.pick_schedule, model == Some(id), || text);
            }
        }
        self.queue(cfs).grouped |= named.group;
        if self.e[id].on_rq && self.info[id.index()].cfs == Some(cfs) {
            self.observe(id, &named.values, "picked");
        } else if named.values.on_rq {
            self.adopt(id, cfs, &named.values);
        }
        let cpu = &mut self.cpus[exec];
        cpu.picked_last = true;
        if named.values.delayed {
            if self.rules.kernel >= Kernel::V7_2 && self.e[id].on_rq {
                self.leave(id, DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() });
            }
            return;
        }
        if !window {
            cpu.chain.retain(|&(level, _)| level != cfs);
            cpu.chain.push((cfs, id));
            if !named.group {
                cpu.need = None;
            }
        }
    }

    pub(super) fn check_in(&mut self, exec: usize, check: &Check, own: Option<Resched>) {
        let target = usize::from(check.cpu);
        if target >= self.cpus.len() {
            return;
        }
        self.arrive_one(target, check.wakee.pid);
        let need = if target == exec { own } else { self.cpus[target].need };
        let text = [i64::from(check.cpu), check.wakee.pid, check.curr.pid];
        let root = self.cpus[target].root;
        let mut window = Window {
            cpu: target,
            cfs: root,
            answer: None,
            aside: None,
            already: false,
            short: false,
            seen: None,
            text,
        };
        match root {
            _ if check.curr.pid == 0 => self.aside(IDLE),
            // SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE, SCHED_EXT are 0, 3, 5, 7.
            _ if !matches!(check.wakee_policy, 0 | 3 | 5) => self.aside(CLASS),
            None => self.aside(BEGAN),
            Some(cfs) => self.check(cfs, check, need, &mut window),
        }
        self.cpus[exec].window = Some(window);
    }

    pub(super) fn check(&mut self, cfs: u64, check: &Check, need: Option<Resched>, window: &mut Window) {
        let place = |replay: &Self, pid: i64| {
            let id = replay.tasks.get(&pid).copied()?;
            replay.info[id.index()].cfs.map(|cfs| (id, cfs))
        };
        let (wakee, curr) = (place(self, check.wakee.pid), place(self, check.curr.pid));
        let elsewhere = |place: Option<(EntityId, u64)>| place.is_some_and(|(_, of)| of != cfs);
        if elsewhere(wakee) || elsewhere(curr) {
            self.check_inside(cfs, check, need, (wakee, curr), window);
            return;
        }
        let Some(wakee) = self.entity(&check.wakee) else {
            self.aside(BEGAN);
            return;
        };
        let Some(curr) = self.align(cfs, check.queue.curr, Some(&check.curr)) else {
            self.aside(BEGAN);
            return;
        };
        self.blocked(cfs, curr, &check.curr.values);
        let requeued = self.requeued(wakee, &check.wakee.values);
        if !requeued && !self.e[wakee].on_rq && check.wakee.values.on_rq {
            self.adopt(wakee, cfs, &check.wakee.values);
        }
        self.observe(wakee, &check.wakee.values, "wakee");
        if curr != wakee {
            self.observe(curr, &check.curr.values, "current");
        }
        self.observe_queue(cfs, &check.queue, "check");
        self.answer(cfs, (wakee, curr), check, need, window);
    }

    /// A check in which a task of a group takes part. The probe has the root queue's sums only: where both are on one queue,
    /// that queue as it was rebuilt decides; between two levels the groups' weights would have to be known.
    fn check_inside(
        &mut self,
        root: u64,
        check: &Check,
        need: Option<Resched>,
        (wakee, curr): (Located, Located),
        window: &mut Window,
    ) {
        if let Some((wakee, _)) = wakee {
            self.requeued(wakee, &check.wakee.values);
        }
        self.observe_queue(root, &check.queue, "check");
        window.already = match need {
            Some(Resched::Full) => true,
            Some(Resched::Lazy) => self.rules.kernel < Kernel::V7_2,
            None => false,
        };
        let (Some((wakee, cfs)), Some((curr, of))) = (wakee, curr) else {
            self.aside(GROUPS);
            return;
        };
        let running = self.queues.get(&cfs).is_some_and(|queue| queue.rq.curr == Some(curr));
        if cfs != of || !running || !self.e[wakee].on_rq {
            if !window.already {
                self.aside(GROUPS);
            }
            return;
        }
        self.blocked(cfs, curr, &check.curr.values);
        self.observe(wakee, &check.wakee.values, "wakee");
        if curr != wakee {
            self.observe(curr, &check.curr.values, "current");
        }
        window.cfs = Some(cfs);
        self.answer(cfs, (wakee, curr), check, need, window);
    }

    /// Puts the check to the model, on a copy: the records that follow go on with the queue as it is.
    fn answer(
        &mut self,
        cfs: u64,
        (wakee, curr): (EntityId, EntityId),
        check: &Check,
        need: Option<Resched>,
        window: &mut Window,
    ) {
        let policy = |number: u64| match number {
            3 => TaskPolicy::Batch,
            5 => TaskPolicy::Idle,
            _ => TaskPolicy::Normal,
        };
        let Some(queue) = self.queues.get(&cfs) else { return };
        if !queue.complete || !queue.matched {
            window.aside = Some(if queue.complete { SUMS } else { BEGAN });
        }
        let query = PreemptQuery {
            wakee,
            policy: policy(check.wakee_policy),
            curr_policy: policy(check.curr_policy),
            fork: check.flags & 4 != 0,
            sync: check.flags & 0x10 != 0,
            rq_selected: check.flags & 0x80 != 0,
            delayed: check.wakee.values.delayed,
            need_resched: need,
            now: check.clock,
        };
        window.short = self.rules.has(Feature::PreemptShort) && self.e[wakee].slice < self.e[curr].slice;
        let (mut rq, mut e) = (queue.rq.clone(), self.e.clone());
        let answer = wakeup_preempt(&mut rq, &mut e, &self.rules, &query);
        window.answer = Some((answer, rq, curr, e[curr]));
    }

    pub(super) fn check_out(&mut self, exec: usize) {
        let Some(window) = self.cpus[exec].window.take() else { return };
        let [cpu, wakee, running] = window.text;
        let Some((answer, rq, curr, after)) = window.answer else {
            if window.already {
                let text = || {
                    format!("cpu {cpu}: {wakee} woken, {running} to be rescheduled: kernel {:?}", window.seen)
                };
                self.add(|report| &mut report.preempt_already, window.seen.is_none(), text);
            }
            return;
        };
        let text = || {
            let reason = answer.reason;
            let (kernel, model) = (window.seen, answer.resched());
            format!(
                "cpu {cpu}: {wakee} woken, {running} running: kernel {kernel:?}, model {model:?} by {reason:?}"
            )
        };
        let agrees = window.seen == answer.resched();
        if let Some(why) = window.aside {
            // What the check leaves behind is not carried out on a queue that is not known.
            if window.already {
                let text = || {
                    format!("cpu {cpu}: {wakee} woken, {running} to be rescheduled: kernel {:?}", window.seen)
                };
                self.add(|report| &mut report.preempt_already, window.seen.is_none(), text);
            } else {
                self.aside_answered(why, Some(agrees));
            }
            return;
        }
        if answer.reason == PreemptReason::NeedsResched {
            self.add(|report| &mut report.preempt_already, agrees, text);
        } else {
            self.add(|report| &mut report.preempt, agrees, text);
        }
        // What the check leaves behind: marks and protection.
        let Some(queue) = window.cfs.and_then(|cfs| self.queues.get_mut(&cfs)) else { return };
        (queue.rq.next, queue.rq.last, queue.rq.skip) = (rq.next, rq.last, rq.skip);
        if queue.rq.curr == Some(curr) && self.e[curr].on_rq {
            self.e[curr].vprot = after.vprot;
            self.e[curr].vlag = after.vlag;
            self.info[curr.index()].touched = true;
        }
    }

    pub(super) fn tick(&mut self, exec: usize, cpu: usize, named: &Named, clock: u64, values: &QueueValues) {
        if cpu >= self.cpus.len() {
            return;
        }
        self.arrive(cpu);
        let Some(cfs) = self.cpus[cpu].root else {
            self.aside(BEGAN);
            return;
        };
        let id = self.tasks.get(&named.pid).copied();
        let Some(id) = id.filter(|id| self.info[id.index()].cfs == Some(cfs)) else {
            self.observe_queue(cfs, values, "tick");
            self.aside(GROUPS);
            return;
        };
        self.align(cfs, values.curr, Some(named));
        self.observe(id, &named.values, "tick");
        self.observe_queue(cfs, values, "tick");
        let Some(queue) = self.queues.get_mut(&cfs) else { return };
        if queue.rq.curr != Some(id) {
            return;
        }
        let nr = queue.rq.nr_queued();
        let scored = queue.complete && queue.matched && !queue.grouped;
        let why = if queue.complete { SUMS } else { BEGAN };
        let runs = clock.wrapping_sub(self.e[id].exec_start).cast_signed() > 0;
        let verdict = entity_tick(&mut queue.rq, &mut self.e, &self.rules, clock, values.h_nr);
        (queue.touched, self.info[id.index()].touched) = (true, true);
        self.cpus[exec].accounted = runs.then_some(named.pid);
        let (resched, aside) = (verdict.resched, (!scored).then_some(why));
        self.cpus[exec].expected =
            Some(Expected { cpu, resched, seen: None, tick: true, pid: named.pid, nr, aside });
    }
}
