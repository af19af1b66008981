//! Writing Chrome's JSON trace format: what ran on each CPU, and who woke it.
//!
//! The oldest and poorest of the formats, but every viewer knows it. CPUs are threads of a process "CPUs"; a task's turn on
//! a CPU is a slice, a wake-up an arrow from the waker's slice to the wakee's next one. A slice is written when it ends,
//! so nothing but the running tasks is kept.
//!
//! What this does not do: anything but running and waking. Convert to Perfetto's format for more.

use crate::Chunk;
use crate::convert::{Counted, TraceWriter, Written};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use ttwu_model::{CpuId, EventKind, TaskId, TaskState, Time, TraceParts};

/// Writes Chrome's JSON.
pub struct ChromeWriter<W: Write> {
    out: Counted<W>,
    running: Vec<Option<Running>>,
    /// Wake-ups whose wakee has not run yet, and the number of their arrow.
    woken: BTreeMap<TaskId, u64>,
    arrows: u64,
    last: Time,
    events: u64,
    line: String,
}

/// A task's turn on a CPU, not over yet.
#[derive(Clone, Copy)]
struct Running {
    task: TaskId,
    since: Time,
    prio: Option<i32>,
    /// The arrow that ends here.
    arrow: Option<u64>,
}

impl<W: Write> ChromeWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// From `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let mut out = Counted::new(out);
        out.write_all(
            b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n\
              {\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"CPUs\"}}",
        )?;
        Ok(Self {
            out,
            running: Vec::new(),
            woken: BTreeMap::new(),
            arrows: 0,
            last: Time::ZERO,
            events: 0,
            line: String::new(),
        })
    }

    fn put_line(&mut self) -> io::Result<()> {
        self.events += 1;
        self.out.write_all(b",\n")?;
        self.out.write_all(self.line.as_bytes())
    }

    fn running(&mut self, cpu: CpuId) -> io::Result<&mut Option<Running>> {
        while self.running.len() <= cpu.index() {
            let number = self.running.len();
            self.line.clear();
            let _ = write!(
                self.line,
                r#"{{"ph":"M","pid":0,"tid":{number},"name":"thread_name","args":{{"name":"CPU {number}"}}}}"#
            );
            self.put_line()?;
            self.running.push(None);
        }
        Ok(&mut self.running[cpu.index()])
    }

    /// Writes the turn that ends on `cpu`.
    fn end_turn(
        &mut self,
        cpu: CpuId,
        at: Time,
        state: Option<TaskState>,
        chunk: &Chunk<'_>,
    ) -> io::Result<()> {
        let Some(Running { task, since, prio, arrow }) = self.running(cpu)?.take() else { return Ok(()) };
        if task.is_idle() {
            return Ok(());
        }
        let info = chunk.tasks.get(task);
        self.line.clear();
        let line = &mut self.line;
        let name = chunk.tasks.name_at(task, since).map_or("?", |name| chunk.strings.get(name));
        let dur = at.saturating_since(since).as_ns();
        line.push_str(r#"{"ph":"X","pid":0,"tid":"#);
        let _ = write!(line, "{cpu},\"ts\":{},\"dur\":{},\"name\":", micros(since.as_ns()), micros(dur));
        quote(line, name);
        let _ = write!(line, r#","args":{{"tid":{}"#, info.pid);
        if let Some(prio) = prio {
            let _ = write!(line, ",\"prio\":{prio}");
        }
        if let Some(state) = state {
            let _ = write!(line, ",\"end_state\":\"{state}\"");
        }
        line.push_str("}}");
        self.put_line()?;
        if let Some(arrow) = arrow {
            self.put_arrow("f", arrow, cpu, since)?;
        }
        Ok(())
    }

    fn put_arrow(&mut self, phase: &str, arrow: u64, cpu: CpuId, at: Time) -> io::Result<()> {
        self.line.clear();
        let _ = write!(
            self.line,
            r#"{{"ph":"{phase}","bp":"e","cat":"wakeup","name":"wakeup","id":{arrow},"pid":0,"tid":{cpu},"ts":{}}}"#,
            micros(at.as_ns())
        );
        self.put_line()
    }
}

impl<W: Write> TraceWriter for ChromeWriter<W> {
    fn write(&mut self, chunk: Chunk<'_>) -> io::Result<()> {
        for event in chunk.events {
            self.last = event.at;
            if let EventKind::Waking { wakee, .. } | EventKind::WakeupNew { wakee, .. } = event.kind {
                self.running(event.cpu)?;
                self.arrows += 1;
                self.woken.insert(wakee, self.arrows);
                self.put_arrow("s", self.arrows, event.cpu, event.at)?;
            }
            if let EventKind::Switch { next, prev_state, next_prio, .. } = event.kind {
                self.end_turn(event.cpu, event.at, Some(prev_state), &chunk)?;
                let arrow = self.woken.remove(&next);
                *self.running(event.cpu)? =
                    Some(Running { task: next, since: event.at, prio: next_prio.get(), arrow });
            }
            if let EventKind::Lost { .. } = event.kind {
                // What ran on past the gap, nobody knows.
                *self.running(event.cpu)? = None;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, parts: &TraceParts) -> io::Result<Written> {
        let TraceParts { strings, tasks, .. } = parts;
        let chunk = Chunk { events: &[], strings, tasks, notes: &[] };
        for cpu in 0..self.running.len() {
            let cpu = CpuId::new(u16::try_from(cpu).expect("grown by CPU numbers"));
            self.end_turn(cpu, self.last, None, &chunk)?;
        }
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        Ok(Written { events: self.events, bytes: self.out.bytes })
    }
}

/// Microseconds with three decimals, the format's unit.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Appends a JSON string.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted() {
        let mut out = String::new();
        quote(&mut out, "a\"b\\c\n\u{1}é");
        assert_eq!(out, r#""a\"b\\c\u000a\u0001é""#);
        assert_eq!(micros(1_234_005), "1234.005");
    }
}
