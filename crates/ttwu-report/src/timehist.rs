//! The list of runs, one a line.
//!
//! ```text
//! end of run     cpu task                 slept    wait     run  left                   next          woken by
//! ```

use crate::perf_latency::seconds;
use crate::units::{fit, short_ns};
use std::io::{self, Write};
use ttwu_analysis::{Named, Relation, SwitchCause, TimehistRow, WakeBefore};
use ttwu_model::{Context, Wait};

/// The heading of the list.
///
/// # Errors
/// Those of `out`.
pub fn timehist_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>15} {:>4} {:<22} {:>7} {:>9} {:>7}  {:<26} {:<22} woken by, context, from > to, distance",
        "end, s", "cpu", "task", "slept", "wait", "run", "left as, because", "next"
    )
}

/// One run.
///
/// # Errors
/// Those of `out`.
pub fn timehist_row(out: &mut dyn Write, row: &TimehistRow) -> io::Result<()> {
    let slept = row.slept_ns.map_or_else(|| "-".to_owned(), short_ns);
    let wait = row.wait.map_or_else(
        || "-".to_owned(),
        |wait| {
            let kind = match wait.wait {
                Wait::Wakeup => 'w',
                Wait::New => 'n',
                Wait::Preempted => 'p',
            };
            format!("{}{} {kind}", if wait.censored { "<" } else { "" }, short_ns(wait.ns))
        },
    );
    let run = short_ns(row.to.saturating_since(row.from).as_ns());
    let run = if row.censored { format!(">{run}") } else { run };
    write!(
        out,
        "{:>15} {:>4} {} {slept:>7} {wait:>9} {run:>7}  ",
        seconds(row.to),
        row.cpu.number(),
        name(&row.who)
    )?;
    let (left, next) = match &row.left {
        None => ("not seen".to_owned(), String::new()),
        Some(left) => {
            let cause = left.cause.map_or_else(String::new, |(cause, evidence)| {
                let doubt = if evidence.inferred() { "?" } else { "" };
                format!("{}{doubt}", cause_word(cause))
            });
            (format!("{:<2} {cause}", left.state.to_string()), name(&left.next))
        }
    };
    let line = format!("{left:<26} {next:<22} {}", row.wake.as_ref().map_or_else(String::new, wake));
    writeln!(out, "{}", line.trim_end())
}

fn name(named: &Named) -> String {
    let name = named.name.as_deref().unwrap_or("?");
    if named.task.is_idle() { fit(name, 22) } else { fit(&format!("{name}:{}", named.pid), 22) }
}

const fn cause_word(cause: SwitchCause) -> &'static str {
    match cause {
        SwitchCause::Voluntary => "sleeps",
        SwitchCause::WakeupPreemption => "preempted by wakee",
        SwitchCause::MigrationPreemption => "preempted by migrant",
        SwitchCause::Tick => "tick",
        SwitchCause::Yield => "yield",
        SwitchCause::Exit => "exit",
        SwitchCause::Unknown => "unknown cause",
    }
}

fn wake(wake: &WakeBefore) -> String {
    let waker = name(&wake.waker);
    let context = match wake.context {
        Context::Task if wake.waker.task.is_idle() => "idle",
        Context::Task => "task",
        Context::Softirq => "softirq",
        Context::Hardirq => "hardirq",
        Context::Nmi => "nmi",
        Context::Unknown => "context?",
    };
    let prev = wake.prev_cpu.map_or_else(|| "?".to_owned(), |cpu| cpu.to_string());
    let distance = |relation: Relation| relation.name();
    format!(
        "{}@{} {context}, {prev} > {}, {} from prev, {} from waker",
        waker.trim_end(),
        wake.waker_cpu,
        wake.placed_cpu,
        distance(wake.from_prev),
        distance(wake.from_waker)
    )
}
