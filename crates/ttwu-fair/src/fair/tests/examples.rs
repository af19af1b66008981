//! Worked examples and what the threads say of groups.

use super::*;
use crate::queue::tests::ALL;
use crate::{LOAD_AVG_MAX, PreemptReason, Resched};

const EEVDF: [&str; 4] = ["eevdf-2023-04", "linux-6.6", "linux-6.12", "linux-7.2"];

/// Ticks of 1 ms for `ms`; whoever asks for a reschedule gets it.
fn run(world: &mut World, cpus: u16, ms: u64) {
    for _ in 0..ms {
        world.now += MS;
        for cpu in (0..cpus).map(CpuId::new) {
            if world.fair.tick(cpu, world.now).is_some_and(|tick| tick.resched.is_some()) {
                world.schedule(cpu);
            }
        }
    }
}

#[test]
fn flat_tasks_share_a_cpu_by_weight() {
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let heavy = world.spawn(CPU0, 0, GroupId::ROOT);
        let light = world.spawn(CPU0, 5, GroupId::ROOT);
        world.schedule(CPU0);
        run(&mut world, 1, 10_000);
        let (heavy, light) = (world.run_time(heavy), world.run_time(light));
        let share = heavy * 1000 / (heavy + light);
        assert!((745..=765).contains(&share), "{policy}: {share} of 1000, by weight 753");
    }
}

#[test]
fn a_cpu_is_shared_by_groups_first() {
    // Three tasks of one group beside one of another, and a task of the root beside both: a third each.
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let (many, one) =
            (world.fair.add_group(GroupId::ROOT, 1024), world.fair.add_group(GroupId::ROOT, 1024));
        let tasks: Vec<EntityId> = [many, many, many, one, GroupId::ROOT]
            .into_iter()
            .map(|group| world.spawn(CPU0, 0, group))
            .collect();
        world.schedule(CPU0);
        run(&mut world, 1, 10_000);
        let shares: Vec<u64> = tasks.iter().map(|&id| world.run_time(id) / 10_000_000).collect();
        for (share, expected) in shares.iter().zip([111, 111, 111, 333, 333]) {
            assert!(share.abs_diff(expected) <= 15, "{policy}: {shares:?} of 1000");
        }
    }
}

#[test]
fn shares_count_against_each_other_and_change() {
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let (left, right) =
            (world.fair.add_group(GroupId::ROOT, 3072), world.fair.add_group(GroupId::ROOT, 1024));
        let tasks = [world.spawn(CPU0, 0, left), world.spawn(CPU0, 0, right)];
        world.schedule(CPU0);
        run(&mut world, 1, 5_000);
        let before = tasks.map(|id| world.run_time(id) / 5_000_000);
        world.fair.set_shares(left, 1024, world.now);
        run(&mut world, 1, 5_000);
        let after = tasks.map(|id| world.run_time(id) / 5_000_000);
        for (share, expected) in [(before[0], 750), (before[1], 250), (after[0] - before[0], 500)] {
            assert!(share.abs_diff(expected) <= 20, "{policy}: {before:?} {after:?}");
        }
    }
}

#[test]
fn shares_are_spread_over_the_cpus_by_load() {
    // One hog of the group on each of four CPUs: a quarter of the shares each. The kernel's formula, at the start of
    // which each CPU does not yet know of the others.
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let group = world.fair.add_group(GroupId::ROOT, 1024);
        for cpu in (0..4).map(CpuId::new) {
            world.spawn(cpu, 0, group);
            world.schedule(cpu);
            let entity = world.fair.group_entity(group, cpu).expect("made");
            let weight = world.fair.entities()[entity].load.scaled_down();
            let first = u64::from(cpu.number()) + 1;
            assert!(weight.abs_diff(1024 / first) <= 1, "{policy}: {weight} on the CPU number {first}");
        }
        run(&mut world, 4, 1_000);
        for cpu in (0..4).map(CpuId::new) {
            let entity = world.fair.group_entity(group, cpu).expect("made");
            let weight = world.fair.entities()[entity].load.scaled_down();
            assert!(weight.abs_diff(256) <= 4, "{policy}: {weight} on {cpu}");
        }
    }
}

