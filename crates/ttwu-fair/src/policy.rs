//! A policy: which kernel, with which features, variants and tunables. A value: comparable, printable, parsable.
//!
//! `linux-6.12 -RUN_TO_PARITY base_slice_ns=3000000` names a kernel and what differs from its defaults. What that kernel
//! does not have, or what is not modelled, is refused with the reason.

use crate::features::Switch;
use crate::{
    Cluster, FEATURES, Feature, FeatureSet, Kernel, KthreadStacking, Scaling, TUNABLES, Tunable, Tunables,
    VARIANTS, WakeAffineIdle, WakeList,
};
use std::fmt;

/// A scheduling policy of the fair class.
///
/// Tunables are kept as the user set them; [`Policy::tunables`] scales the rest to a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Policy {
    kernel: Kernel,
    features: FeatureSet,
    /// Rule 1 of `wake_affine_idle()`.
    pub wake_affine_idle: WakeAffineIdle,
    /// The wake-list condition.
    pub wake_list: WakeList,
    /// Per-CPU kthread stacking.
    pub kthread_stacking: KthreadStacking,
    /// Cluster awareness.
    pub cluster: Cluster,
    /// How tunables grow with the machine.
    pub scaling: Scaling,
    set: Vec<(&'static str, u64)>,
}

fn hint(nearest: Option<Kernel>) -> String {
    nearest.map_or(String::new(), |kernel| format!("; the nearest is {kernel}"))
}

