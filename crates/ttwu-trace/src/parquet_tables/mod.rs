//! Writing Parquet: a directory of tables for data-frame libraries and SQL.
//!
//! | table | a row is | columns |
//! |---|---|---|
//! | `events` | an event | `event` (its index), `at_ns`, `cpu`, `kind`, `by`, `by_pid`, `flags`, `task`, `task_pid`, `task_name`, `other_task`, `other_pid`, `other_name`, `arg_cpu`, `value`, `text` |
//! | `switches` | a `sched_switch` | `event`, `at_ns`, `cpu`, `prev`, `prev_pid`, `prev_name`, `prev_prio`, `prev_state`, `next`, `next_pid`, `next_name`, `next_prio` |
//! | `wakeups` | a `sched_waking`, `sched_wakeup` or `sched_wakeup_new` | `event`, `at_ns`, `kind`, `waker_cpu`, `context`, `waker`, `waker_pid`, `waker_name`, `wakee`, `wakee_pid`, `wakee_name`, `wakee_prio`, `prev_cpu`, `target_cpu` |
//! | `tasks` | a task | `task`, `pid`, `tgid`, `parent`, `first_name`, `last_name`, `forked_at_ns`, `exited_at_ns` |
//! | `cpus` | a CPU with events | `cpu`, `events`, `switches`, `first_at_ns`, `last_at_ns` |
//!
//! Tasks are numbered as in `tasks`; a pid may stand for several. What a source does not say is null. `prev_cpu` is known
//! of `sched_waking`, `target_cpu` of the other two.
//!
//! Plain Parquet writing without Arrow: five flat tables do not need it, and it is three quarters of the build time.

mod table;

use crate::convert::{TraceWriter, Written};
use crate::{Chunk, ConvertError, ConvertSummary, TraceStream};
use parquet::data_type::ByteArray;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
pub use table::{Cell, Holds, Table};
use ttwu_model::{
    Context, CpuId, Event, EventKind, Prio, StrId, Strings, TaskId, TaskTable, Time, TraceParts,
};

/// Writes a directory of Parquet tables.
pub struct ParquetWriter {
    events: Table,
    switches: Table,
    wakeups: Table,
    tasks: Table,
    cpus: Table,
    seen: BTreeMap<CpuId, SeenCpu>,
    count: i64,
    texts: Texts,
}

struct SeenCpu {
    events: i64,
    switches: i64,
    first: Time,
    last: Time,
}

/// The strings of a trace as Parquet wants them; sharing them is cheap, making them is not.
#[derive(Default)]
struct Texts {
    by_id: Vec<ByteArray>,
    fixed: BTreeMap<&'static str, ByteArray>,
}

impl Texts {
    fn grow(&mut self, strings: &Strings) {
        let known = self.by_id.len();
        self.by_id.extend(strings.iter().skip(known).map(|(_, text)| ByteArray::from(text)));
    }

    fn get(&self, id: Option<StrId>) -> Cell {
        Cell::Text(id.and_then(|id| self.by_id.get(id.index())).cloned())
    }

    fn fixed(&mut self, text: &'static str) -> Cell {
        Cell::Text(Some(self.fixed.entry(text).or_insert_with(|| ByteArray::from(text)).clone()))
    }
}

fn time(at: Time) -> Cell {
    long(at.as_ns())
}

/// Parquet's unsigned types are poorly supported by its readers; nothing here comes near 2^63.
fn long(number: u64) -> Cell {
    Cell::Long(Some(i64::try_from(number).unwrap_or(i64::MAX)))
}

fn cpu_cell(cpu: CpuId) -> Cell {
    Cell::Int(Some(cpu.number().into()))
}

fn prio_cell(prio: Prio) -> Cell {
    Cell::Int(prio.get())
}

fn task_cell(task: Option<TaskId>) -> Cell {
    Cell::Long(task.and_then(|task| i64::try_from(task.index()).ok()))
}

fn pid_cell(task: Option<TaskId>, tasks: &TaskTable) -> Cell {
    Cell::Int(task.map(|task| tasks.get(task).pid.number()))
}

const fn context_name(context: Context) -> Option<&'static str> {
    match context {
        Context::Task => Some("task"),
        Context::Softirq => Some("softirq"),
        Context::Hardirq => Some("hardirq"),
        Context::Nmi => Some("nmi"),
        Context::Unknown => None,
    }
}

