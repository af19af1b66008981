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
        let (path, number) = match word.rsplit_once('@') {
            Some((path, number)) if !Path::new(word).exists() => (path, number.parse::<usize>().ok()),
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
            notes: Vec::new(),
        };
        let mut last_reason = "the folder is empty".to_owned();
        for file in &files {
            let bytes = std::fs::read(file).map_err(|error| fail(error.to_string()))?;
            let Ok(text) = String::from_utf8(bytes) else {
                match traced::open(file) {
                    Ok(found) => arm.add_traced(found).map_err(fail)?,
                    Err(reason) => last_reason = format!("{}: {reason}", file.display()),
                }
                continue;
            };
            if text.trim_start().starts_with('{') && text.contains("ttwu/compare/") {
                return Self::from_comparison(word, &text, number);
            }
            match Document::parse(&text) {
                Ok(document) => match document.no_result() {
                    // A recording may be text too; what is neither is told about the more likely of them.
                    Some(reason) => match traced::open(file) {
                        Ok(found) => arm.add_traced(found).map_err(fail)?,
                        Err(_) => last_reason = reason,
                    },
                    None => arm.add(&document),
                },
                Err(error) => last_reason = format!("{}: {error}", file.display()),
            }
        }
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
        let series = series.collect();
        notes.dedup();
        let plural = if boots_count == 1 { "" } else { "s" };
        Ok(Self {
            label: label.to_owned(),
            kind: format!("mmtests' {benchmark}, {boots_count} iteration{plural}"),
            family: Some(tree.family),
            machine: None,
            series,
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

    fn add(&mut self, document: &Document) {
        for (index, item) in document.items.iter().enumerate() {
            let Item::Result(output) = item else { continue };
            if failed(&document.items[index..]) {
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
                self.extend(Series { factor: output.factor(), ..plain });
            }
        }
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
            self.extend(series);
        }
        Ok(())
    }

    fn extend(&mut self, series: Series) {
        let same = |have: &&mut Series| {
            have.metric == series.metric && have.unit == series.unit && have.factor == series.factor
        };
        match self.series.iter_mut().find(same) {
            Some(have) => have.values.extend(series.values),
            None => self.series.push(series),
        }
    }

    fn from_comparison(word: &str, text: &str, number: Option<usize>) -> Result<Self, ArmError> {
        let fail = |why: String| ArmError::NoResult { word: word.to_owned(), why };
        let kept: serde_json::Value = serde_json::from_str(text).map_err(|error| fail(error.to_string()))?;
        let schema = kept["schema"].as_str().unwrap_or("none");
        if schema != "ttwu/compare/1" {
            return Err(fail(format!("expected schema ttwu/compare/1, found {schema}")));
        }
        let arms = kept["arms"].as_array().map(Vec::as_slice).unwrap_or_default();
        let labels: Vec<&str> = arms.iter().filter_map(|arm| arm["label"].as_str()).collect();
        let index = match number {
            Some(number @ 1..) if number <= labels.len() => number - 1,
            None if labels.len() == 1 => 0,
            Some(_) | None => {
                let each = labels
                    .iter()
                    .enumerate()
                    .map(|(index, label)| format!("{word}@{} is {label}", index + 1));
                return Err(fail(format!("it has several arms: {}", each.collect::<Vec<_>>().join(", "))));
            }
        };
        let mut series = Vec::new();
        for row in kept["rows"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
            let samples = row["arms"][index]["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
            let values: Vec<f64> = samples.iter().filter_map(serde_json::Value::as_f64).collect();
            let better = if text("better") == "higher" { Better::Higher } else { Better::Lower };
            if !values.is_empty() {
                series.push(Series::plain(text("name"), text("unit"), better, values));
            }
        }
        if series.is_empty() {
            return Err(fail("that arm has no samples".to_owned()));
        }
        let machine = arms[index]["machine"].as_str().map(str::to_owned);
        let kind = "a kept simulated result".to_owned();
        let label = labels[index].to_owned();
        Ok(Self { label, kind, family: None, machine, series, notes: Vec::new() })
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

/// Does an exit code other than 0 follow before the next command?
fn failed(items: &[Item]) -> bool {
    for item in items {
        match item {
            Item::Exit(code) => return *code != 0,
            Item::Command(_) => return false,
            Item::Text(_) | Item::Result(_) => {}
        }
    }
    false
}
