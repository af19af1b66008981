//! `ttwu report`: read once, analyse beside it, print.
//!
//! Lists (`timehist`) are printed while the recording is read; tables when it has been.

mod lists;
mod tables;

use crate::args::{self, AnalysisName, By, Style};
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, input_path, say};
use anyhow::{Context, anyhow};
use std::path::Path;
use ttwu_analysis::{
    Analyser, AnalysisSet, Levels, PerfLatencyOptions, PerfSortKey, PerfTimehistOptions, PerfVersion,
    Results, TaskFilter, TimehistFilter,
};
use ttwu_model::{CpuSet, Pid, TaskId, Time, Topology};
use ttwu_trace::{Input, RawPages, TraceStream};

/// Reports on a file.
pub(crate) fn run(args: &args::Report) -> Outcome {
    let stream = open(input_path(&args.file), args.formats.as_deref())?;
    report(args, stream, &args.file.display().to_string())
}

fn open(file: &Path, formats: Option<&Path>) -> Result<TraceStream, Failure> {
    match formats {
        None => TraceStream::open(file).map_err(Failure::input),
        Some(folder) => {
            let input = Input::open(file).map_err(Failure::input)?;
            RawPages::open(input, folder).map_err(Failure::input)
        }
    }
}

/// Everything that a view may ask for.
pub(super) struct Request<'a> {
    pub(super) args: &'a args::Report,
    pub(super) analyses: Vec<AnalysisName>,
    pub(super) name: &'a str,
    /// Where the topology comes from, in words.
    pub(super) topology: Option<String>,
}

impl Request<'_> {
    pub(super) fn wants(&self, analysis: AnalysisName) -> bool {
        self.analyses.contains(&analysis)
    }

    /// The overview: nothing was named.
    pub(super) fn overview(&self) -> bool {
        self.args.analyses.is_empty()
    }
}

/// Reports on a stream called `name`.
pub(crate) fn report(args: &args::Report, mut stream: TraceStream, name: &str) -> Outcome {
    check_flags(args)?;
    // Before the recording is read.
    args.html.as_deref().map(crate::place::check).transpose().map_err(Failure::input)?;
    let mut analyses = args.analyses.clone();
    if analyses.is_empty() {
        use AnalysisName::{Cpus, Irqs, Latency, Migrations, Placement, Switches, Wakers};
        analyses = vec![Latency, Placement, Cpus, Migrations, Switches, Irqs, Wakers];
    }
    analyses.dedup();
    let recorded = stream.meta().topology_text.as_ref().map(|_| "from the recording".to_owned());
    let request = Request { args, analyses, name, topology: args.topology.clone().or(recorded) };
    let set = analysis_set(&request, &stream)?;
    let mut lists = lists::Lists::new(&request, &stream);
    let mut analyser = Analyser::new(&set);
    lists.begin().map_err(Failure::input)?;
    let mut reader_gone = false;
    while let Some(chunk) = stream.next_chunk() {
        analyser.note(chunk.notes);
        analyser.feed(chunk.events, chunk.strings, chunk.tasks);
        if lists.rows(&mut analyser).map_err(Failure::input)? == lists::Reader::Gone {
            reader_gone = true;
            break;
        }
    }
    if reader_gone {
        return Ok(Done::Ok);
    }
    analyser.close_timehist(stream.strings(), stream.tasks());
    lists.rows(&mut analyser).map_err(Failure::input)?;
    let parts = stream.finish().map_err(Failure::input)?;
    let results = analyser.finish(&parts);
    lists.end(&results).map_err(Failure::input)?;
    if !args.quiet && !request.overview() && args.format == OutputFormat::Text {
        super::health::warn(&parts.health);
    }
    let filter = task_filter(args);
    if let Some(task) = &args.task
        && !(0..parts.tasks.len())
            .any(|n| filter.matches(TaskId::new(n as u32), &parts.strings, &parts.tasks))
    {
        say(&format!("ttwu: warning: no task of the recording is called `{task}` or has that pid"));
    }
    tables::print(&request, results, &parts)
}

/// The machine whose levels are meant: the one named, else the recording's own.
fn topology(args: &args::Report, stream: &TraceStream) -> Result<Option<Topology>, Failure> {
    if let Some(what) = &args.topology {
        return super::topology::resolve(what).map(Some);
    }
    let text = stream.meta().topology_text.as_deref();
    text.map(|text| Topology::parse(text).context("the recording's topology"))
        .transpose()
        .map_err(Failure::input)
}

