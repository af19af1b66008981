//! A desktop that plays a video while CPU hogs run: the recording of the mails of March and April 2023.
//!
//! Eight massive_intr hogs (8 ms of work, 1 ms of sleep), and a browser's pipeline, four times a frame:
//!
//! ```text
//! CrBrowserMain (timer) ─► ThreadPoolForeg ─► a tile at a time ─► dav1d-worker × 8
//!                      └─► VideoFrameCompo ─► VizCompositor ─► X
//!                                                     └─► a piece at a time ─► llvmpipe × 8
//! ```
//!
//! With groups, the hogs, the browser and X are in an autogroup each, as an autogroup is one a session; without, all are flat.
//! The published recording gives switches and delays by name, not work: how often stages are woken was chosen so that the numbers
//! of switches a second under CFS are about those of the recording's CFS column (dav1d-worker 1490, VizCompositor 256,
//! VideoFrameCompo 251, ThreadPoolForeg 221, X 299; 3120 are not named, here the software renderer's), and their work is an estimate. So what CFS gives is no
//! prediction; only differences between policies are.

use super::{Bench, fixed};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc};
use crate::{Builder, Dist, GroupRef, ObjectKind, Op, Reg, Start, TaskRef, Times, Until};

/// The desktop as it was run. Its result is perf's latency table by name, from the trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Desktop {
    /// Seconds.
    pub runtime_s: u64,
    /// The hogs.
    pub hogs: Vec<TaskRef>,
    /// The pipeline's tasks: what the mail calls the GUI.
    pub pipeline: Vec<TaskRef>,
}

const fn integer(name: &'static str, default: &'static str, max: u64, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Integer { min: 1, max }, default, doc }
}

const fn dist(name: &'static str, default: &'static str, doc: &'static str) -> OptionDoc {
    OptionDoc { name, short: &[], kind: OptionKind::Dist { bare_ns: 1_000 }, default, doc }
}

pub(super) const TABLE: Table = Table {
    doc: WorkloadDoc {
        name: "desktop",
        doc: "eight massive_intr hogs beside a browser that plays a video: decoders, compositors, X",
        result: "runtime, switches and delays by name, as perf sched prints them",
        options: &[
            integer("runtime", "10", 86_400, "seconds (the recording had 300)"),
            integer("hogs", "8", 10_000, "massive_intr processes"),
            dist("hog-work", "8ms", "a hog's work between sleeps"),
            dist("hog-sleep", "1ms", "a hog's sleep"),
            integer("decoders", "8", 1_000, "dav1d-worker threads"),
            integer("fps", "60", 1_000, "frames per second"),
            integer("tiles", "6", 1_000, "pieces that are decoded apart, four times a frame"),
            dist("tile-work", "uniform(200us..1200us)", "decoding a piece"),
            integer("renderers", "8", 1_000, "llvmpipe threads"),
            integer("pieces", "13", 1_000, "pieces that are rendered apart, four times a frame"),
            dist("piece-work", "uniform(100us..400us)", "rendering a piece"),
            OptionDoc {
                name: "groups",
                short: &[],
                kind: OptionKind::Flag,
                default: "on",
                doc: "an autogroup for the hogs, the browser and X each; off is flat",
            },
        ],
    },
    build,
};

/// How often the pipeline runs a frame.
const PHASES: u64 = 4;

fn build(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let mut group = |name: &str| options.flag("groups").then(|| builder.group(name, None, 1024));
    let [hog_group, browser_group, x_group] = ["hogs", "browser", "X"].map(&mut group);
    let hogs = hogs(options, builder, hog_group);
    let pipeline = pipeline(options, builder, browser_group, x_group);
    let runtime_s = options.integer("runtime");
    builder.until(Until::Time(runtime_s * 1_000_000_000));
    Ok(Bench::Desktop(Desktop { runtime_s, hogs, pipeline }))
}

