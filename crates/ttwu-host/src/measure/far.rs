//! What it costs that another CPU was there before: lines of streams, of run queues and of tasks.
//!
//! Each batch measures the same operations near and far by turns and gives both, since a virtual machine's speed changes
//! within seconds by more than the difference: only the two of one batch may be compared.
//!
//! ```text
//! streams   first   writes all ─ reads all ─┬─ writes all ─┐
//!           second                          └──────────────┴─ reads all
//!
//! wakes     first                       ┌─ wakes ──────┐
//!           second  wakes ─ gives way ──┘              └─ gives way ─ (the woken one runs and sleeps again)
//! ```

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use ttwu_model::CpuId;

use super::{Effort, bound, may_use, on_two_cpus, pipe_pair};
use crate::sys;

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Pipes.
    Pipe,
    /// Pairs of unix stream sockets.
    Socket,
}

/// Calls on streams, ns each, a sample a batch: with everything on one CPU, and with a reader on another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamCalls {
    /// A write where the same CPU reads.
    pub write_near_ns: Vec<u64>,
    /// A read of what the same CPU wrote.
    pub read_near_ns: Vec<u64>,
    /// A write where another CPU read before.
    pub write_far_ns: Vec<u64>,
    /// A read of what another CPU wrote.
    pub read_far_ns: Vec<u64>,
}

/// How streams are used in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRound {
    /// What they are.
    pub carrier: Carrier,
    /// How many are walked over.
    pub streams: usize,
    /// Messages written to (and read from) a stream at each visit.
    pub messages: usize,
    /// Bytes of a message.
    pub bytes: usize,
}

type Ends = (Vec<Box<dyn Read + Send>>, Vec<Box<dyn Write + Send>>);

fn open(round: StreamRound) -> io::Result<Ends> {
    let (mut readers, mut writers): Ends = (Vec::new(), Vec::new());
    for _ in 0..round.streams {
        match round.carrier {
            Carrier::Pipe => {
                let (read, write) = pipe_pair()?;
                readers.push(Box::new(read));
                writers.push(Box::new(write));
            }
            Carrier::Socket => {
                let (read, write) = UnixStream::pair()?;
                readers.push(Box::new(read));
                writers.push(Box::new(write));
            }
        }
    }
    Ok((readers, writers))
}

/// Waits for a value that another CPU stores.
fn watch(word: &AtomicU32, wanted: u32) {
    let mut spins = 0_u32;
    while word.load(Ordering::Acquire) != wanted {
        spins += 1;
        std::hint::spin_loop();
        // A CPU that the hypervisor (or another task) took away must not hang us for its whole slice.
        if spins.is_multiple_of(1 << 14) {
            sys::sched_yield();
        }
    }
}

const FIRST: u32 = 0;
const SECOND: u32 = 1;
const END: u32 = 2;

/// Writes to and reads from streams on `first` alone, and with the reader on `second`, by turns.
///
/// # Errors
/// If a CPU may not be used, or there is no descriptor left.
pub fn stream_calls(
    first: CpuId,
    second: CpuId,
    round: StreamRound,
    effort: Effort,
) -> io::Result<StreamCalls> {
    let (readers, mut writers) = open(round)?;
    let readers = std::sync::Mutex::new(readers);
    let calls = (round.streams * round.messages) as u64;
    let rounds = (effort.operations as u64).div_ceil(calls);
    let turn = AtomicU32::new(FIRST);
    let read_ns = AtomicU64::new(0);
    let read_all = || -> io::Result<u64> {
        let mut buffer = vec![0; round.bytes];
        let mut readers = readers.lock().expect("no reader panics");
        let began = sys::monotonic_ns();
        for reader in readers.iter_mut() {
            for _ in 0..round.messages {
                reader.read_exact(&mut buffer)?;
            }
        }
        Ok(sys::monotonic_ns() - began)
    };
    let measured = || {
        let buffer = vec![0; round.bytes];
        let mut write_all = || -> io::Result<u64> {
            let began = sys::monotonic_ns();
            for writer in &mut writers {
                for _ in 0..round.messages {
                    writer.write_all(&buffer)?;
                }
            }
            Ok(sys::monotonic_ns() - began)
        };
        let mut result = StreamCalls::default();
        // The first batch warms caches and is not kept.
        let run = (0..=effort.batches).try_for_each(|batch| {
            let mut sums = [0_u64; 4];
            // Near rounds follow near rounds, else their first calls would find the lines elsewhere.
            for round in 0..=rounds {
                let near = [write_all()?, read_all()?];
                if round > 0 {
                    sums[0] += near[0];
                    sums[1] += near[1];
                }
            }
            for round in 0..=rounds {
                let wrote = write_all()?;
                turn.store(SECOND, Ordering::Release);
                watch(&turn, FIRST);
                if round > 0 {
                    sums[2] += wrote;
                    sums[3] += read_ns.load(Ordering::Acquire);
                }
            }
            if batch > 0 {
                let each = sums.map(|sum| sum / (rounds * calls));
                result.write_near_ns.push(each[0]);
                result.read_near_ns.push(each[1]);
                result.write_far_ns.push(each[2]);
                result.read_far_ns.push(each[3]);
            }
            Ok(())
        });
        turn.store(END, Ordering::Release);
        run.map(|()| result)
    };
    let far = || {
        loop {
            let mut spins = 0_u32;
            let now = loop {
                match turn.load(Ordering::Acquire) {
                    FIRST => std::hint::spin_loop(),
                    now => break now,
                }
                spins += 1;
                if spins.is_multiple_of(1 << 14) {
                    sys::sched_yield();
                }
            };
            if now == END {
                return Ok(());
            }
            let read = read_all();
            read_ns.store(*read.as_ref().unwrap_or(&0), Ordering::Release);
            // Also after an error: the first thread must not wait for ever. It will find its pipes full.
            turn.store(FIRST, Ordering::Release);
            read?;
        }
    };
    on_two_cpus((first, measured), (second, far))
}

