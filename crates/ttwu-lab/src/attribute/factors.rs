//! In what two policies differ, and the policies between them.

use crate::Setup;
use ttwu_fair::{FEATURES, Feature, FeatureRow, Kernel, Policy, TUNABLES};
use ttwu_sim::PreemptionModel;

/// A set of factors, one bit each.
pub(super) type Set = u64;

/// Something in which two policies differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// The setting's name; `preemption`, or `generation` for what has none.
    pub name: String,
    /// Its value in A.
    pub from: String,
    /// Its value in B.
    pub to: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Feature(Feature),
    /// A tunable or variant, by name.
    Value(&'static str),
    Preemption([PreemptionModel; 2]),
    Generation,
}

/// Two arms and what differs between them.
pub(super) struct Game {
    a: Setup,
    b: Setup,
    factors: Vec<Factor>,
}

impl Game {
    pub(super) fn new(a: &Setup, b: &Setup) -> Self {
        let mut game = Self { a: a.clone(), b: b.clone(), factors: Vec::new() };
        let (old, new) = (&a.template().policy, &b.template().policy);
        let cpus = a.template().topology.cpu_bound();
        game.features(old, new);
        game.values(old, new, cpus);
        let preemption = [a, b].map(|setup| setup.template().settings.preemption);
        if preemption[0] != preemption[1] {
            let [from, to] = preemption.map(|model| format!("{model:?}").to_lowercase());
            let kind = Kind::Preemption(preemption);
            game.factors.push(Factor { name: "preemption".to_owned(), from, to, kind });
        }
        if old.kernel() != new.kernel() {
            let [from, to] = [old, new].map(|policy| policy.kernel().to_string());
            game.factors.push(Factor { name: "generation".to_owned(), from, to, kind: Kind::Generation });
        }
        game
    }

    pub(super) fn factors(&self) -> &[Factor] {
        &self.factors
    }

    fn features(&mut self, old: &Policy, new: &Policy) {
        for row in FEATURES.iter().filter(|row| old.has(row.feature) != new.has(row.feature)) {
            // What neither kernel lets one switch belongs to its generation.
            let switchable = |kernel: Kernel| row.exists_in(kernel) && row.refused.is_none();
            if !switchable(old.kernel()) && !switchable(new.kernel()) {
                continue;
            }
            let word = |policy: &Policy| match (row.exists_in(policy.kernel()), policy.has(row.feature)) {
                (_, true) => "on",
                (true, false) => "off",
                (false, false) => "absent",
            };
            let (from, to) = (word(old).to_owned(), word(new).to_owned());
            self.factors.push(Factor {
                name: row.name.to_owned(),
                from,
                to,
                kind: Kind::Feature(row.feature),
            });
        }
    }

    fn values(&mut self, old: &Policy, new: &Policy, cpus: usize) {
        for ((name, from, _), (_, to, _)) in
            old.variants().zip(new.variants()).filter(|(old, new)| old.1 != new.1)
        {
            let (from, to) = (from.to_owned(), to.to_owned());
            self.factors.push(Factor { name: name.to_owned(), from, to, kind: Kind::Value(name) });
        }
        let (before, after) = (old.tunables(cpus), new.tunables(cpus));
        for row in TUNABLES.iter().filter(|row| row.exists_in(old.kernel()) && row.exists_in(new.kernel())) {
            let (from, to) = (before.get(row.tunable), after.get(row.tunable));
            if from != to {
                let (from, to) = (from.to_string(), to.to_string());
                self.factors.push(Factor {
                    name: row.name.to_owned(),
                    from,
                    to,
                    kind: Kind::Value(row.name),
                });
            }
        }
    }

