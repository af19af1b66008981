//! The five mailing-list threads as experiments: published figures beside simulated ones, claim by claim.
//!
//! An experiment is data: machines with workloads ([`Setup`]), the kernels and patches compared on each ([`Variant`]), and what
//! the thread argues from ([`Claim`]). All cells run with common seeds; a claim is a ratio of means over them with its interval.
//! Then every uncertain cost is halved and doubled, and the claims are judged again.
//!
//! Published figures are never inputs. A cost may be fitted on a thread's *baseline* only; the report lists those
//! ([`Fitted`]), and whatever claim rests on nothing but the fitted baseline is refused by a test.

mod claim;
mod cluster;
mod dma;
mod eevdf;
mod files;
mod quantity;
mod render;
#[cfg(test)]
mod tests;
mod wakelist;
mod xfs;

pub use claim::{Bound, Claim, Measure, Standing, Verdict};
pub use files::{ScenarioFile, scenario_files};
pub use quantity::Quantity;
pub use render::{render_headlines, render_json, render_text};

use ttwu_fair::{Policy, ScanEnd};
use ttwu_model::{Level, Machine};
use ttwu_sim::{Costs, Scenario, Settings};
use ttwu_stats::Interval;
use ttwu_workload::{MachineInfo, Workload};

use crate::runs::{Cancel, RunError, run_each, simulate};
use std::num::NonZeroUsize;

/// A cell of an experiment: setup and variant, by name.
pub type CellId = (&'static str, &'static str);

/// A kernel or patch.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name within the experiment, as the thread says.
    pub id: &'static str,
    /// The policy, in the command's words.
    pub policy: &'static str,
    /// Options added to the setup's workload.
    pub options: &'static str,
}

impl Variant {
    /// A variant that differs in the policy alone.
    #[must_use]
    pub const fn policy(id: &'static str, policy: &'static str) -> Self {
        Self { id, policy, options: "" }
    }
}

/// A machine with a workload.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Its name within the experiment.
    pub id: &'static str,
    /// In words.
    pub title: &'static str,
    /// A named machine.
    pub machine: &'static str,
    /// A preset of costs.
    pub costs: &'static str,
    /// The workload, in the command's words.
    pub workload: &'static str,
    /// The end of a run at the latest, ns of simulated time.
    pub until_ns: u64,
    /// Settings and costs of this setup.
    pub prepare: Option<fn(&mut Scenario)>,
    /// What is compared on it.
    pub variants: &'static [Variant],
}

/// A number that was chosen by looking at a result.
#[derive(Clone, Copy, Debug)]
pub struct Fitted {
    /// What, with its value.
    pub what: &'static str,
    /// On which baseline.
    pub on: &'static str,
}

/// A thread as an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// `dma`, `cluster`, `xfs`, `wakelist` or `eevdf`.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// The mails.
    pub thread: &'static str,
    /// Machines and workloads.
    pub setups: &'static [Setup],
    /// What it argues from.
    pub claims: &'static [Claim],
    /// The three costs whose halving and doubling is tried.
    pub uncertain: [&'static str; 3],
    /// What was fitted.
    pub fitted: &'static [Fitted],
}

/// All, in the order of the threads.
pub static EXPERIMENTS: [&Experiment; 5] =
    [&dma::EXPERIMENT, &cluster::EXPERIMENT, &xfs::EXPERIMENT, &wakelist::EXPERIMENT, &eevdf::EXPERIMENT];

/// The claims of the one-screen version.
const HEADLINES: [&str; 10] = [
    "dma.epyc-order",
    "dma.xeon-size",
    "cluster.g3",
    "xfs.c1",
    "xfs.order-patch",
    "xfs.c32",
    "wakelist.p50",
    "wakelist.hackbench",
    "eevdf.67-33",
    "eevdf.switches",
];

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Seeds a cell.
    pub seeds: u64,
    /// Seeds a cell and changed cost; 0 leaves the sensitivity out.
    pub sensitivity_seeds: u64,
    /// Threads.
    pub threads: usize,
}

