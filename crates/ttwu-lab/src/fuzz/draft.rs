//! A random scenario while it is still in pieces, so that pieces can be taken away.

use std::fmt::Write;
use ttwu_fair::{FEATURES, Kernel, Policy, TUNABLES, VARIANTS};
use ttwu_sim::{COSTS, Nothing, PRESETS, Scenario};
use ttwu_workload::spec_toml::quoted;

/// A scenario's pieces, as they stand in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) seed: u64,
    pub(super) duration_us: u64,
    /// A topology's statements.
    pub(super) topology: Vec<String>,
    pub(super) kernel: String,
    pub(super) changes: Vec<String>,
    pub(super) preset: &'static str,
    /// Lines of `[costs]`.
    pub(super) costs: Vec<String>,
    /// Lines of `[settings]`.
    pub(super) settings: Vec<String>,
    pub(super) work: Work,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Named workloads beside each other.
    Named(Vec<String>),
    /// Tasks with programs, on a fixed set of objects.
    Own(Vec<OwnTask>),
}

/// A kind of task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnTask {
    pub(super) count: u64,
    /// Lines of its table besides name, count and program.
    pub(super) properties: Vec<String>,
    pub(super) ops: Vec<String>,
    pub(super) forever: bool,
}

/// What tasks of one's own share; those that no task names cost nothing.
const OBJECTS: &str = "[workload.objects]\n\
    pipe = \"pipe\"\nsmall = \"pipe 1\"\nsocket = \"unix\"\nloopback = \"tcp 4096\"\nfutex = \"futex\"\n\
    semaphore = \"semaphore 1\"\nmutex = \"mutex\"\nspinlock = \"spinlock\"\nqueue = \"queue\"\n\
    lines = \"data 256KiB\"\nbarrier = \"barrier 2\"\n\
    disk = { device = { channels = 1, interrupt = \"submitter\", requests = [{ service = \"20us\", latency = \"5us\", \
    hard = \"\", soft = \"post semaphore\" }] } }\n\
    bound = { workqueue = \"per-cpu\" }\nunbound = { workqueue = \"unbound\" }\n\
    item = { work = \"bound\", do = \"run-kernel 5us; post semaphore\" }\n\
    other = { work = \"unbound\", do = \"run-kernel 20us; post futex\" }\n";

impl Draft {
    pub(super) fn to_toml(&self) -> String {
        let mut out = String::from("scenario = 1\n");
        if let Work::Named(names) = &self.work {
            let _ = writeln!(out, "workload = {}", quoted(&names.join(" & ")));
        }
        let policy = [&[self.kernel.clone()][..], &self.changes].concat().join(" ");
        let _ = writeln!(
            out,
            "machine = {{ text = {} }}\npolicy = {}\nseed = {}\nduration = \"{}us\"\n",
            quoted(&self.topology.join("; ")),
            quoted(&policy),
            self.seed,
            self.duration_us
        );
        let _ = writeln!(out, "[costs]\npreset = \"{}\"\n{}\n", self.preset, self.costs.join("\n"));
        let _ = writeln!(out, "[settings]\n{}\n", self.settings.join("\n"));
        if let Work::Own(tasks) = &self.work {
            let _ = writeln!(out, "[workload]\nname = \"fuzz\"\n{OBJECTS}");
            for (number, task) in tasks.iter().enumerate() {
                let _ = writeln!(out, "[[workload.tasks]]\nname = \"task-{number}\"\ncount = {}", task.count);
                let _ = writeln!(out, "{}", task.properties.join("\n"));
                let body = task.ops.join("\n");
                let body = if task.forever { format!("forever {{\n{body}\n}}") } else { body };
                let _ = writeln!(out, "do = \"\"\"\n{body}\n\"\"\"");
            }
        }
        out
    }

    /// The scenario, if the pieces make one.
    pub(super) fn scenario(&self) -> Result<Scenario, String> {
        let scenario = Scenario::parse(&self.to_toml(), &Nothing).map_err(|error| error.to_string())?;
        scenario.workload.check().map_err(|error| error.to_string())?;
        Ok(scenario)
    }

