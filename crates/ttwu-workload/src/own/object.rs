//! Objects as text: `"pipe 16"`, `"semaphore 0"`, and tables for devices, workqueues and work items.

use ttwu_model::{CpuId, CpuSet};

use super::{Names, Reader, ops};
use crate::spec_toml::{Fields, Key, Node, SpecError, Value, quoted};
use crate::text::{did_you_mean, dist_text, parse_dist, parse_size};
use crate::{
    Bound, Device, Dist, InterruptCpu, ObjectId, ObjectKind, Op, Request, SocketKind, StreamKind, Work,
    WorkQueue, Workload,
};

/// The kinds that are one string, for the nearest name.
const KINDS: &[&str] = &[
    "pipe",
    "unix",
    "tcp",
    "udp",
    "futex",
    "semaphore",
    "mutex",
    "spinlock",
    "condition",
    "barrier",
    "list",
    "cell",
    "queue",
    "data",
    "cpus",
];

pub(super) fn read(reader: &Reader<'_>, key: &Key, node: &Node) -> Result<ObjectKind, SpecError> {
    match &node.value {
        Value::Text(text) => from_text(text).map_err(|message| {
            reader.source.error(node.span.start, format!("object {}: {message}", key.name))
        }),
        _ => table(reader, key, node),
    }
}

fn from_text(text: &str) -> Result<ObjectKind, String> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let number = |default: Option<u32>| match (rest, default) {
        ("", Some(default)) => Ok(default),
        (rest, _) => {
            rest.parse::<u32>().map_err(|_| format!("expected a number after `{kind}`, found `{rest}`"))
        }
    };
    let socket = |socket: SocketKind| {
        let bare = if socket == SocketKind::Tcp { 147_456 } else { 212_992 };
        Ok(ObjectKind::Stream(StreamKind::Socket { kind: socket, send_buffer_bytes: number(Some(bare))? }))
    };
    let plain = |object: ObjectKind| match rest {
        "" => Ok(object),
        rest => Err(format!("expected nothing after `{kind}`, found `{rest}`")),
    };
    match kind {
        "pipe" => Ok(ObjectKind::Stream(StreamKind::Pipe { pages: number(Some(16))? })),
        "unix" => socket(SocketKind::Unix),
        "tcp" => socket(SocketKind::Tcp),
        "udp" => socket(SocketKind::Udp),
        "futex" => plain(ObjectKind::Futex),
        "semaphore" => Ok(ObjectKind::Semaphore { initial: number(Some(0))? }),
        "mutex" => plain(ObjectKind::Mutex),
        "spinlock" => plain(ObjectKind::SpinLock),
        "condition" => plain(ObjectKind::Condition),
        "barrier" => Ok(ObjectKind::Barrier { parties: number(None)? }),
        "list" => plain(ObjectKind::List),
        "cell" => plain(ObjectKind::Cell),
        "queue" => plain(ObjectKind::Queue),
        "data" => Ok(ObjectKind::Data { bytes: parse_size(rest, 1)? }),
        "cpus" => CpuSet::parse_list(rest).map(ObjectKind::Cpus).map_err(|error| error.to_string()),
        other => Err(format!(
            "expected {}, or a table with `device`, `workqueue` or `work`, found `{other}`{}",
            KINDS.join(", "),
            did_you_mean(other, KINDS.iter().copied())
        )),
    }
}

fn table(reader: &Reader<'_>, key: &Key, node: &Node) -> Result<ObjectKind, SpecError> {
    let source = reader.source;
    let mut fields = Fields::new(source, node, format!("object {}", key.name))?;
    let kind = if let Some(device) = fields.table("device")? {
        ObjectKind::Device(read_device(reader, device)?)
    } else if let Some(bound) =
        fields.choice("workqueue", &[("per-cpu", Bound::PerCpu), ("unbound", Bound::Unbound)])?
    {
        let high_priority = fields.flag("high_priority")?.unwrap_or(false);
        ObjectKind::WorkQueue(WorkQueue { bound, high_priority })
    } else if let Some((queue, span)) = fields.text("work")? {
        let queue = ObjectId(reader.named("object", &reader.names.objects, queue, &span)?);
        ObjectKind::Work(Work { queue, body: body(reader, &mut fields, "do")? })
    } else {
        let message = format!("object {}: expected one of `device`, `workqueue` and `work`", key.name);
        return Err(source.error(node.span.start, message));
    };
    fields.finish()?;
    Ok(kind)
}