/// The autogroup effect of the EEVDF thread: wake-up granularity is scaled by the weight of the *group's* entity.
#[test]
fn autogroup_makes_cfs_wakees_wait() {
    for policy in ["linux-5.9", "linux-5.15", "linux-6.1"] {
        // Tasks of the wakee's session on other CPUs; what the entity weighs then; the granularity, ms.
        for (others, weight, granularity_ms) in [(0, 1024, 4), (2, 341, 12), (3, 256, 16), (6, 146, 28)] {
            let mut world = World::new(policy, 8);
            let autogroup = |world: &mut World| world.fair.add_group(GroupId::ROOT, 1024);
            let (session, other) = (autogroup(&mut world), autogroup(&mut world));
            let wakee = world.spawn(CPU0, 0, session);
            world.schedule(CPU0);
            world.block(CPU0);
            world.spawn(CPU0, 0, other);
            world.schedule(CPU0);
            for cpu in (1..=others).map(CpuId::new) {
                world.spawn(cpu, 0, session);
                world.schedule(cpu);
            }
            run(&mut world, 8, 1_000);
            // A long sleeper's credit is half the latency: 12 ms.
            let answer = world.wake(CPU0, wakee).expect("a task runs");
            let entity = world.fair.group_entity(session, CPU0).expect("made");
            let got = world.fair.entities()[entity].load;
            assert!(got.scaled_down().abs_diff(weight) <= 4, "{policy} {others}: {}", got.scaled_down());
            let granularity = crate::calc_delta_fair(4 * MS, got);
            assert!(
                granularity.abs_diff(granularity_ms * MS) <= MS / 2,
                "{policy} {others}: {granularity} ns"
            );
            let reason = if granularity < 12 * MS { PreemptReason::Lead } else { PreemptReason::NoLead };
            assert_eq!(answer.reason, reason, "{policy} {others}");
            assert_eq!(answer.verdict.is_some(), others == 0, "{policy} {others}");
        }
    }
}

/// A hog beside a task that computes 10 ms and sleeps 10 ms: CFS gives sleepers back what they missed, EEVDF does not.
#[test]
fn a_hog_and_a_half_time_task_share_50_50_or_67_33() {
    for policy in ["linux-5.5", "linux-5.15", "linux-6.1"].into_iter().chain(EEVDF) {
        for grouped in [false, true] {
            let mut world = World::new(&format!("{policy} hz=1000"), 8);
            let group = if grouped { world.fair.add_group(GroupId::ROOT, 1024) } else { GroupId::ROOT };
            let (hog, half) = (world.spawn(CPU0, 0, group), world.spawn(CPU0, 0, group));
            world.schedule(CPU0);
            let (mut until, mut wakes_at) = (10 * MS, None);
            for _ in 0..10_000 {
                run(&mut world, 1, 1);
                if wakes_at.is_some_and(|at| world.now >= at) {
                    wakes_at = None;
                    until = world.run_time(half) + 10 * MS;
                    if world.wake(CPU0, half).expect("the hog runs").resched().is_some() {
                        world.schedule(CPU0);
                    }
                } else if world.run_time(half) >= until && world.fair.curr(CPU0) == Some(half) {
                    world.block(CPU0);
                    wakes_at = Some(world.now + 10 * MS);
                }
            }
            let share = world.run_time(hog) / 10_000_000;
            let expected = if EEVDF.contains(&policy) { 667 } else { 500 };
            assert!(share.abs_diff(expected) <= 30, "{policy} grouped {grouped}: {share} of 1000");
        }
    }
}

#[test]
fn a_new_task_starts_at_half_the_capacity() {
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let first = world.spawn(CPU0, 0, GroupId::ROOT);
        assert_eq!(world.fair.task_util(first), 512, "{policy}: on an idle CPU");
        assert_eq!(world.fair.entity_avg(first).load_avg, 1024);
        world.schedule(CPU0);
        run(&mut world, 1, 400);
        let util = world.fair.util_avg(CPU0);
        assert!((1020..=1024).contains(&util), "{policy}: {util} after 400 ms");
        let second = world.spawn(CPU0, 0, GroupId::ROOT);
        // The weight is scaled up till v6.6, so that only the cap counts: half of what is left, which is all the same.
        assert!(world.fair.task_util(second) <= 2, "{policy}");
    }
}

