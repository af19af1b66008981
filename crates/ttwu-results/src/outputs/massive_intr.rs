//! massive_intr: how often each hog went round.
//!
//! Source: Takeuchi's program (pid and loops a line, in order of finishing), and a fork that prints its settings before.

use super::scan::Lines;
use super::{Better, ParseError, Samples};

/// What the fork prints of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MassiveIntrTask {
    /// Real-time priority.
    pub priority: i64,
    /// CPU mask, hexadecimal digits; all zero: every CPU.
    pub affinity: String,
}

/// What the fork prints before the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MassiveIntrConfig {
    /// Milliseconds of work a loop.
    pub work_ms: u64,
    /// Milliseconds of sleep a loop.
    pub sleep_ms: u64,
    /// Seconds.
    pub runtime_s: u64,
    /// The tasks.
    pub tasks: Vec<MassiveIntrTask>,
}

/// One run of massive_intr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MassiveIntr {
    /// Settings, where the program prints them.
    pub config: Option<MassiveIntrConfig>,
    /// Process id and loops, in order of finishing.
    pub loops: Vec<(u64, u64)>,
}

impl MassiveIntr {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let mut config = None;
        if lines.next_if("[RUN INFO]").is_some() {
            let mut scan = lines.next("`WORK_MSECS = …`")?;
            scan.literal("WORK_MSECS = ")?;
            let work_ms = scan.u64("milliseconds")?;
            scan.literal(", SLEEP_MSECS = ")?;
            let sleep_ms = scan.u64("milliseconds")?;
            scan.literal(", # OF TASKS = ")?;
            let count = scan.u64("the number of tasks")?;
            scan.literal(", RUNTIME = ")?;
            let runtime_s = scan.u64("seconds")?;
            scan.end()?;
            lines.exact("[TASKS]")?;
            let mut tasks = Vec::new();
            for _ in 0..count {
                let mut scan = lines.next("`(TASK …) prio = …`")?;
                scan.literal("(TASK ")?;
                scan.u64("a task's number")?;
                scan.literal(") prio = ")?;
                let priority = scan.i64("a priority")?;
                scan.literal(", affinity = ")?;
                tasks.push(MassiveIntrTask { priority, affinity: scan.rest().to_owned() });
            }
            lines.exact("[RESULT]")?;
            config = Some(MassiveIntrConfig { work_ms, sleep_ms, runtime_s, tasks });
        }
        let mut loops = Vec::new();
        while let Some(pair) = lines.peek().and_then(pid_and_loops) {
            lines.next("")?;
            loops.push(pair);
        }
        match (&config, loops.is_empty()) {
            (Some(_), true) => Err(lines.fail("a process id and its loops")),
            (None, true) => Ok(None),
            (_, false) => Ok(Some(Self { config, loops })),
        }
    }

    /// Appends the lines.
    pub fn write(&self, out: &mut String) {
        if let Some(config) = &self.config {
            out.push_str(&format!(
                "[RUN INFO]\nWORK_MSECS = {}, SLEEP_MSECS = {}, # OF TASKS = {}, RUNTIME = {}\n[TASKS]\n",
                config.work_ms,
                config.sleep_ms,
                config.tasks.len(),
                config.runtime_s
            ));
            for (index, task) in config.tasks.iter().enumerate() {
                out.push_str(&format!(
                    "(TASK {index:3}) prio = {:3}, affinity = {}\n",
                    task.priority, task.affinity
                ));
            }
            out.push_str("[RESULT]\n");
        }
        for (pid, loops) in &self.loops {
            out.push_str(&format!("{pid:06}\t{loops:08}\n"));
        }
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        let values = self.loops.iter().map(|(_, loops)| *loops as f64).collect();
        vec![Samples { metric: "loops".to_owned(), unit: "loops", better: Better::Higher, values }]
    }
}

/// `005111\t00000091`: at least six and eight digits.
fn pid_and_loops(line: &str) -> Option<(u64, u64)> {
    let (pid, loops) = line.split_once('\t')?;
    let is = |text: &str, least: usize| text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit());
    (is(pid, 6) && is(loops, 8)).then_some(())?;
    Some((pid.parse().ok()?, loops.parse().ok()?))
}
