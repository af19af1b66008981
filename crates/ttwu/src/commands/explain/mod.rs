//! `ttwu explain`: why a woken task went to its CPU.
//!
//! A trace that the simulator wrote has the reasons beside it. Of any other the state is rebuilt from its events and put to
//! the rules; what events do not tell and the answer hangs on is said.

mod render;

use crate::args;
use crate::commands::conform::open as open_recording;
use crate::decisions;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, Rereadable, print, say};
use anyhow::anyhow;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use ttwu_conform::{Against, Explained, Recording, explain};
use ttwu_fair::{Affine, Check, Machine, Placement, Policy, PreemptReason, Rule, ScanEnd};
use ttwu_model::{CpuId, Event, EventKind, TaskId, Trace};
use ttwu_sim::Decision;

/// `ttwu explain`
#[derive(Debug, Args)]
#[command(after_help = "Wake-ups are numbered by their sched_waking events, from 1.\n\n\
Examples:\n  ttwu explain run.ttwu --wakeup 1284\n  \
ttwu explain perf.data --kernel 6.12 --machine host --task kworker/3:1 --against linux-6.6\n  \
ttwu sim rpc -o rpc.ttwu && ttwu explain rpc.ttwu --at 1.25 --against 'linux-6.12 -SIS_UTIL'")]
pub(crate) struct Explain {
    /// A recording, a folder with decisions, or a simulated trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Only this wake-up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    wakeup: Option<u64>,
    /// Only wake-ups of this task: a name or a pid
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only the first wake-up at or after this time (seconds on the trace's clock)
    #[arg(long, value_name = "SECONDS", value_parser = args::seconds)]
    at: Option<Duration>,
    /// Put the same questions to another policy
    #[arg(long, value_name = "POLICY", allow_hyphen_values = true)]
    against: Option<String>,
    /// The kernel or policy that the trace is of, where it does not say it
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// The machine that it is of: host, a name (ttwu topology --list), or a topology file
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,
    /// Explain at most so many, 0 for all; those left out are counted
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    limit: usize,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// No warnings
    #[arg(short, long)]
    quiet: bool,
}

/// Where the reasons come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// The simulator wrote them down.
    Decided { wake_list: bool, preempt: Option<PreemptReason> },
    /// Rebuilt from events.
    Rebuilt { hangs_on: Vec<&'static str>, reason_hangs_on: Vec<&'static str>, doubt: Option<&'static str> },
}

/// One wake-up with its reasons.
#[derive(Clone, Debug)]
struct Reasons {
    /// Among the trace's `sched_waking` events, from 1.
    number: u64,
    at_ns: u64,
    wakee: TaskId,
    waker: TaskId,
    this: CpuId,
    prev: CpuId,
    /// Where it went.
    chosen: CpuId,
    /// Where the rules put it.
    answer: CpuId,
    /// `None`: it was not placed.
    rule: Option<Rule>,
    affine: Affine,
    target: CpuId,
    checks: Vec<Check>,
    scanned: u32,
    scan: ScanEnd,
    source: Source,
    /// What the rebuilt state gives: under the trace's own rules, and under the others.
    against: Option<(CpuId, Placement)>,
}

/// What a trace's wake-ups come to, and the reasons of those asked for.
#[derive(Debug, Default)]
struct Explanation {
    /// `sched_waking` events.
    wakeups: u64,
    /// Those with a placement that has reasons.
    explained: u64,
    /// Of them those in which the kernel may not have asked its rules.
    in_doubt: u64,
    /// Of the others those in which the rules agree with what happened (always, where the simulator decided).
    agree: u64,
    /// The answer hangs on nothing that the trace lacks, and is not in doubt.
    certain: u64,
    /// Those of them in which the rules agree.
    certain_agree: u64,
    /// Put to the other policy: the rebuilt state gives what happened under the trace's own rules.
    compared: u64,
    /// Of them those in which the other policy gives another CPU.
    differ: u64,
    rules: BTreeMap<&'static str, u64>,
    shown: Vec<Reasons>,
    /// Asked for, but beyond the limit.
    left_out: u64,
}

/// Explains.
pub(crate) fn run(args: &Explain) -> Outcome {
    let conform = args::Conform {
        recordings: Vec::new(),
        kernel: args.kernel.clone(),
        machine: args.machine.clone(),
        live: false,
        free: false,
        examples: false,
        format: args.format,
    };
    let input = Rereadable::open(&args.trace).map_err(Failure::input)?;
    let opened = open_recording::open(input.path(), &conform)?
        .ok_or_else(|| Failure::input(anyhow!("{} is of another kernel", args.trace.display())))?;
    let recording = &opened.recording;
    let file = recording.trace().ok_or_else(|| {
        Failure::input(anyhow!("{} has decisions but no trace to explain", args.trace.display()))
    })?;
    let trace = ttwu_trace::read(file).map_err(Failure::input)?;
    let decided = if file.is_file() { decisions::read(file).map_err(Failure::input)? } else { None };
    if decided.is_some() && (args.kernel.is_some() || args.machine.is_some()) {
        return Err(Failure::input(anyhow!(
            "{} says its policy and machine, and has the reasons of its own decisions; --against puts its wake-ups \
             to other rules",
            args.trace.display()
        )));
    }
    let against = args.against.as_deref().map(Policy::parse).transpose().map_err(Failure::input)?;
    let explanation = Collector::new(args, &trace, decided.as_deref()).collect(recording, against.as_ref());
    if !args.quiet {
        for note in recording.notes().iter().chain(&opened.notes) {
            say(&format!("ttwu: note: {note}"));
        }
        if decided.is_none() && trace.meta().facts.contains_key("policy") {
            say("ttwu: note: the simulator's reasons are not in the file (converted, or damaged): rebuilt");
        }
        if let Some(why) = nothing(args, &explanation) {
            say(&format!("ttwu: warning: {why}"));
        }
    }
    let about =
        render::About { recording, trace: &trace, against: against.as_ref(), decided: decided.is_some() };
    print(&match args.format {
        OutputFormat::Text => render::text(&about, &explanation),
        OutputFormat::Json => format!("{:#}", render::json(&about, &explanation)),
    })?;
    Ok(if explanation.shown.is_empty() && selects(args) { Done::No } else { Done::Ok })
}

/// Is one of the flags there that ask for certain wake-ups?
fn selects(args: &Explain) -> bool {
    args.wakeup.is_some() || args.task.is_some() || args.at.is_some()
}

/// Why nothing that was asked for is shown.
fn nothing(args: &Explain, explanation: &Explanation) -> Option<String> {
    if !explanation.shown.is_empty() || !selects(args) {
        return None;
    }
    Some(match args.wakeup {
        Some(number) if number > explanation.wakeups => {
            format!("there is no wake-up {number}: the trace has {}", explanation.wakeups)
        }
        Some(number) => format!(
            "wake-up {number} has no placement of the fair class to explain: still queued, of another class, \
             a thread of one CPU, or without an end in the trace"
        ),
        None => "no wake-up with a placement is of that task, or that late".to_owned(),
    })
}

struct Collector<'a> {
    args: &'a Explain,
    trace: &'a Trace,
    decided: Option<&'a [Decision]>,
    /// By the index of the `sched_waking` event: its number, from 1.
    numbers: BTreeMap<usize, u64>,
    explanation: Explanation,
}

