//! What holds after any operation, in every generation, with and without groups.

use super::*;
use crate::queue::tests::{ALL, check_sums, naive_pick};
use ttwu_testing::Rng;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ways {
    All,
    /// No time between a dequeue and the switch, no new weight for a sleeping task, no weights of tens of thousands.
    Tidy,
}

impl Ways {
    fn nice(self, nice: i8) -> i8 {
        match self {
            Self::All => nice,
            Self::Tidy => nice.max(-1),
        }
    }
}

/// Random life of four CPUs; `check` sees it after every step.
fn live(policy: &str, grouped: bool, seed: u64, ways: Ways, check: &mut dyn FnMut(&World, &str)) {
    let mut rng = Rng::new(seed);
    let mut world = World::new(policy, 4);
    let mut groups = vec![GroupId::ROOT];
    if grouped {
        for parent in [0, 0, 1] {
            let shares = [1024, 512, 2048][rng.below(3)];
            groups.push(world.fair.add_group(groups[parent], shares));
        }
    }
    let mut tasks = Vec::new();
    for _ in 0..14 {
        let cpu = CpuId::new(rng.below(4) as u16);
        let nice = ways.nice([0, 0, 0, 5, -5, 19, -20][rng.below(7)]);
        let group = groups[rng.below(groups.len())];
        tasks.push(world.spawn(cpu, nice, group));
    }
    for step in 0..250 {
        let id = tasks[rng.below(tasks.len())];
        let cpu = CpuId::new(rng.below(4) as u16);
        world.now += [0, 100, 30_000, 700_000, 3 * MS][rng.below(5)];
        let what = rng.below(12);
        // What makes the averages of a queue stray from its entities', in the kernel too.
        let strays = match what {
            5 => true,
            6 => !world.fair.is_queued(id),
            _ => false,
        };
        if ways == Ways::All || !strays {
            act(&mut world, &mut rng, what, id, cpu, &groups, ways);
        }
        check(&world, &format!("{policy} grouped {grouped} seed {seed} step {step} action {what}"));
    }
}

fn act(
    world: &mut World,
    rng: &mut Rng,
    what: usize,
    id: EntityId,
    cpu: CpuId,
    groups: &[GroupId],
    ways: Ways,
) {
    let at = world.fair.cpu_of(id).expect("placed");
    let running = world.fair.curr(at) == Some(id);
    let queued = world.fair.is_queued(id);
    let now = world.now;
    match what {
        0 | 1 if world.fair.is_delayed(id) => {
            world.wake(at, id);
        }
        0..=2 if !queued && !running => {
            world.wake(cpu, id);
        }
        // Blocked, and woken before it is switched away from.
        0 if !queued => {
            world.wake(at, id);
        }
        3 | 4 if world.fair.curr(cpu).is_some_and(|id| world.fair.is_queued(id)) => {
            world.block(cpu);
        }
        5 if running && queued && !world.fair.is_delayed(id) => {
            world.fair.dequeue_task(id, now, SLEEP);
        }
        6 => {
            let policy = [TaskPolicy::Normal, TaskPolicy::Batch, TaskPolicy::Idle][rng.below(3)];
            let nice = ways.nice(rng.below(40) as i8 - 20);
            world.fair.set_attributes(id, now, TaskAttributes { nice, policy, slice_ns: None });
        }
        7 => world.fair.set_group(id, groups[rng.below(groups.len())], now),
        8 if queued && !running => {
            world.fair.detach_task(id, now);
            world.fair.attach_task(cpu, id, now);
        }
        9 => {
            world.fair.tick(cpu, now);
        }
        10 if rng.below(2) == 0 => {
            world.fair.yield_task(cpu, now);
        }
        10 => world.fair.update_blocked_averages(cpu, now),
        _ => {
            world.schedule(cpu);
        }
    }
}

