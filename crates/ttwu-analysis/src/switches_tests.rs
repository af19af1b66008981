//! One test a rule of the table in the module's text, and one where the rule must not fire.

use super::*;
use crate::analyse_one;
use crate::script::trace;

/// Causes and evidence of all switches away from a task, in order.
fn verdicts(script: &str) -> String {
    let trace = trace(script);
    let mut analysis = SwitchesAnalysis::new();
    let mut timeline = Timeline::new();
    let mut out = Vec::new();
    for event in trace.events() {
        timeline.step(event);
        let before = (analysis.by_evidence, analysis.tasks.clone());
        let moment = Moment { timeline: &timeline, strings: trace.strings(), tasks: trace.tasks() };
        analysis.observe(&moment, event);
        for evidence in SwitchEvidence::ALL {
            if analysis.by_evidence[evidence as usize] != before.0[evidence as usize] {
                let cause = SwitchCause::ALL.into_iter().find(|&cause| {
                    let sum = |rows: &[[u32; 7]]| rows.iter().map(|row| row[cause as usize]).sum::<u32>();
                    sum(&analysis.tasks) != sum(&before.1)
                });
                out.push(format!("{}/{}", cause.expect("counted").name(), evidence.name()));
            }
        }
    }
    out.join(" ")
}

fn check(script: &str, expected: &str) {
    assert_eq!(verdicts(script), expected, "script:\n{script}");
}

const START: &str = "0 0 idle . sw idle R a\n";

fn check_run(rest: &str, expected: &str) {
    check(&format!("{START}{rest}"), expected);
}

#[test]
fn sleeping_and_dying_are_told_by_the_state() {
    check_run("10 0 a . sw a S b\n20 0 b . sw b X idle", "voluntary/state exit/state");
}

#[test]
fn a_wake_up_that_sets_the_flag_here_preempts() {
    check_run(
        "10 0 a . waking b 0\n11 0 a N wakeup b 0\n12 0 a . sw a R b",
        "wakeup_preemption/flag_at_local_wakeup",
    );
}

#[test]
fn a_wake_up_with_the_flag_already_set_is_not_the_cause() {
    check_run("10 0 a N waking b 0\n11 0 a N wakeup b 0\n12 0 a . sw a R b", "unknown/flag_unexplained");
}

#[test]
fn a_wake_up_whose_check_said_no_is_not_the_cause() {
    check_run("10 0 a . waking b 0\n11 0 a . wakeup b 0\n12 0 a . sw a R b", "unknown/nothing");
}

#[test]
fn the_wake_list_is_worked_off_on_the_target() {
    check_run(
        "10 1 w . waking b 0\n11 1 w . ipi 0 ttwu_queue_wakelist+0x1/0x2\n12 0 a Nh wakeup b 0\n13 0 a . sw a R+ b",
        "wakeup_preemption/flag_at_local_wakeup",
    );
}

#[test]
fn an_ipi_of_the_wake_up_check_preempts() {
    let ipi = "10 1 w . waking b 0\n11 1 w . ipi 0 wakeup_preempt+0x92/0xa0\n12 1 w . wakeup b 0\n";
    check_run(&format!("{ipi}15 0 a . sw a R b"), "wakeup_preemption/wakeup_ipi");
    // Even when the flag is seen at the next tick's entry, or just before the IPI's own event was written.
    check_run(
        &format!("{ipi}13 0 a Nh timer tick_nohz_handler\n15 0 a . sw a R b"),
        "wakeup_preemption/wakeup_ipi",
    );
    check_run(
        "10 1 w . waking b 0\n10 0 a N stat a 5\n11 1 w . ipi 0 check_preempt_curr+0x1/0x2\n15 0 a . sw a R b",
        "wakeup_preemption/wakeup_ipi",
    );
}

#[test]
fn other_ipis_say_nothing() {
    check_run("11 1 w . ipi 0 on_each_cpu_cond_mask+0x20/0x60\n15 0 a . sw a R b", "unknown/nothing");
}

#[test]
fn an_ipi_after_a_balancing_move_is_a_migration_preemption() {
    check_run(
        "10 1 migration/1 . mig b 1 0\n11 1 migration/1 . ipi 0 wakeup_preempt+0x92/0xa0\n15 0 a . sw a R+ b",
        "migration_preemption/migration_ipi",
    );
}

