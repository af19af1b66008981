//! A run that cannot go on says so, and who waits for what.

use super::tests::{quiet, scenario};
use crate::{End, MeterValue, Outcome, SAMPLES_MAX, WaitsFor};
use ttwu_workload::{Builder, Dist, MeterKind, ObjectKind, Op, Reg, Slot, Start, TaskRef, Times, Until};

const MS: u64 = 1_000_000;

fn run_us(us: u64) -> Op {
    Op::Run(Dist::constant(us * 1000))
}

/// For 100 ms, or until it is over.
fn for_100_ms(mut builder: Builder) -> Outcome {
    builder.until(Until::Time(100 * MS));
    let mut scenario = scenario("pipe:loop=1", "oracle-d", "linux-6.12");
    scenario.workload = builder.finish();
    quiet(&scenario)
}

#[test]
fn a_run_in_which_nothing_can_happen_any_more_is_stuck_when_the_last_thing_happened() {
    let mut builder = Builder::new("stuck");
    let never = builder.object("never", ObjectKind::Semaphore { initial: 0 });
    let wait = builder.program(vec![Op::Wait(Slot::Fixed(never))]);
    builder.task("waiter", wait, Start::At(0));
    let mut scenario = scenario("pipe:loop=1", "oracle-d", "linux-6.12");
    scenario.workload = builder.finish();
    let outcome = quiet(&scenario);
    assert_eq!(outcome.end, End::Stuck);
    assert!(outcome.sim_ns < 1_000_000, "{} ns", outcome.sim_ns);
}

/// One task of this program, for 100 ms: who waits for what.
fn alone(object: Option<ObjectKind>, ops: &dyn Fn(Slot) -> Vec<Op>) -> (End, Vec<WaitsFor>) {
    let mut builder = Builder::new("alone");
    let object = object.map(|kind| builder.object("object", kind));
    let slot = object.map_or(Slot::Link(0), Slot::Fixed);
    let program = builder.program(ops(slot));
    builder.task("one", program, Start::At(0));
    let outcome = for_100_ms(builder);
    (outcome.end, outcome.stuck.iter().map(|waiting| waiting.what).collect())
}

#[test]
fn a_deadlocked_run_that_ends_by_time_is_stuck_and_says_who_waits() {
    let first = ttwu_workload::ObjectId(0);
    let barrier = |parties| Some(ObjectKind::Barrier { parties });
    let wait = |slot| vec![run_us(10), Op::Wait(slot)];
    let at = (End::Stuck, vec![WaitsFor::Object(first)]);
    assert_eq!(alone(barrier(0), &wait), at, "a barrier of nobody");
    assert_eq!(alone(barrier(2), &wait), at, "a barrier of more than there are");
    assert_eq!(alone(Some(ObjectKind::Mutex), &|slot| vec![Op::Lock(slot), Op::Lock(slot)]), at);
    let twice = |slot| vec![Op::Lock(slot), Op::Lock(slot)];
    assert_eq!(alone(Some(ObjectKind::SpinLock), &twice), (End::Stuck, vec![WaitsFor::Spins(first)]));
    let join = |_| vec![Op::Join(TaskRef(0))];
    assert_eq!(alone(None, &join), (End::Stuck, vec![WaitsFor::End(0)]));
    let unlock = |slot| vec![run_us(10), Op::Unlock(slot), run_us(10)];
    assert_eq!(alone(Some(ObjectKind::Mutex), &unlock), (End::Stuck, vec![WaitsFor::Unlocks(first)]));
    // The twins: who waits for a timer, works, or has ended, is not stuck.
    assert_eq!(alone(barrier(1), &wait), (End::Completed, vec![]));
    assert_eq!(alone(None, &|_| vec![Op::Sleep(Dist::constant(200 * MS))]), (End::Completed, vec![]));
    assert_eq!(alone(None, &|_| vec![run_us(200_000)]), (End::Completed, vec![]));
    let lock = |slot| vec![Op::Lock(slot), run_us(10), Op::Unlock(slot)];
    assert_eq!(alone(Some(ObjectKind::Mutex), &lock), (End::Completed, vec![]));
}

#[test]
fn who_waits_for_its_own_end_is_told_though_others_go_on() {
    let mut builder = Builder::new("ring");
    for other in [1, 0] {
        let program = builder.program(vec![Op::Join(TaskRef(other))]);
        builder.task("ring", program, Start::At(0));
    }
    let hog = builder.program(vec![run_us(200_000)]);
    builder.task("hog", hog, Start::At(0));
    let outcome = for_100_ms(builder);
    assert_eq!(outcome.end, End::Completed);
    let stuck: Vec<_> = outcome.stuck.iter().map(|waiting| (waiting.index, waiting.what)).collect();
    assert_eq!(stuck, [(0, WaitsFor::End(1)), (1, WaitsFor::End(0))]);
}

#[test]
fn meters_keep_so_many_samples_and_counts_do_not_wrap() {
    let mut builder = Builder::new("meters");
    let (samples, count) =
        (builder.meter("samples", MeterKind::Samples), builder.meter("count", MeterKind::Count));
    let more = 1_000;
    let body = vec![Op::Sample { meter: samples, since: Reg(0) }];
    let program = builder.program(vec![
        Op::Count { meter: count, by: u64::MAX },
        Op::Count { meter: count, by: 2 },
        Op::Stamp(Reg(0)),
        Op::Repeat { times: Times::Count(SAMPLES_MAX as u64 + more), counter: None, body },
    ]);
    builder.task("counter", program, Start::At(0));
    let mut scenario = scenario("pipe:loop=1", "1 socket x 1 core", "linux-6.12");
    scenario.workload = builder.finish();
    let outcome = quiet(&scenario);
    assert_eq!(outcome.counters.samples_dropped, more);
    assert_eq!(outcome.meters[1], MeterValue::Count(u64::MAX));
    let MeterValue::Samples(kept) = &outcome.meters[0] else { panic!("samples") };
    assert_eq!(kept.len(), SAMPLES_MAX);
    // Later ones are as likely to be kept as earlier ones.
    assert!(kept.windows(2).any(|pair| pair[0] > pair[1]), "one of the last replaced an earlier one");
}