fn each_life(seeds: u64, ways: Ways, check: &mut dyn FnMut(&World, &str)) {
    for policy in ALL {
        for grouped in [false, true] {
            for seed in 0..seeds {
                live(policy, grouped, seed, ways, check);
            }
        }
    }
}

#[test]
pub(super) fn counters_sums_and_trees_stay_consistent() {
    each_life(6, Ways::All, &mut |world, at| {
        let fair = &world.fair;
        let mut members = vec![0; fair.e.len()];
        for (number, queue) in fair.q.iter().enumerate() {
            let all = check_sums(&queue.cfs, &fair.e, &fair.rules, at);
            let (mut queued, mut runnable, mut idle) = (0, 0, 0);
            for &id in &all {
                members[id.index()] += 1;
                assert_eq!(fair.queue_of(id), number, "{at}: {id:?} is on its queue");
                let own = fair.x[id.index()].own;
                if own == NONE {
                    queued += 1;
                    runnable += u32::from(!fair.e[id].sched_delayed);
                    idle += u32::from(fair.e[id].policy == TaskPolicy::Idle);
                } else {
                    let below = &fair.q[own as usize];
                    assert_eq!(
                        below.cfs.nr_queued() == 0,
                        fair.e[id].sched_delayed,
                        "{at}: a queued group is empty just if it is delayed"
                    );
                    queued += below.h_nr_queued;
                    runnable += below.h_nr_runnable;
                    idle += below.h_nr_idle;
                }
            }
            let counted = (queue.h_nr_queued, queue.h_nr_runnable, queue.h_nr_idle);
            assert_eq!(counted, (queued, runnable, idle), "{at}: counters of queue {number}");
        }
        for (index, &count) in members.iter().enumerate() {
            let id = EntityId(index as u32);
            assert_eq!(count, u32::from(fair.e[id].on_rq), "{at}: {id:?} is queued once or not");
        }
    });
}

#[test]
fn lists_and_estimates_hold_the_tasks_queued() {
    each_life(3, Ways::All, &mut |world, at| {
        let fair = &world.fair;
        for cpu in (0..4).map(CpuId::new) {
            let mut listed: Vec<EntityId> = fair.cfs_tasks_from_back(cpu).collect();
            let mut est = 0;
            for &id in &listed {
                assert_eq!(fair.cpu_of(id), Some(cpu), "{at}");
                est += if fair.is_delayed(id) { 0 } else { fair.task_util_est(id) };
            }
            listed.sort_unstable();
            let queued =
                |id: &EntityId| fair.is_task(*id) && fair.e[*id].on_rq && fair.cpu_of(*id) == Some(cpu);
            let expected: Vec<EntityId> =
                (0..fair.e.len()).map(|index| EntityId(index as u32)).filter(queued).collect();
            assert_eq!(listed, expected, "{at}: list of {cpu}");
            assert_eq!(fair.nr_running(cpu) as usize, listed.len(), "{at}: nr_running");
            assert_eq!(fair.util_est(cpu), est, "{at}: util_est of {cpu}");
        }
    });
}

#[test]
fn picks_equal_a_search_on_every_level() {
    for policy in ALL.into_iter().filter(|&policy| policy != "eevdf-2023-04") {
        for seed in 0..4 {
            live(policy, true, seed, Ways::All, &mut |world, at| {
                let mut fair = world.fair.clone();
                for queue in &mut fair.q {
                    (queue.cfs.next, queue.cfs.last, queue.cfs.skip) = (None, None, None);
                }
                for cpu in (0..4).map(CpuId::new) {
                    let picked = fair.clone().pick_next(cpu, world.now);
                    assert_eq!(picked, search(&mut fair, cpu, world.now), "{at}: {cpu}");
                }
            });
        }
    }
}

