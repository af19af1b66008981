//! A desktop that plays a video while CPU hogs run: the recording of the mails of March and April 2023.
//!
//! Eight massive_intr hogs (8 ms of work, 1 ms of sleep), and a browser's pipeline, once a frame:
//!
//! ```text
//! CrBrowserMain (timer) ─► ThreadPoolForeg ─► tiles ─► dav1d-worker × 8
//!                      └─► VideoFrameCompo ─► VizCompositor ─► X
//! ```
//!
//! With groups, the hogs, the browser and X are in an autogroup each, as an autogroup is one a session; without, all are flat.
//! The published recording gives switches and delays by name, not work: the times here are estimates that make the numbers of
//! wake-ups a second about those of its CFS column (dav1d-worker 1490, VizCompositor 256, VideoFrameCompo 251,
//! ThreadPoolForeg 221, X 299) and the pipeline's share about 28 %. They were chosen with the CFS column in view, so only differences
//! between policies are predictions.

use super::{Bench, fixed};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc};
use crate::{Builder, Dist, GroupRef, ObjectId, ObjectKind, Op, Reg, Start, TaskRef, Times, Until};

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
            integer("tiles", "24", 1_000, "pieces of a frame that are decoded apart"),
            dist("tile-work", "uniform(300us..1500us)", "decoding a piece"),
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

/// Work of a stage a frame, split into so many wake-ups. Estimates, see above.
struct Stage {
    name: &'static str,
    work: Dist,
    wakeups: u64,
}

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
    let [pool, tiles, compose, viz, x] = ["pool", "tiles", "compose", "viz", "x"].map(&mut semaphore);
    let post = |to: ObjectId, count: u64| Op::Repeat {
        times: Times::Count(count),
        counter: None,
        body: vec![Op::Post(fixed(to))],
    };
    let mut tasks = Vec::new();
    let mut add = |name: &str, ops: Vec<Op>, group: Option<GroupRef>, builder: &mut Builder| {
        let program = builder.program(ops);
        let task = builder.task(name, program, Start::At(0));
        builder.task_mut(task).group = group;
        tasks.push(task);
    };
    let frame_ns = 1_000_000_000 / options.integer("fps");
    let main = vec![
        Op::Periodic { timer: Reg(0), period: Dist::constant(frame_ns), rebase: true },
        Op::Run(Dist::uniform(200_000, 600_000)),
        post(pool, 3),
        post(compose, 4),
    ];
    add("CrBrowserMain", forever(main), browser_group, builder);
    // A stage is woken so many times a frame as the recording's switches say, and hands on as often as the next one is.
    let stages = [
        (
            Stage { name: "ThreadPoolForeg", work: Dist::uniform(50_000, 250_000), wakeups: 3 },
            pool,
            tiles,
            options.integer("tiles"),
            browser_group,
        ),
        (
            Stage { name: "VideoFrameCompo", work: Dist::uniform(30_000, 150_000), wakeups: 4 },
            compose,
            viz,
            4,
            browser_group,
        ),
        (
            Stage { name: "VizCompositor", work: Dist::uniform(100_000, 500_000), wakeups: 4 },
            viz,
            x,
            4,
            browser_group,
        ),
    ];
    for (stage, from, to, hands_on, group) in stages {
        // Evenly over its wake-ups, the rest with the last.
        let share = hands_on / stage.wakeups;
        let mut body = Vec::new();
        for wakeup in 0..stage.wakeups {
            let rest = if wakeup + 1 == stage.wakeups { hands_on % stage.wakeups } else { 0 };
            body.extend([Op::Wait(fixed(from)), Op::Run(stage.work.clone()), post(to, share + rest)]);
        }
        add(stage.name, forever(body), group, builder);
    }
    let paint = forever(vec![Op::Wait(fixed(x)), Op::Run(Dist::uniform(100_000, 600_000))]);
    add("X", paint, x_group, builder);
    for _ in 0..options.count("decoders") {
        let decode = forever(vec![Op::Wait(fixed(tiles)), Op::Run(options.dist("tile-work"))]);
        add("dav1d-worker", decode, browser_group, builder);
    }
    share_process(builder, &tasks);
    tasks
}

/// The browser's threads are of one process; X, which is the last but the decoders, is not.
fn share_process(builder: &mut Builder, tasks: &[TaskRef]) {
    let process = builder.task_mut(tasks[0]).process;
    for task in tasks {
        let spec = builder.task_mut(*task);
        if spec.name != "X" {
            spec.process = process;
        }
    }
}