fn analysis_set(request: &Request<'_>, stream: &TraceStream) -> Result<AnalysisSet, Failure> {
    let args = request.args;
    let wants = |analysis| request.wants(analysis);
    let waking_recorded =
        stream.meta().events_recorded.as_ref().map(|names| names.contains("sched:sched_waking"));
    let version = match args.style {
        Style::Perf61 => Some(PerfVersion::V6_1),
        Style::Perf7 | Style::Sum => Some(PerfVersion::V7),
        Style::Ttwu | Style::Schbench => None,
    };
    let mut set = AnalysisSet {
        placement: wants(AnalysisName::Placement),
        cpus: wants(AnalysisName::Cpus),
        migrations: wants(AnalysisName::Migrations),
        switches: wants(AnalysisName::Switches),
        irqs: wants(AnalysisName::Irqs),
        wakers: wants(AnalysisName::Wakers),
        levels: topology(args, stream)?.map_or_else(Levels::unknown, Levels::new),
        ..AnalysisSet::default()
    };
    let filter = task_filter(args);
    if wants(AnalysisName::Latency) {
        match version {
            None => set.latency = Some(filter.clone()),
            Some(version) => {
                set.perf_latency = Some(PerfLatencyOptions {
                    version,
                    per_thread: args.by == By::Task,
                    sort: sort_keys(args.sort.as_deref())?,
                    waking_recorded,
                });
            }
        }
    }
    if wants(AnalysisName::Timehist) {
        match version {
            Some(version) if args.style != Style::Sum => {
                set.perf_timehist = Some(PerfTimehistOptions {
                    version,
                    wakeups: args.show.contains('w'),
                    migrations: args.show.contains('M'),
                    summary_only: args.show.contains('s'),
                    cpus_online: lists::cpus_online(stream),
                    waking_recorded,
                });
            }
            Some(_) | None => set.timehist = Some(timehist_filter(args, filter)?),
        }
    }
    Ok(set)
}

fn sort_keys(text: Option<&str>) -> Result<Vec<PerfSortKey>, Failure> {
    let Some(text) = text else { return Ok(PerfSortKey::DEFAULT.to_vec()) };
    let key = |name: &str| {
        PerfSortKey::from_name(name.trim()).ok_or_else(|| {
            Failure::input(anyhow!("unknown sort key `{name}`; keys: avg, max, switch, runtime, pid"))
        })
    };
    text.split(',').map(key).collect()
}

fn task_filter(args: &args::Report) -> TaskFilter {
    let mut filter = TaskFilter::default();
    if let Some(task) = &args.task {
        match task.parse() {
            Ok(pid) => filter.pids.push(Pid::new(pid)),
            Err(_) => filter.names.push(task.clone()),
        }
    }
    filter
}

/// Refuses flags that no view understands, whichever views were asked for.
fn check_flags(args: &args::Report) -> Result<(), Failure> {
    timehist_filter(args, TaskFilter::default())?;
    if let Some(page) = &args.html
        && let (Ok(page), Ok(file)) = (page.canonicalize(), args.file.canonicalize())
        && page == file
    {
        return Err(Failure::input(anyhow!("--html would overwrite the recording itself")));
    }
    // A filter that would be ignored is refused: the user would take the whole for the part.
    if !args.analyses.contains(&AnalysisName::Timehist) {
        let given =
            [("--from", args.from.is_some()), ("--to", args.to.is_some()), ("--cpu", args.cpu.is_some())];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(Failure::input(anyhow!("{flag} narrows the event list only: add `timehist`")));
        }
    }
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Err(Failure::input(anyhow!("--from is after --to: nothing can lie between")));
    }
    if let Some(letter) = args.show.chars().find(|&letter| !"wMnVsS".contains(letter)) {
        return Err(Failure::input(anyhow!("unknown letter `{letter}` for --show; letters: w M n V s S")));
    }
    Ok(())
}

fn timehist_filter(args: &args::Report, tasks: TaskFilter) -> Result<TimehistFilter, Failure> {
    let time = |at: Option<std::time::Duration>| {
        at.map(|at| Time::from_ns(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)))
    };
    let cpus = args.cpu.as_deref().map(CpuSet::parse_list).transpose().map_err(Failure::input)?;
    Ok(TimehistFilter { from: time(args.from), to: time(args.to), cpus, tasks })
}

/// What every table is made from.
pub(super) struct Found<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) results: &'a Results,
}