impl<'a> Collector<'a> {
    fn new(args: &'a Explain, trace: &'a Trace, decided: Option<&'a [Decision]>) -> Self {
        let waking = |event: &Event| matches!(event.kind, EventKind::Waking { .. });
        let events = trace.events().iter().enumerate().filter(|(_, event)| waking(event));
        let numbers: BTreeMap<usize, u64> = events.map(|(index, _)| index).zip(1..).collect();
        let explanation = Explanation { wakeups: numbers.len() as u64, ..Explanation::default() };
        Self { args, trace, decided, numbers, explanation }
    }

    fn collect(mut self, recording: &Recording, against: Option<&Policy>) -> Explanation {
        let machine = against.map(|policy| Machine::new(recording.topology(), policy));
        let other = against.zip(machine.as_ref()).map(|(policy, machine)| Against { policy, machine });
        let rules = Against { policy: recording.policy(), machine: recording.machine() };
        let mut rebuilt = BTreeMap::new();
        if self.decided.is_none() || other.is_some() {
            let all = |_, _: &Event, _| true;
            let mut sink = |explained: Explained| {
                rebuilt.insert(explained.index, explained);
            };
            explain(self.trace, rules, other, &all, &mut sink);
        }
        match self.decided {
            Some(decisions) => {
                for decision in decisions {
                    let of = rebuilt.get(&(decision.event as usize));
                    let against = of.and_then(|of| Some((of.answer.cpu, of.against?)));
                    if let Some(reasons) = self.of_decision(decision, against) {
                        self.put(reasons);
                    }
                }
            }
            None => {
                for explained in rebuilt.into_values() {
                    let reasons = self.of_explained(explained);
                    self.put(reasons);
                }
            }
        }
        self.explanation
    }

