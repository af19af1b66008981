//! A scenario without its seed: what an arm of an experiment is.

use ttwu_fair::Policy;
use ttwu_model::Topology;
use ttwu_sim::{Costs, Scenario, Settings};
use ttwu_workload::Workload;

/// A scenario without its seed, with the names under which its parts were asked for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine's name.
    pub machine: String,
    /// The machine.
    pub topology: Topology,
    /// The scheduler.
    pub policy: Policy,
    /// What the tasks do; its name is its own.
    pub workload: Workload,
    /// What things cost.
    pub costs: Costs,
    /// The rest of kernel and hardware.
    pub settings: Settings,
    /// A run ends here at the latest, ns.
    pub until_ns: u64,
}

impl Setup {
    /// Ten minutes of simulated time: longer than any named workload needs, so that a run that never ends is found.
    pub const UNTIL_NS: u64 = 600_000_000_000;

    /// A workload on a machine as it comes: its family's costs, the kernel's usual settings.
    #[must_use]
    pub fn new(machine: &str, topology: Topology, policy: Policy, workload: Workload) -> Self {
        Self {
            machine: machine.to_owned(),
            topology,
            costs: costs_of_machine(machine).unwrap_or_else(Costs::skylake_server),
            settings: Settings::of(policy.kernel()),
            policy,
            workload,
            until_ns: Self::UNTIL_NS,
        }
    }

    /// One run of it.
    #[must_use]
    pub fn scenario(&self, seed: u64) -> Scenario {
        Scenario {
            workload: self.workload.clone(),
            topology: self.topology.clone(),
            policy: self.policy.clone(),
            costs: self.costs.clone(),
            settings: self.settings.clone(),
            seed,
            until_ns: self.until_ns,
        }
    }
}

/// Beginnings of machines' names, and the family whose costs they have. The first that fits counts.
const FAMILIES: &[(&str, &str)] = &[
    ("kunpeng920", "kunpeng920"),
    ("ampere-altra", "altra"),
    ("epyc", "epyc"),
    ("xeon-3204", "xeon-3204"),
    ("xeon", "skylake-server"),
    ("xfs-48cpu", "skylake-server"),
    ("i7-4790", "desktop"),
    ("uma-8", "desktop"),
    ("oracle", "vm"),
];

/// The costs of a named machine's family; none for a machine of no known family (a Skylake server is the usual stand-in).
#[must_use]
pub fn costs_of_machine(machine: &str) -> Option<Costs> {
    let (_, family) = FAMILIES.iter().find(|(start, _)| machine.starts_with(start))?;
    Some(Costs::preset(family).expect("a test reads every row"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_machine_has_costs_of_a_family() {
        for machine in ttwu_model::MACHINES {
            assert!(costs_of_machine(machine.name).is_some(), "{}", machine.name);
        }
        assert_eq!(costs_of_machine("ampere-altra-l3").expect("known").preset_name(), "altra");
        assert_eq!(costs_of_machine("host"), None);
    }
}
