//! A plan's file.

use super::{SweepCell, SweepSetup};
use crate::arm::{Arm, Defaults, set_words};
use ttwu_sim::Surroundings;
use ttwu_workload::expand;
use ttwu_workload::spec_toml::{Fields, Source, SpecError, Value};

/// More cells than anybody means.
const CELLS_MAX: usize = 1_000_000;

/// A matrix of runs.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    setups: Vec<SweepSetup>,
    policies: Vec<String>,
    seeds: u64,
    seed: u64,
    row: Option<String>,
}

/// What is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(SpecError);

impl SweepPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// What is wrong, by line and column, with the nearest known name.
    pub fn parse(text: &str, surroundings: &dyn Surroundings) -> Result<Self, PlanError> {
        read(text, surroundings).map_err(PlanError)
    }

    /// Its setups; policies turn fastest.
    #[must_use]
    pub fn setups(&self) -> &[SweepSetup] {
        &self.setups
    }

    /// Its policies, as written.
    #[must_use]
    pub fn policies(&self) -> &[String] {
        &self.policies
    }

    /// The result of its table, if it names one.
    #[must_use]
    pub fn row(&self) -> Option<&str> {
        self.row.as_deref()
    }

    /// All cells. Seeds turn slowest, so that a sweep that is ended early has every setup with fewer seeds.
    #[must_use]
    pub fn cells(&self) -> Vec<SweepCell> {
        let seeds = self.seed..self.seed + self.seeds;
        let each = seeds.flat_map(|seed| (0..self.setups.len()).map(move |setup| (setup, seed)));
        each.map(|(setup, seed)| {
            let id = self.setups[setup].setup.scenario(seed).id().to_string();
            SweepCell { setup, seed, id }
        })
        .collect()
    }
}

/// Strings of an array with their places.
fn strings<'a>(fields: &mut Fields<'a>, key: &'static str) -> Result<Vec<(usize, &'a str)>, SpecError> {
    let source = fields.source();
    let items = fields.array(key)?;
    let text = |node: &'a ttwu_workload::spec_toml::Node| match &node.value {
        Value::Text(text) => Ok((node.span.start, text.as_str())),
        _ => Err(source.error(node.span.start, format!("{key}: expected strings"))),
    };
    items.iter().map(text).collect()
}

fn read(text: &str, surroundings: &dyn Surroundings) -> Result<SweepPlan, SpecError> {
    let source = Source::new(text);
    let node = source.parse()?;
    let mut fields = Fields::new(source, &node, "plan")?;
    let at = fields.at();
    match fields.integer("sweep", 1, i64::MAX)? {
        None | Some(1) => {}
        Some(newer) => {
            return Err(source.error(
                at,
                format!(
                    "sweep: this plan is of format {newer}, and format 1 is known; a newer ttwu reads it"
                ),
            ));
        }
    }
    let machines = strings(&mut fields, "machines")?;
    let policies = strings(&mut fields, "policies")?;
    let names = strings(&mut fields, "workloads")?;
    for (key, list) in [("machines", &machines), ("policies", &policies), ("workloads", &names)] {
        if list.is_empty() {
            return Err(source.error(at, format!("plan: `{key}` is missing or empty")));
        }
    }
    let mut settings = strings(&mut fields, "settings")?;
    if settings.is_empty() {
        settings.push((at, ""));
    }
    let seeds = fields.integer("seeds", 1, 1_000_000)?.unwrap_or(5) as u64;
    let seed = fields.integer("seed", 0, i64::from(u32::MAX))?.unwrap_or(1) as u64;
    let costs = fields.text("costs")?.map(|(text, _)| text.to_owned());
    let row = fields.text("row")?.map(|(text, _)| text.to_owned());
    let duration = fields.text("duration")?.map(|(text, _)| format!("duration={text}"));
    fields.finish()?;
    let mut workloads = Vec::new();
    for (place, name) in names {
        let expanded = expand(name).map_err(|error| source.error(place + 1 + error.offset, error.message))?;
        workloads.extend(expanded.into_iter().map(|name| (place, name)));
    }
    let count = machines.len() * policies.len() * workloads.len() * settings.len();
    if count as u64 * seeds > CELLS_MAX as u64 {
        return Err(source
            .error(at, format!("plan: {count} setups of {seeds} seeds are more than {CELLS_MAX} cells")));
    }
    let mut setups = Vec::new();
    for (machine_at, machine) in &machines {
        for (workload_at, workload) in &workloads {
            for (settings_at, words) in &settings {
                for (policy_at, policy) in &policies {
                    let defaults = Defaults {
                        policy: (*policy).to_owned(),
                        machine: (*machine).to_owned(),
                        workload: workload.clone(),
                        costs: costs.clone(),
                        sets: duration.iter().cloned().collect(),
                    };
                    let list: Vec<&str> = words.split_whitespace().collect();
                    // The message names the fault; the place is that of the string which has it, as far as its words say.
                    let place = |message: &str| {
                        let all =
                            [(machine_at, *machine), (policy_at, *policy), (workload_at, workload.as_str())];
                        let blamed = all.into_iter().find(|(_, text)| {
                            text.split([' ', ':', ',', '+', '-'])
                                .any(|word| !word.is_empty() && message.contains(&format!("`{word}")))
                        });
                        *blamed.map_or(settings_at, |(place, _)| place)
                    };
                    let arm = set_words(&list, &defaults, surroundings)
                        .map_err(|error| source.error(place(&error.to_string()), error.to_string()))?;
                    let Arm::Simulated(arm) = arm else {
                        return Err(source.error(*settings_at, "settings: a file is no setting"));
                    };
                    setups.push(SweepSetup {
                        machine: (*machine).to_owned(),
                        policy: (*policy).to_owned(),
                        workload: workload.clone(),
                        settings: (*words).to_owned(),
                        setup: arm.cells[0].setup.clone(),
                    });
                }
            }
        }
    }
    let policies = policies.into_iter().map(|(_, policy)| policy.to_owned()).collect();
    Ok(SweepPlan { setups, policies, seeds, seed, row })
}