fn forever(body: Vec<Op>) -> Vec<Op> {
    vec![Op::Repeat { times: Times::Forever, counter: None, body }]
}

fn hogs(options: &Options, builder: &mut Builder, group: Option<GroupRef>) -> Vec<TaskRef> {
    let body = vec![Op::Run(options.dist("hog-work")), Op::Sleep(options.dist("hog-sleep"))];
    let program = builder.program(forever(body));
    (0..options.count("hogs"))
        .map(|_| {
            let task = builder.task("massive_intr", program, Start::At(0));
            builder.task_mut(task).group = group;
            task
        })
        .collect()
}

fn pipeline(
    options: &Options,
    builder: &mut Builder,
    browser_group: Option<GroupRef>,
    x_group: Option<GroupRef>,
) -> Vec<TaskRef> {
    let mut semaphore = |name: &str| builder.object(name, ObjectKind::Semaphore { initial: 0 });
    let [pool, tiles, compose, viz, pieces, x] =
        ["pool", "tiles", "compose", "viz", "pieces", "x"].map(&mut semaphore);
    let mut tasks = Vec::new();
    let mut add = |name: &str, ops: Vec<Op>, group: Option<GroupRef>, builder: &mut Builder| {
        let program = builder.program(ops);
        let task = builder.task(name, program, Start::At(0));
        builder.task_mut(task).group = group;
        tasks.push(task);
    };
    let phase_ns = 1_000_000_000 / (options.integer("fps") * PHASES);
    let main = vec![
        Op::Periodic { timer: Reg(0), period: Dist::constant(phase_ns), rebase: true },
        Op::Run(Dist::uniform(50_000, 150_000)),
        Op::Post(fixed(pool)),
        Op::Post(fixed(compose)),
    ];
    add("CrBrowserMain", forever(main), browser_group, builder);
    let hand_out = Op::Repeat {
        times: Times::Count(options.integer("tiles")),
        counter: None,
        body: vec![Op::Run(Dist::uniform(10_000, 40_000)), Op::Post(fixed(tiles))],
    };
    add("ThreadPoolForeg", forever(vec![Op::Wait(fixed(pool)), hand_out]), browser_group, builder);
    let stage = |work: Dist, from, rest: Vec<Op>| {
        forever([vec![Op::Wait(fixed(from)), Op::Run(work)], rest].concat())
    };
    let render = Op::Repeat {
        times: Times::Count(options.integer("pieces")),
        counter: None,
        body: vec![Op::Run(Dist::uniform(5_000, 20_000)), Op::Post(fixed(pieces))],
    };
    let frame = stage(Dist::uniform(30_000, 150_000), compose, vec![Op::Post(fixed(viz))]);
    add("VideoFrameCompo", frame, browser_group, builder);
    let composite = stage(Dist::uniform(50_000, 250_000), viz, vec![render, Op::Post(fixed(x))]);
    add("VizCompositor", composite, browser_group, builder);
    let paint = forever(vec![Op::Wait(fixed(x)), Op::Run(Dist::uniform(100_000, 600_000))]);
    add("X", paint, x_group, builder);
    for _ in 0..options.count("decoders") {
        let decode = forever(vec![Op::Wait(fixed(tiles)), Op::Run(options.dist("tile-work"))]);
        add("dav1d-worker", decode, browser_group, builder);
    }
    for _ in 0..options.count("renderers") {
        let render = stage(options.dist("piece-work"), pieces, Vec::new());
        add("llvmpipe", render, browser_group, builder);
    }
    share_process(builder, &tasks);
    tasks
}

/// The browser's threads are of one process; X is not.
fn share_process(builder: &mut Builder, tasks: &[TaskRef]) {
    let process = builder.task_mut(tasks[0]).process;
    for task in tasks {
        let spec = builder.task_mut(*task);
        if spec.name != "X" {
            spec.process = process;
        }
    }
}