/// The CPU, number and text that an event's kind has beside its tasks.
fn arguments(kind: &EventKind) -> (Option<CpuId>, Option<u64>, Option<StrId>) {
    match *kind {
        EventKind::Waking { prev_cpu, .. } => (Some(prev_cpu), None, None),
        EventKind::Wakeup { cpu, .. } | EventKind::WakeupNew { cpu, .. } | EventKind::IdleExit { cpu } => {
            (Some(cpu), None, None)
        }
        EventKind::Migrate { dest_cpu, orig_cpu, .. } => {
            (Some(dest_cpu), Some(orig_cpu.number().into()), None)
        }
        EventKind::Exec { file, .. } => (None, None, file),
        EventKind::StatRuntime { runtime_ns: ns, .. }
        | EventKind::StatWait { delay_ns: ns, .. }
        | EventKind::StatSleep { delay_ns: ns, .. } => (None, Some(ns), None),
        EventKind::IdleEnter { cpu, state } => (Some(cpu), Some(state.into()), None),
        EventKind::Frequency { cpu, khz } => (Some(cpu), Some(khz.into()), None),
        EventKind::IpiSend { target, callsite } => (Some(target), None, callsite),
        EventKind::IpiSendMask { mask, .. } => (None, None, mask),
        EventKind::VectorEntry { name } | EventKind::VectorExit { name } => (None, None, Some(name)),
        EventKind::IrqEntry { irq, name } => (None, Some(irq.into()), name),
        EventKind::IrqExit { irq } => (None, Some(irq.into()), None),
        EventKind::SoftirqRaise { vec }
        | EventKind::SoftirqEntry { vec }
        | EventKind::SoftirqExit { vec } => (None, Some(vec.into()), None),
        EventKind::TimerExpire { function } | EventKind::WorkStart { function } => {
            (None, None, Some(function))
        }
        EventKind::WorkEnd { function } => (None, None, function),
        EventKind::Lost { count } => (None, count.map(|count| count.get().into()), None),
        EventKind::Switch { .. }
        | EventKind::Fork { .. }
        | EventKind::Exit { .. }
        | EventKind::Yield
        | EventKind::Other { .. } => (None, None, None),
    }
}

impl ParquetWriter {
    /// Begins the tables in an empty directory.
    ///
    /// # Errors
    /// When a file cannot be made.
    pub fn new(directory: &Path) -> io::Result<Self> {
        use Holds::{Int, Long, Text, Time};
        let table = |name, columns: &[(&str, Holds)]| Table::new(directory, name, columns);
        Ok(Self {
            events: table(
                "events",
                &[
                    ("event", Time),
                    ("at_ns", Time),
                    ("cpu", Int),
                    ("kind", Text),
                    ("by", Long),
                    ("by_pid", Int),
                    ("flags", Int),
                    ("task", Long),
                    ("task_pid", Int),
                    ("task_name", Text),
                    ("other_task", Long),
                    ("other_pid", Int),
                    ("other_name", Text),
                    ("arg_cpu", Int),
                    ("value", Long),
                    ("text", Text),
                ],
            )?,
            switches: table(
                "switches",
                &[
                    ("event", Time),
                    ("at_ns", Time),
                    ("cpu", Int),
                    ("prev", Long),
                    ("prev_pid", Int),
                    ("prev_name", Text),
                    ("prev_prio", Int),
                    ("prev_state", Text),
                    ("next", Long),
                    ("next_pid", Int),
                    ("next_name", Text),
                    ("next_prio", Int),
                ],
            )?,
            wakeups: table(
                "wakeups",
                &[
                    ("event", Time),
                    ("at_ns", Time),
                    ("kind", Text),
                    ("waker_cpu", Int),
                    ("context", Text),
                    ("waker", Long),
                    ("waker_pid", Int),
                    ("waker_name", Text),
                    ("wakee", Long),
                    ("wakee_pid", Int),
                    ("wakee_name", Text),
                    ("wakee_prio", Int),
                    ("prev_cpu", Int),
                    ("target_cpu", Int),
                ],
            )?,
            tasks: table(
                "tasks",
                &[
                    ("task", Long),
                    ("pid", Int),
                    ("tgid", Int),
                    ("parent", Long),
                    ("first_name", Text),
                    ("last_name", Text),
                    ("forked_at_ns", Long),
                    ("exited_at_ns", Long),
                ],
            )?,
            cpus: table(
                "cpus",
                &[
                    ("cpu", Int),
                    ("events", Long),
                    ("switches", Long),
                    ("first_at_ns", Long),
                    ("last_at_ns", Long),
                ],
            )?,
            seen: BTreeMap::new(),
            count: 0,
            texts: Texts::default(),
        })
    }

    fn name(&self, task: Option<TaskId>, at: Time, tasks: &TaskTable) -> Cell {
        self.texts.get(task.and_then(|task| tasks.name_at(task, at)))
    }

