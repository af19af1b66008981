//! `ttwu record`: what the scheduler does on this machine, into a file.

use crate::args::{self, Backend, Clock};
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print, say};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use ttwu_host::record::{self, Ended, EventSet, Phase, RecordOptions, SignalGuard, StopHandle, Summary};

/// Records, with progress on standard error.
pub(crate) fn run(args: &args::Record) -> Outcome {
    let options = options(args)?;
    let stop = StopHandle::new().map_err(Failure::input)?;
    let signals = SignalGuard::install(&stop).map_err(Failure::input)?;
    let bar = progress(args.quiet);
    let result = record::record(&options, &stop, &mut |progress| {
        let what = match progress.phase {
            Phase::Recording => "recording",
            Phase::Converting => "writing",
        };
        bar.set_message(format!(
            "{what}: {:.0} s, {} events, {} lost, {} KiB",
            progress.elapsed.as_secs_f64(),
            progress.events,
            progress.lost,
            progress.bytes / 1024
        ));
        bar.tick();
    });
    bar.finish_and_clear();
    let summary = result.map_err(|error| {
        if error.is_forbidden() { Failure::forbidden(error) } else { Failure::input(error) }
    })?;
    if !args.quiet {
        for note in &summary.notes {
            say(&format!("ttwu: note: {note}"));
        }
        match args.format {
            OutputFormat::Text => say(&line(&summary)),
            OutputFormat::Json => drop(print(&format!("{:#}", as_json(&summary)))?),
        }
    }
    if let Ended::Output(why) = &summary.ended {
        let events = summary.events;
        return Err(Failure::forbidden(anyhow::anyhow!("recording cut short, {events} events kept: {why}")));
    }
    let interrupted = signals.arrived().is_some();
    Ok(if interrupted { Done::Interrupted } else { Done::Ok })
}

fn options(args: &args::Record) -> Result<RecordOptions, Failure> {
    if args.output.as_os_str() == "-" {
        let why = "cannot write -: a recording is read again to convert it (a file of that name is ./-)";
        return Err(Failure::input(anyhow::anyhow!(why)));
    }
    let mut options = RecordOptions::new(args.output.clone(), args.command.clone());
    options.pid = args.pid;
    options.duration = args.duration;
    options.events = EventSet::parse(&args.events).map_err(Failure::input)?;
    options.backend = match args.backend {
        Backend::Perf => record::Backend::Perf,
        Backend::Tracefs => record::Backend::Tracefs,
    };
    options.clock = match args.clock {
        Clock::Auto => record::ClockChoice::Auto,
        Clock::Mono => record::ClockChoice::Monotonic,
        Clock::Local => record::ClockChoice::Tracer,
    };
    options.buffer_bytes = args.buffer_kib.map(|kib| kib as usize * 1024);
    Ok(options)
}

fn progress(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a constant template");
    ProgressBar::new_spinner().with_style(style)
}

fn line(summary: &Summary) -> String {
    let seconds = summary.duration_ns as f64 / 1e9;
    let lost = if summary.lost == 0 { "none lost".to_owned() } else { format!("{} LOST", summary.lost) };
    let exit = summary.command_exit.map_or(String::new(), |code| format!(", command exit {code}"));
    format!(
        "{}: {} events in {seconds:.2} s, {lost}, {} KiB{exit}",
        summary.file.display(),
        summary.events,
        summary.file_bytes.div_ceil(1024)
    )
}

fn as_json(summary: &Summary) -> serde_json::Value {
    let ended = match &summary.ended {
        Ended::Command => "command",
        Ended::Target => "target",
        Ended::Duration => "duration",
        Ended::Stopped => "stopped",
        Ended::Output(_) => "output",
    };
    json!({
        "schema": "ttwu/record/1",
        "file": summary.file.display().to_string(),
        "events": summary.events,
        "lost": summary.lost,
        "duration_ns": summary.duration_ns,
        "command_exit": summary.command_exit,
        "command_pid": summary.command_pid.map(ttwu_model::Pid::number),
        "file_bytes": summary.file_bytes,
        "ended": ended,
        "notes": summary.notes,
    })
}
