//! Kernel generations: the points in history whose rules are known condition by condition.

use std::fmt;

/// A generation of the fair class. Ordered by time; `>=` reads "has the rules introduced with".
///
/// 6.12 and 7.2 are the stable trees 6.12.117 and 7.2.13 (differences to their `.0` releases are listed in FIDELITY.md),
/// the others are the releases of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// v5.5: load-balancer rework, last before per-CPU kthread stacking.
    V5_5,
    /// v5.9 (v5.10 alike in the wake-up path).
    V5_9,
    /// v5.15.0: merged idle scan, rule 3 of `wake_affine_idle`.
    V5_15,
    /// v5.19 (v5.18 alike): `imb_numa_nr`, kthread rule in task context only.
    V5_19,
    /// v6.1: SIS_UTIL, wake list for idle CPUs in the same LLC. Last long-term CFS.
    V6_1,
    /// The EEVDF series as carried out of tree in April 2023.
    Eevdf202304,
    /// v6.6: EEVDF as merged, with RUN_TO_PARITY.
    V6_6,
    /// v6.12: delayed dequeue, PREEMPT_SHORT, custom slices, cluster-aware wake-up.
    V6_12,
    /// v7.2: virtual-time protection window, lazy preemption.
    V7_2,
}

impl Kernel {
    /// All, oldest first.
    pub const ALL: [Self; 9] = [
        Self::V5_5,
        Self::V5_9,
        Self::V5_15,
        Self::V5_19,
        Self::V6_1,
        Self::Eevdf202304,
        Self::V6_6,
        Self::V6_12,
        Self::V7_2,
    ];

    /// The name under which a policy is asked for.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V5_5 => "linux-5.5",
            Self::V5_9 => "linux-5.9",
            Self::V5_15 => "linux-5.15",
            Self::V5_19 => "linux-5.19",
            Self::V6_1 => "linux-6.1",
            Self::Eevdf202304 => "eevdf-2023-04",
            Self::V6_6 => "linux-6.6",
            Self::V6_12 => "linux-6.12",
            Self::V7_2 => "linux-7.2",
        }
    }

    /// The kernel of this name; `6.1` and `linux-6.1` are the same.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.name() == name || kernel.name().strip_prefix("linux-") == Some(name))
    }

    /// The last release that a kernel version comes after (the first one, if it is older than all): `linux-6.13.7` gives
    /// 6.12. Postings between releases are never the answer.
    #[must_use]
    pub fn before_release(version: &str) -> Option<Self> {
        let asked = release(version)?;
        let releases = Self::ALL.into_iter().filter_map(|kernel| Some((release(kernel.name())?, kernel)));
        let (_, first) = releases.clone().next()?;
        Some(releases.take_while(|&(of, _)| of <= asked).last().map_or(first, |(_, kernel)| kernel))
    }

    /// Does it queue by virtual deadline (EEVDF) rather than by virtual run time (CFS)?
    #[must_use]
    pub const fn is_eevdf(self) -> bool {
        match self {
            Self::V5_5 | Self::V5_9 | Self::V5_15 | Self::V5_19 | Self::V6_1 => false,
            Self::Eevdf202304 | Self::V6_6 | Self::V6_12 | Self::V7_2 => true,
        }
    }
}

/// Major and minor number of `linux-6.13.7`, `v6.13-rc2` or `6.13`.
fn release(version: &str) -> Option<(u32, u32)> {
    let digits = version.trim_start_matches("linux-").trim_start_matches('v');
    let mut numbers = digits.split(|at: char| !at.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    Some((major, numbers.next().and_then(|minor| minor.parse().ok()).unwrap_or(0)))
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