#[test]
fn the_flag_after_a_wake_up_from_elsewhere_is_ascribed_to_it() {
    check_run(
        "10 1 w . waking b 0\n12 1 w . wakeup b 0\n20 0 a Nh irq 5 disk\n25 0 a . sw a R b",
        "wakeup_preemption/flag_after_remote_wakeup",
    );
    // Not if an event here without the flag came later than the wake-up.
    check_run(
        "10 1 w . waking b 0\n12 1 w . wakeup b 0\n15 0 a . stat a 5\n20 0 a Nh irq 5 disk\n25 0 a . sw a R b",
        "unknown/flag_unexplained",
    );
}

#[test]
fn the_flag_after_a_fork_is_ascribed_to_it() {
    check_run(
        "10 0 a . fork a c\n11 0 a . new c 0\n12 0 a N stat a 5\n13 0 a . sw a R+ c",
        "wakeup_preemption/flag_after_remote_wakeup",
    );
}

#[test]
fn the_flag_after_a_balancing_move_is_ascribed_to_it() {
    check_run(
        "10 0 a s mig b 1 0\n12 0 a Ns softx 7\n13 0 a . sw a R b",
        "migration_preemption/flag_after_migration",
    );
}

#[test]
fn a_fresh_wakee_that_follows_is_taken_for_the_cause() {
    // As in recordings without sched_wakeup and IPIs.
    check_run("1000 1 w . waking b 0\n50000 0 a . sw a R b", "wakeup_preemption/wakee_follows");
    check_run("1000 1 w . waking b 0\n201000 0 a . sw a R b", "unknown/nothing");
}

#[test]
fn the_flag_after_a_tick_is_the_ticks() {
    check_run(
        "10 0 a h timer tick_nohz_handler\n11 0 a h soft_raised\n12 0 a Ns soft 7\n14 0 a . sw a R b"
            .replace("soft_raised", "stat a 5")
            .as_str(),
        "tick/flag_after_tick",
    );
    check_run("10 0 a h timer hrtick\n12 0 a Ns soft 7\n14 0 a . sw a R b", "tick/flag_after_tick");
}

#[test]
fn a_tick_that_set_no_flag_is_not_the_cause() {
    check_run(
        "10 0 a h timer tick_sched_timer\n12 0 a s soft 7\n13 0 a s softx 7\n30 0 a . sw a R b",
        "unknown/nothing",
    );
    // A wake-up in the same interrupt, by another timer.
    check_run(
        "10 0 a h timer tick_sched_timer\n12 0 a h timer hrtimer_wakeup\n13 0 a h waking b 0\n14 0 a Nh wakeup b 0\n15 0 a . sw a R b",
        "wakeup_preemption/flag_at_local_wakeup",
    );
    // Without anything between tick and wake-up it cannot be told.
    check_run(
        "10 0 a h timer tick_sched_timer\n14 0 a Nh wakeup b 0\n15 0 a . sw a R b",
        "unknown/flag_unexplained",
    );
}

#[test]
fn a_switch_right_after_a_tick_is_the_ticks() {
    check_run("10 0 a h timer tick_sched_timer\n90000 0 a . sw a R b", "tick/switch_after_tick");
    check_run("10 0 a h timer tick_sched_timer\n300000 0 a . sw a R b", "unknown/nothing");
    check_run(
        "10 0 a h timer tick_sched_timer\n11 1 w . waking b 0\n90000 0 a . sw a R b",
        "unknown/nothing",
    );
    check_run("10 0 a ? timer tick_sched_timer\n90000 0 a ? sw a R b", "tick/switch_after_tick");
}

#[test]
fn the_flag_set_by_an_earlier_tick_belongs_to_the_run_that_saw_it() {
    check_run(
        "10 0 a h timer tick_sched_timer\n12 0 a Ns soft 7\n14 0 a . sw a R b\n20 0 b . sw b R a",
        "tick/flag_after_tick unknown/nothing",
    );
}

#[test]
fn a_yield_just_before_is_the_cause() {
    check_run("10 0 a . yield\n20 0 a . sw a R b", "yield/yield_call");
    check_run("10 0 a . yield\n15 0 a Nh irq 5 disk\n20 0 a . sw a R b", "yield/yield_call");
    // It went on to do something else: the yield did not switch.
    check_run(
        "10 0 a . yield\n15 0 a . waking b 0\n16 0 a N wakeup b 0\n20 0 a . sw a R b",
        "wakeup_preemption/flag_at_local_wakeup",
    );
    check_run("10 0 a . yield\n200010 0 a . sw a R b", "unknown/nothing");
}

