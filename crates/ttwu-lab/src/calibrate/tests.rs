//! The equations on numbers of which the answer is known, and against the simulator itself.

use super::*;
use ttwu_fair::Policy;
use ttwu_model::{CpuId, Topology};

/// Costs of a machine that never was, all different.
fn made_up() -> Costs {
    let mut costs = Costs::preset("vm").expect("there is one");
    for (name, value) in [
        ("syscall_ns", 101),
        ("pipe_write_ns", 310),
        ("pipe_read_ns", 310),
        ("copy_ns_per_kib", 48),
        ("socket_write_ns", 750),
        ("socket_read_ns", 600),
        ("futex_wait_ns", 90),
        ("futex_wake_ns", 70),
        ("yield_ns", 60),
        ("schedule_ns", 100),
        ("switch_same_ns", 530),
        ("switch_other_ns", 990),
        ("wake_base_ns", 700),
        ("enqueue_local_ns", 600),
        ("block_ns", 800),
        ("list_push_ns", 83),
        ("monitor_wake_ns", 83),
        ("enqueue_remote_ns", 600 + 1366),
        ("lines_back_ns", 1620),
        ("pipe_lines_ns", 168),
        ("pipe_far_ns", 97),
        ("socket_lines_ns", 224),
        ("socket_far_ns", 305),
        ("socket_cold_ns", 300),
        ("ipi_send_ns", 1700),
        ("ipi_delivery_ns", 2900),
        ("idle_c1_exit_ns", 7100),
        ("tick_ns", 0),
        ("irq_entry_ns", 350),
        ("irq_exit_ns", 250),
    ] {
        costs.set(name, value).expect(name);
    }
    costs
}

/// What the micro-benchmarks take with `costs`, written down by hand from the kernel's paths, not from the solver.
fn forward(costs: &Costs, what: Measurement) -> Option<u64> {
    let c = |name: &str| costs.get(Costs::find(name).expect(name).cost);
    let clock = 20;
    let call = c("syscall_ns");
    let wake = c("wake_base_ns") + c("enqueue_local_ns");
    let reschedule = c("schedule_ns") + c("switch_same_ns");
    let interrupt = c("irq_entry_ns") + c("irq_exit_ns");
    let leg = 2 * call + c("pipe_write_ns") + 2 * c("pipe_read_ns") + wake + c("block_ns") + reschedule;
    let leg_idle = call
        + c("pipe_write_ns")
        + c("wake_base_ns")
        + c("list_push_ns")
        + c("ipi_send_ns")
        + c("ipi_delivery_ns")
        + c("idle_c1_exit_ns")
        + interrupt
        + c("enqueue_local_ns")
        + reschedule
        + c("pipe_read_ns")
        + 2 * (c("pipe_lines_ns") + c("pipe_far_ns"));
    let pipe_byte = 2 * call + c("pipe_write_ns") + c("pipe_read_ns");
    let yield_alone = call + c("yield_ns") + c("schedule_ns");
    match what {
        Measurement::ClockRead => Some(clock),
        Measurement::SystemCall => Some(call),
        Measurement::PipeByte => Some(pipe_byte),
        Measurement::PipePage => Some(pipe_byte + 8 * c("copy_ns_per_kib")),
        Measurement::SocketByte => Some(2 * call + c("socket_write_ns") + c("socket_read_ns")),
        Measurement::PipeFar => Some(c("pipe_lines_ns") + c("pipe_far_ns")),
        Measurement::PipeFarMany => Some(c("pipe_lines_ns") / 8 + c("pipe_far_ns")),
        Measurement::SocketFar => Some(c("socket_lines_ns") + c("socket_far_ns")),
        Measurement::SocketFarMany => Some(c("socket_lines_ns") / 8 + c("socket_far_ns")),
        Measurement::SocketFew => Some(700),
        // 80 sockets with 200 messages of 832 bytes, of which 1 MiB stays in private caches.
        Measurement::SocketMany => Some(700 + c("socket_cold_ns") * (13_312_000 - 1_048_576) / 13_312_000),
        Measurement::BusyWakeNear => Some(clock + call + c("futex_wake_ns") + wake),
        Measurement::BusyWakeFar => {
            Some(clock + call + c("futex_wake_ns") + c("wake_base_ns") + c("enqueue_remote_ns"))
        }
        // The sleeper's wait is found in vain once, then it blocks.
        Measurement::BusyBackNear => Some(yield_alone + 2 * (c("switch_same_ns") + call) + c("block_ns")),
        Measurement::BusyBackFar => Some(
            yield_alone
                + 2 * (c("switch_same_ns") + call)
                + c("block_ns")
                + c("lines_back_ns")
                + c("list_push_ns"),
        ),
        Measurement::FutexWakeNobody => Some(call + c("futex_wake_ns")),
        Measurement::FutexWaitNot => Some(call + c("futex_wait_ns")),
        Measurement::YieldAlone => Some(yield_alone),
        Measurement::YieldSwitch => Some(yield_alone + c("switch_same_ns")),
        Measurement::FutexWakeSameCpu => Some(clock + call + c("futex_wake_ns") + wake),
        Measurement::FutexWakeOtherCpu => {
            Some(clock + call + c("futex_wake_ns") + c("wake_base_ns") + c("list_push_ns") + c("ipi_send_ns"))
        }
        Measurement::PipeSameCpu => Some(2 * leg),
        Measurement::PipeProcesses => Some(2 * (leg + c("switch_other_ns") - c("switch_same_ns"))),
        Measurement::PipeOtherCpu => Some(2 * leg_idle),
        Measurement::TimerLate => {
            Some(clock + c("idle_c1_exit_ns") + interrupt + c("timer_handler_ns") + wake + reschedule)
        }
        Measurement::Line => Some(c("list_push_ns")),
        Measurement::FutexLatencyOtherCpu
        | Measurement::PipeSmt
        | Measurement::PipeOtherLlc
        | Measurement::PipeOtherNode
        | Measurement::LineOtherLlc
        | Measurement::LineOtherNode => None,
    }
}