#[test]
fn h_load_of_a_lone_task_is_1023() {
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let id = world.spawn(CPU0, 0, GroupId::ROOT);
        assert_eq!(world.fair.load_avg(CPU0), 1024, "{policy}");
        assert_eq!(world.fair.task_h_load(id, world.now), 1024 * 1024 / 1025, "{policy}");
        // Two tasks of a group are half of the group's entity each; the answer is kept for a jiffy.
        let mut world = World::new(policy, 8);
        let group = world.fair.add_group(GroupId::ROOT, 1024);
        let tasks = [world.spawn(CPU0, 0, group), world.spawn(CPU0, 0, group)];
        world.schedule(CPU0);
        run(&mut world, 1, 1_000);
        let h_load = tasks.map(|id| world.fair.task_h_load(id, world.now));
        assert!(h_load.iter().all(|load| load.abs_diff(512) <= 6), "{policy}: {h_load:?}");
        world.spawn(CPU0, 0, group);
        assert_eq!(world.fair.queue_h_load(0, world.now / (4 * MS) + 1), world.fair.q[0].h_load, "{policy}");
    }
}

#[test]
fn a_waking_task_takes_its_load_along() {
    for policy in ALL {
        for grouped in [false, true] {
            let mut world = World::new(policy, 8);
            let group = if grouped { world.fair.add_group(GroupId::ROOT, 1024) } else { GroupId::ROOT };
            let cpus = [CPU0, CpuId::new(1)];
            let id = world.spawn(CPU0, 0, group);
            world.schedule(CPU0);
            run(&mut world, 1, 400);
            world.block(CPU0);
            let at = format!("{policy} grouped {grouped}");
            let before = cpus.map(|cpu| world.fair.util_avg(cpu));
            assert!(before[0] >= 1020 && before[1] == 0, "{at}: {before:?}");
            world.wake(cpus[1], id);
            // What left is taken out at the next update, not before.
            assert_eq!(world.fair.util_avg(CPU0), before[0], "{at}");
            for cpu in cpus {
                world.fair.update_blocked_averages(cpu, world.now);
            }
            let after = cpus.map(|cpu| world.fair.util_avg(cpu));
            assert!(after[0] <= 2 && after[1] >= 1018, "{at}: {after:?}");
            // The group's shares there were computed while the old CPU still counted.
            let least = if grouped { 500 } else { 1000 };
            let load = cpus.map(|cpu| world.fair.load_avg(cpu));
            assert!(load[0] <= 2 && load[1] >= least, "{at}: {load:?}");
        }
    }
}

#[test]
fn estimates_learn_as_the_vectors_say() {
    for (ewma, util, expected) in [(400, 200, 350), (101, 50, 88), (100, 95, 100), (100, 130, 130)] {
        for policy in ALL {
            let mut world = World::new(policy, 8);
            let id = world.fair.add_task(TaskAttributes::NORMAL, GroupId::ROOT);
            let extra = &mut world.fair.x[id.index()];
            extra.est = load::UtilEst::of(ewma);
            // It never had to wait: runnable and running alike.
            (extra.avg.util_avg, extra.avg.runnable_avg) = (util, util);
            world.fair.est_update(id);
            // v5.5 has no fast way up.
            let slow = policy == "linux-5.5" && util > ewma + 10;
            let expected = if slow { ewma + (util - ewma) / 4 } else { expected };
            assert_eq!(world.fair.x[id.index()].est.ewma(), expected, "{policy} {ewma} {util}");
        }
    }
}

#[test]
fn averages_of_a_queue_with_one_hog_are_the_hogs() {
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let id = world.spawn(CPU0, 0, GroupId::ROOT);
        world.schedule(CPU0);
        run(&mut world, 1, 100);
        let (queue, task) = (world.fair.root_avg(CPU0), world.fair.entity_avg(id));
        assert_eq!((queue.util_avg, queue.period_contrib), (task.util_avg, task.period_contrib), "{policy}");
        assert!(queue.load_avg.abs_diff(task.load_avg) <= 1, "{policy}");
        assert!(queue.load_sum <= 1024 * LOAD_AVG_MAX, "{policy}");
        // It blocks: 32 periods later half is left.
        world.block(CPU0);
        world.now += 32 * 1_048_576;
        let before = world.fair.util_avg(CPU0);
        world.fair.update_blocked_averages(CPU0, world.now);
        assert!(world.fair.util_avg(CPU0).abs_diff(before / 2) <= 1, "{policy}");
    }
}

