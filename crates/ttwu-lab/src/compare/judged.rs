//! Samples into rows with verdicts.

use super::{CompareError, Moved, Plan};
use crate::arm::{KeptArm, Series};
use ttwu_stats::{
    Better, Judgement, Pairing, Question, Verdict, detectable_share_of_intervals, holm, judge,
    student_t_quantile,
};

/// An arm as a report names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmInfo {
    /// As it was asked for.
    pub label: String,
    /// Its machine, where known.
    pub machine: Option<String>,
    /// Policy and workload, or what the file is.
    pub what: String,
    /// Its runs were simulated, now or before; else they were measured.
    pub simulated: bool,
}

/// One arm of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowArm {
    /// One value a run; empty when it was not measured.
    pub samples: Vec<f64>,
    /// Against the baseline; none of the baseline itself and of what was not measured.
    pub judgement: Option<Judgement>,
    /// The probability after Holm's correction over all rows and arms.
    pub probability_holm: Option<f64>,
    /// What is said, the correction applied; none as for `judgement`.
    pub verdict: Option<Verdict>,
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// By arm.
    pub arms: Vec<RowArm>,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The arms, the baseline first.
    pub arms: Vec<ArmInfo>,
    /// The results.
    pub rows: Vec<Row>,
    /// The counters that moved between the baseline and each further arm, the most moved first.
    pub why: Vec<Vec<Moved>>,
    /// Whether counters were compared: a kept result has none.
    pub counted: bool,
    /// How the samples belong together.
    pub pairing: Pairing,
    /// Seeds used, the first and how many; none of measured arms, or of kept ones that do not share them.
    pub seeds: Option<(u64, usize)>,
    /// Seeds that the precision would need, where the limit was below it.
    pub seeds_wanted: Option<usize>,
    /// What was asked for.
    pub plan: Plan,
    /// Somebody ended it early; the rows hold what there was.
    pub interrupted: bool,
    /// What a reader must know before trusting it.
    pub notes: Vec<String>,
}

/// Samples of one row, by arm.
pub(super) struct Samples {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) better: Better,
    pub(super) arms: Vec<Vec<f64>>,
}

/// Judges all rows, then corrects for their number.
pub(super) fn rows(all: Vec<Samples>, pairing: Pairing, plan: &Plan) -> Vec<Row> {
    let mut rows: Vec<Row> = all.into_iter().map(|samples| row(samples, pairing, plan)).collect();
    let raw = |arm: &RowArm| arm.judgement.as_ref().and_then(|judgement| judgement.probability);
    let probabilities: Vec<f64> = rows.iter().flat_map(|row| row.arms.iter().filter_map(raw)).collect();
    let corrected = holm(&probabilities);
    let tested = rows.iter_mut().flat_map(|row| &mut row.arms).filter(|arm| raw(arm).is_some());
    for (arm, probability) in tested.zip(corrected) {
        arm.probability_holm = Some(probability);
        if probability >= 0.05 && matches!(arm.verdict, Some(Verdict::Better | Verdict::Worse)) {
            let detectable_pct = arm
                .judgement
                .as_ref()
                .and_then(|judgement| detectable(judgement, arm.samples.len(), pairing));
            arm.verdict = Some(Verdict::CannotTell { detectable_pct });
        }
    }
    rows
}

/// What these samples would have shown four times in five, of a row that only the correction leaves undecided: the standard
/// error is read back from the interval's width. Unpaired arms are taken as of equal size and spread.
fn detectable(judgement: &Judgement, count: usize, pairing: Pairing) -> Option<f64> {
    let change = judgement.change_pct?;
    let df = match pairing {
        Pairing::Paired => count.checked_sub(1)?,
        Pairing::Independent => 2 * count.checked_sub(1)?,
    } as f64;
    let reach = ((change.high / 100.0).ln_1p() - (change.low / 100.0).ln_1p()) / 2.0;
    let error = reach / student_t_quantile(0.975, df)?;
    Some(100.0 * detectable_share_of_intervals(error, df)?.exp_m1())
}

fn row(samples: Samples, pairing: Pairing, plan: &Plan) -> Row {
    let Samples { name, unit, better, arms } = samples;
    let base = arms.first().cloned().unwrap_or_default();
    let arms = arms.into_iter().enumerate().map(|(index, samples)| {
        let comparable = index > 0 && !base.is_empty() && !samples.is_empty();
        let judgement = comparable.then(|| {
            let margin_pct = plan.margin_pct;
            judge(&Question { base: &base, new: &samples, better, margin_pct, pairing, seed: plan.seed })
        });
        let verdict = judgement.as_ref().map(|judgement| judgement.verdict);
        RowArm { samples, judgement, probability_holm: None, verdict }
    });
    Row { name, unit, better, arms: arms.collect() }
}

