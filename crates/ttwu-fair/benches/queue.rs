//! A queue of 32 tasks: the pick, and a task that leaves and comes back, in each generation.

use divan::{Bencher, black_box};
use ttwu_fair::{
    CfsRq, DequeueFlags, EnqueueFlags, Entities, EntityId, LoadWeight, Policy, QueueRules, SchedEntity,
    SwitchIn, TaskPolicy,
};

fn main() {
    divan::main();
}

const KERNELS: [&str; 5] = ["linux-6.1", "eevdf-2023-04", "linux-6.6", "linux-6.12", "linux-7.2"];
const TASKS: u64 = 32;

/// 32 queued tasks at different virtual times, one of them running without protection.
fn queue(kernel: &str) -> (QueueRules, Entities, CfsRq, Vec<EntityId>) {
    let policy = Policy::parse(kernel).expect("known");
    let rules = QueueRules::new(&policy, 8);
    let (mut e, mut queue) = (Entities::new(), CfsRq::new(policy.kernel()));
    let mut ids = Vec::new();
    for n in 0..TASKS {
        let mut task = SchedEntity::new(LoadWeight::of_nice(0), TaskPolicy::Normal, &rules);
        task.vruntime = n * 7919 % TASKS * 100_000;
        task.deadline = task.vruntime + n * 104_729 % TASKS * 90_000;
        let id = e.add(task);
        queue.adopt(&mut e, &rules, id, false);
        ids.push(id);
    }
    let first = queue.pick(&e, &rules).expect("queued");
    queue.set_next(&mut e, &rules, first, 1_000_000, SwitchIn::Picked);
    queue.update_curr(&mut e, &rules, 5_000_000);
    (rules, e, queue, ids)
}

#[divan::bench(args = KERNELS)]
fn pick_of_32(bencher: Bencher<'_, '_>, kernel: &str) {
    let (rules, e, mut queue, _) = queue(kernel);
    bencher.bench_local(|| black_box(&mut queue).pick(&e, &rules));
}

#[divan::bench(args = KERNELS)]
fn dequeue_and_enqueue_of_32(bencher: Bencher<'_, '_>, kernel: &str) {
    let (rules, mut e, mut queue, ids) = queue(kernel);
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let mut id = ids[n % ids.len()];
        if queue.curr == Some(id) {
            id = ids[(n + 1) % ids.len()];
        }
        queue.dequeue(&mut e, &rules, id, 0, DequeueFlags::default());
        queue.enqueue(&mut e, &rules, id, 0, EnqueueFlags::default())
    });
}
