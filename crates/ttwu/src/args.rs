//! Flags, as clap reads them. Low-level on purpose: files, names and numbers; the commands resolve them to objects.

pub(crate) mod lab;

use crate::output::OutputFormat;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// A laboratory for where Linux places woken tasks, and whether they preempt.
///
/// Without a command, simulates the best known claims of five mailing-list threads and prints them beside the published figures.
#[derive(Debug, Parser)]
#[command(
    name = "ttwu",
    version,
    infer_subcommands = true,
    max_term_width = 80,
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 usage or bad input, 3 the machine forbids it,\n130 interrupted with what there was.\n\nExample:\n  ttwu record -o run.ttwu -- perf bench sched messaging -g 2\n  ttwu report run.ttwu"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record what the scheduler does on this machine
    Record(Record),
    /// Explain a recording: who woke whom, where, how long it waited, why it was switched out
    Report(Report),
    /// Change a recording's format
    Convert(Convert),
    /// Draw CPUs, caches and scheduling domains
    Topology(Topology),
    /// Print a policy, or the difference of two
    Policy(Policy),
    /// Put recorded kernel decisions to the model, and print how often it agrees
    Conform(Conform),
    /// Say why woken tasks went where they went, and where other rules would put them
    Explain(crate::commands::explain::Explain),
    /// Check whether the figures of a pasted table or mail agree with each other
    Check(Check),
    /// Compare arms: what changed, by how much, how sure, and why
    Compare(lab::Compare),
    /// Say which of the settings that differ between two policies carries a difference
    Attribute(lab::Attribute),
    /// Run a matrix of machines, policies, workloads and settings; resumable
    Sweep(lab::Sweep),
    /// Simulate one scenario, and print what its workload's original prints
    Sim(crate::commands::sim::Sim),
    /// Run the five mailing-list threads in the simulator, and put the results beside the published ones
    Reproduce(Reproduce),
    /// Run random scenarios with all checkers; print the smallest that fails
    Fuzz(crate::commands::fuzz::Fuzz),
    /// Measure what wake-ups and switches cost on this machine, for simulations of it
    Calibrate(crate::commands::calibrate::Args),
    /// Print the shell's completion script
    #[command(hide = true)]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    #[command(hide = true)]
    Man {
        /// Folder to write them to
        folder: PathBuf,
    },
}

/// `ttwu record`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ttwu record -o run.ttwu --duration 10\n  ttwu record -- hackbench -p -g 4 -l 1000"
)]
pub(crate) struct Record {
    /// File to make
    #[arg(short, long, value_name = "FILE", default_value = "trace.ttwu")]
    pub(crate) output: PathBuf,
    /// The whole machine, which is the default: placement needs all CPUs and tasks
    #[arg(short, long, conflicts_with = "pid")]
    pub(crate) all: bool,
    /// Mark this process, its threads and children as the target; end when it ends
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<std::time::Duration>,
    /// sched, wakeups, full, minimal, or a list such as sched:sched_switch,irq:*
    #[arg(long, value_name = "SET", default_value = "sched")]
    pub(crate) events: String,
    /// How events are taken from the kernel
    #[arg(long, value_enum, default_value_t = Backend::Perf)]
    pub(crate) backend: Backend,
    /// Which clock stamps them
    #[arg(long, value_enum, default_value_t = Clock::Auto)]
    pub(crate) clock: Clock,
    /// Buffer per CPU in KiB
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(8..=1_048_576))]
    pub(crate) buffer_kib: Option<u32>,
    /// Print the summary as text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// No progress, no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Program to run and record until it ends
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// A way to take events from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// perf_event_open
    Perf,
    /// A tracefs instance of our own
    Tracefs,
}

/// A clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clock {
    /// CLOCK_MONOTONIC where cheap
    Auto,
    /// CLOCK_MONOTONIC
    Mono,
    /// The tracer's own
    Local,
}

