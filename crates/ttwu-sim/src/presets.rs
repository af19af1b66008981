//! Costs of machine families: what differs from the rows of [`COSTS`](crate::COSTS), each with its source.

use crate::{Basis, Cost};
use Basis::{Estimate as E, Measured as M};
use Cost as C;

/// A machine family.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// What differs from the rows: cost, value, standing, source.
    pub values: &'static [(Cost, u64, Basis, &'static str)],
}

const EPYC_EXIT: &str = "acpi_idle table of such machines, from memory";
const ARM: &str = "arm64 has no polling idle bit: every remote wake-up is an interrupt";

/// All families.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "skylake-server",
        title: "Intel Skylake or Cascade Lake server (8269CY, 6132)",
        values: &[],
    },
    Preset {
        name: "xeon-3204",
        title: "Intel Xeon Bronze 3204: Cascade Lake at 1.9 GHz",
        values: &[
            (C::WakeBase, 450, E, "rows scaled by 2.6/1.9 GHz, rounded"),
            (C::EnqueueLocal, 400, E, "rows scaled by 2.6/1.9 GHz, rounded"),
            (C::EnqueueRemote, 850, E, "half of it is lines, which do not scale"),
            (C::SwitchSame, 950, E, "rows scaled by 2.6/1.9 GHz, rounded"),
            (C::SwitchOther, 1750, E, "rows scaled by 2.6/1.9 GHz, rounded"),
        ],
    },
    Preset {
        name: "icelake-server",
        title: "Intel Ice Lake server",
        values: &[
            (C::Idle1Exit, 1000, M, "intel_idle table, Ice Lake server"),
            (C::Idle1Residency, 1000, M, "intel_idle table, Ice Lake server"),
            (C::Idle2Exit, 4000, M, "intel_idle table, Ice Lake server (C1E)"),
            (C::Idle2Residency, 4000, M, "intel_idle table, Ice Lake server (C1E)"),
            (C::Idle3Exit, 170_000, M, "intel_idle table, Ice Lake server (C6)"),
            (C::Idle3Residency, 600_000, M, "intel_idle table, Ice Lake server (C6)"),
        ],
    },
    Preset {
        name: "kunpeng920",
        title: "HiSilicon Kunpeng 920",
        values: &[
            (C::IdleMonitors, 0, M, ARM),
            (C::Idle1Exit, 1000, E, "WFI: of the order of 1 us"),
            (C::Idle1Residency, 1000, E, "WFI"),
            (C::Idle2Residency, 0, E, "no deeper state in use"),
            (C::Idle3Residency, 0, E, "no deeper state in use"),
            (C::LinesCluster, 250, E, "1.36 times the in-cluster transfers of a wake-up (false sharing, v3)"),
            (C::SmtThroughput, 1000, M, "no SMT"),
        ],
    },
    Preset {
        name: "altra",
        title: "Ampere Altra",
        values: &[
            (C::IdleMonitors, 0, M, ARM),
            (C::Idle1Exit, 1000, E, "WFI: of the order of 1 us"),
            (C::Idle1Residency, 1000, E, "WFI"),
            (C::Idle2Residency, 0, E, "no deeper state in use"),
            (C::Idle3Residency, 0, E, "no deeper state in use"),
            // Its LLC ids are a firmware table's; all cores share the system-level cache.
            (C::LinesLlc, 0, E, "one mesh: another LLC id is no other cache"),
            (C::RefillNode, 80, E, "one mesh: as within an LLC"),
        ],
    },
    Preset {
        name: "epyc",
        title: "AMD EPYC 7003",
        values: &[
            (C::Idle1Exit, 1000, E, EPYC_EXIT),
            (C::Idle1Residency, 2000, E, EPYC_EXIT),
            (C::Idle2Exit, 400_000, E, EPYC_EXIT),
            (C::Idle2Residency, 800_000, E, EPYC_EXIT),
            (C::Idle3Residency, 0, E, "two states"),
        ],
    },
    Preset {
        name: "desktop",
        title: "Intel Haswell desktop (i7-4790)",
        values: &[
            (C::Idle2Exit, 10_000, M, "intel_idle table, Haswell (C1E)"),
            (C::Idle2Residency, 20_000, M, "intel_idle table, Haswell (C1E)"),
            (C::Idle3Exit, 133_000, M, "intel_idle table, Haswell (C6)"),
            (C::Idle3Residency, 400_000, M, "intel_idle table, Haswell (C6)"),
            (C::EnqueueRemote, 500, E, "ring of four cores, 4 GHz"),
            (C::SwitchSame, 500, E, "4 GHz"),
            (C::SwitchOther, 900, E, "4 GHz"),
        ],
    },
    Preset {
        name: "vm",
        title: "a virtual machine of few CPUs on a shared host",
        values: &[
            (C::IdleMonitors, 0, E, "mwait is not exposed; halting leaves the guest"),
            (C::Idle1Exit, 10_000, E, "assumed, not measured: exit from HLT in a guest 2-20 us"),
            (C::Idle1Residency, 1000, E, "halt is used at once"),
            (C::Idle2Residency, 0, E, "no deeper state in use"),
            (C::Idle3Residency, 0, E, "no deeper state in use"),
            (C::IpiSend, 1500, E, "a trap to the hypervisor"),
            (C::IpiDelivery, 3000, E, "emulated"),
            (C::TimerSet, 1000, E, "a trap to the hypervisor"),
        ],
    },
];