    fn put_event(&mut self, event: &Event, tasks: &TaskTable) -> io::Result<()> {
        let Event { at, by, cpu, flags, kind } = *event;
        let [task, other] = kind.tasks();
        let (arg_cpu, value, text) = arguments(&kind);
        let kind_cell = match kind {
            EventKind::Other { name } => self.texts.get(Some(name)),
            known => self.texts.fixed(known.tracepoint().expect("only Other has no name of its own")),
        };
        let row = [
            Cell::Long(Some(self.count)),
            time(at),
            cpu_cell(cpu),
            kind_cell.clone(),
            task_cell(Some(by)),
            pid_cell(Some(by), tasks),
            Cell::Int(flags.common_flags().map(i32::from)),
            task_cell(task),
            pid_cell(task, tasks),
            self.name(task, at, tasks),
            task_cell(other),
            pid_cell(other, tasks),
            self.name(other, at, tasks),
            arg_cpu.map_or(Cell::Int(None), cpu_cell),
            value.map_or(Cell::Long(None), long),
            self.texts.get(text),
        ];
        self.events.push(row)?;
        match kind {
            EventKind::Switch { .. } => self.put_switch(event, tasks)?,
            EventKind::Waking { wakee, prev_cpu, prio } => {
                self.put_wakeup(event, tasks, kind_cell, (wakee, prio), [Some(prev_cpu), None])?;
            }
            EventKind::Wakeup { wakee, cpu, prio } | EventKind::WakeupNew { wakee, cpu, prio } => {
                self.put_wakeup(event, tasks, kind_cell, (wakee, prio), [None, Some(cpu)])?;
            }
            EventKind::Migrate { .. }
            | EventKind::Fork { .. }
            | EventKind::Exit { .. }
            | EventKind::Exec { .. }
            | EventKind::StatRuntime { .. }
            | EventKind::StatWait { .. }
            | EventKind::StatSleep { .. }
            | EventKind::IdleEnter { .. }
            | EventKind::IdleExit { .. }
            | EventKind::Frequency { .. }
            | EventKind::IpiSend { .. }
            | EventKind::IpiSendMask { .. }
            | EventKind::VectorEntry { .. }
            | EventKind::VectorExit { .. }
            | EventKind::IrqEntry { .. }
            | EventKind::IrqExit { .. }
            | EventKind::SoftirqRaise { .. }
            | EventKind::SoftirqEntry { .. }
            | EventKind::SoftirqExit { .. }
            | EventKind::TimerExpire { .. }
            | EventKind::WorkStart { .. }
            | EventKind::WorkEnd { .. }
            | EventKind::Yield
            | EventKind::Lost { .. }
            | EventKind::Other { .. } => {}
        }
        let seen = self.seen.entry(cpu).or_insert(SeenCpu { events: 0, switches: 0, first: at, last: at });
        seen.events += 1;
        seen.switches += i64::from(matches!(kind, EventKind::Switch { .. }));
        seen.last = at;
        self.count += 1;
        Ok(())
    }

    fn put_switch(&mut self, event: &Event, tasks: &TaskTable) -> io::Result<()> {
        let EventKind::Switch { prev, next, prev_state, prev_prio, next_prio } = event.kind else {
            return Ok(());
        };
        self.switches.push([
            Cell::Long(Some(self.count)),
            time(event.at),
            cpu_cell(event.cpu),
            task_cell(Some(prev)),
            pid_cell(Some(prev), tasks),
            self.texts.get(tasks.name_at(prev, event.at)),
            prio_cell(prev_prio),
            Cell::Text(Some(ByteArray::from(prev_state.to_string().as_str()))),
            task_cell(Some(next)),
            pid_cell(Some(next), tasks),
            self.texts.get(tasks.name_at(next, event.at)),
            prio_cell(next_prio),
        ])
    }

    fn put_wakeup(
        &mut self,
        event: &Event,
        tasks: &TaskTable,
        kind: Cell,
        (wakee, prio): (TaskId, Prio),
        cpus: [Option<CpuId>; 2],
    ) -> io::Result<()> {
        let waker = Some(event.by);
        let context = match context_name(event.flags.context()) {
            Some(name) => self.texts.fixed(name),
            None => Cell::Text(None),
        };
        let [prev_cpu, target_cpu] = cpus.map(|cpu| cpu.map_or(Cell::Int(None), cpu_cell));
        self.wakeups.push([
            Cell::Long(Some(self.count)),
            time(event.at),
            kind,
            cpu_cell(event.cpu),
            context,
            task_cell(waker),
            pid_cell(waker, tasks),
            self.texts.get(tasks.name_at(event.by, event.at)),
            task_cell(Some(wakee)),
            pid_cell(Some(wakee), tasks),
            self.texts.get(tasks.name_at(wakee, event.at)),
            prio_cell(prio),
            prev_cpu,
            target_cpu,
        ])
    }