/// `ttwu report`
#[derive(Debug, Args)]
#[command(
    after_help = "Analyses: latency placement cpus migrations switches irqs wakers timehist\n(default: an overview of one screen)\n\nExample:\n  ttwu report run.ttwu\n  ttwu report perf.data latency --style perf-6.1\n  ttwu report trace.dat timehist --cpu 0-3 --task hackbench"
)]
pub(crate) struct Report {
    /// Recording of any format (`sample` is an embedded one): perf.data, trace.dat, ftrace or perf text, Perfetto, .ttwu, a tracefs copy
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What to report
    #[arg(value_name = "ANALYSIS", value_enum, ignore_case = true)]
    pub(crate) analyses: Vec<AnalysisName>,
    /// Style of the latency table or the event list
    #[arg(long, value_enum, default_value_t = Style::Ttwu)]
    pub(crate) style: Style,
    /// One row per name or per task
    #[arg(long, value_enum, default_value_t = By::Name)]
    pub(crate) by: By,
    /// Order of perf-style latency rows, as `perf sched latency -s` takes it (avg,max,switch,runtime)
    #[arg(long, value_name = "KEYS")]
    pub(crate) sort: Option<String>,
    /// Parts of the perf-style event list, by the letters of `perf sched timehist`: w wake-ups, M migrations, n next,
    /// V CPU visual, s the summary alone, S the list with the summary
    #[arg(long, value_name = "LETTERS", default_value = "")]
    pub(crate) show: String,
    /// From this time (seconds on the recording's clock)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) from: Option<std::time::Duration>,
    /// Up to this time (seconds on the recording's clock)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) to: Option<std::time::Duration>,
    /// Only these CPUs
    #[arg(long, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
    /// Only this task, by pid or name
    #[arg(long, value_name = "PID|NAME")]
    pub(crate) task: Option<String>,
    /// Machine whose topology to use: a name or file; default: the recording's own
    #[arg(long, value_name = "MACHINE|FILE")]
    pub(crate) topology: Option<String>,
    /// Format descriptions for bare ring-buffer pages: a folder with NAME/format files
    #[arg(long, value_name = "FOLDER")]
    pub(crate) formats: Option<PathBuf>,
    /// Also write one self-contained HTML page
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// No warnings on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// An analysis by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum AnalysisName {
    /// Waits per task or name
    Latency,
    /// Wake-ups by distance
    Placement,
    /// CPUs hit, residency, queue length
    Cpus,
    /// Moves between CPUs
    Migrations,
    /// Why tasks were switched out
    Switches,
    /// Interrupts and what they wake
    Irqs,
    /// Who woke whom
    Wakers,
    /// The event list
    Timehist,
}

/// A style of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// ttwu's own
    Ttwu,
    /// As perf 6.1 prints it
    #[value(name = "perf-6.1")]
    Perf61,
    /// As perf 7 prints it
    #[value(name = "perf-7")]
    Perf7,
    /// With maximum and sum of delays
    Sum,
    /// schbench's percentile table
    Schbench,
}

/// Rows of a latency table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Tasks of one name together
    Name,
    /// Each task
    Task,
}

/// `ttwu convert`
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ttwu convert perf.data run.pftrace --to perfetto   # opens in ui.perfetto.dev"
)]
pub(crate) struct Convert {
    /// Recording to read
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// File (parquet: folder) to make
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Format; default: by OUT's ending (.ttwu, .pftrace, .json), else ttwu
    #[arg(long, value_enum)]
    pub(crate) to: Option<Target>,
    /// Summary as text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// No summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Perfetto protobuf, for ui.perfetto.dev
    Perfetto,
    /// ttwu's own columns
    Ttwu,
    /// Parquet tables in a folder
    Parquet,
    /// Chrome's JSON
    Chrome,
}

