//! Where a scenario comes from, and what it may name.

use super::shipped;
use crate::exit::Failure;
use anyhow::{Context, anyhow};
use std::io::Read;
use std::path::{Path, PathBuf};
use ttwu_model::Topology;
use ttwu_sim::Surroundings;
use ttwu_workload::{MachineInfo, Workload, nearest_name};

/// A scenario is a page; what is larger is the wrong file.
const BYTES_MAX: u64 = 16 << 20;

/// A scenario's text and what lies around it.
pub(super) struct ScenarioSource {
    /// For messages.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) surroundings: Around,
}

/// Where the files that a scenario names are.
pub(super) enum Around {
    /// In this folder.
    Folder(PathBuf),
    /// Among the examples.
    Shipped,
}

impl Surroundings for Around {
    fn file(&self, path: &str) -> Result<String, String> {
        match self {
            Self::Folder(folder) => {
                std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())
            }
            Self::Shipped => {
                shipped::file(path).map(str::to_owned).ok_or_else(|| "no such example file".to_owned())
            }
        }
    }

    fn host(&self) -> Result<Topology, String> {
        ttwu_host::sysfs::read_topology(Path::new("/")).map_err(|error| error.to_string())
    }
}

/// Finds a scenario: standard input, a file, or an example.
pub(super) fn open(what: &str) -> Result<ScenarioSource, Failure> {
    if what == "-" {
        let text = read(std::io::stdin().lock(), "standard input")?;
        let surroundings = Around::Folder(PathBuf::new());
        return Ok(ScenarioSource { name: "standard input".to_owned(), text, surroundings });
    }
    let path = Path::new(what);
    if path.is_file() || (path.exists() && !path.is_dir()) {
        let file = std::fs::File::open(path).with_context(|| what.to_owned()).map_err(Failure::input)?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let text = read(file, what)?;
        return Ok(ScenarioSource { name: what.to_owned(), text, surroundings: Around::Folder(folder) });
    }
    let Some(text) = shipped::file(&format!("{what}.toml")) else {
        if is_workload(what) {
            return Err(Failure::input(anyhow!(
                "`{what}` is a workload, and a scenario is expected; its workload is changed by `--set workload={what}`"
            )));
        }
        let hint = nearest_name(what, shipped::names());
        return Err(Failure::input(anyhow!(
            "no file and no example is called `{what}`{hint}; `ttwu sim --list` lists the examples"
        )));
    };
    let name = format!("example {what}");
    Ok(ScenarioSource { name, text: text.to_owned(), surroundings: Around::Shipped })
}

/// Does it begin as a workload does? With whatever options: the message about those comes when it stands where it belongs.
fn is_workload(what: &str) -> bool {
    let name = what.split_once(':').map_or(what, |(name, _)| name);
    Workload::parse(name, &MachineInfo { cpus: 1 }).is_ok()
        || (name != what && shipped::names().any(|known| known == name))
}

fn read(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    source
        .take(BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| name.to_owned())
        .map_err(Failure::input)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::input(anyhow!("{name}: larger than {} MiB; no scenario", BYTES_MAX >> 20)));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::input(anyhow!("{name}: not a text; recordings are read by `ttwu report`")))
}
