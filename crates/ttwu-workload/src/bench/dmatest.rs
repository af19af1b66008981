//! dmatest: kernel threads at nice 10 that have a DMA engine copy a buffer, over and over.
//!
//! ```text
//! thread     fill both buffers (time excluded) · map, prepare, submit · sleep
//! device     serves · interrupt on its fixed CPU ─► tasklet there ─► callback wakes the thread (no SYNC, softirq context)
//! thread     unmap · verify both buffers (time excluded) · count the CPU that it is on
//! ```
//!
//! Filling and verifying go over the whole of both buffers byte by byte, whatever is transferred.
//!
//! DEVIATION: with `polled` the device still interrupts its CPU, where nobody is woken.

use ttwu_model::{CpuId, CpuSet};

use super::{Bench, MANY, fixed, link};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, flag, refused};
use crate::{
    Builder, Device, Dist, InterruptCpu, MeterKind, MeterRef, ObjectKind, Op, Reg, Request, Start, TaskRef,
    Times, Until,
};

/// dmatest as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dmatest {
    /// The channel, `dma0chan0`.
    pub channel: String,
    /// Iterations of each thread.
    pub iterations: u64,
    /// Bytes of each transfer; `None` when their lengths are drawn, so that KB/s cannot be told.
    pub transfer_bytes: Option<u64>,
    /// The threads.
    pub threads: Vec<DmatestThread>,
    /// Interrupts by CPU.
    pub interrupts: MeterRef,
}

/// A thread of dmatest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DmatestThread {
    /// Its task, `dma0chan0-copy0`.
    pub task: TaskRef,
    /// One sample an iteration, without filling and verifying, ns: their sum is the run time behind the original's iops.
    pub iteration: MeterRef,
    /// Iterations by the CPU on which they ended (`CPUs hit`).
    pub cpus: MeterRef,
}

const fn size(name: &'static str, default: &'static str, min: u64, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Size { bare_bytes: 1, min, max: 1 << 30 }, default, doc }
}

const fn integer(
    name: &'static str,
    default: &'static str,
    range: (u64, u64),
    doc: &'static str,
) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Integer { min: range.0, max: range.1 }, default, doc }
}

const fn dist(name: &'static str, default: &'static str, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Dist { bare_ns: 1_000 }, default, doc }
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "dmatest",
        doc: "the kernel's dmatest: threads at nice 10, woken by a DMA engine's tasklet on its interrupt's CPU",
        result: "iops and KB/s of each thread, and the CPUs that it hit",
        options: &[
            size("test_buf_size", "16384", 1, "bytes of each buffer"),
            size(
                "transfer_size",
                "0",
                0,
                "bytes of each transfer; 0 is the whole buffer, or a random part of it",
            ),
            integer("threads_per_chan", "1", (1, 1_000), "threads"),
            integer(
                "iterations",
                "1000",
                (1, MANY),
                "transfers of each thread (0, the original's default, is endless)",
            ),
            OptionDoc {
                name: "timeout",
                short: &[],
                kind: OptionKind::Time { bare_ns: 1_000_000, min: 1_000_000, max: 4_294_967_295_000_000 },
                default: "3000ms",
                doc: "refused if the model's device could exceed it",
            },
            flag("noverify", &[], "neither fill nor verify"),
            flag("norandom", &[], "whole buffers instead of random lengths"),
            flag("polled", &[], "spin on the status instead of sleeping"),
            integer("irq", "0", (0, 65_535), "CPU of the device's interrupt"),
            OptionDoc {
                name: "start",
                short: &[],
                kind: OptionKind::IntegerOrAuto { min: 0, max: 65_535 },
                default: "auto",
                doc: "CPU where the threads begin, unpinned afterwards; auto is where the fork puts them",
            },
            integer(
                "service",
                "100",
                (1, 1_000_000),
                "device's time for a byte, ps (an estimate: 64 KiB take 6.6 us)",
            ),
            dist("latency", "500ns", "from the end of a transfer to its interrupt (an estimate)"),
            dist("submit", "1us", "mapping, preparing, submitting (an estimate)"),
            dist("unmap", "500ns", "unmapping (an estimate)"),
            dist("callback", "300ns", "the tasklet before it wakes the thread (an estimate)"),
            integer("pattern", "500", (1, 1_000_000), "filling or verifying a byte, ps (an estimate)"),
            refused("dmatest", &[], "memset; only copies are"),
            refused("xor_sources", &[], "only copies are"),
            refused("pq_sources", &[], "only copies are"),
            refused("alignment", &[], "it changes no time of the model"),
            refused("max_channels", &[], "one channel is"),
        ],
    },
    build,
};

/// Links of a thread: the device and its semaphore.
const DEVICE: u32 = 0;
const DONE: u32 = 1;

