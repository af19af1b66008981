//! Worked examples and what the threads say of groups.

use super::*;

#[test]
fn flat_tasks_share_a_cpu_by_weight() {
    // 10 s on one CPU, ticks of 4 ms: nice 0 against nice 5 is 1024 : 335.
    for policy in crate::queue::tests::ALL {
        let mut world = World::new(policy, 8);
        let heavy = world.spawn(CPU0, 0, GroupId::ROOT);
        let light = world.spawn(CPU0, 5, GroupId::ROOT);
        world.schedule(CPU0);
        for _ in 0..2500 {
            world.now += 4 * MS;
            if world.fair.tick(CPU0, world.now).expect("runs").resched.is_some() {
                world.schedule(CPU0);
            }
        }
        let (heavy, light) = (world.run_time(heavy), world.run_time(light));
        let share = heavy * 1000 / (heavy + light);
        assert!((740..=768).contains(&share), "{policy}: {share} of 1000, by weight 753");
    }
}
