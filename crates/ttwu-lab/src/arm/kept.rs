//! Arms that were measured before: files of benchmark output, recordings, folders of them, results kept by
//! `ttwu compare --format json`, arms of an mmtests result tree.
//!
//! The run is the unit of analysis: where one output lists several values of a metric (passes of clients, loops of processes),
//! their mean is one value. A pasted list of runs (`g=1: 7.58 7.61 …`) is what it says, a list of runs.

use super::{ArmError, traced};
use std::path::Path;
use ttwu_results::mmtests;
use ttwu_results::outputs::{self, Document, Item, Output};
use ttwu_stats::Better;

/// One metric of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in tables: the metric, and the factor where an arm has several.
    pub name: String,
    /// What was measured, as the parsers of the benchmark's output call it.
    pub metric: String,
    /// What it was measured with (groups, clients), where known.
    pub factor: Option<String>,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// One value a run.
    pub values: Vec<f64>,
    /// Of an mmtests tree, the mean of each iteration's runs: between iterations lies a boot, whose differences the runs of
    /// one iteration do not show. Empty of anything else.
    pub boots: Vec<f64>,
}

impl Series {
    /// A metric that has no factor.
    pub(super) fn plain(name: String, unit: String, better: Better, values: Vec<f64>) -> Self {
        Self { metric: name.clone(), name, factor: None, unit, better, values, boots: Vec::new() }
    }
}

/// An arm that was measured before.
#[derive(Clone, Debug)]
pub struct KeptArm {
    /// The file's or folder's name.
    pub label: String,
    /// What it is, for messages.
    pub kind: String,
    /// The family of benchmarks, where known (`hackbench`).
    pub family: Option<&'static str>,
    /// The machine that it says it is from.
    pub machine: Option<String>,
    /// What it measured; never empty.
    pub series: Vec<Series>,
    /// Its runs were simulated, and kept.
    pub simulated: bool,
    /// The first seed and how many: run i has the i-th of them. None of what was measured or does not say it.
    pub seeds: Option<(u64, usize)>,
    /// Files of a folder that have no result, and how many files there are, as a sentence; none where all have one.
    pub left_out: Option<String>,
    /// What a reader must know before trusting it.
    pub notes: Vec<String>,
}

