//! A scenario as the file that reads back as it, and its id.

use std::fmt::{self, Write as _};

use siphasher::sip128::SipHasher24;
use ttwu_model::MACHINES;
use ttwu_workload::spec_toml::quoted;
use ttwu_workload::{MachineInfo, Workload, time_text};

use super::{FORMAT, preset_of, settings};
use crate::{COSTS, Costs, Scenario};

/// What a scenario is, in 128 bits: equal scenarios have equal ids, on every machine and in every build.
///
/// SipHash-2-4 with a zero key over the file that the scenario prints as, its workload written out, and all costs with their
/// standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScenarioId(u128);

impl fmt::Display for ScenarioId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Scenario {
    /// The scenario as a file that needs nothing outside of it. A named workload or machine is printed by its name when that gives
    /// exactly this one, and written out otherwise.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = format!("scenario = {FORMAT}\n");
        let named = self.named_workload();
        if let Some(name) = &named {
            let _ = writeln!(out, "workload = {}", quoted(name));
        }
        let machine = MACHINES.iter().find(|machine| machine.topology() == self.topology);
        match machine {
            Some(machine) => {
                let _ = writeln!(out, "machine = \"{}\"", machine.name);
            }
            None => {
                let _ = writeln!(
                    out,
                    "machine = {{ text = {} }}",
                    quoted(&self.topology.to_string().replace('\n', "; "))
                );
            }
        }
        let _ = writeln!(out, "policy = {}", quoted(&self.policy.to_string()));
        let _ = writeln!(out, "seed = {}\nduration = \"{}\"", self.seed, time_text(self.until_ns));
        let default = machine.map(|machine| preset_of(machine.name));
        if default != Some(self.costs.preset_name()) || !self.costs.changed().is_empty() {
            let _ = write!(out, "\n[costs]\n{}", self.costs.to_toml());
        }
        let settings = settings::print(&self.settings, self.policy.kernel());
        if !settings.is_empty() {
            let _ = writeln!(out, "\n[settings]\n{}", settings.join("\n"));
        }
        if named.is_none() {
            let _ = write!(out, "\n{}", self.workload.to_toml("workload"));
        }
        out
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ScenarioId {
        let mut text = self.to_toml();
        text.push_str(&self.workload.to_toml("workload"));
        for row in COSTS {
            let _ = writeln!(
                text,
                "{} {} {}",
                row.name,
                self.costs.get(row.cost),
                self.costs.basis(row.cost).name()
            );
        }
        ScenarioId(SipHasher24::new().hash(text.as_bytes()).as_u128())
    }

    /// The workload's name, if it alone gives this workload.
    fn named_workload(&self) -> Option<String> {
        let info = MachineInfo { cpus: self.topology.cpu_bound() as u32 };
        let named = Workload::parse(&self.workload.name, &info).ok()?;
        (named == self.workload).then(|| self.workload.name.clone())
    }
}

impl Costs {
    /// The costs as the file that [`Costs::from_toml`] reads.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = format!("preset = \"{}\"\n", self.preset_name());
        for row in COSTS.iter().filter(|row| self.changed().contains(&row.cost)) {
            let (value, basis) = (self.get(row.cost), self.basis(row.cost).name());
            let _ = writeln!(out, "{} = {{ value = {value}, basis = \"{basis}\" }}", row.name);
        }
        out
    }
}