#[test]
fn a_gap_takes_the_evidence_away() {
    check_run(
        "10 0 a . waking b 0\n11 0 a N wakeup b 0\n12 0 a . lost\n13 0 a . sw a R c",
        "unknown/nothing",
    );
}

#[test]
fn states_and_pairs_are_counted() {
    let trace = trace(
        "0 0 idle . sw idle R a
         10 0 a . waking b 0
         11 0 a N wakeup b 0
         12 0 a . sw a R+ b
         20 0 b . sw b S a
         30 0 a . sw a S idle",
    );
    let out = analyse_one(&trace, SwitchesAnalysis::new());
    let out = out.value().expect("measured");
    assert_eq!((out.total, out.from_idle), (4, 1));
    assert_eq!(out.by_state.iter().map(|(k, v)| (k.as_str(), *v)).collect::<Vec<_>>(), [("R+", 1), ("S", 2)]);
    assert_eq!(out.by_cause, [2, 1, 0, 0, 0, 0, 0]);
    let pair = &out.preemptions[0];
    assert_eq!((pair.preempted.name.as_str(), pair.by.name.as_str(), pair.count), ("a", "b", 1));
    assert_eq!(out.would_help, ["ipi_send_cpu", "hrtimer_expire_entry", "sys_enter_sched_yield"]);
}

#[test]
fn a_timer_interrupt_stands_for_the_tick_where_callbacks_are_not_recorded() {
    check_run(
        "10 0 a h vec local_timer\n12 0 a Ns soft 7\n14 0 a . sw a R b",
        "tick/flag_after_timer_interrupt",
    );
    check_run("10 0 a h vec reschedule\n12 0 a Ns soft 7\n14 0 a . sw a R b", "unknown/flag_unexplained");
    check_run("10 0 a h vec local_timer\n14 0 a . sw a R b", "unknown/nothing");
    let recorded = "10 0 a h timer hrtimer_wakeup\n11 0 a . stat a 5\n";
    check_run(
        &format!("{recorded}12 0 a h vec local_timer\n13 0 a Nh vecx local_timer\n14 0 a . sw a R b"),
        "unknown/flag_unexplained",
    );
}

#[test]
fn a_flag_seen_within_a_wake_up_is_explained_by_its_end() {
    check_run(
        "10 0 a . waking b 0\n11 0 a N stat a 5\n12 0 a N wakeup b 0\n14 0 a . sw a R b",
        "wakeup_preemption/flag_at_local_wakeup",
    );
    check_run(
        "10 0 a h vec call_function\n11 0 a Nh stat a 5\n12 0 a Nh wakeup b 0\n14 0 a . sw a R b",
        "wakeup_preemption/flag_at_local_wakeup",
    );
    check_run(
        "10 0 a h vec call_function\n11 0 a Nh stat a 5\n11 0 a N stat a 5\n12 0 a Nh wakeup b 0\n14 0 a . sw a R b",
        "unknown/flag_unexplained",
    );
    // The wake-up put its task elsewhere.
    check_run(
        "10 0 a . waking b 0\n11 0 a N stat a 5\n12 0 a N wakeup b 1\n14 0 a . sw a R c",
        "unknown/flag_unexplained",
    );
}

#[test]
fn without_sched_wakeup_the_flag_after_a_local_waking_is_ascribed_to_it() {
    let verdict = "wakeup_preemption/flag_after_local_waking";
    check_run("10 0 a . waking b 0\n12 0 a N waking c 1\n14 0 a . sw a R b", verdict);
    check_run("10 0 a . waking b 1\n11 0 a . mig b 1 0\n12 0 a N waking c 1\n14 0 a . sw a R b", verdict);
    // It went elsewhere, or too long ago.
    check_run("10 0 a . waking b 1\n12 0 a N stat a 5\n14 0 a . sw a R c", "unknown/flag_unexplained");
    check_run(
        "10 0 a . waking b 0\n120000 0 a N stat a 5\n120001 0 a . sw a R b",
        "unknown/flag_unexplained",
    );
}

#[test]
fn an_unexplained_flag_is_the_fresh_wakees_if_it_came_after_the_wake_up() {
    check_run("10 1 w . waking b 0\n12 0 a N stat a 5\n14 0 a . sw a R b", "wakeup_preemption/wakee_follows");
    check_run("10 0 a N stat a 5\n12 1 w . waking b 0\n14 0 a . sw a R b", "unknown/flag_unexplained");
}
