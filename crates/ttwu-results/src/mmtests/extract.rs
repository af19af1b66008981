//! From trees to samples by operation, in the order in which mmtests meets the operations.

use super::benchmarks::{self, Benchmark, Listing, Sample, Selection};
use super::printed::number;
use super::tree::{self, Logs};
use super::{Error, Options, Style};
use regex_lite::Regex;
use std::path::Path;

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
    known(options)?;
    let arms = options
        .arms
        .iter()
        .map(|name| arm(options, &benchmark, sub_heading.as_ref(), name))
        .collect::<Result<Vec<Arm>, Error>>()?;
    // A table of ratios is printed even where none of the operations has one.
    if arms[0].operations.is_empty() || (arms[0].shown.is_empty() && !options.print_ratio) {
        return Err(no_baseline(options, &benchmark, &arms[0])?);
    }
    Ok((benchmark, arms))
}

/// mmtests takes a name without a directory for an arm of zeros.
fn known(options: &Options) -> Result<(), Error> {
    match options.arms.iter().find(|arm| !options.directory.join(arm).is_dir()) {
        Some(arm) => Err(unknown_arm(&options.directory, arm)?),
        None => Ok(()),
    }
}

/// Why `arm` is none of `directory`'s.
pub(super) fn unknown_arm(directory: &Path, arm: &str) -> Result<Error, Error> {
    let there = tree::directories(directory, "")?;
    let remedy = match nearest(arm, &there) {
        Some(near) => format!("did you mean `{near}`? There are {}", listed(&there)),
        None if there.is_empty() => "the directory has no arms".to_owned(),
        None => format!("there are {}", listed(&there)),
    };
    Ok(Error::UnknownArm { arm: arm.to_owned(), directory: directory.to_owned(), remedy })
}

/// Names for a message; of many the first.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 24;
    let rest = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
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
    let (mut ratio_labels, mut last_labels): (Option<Vec<String>>, Option<Vec<String>>) = (None, None);
    for (iteration, directory) in tree::directories(&root, "iter-")?.iter().enumerate() {
        let logs = Logs::open(root.join(directory).join(&options.benchmark).join("logs"))?;
        let samples = (benchmark.reader)(&logs)?;
        let ratio = each_once(samples.iter().filter(|sample| sample.ratio));
        match benchmark.listing {
            Listing::AsMet if ratio.is_empty() => {}
            Listing::AsMet | Listing::LastIterationOfRatios => ratio_labels = Some(ratio),
            Listing::LastIteration => last_labels = Some(each_once(samples.iter())),
        }
        for sample in samples {
            // The newer state drops other headings while it reads, the older one only when it prints.
            let wanted = sub_heading.is_none_or(|heading| heading.anywhere.is_match(&sample.label));
            if wanted || options.style == Style::Classic2020 {
                arm.add(iteration, &sample);
            }
        }
    }
    let labels = match ratio_labels.filter(|_| options.print_ratio).or(last_labels) {
        Some(labels) => labels,
        None => arm.operations.iter().map(|operation| operation.label.clone()).collect(),
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

/// The operations of samples in the order in which they are met.
fn each_once<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for sample in samples {
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

fn no_baseline(options: &Options, benchmark: &Benchmark, baseline: &Arm) -> Result<Error, Error> {
    if let Some(text) = options.sub_heading.clone().filter(|text| !text.is_empty()) {
        let all = Options { sub_heading: None, ..options.clone() };
        let labels = arm(&all, benchmark, None, &baseline.name)?.shown;
        if !labels.is_empty() {
            let how = match benchmark.selection {
                Selection::Beginning => "begins with",
                Selection::Whole => "is",
            };
            let known = listed(&labels);
            return Ok(Error::NoOperation { arm: baseline.name.clone(), how, sub_heading: text, known });
        }
    }
    let there = tree::benchmarks(&options.directory.join(&baseline.name))?;
    let remedy = format!(
        "it has results of: {}",
        if there.is_empty() { "nothing".to_owned() } else { listed(&there) }
    );
    Ok(Error::NoBaseline {
        benchmark: options.benchmark.clone(),
        arm: baseline.name.clone(),
        directory: options.directory.clone(),
        remedy,
    })
}

/// The name that takes the fewest changes of a character, if those are no more than half of it.
fn nearest<'a>(wanted: &str, names: &'a [String]) -> Option<&'a str> {
    let changes = |name: &&str| strsim::levenshtein(wanted, name);
    names.iter().map(String::as_str).min_by_key(changes).filter(|name| 2 * changes(name) <= wanted.len())
}
