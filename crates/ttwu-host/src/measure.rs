//! Small native measurements of what waking a task costs on this machine, for `ttwu calibrate`.
//!
//! Each gives samples of whole batches (mean ns of one operation in a batch), not single operations: a clock read costs as
//! much as what is measured. What a pair of CPUs cannot show (there is no sibling, no second LLC) is simply not asked;
//! the caller marks it as not measured.
//!
//! Threads are bound to their CPUs, because where the scheduler would put them is the very thing being studied; two that
//! share a CPU are `SCHED_BATCH`, so that a wake-up never preempts and each wake-up is one sleep. Under a hypervisor a CPU may be taken away at any time; medians over batches are robust against that, means are not.

pub mod far;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use ttwu_model::{CpuId, CpuSet};

use crate::record::tasks::cpu_set;
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
    let shared = first_cpu == second_cpu;
    let settle = move || if shared { sys::be_batch() } else { Ok(()) };
    thread::scope(|scope| {
        let second = scope.spawn(move || settle().and_then(|()| bound(second_cpu, second)));
        let first = scope.spawn(move || settle().and_then(|()| bound(first_cpu, first)));
        let result = first.join();
        let other = second.join();
        match (result, other) {
            (Ok(result), Ok(other)) => other.and(result),
            (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}

/// May this process be bound to `cpu`? Not to one that is offline or outside of its cpuset, and not to one outside of the
/// calling thread's affinity mask: the kernel would allow that, but who set the mask (`taskset`) would not.
#[must_use]
pub fn may_use(cpu: CpuId) -> bool {
    affinity().is_none_or(|mask| mask.contains(cpu)) && on_cpu(cpu, || Ok(())).is_ok()
}

/// The CPUs of the calling thread's affinity mask; `None` where the kernel does not tell.
#[must_use]
pub fn affinity() -> Option<CpuSet> {
    sys::affinity_mask(0).ok().map(|mask| cpu_set(&mask))
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

/// Reading the clock, ns: what every single measurement holds once.
///
/// # Errors
/// If the CPU may not be used.
pub fn clock_read(cpu: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    on_cpu(cpu, || {
        Ok(batches(effort, || {
            for _ in 0..effort.operations {
                std::hint::black_box(sys::monotonic_ns());
            }
        }))
    })
}

/// A futex wake that finds nobody, ns with its system call.
///
/// # Errors
/// If the CPU may not be used.
pub fn futex_wake_nobody(cpu: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    let word = AtomicU32::new(0);
    on_cpu(cpu, || {
        Ok(batches(effort, || {
            for _ in 0..effort.operations {
                std::hint::black_box(sys::futex_wake(&word));
            }
        }))
    })
}

/// A futex wait that finds another value and returns, ns with its system call.
///
/// # Errors
/// If the CPU may not be used.
pub fn futex_wait_not(cpu: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    let word = AtomicU32::new(0);
    on_cpu(cpu, || {
        Ok(batches(effort, || {
            for _ in 0..effort.operations {
                sys::futex_wait(&word, 1);
            }
        }))
    })
}

/// A `sched_yield` of a thread that is alone on its CPU, ns with its system call.
///
/// # Errors
/// If the CPU may not be used.
pub fn yield_alone(cpu: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    on_cpu(cpu, || {
        Ok(batches(effort, || {
            for _ in 0..effort.operations {
                sys::sched_yield();
            }
        }))
    })
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
    let (read, write) = pipe_pair()?;
    alone(cpu, read, write, bytes, effort)
}

/// As [`pipe_alone`], through a pair of unix stream sockets.
///
/// # Errors
/// As [`pipe_alone`].
pub fn socket_alone(cpu: CpuId, bytes: usize, effort: Effort) -> io::Result<Vec<u64>> {
    let (read, write) = UnixStream::pair()?;
    alone(cpu, read, write, bytes, effort)
}

fn alone(
    cpu: CpuId,
    mut read: impl Read + Send,
    mut write: impl Write + Send,
    bytes: usize,
    effort: Effort,
) -> io::Result<Vec<u64>> {
    on_cpu(cpu, move || {
        let mut buffer = vec![0; bytes];
        until_failure(effort, || write.write_all(&buffer).and_then(|()| read.read_exact(&mut buffer)))
    })
}

/// Batches of `operation`; its first error ends them.
fn until_failure(effort: Effort, mut operation: impl FnMut() -> io::Result<()>) -> io::Result<Vec<u64>> {
    let mut failed = Ok(());
    let samples = batches(effort, || {
        for _ in 0..effort.operations {
            if failed.is_ok() {
                failed = operation();
            }
        }
    });
    failed.map(|()| samples)
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
        until_failure(effort, || there_write.write_all(&byte).and_then(|()| back_read.read_exact(&mut byte)))
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

/// As [`pipe_round_trip`], between two processes on the same CPU.
///
/// # Errors
/// As [`pipe_alone`], or if no process can be made.
pub fn pipe_round_trip_processes(cpu: CpuId, effort: Effort) -> io::Result<Vec<u64>> {
    let (there_read, mut there_write) = pipe_pair()?;
    let (mut back_read, back_write) = pipe_pair()?;
    on_cpu(cpu, move || {
        sys::be_batch()?;
        let child = sys::fork_echo(
            cpu.index(),
            true,
            (there_read.as_fd(), back_write.as_fd()),
            &[there_write.as_fd(), back_read.as_fd()],
        )?;
        // Ours would keep the child's reads open, and us from seeing that it ended.
        drop((there_read, back_write));
        let mut byte = [0];
        let samples = until_failure(effort, || {
            there_write.write_all(&byte).and_then(|()| back_read.read_exact(&mut byte))
        });
        drop(there_write);
        drop(child);
        samples
    })
}

/// What a waker and its wakee see of futex wake-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutexWake {
    /// Time that the waker spends in the call that wakes a sleeper, with one clock reading, ns.
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
        sys::set_timer_slack(1)?;
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

/// How late a sleep of `pause_ns` ends on an otherwise idle CPU, ns: timer interrupt, idle exit, wake-up and switch, and one
/// clock reading. Without the timer slack that ordinary threads have.
///
/// # Errors
/// If the CPU may not be used.
pub fn timer_wakeup(cpu: CpuId, pause_ns: u64, sleeps: usize) -> io::Result<Vec<u64>> {
    on_cpu(cpu, || {
        sys::set_timer_slack(1)?;
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
        Effort, cache_line, clock_read, futex_wait_not, futex_wake, futex_wake_nobody, may_use, on_cpu,
        pipe_alone, pipe_round_trip, pipe_round_trip_processes, socket_alone, system_call, timer_wakeup,
        yield_alone, yield_switch,
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
        let processes = median(pipe_round_trip_processes(cpu, FEW).expect("CPU 0 is there"));
        assert!(processes > 2 * call, "between processes {processes} ns, call {call} ns");
    }

    /// A mask that `taskset` set is kept: binding a thread to another CPU would leave it.
    #[test]
    fn cpus_outside_of_the_affinity_mask_are_not_used() {
        let cpu = CpuId::new(0);
        assert!(may_use(cpu), "CPU 0 is there");
        let others = (1..8).map(CpuId::new);
        let used =
            on_cpu(cpu, || Ok((may_use(cpu), others.filter(|&other| may_use(other)).collect::<Vec<_>>())));
        assert_eq!(used.expect("CPU 0 is there"), (true, Vec::new()));
    }

    /// Clock reads need no system call on ordinary machines, so only calls are compared with anything.
    #[test]
    fn what_one_thread_measures_alone_has_its_samples() {
        let cpu = CpuId::new(0);
        for measured in [
            clock_read(cpu, FEW),
            futex_wake_nobody(cpu, FEW),
            futex_wait_not(cpu, FEW),
            yield_alone(cpu, FEW),
            socket_alone(cpu, 1, FEW),
        ] {
            let samples = measured.expect("CPU 0 is there");
            assert_eq!(samples.len(), 3);
            assert!(samples.iter().all(|&ns| ns > 0), "{samples:?}");
        }
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
        assert!(pipe_round_trip_processes(CpuId::new(1023), FEW).is_err());
    }
}
