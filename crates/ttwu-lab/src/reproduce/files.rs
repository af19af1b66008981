//! The cells of the experiments as scenario files: `ttwu sim` of one repeats a cell.
//!
//! The files under `scenarios/reproduce` are made from the experiments, and a test holds them to it, so that there is one
//! source of each figure. `ttwu reproduce --write DIR` makes them; so does `cargo run -p ttwu-lab --example scenario_files`.

use super::EXPERIMENTS;

/// A cell's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioFile {
    /// The experiment's name.
    pub experiment: &'static str,
    /// `setup/variant`.
    pub cell: String,
    /// Its path, below the folder of all: `dma/epyc/vanilla.toml`.
    pub path: String,
    /// The text.
    pub text: String,
}

/// The files of all cells, with the first seed, in the order of the threads.
#[must_use]
pub fn scenario_files() -> Vec<ScenarioFile> {
    let mut files = Vec::new();
    for experiment in EXPERIMENTS {
        let scenarios = experiment.scenarios(1);
        for ((setup, variant), (name, scenario)) in experiment.cells().zip(scenarios) {
            let title = format!("# {}: {}, kernel `{}`.", experiment.name, setup.title, variant.id);
            let note = "# A cell of `ttwu reproduce`; made from it: a change belongs there.";
            files.push(ScenarioFile {
                experiment: experiment.name,
                cell: format!("{}/{}", setup.id, variant.id),
                path: format!("{name}.toml"),
                text: format!("{title}\n{note}\n{}", scenario.to_toml()),
            });
        }
    }
    files
}
