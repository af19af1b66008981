//! Prints what one cell of a reproduced thread counts: `cell THREAD SETUP/VARIANT [SEED] [cost=value…]`, where
//! `until_ms=` stands for the end of the run; or a thread's claims with few seeds: `cell THREAD claims [SEEDS]`;
//! or random scenarios with all checkers: `cell fuzz SEED RUNS`.

use ttwu_lab::fuzz::{Campaign, all_checkers, fuzz};
use ttwu_lab::reproduce::{Effort, Experiment, render_text};
use ttwu_sim::{Options, run};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [thread, cell, rest @ ..] = args.as_slice() else {
        eprintln!("usage: cell THREAD SETUP/VARIANT [SEED] [cost=value...]");
        return;
    };
    if thread == "fuzz" {
        let number = |word: Option<&String>| word.and_then(|word| word.parse().ok()).expect("a number");
        let runs: u64 = number(rest.first());
        let campaign = fuzz(number(Some(cell)), &all_checkers, &mut |so_far: &Campaign| so_far.runs < runs);
        println!("{} runs, {} refused", campaign.runs, campaign.refused);
        for failure in &campaign.failures {
            println!("run {}: {}: {}\n{}", failure.run, failure.checker, failure.message, failure.scenario);
        }
        return;
    }
    if cell == "claims" {
        let seeds = rest.iter().find_map(|word| word.parse().ok()).unwrap_or(3);
        let effort = Effort { seeds, sensitivity_seeds: 0, threads: 2 };
        print!("{}", render_text(&Experiment::find(thread).expect("a thread").reproduce(effort, &|_, _| {})));
        return;
    }
    let seed = rest.iter().find_map(|word| word.parse().ok()).unwrap_or(1);
    let experiment = Experiment::find(thread).expect("a thread");
    let wanted = format!("{thread}/{cell}");
    for (name, mut scenario) in experiment.scenarios(seed) {
        if name != wanted {
            continue;
        }
        for (name, value) in rest.iter().filter_map(|word| word.split_once('=')) {
            let value: u64 = value.parse().expect("a number");
            match name {
                "until_ms" => scenario.until_ns = value * 1_000_000,
                cost => scenario.costs.set(cost, value).expect("a cost"),
            }
        }
        let outcome = run(&scenario, &mut Options::quiet());
        let c = &outcome.counters;
        println!(
            "{name} seed {seed}: {:?} at {} ms, {} events",
            outcome.end,
            outcome.sim_ns / 1_000_000,
            outcome.events
        );
        println!(
            "wakeups {} pinned {} still queued {} kept {} pulled {} stacked {} wide {} wake list {} ipis {} polled {}",
            c.wakeups,
            c.wakeups_pinned,
            c.wakeups_still_queued,
            c.kept_prev,
            c.pulled_this,
            c.stacked,
            c.wide,
            c.wake_list,
            c.ipis,
            c.polled_wakes
        );
        println!(
            "rules {:?}\nscans {:?} cpus {}\nidle exits {:?}",
            c.by_rule, c.scans, c.cpus_scanned, c.idle_exits
        );
        println!(
            "migrations {:?} wake {} fork {} newidle {} periodic {} nohz {} active {}",
            c.migrations,
            c.migrations_wake,
            c.migrations_fork,
            c.migrations_newidle,
            c.migrations_periodic,
            c.migrations_nohz,
            c.migrations_active
        );
        println!("newidle passes {} balance passes {}", c.newidle_passes, c.balance_passes);
        println!(
            "preempt wake {} tick {} voluntary {} involuntary {} ticks {} rq wait {} wq wait {} waker ns {} refill {}",
            c.preempt_wake,
            c.preempt_tick,
            c.switches_voluntary,
            c.switches_involuntary,
            c.ticks,
            c.rq_lock_wait_ns,
            c.wait_queue_lock_wait_ns,
            c.waker_ns,
            c.refill_ns
        );
        println!(
            "latency p50 {:?} p99 {:?} max {}",
            c.wake_latency_ns.quantile(500),
            c.wake_latency_ns.quantile(990),
            c.wake_latency_ns.max()
        );
        for (task, t) in &c.tasks {
            let seconds = outcome.sim_ns as f64 / 1e9;
            println!(
                "{task:<18} {:>3} run {:>6.1} % switches/s {:>8.1} preempted/s {:>8.1} delay mean {:>8} max {:>9} ns",
                t.tasks,
                t.runtime_ns as f64 / outcome.sim_ns as f64 * 100.0,
                t.switches as f64 / seconds,
                t.preempted as f64 / seconds,
                t.delay_ns_sum.checked_div(t.switches).unwrap_or(0),
                t.delay_ns_max
            );
        }
        for (meter, value) in scenario.workload.meters.iter().zip(&outcome.meters).take(3) {
            let text = format!("{value:?}");
            println!("{}: {}", meter.name, text.chars().take(160).collect::<String>());
        }
    }
}
