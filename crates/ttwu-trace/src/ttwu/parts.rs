//! Everything of a trace that is not an event, as tagged fields: a reader skips (and counts) the tags it does not know, so
//! that a minor version can add some.

use super::wire::{Bytes, put, put_bytes, put_field, put_numbers};
use std::collections::BTreeSet;
use ttwu_model::{
    ClockStep, CpuId, CpuSet, Duration, LossWindow, NoteKind, Pid, StrId, TaskId, TaskInfo, TaskNote, Time,
    TraceHealth, TraceMeta,
};

/// Signed numbers near zero as small unsigned ones.
fn zigzag(number: i32) -> u64 {
    u64::from((number.cast_unsigned() << 1) ^ (number >> 31).cast_unsigned())
}

fn unzigzag(number: u32) -> i32 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// `None` as 0, anything else one higher.
fn optional(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.saturating_add(1))
}

pub(super) fn put_meta(out: &mut Vec<u8>, meta: &TraceMeta) {
    let TraceMeta {
        format,
        recorder,
        kernel_release,
        arch,
        hostname,
        clock,
        command,
        cpus_recorded,
        cpus_online,
        events_recorded,
        resolution_ns,
        recorder_pids,
        facts,
        topology_text,
    } = meta;
    put_field(out, 1, format.as_bytes());
    let texts = [
        (2, recorder),
        (3, kernel_release),
        (4, arch),
        (5, hostname),
        (6, clock),
        (7, command),
        (15, topology_text),
    ];
    for (tag, text) in texts {
        if let Some(text) = text {
            put_field(out, tag, text.as_bytes());
        }
    }
    if let Some(cpus) = cpus_recorded {
        put_numbers(out, 8, &[u64::from(*cpus)]);
    }
    if let Some(cpus) = cpus_online {
        put_field(out, 9, cpus.to_string().as_bytes());
    }
    if let Some(events) = events_recorded {
        // The list may be empty, which is not the same as unknown.
        put_field(out, 10, b"");
        for event in events {
            put_field(out, 11, event.as_bytes());
        }
    }
    put_numbers(out, 12, &[u64::from(*resolution_ns)]);
    for pid in recorder_pids {
        put_numbers(out, 13, &[zigzag(pid.number())]);
    }
    for (key, value) in facts {
        let mut fact = Vec::new();
        put_bytes(&mut fact, key.as_bytes());
        put_bytes(&mut fact, value.as_bytes());
        put_field(out, 14, &fact);
    }
}

