//! Records a command without the rest of ttwu: `record [-o FILE] [--events SET] [--backend perf|tracefs] [--clock C]
//! [--buffer KIB] [--pid P] [--duration S] [--raw] [-q] [-- CMD…]`. For trials and measurements of the recorder itself.

use std::ffi::OsString;
use std::time::Duration;
use ttwu_host::record::{Backend, ClockChoice, EventSet, RecordOptions, SignalGuard, StopHandle, record};

fn main() {
    match run() {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("record: {error}");
            std::process::exit(2);
        }
    }
}

fn run() -> Result<i32, Box<dyn std::error::Error>> {
    let (options, quiet) = parse()?;
    let stop = StopHandle::new()?;
    let signals = SignalGuard::install(&stop)?;
    let summary = record(&options, &stop, &mut |progress| {
        if !quiet {
            eprintln!(
                "{:?} {:.1} s, {} events, {} lost, {} bytes",
                progress.phase,
                progress.elapsed.as_secs_f64(),
                progress.events,
                progress.lost,
                progress.bytes
            );
        }
    })?;
    eprintln!("{summary:#?}");
    Ok(if signals.arrived().is_some() { 130 } else { summary.command_exit.unwrap_or(0) })
}

fn parse() -> Result<(RecordOptions, bool), Box<dyn std::error::Error>> {
    let mut options = RecordOptions::new("ttwu.out".into(), Vec::new());
    let mut quiet = false;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || -> Result<String, String> {
            let value =
                arguments.next().ok_or_else(|| format!("{} needs a value", argument.to_string_lossy()))?;
            value.into_string().map_err(|value| format!("{} is not UTF-8", value.to_string_lossy()))
        };
        match &*argument.to_string_lossy() {
            "-o" => options.output = value()?.into(),
            "--events" => options.events = EventSet::parse(&value()?)?,
            "--backend" => {
                options.backend = if value()? == "tracefs" { Backend::Tracefs } else { Backend::Perf };
            }
            "--clock" => {
                options.clock = match &*value()? {
                    "mono" => ClockChoice::Monotonic,
                    "tracer" => ClockChoice::Tracer,
                    _ => ClockChoice::Auto,
                };
            }
            "--buffer" => options.buffer_bytes = Some(value()?.parse::<usize>()? << 10),
            "--pid" => options.pid = Some(value()?.parse()?),
            "--duration" => options.duration = Some(Duration::from_secs_f64(value()?.parse()?)),
            "--raw" => options.raw = true,
            "-q" => quiet = true,
            "--" => {
                options.command = arguments.by_ref().collect::<Vec<OsString>>();
            }
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    Ok((options, quiet))
}