/// Compares arms that were measured before.
pub(super) fn kept(arms: &[&KeptArm], plan: &Plan) -> Result<Comparison, CompareError> {
    let Some(base) = arms.first() else {
        return Err(CompareError::NoRuns { why: "there is no arm".to_owned() });
    };
    let mut notes = Vec::new();
    for arm in &arms[1..] {
        let refuse =
            |why: String| CompareError::NotComparable { a: base.label.clone(), b: arm.label.clone(), why };
        if base.simulated != arm.simulated {
            let side = |arm: &KeptArm| if arm.simulated { "simulated" } else { "measured" };
            let (a, b) = (side(base), side(arm));
            return Err(refuse(format!("one is {a} ({}), the other {b} ({})", base.kind, arm.kind)));
        }
        if let (Some(a), Some(b)) = (&base.machine, &arm.machine)
            && a != b
        {
            return Err(refuse(format!("they are from different machines, {a} and {b}")));
        }
        notes.extend(beside(base, arm).map_err(refuse)?);
    }
    let boots = arms.iter().flat_map(|arm| &arm.series).all(|series| series.boots.len() >= BOOTS_MIN);
    let samples = base.series.iter().map(|series| {
        let of = |arm: &&KeptArm| {
            let found = counterpart(base, series, arm);
            let values = |found: &Series| if boots { found.boots.clone() } else { found.values.clone() };
            found.map_or_else(Vec::new, values)
        };
        let arms = arms.iter().map(of).collect();
        Samples { name: series.name.clone(), unit: series.unit.clone(), better: series.better, arms }
    });
    let samples: Vec<Samples> = samples.collect();
    // Runs of one seed belong together, whichever file they are in.
    let seeds = base.seeds.filter(|(_, count)| {
        let whole = |samples: &Vec<f64>| samples.is_empty() || samples.len() == *count;
        arms.iter().all(|arm| arm.seeds == base.seeds) && samples.iter().all(|row| row.arms.iter().all(whole))
    });
    let pairing = if seeds.is_some() { Pairing::Paired } else { Pairing::Independent };
    let rows = rows(samples, pairing, plan);
    for note in arms.iter().flat_map(|arm| &arm.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let pools = |arm: &&KeptArm| arm.series.iter().any(|series| series.boots.len() < series.values.len());
    if boots && arms.iter().any(pools) {
        notes.push("an iteration is the unit: the mean of its runs is one value".to_owned());
    } else if arms.iter().any(|arm| !arm.series[0].boots.is_empty() && pools(arm)) {
        notes.push(format!(
            "runs of one iteration share a boot: how boots differ is not known (from {BOOTS_MIN} iterations of each \
             arm on, an iteration is the unit)"
        ));
    }
    if rows.iter().all(|row| row.arms[0].samples.len() < 2) {
        let why = "a single run has no spread: nothing can be told from noise; give a folder with several";
        notes.push(why.to_owned());
    }
    match (base.simulated, seeds) {
        (true, Some(_)) => {}
        (true, None) => notes.push(
            "kept results: the files do not say which runs belong together, by seeds that the arms share"
                .to_owned(),
        ),
        (false, _) => notes.push(
            "measured arms: whether their runs were interleaved and on one machine is not known".to_owned(),
        ),
    }
    let infos = arms.iter().map(|arm| ArmInfo {
        label: arm.label.clone(),
        machine: arm.machine.clone(),
        what: arm.kind.clone(),
        simulated: arm.simulated,
    });
    Ok(Comparison {
        arms: infos.collect(),
        rows,
        why: vec![Vec::new(); arms.len() - 1],
        counted: false,
        pairing,
        seeds,
        seeds_wanted: None,
        plan: *plan,
        interrupted: false,
        notes,
    })
}

/// Iterations of an mmtests tree, each after a boot, that say how boots differ; below, its runs are the unit.
const BOOTS_MIN: usize = 3;

/// Can `arm` stand beside the baseline? What a reader must know if so, the reason if not.
fn beside(base: &KeptArm, arm: &KeptArm) -> Result<Vec<String>, String> {
    // dbench and tbench print the same text.
    let alike = |a: &str, b: &str| a == b || [a, b].iter().all(|name| ["dbench", "tbench"].contains(name));
    let families = base.family.zip(arm.family).filter(|(a, b)| !alike(a, b));
    let mut notes = Vec::new();
    let mut common = 0;
    for series in &base.series {
        let Some(other) = counterpart(base, series, arm) else { continue };
        if other.unit != series.unit {
            return Err(format!("`{}` is in {} here and in {} there", series.name, series.unit, other.unit));
        }
        if let Some((a, b)) = families {
            return Err(format!("one is of {a}, the other of {b}"));
        }
        if other.metric != series.metric || (series.factor.is_some() && other.factor != series.factor) {
            let [a, b] = [series, other].map(|series| match &series.factor {
                Some(factor) => format!("`{}` (of {factor})", series.metric),
                None => format!("`{}`", series.name),
            });
            notes.push(format!("{a} is compared with {b}, the only results there are"));
        }
        common += 1;
    }
    if common == 0 {
        let names =
            |arm: &KeptArm| arm.series.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(format!("they have no result in common: {} against {}", names(base), names(arm)));
    }
    let known =
        |one: &&Series| !base.series.iter().any(|series| counterpart(base, series, arm) == Some(*one));
    let extra = arm.series.iter().filter(known);
    notes.extend(extra.map(|one| format!("`{}` of {} is missing in the baseline", one.name, arm.label)));
    Ok(notes)
}

/// What `arm` has of a result of the baseline: the same metric with the same factor (`time` of 4 groups stands beside mmtests'
/// `time-4`). Where either does not know its factor, or each has one only, the only one of that metric; of two
/// arms with a single result of one unit, that (lists of runs have the names of their arms).
fn counterpart<'a>(base: &KeptArm, series: &Series, arm: &'a KeptArm) -> Option<&'a Series> {
    let same = |other: &&Series| other.metric == series.metric && other.factor == series.factor;
    if let Some(found) = arm.series.iter().find(same) {
        return Some(found);
    }
    let of_metric = |arm: &'a KeptArm| arm.series.iter().filter(|other| other.metric == series.metric);
    let alone = base.series.iter().filter(|other| other.metric == series.metric).count() == 1;
    if let (true, 1) = (alone, of_metric(arm).count()) {
        return of_metric(arm).next();
    }
    let lone = base.series.len() == 1 && arm.series.len() == 1;
    arm.series.first().filter(|other| lone && other.unit == series.unit && other.metric != series.metric)
}
