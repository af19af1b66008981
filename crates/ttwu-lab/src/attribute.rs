//! Which of the settings that differ between two policies carries a difference of results.
//!
//! A *factor* is a feature, a variant, a tunable or the preemption model that differs. What has no setting (the rules that came
//! with a kernel generation) is one factor more, `generation`, and the kernel's number in a policy. For a set `S` of factors,
//! `v(S)` is the result with those of `S` as in B and the rest as in A; a factor does nothing where the kernel of that set has no
//! such setting. `v` of none is A, `v` of all is B.
//!
//! A factor's share is its Shapley value: what adding it changes, averaged over all orders in which A can become B. The
//! values of all factors sum to the whole difference, whatever the interactions. Up to [`EXACT_MAX`] factors all sets are run;
//! above, each seed draws orders of its own and takes each with its reverse, so that the interval over seeds holds what the
//! sampling adds. Beside it stand both ends: the factor alone added to A, and alone taken from B.
//!
//! Sets that come to the same policy are run once.

mod factors;
mod render;

pub use factors::Factor;
pub use render::{render_json, render_text};

use crate::Setup;
use crate::arm::{Arm, SimulatedArm};
use crate::metrics::Metric;
use crate::runs::{Cancel, Executor, FinishedRun, Job, RunError, run_all};
use factors::{Game, Set};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use ttwu_stats::{Better, Interval, Random, describe, student_t_quantile};

/// Factors up to which all sets are run.
pub const EXACT_MAX: usize = 6;
/// Sets are bits.
const FACTORS_MAX: usize = 60;

/// How much to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributePlan {
    /// The result to attribute; `None`: the workload's first.
    pub row: Option<String>,
    /// Seeds.
    pub seeds: usize,
    /// The first seed.
    pub seed: u64,
    /// Orders drawn a seed, each taken with its reverse.
    pub orders: usize,
    /// Threads.
    pub threads: NonZeroUsize,
}

/// A factor with its part in the difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which.
    pub factor: Factor,
    /// Its Shapley value, percent of A's mean.
    pub effect_pct: Interval,
    /// Its share of the whole difference, percent; none where the whole cannot be told from nothing.
    pub share_pct: Option<Interval>,
    /// Adding it alone to A, percent of A's mean.
    pub added_pct: Interval,
    /// Taking it alone from B: what is lost, percent of A's mean.
    pub taken_pct: Interval,
}

/// Which factor carries the difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// Labels of A and B.
    pub arms: [String; 2],
    /// The machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// The result: name, unit, direction.
    pub row: (String, String, Better),
    /// Means in A and B.
    pub means: [f64; 2],
    /// B − A, percent of A's mean.
    pub total_pct: Interval,
    /// The factors, the largest part first.
    pub parts: Vec<Part>,
    /// Whether all sets were run.
    pub exact: bool,
    /// Seeds.
    pub seeds: usize,
    /// Runs made.
    pub runs: usize,
    /// Somebody ended it early.
    pub interrupted: bool,
}

/// Why nothing can be attributed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeError {
    /// Not two simulated arms of one workload on one machine.
    #[error("expected two policies on one machine and workload; {why}")]
    NotTwoPolicies {
        /// What there is instead.
        why: String,
    },
    /// They do not differ.
    #[error("{a} and {b} do not differ in any setting")]
    Same {
        /// One.
        a: String,
        /// The other.
        b: String,
    },
    /// No such result.
    #[error("the workload has no result `{name}`; it has {known}")]
    UnknownRow {
        /// As given.
        name: String,
        /// What there is.
        known: String,
    },
    /// A run failed.
    #[error("{policy}: {error}")]
    Run {
        /// Under which policy.
        policy: String,
        /// Why.
        error: RunError,
    },
    /// No seed is complete.
    #[error("interrupted before a seed had run in all sets")]
    Interrupted,
}