/// The meta data, and how many fields of it are unknown.
pub(super) fn get_meta(mut bytes: Bytes<'_>) -> Result<(TraceMeta, u64), &'static str> {
    let mut meta = TraceMeta::default();
    let mut unknown = 0;
    while let Some((tag, field)) = bytes.get_field() {
        let text = || Some(String::from_utf8_lossy(field).into_owned());
        let mut field = Bytes::new(field);
        match tag {
            1 => meta.format = text().unwrap_or_default(),
            2 => meta.recorder = text(),
            3 => meta.kernel_release = text(),
            4 => meta.arch = text(),
            5 => meta.hostname = text(),
            6 => meta.clock = text(),
            7 => meta.command = text(),
            8 => meta.cpus_recorded = Some(field.get_u32()),
            9 => {
                let list = text().unwrap_or_default();
                meta.cpus_online = Some(CpuSet::parse_list(&list).map_err(|_| "a CPU list that is none")?);
            }
            10 => {
                meta.events_recorded.get_or_insert_default();
            }
            11 => {
                meta.events_recorded.get_or_insert_with(BTreeSet::new).extend(text());
            }
            12 => meta.resolution_ns = field.get_u32(),
            13 => meta.recorder_pids.push(Pid::new(unzigzag(field.get_u32()))),
            14 => {
                let key = field.get_text();
                meta.facts.insert(key, field.get_text());
            }
            15 => meta.topology_text = text(),
            _ => unknown += 1,
        }
        if !field.sound() {
            return Err("a meta data field ends early");
        }
    }
    if bytes.sound() { Ok((meta, unknown)) } else { Err("meta data end early") }
}

pub(super) fn put_health(out: &mut Vec<u8>, health: &TraceHealth) {
    let TraceHealth {
        lost_events,
        uncounted_gaps,
        loss_windows,
        clock_steps,
        clock_steps_total,
        unknown_records,
        switch_mismatches,
        foreign_cpu_events,
        truncated_at,
        repairs,
        notes,
    } = health;
    put_numbers(
        out,
        1,
        &[*lost_events, *uncounted_gaps, *clock_steps_total, *switch_mismatches, *foreign_cpu_events],
    );
    for window in loss_windows {
        let cpu = optional(window.cpu.map(|cpu| cpu.number().into()));
        put_numbers(out, 2, &[cpu, window.from.as_ns(), window.to.as_ns(), optional(window.count)]);
    }
    for step in clock_steps {
        put_numbers(out, 3, &[step.cpu.number().into(), step.at.as_ns(), step.back.as_ns()]);
    }
    for (name, count) in unknown_records {
        let mut field = Vec::new();
        put_bytes(&mut field, name.as_bytes());
        put(&mut field, *count);
        put_field(out, 4, &field);
    }
    if let Some(at) = truncated_at {
        put_numbers(out, 5, &[*at]);
    }
    for repair in repairs {
        put_field(out, 6, repair.as_bytes());
    }
    for note in notes {
        put_field(out, 7, note.as_bytes());
    }
}

/// Adds the stored health to `health`; how many fields of it are unknown.
pub(super) fn get_health(mut bytes: Bytes<'_>, health: &mut TraceHealth) -> Result<u64, &'static str> {
    let cpu = |number: u64| CpuId::try_from(number).map_err(|_| "a CPU number out of range");
    let mut unknown = 0;
    while let Some((tag, content)) = bytes.get_field() {
        let mut field = Bytes::new(content);
        match tag {
            1 => {
                health.lost_events = health.lost_events.saturating_add(field.get());
                health.uncounted_gaps = health.uncounted_gaps.saturating_add(field.get());
                health.clock_steps_total = health.clock_steps_total.saturating_add(field.get());
                health.switch_mismatches = health.switch_mismatches.saturating_add(field.get());
                health.foreign_cpu_events = health.foreign_cpu_events.saturating_add(field.get());
            }
            2 => {
                let cpu = field.get().checked_sub(1).map(cpu).transpose()?;
                let (from, to) = (Time::from_ns(field.get()), Time::from_ns(field.get()));
                let window = LossWindow { cpu, from, to, count: field.get().checked_sub(1) };
                if health.loss_windows.len() < TraceHealth::LIST_LIMIT {
                    health.loss_windows.push(window);
                }
            }
            3 => {
                let cpu = cpu(field.get())?;
                let (at, back) = (Time::from_ns(field.get()), Duration::from_ns(field.get()));
                if health.clock_steps.len() < TraceHealth::LIST_LIMIT {
                    health.clock_steps.push(ClockStep { cpu, at, back });
                }
            }
            4 => {
                let name = field.get_text();
                if health.unknown_records.len() <= TraceHealth::LIST_LIMIT {
                    *health.unknown_records.entry(name).or_default() += field.get();
                }
            }
            5 => health.truncated_at = Some(field.get()),
            6 => health.add_repair(String::from_utf8_lossy(content).into_owned()),
            7 => health.add_note(String::from_utf8_lossy(content).into_owned()),
            _ => unknown += 1,
        }
        if !field.sound() {
            return Err("a health field ends early");
        }
    }
    if bytes.sound() { Ok(unknown) } else { Err("health data end early") }
}

/// What of a task has been written: a later block says only what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    names: usize,
    tgid: Option<Pid>,
    parent: Option<TaskId>,
    exited_at: Option<Time>,
}

impl Written {
    pub(super) fn of(task: &TaskInfo) -> Self {
        let TaskInfo { pid: _, tgid, parent, names, forked_at: _, exited_at } = task;
        Self { names: names.len(), tgid: *tgid, parent: *parent, exited_at: *exited_at }
    }
}

/// Appends a task's row: all but the names as it is now, and the names since `written`.
pub(super) fn put_task(out: &mut Vec<u8>, id: TaskId, task: &TaskInfo, written: Option<Written>) {
    put(out, id.index() as u64);
    put(out, zigzag(task.pid.number()));
    put(out, optional(task.tgid.map(|pid| zigzag(pid.number()))));
    put(out, optional(task.parent.map(|parent| parent.index() as u64)));
    put(out, optional(task.forked_at.map(Time::as_ns)));
    put(out, optional(task.exited_at.map(Time::as_ns)));
    let names = &task.names[written.map_or(0, |written| written.names.min(task.names.len()))..];
    put(out, names.len() as u64);
    for (since, name) in names {
        put(out, since.as_ns());
        put(out, name.index() as u64);
    }
}

/// A task's row with the file's own numbers.
pub(super) struct TaskRow {
    pub(super) number: u32,
    pub(super) pid: Pid,
    pub(super) tgid: Option<Pid>,
    pub(super) parent: Option<u32>,
    pub(super) forked_at: Option<Time>,
    pub(super) exited_at: Option<Time>,
    pub(super) names: Vec<(Time, u32)>,
}

/// Reads a row that [`put_task`] wrote; check `bytes.sound()` after it.
pub(super) fn get_task(bytes: &mut Bytes<'_>) -> TaskRow {
    let number = bytes.get_u32();
    let pid = Pid::new(unzigzag(bytes.get_u32()));
    let mut small = || bytes.get().checked_sub(1).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let tgid = small().map(|number| Pid::new(unzigzag(number)));
    let parent = small();
    let mut time = || bytes.get().checked_sub(1).map(Time::from_ns);
    let (forked_at, exited_at) = (time(), time());
    let mut names = Vec::new();
    for _ in 0..bytes.get() {
        let since = Time::from_ns(bytes.get());
        let name = bytes.get_u32();
        if !bytes.sound() {
            break;
        }
        names.push((since, name));
    }
    TaskRow { number, pid, tgid, parent, forked_at, exited_at, names }
}

/// Appends a note.
pub(super) fn put_note(out: &mut Vec<u8>, note: &TaskNote) {
    put(out, note.before);
    put(out, note.at.as_ns());
    let mut numbers = |kind, pids: &[Pid]| {
        put(out, kind);
        for pid in pids {
            put(out, zigzag(pid.number()));
        }
    };
    match note.kind {
        NoteKind::Name { pid, tgid, name } => {
            numbers(0, &[pid, tgid]);
            put(out, name.index() as u64);
        }
        NoteKind::Fork { pid, tgid, parent, parent_tgid } => numbers(1, &[pid, tgid, parent, parent_tgid]),
        NoteKind::Exit { pid, tgid } => numbers(2, &[pid, tgid]),
        NoteKind::Released { pid, tgid } => numbers(3, &[pid, tgid]),
    }
}

/// Reads a note; `None` where there is none. `name` gives the string for a number of the file.
pub(super) fn get_note(bytes: &mut Bytes<'_>, name: impl FnOnce(u32) -> StrId) -> Option<TaskNote> {
    let before = bytes.get();
    let at = Time::from_ns(bytes.get());
    let kind = bytes.get();
    let mut pid = || Pid::new(unzigzag(bytes.get_u32()));
    let kind = match kind {
        0 => {
            let (pid, tgid) = (pid(), pid());
            let number = bytes.get_u32();
            NoteKind::Name { pid, tgid, name: bytes.sound().then(|| name(number))? }
        }
        1 => NoteKind::Fork { pid: pid(), tgid: pid(), parent: pid(), parent_tgid: pid() },
        2 => NoteKind::Exit { pid: pid(), tgid: pid() },
        3 => NoteKind::Released { pid: pid(), tgid: pid() },
        _ => return None,
    };
    bytes.sound().then_some(TaskNote { before, at, kind })
}

/// Appends a string to a block's list.
pub(super) fn put_string(out: &mut Vec<u8>, id: StrId, text: &str) {
    put(out, id.index() as u64);
    put_bytes(out, text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_survive() {
        for number in [0, 1, -1, 2, -2, i32::MAX, i32::MIN] {
            assert_eq!(unzigzag(u32::try_from(zigzag(number)).unwrap()), number);
        }
    }

    #[test]
    fn meta_and_health_come_back() {
        let meta = TraceMeta {
            format: "perf.data".to_owned(),
            recorder: Some("perf 6.1".to_owned()),
            clock: Some(String::new()),
            cpus_recorded: Some(8),
            cpus_online: Some(CpuSet::parse_list("0-3,7").unwrap()),
            events_recorded: Some(BTreeSet::new()),
            resolution_ns: 1000,
            recorder_pids: vec![Pid::new(7), Pid::UNKNOWN],
            facts: [("preempt".to_owned(), "full".to_owned())].into(),
            topology_text: Some("cpu 0\n".to_owned()),
            ..TraceMeta::default()
        };
        let mut out = Vec::new();
        put_meta(&mut out, &meta);
        put_field(&mut out, 99, b"from the future");
        assert_eq!(get_meta(Bytes::new(&out)), Ok((meta, 1)));

        let mut health = TraceHealth::default();
        let window = LossWindow { cpu: None, from: Time::ZERO, to: Time::MAX, count: Some(0) };
        health.add_loss(window);
        health.add_loss(LossWindow { cpu: Some(CpuId::new(65535)), count: None, ..window });
        health.add_clock_step(ClockStep {
            cpu: CpuId::new(1),
            at: Time::from_ns(5),
            back: Duration::from_ns(2),
        });
        health.add_unknown("PERF_RECORD_77");
        health.switch_mismatches = 3;
        health.foreign_cpu_events = 4;
        health.truncated_at = Some(0);
        health.add_repair("mended".to_owned());
        health.add_note("noted".to_owned());
        let mut out = Vec::new();
        put_health(&mut out, &health);
        let mut back = TraceHealth::default();
        assert_eq!(get_health(Bytes::new(&out), &mut back), Ok(0));
        assert_eq!(back, health);
    }
}
