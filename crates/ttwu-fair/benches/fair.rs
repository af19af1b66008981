//! A machine's fair class: what a scheduler event costs, with load tracking, flat and in a group.

use divan::{Bencher, black_box};
use ttwu_fair::{
    DequeueFlags, EnqueueFlags, EntityId, Fair, GroupId, Policy, SwitchIn, TaskAttributes, WakeupCheck,
};
use ttwu_model::CpuId;

fn main() {
    divan::main();
}

const KERNELS: [&str; 5] = ["linux-6.1", "eevdf-2023-04", "linux-6.6", "linux-6.12", "linux-7.2"];
const SLEEP: DequeueFlags = DequeueFlags { sleep: true, special: false, delayed: false, save: false };
const WOKEN: EnqueueFlags = EnqueueFlags { wakeup: true, migrated: false, initial: false };
const NEW: EnqueueFlags = EnqueueFlags { wakeup: false, migrated: false, initial: true };

/// `tasks` queued on CPU 0, one of them running for 3 ms.
fn machine(kernel: &str, tasks: usize, grouped: bool) -> (Fair, Vec<EntityId>, u64) {
    let policy = Policy::parse(kernel).expect("known");
    let mut fair = Fair::new(&policy, 64);
    let group = if grouped { fair.add_group(GroupId::ROOT, 1024) } else { GroupId::ROOT };
    let cpu = CpuId::new(0);
    let mut now = 1_000_000_000;
    let mut ids = Vec::new();
    for _ in 0..tasks {
        let id = fair.add_task(TaskAttributes::NORMAL, group);
        fair.fork(cpu, id, now);
        fair.enqueue_task(cpu, id, now, NEW);
        ids.push(id);
        now += 10_000;
    }
    let first = fair.pick_next(cpu, now).expect("queued");
    fair.set_next(cpu, first, now, SwitchIn::Picked);
    (fair, ids, now + 3_000_000)
}

/// A task that is not running leaves a queue of 32 and comes back, no time passing.
#[divan::bench(args = KERNELS)]
fn dequeue_and_enqueue_of_32(bencher: Bencher<'_, '_>, kernel: &str) {
    let (mut fair, ids, now) = machine(kernel, 32, false);
    let cpu = CpuId::new(0);
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let mut id = ids[n % ids.len()];
        if fair.curr(cpu) == Some(id) {
            id = ids[(n + 1) % ids.len()];
        }
        fair.dequeue_task(id, now, DequeueFlags::default());
        fair.enqueue_task(cpu, id, now, EnqueueFlags::default())
    });
}

/// Two tasks on a CPU: one sleeps, the other is switched to, the first is woken again and asks for preemption; 10 µs pass
/// between. Four scheduler events.
fn sleep_and_wake(bencher: Bencher<'_, '_>, kernel: &str, grouped: bool) {
    let (mut fair, _, mut now) = machine(kernel, 2, grouped);
    let cpu = CpuId::new(0);
    bencher.bench_local(|| {
        now += 10_000;
        let id = fair.curr(cpu).expect("one runs");
        fair.dequeue_task(id, now, SLEEP);
        let next = fair.pick_next(cpu, now);
        fair.switch(cpu, next, now);
        now += 10_000;
        let delayed = fair.is_delayed(id);
        fair.enqueue_task(cpu, id, now, WOKEN);
        black_box(fair.wakeup_preempt(cpu, id, now, WakeupCheck { delayed, ..WakeupCheck::default() }))
    });
}

#[divan::bench(args = KERNELS)]
fn sleep_switch_wake_check(bencher: Bencher<'_, '_>, kernel: &str) {
    sleep_and_wake(bencher, kernel, false);
}

#[divan::bench(args = KERNELS)]
fn sleep_switch_wake_check_in_a_group(bencher: Bencher<'_, '_>, kernel: &str) {
    sleep_and_wake(bencher, kernel, true);
}