/// Calls on streams that hold many messages at once: mean of a write and a read by one thread, ns, a sample a batch, for a
/// `small` and a `large` round by turns.
///
/// # Errors
/// If the CPU may not be used, or there is no descriptor left.
pub fn queued_calls(
    cpu: CpuId,
    small: StreamRound,
    large: StreamRound,
    batches: usize,
) -> io::Result<(Vec<u64>, Vec<u64>)> {
    let mut sets = [(small, open(small)?), (large, open(large)?)];
    super::on_cpu(cpu, move || {
        let mut samples = [Vec::new(), Vec::new()];
        // The first batch warms caches and is not kept.
        for batch in 0..=batches {
            for (samples, (round, (readers, writers))) in samples.iter_mut().zip(&mut sets) {
                let mut buffer = vec![0; round.bytes];
                let calls = (2 * round.streams * round.messages) as u64;
                // As many calls in both, or short rounds would be measured less well.
                let rounds = (2 * large.streams * large.messages) as u64 / calls;
                let began = sys::monotonic_ns();
                for _ in 0..rounds.max(1) {
                    for writer in writers.iter_mut() {
                        for _ in 0..round.messages {
                            writer.write_all(&buffer)?;
                        }
                    }
                    for reader in readers.iter_mut() {
                        for _ in 0..round.messages {
                            reader.read_exact(&mut buffer)?;
                        }
                    }
                }
                if batch > 0 {
                    samples.push((sys::monotonic_ns() - began) / (rounds.max(1) * calls));
                }
            }
        }
        let [small, large] = samples;
        Ok((small, large))
    })
}

/// Wake-ups of tasks on a busy CPU, ns each, a sample a wake-up: by that CPU itself, and by another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusyWakes {
    /// The call that wakes, on the same CPU, with one clock reading.
    pub wake_near_ns: Vec<u64>,
    /// From then on until the CPU's running task, which gives way, runs again: two switches and the woken task's way back to
    /// sleep, with one clock reading.
    pub back_near_ns: Vec<u64>,
    /// The call that wakes, on another CPU.
    pub wake_far_ns: Vec<u64>,
    /// As [`BusyWakes::back_near_ns`], after another CPU woke.
    pub back_far_ns: Vec<u64>,
}

/// How long the CPUs are left alone before each wake-up, ns: what was under way is over.
const SETTLE_NS: u64 = 2_000;

/// A word that a task sleeps on, with its line (and the neighbour that is fetched with it) to itself.
#[repr(align(128))]
struct Sleeper(AtomicU32);