fn build(options: &Options, machine: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let cpu = |name: &str, value: u64| {
        (value < u64::from(machine.cpus))
            .then(|| CpuId::new(value as u16))
            .ok_or_else(|| format!("{name}: the machine has {} CPUs, from 0", machine.cpus))
    };
    let irq = cpu("irq", options.integer("irq"))?;
    let start = options.integer_or_auto("start").map(|value| cpu("start", value)).transpose()?;
    let buffer = options.integer("test_buf_size");
    let (service, transfer_bytes) = service(options, buffer)?;
    let interrupts = builder.meter("interrupts", MeterKind::Cpus);
    let device = builder.object(
        "dma0chan0",
        ObjectKind::Device(Device {
            channels: 1,
            interrupt: InterruptCpu::Fixed(irq),
            requests: vec![Request {
                service,
                service_queued_permille: 1000,
                latency: options.dist("latency"),
                hard: vec![Op::CountCpu(interrupts)],
                soft: vec![Op::RunKernel(options.dist("callback")), Op::PostAll(link(DONE))],
            }],
        }),
    );
    let begin = start.map_or_else(Vec::new, |cpu| {
        let only = builder.object("start", ObjectKind::Cpus([cpu].into_iter().collect()));
        let all = builder.object("all CPUs", ObjectKind::Cpus(CpuSet::first(machine.cpus as usize)));
        vec![Op::SetAffinity(fixed(only)), Op::SetAffinity(fixed(all))]
    });
    let threads: Vec<DmatestThread> = (0..options.count("threads_per_chan"))
        .map(|number| {
            let iteration = builder.meter(format!("iteration {number}"), MeterKind::Samples);
            let cpus = builder.meter(format!("cpus {number}"), MeterKind::Cpus);
            let done = builder.object(format!("done {number}"), ObjectKind::Semaphore { initial: 0 });
            let program =
                builder.program([begin.clone(), thread_ops(options, buffer, iteration, cpus)].concat());
            // `dma0chan0-copy10` would be one byte too long for a comm, and the kernel cuts it.
            let name: String = format!("dma0chan0-copy{number}").chars().take(15).collect();
            let task = builder.task(name, program, Start::At(0));
            let spec = builder.task_mut(task);
            spec.links = vec![device, done];
            spec.nice = 10;
            spec.kernel_thread = true;
            DmatestThread { task, iteration, cpus }
        })
        .collect();
    // `modprobe dmatest run=1 wait=1` waits for its threads; the run ends with it whatever else runs beside.
    let waiting = builder.program(threads.iter().map(|thread| Op::Join(thread.task)).collect());
    let modprobe = builder.task("modprobe", waiting, Start::At(0));
    builder.until(Until::Exit(modprobe));
    let iterations = options.integer("iterations");
    Ok(Bench::Dmatest(Dmatest {
        channel: "dma0chan0".to_owned(),
        iterations,
        transfer_bytes,
        threads,
        interrupts,
    }))
}

/// The device's time for a transfer, and the bytes if they are always the same.
fn service(options: &Options, buffer: u64) -> Result<(Dist, Option<u64>), String> {
    let (transfer, ps) = (options.integer("transfer_size"), options.integer("service"));
    if transfer > buffer {
        return Err(format!("transfer_size: expected at most test_buf_size, {buffer}, found {transfer}"));
    }
    let ns = |bytes: u64| bytes * ps / 1_000;
    let fixed_bytes = match (transfer, options.flag("norandom")) {
        (0, true) => Some(buffer),
        (0, false) => None,
        (bytes, _) => Some(bytes),
    };
    let longest = ns(fixed_bytes.unwrap_or(buffer)) * options.integer("threads_per_chan");
    if longest >= options.integer("timeout") {
        return Err(format!("timeout: the device may take {longest} ns, and the model has no failures"));
    }
    Ok((
        fixed_bytes.map_or_else(|| Dist::uniform(ns(1), ns(buffer)), |bytes| Dist::constant(ns(bytes))),
        fixed_bytes,
    ))
}

fn thread_ops(options: &Options, buffer: u64, iteration: MeterRef, cpus: MeterRef) -> Vec<Op> {
    // Source and destination, whole.
    let pattern = Op::RunKernel(Dist::constant(2 * buffer * options.integer("pattern") / 1_000));
    let verified = if options.flag("noverify") { Vec::new() } else { vec![pattern] };
    let wait = if options.flag("polled") { Op::SpinWait(link(DONE)) } else { Op::Wait(link(DONE)) };
    let timed = vec![
        Op::Stamp(Reg(0)),
        Op::RunKernel(options.dist("submit")),
        Op::Submit { to: link(DEVICE), request: 0 },
        wait,
        Op::RunKernel(options.dist("unmap")),
        Op::Sample { meter: iteration, since: Reg(0) },
    ];
    let body = [verified.clone(), timed, verified, vec![Op::CountCpu(cpus)]].concat();
    vec![Op::Repeat { times: Times::Count(options.integer("iterations")), counter: None, body }]
}