    /// With the factors of `set` as in B and the others as in A.
    fn between(&self, set: Set) -> (Policy, PreemptionModel) {
        let has = |index: usize| set & (1 << index) != 0;
        let newer = self.factors.iter().position(|factor| factor.kind == Kind::Generation).is_some_and(has);
        let start = if newer { &self.b } else { &self.a };
        let mut policy = start.template().policy.clone();
        let mut preemption = start.template().settings.preemption;
        for (index, factor) in self.factors.iter().enumerate() {
            match factor.kind {
                Kind::Feature(feature) => {
                    let row = FeatureRow::of(feature);
                    let origin = if has(index) { &self.b } else { &self.a };
                    let sign = if origin.template().policy.has(feature) { '+' } else { '-' };
                    // A kernel without it leaves it out: there the factor does nothing.
                    if row.exists_in(policy.kernel()) {
                        let _ = policy.apply(&format!("{sign}{}", row.name));
                    }
                }
                Kind::Value(name) => {
                    let value = if has(index) { &factor.to } else { &factor.from };
                    let done = policy.apply(&format!("{name}={value}"));
                    debug_assert!(done.is_ok(), "{name}={value}: {done:?}");
                }
                Kind::Preemption([from, to]) => preemption = if has(index) { to } else { from },
                Kind::Generation => {}
            }
        }
        (policy, preemption)
    }

    /// Equal for sets that come to the same.
    pub(super) fn name(&self, set: Set) -> String {
        let (policy, preemption) = self.between(set);
        format!("{policy} {preemption:?}")
    }

    pub(super) fn setup(&self, set: Set) -> Setup {
        let (policy, preemption) = self.between(set);
        let mut scenario = self.a.template().clone();
        scenario.policy = policy;
        scenario.settings.preemption = preemption;
        Setup::new(self.a.machine(), scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttwu_sim::{Nothing, Scenario};

    fn setup(policy: &str) -> Setup {
        let text = format!("machine = \"uma-8\"\nworkload = \"pipe:loop=10\"\npolicy = \"{policy}\"");
        Setup::new("uma-8", Scenario::parse(&text, &Nothing).expect(policy))
    }

    #[test]
    fn none_is_a_and_all_is_b_between_any_two_kernels() {
        for a in Kernel::ALL {
            for b in Kernel::ALL {
                let game = Game::new(&setup(a.name()), &setup(b.name()));
                let all = (1 << game.factors().len()) - 1;
                let [first, last] = [0, all].map(|set| game.setup(set));
                // A tunable that is written out as its default is the same policy with more words.
                let same = |setup: &Setup, kernel: Kernel| {
                    let (found, wanted) = (&setup.template().policy, Policy::of(kernel));
                    found.kernel() == kernel
                        && found.features() == wanted.features()
                        && found.variants().eq(wanted.variants())
                        && TUNABLES.iter().all(|row| {
                            found.tunables(8).get(row.tunable) == wanted.tunables(8).get(row.tunable)
                        })
                        && setup.template().settings.preemption == PreemptionModel::of(kernel)
                };
                assert!(same(&first, a), "{a} to {b}: {}", first.template().policy);
                assert!(same(&last, b), "{a} to {b}: {}", last.template().policy);
            }
        }
    }

    #[test]
    fn factors_name_what_differs() {
        let names = |a: &str, b: &str| -> Vec<String> {
            let game = Game::new(&setup(a), &setup(b));
            game.factors().iter().map(|f| format!("{} {}->{}", f.name, f.from, f.to)).collect()
        };
        assert_eq!(names("linux-6.12", "linux-6.12 -RUN_TO_PARITY"), ["RUN_TO_PARITY on->off"]);
        assert_eq!(names("linux-6.12", "linux-6.12 hz=1000 wake_list=never").len(), 2);
        assert_eq!(names("linux-6.12", "linux-6.12"), [""; 0]);
        let generations = names("linux-6.1", "linux-6.6");
        assert!(generations.contains(&"RUN_TO_PARITY absent->on".to_owned()), "{generations:?}");
        assert!(
            generations.last().expect("some").starts_with("generation linux-6.1->linux-6.6"),
            "{generations:?}"
        );
    }
}