    /// `None` for forks, which no `sched_waking` stands for.
    fn of_decision(&self, decision: &Decision, against: Option<(CpuId, Placement)>) -> Option<Reasons> {
        let index = usize::try_from(decision.event).ok()?;
        let number = *self.numbers.get(&index)?;
        let event = &self.trace.events()[index];
        let EventKind::Waking { wakee, .. } = event.kind else { return None };
        Some(Reasons {
            number,
            at_ns: event.at.as_ns(),
            wakee,
            waker: event.by,
            this: decision.this_cpu,
            prev: decision.prev_cpu,
            chosen: decision.cpu,
            answer: decision.cpu,
            rule: decision.rule,
            affine: decision.affine,
            target: decision.target,
            checks: decision.checks.clone(),
            scanned: decision.scanned,
            scan: decision.scan,
            source: Source::Decided { wake_list: decision.wake_list, preempt: decision.preempt },
            against: against.filter(|_| decision.rule.is_some()),
        })
    }

    fn of_explained(&self, explained: Explained) -> Reasons {
        let Explained {
            index,
            at_ns,
            wakee,
            waker,
            this,
            prev,
            chosen,
            answer,
            checks,
            hangs_on,
            reason_hangs_on,
            doubt,
            against,
        } = explained;
        Reasons {
            number: self.numbers[&index],
            at_ns,
            wakee,
            waker,
            this,
            prev,
            chosen,
            answer: answer.cpu,
            rule: Some(answer.rule),
            affine: answer.affine,
            target: answer.target,
            checks,
            scanned: answer.scanned,
            scan: answer.scan,
            source: Source::Rebuilt { hangs_on, reason_hangs_on, doubt },
            against: against.map(|other| (answer.cpu, other)),
        }
    }

    fn put(&mut self, reasons: Reasons) {
        let explanation = &mut self.explanation;
        explanation.explained += 1;
        let in_doubt = matches!(reasons.source, Source::Rebuilt { doubt: Some(_), .. });
        explanation.in_doubt += u64::from(in_doubt);
        let agrees = reasons.answer == reasons.chosen && !in_doubt;
        explanation.agree += u64::from(agrees);
        let certain = match &reasons.source {
            Source::Decided { .. } => true,
            Source::Rebuilt { hangs_on, doubt, .. } => hangs_on.is_empty() && doubt.is_none(),
        };
        explanation.certain += u64::from(certain);
        explanation.certain_agree += u64::from(certain && agrees);
        if let Some((own, other)) = reasons.against
            && own == reasons.chosen
            && !in_doubt
        {
            explanation.compared += 1;
            explanation.differ += u64::from(other.cpu != own);
        }
        *explanation.rules.entry(reasons.rule.map_or("not_placed", Rule::name)).or_default() += 1;
        if !self.wanted(&reasons) {
            return;
        }
        let limit = if self.args.at.is_some() { 1 } else { self.args.limit };
        if limit == 0 || self.explanation.shown.len() < limit {
            self.explanation.shown.push(reasons);
        } else if self.args.at.is_none() {
            self.explanation.left_out += 1;
        }
    }

    fn wanted(&self, reasons: &Reasons) -> bool {
        let args = self.args;
        let named = |task: &str| match task.parse::<i32>() {
            Ok(pid) => self.trace.tasks().get(reasons.wakee).pid.number() == pid,
            Err(_) => {
                let names = &self.trace.tasks().get(reasons.wakee).names;
                names.iter().any(|&(_, name)| self.trace.strings().get(name) == task)
            }
        };
        args.wakeup.is_none_or(|number| number == reasons.number)
            && args.task.as_deref().is_none_or(named)
            && args.at.is_none_or(|at| u128::from(reasons.at_ns) >= at.as_nanos())
    }
}