/// Tasks sleep on `busy`, where another one runs that gives way only to let them run. They are woken one after another, by that
/// one and by one on `other` by turns.
///
/// # Errors
/// If a CPU may not be used.
pub fn busy_wakes(other: CpuId, busy: CpuId, sleepers: usize, wakes: usize) -> io::Result<BusyWakes> {
    if !may_use(busy) || !may_use(other) || other == busy {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "two CPUs that may be used are needed"));
    }
    let words: Vec<Sleeper> = (0..sleepers.max(1)).map(|_| Sleeper(AtomicU32::new(0))).collect();
    let stop = AtomicBool::new(false);
    let turn = AtomicU32::new(FIRST);
    let sleep = |word: &AtomicU32| {
        sys::be_batch()?;
        bound(busy, || {
            while !stop.load(Ordering::Acquire) {
                while word.load(Ordering::Acquire) == 0 {
                    sys::futex_wait(word, 0);
                }
                word.store(0, Ordering::Release);
            }
            Ok(())
        })
    };
    let wake = |word: &AtomicU32| {
        let until = sys::monotonic_ns() + SETTLE_NS;
        while sys::monotonic_ns() < until {
            std::hint::spin_loop();
        }
        word.store(1, Ordering::Release);
        let began = sys::monotonic_ns();
        let slept = sys::futex_wake(word);
        (slept, sys::monotonic_ns() - began)
    };
    // The running task, which gives way until the woken one has taken its word back. Once suffices but where others run too.
    let give_way = |word: &AtomicU32| {
        let began = sys::monotonic_ns();
        sys::sched_yield();
        let back = sys::monotonic_ns() - began;
        let at_once = word.load(Ordering::Acquire) == 0;
        while word.load(Ordering::Acquire) != 0 {
            sys::sched_yield();
        }
        (at_once, back)
    };
    let current = AtomicU32::new(0);
    let runs = || {
        sys::be_batch()?;
        bound(busy, || {
            let mut result = BusyWakes::default();
            // All of them must have gone to sleep first.
            for _ in 0..10 * words.len() {
                sys::sched_yield();
            }
            for count in 0..2 * wakes {
                let index = count / 2 % words.len();
                let word = &words[index].0;
                if count % 2 == 0 {
                    let (slept, wake_ns) = wake(word);
                    let (at_once, back_ns) = give_way(word);
                    if slept && at_once {
                        result.wake_near_ns.push(wake_ns);
                        result.back_near_ns.push(back_ns);
                    }
                } else {
                    current.store(index as u32, Ordering::Release);
                    turn.store(SECOND, Ordering::Release);
                    watch(&turn, FIRST);
                    let (at_once, back_ns) = give_way(word);
                    if at_once {
                        result.back_far_ns.push(back_ns);
                    }
                }
            }
            turn.store(END, Ordering::Release);
            Ok(result)
        })
    };
    let wakes_from_afar = || {
        bound(other, || {
            let mut samples = Vec::with_capacity(wakes);
            loop {
                match turn.load(Ordering::Acquire) {
                    FIRST => std::hint::spin_loop(),
                    SECOND => {
                        let word = &words[current.load(Ordering::Acquire) as usize].0;
                        let (slept, wake_ns) = wake(word);
                        turn.store(FIRST, Ordering::Release);
                        if slept {
                            samples.push(wake_ns);
                        }
                    }
                    _ => return Ok(samples),
                }
            }
        })
    };
    thread::scope(|scope| {
        for word in &words {
            scope.spawn(|| sleep(&word.0));
        }
        let far = scope.spawn(wakes_from_afar);
        let near = scope.spawn(runs).join();
        stop.store(true, Ordering::Release);
        turn.store(END, Ordering::Release);
        for word in &words {
            word.0.store(1, Ordering::Release);
            sys::futex_wake(&word.0);
        }
        match (near, far.join()) {
            (Ok(near), Ok(far)) => {
                let (mut result, samples) = (near?, far?);
                result.wake_far_ns = samples;
                Ok(result)
            }
            (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Carrier, StreamRound, busy_wakes, stream_calls};
    use crate::measure::Effort;
    use ttwu_model::CpuId;

    fn two_cpus(test: &str) -> bool {
        let there = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
        if !there {
            eprintln!("SKIPPED {test}: one CPU");
        }
        there
    }

    #[test]
    fn streams_are_read_near_and_far() {
        if !two_cpus("streams_are_read_near_and_far") {
            return;
        }
        for carrier in [Carrier::Pipe, Carrier::Socket] {
            let round = StreamRound { carrier, streams: 3, messages: 2, bytes: 100 };
            let effort = Effort { batches: 4, operations: 60 };
            let calls = stream_calls(CpuId::new(0), CpuId::new(1), round, effort).expect("two CPUs");
            let all = [&calls.write_near_ns, &calls.read_near_ns, &calls.write_far_ns, &calls.read_far_ns];
            assert!(all.iter().all(|samples| samples.len() == 4), "{calls:?}");
            assert!(all.iter().all(|samples| samples.iter().all(|&ns| ns > 0)), "{calls:?}");
        }
    }

    #[test]
    fn sleepers_of_a_busy_cpu_are_woken_near_and_far() {
        if !two_cpus("sleepers_of_a_busy_cpu_are_woken_near_and_far") {
            return;
        }
        let wakes = busy_wakes(CpuId::new(0), CpuId::new(1), 3, 50).expect("two CPUs");
        let all = [&wakes.wake_near_ns, &wakes.back_near_ns, &wakes.wake_far_ns, &wakes.back_far_ns];
        // Other threads of these tests may run in between: not every wake-up finds its sleeper asleep.
        assert!(all.iter().all(|samples| samples.len() >= 10), "{wakes:?}");
    }

    #[test]
    fn few_and_many_queued_messages_have_a_sample_a_batch() {
        let small = StreamRound { carrier: Carrier::Socket, streams: 1, messages: 4, bytes: 100 };
        let large = StreamRound { streams: 4, messages: 20, ..small };
        let (few, many) = super::queued_calls(CpuId::new(0), small, large, 3).expect("CPU 0 is there");
        assert_eq!((few.len(), many.len()), (3, 3));
        assert!(few.iter().chain(&many).all(|&ns| ns > 0), "{few:?} {many:?}");
    }

    #[test]
    fn one_cpu_is_not_enough() {
        let cpu = CpuId::new(0);
        assert!(busy_wakes(cpu, cpu, 1, 1).is_err());
        let round = StreamRound { carrier: Carrier::Pipe, streams: 1, messages: 1, bytes: 1 };
        let effort = Effort { batches: 1, operations: 1 };
        assert!(stream_calls(cpu, CpuId::new(1023), round, effort).is_err());
    }
}
