//! From trees to samples by operation, in the order in which mmtests meets the operations.

use super::benchmarks::{self, Benchmark, Sample, Selection};
use super::printed::number;
use super::tree::{self, Logs};
use super::{Error, Options, Style};
use regex_lite::Regex;

/// One arm of a comparison.
#[derive(Debug)]
pub(super) struct Arm {
    pub(super) name: String,
    operations: Vec<Operation>,
    /// The operations that the table shows of this arm, in order.
    pub(super) shown: Vec<String>,
}

/// One operation's samples by iteration.
#[derive(Debug)]
struct Operation {
    label: String,
    iterations: Vec<Vec<f64>>,
}

impl Arm {
    /// Whether this arm shows an operation, with samples or (where its log had no number) without.
    pub(super) fn shows(&self, label: &str) -> bool {
        self.shown.iter().any(|shown| shown == label)
    }

    /// The samples of an operation that this arm shows, by iteration; none of one it does not.
    pub(super) fn iterations(&self, label: &str) -> &[Vec<f64>] {
        let found = self.operations.iter().find(|operation| operation.label == label && self.shows(label));
        found.map_or(&[], |operation| &operation.iterations)
    }

    /// The same, pooled.
    pub(super) fn samples(&self, label: &str) -> Vec<f64> {
        self.iterations(label).concat()
    }
}

/// A sub-heading as a pattern, found anywhere and at the beginning.
struct SubHeading {
    anywhere: Regex,
    beginning: Regex,
}

/// The benchmark and all arms that the options name; the first has samples to show.
pub(super) fn arms(options: &Options) -> Result<(Benchmark, Vec<Arm>), Error> {
    if options.arms.is_empty() {
        return Err(Error::NoArms { directory: options.directory.clone() });
    }
    let benchmark = benchmarks::find(options)?;
    let sub_heading =
        options.sub_heading.as_deref().filter(|heading| !heading.is_empty()).map(sub_heading).transpose()?;
    let arms = options
        .arms
        .iter()
        .map(|name| arm(options, &benchmark, sub_heading.as_ref(), name))
        .collect::<Result<Vec<Arm>, Error>>()?;
    // A table of ratios is printed even where none of the operations has one.
    if arms[0].operations.is_empty() || (arms[0].shown.is_empty() && !options.print_ratio) {
        return Err(no_baseline(options, &arms[0])?);
    }
    Ok((benchmark, arms))
}

fn sub_heading(text: &str) -> Result<SubHeading, Error> {
    let pattern = |pattern: String| {
        Regex::new(&pattern).map_err(|source| Error::SubHeading { sub_heading: text.to_owned(), source })
    };
    Ok(SubHeading { anywhere: pattern(text.to_owned())?, beginning: pattern(format!("^{text}"))? })
}

fn arm(
    options: &Options,
    benchmark: &Benchmark,
    sub_heading: Option<&SubHeading>,
    name: &str,
) -> Result<Arm, Error> {
    let root = options.directory.join(name);
    let mut arm = Arm { name: name.to_owned(), operations: Vec::new(), shown: Vec::new() };
    let mut ratio_labels: Option<Vec<String>> = None;
    for (iteration, directory) in tree::directories(&root, "iter-")?.iter().enumerate() {
        let logs = Logs::open(root.join(directory).join(&options.benchmark).join("logs"))?;
        let samples = (benchmark.reader)(&logs)?;
        // Each iteration replaces what the one before said, unless it says nothing.
        let ratio = ratio_operations(&samples);
        ratio_labels = if ratio.is_empty() { ratio_labels } else { Some(ratio) };
        for sample in samples {
            // The newer state drops other headings while it reads, the older one only when it prints.
            let wanted = sub_heading.is_none_or(|heading| heading.anywhere.is_match(&sample.label));
            if wanted || options.style == Style::Classic2020 {
                arm.add(iteration, &sample);
            }
        }
    }
    let labels = match ratio_labels {
        Some(labels) if options.print_ratio => labels,
        _ => arm.operations.iter().map(|operation| operation.label.clone()).collect(),
    };
    arm.shown = labels.into_iter().filter(|label| selected(options, benchmark, sub_heading, label)).collect();
    Ok(arm)
}

fn selected(options: &Options, benchmark: &Benchmark, sub_heading: Option<&SubHeading>, label: &str) -> bool {
    let Some(sub_heading) = sub_heading else { return true };
    match benchmark.selection {
        Selection::Beginning => sub_heading.beginning.is_match(label),
        Selection::Whole => options.sub_heading.as_deref() == Some(label),
    }
}

fn ratio_operations(samples: &[Sample]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.ratio) {
        if !labels.contains(&sample.label) {
            labels.push(sample.label.clone());
        }
    }
    labels
}

impl Arm {
    /// Registers the operation, and keeps the sample if it is a number.
    fn add(&mut self, iteration: usize, sample: &Sample) {
        let place =
            self.operations.iter().rposition(|operation| operation.label == sample.label).unwrap_or_else(
                || {
                    self.operations.push(Operation { label: sample.label.clone(), iterations: Vec::new() });
                    self.operations.len() - 1
                },
            );
        let (Some(value), Some(_)) = (number(&sample.value), number(&sample.interval)) else { return };
        let iterations = &mut self.operations[place].iterations;
        if iterations.len() <= iteration {
            iterations.resize(iteration + 1, Vec::new());
        }
        iterations[iteration].push(value);
    }
}

fn no_baseline(options: &Options, arm: &Arm) -> Result<Error, Error> {
    let arms = tree::directories(&options.directory, "")?;
    let remedy = if !arms.contains(&arm.name) {
        match nearest(&arm.name, &arms) {
            Some(near) => format!("there is no such arm; did you mean `{near}`?"),
            None => "the directory has no arms".to_owned(),
        }
    } else {
        let iterations = options.directory.join(&arm.name);
        let mut benchmarks = Vec::new();
        for iteration in tree::directories(&iterations, "iter-")? {
            benchmarks.extend(tree::directories(&iterations.join(iteration), "")?);
        }
        benchmarks.sort_unstable();
        benchmarks.dedup();
        format!(
            "it has results of: {}",
            if benchmarks.is_empty() { "nothing".to_owned() } else { benchmarks.join(", ") }
        )
    };
    Ok(Error::NoBaseline {
        benchmark: options.benchmark.clone(),
        arm: arm.name.clone(),
        directory: options.directory.clone(),
        remedy,
    })
}

/// The name that takes the fewest changes of a character.
fn nearest<'a>(wanted: &str, names: &'a [String]) -> Option<&'a str> {
    names.iter().map(String::as_str).min_by_key(|name| strsim::levenshtein(wanted, name))
}
