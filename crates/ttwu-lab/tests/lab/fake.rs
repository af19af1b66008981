//! A stand-in for the simulator, whose effects and noise are known exactly.

use ttwu_fair::{Feature, Policy};
use ttwu_lab::{Cancel, Executor, Measured, Metric, RunError, Setup};
use ttwu_sim::{End, Scenario};
use ttwu_stats::{Better, Random};

/// Runs that cost nothing: `time` is 10 s times the planted effects, with noise that both arms of a seed share and noise of
/// their own.
#[derive(Debug)]
pub(crate) struct Fake {
    /// What a feature that is on does to the time.
    pub(crate) effects: Vec<(Feature, f64)>,
    /// Further factor where both of these are on.
    pub(crate) interaction: Option<(Feature, Feature, f64)>,
    /// Relative standard deviation that arms of one seed share.
    pub(crate) shared_noise: f64,
    /// Relative standard deviation of each run's own.
    pub(crate) own_noise: f64,
    /// The run with this seed panics.
    pub(crate) panics_at: Option<u64>,
    /// During the run with this seed somebody cancels.
    pub(crate) cancels_at: Option<u64>,
}

impl Fake {
    pub(crate) fn quiet() -> Self {
        Self {
            effects: Vec::new(),
            interaction: None,
            shared_noise: 0.0,
            own_noise: 0.0,
            panics_at: None,
            cancels_at: None,
        }
    }

    fn factor(&self, policy: &Policy) -> f64 {
        let on = self.effects.iter().filter(|(feature, _)| policy.has(*feature));
        let alone: f64 = on.map(|(_, factor)| factor).product();
        match self.interaction {
            Some((a, b, factor)) if policy.has(a) && policy.has(b) => alone * factor,
            Some(_) | None => alone,
        }
    }
}

impl Executor for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn run(&self, scenario: &Scenario, cancel: &Cancel) -> Result<Measured, RunError> {
        if self.cancels_at == Some(scenario.seed) {
            cancel.cancel();
        }
        if cancel.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        if self.panics_at == Some(scenario.seed) {
            return Err(RunError::Panicked { seed: scenario.seed, message: "planted".to_owned() });
        }
        let name = format!("{} {}", scenario.policy, scenario.workload.name);
        let own = name
            .bytes()
            .fold(scenario.seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let shared = Random::new(scenario.seed).normal();
        let mut random = Random::new(own);
        let noise = 1.0 + self.shared_noise * shared + self.own_noise * random.normal();
        let time = 10.0 * self.factor(&scenario.policy) * noise;
        let metric = |name: &str, unit: &str, better, value| Metric {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
            value,
        };
        Ok(Measured {
            end: End::Completed,
            sim_ns: (time * 1e9) as u64,
            events: 1000,
            digest: own,
            rows: vec![metric("time", "s", Some(Better::Lower), time)],
            counters: vec![
                metric("ipis", "count", None, (1000.0 * time + 5.0 * random.normal()).round()),
                metric("migrations", "count", None, (500.0 + 20.0 * random.normal()).round()),
            ],
        })
    }
}

/// A small workload on a small machine under this policy.
pub(crate) fn setup(policy: &str) -> Setup {
    let text = format!("machine = \"uma-8\"\nworkload = \"pipe:loop=10\"\npolicy = \"{policy}\"");
    Setup::new("uma-8", Scenario::parse(&text, &ttwu_sim::Nothing).expect(policy))
}
