//! `perf sched timehist`'s list and summary, byte for byte.
//!
//! The widths depend on what was printed before (perf widens the name column at the first long name and never narrows it),
//! so the printer has a state.

use crate::perf_latency::seconds;
use std::io::{self, Write};
use ttwu_analysis::{PerfTimehistRow, PerfTimehistSummary, PerfTimehistTask, PerfVersion};

/// Columns beside the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfTimehistColumns {
    /// `-V`: a column a CPU.
    pub cpu_visual: bool,
    /// `--state`.
    pub state: bool,
    /// `-n`: who runs next.
    pub next: bool,
    /// `-w`: wake-ups; without `-n` perf pads the other rows for them.
    pub wakeups: bool,
}

/// Prints rows as they come.
#[derive(Clone, Debug)]
pub struct PerfTimehistPrinter {
    version: PerfVersion,
    columns: PerfTimehistColumns,
    name_width: usize,
    max_cpu: usize,
}

impl PerfTimehistPrinter {
    /// `cpus_online` as in the fold's options: `None` is perf's 4.
    #[must_use]
    pub fn new(version: PerfVersion, columns: PerfTimehistColumns, cpus_online: Option<u32>) -> Self {
        let cpus = cpus_online.filter(|&cpus| cpus != 0).unwrap_or(4).min(4096);
        Self { version, columns, name_width: 30, max_cpu: cpus as usize }
    }

