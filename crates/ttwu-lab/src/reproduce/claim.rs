//! What a thread argues from, and when a simulation bears it out.

use ttwu_stats::{Interval, ratio_of_means_paired};

use super::{CellId, Quantity, Samples};

/// How much a claim may be held against the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It must hold: a failure is a fault of the model.
    Robust,
    /// It holds under a condition, which is printed beside the verdict; the claim may name the same comparison with the
    /// condition off.
    Conditional(&'static str),
    /// Simulated beside published, without a verdict: the reason.
    NotClaimed(&'static str),
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    /// Mean of `new` / mean of `base`, over common seeds.
    Ratio {
        /// Of what.
        quantity: Quantity,
        /// The changed kernel or machine.
        new: CellId,
        /// What it is compared with.
        base: CellId,
    },
    /// Ratio of `new` to `base` (seed by seed), divided by the ratio of `new_off` to `base_off`.
    RatioOfRatios {
        /// Of what.
        quantity: Quantity,
        /// Upper ratio.
        on: (CellId, CellId),
        /// Lower ratio.
        off: (CellId, CellId),
    },
    /// The mean itself.
    Mean {
        /// Of what.
        quantity: Quantity,
        /// Where.
        of: CellId,
    },
}

/// Which estimates bear a claim out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Between these.
    Within(f64, f64),
}

impl Bound {
    /// Does this value lie in it?
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(low) => value >= low,
            Self::AtMost(high) => value <= high,
            Self::Within(low, high) => low <= value && value <= high,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(low) => write!(f, ">= {low}"),
            Self::AtMost(high) => write!(f, "<= {high}"),
            Self::Within(low, high) => write!(f, "{low}..{high}"),
        }
    }
}

/// A claim of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its name, such as `wakelist.p50`.
    pub id: &'static str,
    /// In words.
    pub text: &'static str,
    /// The published figures as printed there.
    pub published: &'static str,
    /// The same quantity as is simulated, from those figures; `None` where the thread argues in words.
    pub published_value: Option<f64>,
    /// How much it may be held against the model.
    pub standing: Standing,
    /// What is compared.
    pub measure: Measure,
    /// The same with the condition off, where there is one: shown, and expected *not* to hold.
    pub without_condition: Option<Measure>,
    /// What the estimate must be.
    pub bound: Bound,
}

/// Why claims fail, as far as is known: printed beside them while they do.
const EXPLAINED: [(&str, &str); 5] = [
    (
        "dma.xeon-size",
        "runs are bistable: most stay in the deep state for all 1000 transfers (13.6 thousand a second, as published), some fall out of it early; \
         and the device's times, which both arms share, are estimates that make dirty a quarter slower than published",
    ),
    (
        "wakelist.pipe",
        "the gain in time is near the published one (1.4 us a wake-up against 1.7), but a simulated wake-up with all it entails takes 9 us, where \
         3.19 million loops a second of 104 pairs are 16, so that it is more in per cent",
    ),
    (
        "cluster.packed",
        "a pipe's own lines cost as much within a cluster as across (the preset's call costs are lumped estimates), so that only wake-ups and moves feel \
         the distance; and these runs are 20 ms of start, of which there are no more different ones than CPUs on which the shell can sit",
    ),
    ("eevdf.tweak", "GENTLE_EEVDF spares too few preemptions here; not understood"),
    (
        "eevdf.wakeup-preemption",
        "two thirds of the growth are sleeps: the pipeline, which CFS lets fall behind, keeps up and sleeps between its pieces; for the rest the tick alone \
         preempts 2.5 times as often as under CFS, since a base slice of 3 ms ends at every tick of 4 ms",
    ),
];

impl Claim {
    /// Why it fails, if that is known.
    #[must_use]
    pub fn explanation(&self) -> Option<&'static str> {
        EXPLAINED.iter().find(|(id, _)| *id == self.id).map(|(_, why)| *why)
    }
}

/// Does it hold?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies within the bound.
    Holds,
    /// The estimate does, part of its interval does not.
    Leans,
    /// The estimate lies outside.
    Fails,
    /// Nothing is claimed.
    NotClaimed,
    /// A run gave no figure.
    Missing,
}

impl Verdict {
    /// One word for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Leans => "leans",
            Self::Fails => "FAILS",
            Self::NotClaimed => "no claim",
            Self::Missing => "missing",
        }
    }

    /// Does the estimate bear the claim out?
    #[must_use]
    pub const fn estimate_holds(self) -> bool {
        matches!(self, Self::Holds | Self::Leans)
    }
}

impl Measure {
    /// The cells that it reads.
    #[must_use]
    pub fn cells(&self) -> Vec<CellId> {
        match *self {
            Self::Ratio { new, base, .. } => vec![new, base],
            Self::RatioOfRatios { on, off, .. } => vec![on.0, on.1, off.0, off.1],
            Self::Mean { of, .. } => vec![of],
        }
    }

    /// Its quantity.
    #[must_use]
    pub const fn quantity(&self) -> Quantity {
        match *self {
            Self::Ratio { quantity, .. }
            | Self::RatioOfRatios { quantity, .. }
            | Self::Mean { quantity, .. } => quantity,
        }
    }

    /// The estimate with its 95 % interval over seeds; `None` when a run gave no figure.
    #[must_use]
    pub fn estimate(&self, samples: &Samples) -> Option<Interval> {
        match *self {
            Self::Ratio { quantity, new, base } => {
                let (new, base) = (samples.of(new, quantity)?, samples.of(base, quantity)?);
                ratio(&new, &base)
            }
            Self::RatioOfRatios { quantity, on, off } => {
                let quotient = |pair: (CellId, CellId)| -> Option<Vec<f64>> {
                    let (new, base) = (samples.of(pair.0, quantity)?, samples.of(pair.1, quantity)?);
                    Some(new.iter().zip(&base).map(|(new, base)| new / base).collect())
                };
                ratio(&quotient(on)?, &quotient(off)?)
            }
            Self::Mean { quantity, of } => {
                let values = samples.of(of, quantity)?;
                // A mean as the ratio to ones: the same interval for all measures.
                ratio(&values, &vec![1.0; values.len()])
            }
        }
    }
}

/// Ratio of means over common seeds. Where neither varies, it is exact; where the logarithmic interval cannot be had (a mean
/// of 0), there is none.
fn ratio(new: &[f64], base: &[f64]) -> Option<Interval> {
    let constant = |values: &[f64]| values.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits());
    if let (Some(&first), Some(&other)) = (new.first(), base.first())
        && constant(new)
        && constant(base)
        && other != 0.0
    {
        let estimate = first / other;
        return Some(Interval { estimate, low: estimate, high: estimate });
    }
    // Nothing at all against something: no logarithm, but no doubt either.
    if new.iter().all(|value| *value == 0.0) && base.iter().all(|value| *value > 0.0) {
        return Some(Interval { estimate: 0.0, low: 0.0, high: 0.0 });
    }
    ratio_of_means_paired(new, base)
}

impl Claim {
    /// The verdict on an estimate.
    #[must_use]
    pub fn verdict(&self, estimate: Option<Interval>) -> Verdict {
        if let Standing::NotClaimed(_) = self.standing {
            return Verdict::NotClaimed;
        }
        let Some(interval) = estimate else { return Verdict::Missing };
        if !self.bound.holds(interval.estimate) {
            return Verdict::Fails;
        }
        if self.bound.holds(interval.low) && self.bound.holds(interval.high) {
            Verdict::Holds
        } else {
            Verdict::Leans
        }
    }
}