    /// A random one. Not every one is sound: ask [`Draft::scenario`].
    pub(super) fn random(dice: &mut Dice) -> Self {
        let kernel = Kernel::ALL[dice.below(Kernel::ALL.len() as u64) as usize].name().to_owned();
        let mut draft = Self {
            seed: dice.below(1 << 32),
            duration_us: [2_000, 5_000, 20_000, 60_000][dice.below(4) as usize],
            topology: topology(dice),
            changes: changes(dice, &kernel),
            kernel,
            preset: PRESETS[dice.below(PRESETS.len() as u64) as usize].name,
            costs: Vec::new(),
            settings: Vec::new(),
            work: Work::Named(Vec::new()),
        };
        for _ in 0..dice.below(4) {
            let row = &COSTS[dice.below(COSTS.len() as u64) as usize];
            let factor = ["\"0/1\"", "\"1/2\"", "\"3/1\"", "\"20/1\""][dice.below(4) as usize];
            if !draft.costs.iter().any(|line| line.starts_with(row.name)) {
                draft.costs.push(format!("{} = {factor}", row.name));
            }
        }
        for line in SETTINGS {
            let key = line.split(' ').next();
            let known = draft.settings.iter().any(|other: &String| other.split(' ').next() == key);
            if !known && dice.below(8) == 0 {
                draft.settings.push((*line).to_owned());
            }
        }
        draft.work = if dice.below(2) == 0 { named(dice) } else { own(dice) };
        draft
    }
}

const SETTINGS: &[&str] = &[
    "preemption = \"none\"",
    "preemption = \"voluntary\"",
    "preemption = \"full\"",
    "preemption = \"lazy\"",
    "governor = \"fixed 0\"",
    "governor = \"fixed 1\"",
    "deepest_idle = 0",
    "deepest_idle = 1",
    "idle_history = \"400us\"",
    "polling = \"never\"",
    "frequency = { min_permille = 390, sample = \"1ms\" }",
    "noise = { run = \"20us\", sleep_min = \"200us\", sleep_max = \"1ms\" }",
    "wait_queue_lock = false",
    "memory = \"node 0\"",
    "tick_skew = \"spread\"",
    "cpus = \"0\"",
    "cpus = \"0-1\"",
];

fn topology(dice: &mut Dice) -> Vec<String> {
    let shapes = [
        "1 socket x 1 core",
        "1 socket x 2 cores",
        "1 socket x 4 cores x 2 threads",
        "2 sockets x 4 cores x 2 threads",
        "2 sockets x 2 nodes x 2 clusters x 4 cores",
        "1 socket x 16 cores",
        "1 socket x 3 cores x 4 threads",
        "4 sockets x 8 cores x 2 threads",
        "2 sockets x 6 clusters x 4 cores",
    ];
    let mut statements = vec![dice.one_of(&shapes).to_owned()];
    for statement in ["llc core", "arch x86", "cpus 0-1"] {
        if dice.below(8) == 0 {
            statements.push(statement.to_owned());
        }
    }
    statements
}

/// Up to four changes that the kernel takes.
fn changes(dice: &mut Dice, kernel: &str) -> Vec<String> {
    let mut changes: Vec<String> = Vec::new();
    for _ in 0..dice.below(5) {
        let word = match dice.below(3) {
            0 => {
                let row = &FEATURES[dice.below(FEATURES.len() as u64) as usize];
                format!("{}{}", ["+", "-"][dice.below(2) as usize], row.name)
            }
            1 => {
                let row = &VARIANTS[dice.below(VARIANTS.len() as u64) as usize];
                format!("{}={}", row.name, row.values[dice.below(row.values.len() as u64) as usize].0)
            }
            _ => {
                let row = &TUNABLES[dice.below(TUNABLES.len() as u64) as usize];
                let value = [1, 10, 1_000, 100_000, 3_000_000, 50_000_000][dice.below(6) as usize];
                format!("{}={value}", row.name)
            }
        };
        let words = [&[kernel.to_owned()][..], &changes, std::slice::from_ref(&word)].concat();
        if Policy::parse(&words.join(" ")).is_ok() {
            changes.push(word);
        }
    }
    changes
}