/// A claim with what came out.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The claim.
    pub claim: &'static Claim,
    /// Simulated, with its 95 % interval over seeds.
    pub simulated: Option<Interval>,
    /// With the condition off, if there is such a form.
    pub without_condition: Option<Interval>,
    /// What it comes to.
    pub verdict: Verdict,
    /// Costs whose halving or doubling turns the verdict, with the factor: `("enqueue_remote_ns", "x0.5", estimate)`.
    pub sensitive_to: Vec<(&'static str, &'static str, Option<f64>)>,
    /// Was the sensitivity tried?
    pub sensitivity_tried: bool,
}

/// What the threads asked for and nobody posted, as means over seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct CellCounters {
    /// Which cell.
    pub cell: CellId,
    /// Wake-ups a run.
    pub wakeups: f64,
    /// Scans that found nothing, by what ended them, and all, a run.
    pub scans_budget: f64,
    /// As above: exhausted.
    pub scans_exhausted: f64,
    /// As above: forbidden.
    pub scans_forbidden: f64,
    /// As above: a CPU was found.
    pub scans_hit: f64,
    /// Migrations across clusters within an LLC, across LLCs within a node, across nodes.
    pub across_cluster: f64,
    /// Across LLCs.
    pub across_llc: f64,
    /// Across nodes.
    pub across_node: f64,
    /// Preemptions by wake-ups.
    pub preempt_wake: f64,
    /// By ticks.
    pub preempt_tick: f64,
    /// Interrupts between CPUs.
    pub ipis: f64,
    /// CPUs hit, where the workload counts them.
    pub cpus_hit: Option<f64>,
}

/// An experiment's results.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// Which.
    pub experiment: &'static Experiment,
    /// Its claims.
    pub claims: Vec<Judged>,
    /// The counters.
    pub counters: Vec<CellCounters>,
    /// How much was run.
    pub effort: Effort,
    /// Runs made.
    pub runs: usize,
    /// Scheduler events simulated.
    pub events: u64,
    /// Somebody ended it early: the seeds that all cells had run by then are what there is, and [`Effort::seeds`] counts them.
    pub interrupted: bool,
    /// Runs that gave nothing, with the cell and the reason. Claims that read them are missing.
    pub failed: Vec<(CellId, RunError)>,
}

/// A quantity's figures, one a seed.
type Column = (Quantity, Vec<Option<f64>>);

/// Quantities of runs, by cell and seed.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    cells: Vec<(CellId, Vec<Column>)>,
}

impl Samples {
    /// The figures of all seeds; `None` if one is missing.
    #[must_use]
    pub fn of(&self, cell: CellId, quantity: Quantity) -> Option<Vec<f64>> {
        let (_, columns) = self.cells.iter().find(|(id, _)| *id == cell)?;
        let (_, values) = columns.iter().find(|(what, _)| *what == quantity)?;
        values.iter().copied().collect()
    }

    fn push(&mut self, cell: CellId, quantities: &[Quantity], values: Vec<Option<f64>>) {
        let at = self.cells.iter().position(|(id, _)| *id == cell).unwrap_or_else(|| {
            self.cells.push((cell, quantities.iter().map(|&quantity| (quantity, Vec::new())).collect()));
            self.cells.len() - 1
        });
        for ((_, column), value) in self.cells[at].1.iter_mut().zip(values) {
            column.push(value);
        }
    }
}