/// `ttwu topology`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ttwu topology host\n  ttwu topology kunpeng920-node --kernel 6.12")]
pub(crate) struct Topology {
    /// host, a machine's name, a topology file, or a recording
    #[arg(value_name = "host|MACHINE|FILE", default_value = "host")]
    pub(crate) what: String,
    /// Kernel generation that builds the domains
    #[arg(long, value_name = "VERSION", default_value = "6.12")]
    pub(crate) kernel: String,
    /// List the named machines
    #[arg(long)]
    pub(crate) list: bool,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

/// `ttwu policy`
#[derive(Debug, Args)]
#[command(
    after_help = "A policy is a kernel and changes: +FEATURE, -FEATURE, name=value.\n\nExample:\n  ttwu policy linux-6.12 -RUN_TO_PARITY base_slice_ns=3000000\n  ttwu policy linux-6.1 linux-6.12"
)]
pub(crate) struct Policy {
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// One policy, or two to compare
    #[arg(value_name = "POLICY", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// `ttwu conform`
#[derive(Debug, Args)]
#[command(
    after_help = "A recording is a folder with a trace of the probes (or its decisions) and the kernel's description in state/, \
a trace file with the same probes, or any plain trace of scheduler events. Of a trace file the kernel is the one it names, \
else --kernel; the machine the one it describes, else --machine.\n\nExamples:\n  ttwu conform recordings/*/\n  \
ttwu conform trace.ttwu\n  ttwu conform perf.data --kernel 6.12 --machine host"
)]
pub(crate) struct Conform {
    /// Folders with recorded decisions, or trace files
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Of folders only those of this kernel (6.12); for trace files the kernel or policy to put them to
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<String>,
    /// The machine that a trace file was recorded on: `host`, a name (ttwu topology --list), or a topology file
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Only the scores in which the model is given the kernel's own idle answers
    #[arg(long)]
    pub(crate) live: bool,
    /// Also let the model run the recording's tasks by itself, from their behaviour alone, and follow the queues' values
    /// without setting them right
    #[arg(long)]
    pub(crate) free: bool,
    /// Print a worked example of each kind of disagreement
    #[arg(long)]
    pub(crate) examples: bool,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

/// `ttwu check`
#[derive(Debug, Args)]
#[command(
    after_help = "Checked are percentages, means of listed runs, dmatest's rates, task arithmetic,\npercentiles and indices, each against what rounding allows. Exit code 1: some\ndo not agree.\n\nExample:\n  ttwu check mail.txt\n  wl-paste | ttwu check -"
)]
pub(crate) struct Check {
    /// A mail, a table or benchmarks' output; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

/// Reads the command line; usage errors end the process with exit code 2.
pub(crate) fn parse() -> Cli {
    Cli::parse_from(lab::shield_features(std::env::args_os()))
}

/// The command's description, for completions and manual pages.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    std::time::Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn policy_words_may_begin_with_a_dash() {
        let cli = Cli::try_parse_from(["ttwu", "pol", "linux-6.12", "-RUN_TO_PARITY", "linux-6.6"])
            .expect("parses");
        let Some(Command::Policy(policy)) = cli.command else { panic!("policy") };
        assert_eq!(policy.words, ["linux-6.12", "-RUN_TO_PARITY", "linux-6.6"]);
    }
}

/// `ttwu reproduce`
#[derive(Debug, Args)]
#[command(
    after_help = "Threads: dma cluster xfs wakelist eevdf all\nExit code 1: a claim does not hold.\n\nExample:\n  ttwu reproduce wakelist\n  ttwu reproduce all --seeds 40 --format json\n  ttwu reproduce dma --list"
)]
pub(crate) struct Reproduce {
    /// Which threads (default: all)
    #[arg(value_name = "THREAD")]
    pub(crate) threads: Vec<String>,
    /// Seeds a cell
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=100_000))]
    pub(crate) seeds: u64,
    /// Seeds a cell with a cost halved or doubled; 0 leaves the sensitivity out
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub(crate) sensitivity: u64,
    /// Run nothing; name the scenario file of each cell, which `ttwu sim FILE` repeats
    #[arg(long)]
    pub(crate) list: bool,
    /// Run nothing; write the cells' scenario files below this folder
    #[arg(long, value_name = "DIR", conflicts_with = "list")]
    pub(crate) write: Option<PathBuf>,
    /// Runs at once (default: one a CPU)
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<usize>,
    /// Text or JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("expected a number of runs from 1, found `{text}`")),
        Ok(jobs) => Ok(jobs),
    }
}