/// Why a policy's text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No such kernel.
    #[error("unknown kernel `{name}`{}; known: {}", hint(*nearest), Kernel::ALL.map(Kernel::name).join(", "))]
    UnknownKernel {
        /// As given.
        name: String,
        /// The last generation before that version, or the first of all.
        nearest: Option<Kernel>,
    },
    /// No such feature, variant or tunable.
    #[error("unknown setting `{name}`{}", nearest.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    UnknownSetting {
        /// As given.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
    },
    /// The kernel does not have it.
    #[error("{kernel} has no {name}")]
    NotInKernel {
        /// The kernel.
        kernel: Kernel,
        /// The setting.
        name: &'static str,
    },
    /// It exists, but changing it would have no effect here.
    #[error("{name} cannot be changed: {why}")]
    NotModelled {
        /// The setting.
        name: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A value that the setting does not take.
    #[error("{name} does not take `{value}`; it takes {expected}")]
    BadValue {
        /// The setting.
        name: &'static str,
        /// As given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

impl Policy {
    /// `kernel` as released.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        Self {
            kernel,
            features: FeatureSet::of(kernel),
            wake_affine_idle: WakeAffineIdle::of(kernel),
            wake_list: WakeList::of(kernel),
            kthread_stacking: KthreadStacking::of(kernel),
            cluster: Cluster::of(kernel),
            scaling: Scaling::Log,
            set: Vec::new(),
        }
    }

    /// Reads `KERNEL [+FEATURE] [-FEATURE] [NAME=VALUE]…`.
    ///
    /// # Errors
    /// When a name is unknown, is not in that kernel, or is not modelled.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let kernel = Kernel::from_name(name).ok_or_else(|| PolicyError::UnknownKernel {
            name: name.to_owned(),
            nearest: Kernel::before_release(name),
        })?;
        let mut policy = Self::of(kernel);
        for word in words {
            policy.apply(word)?;
        }
        Ok(policy)
    }

    /// Changes one thing: `+FEATURE`, `-FEATURE`, `NO_FEATURE` (the kernel's way), or `name=value`.
    ///
    /// # Errors
    /// As [`Policy::parse`].
    pub fn apply(&mut self, word: &str) -> Result<(), PolicyError> {
        if let Some((name, value)) = word.split_once('=') {
            return self.apply_value(name, value);
        }
        let known = |name: &str| FEATURES.iter().any(|row| row.name == name) || name == "CLUSTER";
        let (switch, name) = match word.split_at_checked(1) {
            Some(("+", name)) => (Switch::On, name),
            Some(("-", name)) => (Switch::Off, name),
            _ => match word.strip_prefix("NO_").filter(|bare| known(bare) && !known(word)) {
                Some(bare) => (Switch::Off, bare),
                None => (Switch::On, word),
            },
        };
        if name == "CLUSTER" {
            self.cluster = match switch {
                Switch::On if self.kernel >= Kernel::V6_6 => Cluster::Wakeup,
                Switch::On => Cluster::Domain,
                Switch::Off => Cluster::Off,
            };
            return Ok(());
        }
        let Some(row) = FEATURES.iter().find(|row| row.name == name) else {
            return Err(Self::unknown(name));
        };
        if !row.exists_in(self.kernel) {
            return Err(PolicyError::NotInKernel { kernel: self.kernel, name: row.name });
        }
        if let Some(why) = row.refused.filter(|_| row.on_in(self.kernel) != (switch == Switch::On)) {
            return Err(PolicyError::NotModelled { name: row.name, why });
        }
        self.features.set(row.feature, switch);
        Ok(())
    }

    fn apply_value(&mut self, name: &str, value: &str) -> Result<(), PolicyError> {
        if let Some(row) = VARIANTS.iter().find(|row| row.name == name) {
            let position = row.values.iter().position(|(known, _)| *known == value);
            let Some(index) = position else {
                let expected = row.values.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
                return Err(PolicyError::BadValue { name: row.name, value: value.to_owned(), expected });
            };
            self.set_variant(row.name, index);
            return Ok(());
        }
        let Some(row) = TUNABLES.iter().find(|row| row.name == name) else {
            return Err(Self::unknown(name));
        };
        if !row.exists_in(self.kernel) {
            return Err(PolicyError::NotInKernel { kernel: self.kernel, name: row.name });
        }
        let allowed = match row.tunable {
            Tunable::Hz => 24..=10_000,
            Tunable::NrMigrate => 1..=1_000,
            Tunable::MigrationCostNs => 0..=1_000_000_000,
            Tunable::LatencyNs
            | Tunable::MinGranularityNs
            | Tunable::WakeupGranularityNs
            | Tunable::IdleMinGranularityNs
            | Tunable::BaseSliceNs => 100_000..=1_000_000_000,
        };
        let number = value.replace('_', "").parse::<u64>().ok().filter(|number| allowed.contains(number));
        let Some(number) = number else {
            let expected = format!("{} to {}", allowed.start(), allowed.end());
            return Err(PolicyError::BadValue { name: row.name, value: value.to_owned(), expected });
        };
        self.set.retain(|(known, _)| *known != row.name);
        self.set.push((row.name, number));
        self.set.sort_unstable();
        Ok(())
    }

    fn set_variant(&mut self, name: &str, index: usize) {
        const AFFINE: [WakeAffineIdle; 4] = [
            WakeAffineIdle::AnyIdle,
            WakeAffineIdle::SharedCache,
            WakeAffineIdle::SharedCachePrevFirst,
            WakeAffineIdle::SharedCacheElsePrev,
        ];
        const LIST: [WakeList; 8] = [
            WakeList::OtherLlc,
            WakeList::OnCpu,
            WakeList::OnCpuActive,
            WakeList::Rfc,
            WakeList::NothingQueued,
            WakeList::NothingQueuedFairOnly,
            WakeList::Always,
            WakeList::Never,
        ];
        const STACKING: [KthreadStacking; 3] =
            [KthreadStacking::Off, KthreadStacking::AnyContext, KthreadStacking::InTask];
        const CLUSTER: [Cluster; 6] = [
            Cluster::Off,
            Cluster::RfcDomain,
            Cluster::RfcV2,
            Cluster::RfcV3,
            Cluster::Domain,
            Cluster::Wakeup,
        ];
        match name {
            "wake_affine_idle" => self.wake_affine_idle = AFFINE[index],
            "wake_list" => self.wake_list = LIST[index],
            "kthread_stacking" => self.kthread_stacking = STACKING[index],
            "cluster" => self.cluster = CLUSTER[index],
            other => unreachable!("variant {other} has no field"),
        }
    }

    /// The values of [`VARIANTS`] in their order, as indices.
    fn variant_indices(&self) -> [usize; 4] {
        [
            self.wake_affine_idle as usize,
            self.wake_list as usize,
            self.kthread_stacking as usize,
            self.cluster as usize,
        ]
    }

    fn unknown(name: &str) -> PolicyError {
        let features = FEATURES.iter().map(|row| row.name);
        let variants = VARIANTS.iter().map(|row| row.name);
        let tunables = TUNABLES.iter().map(|row| row.name);
        let nearest = features
            .chain(variants)
            .chain(tunables)
            .map(|known| (strsim::levenshtein(&known.to_lowercase(), &name.to_lowercase()), known))
            .min()
            .filter(|(distance, known)| *distance <= known.len() / 3)
            .map(|(_, known)| known.to_owned());
        PolicyError::UnknownSetting { name: name.to_owned(), nearest }
    }

    /// The kernel generation.
    #[must_use]
    pub const fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Is `feature` on?
    #[must_use]
    pub const fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// The features that are on.
    #[must_use]
    pub const fn features(&self) -> FeatureSet {
        self.features
    }

    /// The tunables in force on a machine with `cpus` CPUs on line.
    #[must_use]
    pub fn tunables(&self, cpus: usize) -> Tunables {
        let mut tunables = Tunables::of(self.kernel, cpus, self.scaling);
        for (name, value) in &self.set {
            let row = TUNABLES.iter().find(|row| row.name == *name).expect("checked when set");
            tunables.set(row.tunable, *value);
        }
        tunables
    }

    /// What differs from the kernel's defaults, as the words that [`Policy::apply`] takes.
    #[must_use]
    pub fn changes(&self) -> Vec<String> {
        let default = Self::of(self.kernel);
        let mut words = Vec::new();
        for row in FEATURES.iter().filter(|row| self.has(row.feature) != default.has(row.feature)) {
            words.push(format!("{}{}", if self.has(row.feature) { '+' } else { '-' }, row.name));
        }
        let indices = self.variant_indices().into_iter().zip(default.variant_indices());
        for (row, (ours, theirs)) in VARIANTS.iter().zip(indices) {
            if ours != theirs {
                words.push(format!("{}={}", row.name, row.values[ours].0));
            }
        }
        words.extend(self.set.iter().map(|(name, value)| format!("{name}={value}")));
        words
    }

    /// The value of each variant, by name, with its meaning.
    pub fn variants(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        VARIANTS.iter().zip(self.variant_indices()).map(|(row, index)| {
            let (value, meaning) = row.values[index];
            (row.name, value, meaning)
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kernel)?;
        for word in self.changes() {
            write!(f, " {word}")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_print_what_they_read() {
        for (text, printed) in [
            ("6.12", "linux-6.12"),
            (
                "linux-6.12 -RUN_TO_PARITY base_slice_ns=3000000",
                "linux-6.12 -RUN_TO_PARITY base_slice_ns=3000000",
            ),
            ("linux-6.12 NO_RUN_TO_PARITY +RUN_TO_PARITY", "linux-6.12"),
            ("linux-6.1 NONTASK_CAPACITY NO_TTWU_QUEUE", "linux-6.1 -TTWU_QUEUE"),
            ("linux-5.15 wake_affine_idle=dirty", "linux-5.15 wake_affine_idle=dirty"),
            ("linux-6.12 -CLUSTER", "linux-6.12 cluster=off"),
            ("eevdf-2023-04 +GENTLE_EEVDF hz=1000", "eevdf-2023-04 +GENTLE_EEVDF hz=1000"),
        ] {
            let policy = Policy::parse(text).expect(text);
            assert_eq!(policy.to_string(), printed);
            assert_eq!(Policy::parse(printed).expect(printed), policy);
        }
    }

    #[test]
    fn every_variant_value_is_settable_and_printed() {
        for kernel in Kernel::ALL {
            for row in VARIANTS {
                for (value, _) in row.values {
                    let mut policy = Policy::of(kernel);
                    policy.apply(&format!("{}={value}", row.name)).expect(row.name);
                    assert!(policy.variants().any(|(name, found, _)| name == row.name && found == *value));
                    assert_eq!(Policy::parse(&policy.to_string()), Ok(policy));
                }
            }
        }
    }

    #[test]
    fn refusals_say_why() {
        let refusal = |text: &str| Policy::parse(text).expect_err(text).to_string();
        assert_eq!(refusal("linux-5.5 +RUN_TO_PARITY"), "linux-5.5 has no RUN_TO_PARITY");
        assert_eq!(
            refusal("linux-6.12 -RUN_TO_PARTY"),
            "unknown setting `RUN_TO_PARTY`; did you mean `RUN_TO_PARITY`?"
        );
        assert_eq!(
            refusal("linux-6.12 -ATTACH_AGE_LOAD"),
            "ATTACH_AGE_LOAD cannot be changed: only the default is modelled"
        );
        assert_eq!(refusal("linux-6.12 latency_ns=1000000"), "linux-6.12 has no latency_ns");
        assert_eq!(refusal("linux-6.12 hz=1"), "hz does not take `1`; it takes 24 to 10000");
        assert!(refusal("linux").starts_with("unknown kernel `linux`; known: linux-5.5, "));
        for (asked, nearest) in [
            ("linux-4.4", "linux-5.5"),
            ("linux-5.10", "linux-5.9"),
            ("6.5", "linux-6.1"),
            ("v6.13.7", "linux-6.12"),
            ("linux-6.18.0-rc3", "linux-6.12"),
            ("linux-9", "linux-7.2"),
        ] {
            let expected = format!("unknown kernel `{asked}`; the nearest is {nearest}; known: ");
            assert!(refusal(asked).starts_with(&expected), "{}", refusal(asked));
        }
    }
}