/// A hog of a group leaves one of its tasks asleep with debts: the group's entity waits with it (v6.12 and later).
#[test]
fn a_group_that_empties_past_its_share_stays_queued() {
    for policy in ["linux-6.12", "linux-7.2"] {
        let mut world = World::new(policy, 8);
        let group = world.fair.add_group(GroupId::ROOT, 1024);
        let inside = world.spawn(CPU0, 0, group);
        let outside = world.spawn(CPU0, 0, GroupId::ROOT);
        let entity = world.fair.group_entity(group, CPU0).expect("made");
        world.fair.set_next(CPU0, inside, world.now, SwitchIn::Picked);
        world.now += 2 * MS;
        world.block(CPU0);
        assert_eq!(world.fair.curr(CPU0), Some(outside), "{policy}");
        // Alone on its queue the task had no debt; the group has.
        assert!(!world.fair.is_queued(inside) && world.fair.e[entity].sched_delayed, "{policy}");
        let nr = (world.fair.nr_running(CPU0), world.fair.root(CPU0).nr_queued());
        assert_eq!(nr, (1, 2), "{policy}: one task, two entities");
        // Awake again before it was picked: the group is wanted again.
        world.wake(CPU0, inside);
        assert!(!world.fair.e[entity].sched_delayed && world.fair.nr_running(CPU0) == 2, "{policy}");
        // Or it is picked when its debt is paid, and leaves then.
        world.fair.dequeue_task(inside, world.now, SLEEP);
        assert!(world.fair.e[entity].sched_delayed, "{policy}");
        for _ in 0..40 {
            world.now += MS;
            world.fair.update_curr(CPU0, world.now);
            world.schedule(CPU0);
        }
        assert_eq!(world.fair.root(CPU0).nr_queued(), 1, "{policy}: the delayed group has left");
        assert!(world.fair.e[entity].vlag <= 0, "{policy}: and gained nothing by it");
    }
}

#[test]
fn a_group_is_as_impatient_as_its_most_impatient_task() {
    for policy in ["linux-6.12", "linux-7.2"] {
        let mut world = World::new(policy, 8);
        let group = world.fair.add_group(GroupId::ROOT, 1024);
        world.spawn(CPU0, 0, group);
        let entity = world.fair.group_entity(group, CPU0).expect("made");
        assert_eq!(world.fair.e[entity].slice, 2_800_000, "{policy}");
        let hasty = TaskAttributes { slice_ns: Some(500_000), ..TaskAttributes::NORMAL };
        let id = world.fair.add_task(hasty, group);
        world.fair.fork(CPU0, id, world.now);
        world.fair.enqueue_task(CPU0, id, world.now, NEW);
        assert_eq!(world.fair.e[entity].slice, 500_000, "{policy}");
        world.fair.dequeue_task(id, world.now, DequeueFlags { special: true, ..SLEEP });
        assert_eq!(world.fair.e[entity].slice, 2_800_000, "{policy}");
    }
}

#[test]
fn sleepers_leave_their_group_preferred() {
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let group = world.fair.add_group(GroupId::ROOT, 1024);
        let (first, second) = (world.spawn(CPU0, 0, group), world.spawn(CPU0, 0, group));
        world.spawn(CPU0, 0, GroupId::ROOT);
        let entity = world.fair.group_entity(group, CPU0);
        world.fair.set_next(CPU0, first, world.now, SwitchIn::Picked);
        world.now += 100_000;
        world.fair.dequeue_task(first, world.now, DequeueFlags { special: true, ..SLEEP });
        assert_eq!(world.fair.root(CPU0).next, entity, "{policy}");
        // CFS honours it if not unfair. EEVDF (PICK_BUDDY) only if eligible, which a group that just ran is not.
        let next = world.schedule(CPU0);
        if !world.fair.rules.kernel.is_eevdf() {
            assert_eq!(next, Some(second), "{policy}");
        }
        // Up to v5.9 the pick forgets it; later the switch does, which does not touch a level that goes on running.
        let left = if ["linux-5.5", "linux-5.9"].contains(&policy) { None } else { entity };
        if next == Some(second) {
            assert_eq!(world.fair.root(CPU0).next, left, "{policy}: used up");
        }
    }
}