impl KeptArm {
    /// Reads a file, or all files of a folder in the order of their names. `FILE@N` is arm N of a kept comparison,
    /// `DIRECTORY@BENCHMARK` a benchmark of an arm of an mmtests tree.
    ///
    /// # Errors
    /// When there is nothing to compare in it.
    pub fn open(word: &str) -> Result<Self, ArmError> {
        let fail = |why: String| ArmError::NoResult { word: word.to_owned(), why };
        let (path, chosen) = match word.rsplit_once('@') {
            Some((path, chosen)) if !Path::new(word).exists() => (path, Some(chosen)),
            Some(_) | None => (word, None),
        };
        let path = Path::new(path);
        if let Some((directory, benchmark)) = word.rsplit_once('@')
            && !Path::new(word).exists()
            && is_tree(Path::new(directory))
        {
            return Self::from_tree(Path::new(directory), benchmark, word);
        }
        if is_tree(path) {
            return match &mmtests::measured_benchmarks(path).map_err(|error| fail(error.to_string()))?[..] {
                [one] => Self::from_tree(path, one, word),
                [] => Err(fail("an mmtests tree without results".to_owned())),
                several => Err(fail(format!(
                    "an mmtests tree of several benchmarks; name one, such as {word}@{}: there are {}",
                    several[0],
                    several.join(", ")
                ))),
            };
        }
        let mut files = vec![path.to_owned()];
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|error| fail(error.to_string()))?;
            files =
                entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
            files.sort();
        }
        let mut arm = Self {
            label: word.to_owned(),
            kind: String::new(),
            family: None,
            machine: None,
            series: Vec::new(),
            simulated: false,
            seeds: None,
            left_out: None,
            notes: Vec::new(),
        };
        let mut without = Vec::new();
        let mut last_reason = "the folder is empty".to_owned();
        for file in &files {
            let bytes = std::fs::read(file).map_err(|error| fail(error.to_string()))?;
            let in_file = |why: String| fail(format!("{}: {why}", file.display()));
            let Ok(text) = String::from_utf8(bytes) else {
                match traced::open(file) {
                    Ok(found) => arm.add_traced(found).map_err(fail)?,
                    Err(reason) => {
                        last_reason = format!("{}: {reason}", file.display());
                        without.push(file);
                    }
                }
                continue;
            };
            if text.trim_start().starts_with('{') && text.contains("ttwu/compare/") {
                return Self::from_comparison(word, &file.display().to_string(), &text, chosen);
            }
            match Document::parse(&text) {
                Ok(document) => match document.no_result() {
                    // A recording may be text too; what is neither is told about the more likely of them.
                    Some(reason) => match traced::open(file) {
                        Ok(found) => arm.add_traced(found).map_err(fail)?,
                        Err(_) => {
                            last_reason = reason;
                            without.push(file);
                        }
                    },
                    None => {
                        if !arm.add(&document).map_err(in_file)? {
                            without.push(file);
                        }
                    }
                },
                Err(error) => {
                    last_reason = format!("{}: {error}", file.display());
                    without.push(file);
                }
            }
        }
        if let (Some(chosen), false) = (chosen, arm.series.is_empty()) {
            let path = path.display();
            return Err(fail(format!("{path} is no kept comparison: there is no arm `{chosen}` in it")));
        }
        arm.left_out = left_out(&without, files.len());
        arm.name_factors();
        if arm.series.is_empty() { Err(fail(last_reason)) } else { Ok(arm) }
    }

    /// The results of `benchmark` in the arm of an mmtests tree whose iterations are below `directory`.
    ///
    /// # Errors
    /// When there are none, or the benchmark is not known.
    pub fn from_tree(directory: &Path, benchmark: &str, label: &str) -> Result<Self, ArmError> {
        let tree = mmtests::measured(directory, benchmark)
            .map_err(|error| ArmError::NoResult { word: label.to_owned(), why: error.to_string() })?;
        let mut boots_count = 0;
        let mut notes = Vec::new();
        let series = tree.series.into_iter().map(|found| {
            let mean = |runs: &Vec<f64>| ttwu_stats::describe::mean(runs);
            boots_count = boots_count.max(found.iterations.len());
            let note = match found.sampling {
                mmtests::Sampling::Runs => None,
                mmtests::Sampling::Parts => Some("are parts of one run"),
                mmtests::Sampling::Cumulative => Some("each contain those before them"),
            };
            if let Some(why) = note {
                let what = if found.factor.is_empty() { &found.operation } else { &found.metric };
                notes.push(format!(
                    "the values of `{what}` in a log {why}: they count as one value an iteration"
                ));
            }
            let factor = (!found.factor.is_empty()).then_some(found.factor);
            Series {
                name: factor
                    .as_ref()
                    .map_or_else(|| found.metric.clone(), |factor| format!("{}-{factor}", found.metric)),
                metric: found.metric,
                factor,
                unit: found.unit.to_owned(),
                better: better(found.better),
                boots: found.iterations.iter().filter_map(mean).collect(),
                values: found.iterations.concat(),
            }
        });
        let series: Vec<Series> = series.collect();
        for one in &series {
            plausible(one).map_err(|why| ArmError::NoResult { word: label.to_owned(), why })?;
        }
        notes.dedup();
        let plural = if boots_count == 1 { "" } else { "s" };
        Ok(Self {
            label: label.to_owned(),
            kind: format!("mmtests' {benchmark}, {boots_count} iteration{plural}"),
            family: Some(tree.family),
            machine: None,
            series,
            simulated: false,
            seeds: None,
            left_out: None,
            notes,
        })
    }

    /// Where a metric was measured with several factors, their rows are told apart.
    fn name_factors(&mut self) {
        let several = |metric: &str| self.series.iter().filter(|series| series.metric == metric).count() > 1;
        let names: Vec<Option<String>> = self
            .series
            .iter()
            .map(|series| {
                let factor = series.factor.as_ref().filter(|_| several(&series.metric))?;
                Some(format!("{}-{factor}", series.metric))
            })
            .collect();
        for (series, name) in self.series.iter_mut().zip(names) {
            series.name = name.unwrap_or_else(|| series.metric.clone());
        }
    }

    /// Adds the results of a file; whether there was one. What cannot be a measured value is the error.
    fn add(&mut self, document: &Document) -> Result<bool, String> {
        let mut found = false;
        for (item, failed) in document.items.iter().zip(failed(&document.items)) {
            let Item::Result(output) = item else { continue };
            if failed {
                continue;
            }
            if self.kind.is_empty() {
                self.kind = format!("output of {}", output.name());
            }
            self.family = self.family.or(output.family());
            let is_list_of_runs = matches!(output, Output::RunList(_));
            for samples in output.samples() {
                let values = if is_list_of_runs {
                    samples.values
                } else {
                    ttwu_stats::describe::mean(&samples.values).into_iter().collect()
                };
                let unit = samples.unit.to_owned();
                let plain = Series::plain(samples.metric, unit, better(samples.better), values);
                found |= !plain.values.is_empty();
                self.extend(Series { factor: output.factor(), ..plain })?;
            }
        }
        Ok(found)
    }

    fn add_traced(&mut self, found: traced::Traced) -> Result<(), String> {
        let before = self.machine.as_ref().filter(|_| self.kind == "a recording");
        if let (Some(before), Some(now)) = (before, &found.hostname)
            && before != now
        {
            return Err(format!("its recordings are from different machines, {before} and {now}"));
        }
        "a recording".clone_into(&mut self.kind);
        self.machine = self.machine.take().or(found.hostname);
        self.notes.extend(found.notes);
        for series in found.series {
            self.extend(series)?;
        }
        Ok(())
    }

    fn extend(&mut self, series: Series) -> Result<(), String> {
        plausible(&series)?;
        let same = |have: &&mut Series| {
            have.metric == series.metric && have.unit == series.unit && have.factor == series.factor
        };
        match self.series.iter_mut().find(same) {
            Some(have) => have.values.extend(series.values),
            None => self.series.push(series),
        }
        Ok(())
    }

    /// Arm `chosen` (from 1) of the kept comparison `text`, which is what `file` holds.
    fn from_comparison(word: &str, file: &str, text: &str, chosen: Option<&str>) -> Result<Self, ArmError> {
        let fail = |why: String| ArmError::NoResult { word: word.to_owned(), why };
        let kept: serde_json::Value = serde_json::from_str(text).map_err(|error| fail(error.to_string()))?;
        let schema = kept["schema"].as_str().unwrap_or("none");
        if schema != "ttwu/compare/1" {
            return Err(fail(format!("expected schema ttwu/compare/1, found {schema}")));
        }
        let arms = kept["arms"].as_array().map(Vec::as_slice).unwrap_or_default();
        let labels: Vec<&str> = arms.iter().filter_map(|arm| arm["label"].as_str()).collect();
        let number = chosen.map(|chosen| chosen.parse::<usize>().unwrap_or(0));
        let index = match number {
            Some(number @ 1..) if number <= labels.len() => number - 1,
            None if labels.len() == 1 => 0,
            Some(_) | None => {
                let each: Vec<String> = labels
                    .iter()
                    .enumerate()
                    .map(|(index, label)| format!("{file}@{} is {label}", index + 1))
                    .collect();
                let each = each.join(", ");
                return Err(fail(match chosen {
                    Some(chosen) => format!("there is no arm `{chosen}` in {file}: {each}"),
                    None => format!("it has several arms: {each}"),
                }));
            }
        };
        let mut series = Vec::new();
        for row in kept["rows"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
            let samples = row["arms"][index]["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
            let not_a_number = |sample: &serde_json::Value| {
                fail(format!("{file}: a sample of `{}` is {sample}, which is no number", text("name")))
            };
            let number = |sample: &serde_json::Value| sample.as_f64().ok_or_else(|| not_a_number(sample));
            let values = samples.iter().map(number).collect::<Result<Vec<f64>, ArmError>>()?;
            let better = if text("better") == "higher" { Better::Higher } else { Better::Lower };
            if !values.is_empty() {
                let one = Series::plain(text("name"), text("unit"), better, values);
                plausible(&one).map_err(|why| fail(format!("{file}: {why}")))?;
                series.push(one);
            }
        }
        if series.is_empty() {
            return Err(fail("that arm has no samples".to_owned()));
        }
        let machine = arms[index]["machine"].as_str().map(str::to_owned);
        // Only simulated runs have seeds; a comparison of kept results says itself what they are.
        let simulated = arms[index]["simulated"].as_bool().unwrap_or(!kept["seeds"].is_null());
        let kind = if simulated { "a kept simulated result" } else { "a kept measured result" }.to_owned();
        let label = labels[index].to_owned();
        let seed = |key: &str| kept["seeds"][key].as_u64().filter(|_| kept["paired"] == true);
        let seeds = seed("first").zip(seed("count").and_then(|count| usize::try_from(count).ok()));
        let (family, left_out, notes) = (None, None, Vec::new());
        Ok(Self { label, kind, family, machine, series, simulated, seeds, left_out, notes })
    }
}