fn observed(costs: &Costs) -> Observed {
    let mut observed = Observed::new();
    for what in Measurement::ALL {
        match forward(costs, what) {
            Some(ns) => observed.put(what, vec![ns; 9]),
            None => observed.miss(what, "no such CPU"),
        }
    }
    observed
}

#[test]
fn known_costs_come_back() {
    let truth = made_up();
    let calibration = calibrate(&observed(&truth), &Costs::preset("vm").expect("there is one"), &[]);
    let mut determined = 0;
    for row in &calibration.rows {
        let (got, want) = (row.value, truth.get(row.row.cost));
        // What is not determined keeps the preset; the truth above changes only the tick of those.
        if row.interval.is_some() {
            determined += 1;
            assert!(got.abs_diff(want) <= 1, "{}: {got}, not {want} ({})", row.row.name, row.source);
            assert_eq!(calibration.costs.get(row.row.cost), got);
        } else {
            assert!(row.source.starts_with("not measured"), "{}: {}", row.row.name, row.source);
        }
    }
    assert_eq!(determined, 27);
}

#[test]
fn the_file_reads_back_with_its_standing() {
    let calibration = calibrate(&observed(&made_up()), &Costs::preset("vm").expect("there is one"), &[]);
    let back = Costs::from_toml(&calibration.costs.to_toml()).expect("reads");
    assert_eq!(back, calibration.costs);
    assert_eq!(back.basis(Cost::Syscall), Basis::Measured);
    assert_eq!(back.basis(Cost::EnqueueRemote), Basis::Measured);
    assert_eq!(back.basis(Cost::TimerHandler), Basis::Estimate);
}

/// The equations describe what the simulator does: it gives the round trips back that the costs were solved from.
#[test]
fn the_simulator_gives_the_measured_round_trips_back() {
    let topology = Topology::parse("2 cores").expect("a topology");
    let costs = made_up();
    for policy in ["linux-6.1", "linux-6.12", "linux-7.2"] {
        let policy = Policy::parse(policy).expect("a policy");
        for (second, what) in [(0, Measurement::PipeSameCpu), (1, Measurement::PipeOtherCpu)] {
            let pair = (CpuId::new(0), CpuId::new(second));
            let got = simulated_round_trip(&topology, &policy, &costs, pair).expect("runs");
            let want = forward(&costs, what).expect("one of the above");
            assert!(got.abs_diff(want) * 100 <= want, "{}: {got}, not {want} under {policy}", what.name());
        }
    }
}

/// Rounds are pooled: the median is that of all samples, not that of the last round.
#[test]
fn a_second_round_adds_its_samples() {
    let mut observed = Observed::new();
    observed.put(Measurement::Line, vec![80; 9]);
    observed.put(Measurement::Line, vec![100; 7]);
    assert_eq!(observed.count(Measurement::Line), 16);
    assert_eq!(observed.median(Measurement::Line).map(|median| median.estimate), Some(80.0));
}

/// Noise in one measurement moves the costs that hang on it, and no other.
#[test]
fn intervals_follow_the_medians() {
    let truth = made_up();
    let mut observed = observed(&truth);
    observed.samples.remove(&Measurement::YieldSwitch);
    observed.put(Measurement::YieldSwitch, (0..9).map(|n| 787 + n).collect());
    let calibration = calibrate(&observed, &Costs::preset("vm").expect("there is one"), &[]);
    let interval = |cost: Cost| {
        let row = calibration.rows.iter().find(|row| row.row.cost == cost);
        row.and_then(|row| row.interval).expect("measured")
    };
    // Of nine samples the second and the eighth bound the median: 788 and 794 around 791.
    assert_eq!(interval(Cost::SwitchSame), (527, 533));
    // It has eight parts in twenty-one of what is left then.
    assert_eq!(interval(Cost::Block), (798, 802));
    assert_eq!(interval(Cost::Syscall), (101, 101));
}