/// Attributes the difference of two arms.
///
/// # Errors
/// When they are not two different policies on one machine and workload, or a run fails.
pub fn attribute(
    arms: &[Arm],
    plan: &AttributePlan,
    executor: &dyn Executor,
    cancel: &Cancel,
    progress: &mut dyn FnMut(FinishedRun<'_>),
) -> Result<Attribution, AttributeError> {
    let [a, b] = two_policies(arms)?;
    let game = Game::new(&a.cells[0].setup, &b.cells[0].setup);
    let count = game.factors().len();
    if count == 0 {
        return Err(AttributeError::Same { a: a.label.clone(), b: b.label.clone() });
    }
    if count > FACTORS_MAX {
        let why = format!("they differ in {count} settings, and at most {FACTORS_MAX} can be told apart");
        return Err(AttributeError::NotTwoPolicies { why });
    }
    let sampling = Sampling::new(count, plan);
    let Jobs { setups, runs } = jobs(&game, &sampling, plan);
    let job_list: Vec<Job<'_>> =
        runs.iter().map(|(setup, seed)| Job { setup: &setups[*setup].1, seed: *seed }).collect();
    let results = run_all(executor, &job_list, plan.threads, cancel, progress);
    let mut values: BTreeMap<(usize, u64), f64> = BTreeMap::new();
    let mut row: Option<Metric> = None;
    for ((setup, seed), result) in runs.iter().zip(results) {
        match result {
            None | Some(Err(RunError::Cancelled)) => {}
            Some(Err(error)) => {
                let policy = setups[*setup].1.template().policy.to_string();
                return Err(AttributeError::Run { policy, error });
            }
            Some(Ok(measured)) => {
                let found = find_row(&measured.rows, plan.row.as_deref())?;
                values.insert((*setup, *seed), found.value);
                row.get_or_insert_with(|| found.clone());
            }
        }
    }
    let row = row.ok_or(AttributeError::Interrupted)?;
    let by_seed = evaluate(&game, &sampling, &setups, &values, plan);
    if by_seed.len() < 2 {
        return Err(AttributeError::Interrupted);
    }
    Ok(summary(&game, &by_seed, [a, b], row, runs.len(), sampling.exact, cancel.is_cancelled()))
}

fn two_policies(arms: &[Arm]) -> Result<[&SimulatedArm; 2], AttributeError> {
    let fail = |why: String| AttributeError::NotTwoPolicies { why };
    let [Arm::Simulated(a), Arm::Simulated(b)] = arms else {
        return Err(fail(format!("there are {} arms, or measured ones", arms.len())));
    };
    let ([one], [other]) = (a.cells.as_slice(), b.cells.as_slice()) else {
        return Err(fail("a range is several workloads".to_owned()));
    };
    let (one, other) = (&one.setup, &other.setup);
    if one.template().topology != other.template().topology {
        return Err(fail(format!("the machines are {} and {}", one.machine(), other.machine())));
    }
    if one.template().workload != other.template().workload {
        let names = [one, other].map(|setup| setup.template().workload.name.clone());
        return Err(fail(format!("the workloads are {}", names.join(" and "))));
    }
    if one.template().costs != other.template().costs {
        return Err(fail("the costs differ, which are no policy's".to_owned()));
    }
    let mut settings = one.template().settings.clone();
    settings.preemption = other.template().settings.preemption;
    if settings != other.template().settings {
        return Err(fail(
            "settings other than the preemption model differ, which are no policy's".to_owned(),
        ));
    }
    Ok([a, b])
}

fn find_row<'a>(rows: &'a [Metric], wanted: Option<&str>) -> Result<&'a Metric, AttributeError> {
    let found = match wanted {
        Some(name) => rows.iter().find(|row| row.name == name),
        None => rows.first(),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let known =
            if names.is_empty() { "none, as the run was cut off".to_owned() } else { names.join(", ") };
        AttributeError::UnknownRow { name: wanted.unwrap_or("(the first)").to_owned(), known }
    })
}

/// Which sets are needed.
struct Sampling {
    exact: bool,
    factors: usize,
    /// Orders by seed; none where all sets are run.
    orders: Vec<Vec<Vec<usize>>>,
}