    /// The three lines above the list.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn header(&self, out: &mut dyn Write) -> io::Result<()> {
        let (width, cpus) = (self.name_width, self.max_cpu + 1);
        write!(out, "{:>15} {:>6} ", "time", "cpu")?;
        if self.columns.cpu_visual {
            write!(out, " ")?;
            for cpu in 0..cpus {
                write!(out, "{:x}", cpu % 16)?;
            }
            write!(out, " ")?;
        }
        write!(out, " {:<width$}  {:>9}  {:>9}  {:>9}", "task name", "wait time", "sch delay", "run time")?;
        writeln!(out, "{}", if self.columns.state { "  state" } else { "" })?;
        write!(out, "{:>15} {:<6} ", "", "")?;
        if self.columns.cpu_visual {
            write!(out, " {:cpus$} ", "")?;
        }
        write!(out, " {:<width$}  {:>9}  {:>9}  {:>9}", "[tid/pid]", "(msec)", "(msec)", "(msec)")?;
        // 6.1 leaves blanks below the state.
        let blank = if self.columns.state && self.version < PerfVersion::V7 { 7 } else { 0 };
        writeln!(out, "{:blank$}", "")?;
        write!(out, "{} {} ", dashes(15), dashes(6))?;
        if self.columns.cpu_visual {
            write!(out, " {} ", dashes(cpus))?;
        }
        write!(out, " {}  {}  {}  {}", dashes(width), dashes(9), dashes(9), dashes(9))?;
        writeln!(out, "{}", if self.columns.state { format!("  {}", dashes(5)) } else { String::new() })
    }

    /// The name column, widened for good if need be.
    fn name(&mut self, name: &str) -> String {
        self.name_width = self.name_width.max(name.len());
        let width = self.name_width;
        format!("{name:<width$}")
    }

    /// One row.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn row(&mut self, out: &mut dyn Write, row: &PerfTimehistRow) -> io::Result<()> {
        match row {
            PerfTimehistRow::Switch { cpu, .. }
            | PerfTimehistRow::Wakeup { cpu, .. }
            | PerfTimehistRow::Migrate { cpu, .. } => self.max_cpu = self.max_cpu.max(cpu.index()),
            PerfTimehistRow::Lost { .. } => {}
        }
        let cpus = self.max_cpu + 1;
        match row {
            PerfTimehistRow::Switch { .. } => self.switch(out, row),
            PerfTimehistRow::Wakeup { at, cpu, task, wakee } => {
                write!(out, "{:>15} [{:04}] ", seconds(*at), cpu.number())?;
                if self.columns.cpu_visual {
                    write!(out, " {:cpus$} ", "")?;
                }
                write!(out, " {}   {:9}  {:9}  {:9} ", self.name(task), "", "", "")?;
                let wakee = self.name(wakee);
                writeln!(out, "awakened: {}", wakee.trim_end())
            }
            PerfTimehistRow::Migrate { at, cpu, task, migrated, from, to } => {
                write!(out, "{:>15} [{:04}] ", seconds(*at), cpu.number())?;
                if self.columns.cpu_visual {
                    write!(out, "  {}  ", mark(cpus, cpu.index(), 'm'))?;
                }
                write!(out, " {}   {:9}  {:9}  {:9} ", self.name(task), "", "", "")?;
                let migrated = self.name(migrated);
                writeln!(out, "migrated: {} cpu {from} => {to}", migrated.trim_end())
            }
            PerfTimehistRow::Lost { at, cpu, count } => {
                writeln!(out, "{:>15} lost {count} events on cpu {cpu}", seconds(*at))
            }
        }
    }

    fn switch(&mut self, out: &mut dyn Write, row: &PerfTimehistRow) -> io::Result<()> {
        let PerfTimehistRow::Switch { at, cpu, task, idle, wait_ns, delay_ns, run_ns, state, next } = row
        else {
            return Ok(());
        };
        write!(out, "{:>15} [{:04}] ", seconds(*at), cpu.number())?;
        if self.columns.cpu_visual {
            write!(out, " {} ", mark(self.max_cpu + 1, cpu.index(), if *idle { 'i' } else { 's' }))?;
        }
        write!(out, " {} ", self.name(task))?;
        write!(out, "{} {} {} ", ms(*wait_ns, 6), ms(*delay_ns, 6), ms(*run_ns, 6))?;
        if self.columns.state {
            write!(out, " {state:>5} ")?;
        }
        let width = self.name_width;
        if self.columns.next {
            // perf's buffer holds 29 characters and the end.
            let next: String = format!("next: {next}").chars().take(29).collect();
            write!(out, " {next:<width$}")?;
        } else if self.columns.wakeups {
            write!(out, "  {:width$}", "")?;
        }
        writeln!(out)
    }

    /// The summary (`-s`).
    ///
    /// # Errors
    /// Those of `out`.
    pub fn summary(&mut self, out: &mut dyn Write, summary: &PerfTimehistSummary) -> io::Result<()> {
        let width = self.name_width;
        writeln!(out, "\nRuntime summary")?;
        write!(out, "{:>width$}  parent   sched-in  ", "comm")?;
        writeln!(out, "   run-time    min-run     avg-run     max-run  stddev  migrations")?;
        write!(out, "{:width$}            (count)  ", "")?;
        writeln!(out, "     (msec)     (msec)      (msec)      (msec)       %")?;
        writeln!(out, "{}", dashes(117))?;
        let (running, terminated): (Vec<_>, Vec<_>) =
            summary.tasks.iter().partition(|task| !task.terminated || summary.version >= PerfVersion::V7);
        for task in &running {
            self.task(out, task)?;
        }
        if running.is_empty() {
            writeln!(out, "<no still running tasks>")?;
        }
        if summary.version < PerfVersion::V7 {
            writeln!(out, "\nTerminated tasks:")?;
            for task in &terminated {
                self.task(out, task)?;
            }
            if terminated.is_empty() {
                writeln!(out, "<no terminated tasks>")?;
            }
        }
        writeln!(out, "\nIdle stats:")?;
        for idle in &summary.idle {
            write!(out, "    CPU {:2} idle ", idle.cpu)?;
            match idle.idle_ns {
                Some(ns) => writeln!(out, "for {}  msec  ({:6.2}%)", ms(ns, 6), idle.percent)?,
                None => writeln!(out, "entire time window")?,
            }
        }
        writeln!(out, "\n    Total number of unique tasks: {}", summary.tasks.len())?;
        writeln!(out, "Total number of context switches: {}", summary.switches)?;
        writeln!(out, "           Total run time (msec): {} ", ms(summary.run_ns, 2))?;
        writeln!(out, "    Total scheduling time (msec): {}  (x {})", ms(summary.span_ns, 2), summary.max_cpu)
    }

    fn task(&mut self, out: &mut dyn Write, task: &PerfTimehistTask) -> io::Result<()> {
        // perf evaluates the width before the call that may widen it.
        let width = self.name_width;
        self.name_width = width.max(task.name.len());
        write!(out, "{:>width$}   {:>5}  {:>9} ", task.name, task.parent, task.count)?;
        write!(out, "{} {}  {}  ", ms(task.run_ns, 8), ms(task.run_ns_min, 6), ms(task.run_ns_avg, 6))?;
        write!(out, "{}   {:5.2}   {:>5}", ms(task.run_ns_max, 6), task.stddev_percent, task.migrations)?;
        writeln!(out)
    }
}

fn mark(cpus: usize, cpu: usize, mark: char) -> String {
    (0..cpus).map(|other| if other == cpu { mark } else { ' ' }).collect()
}

fn dashes(count: usize) -> String {
    // perf cuts its rule from a line of 150.
    "-".repeat(count.min(150))
}

/// Milliseconds and three digits of microseconds, cut off.
fn ms(ns: u64, width: usize) -> String {
    let us = ns / 1000;
    format!("{:>width$}.{:03}", us / 1000, us % 1000)
}
