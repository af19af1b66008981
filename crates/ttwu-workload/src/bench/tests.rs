//! Counts of tasks, messages and operations against the originals' arithmetic, and defaults against the originals'.

use std::collections::BTreeMap;

use super::{Bench, Transport};
use crate::{MachineInfo, ObjectId, Op, Slot, Start, StreamKind, TaskSpec, Times, Until, Workload};

fn parse(text: &str) -> Workload {
    Workload::parse(text, &MachineInfo { cpus: 8 }).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Calls `visit` for each operation of a task with how often it is done; what is done forever counts once.
fn walk(ops: &[Op], times: u64, visit: &mut impl FnMut(&Op, u64)) {
    for op in ops {
        visit(op, times);
        match op {
            Op::Repeat { times: Times::Count(count), body, .. } => walk(body, times * count, visit),
            Op::Repeat { body, .. } | Op::TakeAll { body, .. } => walk(body, times, visit),
            Op::Choose { then, otherwise, .. } | Op::IfReady { then, otherwise, .. } => {
                walk(then, times, visit);
                walk(otherwise, times, visit);
            }
            _ => {}
        }
    }
}

/// Bytes written to and read from each stream; a slot that turns over all a task's channels spreads evenly.
fn traffic(workload: &Workload) -> BTreeMap<ObjectId, (u64, u64)> {
    let mut sums: BTreeMap<ObjectId, (u64, u64)> = BTreeMap::new();
    for task in &workload.tasks {
        walk(&workload.programs[task.program as usize].ops, 1, &mut |op, times| {
            let (slot, written, read) = match op {
                Op::Write { to, bytes } => (to, u64::from(*bytes) * times, 0),
                Op::Read { from, bytes } => (from, 0, u64::from(*bytes) * times),
                _ => return,
            };
            let objects = objects(task, slot);
            for object in &objects {
                let sum = sums.entry(*object).or_default();
                sum.0 += written / objects.len() as u64;
                sum.1 += read / objects.len() as u64;
            }
        });
    }
    sums
}

fn objects(task: &TaskSpec, slot: &Slot) -> Vec<ObjectId> {
    match slot {
        Slot::Fixed(object) => vec![*object],
        Slot::Link(number) => vec![task.links[*number as usize]],
        Slot::Indexed { base, .. } => task.links[*base as usize..].to_vec(),
        Slot::ByCpu { .. } | Slot::Item(_) => panic!("no stream is named so"),
    }
}

fn count(workload: &Workload, task: usize, wanted: impl Fn(&Op) -> bool) -> u64 {
    let mut sum = 0;
    let program = workload.tasks[task].program as usize;
    walk(&workload.programs[program].ops, 1, &mut |op, times| sum += if wanted(op) { times } else { 0 });
    sum
}

#[test]
fn every_named_workload_is_sound() {
    for doc in crate::workloads() {
        assert_eq!(parse(doc.name).check(), Ok(()), "{}", doc.name);
    }
    for text in [
        "schbench:rps=100,calibrate",
        "schbench:pipe=4096",
        "schbench-a:pipe=100,sleeptime=0",
        "dbench:clients=8,cil=bound & noise",
        "dmatest:noverify,polled,start=3,threads_per_chan=4",
        "pipe:nonblocking,cgroups,threaded",
        "desktop:groups=off,tiles=5",
        "cyclictest:smp,loops=100",
    ] {
        assert_eq!(parse(text).check(), Ok(()), "{text}");
    }
}

#[test]
fn hackbench_defaults_are_the_originals() {
    let workload = parse("hackbench");
    let Bench::Hackbench(bench) = &workload.bench else { panic!() };
    assert_eq!((bench.groups, bench.fds, bench.loops, bench.datasize), (10, 20, 100, 100));
    assert_eq!((bench.threads, bench.transport), (false, Transport::Unix));
    // "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)", and the main task.
    assert_eq!((bench.tasks(), workload.tasks.len()), (400, 401));
    let processes: std::collections::BTreeSet<u32> = workload.tasks.iter().map(|task| task.process).collect();
    assert_eq!(processes.len(), 401);
}

#[test]
fn hackbench_sends_all_to_all() {
    let workload = parse("hackbench:groups=2,fds=3,loops=5,datasize=7,threads,pipe");
    let Bench::Hackbench(bench) = &workload.bench else { panic!() };
    assert_eq!(bench.messages(), 2 * 3 * 3 * 5);
    let traffic = traffic(&workload);
    // Control: 12 tasks write a byte to ready, main reads 12; one byte to wake, which nobody reads.
    assert_eq!((traffic[&ObjectId(0)], traffic[&ObjectId(1)]), ((12, 12), (1, 0)));
    let channels: Vec<(u64, u64)> = traffic.values().skip(2).copied().collect();
    assert_eq!(channels, vec![(3 * 5 * 7, 3 * 5 * 7); 6]);
    assert!(workload.tasks.iter().all(|task| task.process == workload.tasks[0].process));
    // Creation order: receivers, then senders, group by group.
    let kinds: Vec<usize> = workload.tasks[1..].iter().map(|task| task.links.len()).collect();
    assert_eq!(kinds, [3, 3, 3, 5, 5, 5, 3, 3, 3, 5, 5, 5]);
    assert_eq!(workload.until, Until::Exit(crate::TaskRef(0)));
}

#[test]
fn the_quoted_hackbench_case_carries_40_million_messages() {
    let workload = parse("hackbench:pipe,threads,loops=100000,groups=1");
    let Bench::Hackbench(bench) = &workload.bench else { panic!() };
    assert_eq!(bench.messages(), 40_000_000);
    assert_eq!(count(&workload, 21, |op| matches!(op, Op::Write { .. })), 2_000_001);
}

#[test]
fn perf_messaging_and_pipe_have_perfs_shape() {
    let workload = parse("messaging");
    assert_eq!(workload.tasks.len(), 401);
    let pipe = parse("pipe:loop=20");
    // As processes, the parent is one of the two.
    assert_eq!(pipe.tasks.len(), 2);
    assert_eq!(traffic(&pipe).into_values().collect::<Vec<_>>(), [(80, 80), (80, 80)]);
    let threaded = parse("pipe:threaded");
    assert_eq!(threaded.tasks.len(), 3);
    let Bench::PerfPipe(bench) = &threaded.bench else { panic!() };
    assert_eq!(bench.loops, 1_000_000);
    assert!(matches!(threaded.objects[0].kind, crate::ObjectKind::Stream(StreamKind::Pipe { pages: 16 })));
}

#[test]
fn schbench_a_defaults_are_what_the_source_has_not_its_help() {
    let workload = parse("schbench-a");
    let Bench::SchbenchA(bench) = &workload.bench else { panic!() };
    assert_eq!((bench.message_threads, bench.threads, bench.runtime_s), (2, 16, 30));
    assert_eq!(workload.tasks.len(), 1 + 2 + 32);
    let worker = workload.tasks.iter().find(|task| task.links.len() == 5).expect("a worker");
    let ops = &workload.programs[worker.program as usize].ops;
    let mut spun = 0;
    walk(ops, 1, &mut |op, _| spun += if let Op::Spin(time) = op { time.mean() } else { 0 });
    assert_eq!(spun, 30_000_000);
    let boss = &workload.programs[workload.tasks[1].program as usize].ops;
    let mut nap = Vec::new();
    walk(boss, 1, &mut |op, _| {
        if let Op::Sleep(time) = op {
            nap = time.points().to_vec();
        }
    });
    // rand_r() % 7500 microseconds on top of 30000.
    assert_eq!(nap, [30_000_000, 37_499_000]);
    // One time stamp for a batch: the stamp stands outside the list's body.
    let Some(Op::Repeat { body, .. }) = boss.last() else { panic!() };
    assert!(matches!(body[..3], [Op::Reset(_), Op::Stamp(_), Op::TakeAll { .. }]));
}

#[test]
fn schbench_c_starts_a_worker_a_cpu() {
    let workload = parse("schbench");
    let Bench::SchbenchC(bench) = &workload.bench else { panic!() };
    assert_eq!((bench.message_threads, bench.threads, bench.threads_auto), (1, 8, true));
    assert_eq!(workload.tasks.len(), 1 + 1 + 8);
    let worker = workload.tasks.last().expect("a worker");
    assert_eq!(worker.links.len(), 5 + 8);
    let mut work = 0;
    walk(&workload.programs[worker.program as usize].ops, 1, &mut |op, _| {
        work += if let Op::Run(time) = op { time.mean() } else { 0 };
    });
    // 256 KiB in three matrices: 104 x 104; 5 x 104^3 steps of 970 ps.
    assert_eq!(work, 5 * 104 * 104 * 104 * 970 / 1_000);
}

#[test]
fn schbench_c_issues_its_rate_round_robin() {
    let workload = parse("schbench:rps=10,threads=4,runtime=3");
    let boss = 1;
    assert_eq!(count(&workload, boss, |op| matches!(op, Op::Post(_))), 30);
    let mut posts: Vec<u32> = Vec::new();
    walk(&workload.programs[workload.tasks[boss].program as usize].ops, 1, &mut |op, times| {
        if let Op::Post(Slot::Link(number)) = op {
            posts.extend(std::iter::repeat_n(number / 2 - 1, times as usize));
        }
    });
    // Every second issues ten; 30 over four workers differ by one at most.
    let per_worker: Vec<usize> = (0..4).map(|w| posts.iter().filter(|p| **p == w).count()).collect();
    assert_eq!(per_worker, [8, 8, 7, 7]);
}

#[test]
fn massive_intr_works_8_ms_and_sleeps_1() {
    let workload = parse("massive_intr:nproc=3,runtime=4");
    let Bench::MassiveIntr(bench) = &workload.bench else { panic!() };
    assert_eq!((bench.loops.len(), workload.tasks.len()), (3, 4));
    let mut times = Vec::new();
    walk(&workload.programs[0].ops, 1, &mut |op, _| match op {
        Op::Run(time) | Op::Sleep(time) => times.push(time.mean()),
        Op::Repeat { times: Times::Before(end), .. } => times.push(*end),
        _ => {}
    });
    assert_eq!(times, [200_000_000, 4_200_000_000, 8_000_000, 1_000_000]);
    assert!(workload.tasks[3].start == Start::At(0));
}

/// The sum of the means of all operations that `time` gives a time for, with how often they are done.
fn total(workload: &Workload, task: usize, time: impl Fn(&Op) -> Option<u64>) -> u64 {
    let mut sum = 0;
    let program = workload.tasks[task].program as usize;
    walk(&workload.programs[program].ops, 1, &mut |op, times| sum += time(op).unwrap_or(0) * times);
    sum
}

#[test]
fn a_dbench_pass_has_43_fsyncs_through_four_kinds_of_work() {
    let workload = parse("dbench:clients=2,timelimit=5");
    let Bench::Dbench(bench) = &workload.bench else { panic!() };
    assert_eq!((workload.tasks.len(), bench.passes.len(), bench.fsyncs), (3, 2, 43));
    let client = bench.tasks[1].0 as usize;
    assert_eq!(count(&workload, client, |op| matches!(op, Op::Flush(_))), 43);
    assert_eq!(count(&workload, client, |op| matches!(op, Op::Queue(_))), 86);
    // 43 times 310 us of work.
    assert_eq!(
        total(&workload, client, |op| if let Op::Run(t) = op { Some(t.mean()) } else { None }),
        13_330_000
    );
    let device = workload.objects.iter().find_map(|object| match &object.kind {
        crate::ObjectKind::Device(device) => Some(device),
        _ => None,
    });
    let services: Vec<(u64, u64)> = device
        .expect("a journal")
        .requests
        .iter()
        .map(|request| (request.service.mean(), request.latency.mean()))
        .collect();
    assert_eq!(services, [(85_000, 30_000), (55_000, 0)]);
    // The main task sleeps for the time limit.
    assert_eq!(
        total(&workload, 0, |op| if let Op::Sleep(t) = op { Some(t.mean()) } else { None }),
        5_000_000_000
    );
}

#[test]
fn dmatest_fills_and_verifies_whole_buffers() {
    let quoted = parse("dmatest:test_buf_size=1MiB,transfer_size=64KiB,norandom,timeout=2000");
    let Bench::Dmatest(bench) = &quoted.bench else { panic!() };
    assert_eq!((bench.iterations, bench.transfer_bytes, bench.threads.len()), (1000, Some(65_536), 1));
    let spec = &quoted.tasks[0];
    assert_eq!((spec.name.as_str(), spec.nice, spec.kernel_thread), ("dma0chan0-copy0", 10, true));
    let kernel = |op: &Op| if let Op::RunKernel(t) = op { Some(t.mean()) } else { None };
    // An iteration: 1 us to submit, 0.5 us to unmap, and two buffers of 1 MiB at 0.5 ns a byte, twice.
    assert_eq!(total(&quoted, 0, kernel), 1000 * (1_500 + 2 * 1_048_576));
    assert_eq!(total(&parse("dmatest:noverify"), 0, kernel), 1000 * 1_500);
    let random = parse("dmatest:noverify,threads_per_chan=4");
    let Bench::Dmatest(bench) = &random.bench else { panic!() };
    assert_eq!((bench.transfer_bytes, bench.threads.len()), (None, 4));
    assert_eq!(count(&random, 3, |op| matches!(op, Op::CountCpu(_))), 1000);
    // Background that never ends must not keep the run from ending.
    let beside = parse("dmatest:threads_per_chan=4 & noise");
    assert_eq!(
        (beside.until, count(&beside, 4, |op| matches!(op, Op::Join(_)))),
        (Until::Exit(crate::TaskRef(4)), 4)
    );
}

#[test]
fn tbench_spreads_the_load_files_mix() {
    let workload = parse("tbench:clients=3");
    assert_eq!(workload.tasks.len(), 6);
    let bytes = |task: usize| {
        let mut kinds: BTreeMap<u32, u64> = BTreeMap::new();
        walk(&workload.programs[workload.tasks[task].program as usize].ops, 1, &mut |op, _| {
            if let Op::Write { bytes, .. } = op {
                *kinds.entry(*bytes).or_default() += 1;
            }
        });
        kinds
    };
    // Of 200 operations 54 read and 17 write a file; the server answers in the same order.
    let client = bytes(1);
    assert_eq!((client[&59], client[&25_463], client.values().sum::<u64>()), (54, 17, 200));
    assert_eq!(bytes(0)[&10_563], 54);
}

#[test]
fn round_trips_are_one_write_and_one_read_a_side() {
    let context = parse("context1:copies=104");
    let Bench::Context1(bench) = &context.bench else { panic!() };
    assert_eq!((context.tasks.len(), bench.counts.len(), bench.seconds), (208, 104, 10));
    assert_eq!(traffic(&context).into_values().collect::<Vec<_>>(), vec![(8, 8); 208]);
    let netperf = parse("netperf:test=UDP_RR,response=100");
    assert_eq!(traffic(&netperf).into_values().collect::<Vec<_>>(), [(1, 1), (100, 100)]);
    assert_eq!(netperf.until, Until::Time(10_000_000_000));
}

#[test]
fn cyclictest_intervals_grow_by_the_distance() {
    let workload = parse("cyclictest:threads=3,loops=200");
    let Bench::Cyclictest(bench) = &workload.bench else { panic!() };
    let intervals: Vec<u64> = bench.threads.iter().map(|thread| thread.interval_us).collect();
    assert_eq!(intervals, [1000, 1500, 2000]);
    assert_eq!(workload.until, Until::Exit(crate::TaskRef(0)));
    assert_eq!(parse("cyclictest:smp").tasks.len(), 8);
}

#[test]
fn rpc_offers_the_load_that_it_says() {
    let workload = parse("rpc:load=50");
    let Bench::Rpc(bench) = &workload.bench else { panic!() };
    // Half of eight CPUs at about 200 us a request.
    assert!((20_000..=20_010).contains(&bench.rate), "{}", bench.rate);
    assert_eq!((bench.workers, workload.tasks.len()), (16, 1 + 16 + 1));
}

#[test]
fn the_desktop_hands_on_as_many_pieces_as_it_is_told() {
    for (text, tiles) in [("desktop", 6), ("desktop:tiles=7", 7)] {
        let workload = parse(text);
        let Bench::Desktop(bench) = &workload.bench else { panic!() };
        // Five stages, decoders and renderers.
        assert_eq!((bench.hogs.len(), bench.pipeline.len()), (8, 5 + 8 + 8));
        let task = |name: &str| workload.tasks.iter().position(|task| task.name == name).expect("task");
        let posts = |name: &str| count(&workload, task(name), |op| matches!(op, Op::Post(_)));
        // Four times a frame; the compositor hands on 13 pieces and wakes X.
        assert_eq!((posts("ThreadPoolForeg"), posts("CrBrowserMain")), (tiles, 2));
        assert_eq!((posts("VideoFrameCompo"), posts("VizCompositor")), (1, 14));
    }
    let grouped = parse("desktop");
    assert_eq!(
        grouped.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(),
        ["hogs", "browser", "X"]
    );
    assert!(parse("desktop:groups=off").tasks.iter().all(|task| task.group.is_none()));
}

#[test]
fn noise_is_pinned_to_every_cpu() {
    let workload = parse("noise:tasks=2");
    assert_eq!(workload.tasks.len(), 16);
    assert!(workload.tasks.iter().all(|task| task.allowed.as_ref().is_some_and(|set| set.len() == 1)));
}