impl Sampling {
    fn new(factors: usize, plan: &AttributePlan) -> Self {
        let exact = factors <= EXACT_MAX;
        let draw = |seed: u64| {
            let mut random = Random::new(seed);
            let mut orders = Vec::new();
            for _ in 0..plan.orders {
                let mut order: Vec<usize> = (0..factors).collect();
                for last in (1..factors).rev() {
                    order.swap(last, random.below(last + 1));
                }
                orders.push(order.clone());
                order.reverse();
                orders.push(order);
            }
            orders
        };
        let orders = if exact {
            Vec::new()
        } else {
            (0..plan.seeds as u64).map(|seed| draw(plan.seed + seed)).collect()
        };
        Self { exact, factors, orders }
    }

    /// The sets that a seed needs, each once.
    fn sets(&self, seed_index: usize) -> Vec<Set> {
        let all: Set = (1 << self.factors) - 1;
        if self.exact {
            return (0..=all).collect();
        }
        let mut sets = vec![0, all];
        for factor in 0..self.factors {
            sets.extend([1 << factor, all & !(1 << factor)]);
        }
        for order in &self.orders[seed_index] {
            let mut set = 0;
            for factor in order {
                set |= 1 << factor;
                sets.push(set);
            }
        }
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Each factor's Shapley value for a seed, from the values of its sets.
    fn shapley(&self, seed_index: usize, value: &dyn Fn(Set) -> Option<f64>) -> Option<Vec<f64>> {
        let mut parts = vec![0.0; self.factors];
        if self.exact {
            let n = self.factors;
            for (factor, part) in parts.iter_mut().enumerate() {
                for set in (0..1 << n).filter(|set: &Set| set & (1 << factor) == 0) {
                    let size = set.count_ones() as usize;
                    // 1 / (n · C(n − 1, size)): each size of the set before is equally likely.
                    let weight = 1.0 / (n as f64 * binomial(n - 1, size));
                    *part += weight * (value(set | 1 << factor)? - value(set)?);
                }
            }
            return Some(parts);
        }
        let orders = &self.orders[seed_index];
        for order in orders {
            let (mut set, mut before) = (0, value(0)?);
            for factor in order {
                set |= 1 << factor;
                let after = value(set)?;
                parts[*factor] += (after - before) / orders.len() as f64;
                before = after;
            }
        }
        Some(parts)
    }
}

fn binomial(n: usize, k: usize) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// What to run.
struct Jobs {
    /// The different setups, each with its name.
    setups: Vec<(String, Setup)>,
    /// Which of them with which seed; all setups of a seed stand together.
    runs: Vec<(usize, u64)>,
}

fn jobs(game: &Game, sampling: &Sampling, plan: &AttributePlan) -> Jobs {
    let mut setups: Vec<(String, Setup)> = Vec::new();
    let mut runs = Vec::new();
    for index in 0..plan.seeds {
        let mut wanted = Vec::new();
        for set in sampling.sets(index) {
            let name = game.name(set);
            let at = setups.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                setups.push((name, game.setup(set)));
                setups.len() - 1
            });
            wanted.push(at);
        }
        wanted.sort_unstable();
        wanted.dedup();
        runs.extend(wanted.into_iter().map(|setup| (setup, plan.seed + index as u64)));
    }
    Jobs { setups, runs }
}

/// What one seed says.
struct OfSeed {
    ends: [f64; 2],
    shapley: Vec<f64>,
    added: Vec<f64>,
    taken: Vec<f64>,
}