const fn better(better: outputs::Better) -> Better {
    match better {
        outputs::Better::Lower => Better::Lower,
        outputs::Better::Higher => Better::Higher,
    }
}

/// Is it an arm of an mmtests tree: a directory of iterations?
fn is_tree(path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else { return false };
    let is_iteration = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with("iter-"));
    entries.flatten().any(|entry| is_iteration(&entry.file_name()) && entry.path().is_dir())
}

/// Sizes beyond which squares and their sums leave the range of doubles, and below which they vanish.
const SIZES: std::ops::RangeInclusive<f64> = 1e-100..=1e100;

/// Can these be values of runs? The value that cannot, and why, as the error.
fn plausible(series: &Series) -> Result<(), String> {
    let Series { name, unit, values, .. } = series;
    let is_time = ["s", "ms", "us", "ns"].contains(&unit.as_str());
    for value in values {
        let why = if !value.is_finite() {
            "is no finite number"
        } else if *value != 0.0 && !SIZES.contains(&value.abs()) {
            "is beyond what can be computed with (1e-100 to 1e100)"
        } else if is_time && *value < 0.0 {
            "is a negative time"
        } else {
            continue;
        };
        return Err(format!("`{name}` of {value:?} {unit} {why}"));
    }
    Ok(())
}

/// What is said of files without a result in a folder; nothing of a file that stands alone.
fn left_out(without: &[&std::path::PathBuf], count: usize) -> Option<String> {
    let name = |path: &&std::path::PathBuf| path.file_name().unwrap_or_default().display().to_string();
    let names: Vec<String> = without.iter().map(name).collect();
    let have = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty() && count > 1)
        .then(|| format!("{} of {count} files {have} no result: {}", names.len(), names.join(", ")))
}

/// For each item, does an exit code other than 0 follow before the next command?
fn failed(items: &[Item]) -> Vec<bool> {
    // From the end on, so that outputs of many runs without commands between them take one pass.
    let mut follows = false;
    let mut all: Vec<bool> = items
        .iter()
        .rev()
        .map(|item| {
            match item {
                Item::Exit(code) => follows = *code != 0,
                Item::Command(_) => follows = false,
                Item::Text(_) | Item::Result(_) => {}
            }
            follows
        })
        .collect();
    all.reverse();
    all
}
