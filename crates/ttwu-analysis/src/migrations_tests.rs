//! One test a row of the table in the module's text.

use super::*;
use crate::analyse_one;
use crate::script::trace;

fn check(script: &str, expected: &str) {
    let trace = trace(script);
    let measured = analyse_one(&trace, MigrationsAnalysis::new(Levels::unknown()));
    let Measured::Measured(out) = measured else { panic!("{measured:?}") };
    let evidence: Vec<String> = MigrationEvidence::ALL
        .into_iter()
        .filter(|&one| out.by_evidence[one as usize] > 0)
        .map(|one| format!("{}/{} {}", one.cause().name(), one.name(), out.by_evidence[one as usize]))
        .collect();
    assert_eq!(evidence.join(", "), expected, "script:\n{script}");
    assert_eq!(out.by_cause.iter().sum::<u64>(), out.total, "causes add up");
    assert_eq!(out.matrix.iter().map(Route::count).sum::<u64>(), out.total, "routes add up");
    assert_eq!(out.by_level.total(), out.total, "levels add up");
}

#[test]
fn within_a_wake_up() {
    check(
        "1 0 a . sw a S w
         2 0 w . waking a 0
         3 0 w . mig a 0 1
         4 0 w . wakeup a 1",
        "wakeup/within_wakeup 1",
    );
}

#[test]
fn a_sleeping_task_is_moved_by_its_wake_up() {
    check("1 0 a . sw a S w\n3 0 w . mig a 0 1\n4 0 w . wakeup a 1", "wakeup/task_asleep 1");
}

#[test]
fn a_new_task() {
    check("1 0 p . fork p c\n2 0 p . mig c 0 1\n3 0 p . new c 1", "fork/new_task 1");
}

#[test]
fn a_cpu_about_to_go_idle_pulls() {
    check(
        "1 0 a . sw a R b
         2 1 w . mig a 0 1
         3 1 w . sw w S a",
        "balance_newidle/puller_goes_to_sleep 1",
    );
}

#[test]
fn a_task_that_goes_on_is_not_going_idle() {
    check("1 0 a . sw a R b\n2 1 w . mig a 0 1\n3 1 w . sw w R a", "affinity/syscall_elsewhere 1");
    check("1 0 a ? sw a R b\n2 1 w ? mig a 0 1\n3 1 w ? sw w R a", "balance_other/pulled_unknown_context 1");
    check("1 0 a . sw a R b\n2 2 w . mig a 0 1\n3 1 w . sw w S a", "affinity/syscall_elsewhere 1");
}

#[test]
fn the_balancer_in_softirq_or_in_the_idle_loop() {
    check("1 0 a . sw a R b\n2 1 w s mig a 0 1\n3 1 w . sw w R a", "balance_periodic/softirq 1");
    check(
        "0 1 x . sw x S ksoftirqd/1\n1 0 a . sw a R b\n2 1 ksoftirqd/1 . mig a 0 1",
        "balance_periodic/softirq 1",
    );
    check("1 0 a . sw a R b\n2 1 idle . mig a 0 1\n3 1 idle . sw idle R a", "balance_periodic/idle_task 1");
}

#[test]
fn a_migration_thread_for_a_balancer() {
    check(
        "1 1 idle s waking migration/0 0
         2 0 a . sw a R+ migration/0
         3 0 migration/0 . mig a 0 1",
        "balance_active/stopper_of_busy_cpu 1",
    );
    // Newidle balancing runs in the name of the task that is going to sleep, on the CPU that gets the task.
    check(
        "1 1 w . waking migration/0 0
         2 0 a . sw a R+ migration/0
         3 0 migration/0 . mig a 0 1",
        "balance_active/stopper_of_busy_cpu 1",
    );
}

#[test]
fn a_migration_thread_asked_by_the_task_itself() {
    let ask = "1 0 a . waking migration/0 0\n2 0 a . sw a R+ migration/0\n3 0 migration/0 . mig a 0 1\n";
    check(ask, "affinity/stopper_asked_by_task 1");
    check(&format!("{ask}9 1 a . exec a"), "exec/stopper_asked_by_task_then_exec 1");
    check(&format!("{ask}9 1 b . exec b"), "affinity/stopper_asked_by_task 1");
}

#[test]
fn a_migration_thread_asked_by_another_task() {
    check(
        "1 2 w . waking migration/0 0
         2 0 a . sw a R+ migration/0
         3 0 migration/0 . mig a 0 1",
        "affinity/stopper_asked_by_other 1",
    );
}

#[test]
fn what_cannot_be_told() {
    check("2 0 a . sw a R+ migration/0\n3 0 migration/0 . mig a 0 1", "unknown/stopper_unknown_waker 1");
    check("3 0 w . mig a 0 1", "unknown/task_not_seen 1");
    check("1 0 a . sw a R b\n3 1 w . mig a 0 1", "unknown/nothing 1");
    check("1 0 a . sw a R b\n3 1 w . mig a 0 1\n4 1 w . lost", "unknown/nothing 1");
}

#[test]
fn a_wake_up_from_elsewhere_in_between_does_not_hide_a_pull() {
    check(
        "1 0 a . sw a R b
         2 1 w . mig a 0 1
         2 0 b . waking c 1
         3 0 b . wakeup c 1
         4 1 w . sw w S a",
        "balance_newidle/puller_goes_to_sleep 1",
    );
}