impl Experiment {
    /// The experiment of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.into_iter().find(|experiment| experiment.name == name)
    }

    fn cells(&self) -> impl Iterator<Item = (&'static Setup, &'static Variant)> + use<> {
        self.setups.iter().flat_map(|setup| setup.variants.iter().map(move |variant| (setup, variant)))
    }

    /// Quantities that claims read of a cell.
    fn quantities(&self, cell: CellId) -> Vec<Quantity> {
        let mut found = Vec::new();
        for claim in self.claims {
            for measure in [Some(claim.measure), claim.without_condition].into_iter().flatten() {
                if measure.cells().contains(&cell) && !found.contains(&measure.quantity()) {
                    found.push(measure.quantity());
                }
            }
        }
        found
    }

    /// Runs everything and judges the claims. `progress` gets runs done and runs in all.
    ///
    /// # Panics
    /// If a shipped setup does not parse: a test sees to it that all do.
    pub fn reproduce(&'static self, effort: Effort, progress: &(dyn Fn(usize, usize) + Sync)) -> Reproduced {
        self.reproduce_until(effort, &Cancel::new(), progress)
    }

    /// As [`Experiment::reproduce`], until it is cancelled: then of what all cells have.
    ///
    /// # Panics
    /// As [`Experiment::reproduce`].
    pub fn reproduce_until(
        &'static self,
        effort: Effort,
        cancel: &Cancel,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Reproduced {
        let all: Vec<_> = self.claims.iter().collect();
        self.reproduce_claims(&all, &self.cells().collect::<Vec<_>>(), effort, cancel, progress)
    }

    /// The few claims by which the thread is known, on their own cells.
    ///
    /// # Panics
    /// As [`Experiment::reproduce`].
    pub fn headlines(&'static self, effort: Effort, progress: &(dyn Fn(usize, usize) + Sync)) -> Reproduced {
        let claims: Vec<_> = self.claims.iter().filter(|claim| HEADLINES.contains(&claim.id)).collect();
        let read: Vec<CellId> = claims.iter().flat_map(|claim| claim.measure.cells()).collect();
        let cells: Vec<_> =
            self.cells().filter(|(setup, variant)| read.contains(&(setup.id, variant.id))).collect();
        self.reproduce_claims(&claims, &cells, effort, &Cancel::new(), progress)
    }

    fn reproduce_claims(
        &'static self,
        claims: &[&'static Claim],
        cells: &[(&'static Setup, &'static Variant)],
        effort: Effort,
        cancel: &Cancel,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Reproduced {
        let quantities: Vec<_> =
            cells.iter().map(|(setup, variant)| self.quantities((setup.id, variant.id))).collect();
        let mut jobs = Vec::new();
        let mut plan = |seeds: u64, scaled| {
            for seed in 1..=seeds {
                let cell = |(number, &(setup, variant)): (usize, &(&'static Setup, &'static Variant))| {
                    let quantities: &[Quantity] = &quantities[number];
                    Job { setup, variant, seed, scaled, quantities }
                };
                jobs.extend(cells.iter().enumerate().map(cell));
            }
        };
        plan(effort.seeds, None);
        let scales = [("x0.5", 1, 2), ("x2", 2, 1)];
        for (cost, scale) in self.uncertain.into_iter().flat_map(|cost| scales.map(|scale| (cost, scale))) {
            plan(effort.sensitivity_seeds, Some((cost, scale.1, scale.2)));
        }
        let base_jobs = effort.seeds as usize * cells.len();
        let threads = NonZeroUsize::new(effort.threads).unwrap_or(NonZeroUsize::MIN);
        let results = run_each(&jobs, threads, cancel, |job| job.run(cancel), &mut |_, _, done| {
            progress(done, jobs.len());
        });
        let interrupted = cancel.is_cancelled();
        // A seed counts when all cells have run it: samples are pairs.
        let whole = |seed: &&[Option<Result<Ran, RunError>>]| {
            seed.iter().all(|run| !matches!(run, None | Some(Err(RunError::Cancelled))))
        };
        let collect = |results: &[Option<Result<Ran, RunError>>]| {
            let mut samples = Samples::default();
            for seed in results.chunks(cells.len()).filter(whole) {
                for (number, run) in seed.iter().enumerate() {
                    let (setup, variant) = cells[number];
                    let nothing = || vec![None; quantities[number].len()];
                    let values = match run {
                        Some(Ok(ran)) => ran.values.clone(),
                        Some(Err(_)) | None => nothing(),
                    };
                    samples.push((setup.id, variant.id), &quantities[number], values);
                }
            }
            samples
        };
        let (base, scaled) = results.split_at(base_jobs);
        let samples = collect(base);
        let each = effort.sensitivity_seeds as usize * cells.len();
        let mut varied = Vec::new();
        if each > 0 {
            let names = self.uncertain.into_iter().flat_map(|cost| scales.map(|scale| (cost, scale.0)));
            let done = names.zip(scaled.chunks(each)).filter(|(_, chunk)| whole(chunk));
            varied.extend(done.map(|(name, chunk)| (name, collect(chunk))));
        }
        let ran =
            |run: &Option<Result<Ran, RunError>>| run.as_ref().and_then(|run| run.as_ref().ok().cloned());
        let counters = cells.iter().enumerate().map(|(at, (setup, variant))| {
            let seeds = base.chunks(cells.len()).filter(whole);
            let runs: Vec<Ran> = seeds.filter_map(|seed| ran(&seed[at])).collect();
            mean_counters((setup.id, variant.id), &runs)
        });
        let failed = jobs.iter().zip(&results).filter_map(|(job, run)| match run {
            Some(Err(RunError::Cancelled)) | Some(Ok(_)) | None => None,
            Some(Err(error)) => Some(((job.setup.id, job.variant.id), error.clone())),
        });
        let all: Vec<Ran> = results.iter().filter_map(ran).collect();
        Reproduced {
            experiment: self,
            claims: claims.iter().map(|claim| judge(claim, &samples, &varied)).collect(),
            counters: counters.collect(),
            effort: Effort { seeds: base.chunks(cells.len()).filter(whole).count() as u64, ..effort },
            runs: all.len(),
            events: all.iter().map(|ran| ran.events).sum(),
            interrupted,
            failed: failed.collect(),
        }
    }

    /// The scenarios of all cells with this seed, each with its name `experiment/setup/variant`.
    pub fn scenarios(&self, seed: u64) -> Vec<(String, Scenario)> {
        let name = self.name;
        self.cells()
            .map(|(setup, variant)| {
                let job = Job { setup, variant, seed, scaled: None, quantities: &[] };
                (format!("{name}/{}/{}", setup.id, variant.id), job.scenario())
            })
            .collect()
    }
}

fn judge(
    claim: &'static Claim,
    samples: &Samples,
    varied: &[((&'static str, &'static str), Samples)],
) -> Judged {
    let simulated = claim.measure.estimate(samples);
    let verdict = claim.verdict(simulated);
    let mut sensitive_to = Vec::new();
    if verdict != Verdict::NotClaimed {
        for ((cost, factor), samples) in varied {
            let estimate = claim.measure.estimate(samples);
            if claim.verdict(estimate).estimate_holds() != verdict.estimate_holds() {
                sensitive_to.push((*cost, *factor, estimate.map(|interval| interval.estimate)));
            }
        }
    }
    Judged {
        claim,
        simulated,
        without_condition: claim.without_condition.and_then(|measure| measure.estimate(samples)),
        verdict,
        sensitive_to,
        sensitivity_tried: !varied.is_empty(),
    }
}

/// One run to make.
#[derive(Clone, Copy, Debug)]
struct Job<'a> {
    setup: &'static Setup,
    variant: &'static Variant,
    seed: u64,
    scaled: Option<(&'static str, u64, u64)>,
    quantities: &'a [Quantity],
}

/// What is kept of a run.
#[derive(Clone, Debug)]
struct Ran {
    values: Vec<Option<f64>>,
    counters: CellCounters,
    events: u64,
}

impl Job<'_> {
    fn scenario(&self) -> Scenario {
        let Setup { machine, costs, workload, until_ns, prepare, id, .. } = *self.setup;
        let shipped = |what: &str, why: String| -> ! { panic!("shipped setup {id}: {what}: {why}") };
        let known = Machine::find(machine).unwrap_or_else(|| shipped("machine", machine.to_owned()));
        let topology = known.topology();
        let info = MachineInfo { cpus: topology.cpu_bound() as u32 };
        let policy = Policy::parse(self.variant.policy).unwrap_or_else(|e| shipped("policy", e.to_string()));
        let mut scenario = Scenario {
            workload: Workload::parse(&format!("{workload}{}", self.variant.options), &info)
                .unwrap_or_else(|e| shipped("workload", e.to_string())),
            topology,
            settings: Settings::of(policy.kernel()),
            policy,
            costs: Costs::preset(costs).unwrap_or_else(|e| shipped("costs", e.to_string())),
            seed: self.seed,
            until_ns,
        };
        if let Some(prepare) = prepare {
            prepare(&mut scenario);
        }
        if let Some((cost, num, den)) = self.scaled {
            scenario.costs.scale(cost, num, den).unwrap_or_else(|e| shipped("cost", e.to_string()));
        }
        scenario
    }

    fn run(&self, cancel: &Cancel) -> Result<Ran, RunError> {
        let scenario = self.scenario();
        let outcome = simulate(&scenario, cancel)?;
        let values =
            self.quantities.iter().map(|quantity| quantity.of(&scenario.workload, &outcome)).collect();
        let c = &outcome.counters;
        let scans = |end: ScanEnd| c.scans.get(&end).copied().unwrap_or(0) as f64;
        let levels = |wanted: &[Level]| -> f64 {
            let all = Level::ALL.iter().zip(c.migrations);
            all.filter(|(level, _)| wanted.contains(level)).map(|(_, count)| count as f64).sum()
        };
        // Between clusters of one LLC is what the nearest thing shared being the LLC means, where there are clusters.
        let counters = CellCounters {
            cell: (self.setup.id, self.variant.id),
            wakeups: c.wakeups as f64,
            scans_budget: scans(ScanEnd::Budget),
            scans_exhausted: scans(ScanEnd::Exhausted),
            scans_forbidden: scans(ScanEnd::Forbidden),
            scans_hit: scans(ScanEnd::Hit),
            across_cluster: levels(&[Level::Llc]),
            across_llc: levels(&[Level::Die, Level::Node]),
            across_node: levels(&[Level::Remote]),
            preempt_wake: c.preempt_wake as f64,
            preempt_tick: c.preempt_tick as f64,
            ipis: c.ipis as f64,
            cpus_hit: cpus_hit(&scenario.workload, &outcome),
        };
        Ok(Ran { values, counters, events: outcome.events })
    }
}

fn cpus_hit(workload: &Workload, outcome: &ttwu_sim::Outcome) -> Option<f64> {
    let meter = workload.meters.iter().find(|meter| meter.kind == ttwu_workload::MeterKind::Cpus)?;
    quantity::cpus_of(workload, outcome, &meter.name)
}

fn mean_counters(cell: CellId, runs: &[Ran]) -> CellCounters {
    let mean = |of: fn(&CellCounters) -> f64| {
        runs.iter().map(|ran| of(&ran.counters)).sum::<f64>() / runs.len() as f64
    };
    let hits: Option<Vec<f64>> = runs.iter().map(|ran| ran.counters.cpus_hit).collect();
    CellCounters {
        cell,
        wakeups: mean(|c| c.wakeups),
        scans_budget: mean(|c| c.scans_budget),
        scans_exhausted: mean(|c| c.scans_exhausted),
        scans_forbidden: mean(|c| c.scans_forbidden),
        scans_hit: mean(|c| c.scans_hit),
        across_cluster: mean(|c| c.across_cluster),
        across_llc: mean(|c| c.across_llc),
        across_node: mean(|c| c.across_node),
        preempt_wake: mean(|c| c.preempt_wake),
        preempt_tick: mean(|c| c.preempt_tick),
        ipis: mean(|c| c.ipis),
        cpus_hit: hits.map(|hits| hits.iter().sum::<f64>() / hits.len() as f64),
    }
}
