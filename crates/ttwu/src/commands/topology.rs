//! `ttwu topology`: a machine as the scheduler sees it.

use crate::args;
use crate::exit::{Failure, Outcome};
use crate::output::{OutputFormat, print};
use anyhow::{Context, anyhow};
use std::io::Read;
use std::path::Path;
use ttwu_model::{Generation, MACHINES, Topology};
use ttwu_report::topology::{render_json, render_text};

/// Draws the machine.
pub(crate) fn run(args: &args::Topology) -> Outcome {
    if args.list {
        let width = MACHINES.iter().map(|machine| machine.name.len()).max().unwrap_or(0);
        let rows = MACHINES.iter().map(|machine| format!("{:width$}  {}\n", machine.name, machine.title));
        return print(&rows.collect::<String>());
    }
    let version = args.kernel.trim_start_matches("linux-");
    let generation = Generation::from_release(version)
        .filter(|&generation| generation >= Generation::new(4, 14))
        .ok_or_else(|| {
            Failure::input(anyhow!("`{}` is no kernel version from 4.14 on, such as 6.12", args.kernel))
        })?;
    let topology = resolve(&args.what)?;
    match args.format {
        OutputFormat::Text => print(&render_text(&topology, generation)),
        OutputFormat::Json => print(&render_json(&topology, generation)),
    }
}

/// The first part of a file, which may be a device without end, as text; more than any machine's description needs.
fn small_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(1 << 20).read_to_string(&mut text)?;
    Ok(text)
}

/// The machine called `what`: `host`, a name, a topology file, or a recording that has its machine's topology.
pub(crate) fn resolve(what: &str) -> Result<Topology, Failure> {
    if what == "host" {
        return ttwu_host::sysfs::read_topology(Path::new("/")).map_err(Failure::input);
    }
    if let Some(machine) = MACHINES.iter().find(|machine| machine.name == what) {
        return Ok(machine.topology());
    }
    let path = Path::new(what);
    if !path.exists() {
        let known = MACHINES.iter().map(|machine| machine.name).collect::<Vec<_>>().join(", ");
        return Err(Failure::input(anyhow!(
            "no machine and no file is called `{what}`; machines: host, {known}"
        )));
    }
    let text = small_text(path).ok().filter(|text| !text.contains('\0'));
    let why = match text.as_deref().map(Topology::parse) {
        Some(Ok(topology)) => return Ok(topology),
        Some(Err(error)) => format!(" ({error})"),
        None => String::new(),
    };
    let parts = ttwu_trace::TraceStream::open(path)
        .and_then(ttwu_trace::TraceStream::finish)
        .with_context(|| format!("{what} is neither a topology file{why} nor a recording"))
        .map_err(Failure::input)?;
    let text = parts
        .meta
        .topology_text
        .ok_or_else(|| Failure::input(anyhow!("{what} does not say its machine's topology; name one")))?;
    Topology::parse(&text).context("the recording's topology").map_err(Failure::input)
}