/// A program in a string; nothing if it is not there.
fn body(reader: &Reader<'_>, fields: &mut Fields<'_>, key: &'static str) -> Result<Vec<Op>, SpecError> {
    match fields.text(key)? {
        Some((text, span)) => reader.ops(text, &span),
        None => Ok(Vec::new()),
    }
}

fn read_device(reader: &Reader<'_>, mut fields: Fields<'_>) -> Result<Device, SpecError> {
    let channels = fields.integer("channels", 1, 1_000_000)?.unwrap_or(1) as u32;
    let interrupt = fields.read("interrupt", |text| match text {
        "submitter" => Ok(InterruptCpu::Submitter),
        text => text
            .parse()
            .map(|cpu| InterruptCpu::Fixed(CpuId::new(cpu)))
            .map_err(|_| format!("expected \"submitter\" or a CPU, found `{text}`")),
    })?;
    let mut requests = Vec::new();
    for node in fields.array("requests")? {
        let mut request = Fields::new(reader.source, node, "request")?;
        let mut dist = |key: &'static str| -> Result<Dist, SpecError> {
            Ok(request.read(key, |text| parse_dist(text, 1))?.unwrap_or_else(|| Dist::constant(0)))
        };
        let (service, latency) = (dist("service")?, dist("latency")?);
        let service_queued_permille = request.integer("queued_permille", 1, 1_000)?.unwrap_or(1_000) as u32;
        let hard = body(reader, &mut request, "hard")?;
        let soft = body(reader, &mut request, "soft")?;
        request.finish()?;
        requests.push(Request { service, service_queued_permille, latency, hard, soft });
    }
    fields.finish()?;
    Ok(Device { channels, interrupt: interrupt.unwrap_or(InterruptCpu::Submitter), requests })
}

/// An object's kind as a TOML value.
pub(super) fn print(kind: &ObjectKind, workload: &Workload, names: &Names) -> String {
    let text = match kind {
        ObjectKind::Stream(StreamKind::Pipe { pages }) => format!("pipe {pages}"),
        ObjectKind::Stream(StreamKind::Socket { kind, send_buffer_bytes }) => {
            let kind = match kind {
                SocketKind::Unix => "unix",
                SocketKind::Tcp => "tcp",
                SocketKind::Udp => "udp",
            };
            format!("{kind} {send_buffer_bytes}")
        }
        ObjectKind::Futex => "futex".to_owned(),
        ObjectKind::Semaphore { initial } => format!("semaphore {initial}"),
        ObjectKind::Mutex => "mutex".to_owned(),
        ObjectKind::SpinLock => "spinlock".to_owned(),
        ObjectKind::Condition => "condition".to_owned(),
        ObjectKind::Barrier { parties } => format!("barrier {parties}"),
        ObjectKind::List => "list".to_owned(),
        ObjectKind::Cell => "cell".to_owned(),
        ObjectKind::Queue => "queue".to_owned(),
        ObjectKind::Data { bytes } => format!("data {bytes}"),
        ObjectKind::Cpus(set) => format!("cpus {set}"),
        ObjectKind::WorkQueue(queue) => {
            let bound = match queue.bound {
                Bound::PerCpu => "per-cpu",
                Bound::Unbound => "unbound",
            };
            return format!("{{ workqueue = \"{bound}\", high_priority = {} }}", queue.high_priority);
        }
        ObjectKind::Work(work) => {
            let body = ops::print(&work.body, workload, names, None);
            return format!(
                "{{ work = {}, do = {} }}",
                quoted(&names.objects[work.queue.0 as usize]),
                quoted(&body)
            );
        }
        ObjectKind::Device(device) => return print_device(device, workload, names),
    };
    quoted(&text)
}

fn print_device(device: &Device, workload: &Workload, names: &Names) -> String {
    let interrupt = match device.interrupt {
        InterruptCpu::Submitter => "\"submitter\"".to_owned(),
        InterruptCpu::Fixed(cpu) => cpu.to_string(),
    };
    let requests: Vec<String> = device
        .requests
        .iter()
        .map(|request| {
            let body = |ops: &[Op]| quoted(&ops::print(ops, workload, names, None));
            format!(
                "{{ service = {}, queued_permille = {}, latency = {}, hard = {}, soft = {} }}",
                quoted(&dist_text(&request.service)),
                request.service_queued_permille,
                quoted(&dist_text(&request.latency)),
                body(&request.hard),
                body(&request.soft)
            )
        })
        .collect();
    format!(
        "{{ device = {{ channels = {}, interrupt = {interrupt}, requests = [{}] }} }}",
        device.channels,
        requests.join(", ")
    )
}
