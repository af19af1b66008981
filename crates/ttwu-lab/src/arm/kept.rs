//! Arms that were measured before: files of benchmark output, recordings, folders of them, results kept by
//! `ttwu compare --format json`.
//!
//! The run is the unit of analysis: where one output lists several values of a metric (passes of clients, loops of processes),
//! their mean is one value. A pasted list of runs (`g=1: 7.58 7.61 …`) is what it says, a list of runs.

use super::{ArmError, traced};
use std::path::Path;
use ttwu_results::outputs::{self, Document, Item, Output};
use ttwu_stats::Better;

/// One metric of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// One value a run.
    pub values: Vec<f64>,
}

/// An arm that was measured before.
#[derive(Clone, Debug)]
pub struct KeptArm {
    /// The file's or folder's name.
    pub label: String,
    /// What it is, for messages.
    pub kind: String,
    /// The machine that it says it is from.
    pub machine: Option<String>,
    /// What it measured; never empty.
    pub series: Vec<Series>,
    /// What a reader must know before trusting it.
    pub notes: Vec<String>,
}

impl KeptArm {
    /// Reads a file, or all files of a folder in the order of their names. `FILE@N` is arm N of a kept comparison.
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
        if arm.series.is_empty() { Err(fail(last_reason)) } else { Ok(arm) }
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
            let is_list_of_runs = matches!(output, Output::RunList(_));
            for samples in output.samples() {
                let values = if is_list_of_runs {
                    samples.values
                } else {
                    ttwu_stats::describe::mean(&samples.values).into_iter().collect()
                };
                let better = match samples.better {
                    outputs::Better::Lower => Better::Lower,
                    outputs::Better::Higher => Better::Higher,
                };
                self.extend(Series { name: samples.metric, unit: samples.unit.to_owned(), better, values });
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
        let same = |have: &&mut Series| have.name == series.name && have.unit == series.unit;
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
                series.push(Series { name: text("name"), unit: text("unit"), better, values });
            }
        }
        if series.is_empty() {
            return Err(fail("that arm has no samples".to_owned()));
        }
        let machine = arms[index]["machine"].as_str().map(str::to_owned);
        let kind = "a kept simulated result".to_owned();
        Ok(Self { label: labels[index].to_owned(), kind, machine, series, notes: Vec::new() })
    }
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