/// The pick by a look at every entity of each level. Where several are equally good, the queue's own answer among them.
fn search(fair: &mut Fair, cpu: CpuId, now: u64) -> Option<EntityId> {
    let mut queue = cpu.index();
    loop {
        if let Some(curr) = fair.q[queue].cfs.curr.filter(|&id| fair.e[id].on_rq) {
            let Fair { rules, e, q, .. } = &mut *fair;
            q[queue].cfs.update_curr(e, rules, now);
            q[queue].cfs.clear_buddies(curr);
        }
        let cfs = &fair.q[queue].cfs;
        let best = naive_pick(cfs, &fair.e, &fair.rules);
        let own_answer = cfs.clone().pick(&fair.e, &fair.rules);
        let id = own_answer.filter(|id| best.contains(id)).or(best.first().copied())?;
        if fair.e[id].sched_delayed {
            fair.finish_delayed(id, now);
            for queue in &mut fair.q {
                queue.cfs.next = None;
            }
            queue = cpu.index();
        } else if fair.is_task(id) {
            return Some(id);
        } else {
            queue = fair.x[id.index()].own as usize;
        }
    }
}

/// Every queue's averages against the sum of those of the entities that belong to it, all brought to one time.
///
/// They are kept apart and rounded apart, so that they stray by some units for each entity. A part attached twice, or not removed, is hundreds.
#[test]
pub(super) fn averages_of_queues_are_those_of_their_entities() {
    let mut compared = 0;
    each_life(6, Ways::Tidy, &mut |world, at| {
        let mut fair = world.fair.clone();
        let mut sums = vec![[0u64; 3]; fair.q.len()];
        for cpu in (0..4).map(CpuId::new) {
            fair.update_blocked_averages(cpu, world.now);
        }
        for id in (0..fair.e.len()).map(|index| EntityId(index as u32)) {
            if fair.x[id.index()].queue != NONE && fair.has_history(id) {
                fair.age(id, world.now);
                let sum = &mut sums[fair.queue_of(id)];
                *sum = add(*sum, fair.entity_avg(id));
            }
        }
        for (number, (queue, sum)) in fair.q.iter().zip(&sums).enumerate() {
            let [load, util, runnable] = add([0; 3], &queue.avg);
            let at = format!("{at}: queue {number}");
            assert!(load.abs_diff(sum[0]) <= 48, "{at}: load {load} of {sum:?}");
            assert!(util.abs_diff(sum[1]) <= 48, "{at}: util {util} of {sum:?}");
            // From v6.12 on a group's entity learns late that a task inside is delayed.
            let late = fair.rules.kernel >= Kernel::V6_12 && at.contains("grouped true");
            assert!(late || runnable.abs_diff(sum[2]) <= 80, "{at}: runnable {runnable} of {sum:?}");
            compared += u32::from(util > 200);
        }
    });
    assert!(compared > 10_000, "{compared} queues had anything to compare");
}

fn add(sum: [u64; 3], avg: &SchedAvg) -> [u64; 3] {
    [sum[0] + avg.load_avg, sum[1] + avg.util_avg, sum[2] + avg.runnable_avg]
}

/// What the laws above are tried on: states that are rare unless looked for.
#[test]
fn random_lives_reach_the_rare_states() {
    let mut seen = [0; 5];
    each_life(6, Ways::All, &mut |world, _| {
        let fair = &world.fair;
        let ids = || (0..fair.e.len()).map(|index| EntityId(index as u32));
        let running_of = |id: EntityId| fair.q[fair.queue_of(id)].cfs.curr == Some(id);
        let states = [
            ids().any(|id| fair.is_task(id) && fair.is_delayed(id)),
            ids().any(|id| !fair.is_task(id) && fair.is_delayed(id)),
            ids().any(|id| fair.x[id.index()].queue != NONE && running_of(id) && !fair.e[id].on_rq),
            fair.q.iter().any(|queue| queue.depth == 2 && queue.cfs.nr_queued() > 1),
            fair.q.iter().any(|queue| queue.entity != NONE && queue.cfs.next.is_some()),
        ];
        for (seen, state) in seen.iter_mut().zip(states) {
            *seen += u32::from(state);
        }
    });
    assert!(seen.iter().all(|&times| times > 100), "{seen:?}");
}