#[test]
fn the_balancers_list_has_the_longest_queued_at_its_back() {
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let group = world.fair.add_group(GroupId::ROOT, 1024);
        let ids = [GroupId::ROOT, group, GroupId::ROOT].map(|group| world.spawn(CPU0, 0, group));
        let order = |world: &World| world.fair.cfs_tasks_from_back(CPU0).collect::<Vec<_>>();
        assert_eq!(order(&world), ids, "{policy}: queued");
        world.fair.set_next(CPU0, ids[0], world.now, SwitchIn::Picked);
        assert_eq!(order(&world), [ids[1], ids[2], ids[0]], "{policy}: picked");
        world.fair.rotate_to_front(ids[2]);
        assert_eq!(order(&world), [ids[1], ids[0], ids[2]], "{policy}: passed over");
        world.fair.detach_task(ids[1], world.now);
        assert_eq!(order(&world), [ids[0], ids[2]], "{policy}: moved");
        let there = CpuId::new(1);
        world.fair.attach_task(there, ids[1], world.now);
        assert_eq!(world.fair.cpu_of(ids[1]), Some(there));
        assert_eq!((world.fair.nr_running(CPU0), world.fair.nr_running(there)), (2, 1), "{policy}");
    }
}

#[test]
fn lag_travels_and_relative_time_does_not() {
    // Behind by 2 ms on a busy CPU, it arrives behind (EEVDF), or as far from the least time (CFS).
    for policy in ALL {
        let mut world = World::new(policy, 8);
        let there = CpuId::new(1);
        let ids = [world.spawn(CPU0, 0, GroupId::ROOT), world.spawn(CPU0, 0, GroupId::ROOT)];
        world.spawn(there, 0, GroupId::ROOT);
        world.schedule(there);
        run(&mut world, 2, 50);
        world.fair.set_next(CPU0, ids[0], world.now, SwitchIn::Picked);
        world.now += 2 * MS;
        world.fair.update_curr(CPU0, world.now);
        world.fair.put_prev(CPU0, world.now);
        let (root, e) = (world.fair.root(CPU0), &world.fair.e);
        let distance = |root: &CfsRq, id: EntityId| {
            let from = if world.fair.rules.kernel.is_eevdf() {
                root.average(e, &world.fair.rules)
            } else {
                root.zero_vruntime()
            };
            e[id].vruntime.wrapping_sub(from) as i64
        };
        let before = distance(root, ids[0]);
        let mut moved = world.clone();
        moved.fair.detach_task(ids[0], world.now);
        moved.fair.attach_task(there, ids[0], world.now);
        let root = moved.fair.root(there);
        let from = if moved.fair.rules.kernel.is_eevdf() {
            root.average(&moved.fair.e, &moved.fair.rules)
        } else {
            root.zero_vruntime()
        };
        let after = moved.fair.e[ids[0]].vruntime.wrapping_sub(from) as i64;
        assert!(before > 0, "{policy}");
        assert!(after.abs_diff(before) <= 2, "{policy}: {before} here, {after} there");
    }
}

#[test]
fn a_wakee_is_compared_on_the_level_that_both_share() {
    for policy in EEVDF {
        let mut world = World::new(policy, 8);
        let outer = world.fair.add_group(GroupId::ROOT, 1024);
        let inner = world.fair.add_group(outer, 1024);
        let deep = world.spawn(CPU0, 0, inner);
        let flat = world.spawn(CPU0, 0, GroupId::ROOT);
        world.schedule(CPU0);
        // Whichever runs, the other sleeps long and wakes with lag 0 or more beside one that used its slice.
        let curr = world.fair.curr(CPU0).expect("one runs");
        let other = if curr == deep { flat } else { deep };
        world.fair.dequeue_task(other, world.now, DequeueFlags { special: true, ..SLEEP });
        world.now += 20 * MS;
        world.fair.update_curr(CPU0, world.now);
        let answer = world.wake(CPU0, other).expect("one runs");
        assert!(matches!(answer.reason, PreemptReason::Kept | PreemptReason::Picked), "{policy}: {answer:?}");
        world.now += 10 * MS;
        let tick = world.fair.tick(CPU0, world.now).expect("runs");
        let expected = if policy == "linux-7.2" { Resched::Lazy } else { Resched::Full };
        assert_eq!(tick.resched, Some(expected), "{policy}");
        assert_eq!(world.schedule(CPU0), Some(other), "{policy}");
    }
}

