//! The all-to-all message spray that hackbench and `perf bench sched messaging` share.
//!
//! A group has f receivers, f channels and f senders. Channel j belongs to receiver j, and every sender writes to all f channels
//! in turn: a sender's round is f messages, a receiver reads f × loops of them, a group carries f × f × loops.
//!
//! Start: every task writes a byte to *ready*, then polls *wake*. The main task reads one byte a task, takes the time, and
//! writes one byte to wake, which nobody reads: all tasks leave the poll. The herd and everybody's end are within the measured
//! time, their creation is not.

use super::{fixed, link};
use crate::{
    Builder, MeterKind, MeterRef, ObjectId, ObjectKind, Op, Reg, Slot, SocketKind, Start, StreamKind,
    TaskRef, Times, Until,
};

use super::Transport;

pub(super) struct Spray {
    pub(super) groups: u32,
    pub(super) fds: u32,
    pub(super) loops: u64,
    pub(super) bytes: u32,
    pub(super) threads: bool,
    pub(super) transport: Transport,
    /// `comm` of all its tasks.
    pub(super) name: &'static str,
}

/// Links of every task: ready, wake, then its channels.
const CHANNELS: u32 = 2;

/// Bytes that such a task uses in each message apart from the message: its stack's top and the kernel's objects. An estimate.
const WORKING_SET: u64 = 4096;

impl Spray {
    /// Adds the tasks; the meter gets one sample, the run time.
    pub(super) fn build(&self, builder: &mut Builder) -> MeterRef {
        let time = builder.meter("time", MeterKind::Samples);
        let ready = builder.object("ready", self.channel());
        let wake = builder.object("wake", self.channel());
        let main_program = builder.program(Vec::new());
        let main = builder.task(self.name, main_program, Start::At(0));
        let receiver = builder.program(self.receiver());
        let sender = builder.program(self.sender());
        let mut workers = Vec::new();
        for group in 0..self.groups {
            let channels: Vec<ObjectId> = (0..self.fds)
                .map(|j| builder.object(format!("channel {group}.{j}"), self.channel()))
                .collect();
            for channel in &channels {
                workers.push(self.task(builder, main, receiver, vec![ready, wake, *channel]));
            }
            for _ in 0..self.fds {
                let links = [&[ready, wake][..], &channels].concat();
                workers.push(self.task(builder, main, sender, links));
            }
        }
        builder.program_mut(main_program).ops = main_ops(&workers, ready, wake, time);
        builder.until(Until::Exit(main));
        time
    }

    fn channel(&self) -> ObjectKind {
        ObjectKind::Stream(self.transport.stream())
    }

    fn task(&self, builder: &mut Builder, main: TaskRef, program: u32, links: Vec<ObjectId>) -> TaskRef {
        let task = builder.task(self.name, program, Start::Forked);
        let process = builder.task_mut(main).process;
        let spec = builder.task_mut(task);
        spec.links = links;
        spec.working_set_bytes = WORKING_SET + u64::from(self.bytes);
        if self.threads {
            spec.process = process;
        }
        task
    }

    fn receiver(&self) -> Vec<Op> {
        let mut ops = report_and_wait().to_vec();
        let read = Op::Read { from: link(CHANNELS), bytes: self.bytes };
        ops.push(repeat(u64::from(self.fds) * self.loops, None, vec![read]));
        ops
    }

    fn sender(&self) -> Vec<Op> {
        let mut ops = report_and_wait().to_vec();
        let write = Op::Write { to: Slot::Indexed { base: CHANNELS, by: Reg(0) }, bytes: self.bytes };
        let round = repeat(u64::from(self.fds), Some(Reg(0)), vec![write]);
        ops.push(repeat(self.loops, None, vec![round]));
        ops
    }
}

fn report_and_wait() -> [Op; 2] {
    [Op::Write { to: link(0), bytes: 1 }, Op::Poll { on: link(1) }]
}

fn main_ops(workers: &[TaskRef], ready: ObjectId, wake: ObjectId, time: MeterRef) -> Vec<Op> {
    let mut ops: Vec<Op> = workers.iter().map(|worker| Op::Spawn(*worker)).collect();
    ops.push(repeat(workers.len() as u64, None, vec![Op::Read { from: fixed(ready), bytes: 1 }]));
    ops.push(Op::Stamp(Reg(0)));
    ops.push(Op::Write { to: fixed(wake), bytes: 1 });
    ops.extend(workers.iter().map(|worker| Op::Join(*worker)));
    ops.push(Op::Sample { meter: time, since: Reg(0) });
    ops
}

fn repeat(count: u64, counter: Option<Reg>, body: Vec<Op>) -> Op {
    Op::Repeat { times: Times::Count(count), counter, body }
}

impl Transport {
    /// The kernel's default buffers: 16 pages; 212992 bytes for AF_UNIX (`net.core.wmem_default`); for TCP over loopback the
    /// 16384 bytes of the sender and 131072 of the receiver that netperf prints, without their growth.
    #[must_use]
    pub const fn stream(self) -> StreamKind {
        match self {
            Self::Unix => StreamKind::Socket { kind: SocketKind::Unix, send_buffer_bytes: 212_992 },
            Self::Pipe => StreamKind::Pipe { pages: 16 },
            Self::Inet => StreamKind::Socket { kind: SocketKind::Tcp, send_buffer_bytes: 147_456 },
        }
    }
}