    fn put_tasks(&mut self, tasks: &TaskTable) -> io::Result<()> {
        for (task, info) in tasks.iter() {
            let name = |name: Option<&(Time, StrId)>| self.texts.get(name.map(|&(_, name)| name));
            self.tasks.push([
                task_cell(Some(task)),
                pid_cell(Some(task), tasks),
                Cell::Int(info.tgid.map(ttwu_model::Pid::number)),
                task_cell(info.parent),
                name(info.names.first()),
                name(info.names.last()),
                info.forked_at.map_or(Cell::Long(None), time),
                info.exited_at.map_or(Cell::Long(None), time),
            ])?;
        }
        Ok(())
    }
}

impl TraceWriter for ParquetWriter {
    fn write(&mut self, chunk: Chunk<'_>) -> io::Result<()> {
        self.texts.grow(chunk.strings);
        chunk.events.iter().try_for_each(|event| self.put_event(event, chunk.tasks))
    }

    fn finish(mut self: Box<Self>, parts: &TraceParts) -> io::Result<Written> {
        self.texts.grow(&parts.strings);
        self.put_tasks(&parts.tasks)?;
        for (&cpu, seen) in &self.seen {
            self.cpus.push([
                cpu_cell(cpu),
                Cell::Long(Some(seen.events)),
                Cell::Long(Some(seen.switches)),
                time(seen.first),
                time(seen.last),
            ])?;
        }
        let (events, mut bytes) = self.events.finish()?;
        for table in [self.switches, self.wakeups, self.tasks, self.cpus] {
            bytes += table.finish()?.1;
        }
        Ok(Written { events, bytes })
    }
}

/// The directory is made beside the output and takes its name when it is complete; one that is there and not empty is not
/// touched.
pub(crate) fn convert_to_directory(
    stream: TraceStream,
    output: &Path,
) -> Result<ConvertSummary, ConvertError> {
    let failed = |source| ConvertError::Write { path: output.to_owned(), source };
    if output.is_dir() && output.read_dir().map_err(failed)?.next().is_some() {
        let what = "the directory is there and not empty; name another or remove it";
        return Err(failed(io::Error::new(io::ErrorKind::DirectoryNotEmpty, what)));
    }
    let parent = crate::convert::directory_of(output);
    let directory = tempfile::Builder::new()
        .prefix(".ttwu-convert-")
        .permissions(std::fs::Permissions::from_mode(0o777))
        .tempdir_in(parent)
        .map_err(failed)?;
    let writer = Box::new(ParquetWriter::new(directory.path()).map_err(failed)?);
    let summary = crate::convert::pump(stream, writer, output)?;
    std::fs::rename(directory.path(), output).map_err(failed)?;
    // It has a new name now; there is nothing left to remove.
    let _ = directory.keep();
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, convert};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn a_recording_becomes_tables() {
        let Some(input) = ttwu_testing::shared("traces/own/hs-full.data.xz") else { return };
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("out.parquet");
        let summary = convert(&input, &output, Target::Parquet).unwrap();
        assert_eq!((summary.events_in, summary.events_out), (4137, 4137));
        let trace = crate::read(&input).unwrap();
        let table = |name: &str| {
            let file = std::fs::File::open(output.join(format!("{name}.parquet"))).unwrap();
            SerializedFileReader::new(file).unwrap()
        };
        let rows = |name| table(name).metadata().file_metadata().num_rows();
        assert_eq!((rows("events"), rows("switches"), rows("wakeups")), (4137, 1764, 1102 + 1101 + 40));
        assert_eq!((rows("tasks"), rows("cpus")), (trace.tasks().len() as i64, 2));
        let switches = table("switches");
        let expect = trace.events().iter().enumerate().filter_map(|(index, event)| match event.kind {
            EventKind::Switch { next, prev_state, .. } => {
                let name =
                    trace.tasks().name_at(next, event.at).map(|name| trace.strings().get(name).to_owned());
                let (at, next) = (event.at.as_ns() as i64, next.index() as i64);
                Some((index as i64, at, prev_state.to_string(), next, name))
            }
            _ => None,
        });
        for (row, (index, at, state, next, name)) in switches.get_row_iter(None).unwrap().zip(expect) {
            let row = row.unwrap();
            assert_eq!((row.get_long(0).unwrap(), row.get_long(1).unwrap()), (index, at));
            assert_eq!(
                (row.get_string(7).unwrap(), row.get_long(8).unwrap()),
                (&state, next),
                "event {index}"
            );
            assert_eq!(row.get_string(10).ok(), name.as_ref(), "event {index}");
        }
        let again = convert(&input, &output, Target::Parquet).unwrap_err();
        assert!(again.to_string().ends_with("not empty; name another or remove it"), "{again}");
    }
}
