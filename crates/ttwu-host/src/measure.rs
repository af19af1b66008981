//! Small native measurements of what waking a task costs on this machine, for `ttwu calibrate`.
//!
//! Each gives samples of whole batches (mean ns of one operation in a batch), not single operations: a clock read costs as
//! much as what is measured. What a pair of CPUs cannot show (there is no sibling, no second LLC) is simply not asked;
//! the caller marks it as not measured.
//!
//! Threads are bound to their CPUs, because where the scheduler would put them is the very thing being studied. Under a
//! hypervisor a CPU may be taken away at any time; medians over batches are robust against that, means are not.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use ttwu_model::CpuId;

use crate::sys;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Batches: the number of samples.
    pub batches: usize,
    /// Operations a batch.
    pub operations: usize,
}

impl Effort {
    fn ns_per_operation(self, began: u64, ended: u64) -> u64 {
        ended.saturating_sub(began) / self.operations as u64
    }
}

fn bound<T>(cpu: CpuId, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    sys::bind_to_cpu(cpu.index())?;
    work()
}

/// Runs `work` on a thread of its own, bound to `cpu`, so that the caller's affinity stays as it is.
fn on_cpu<T: Send>(cpu: CpuId, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| match scope.spawn(|| bound(cpu, work)).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Both threads' results: the first one's samples. Whether the CPUs may be used is tried first, since one thread alone would
/// wait for the other for ever.
fn on_two_cpus<T: Send, U: Send>(
    (first_cpu, first): (CpuId, impl FnOnce() -> io::Result<T> + Send),
    (second_cpu, second): (CpuId, impl FnOnce() -> io::Result<U> + Send),
) -> io::Result<T> {
    for cpu in [first_cpu, second_cpu] {
        on_cpu(cpu, || Ok(()))?;
    }
    thread::scope(|scope| {
        let second = scope.spawn(|| bound(second_cpu, second));
        let first = scope.spawn(|| bound(first_cpu, first));
        let result = first.join();
        let other = second.join();
        match (result, other) {
            (Ok(result), Ok(other)) => other.and(result),
            (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}

/// A short system call (`getppid`), ns.
///
/// # Errors
/// If the CPU may not be used.
pub fn system_call(cpu: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    on_cpu(cpu, || {
        Ok(batches(effort, || {
            for _ in 0..effort.operations {
                std::hint::black_box(sys::getppid());
            }
        }))
    })
}

fn batches(effort: Effort, mut batch: impl FnMut()) -> Vec<u64> {
    // The first batch warms caches and is not kept.
    batch();
    (0..effort.batches)
        .map(|_| {
            let began = sys::monotonic_ns();
            batch();
            effort.ns_per_operation(began, sys::monotonic_ns())
        })
        .collect()
}

fn pipe_pair() -> io::Result<(std::fs::File, std::fs::File)> {
    let (read, write): (OwnedFd, OwnedFd) = sys::pipe()?;
    Ok((read.into(), write.into()))
}

/// Writing `bytes` to a pipe and reading them back in the same thread, ns for the two: no sleep, no wake-up.
///
/// # Errors
/// If the CPU may not be used, or there is no descriptor left.
pub fn pipe_alone(cpu: CpuId, bytes: usize, effort: Effort) -> io::Result<Vec<u64>> {
    let (mut read, mut write) = pipe_pair()?;
    on_cpu(cpu, move || {
        let mut buffer = vec![0; bytes];
        let mut failed = Ok(());
        let samples = batches(effort, || {
            for _ in 0..effort.operations {
                let done = write.write_all(&buffer).and_then(|()| read.read_exact(&mut buffer));
                if done.is_err() {
                    failed = done;
                    return;
                }
            }
        });
        failed.map(|()| samples)
    })
}

/// A byte to and fro over two pipes between threads on two CPUs (or the same one), ns a round trip: four system calls, two
/// wake-ups, and two switches on the same CPU.
///
/// # Errors
/// As [`pipe_alone`].
pub fn pipe_round_trip(first: CpuId, second: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    let (mut there_read, mut there_write) = pipe_pair()?;
    let (mut back_read, mut back_write) = pipe_pair()?;
    let ping = move || {
        let mut byte = [0];
        let mut failed = Ok(());
        let samples = batches(effort, || {
            for _ in 0..effort.operations {
                let done = there_write.write_all(&byte).and_then(|()| back_read.read_exact(&mut byte));
                if done.is_err() {
                    failed = done;
                    return;
                }
            }
        });
        failed.map(|()| samples)
    };
    let pong = move || {
        let mut byte = [0];
        // The first thread's end closes the pipe, which ends this one.
        while there_read.read(&mut byte)? == 1 {
            if back_write.write_all(&byte).is_err() {
                break;
            }
        }
        Ok(())
    };
    on_two_cpus((first, ping), (second, pong))
}

/// What a waker and its wakee see of futex wake-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutexWake {
    /// Time that the waker spends in the call that wakes a sleeper, ns.
    pub waker_ns: Vec<u64>,
    /// From before that call until the wakee runs, ns.
    pub latency_ns: Vec<u64>,
}

/// Single wake-ups of a thread that sleeps on a futex on `wakee`, by one on `waker`, `pause_ns` after it went to sleep.
///
/// # Errors
/// If a CPU may not be used.
pub fn futex_wake(waker: CpuId, wakee: CpuId, pause_ns: u64, wakes: usize) -> io::Result<FutexWake> {
    let word = AtomicU32::new(0);
    let awake_at = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let wake = || {
        let mut result =
            FutexWake { waker_ns: Vec::with_capacity(wakes), latency_ns: Vec::with_capacity(wakes) };
        for _ in 0..wakes {
            sys::sleep_until(sys::monotonic_ns() + pause_ns);
            awake_at.store(0, Ordering::Release);
            word.store(1, Ordering::Release);
            let began = sys::monotonic_ns();
            let slept = sys::futex_wake(&word);
            let ended = sys::monotonic_ns();
            let mut seen = awake_at.load(Ordering::Acquire);
            while seen == 0 {
                // On the same CPU the wakee can run only if we let it.
                sys::sched_yield();
                seen = awake_at.load(Ordering::Acquire);
            }
            // One that was still awake tells nothing.
            if slept {
                result.waker_ns.push(ended - began);
                result.latency_ns.push(seen.saturating_sub(began));
            }
        }
        stop.store(true, Ordering::Release);
        word.store(1, Ordering::Release);
        sys::futex_wake(&word);
        Ok(result)
    };
    let sleep = || {
        while !stop.load(Ordering::Acquire) {
            while word.load(Ordering::Acquire) == 0 {
                sys::futex_wait(&word, 0);
            }
            let now = sys::monotonic_ns();
            word.store(0, Ordering::Release);
            awake_at.store(now, Ordering::Release);
        }
        Ok(())
    };
    on_two_cpus((waker, wake), (wakee, sleep))
}

/// Two threads of this process that yield to each other on one CPU, ns a switch (with its `sched_yield`).
///
/// # Errors
/// If the CPU may not be used.
pub fn yield_switch(cpu: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    let stop = AtomicBool::new(false);
    let measured = || {
        let samples = batches(effort, || {
            for _ in 0..effort.operations {
                sys::sched_yield();
            }
        });
        stop.store(true, Ordering::Release);
        // Each call gives the CPU away and gets it back: two switches.
        Ok(samples.into_iter().map(|ns| ns / 2).collect())
    };
    let other = || {
        while !stop.load(Ordering::Acquire) {
            sys::sched_yield();
        }
        Ok(())
    };
    on_two_cpus((cpu, measured), (cpu, other))
}

/// How late a sleep of `pause_ns` ends on an otherwise idle CPU, ns: timer interrupt, idle exit, wake-up and switch.
///
/// # Errors
/// If the CPU may not be used.
pub fn timer_wakeup(cpu: CpuId, pause_ns: u64, sleeps: usize) -> io::Result<Vec<u64>> {
    on_cpu(cpu, || {
        Ok((0..sleeps)
            .map(|_| {
                let at = sys::monotonic_ns() + pause_ns;
                sys::sleep_until(at);
                sys::monotonic_ns().saturating_sub(at)
            })
            .collect())
    })
}

/// A cache line to and fro between two CPUs, ns for one way.
///
/// # Errors
/// If a CPU may not be used.
pub fn cache_line(first: CpuId, second: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    let line = AtomicU64::new(0);
    // One thread makes the number odd, the other even.
    let turn = |odd: u64, rounds: u64| {
        for round in 0..rounds {
            let expected = 2 * round + odd;
            let mut spins = 0_u32;
            while line.load(Ordering::Acquire) != expected {
                spins += 1;
                std::hint::spin_loop();
                // A CPU that the hypervisor (or another task) took away must not hang us for its whole slice.
                if spins.is_multiple_of(1 << 14) {
                    sys::sched_yield();
                }
            }
            line.store(expected + 1, Ordering::Release);
        }
    };
    let per_batch = effort.operations as u64;
    let mut samples = Vec::with_capacity(effort.batches);
    for _ in 0..effort.batches {
        line.store(0, Ordering::Release);
        let elapsed = on_two_cpus(
            (first, || {
                let began = sys::monotonic_ns();
                turn(0, per_batch);
                Ok(sys::monotonic_ns() - began)
            }),
            (second, || {
                turn(1, per_batch);
                Ok(())
            }),
        )?;
        samples.push(elapsed / (2 * per_batch));
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::{
        Effort, cache_line, futex_wake, pipe_alone, pipe_round_trip, system_call, timer_wakeup, yield_switch,
    };
    use ttwu_model::CpuId;

    const FEW: Effort = Effort { batches: 3, operations: 50 };

    fn median(mut samples: Vec<u64>) -> u64 {
        samples.sort_unstable();
        samples[samples.len() / 2]
    }

    /// A round trip with sleeps holds at least its four system calls; that is the one order that noise cannot turn round.
    #[test]
    fn a_round_trip_costs_more_than_its_system_calls() {
        let cpu = CpuId::new(0);
        let round = median(pipe_round_trip(cpu, cpu, FEW).expect("CPU 0 is there"));
        let alone = median(pipe_alone(cpu, 1, FEW).expect("CPU 0 is there"));
        let call = median(system_call(cpu, FEW).expect("CPU 0 is there"));
        assert!(round > 2 * call && alone > call, "round trip {round} ns, alone {alone} ns, call {call} ns");
        assert_eq!(yield_switch(cpu, FEW).expect("CPU 0 is there").len(), 3);
    }

    #[test]
    fn a_timer_is_never_early() {
        let late = timer_wakeup(CpuId::new(0), 100_000, 5).expect("CPU 0 is there");
        assert_eq!(late.len(), 5);
        assert!(median(late) > 0);
    }

    #[test]
    fn a_futex_wake_reaches_the_sleeper() {
        let cpu = CpuId::new(0);
        let wake = futex_wake(cpu, cpu, 200_000, 10).expect("CPU 0 is there");
        assert_eq!(wake.waker_ns.len(), wake.latency_ns.len());
        assert!(wake.latency_ns.len() >= 5, "{wake:?}");
        // On one CPU the wakee runs only after the waker's call.
        assert!(median(wake.latency_ns) >= median(wake.waker_ns) / 2);
    }

    #[test]
    fn a_line_moves_between_two_cpus() {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if cpus < 2 {
            eprintln!("SKIPPED a_line_moves_between_two_cpus: one CPU");
            return;
        }
        let samples = cache_line(CpuId::new(0), CpuId::new(1), Effort { batches: 2, operations: 100 })
            .expect("two CPUs");
        assert!(samples.iter().all(|&ns| ns > 0), "{samples:?}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(system_call(CpuId::new(1023), FEW).is_err());
        assert!(system_call(CpuId::new(5000), FEW).is_err());
        assert!(cache_line(CpuId::new(0), CpuId::new(1023), FEW).is_err());
        assert!(futex_wake(CpuId::new(1023), CpuId::new(0), 1, 1).is_err());
    }
}