#[test]
fn what_is_missing_keeps_its_default_and_says_why() {
    let mut observed = observed(&made_up());
    for what in [
        Measurement::PipeOtherCpu,
        Measurement::FutexWakeOtherCpu,
        Measurement::BusyWakeFar,
        Measurement::Line,
    ] {
        observed.samples.remove(&what);
        observed.miss(what, "one CPU online");
    }
    let base = Costs::preset("vm").expect("there is one");
    let calibration = calibrate(&observed, &base, &[]);
    let row = calibration.rows.iter().find(|row| row.row.cost == Cost::IpiDelivery).expect("a row");
    assert_eq!(
        (row.value, row.interval, row.source.as_str()),
        (base.get(Cost::IpiDelivery), None, "not measured (one CPU online): default of vm")
    );
    assert!(!calibration.costs.changed().contains(&Cost::IpiDelivery));
}

#[test]
fn facts_are_taken_and_not_solved_for() {
    let facts = [(Cost::Idle1Exit, 7100, "cpuidle: HLT")];
    let calibration = calibrate(&observed(&made_up()), &Costs::preset("vm").expect("there is one"), &facts);
    let row = calibration.rows.iter().find(|row| row.row.cost == Cost::Idle1Exit).expect("a row");
    assert_eq!((row.value, row.interval, row.source.as_str()), (7100, None, "cpuidle: HLT"));
    assert_eq!(calibration.costs.get(Cost::IpiDelivery), 2900);
}

fn row(calibration: &Calibration, cost: Cost) -> &Calibrated {
    calibration.rows.iter().find(|row| row.row.cost == cost).expect("a row")
}

/// Less than the sum of the known parts: neither a negative cost nor a measured 0.
#[test]
fn a_remainder_below_0_determines_nothing() {
    let truth = made_up();
    let base = Costs::preset("vm").expect("there is one");
    let mut observed = observed(&truth);
    let mut change = |what: Measurement, ns: u64| {
        observed.samples.remove(&what);
        observed.put(what, vec![ns; 9]);
    };
    change(Measurement::PipeSameCpu, 3000);
    // Dearer than a page.
    change(Measurement::PipePage, 100);
    // A waker of the same CPU waits longer than one of another.
    change(Measurement::FutexWakeSameCpu, 90_000);
    let calibration = calibrate(&observed, &base, &[]);
    for (cost, equation) in [
        (Cost::Block, "pipe_same_cpu / 2 - all else of a leg on one CPU"),
        (Cost::WakeBase, "pipe_same_cpu / 2 - all else of a leg on one CPU"),
        (Cost::EnqueueLocal, "pipe_same_cpu / 2 - all else of a leg on one CPU"),
        (Cost::CopyKib, "(pipe_page - pipe_byte) / 8 KiB"),
        (Cost::IpiSend, "futex_wake_other_cpu - futex_wake_same_cpu + enqueue_local_ns - list_push_ns"),
    ] {
        let row = row(&calibration, cost);
        assert_eq!((row.value, row.interval, row.not_determined), (base.get(cost), None, true), "{cost:?}");
        let want = format!("not determined: the remainder of {equation} is below 0: default of vm");
        assert_eq!(row.source, want);
        assert_eq!(row.basis, base.basis(cost));
        assert_eq!(calibration.costs.get(cost), base.get(cost));
        assert!(!calibration.costs.changed().contains(&cost), "{cost:?}");
    }
    // What was measured by itself stays.
    assert_eq!(row(&calibration, Cost::SwitchSame).value, truth.get(Cost::SwitchSame));
}

/// A round trip has the sum of delivery and idle exit: where a timer's lateness leaves nothing for delivery, that is the
/// preset's, and the idle exit what it leaves.
#[test]
fn the_idle_exit_takes_what_the_presets_delivery_leaves() {
    let truth = made_up();
    let base = Costs::preset("vm").expect("there is one");
    let sum = truth.get(Cost::IpiDelivery) + truth.get(Cost::Idle1Exit);
    let mut observed = observed(&truth);
    let late = observed.median(Measurement::TimerLate).expect("measured").estimate as u64;
    observed.samples.remove(&Measurement::TimerLate);
    observed.put(Measurement::TimerLate, vec![late + 5000; 9]);
    let calibration = calibrate(&observed, &base, &[]);
    let delivery = row(&calibration, Cost::IpiDelivery);
    assert_eq!((delivery.value, delivery.not_determined), (base.get(Cost::IpiDelivery), true));
    let exit = row(&calibration, Cost::Idle1Exit);
    assert!(
        (delivery.value + exit.value).abs_diff(sum) <= 1,
        "{} + {}, not {sum}",
        delivery.value,
        exit.value
    );
    assert_eq!((exit.interval, exit.basis), (Some((exit.value, exit.value)), Basis::Estimate));
}

/// An end of an interval that would leave less than nothing ends at 0; it does not put the preset in.
#[test]
fn an_interval_ends_at_0() {
    let mut observed = observed(&made_up());
    observed.samples.remove(&Measurement::FutexWakeNobody);
    // syscall_ns is 101.
    observed.put(Measurement::FutexWakeNobody, vec![20, 30, 40, 100, 111, 112, 113, 114, 115]);
    let calibration = calibrate(&observed, &Costs::preset("vm").expect("there is one"), &[]);
    let wake = row(&calibration, Cost::FutexWake);
    assert_eq!((wake.value, wake.interval), (10, Some((0, 13))));
}