fn named(dice: &mut Dice) -> Work {
    let names = [
        "hackbench:groups=1,fds=3,loops=20",
        "hackbench:groups=2,fds=4,loops=10,pipe,threads",
        "hackbench:groups=1,fds=6,loops=10,inet",
        "messaging:nr_loops=2",
        "pipe:loop=200",
        "pipe:loop=100,nonblocking",
        "schbench-a:runtime=1,message-threads=2,threads=4,cputime=1ms,sleeptime=1ms",
        "schbench:runtime=1",
        "schbench:runtime=1,rps=2000",
        "dbench:clients=2,timelimit=1",
        "dbench:clients=3,timelimit=1,cil=bound",
        "dmatest:iterations=50,threads_per_chan=3,norandom,timeout=2000",
        "massive_intr:nproc=9,runtime=1",
        "context1:seconds=1,copies=3",
        "tbench:clients=2,timelimit=1",
        "netperf:testlen=1",
        "cyclictest:loops=20",
        "rpc:runtime=1,load=70",
        "desktop:runtime=1",
        "duty:runtime=1",
        "noise",
    ];
    let mut chosen = vec![dice.one_of(&names).to_owned()];
    if dice.below(3) == 0 {
        chosen.push(dice.one_of(&names).to_owned());
    }
    for name in &mut chosen {
        for option in ["nice=5", "nice=-10", "autogroup", "cpus=0"] {
            if dice.below(10) == 0 && !name.contains("nice") {
                let separator = if name.contains(':') { ',' } else { ':' };
                name.push(separator);
                name.push_str(option);
            }
        }
    }
    Work::Named(chosen)
}

fn own(dice: &mut Dice) -> Work {
    let ops = [
        "run 3us",
        "run exponential(50us)",
        "run-kernel uniform(1us..30us)",
        "run 2ms",
        "spin 40us",
        "sleep uniform(1us..200us)",
        "sleep 1ms",
        "periodic r1 200us",
        "write pipe 100",
        "read pipe 100",
        "write small 5000",
        "read small 1000",
        "write socket 100",
        "read socket 100",
        "write loopback 100",
        "read loopback 50",
        "post futex",
        "wait futex",
        "post semaphore",
        "wait semaphore",
        "if-ready semaphore { wait semaphore } else { run 1us }",
        "lock mutex; run 5us; unlock mutex",
        "lock mutex; sleep 20us; unlock mutex",
        "lock spinlock; run 3us; unlock spinlock",
        "stamp r0; send queue r0",
        "receive queue r0",
        "touch lines",
        "wait barrier",
        "submit disk 0",
        "queue item",
        "queue other",
        "flush item",
        "yield",
        "nice 5",
        "choose 300 { run 100us } else { sleep 10us }",
        "repeat 5 { run 1us; yield }",
    ];
    let properties = [
        "nice = 10",
        "nice = -20",
        "nice = 19",
        "policy = \"batch\"",
        "policy = \"idle\"",
        "slice = \"100us\"",
        "cpus = \"0\"",
        "kernel_thread = true",
        "process = \"p\"",
        "working_set = \"64KiB\"",
        "start = \"300us\"",
    ];
    let mut tasks = Vec::new();
    for _ in 0..1 + dice.below(5) {
        let mut task = OwnTask {
            count: 1 + dice.below(4) * dice.below(4),
            properties: Vec::new(),
            ops: Vec::new(),
            forever: dice.below(4) > 0,
        };
        for property in properties {
            let key = property.split(' ').next();
            let known = task.properties.iter().any(|other: &String| other.split(' ').next() == key);
            if !known && dice.below(8) == 0 {
                task.properties.push(property.to_owned());
            }
        }
        for _ in 0..1 + dice.below(6) {
            task.ops.push(dice.one_of(&ops).to_owned());
        }
        tasks.push(task);
    }
    Work::Own(tasks)
}

/// SplitMix64: a campaign is repeated from its seed.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}
