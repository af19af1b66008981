//! Reading and writing streams, as the kernel's loops go.
//!
//! A pipe's writer wakes readers only if the pipe was empty before, its reader wakes writers only if it was full; a socket's
//! writer wakes whenever a reader sleeps. Whoever slept passes the wake-up on when there is more for the next in line.

use super::Sim;
use super::objects::{Buffer, NEVER, Object, Stream};
use super::stretch::Flow;
use super::task::{Mode, Next, Who};
use crate::Cost;
use ttwu_model::Level;
use ttwu_workload::SocketKind;

const READERS: usize = 0;
const WRITERS: usize = 1;

impl Sim<'_> {
    fn stream(&mut self, object: u32) -> &mut Stream {
        if !matches!(self.objects[object as usize], Object::Stream(_)) {
            self.wrong(object, "stream");
        }
        match &mut self.objects[object as usize] {
            Object::Stream(stream) => stream,
            _ => unreachable!("checked above"),
        }
    }

    fn copy_ns(&self, bytes: u32) -> u64 {
        u64::from(bytes) * self.costs.get(Cost::CopyKib) / 1024
    }

    /// What a call on `cpu` pays for lines that other CPUs have: the stream's own, if another one used it last, and those of the
    /// message, if `other`, who handles messages at the other end, is another one.
    ///
    /// DEVIATION: measured within an LLC, and taken for every distance beyond, where lines take longer.
    fn lines_ns(&self, cpu: usize, used_by: u16, other: u16, lines: Cost, far: Cost) -> u64 {
        let elsewhere = |by: u16| by != NEVER && self.level(usize::from(by), cpu) >= Level::Llc;
        let own = if elsewhere(used_by) { self.costs.get(lines) } else { 0 };
        let message = if elsewhere(other) { self.costs.get(far) } else { 0 };
        own + message
    }

    /// What a call pays for a socket's message that is out of the private caches of `cpu`, which wrote it: the share of its
    /// queued messages that those cannot hold. What another CPU's touch costs is not paid beside it.
    fn cold_ns(&self, cpu: usize) -> u64 {
        let cache = self.costs.get(Cost::RefillKibMax) * 1024;
        let queued = self.queued_bytes[cpu];
        if queued > cache { self.costs.get(Cost::SocketCold) * (queued - cache) / queued } else { 0 }
    }

    /// Time of one call, with the wait for a pipe's mutex.
    fn call_ns(&mut self, who: Who, end: usize, pipe: Cost, socket: Cost) -> u64 {
        let now = self.now;
        let cpu = self.cpu_of(who);
        let exec = self.exec(who);
        let (object, bytes) = (exec.object, exec.bytes);
        let stream = self.stream(object);
        let other = if end == WRITERS { stream.read_by } else { stream.next_written_by() };
        let used_by = std::mem::replace(&mut stream.used_by, cpu as u16);
        let (lines, far, writer) = match &stream.buffer {
            Buffer::Pipe { .. } => (Cost::PipeLines, Cost::PipeFar, NEVER),
            Buffer::Socket { .. } if end == WRITERS => (Cost::SocketLines, Cost::SocketFar, cpu as u16),
            Buffer::Socket { .. } => (Cost::SocketLines, Cost::SocketFar, other),
        };
        let cold = if writer == NEVER { 0 } else { self.cold_ns(usize::from(writer)) };
        let copy = self.copy_ns(bytes) + self.lines_ns(cpu, used_by, other, lines, far).max(cold);
        let (pipe, socket, loopback) =
            (self.costs.get(pipe), self.costs.get(socket), self.costs.get(Cost::Loopback));
        let stream = self.stream(object);
        match &stream.buffer {
            Buffer::Pipe { .. } => {
                let hold = pipe + copy;
                let wait = stream.free_at.saturating_sub(now);
                stream.free_at = now + wait + hold;
                wait + hold
            }
            Buffer::Socket { kind, .. } => match kind {
                SocketKind::Unix => socket + copy,
                SocketKind::Tcp | SocketKind::Udp => socket + copy + loopback,
            },
        }
    }

    pub(super) fn write_call(&mut self, who: Who) -> Flow {
        let ns = self.call_ns(who, WRITERS, Cost::PipeWrite, Cost::SocketWrite);
        self.work_then(who, ns, Mode::Kernel, Next::WriteDone)
    }

    /// Models: pipe_write(), unix_stream_sendmsg(), v5.5–v7.2.
    pub(super) fn write_done(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who) as u16;
        let exec = self.exec(who);
        let (object, bytes, slept) = (exec.object, exec.bytes, exec.slept);
        let stream = self.stream(object);
        let was_empty = stream.is_empty();
        let before = stream.memory();
        let put = stream.put(bytes, cpu);
        let grown = stream.memory() - before;
        let socket = match &stream.buffer {
            Buffer::Pipe { .. } => None,
            Buffer::Socket { kind, .. } => Some(*kind),
        };
        self.queued_bytes[usize::from(cpu)] += grown;
        let stream = self.stream(object);
        // The lock is held while a sleeper is still listed in the kernel's sense.
        let listed = !stream.sides[READERS].sleepers.is_empty() || stream.sides[READERS].lock.held;
        let pass_on = slept
            && socket.is_none()
            && put == bytes
            && !stream.is_full()
            && !stream.sides[WRITERS].sleepers.is_empty();
        let exec = self.exec(who);
        exec.bytes -= put;
        exec.was = pass_on;
        let then = if exec.bytes > 0 {
            Next::WriteSleep
        } else if pass_on {
            Next::ReadAgain
        } else {
            Next::Fetch
        };
        let wakes = put > 0 && if socket.is_some() { listed } else { was_empty };
        if wakes {
            let softirq = matches!(socket, Some(SocketKind::Tcp | SocketKind::Udp));
            return self.wake_side(who, object, READERS, softirq, then);
        }
        self.exec(who).next = then;
        Flow::Go
    }

    /// The stream is full.
    pub(super) fn write_sleep(&mut self, who: Who) -> Flow {
        let object = self.exec(who).object;
        let stream = self.stream(object);
        if !stream.is_full() {
            self.exec(who).next = Next::WriteCall;
            return Flow::Go;
        }
        let exclusive = matches!(stream.buffer, Buffer::Pipe { .. });
        let Who::Task(task) = who else { unreachable!("handlers do not write") };
        stream.sides[WRITERS].sleepers.push_back((task, exclusive));
        self.exec(who).slept = true;
        self.prepare_sleep(who, Next::WriteCall)
    }

    pub(super) fn read_call(&mut self, who: Who) -> Flow {
        let ns = self.call_ns(who, READERS, Cost::PipeRead, Cost::SocketRead);
        self.work_then(who, ns, Mode::Kernel, Next::ReadDone)
    }

    /// Models: pipe_read(), unix_stream_recvmsg(), v5.5–v7.2.
    pub(super) fn read_done(&mut self, who: Who) -> Flow {
        let cpu = self.cpu_of(who) as u16;
        let exec = self.exec(who);
        let (object, bytes, slept) = (exec.object, exec.bytes, exec.slept);
        let stream = self.stream(object);
        let was_full = stream.is_full();
        let (writer, before) = (stream.next_written_by(), stream.memory());
        let got = stream.get(bytes, cpu);
        let shrunk = before - stream.memory();
        if writer != NEVER {
            // DEVIATION: one read may take messages of several writers; they are the first one's here.
            let queued = &mut self.queued_bytes[usize::from(writer)];
            *queued = queued.saturating_sub(shrunk);
        }
        let stream = self.stream(object);
        if got == 0 {
            let Who::Task(task) = who else { unreachable!("handlers do not read") };
            let exclusive = matches!(stream.buffer, Buffer::Pipe { .. });
            stream.sides[READERS].sleepers.push_back((task, exclusive));
            self.exec(who).slept = true;
            return self.prepare_sleep(who, Next::ReadCall);
        }
        let tells = stream.tells_writers(was_full);
        let pass_on = slept
            && matches!(stream.buffer, Buffer::Pipe { .. })
            && !stream.is_empty()
            && !stream.sides[READERS].sleepers.is_empty();
        let exec = self.exec(who);
        exec.bytes -= got;
        exec.slept = pass_on;
        exec.was = false;
        if tells {
            return self.wake_side(who, object, WRITERS, false, Next::ReadAgain);
        }
        exec.next = Next::ReadAgain;
        Flow::Go
    }

    /// Passes a wake-up on to the next in line, then reads on or returns. A writer that passes on comes here too (`was`).
    pub(super) fn read_again(&mut self, who: Who) -> Flow {
        let exec = self.exec(who);
        let object = exec.object;
        if std::mem::take(&mut exec.was) {
            return self.wake_side(who, object, WRITERS, false, Next::Fetch);
        }
        let next = if exec.bytes > 0 { Next::ReadCall } else { Next::Fetch };
        if std::mem::take(&mut exec.slept) {
            return self.wake_side(who, object, READERS, false, next);
        }
        exec.next = next;
        if next == Next::ReadCall {
            return self.work(who, self.costs.get(Cost::Syscall), Mode::Kernel);
        }
        Flow::Go
    }

    pub(super) fn poll_check(&mut self, who: Who) -> Flow {
        let object = self.exec(who).object;
        let stream = self.stream(object);
        if !stream.is_empty() {
            self.exec(who).next = Next::Fetch;
            return Flow::Go;
        }
        let Who::Task(task) = who else { unreachable!("handlers do not poll") };
        // Pollers are not exclusive, and stand in front.
        stream.sides[READERS].sleepers.push_front((task, false));
        self.prepare_sleep(who, Next::PollCheck)
    }
}