fn evaluate(
    game: &Game,
    sampling: &Sampling,
    setups: &[(String, Setup)],
    values: &BTreeMap<(usize, u64), f64>,
    plan: &AttributePlan,
) -> Vec<OfSeed> {
    let all: Set = (1 << sampling.factors) - 1;
    let mut complete = Vec::new();
    for index in 0..plan.seeds {
        let value = |set: Set| -> Option<f64> {
            let name = game.name(set);
            let at = setups.iter().position(|(known, _)| *known == name)?;
            values.get(&(at, plan.seed + index as u64)).copied()
        };
        let of_seed = || {
            let ends = [value(0)?, value(all)?];
            let each = 0..sampling.factors;
            let added =
                each.clone().map(|factor| Some(value(1 << factor)? - ends[0])).collect::<Option<_>>()?;
            let taken =
                each.map(|factor| Some(ends[1] - value(all & !(1 << factor))?)).collect::<Option<_>>()?;
            Some(OfSeed { ends, shapley: sampling.shapley(index, &value)?, added, taken })
        };
        // A seed that a cancellation cut is left out.
        complete.extend(of_seed());
    }
    complete
}

fn summary(
    game: &Game,
    seeds: &[OfSeed],
    arms: [&SimulatedArm; 2],
    row: Metric,
    runs: usize,
    exact: bool,
    interrupted: bool,
) -> Attribution {
    let mean_of = |end: usize| {
        describe::mean(&seeds.iter().map(|seed| seed.ends[end]).collect::<Vec<_>>())
            .expect("two seeds or more")
    };
    let means = [mean_of(0), mean_of(1)];
    let percent = |take: &dyn Fn(&OfSeed) -> f64| -> Interval {
        let values: Vec<f64> = seeds.iter().map(|seed| 100.0 * take(seed) / means[0]).collect();
        mean_interval(&values)
    };
    let total: &dyn Fn(&OfSeed) -> f64 = &|seed| seed.ends[1] - seed.ends[0];
    let total_pct = percent(total);
    let mut parts: Vec<Part> = game
        .factors()
        .iter()
        .enumerate()
        .map(|(index, factor)| Part {
            factor: factor.clone(),
            effect_pct: percent(&|seed| seed.shapley[index]),
            share_pct: share(seeds, &|seed| seed.shapley[index], total, total_pct),
            added_pct: percent(&|seed| seed.added[index]),
            taken_pct: percent(&|seed| seed.taken[index]),
        })
        .collect();
    parts.sort_by(|a, b| b.effect_pct.estimate.abs().total_cmp(&a.effect_pct.estimate.abs()));
    let setup = &arms[0].cells[0].setup;
    Attribution {
        arms: arms.map(|arm| arm.label.clone()),
        machine: setup.machine().to_owned(),
        workload: setup.template().workload.name.clone(),
        row: (row.name, row.unit, row.better.unwrap_or(Better::Lower)),
        means,
        total_pct,
        parts,
        exact,
        seeds: seeds.len(),
        runs,
        interrupted,
    }
}

/// The mean with its 95 % interval.
fn mean_interval(values: &[f64]) -> Interval {
    let estimate = describe::mean(values).unwrap_or(f64::NAN);
    let error = describe::variance(values).unwrap_or(0.0) / values.len() as f64;
    let reach = student_t_quantile(0.975, (values.len() - 1) as f64).unwrap_or(f64::INFINITY) * error.sqrt();
    Interval { estimate, low: estimate - reach, high: estimate + reach }
}

/// A part as a share of the whole, by the delta method on the ratio of their means over seeds; none where the whole's interval
/// has 0 in it, as a share of nothing means nothing.
fn share(
    seeds: &[OfSeed],
    part: &dyn Fn(&OfSeed) -> f64,
    total: &dyn Fn(&OfSeed) -> f64,
    total_pct: Interval,
) -> Option<Interval> {
    if total_pct.contains(0.0) {
        return None;
    }
    let [parts, totals] = [part, total].map(|take| seeds.iter().map(take).collect::<Vec<f64>>());
    let (part_mean, total_mean) = (describe::mean(&parts)?, describe::mean(&totals)?);
    let ratio = part_mean / total_mean;
    let residuals: Vec<f64> =
        parts.iter().zip(&totals).map(|(part, total)| 100.0 * (part - ratio * total) / total_mean).collect();
    let spread = mean_interval(&residuals);
    let half = (spread.high - spread.low) / 2.0;
    Some(Interval { estimate: 100.0 * ratio, low: 100.0 * ratio - half, high: 100.0 * ratio + half })
}