#[test]
fn last_and_next_are_marked_on_every_level() {
    // Nine tasks of a group in a group: LAST_BUDDY and the lead's NEXT mark go up to the root.
    let mut world = World::new("linux-6.1", 8);
    let outer = world.fair.add_group(GroupId::ROOT, 1024);
    let group = world.fair.add_group(outer, 1024);
    let ids: Vec<EntityId> = (0..9).map(|_| world.spawn(CPU0, 0, group)).collect();
    let entity = world.fair.group_entity(outer, CPU0);
    world.fair.set_next(CPU0, ids[0], world.now, SwitchIn::Picked);
    world.fair.dequeue_task(ids[1], world.now, SLEEP);
    run(&mut world, 1, 100);
    let curr = world.fair.curr(CPU0).expect("runs");
    let answer = world.wake(CPU0, ids[1]).expect("runs");
    assert_eq!(answer.reason, PreemptReason::Lead);
    let queue = &world.fair.q[world.fair.queue_of(ids[1])].cfs;
    assert_eq!((queue.next, queue.last), (Some(ids[1]), Some(curr)));
    assert_eq!((world.fair.root(CPU0).next, world.fair.root(CPU0).last), (entity, entity));
    assert!(world.fair.is_buddy(curr) && world.fair.is_buddy(ids[1]) && !world.fair.is_buddy(ids[3]));
}

#[test]
fn broken_rules_of_groups_are_noticed() {
    let checks: [fn(); 6] = [
        sleepers_leave_their_group_preferred,
        shares_are_spread_over_the_cpus_by_load,
        a_waking_task_takes_its_load_along,
        last_and_next_are_marked_on_every_level,
        laws::averages_of_queues_are_those_of_their_entities,
        laws::counters_sums_and_trees_stay_consistent,
    ];
    for mutation in crate::mutation::Mutation::GROUPS {
        assert!(mutation.is_caught(&checks), "{mutation:?} goes unnoticed");
    }
}

#[test]
fn memory_stays_small() {
    let task = size_of::<SchedEntity>() + size_of::<Extra>();
    let cpu = size_of::<Queue>() + size_of::<Cpu>();
    assert!(task <= 320, "{task} bytes a task");
    assert!(cpu <= 640, "{cpu} bytes a CPU without groups");
    // Queues of groups are made where tasks come, not for every CPU.
    let mut world = World::new("linux-6.12", 384);
    let group = world.fair.add_group(GroupId::ROOT, 1024);
    assert_eq!(world.fair.q.len(), 384);
    world.spawn(CpuId::new(7), 0, group);
    assert_eq!(world.fair.q.len(), 385);
}

#[test]
fn a_group_alone_is_no_different_from_none() {
    for policy in ALL {
        let run_times = |grouped: bool| {
            let mut world = World::new(policy, 8);
            let group = if grouped { world.fair.add_group(GroupId::ROOT, 777) } else { GroupId::ROOT };
            let ids = [0, 0, 5, -3].map(|nice| world.spawn(CPU0, nice, group));
            world.schedule(CPU0);
            for round in 0..200 {
                run(&mut world, 1, 7);
                // One sleeps for a while now and then.
                let id = ids[round % 4];
                if world.fair.curr(CPU0) == Some(id) {
                    world.block(CPU0);
                } else if (!world.fair.is_queued(id) || world.fair.is_delayed(id))
                    && world.wake(CPU0, id).is_some_and(|answer| answer.resched().is_some())
                {
                    world.schedule(CPU0);
                }
            }
            ids.map(|id| world.run_time(id))
        };
        assert_eq!(run_times(true), run_times(false), "{policy}");
    }
}

#[test]
fn the_slice_timer_runs_for_a_lone_task_of_a_group_that_others_wait_for() {
    let mut world = World::new("linux-7.2", 8);
    let group = world.fair.add_group(GroupId::ROOT, 1024);
    let inside = world.spawn(CPU0, 0, group);
    world.fair.set_next(CPU0, inside, world.now, SwitchIn::Picked);
    assert_eq!(world.fair.hrtick(CPU0), None, "alone");
    world.spawn(CPU0, 0, GroupId::ROOT);
    // A new task's first request is half a slice.
    assert_eq!(world.fair.hrtick(CPU0), Some(1_400_000));
    world.now += 400_000;
    world.fair.update_curr(CPU0, world.now);
    assert_eq!(world.fair.hrtick(CPU0), Some(1_000_000));
}
