//! The benchmarks as data: which statistics, which direction, how many decimals, which reader. One row a benchmark and style.

use super::tree::Logs;
use super::{Error, Options, Style, logs_2020 as old, logs_2024 as new};

/// One sample as a reader finds it; the value and the interval are text, because what is not a number registers the
/// operation and is then dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) label: String,
    pub(super) interval: String,
    pub(super) value: String,
    /// Whether the operation is one of those that ratio tables show.
    pub(super) ratio: bool,
}

/// One statistic of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Stat {
    Min,
    Max,
    /// Amean or Hmean, by direction.
    Mean,
    /// Mean of the best percent.
    BestMean(f64),
    Percentile(f64),
    Stddev,
    CoeffVar,
    /// The only (or best) sample.
    Value,
    SubMean,
    SubMeanInterval,
}

/// A set of statistics in printed order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    Multiops,
    Normalisedops,
    NormalisedLeftSkewops,
    Singleops,
    Subselection,
    Variabletime,
}

/// How a sub-heading selects operations for printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    /// Those that begin with it.
    Beginning,
    /// Those that are it.
    Whole,
}

/// Which of its operations an arm shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// All that any iteration has; of those that ratio tables show, the last iteration that has any.
    AsMet,
    /// Those of the last iteration, none included: each iteration overwrites a list.
    LastIteration,
    /// All, but in ratio tables those of the last iteration.
    LastIterationOfRatios,
}

/// What a sub-heading changes.
#[derive(Debug, Clone, Copy)]
struct SubHeading {
    name: &'static str,
    higher: bool,
    rows: Option<Rows>,
}

type Reader = fn(&Logs) -> Result<Vec<Sample>, Error>;

struct Row {
    name: &'static str,
    rows: Rows,
    higher: bool,
    decimals: usize,
    operation_name: &'static str,
    selection: Selection,
    listing: Listing,
    sub_headings: &'static [SubHeading],
    reader: Reader,
}

/// A benchmark as asked for: its row with the sub-heading's changes.
pub(super) struct Benchmark {
    pub(super) rows: Rows,
    pub(super) higher: bool,
    pub(super) decimals: usize,
    pub(super) operation_name: &'static str,
    pub(super) selection: Selection,
    pub(super) listing: Listing,
    pub(super) reader: Reader,
}

const DBENCH_HEADINGS: &[SubHeading] = &[
    SubHeading { name: "tput", higher: true, rows: None },
    SubHeading { name: "op", higher: false, rows: Some(Rows::Singleops) },
];

const fn row(name: &'static str, rows: Rows, higher: bool, decimals: usize, reader: Reader) -> Row {
    Row {
        name,
        rows,
        higher,
        decimals,
        operation_name: "Ops",
        selection: Selection::Beginning,
        listing: Listing::AsMet,
        sub_headings: &[],
        reader,
    }
}

const fn netperf_2020(name: &'static str) -> Row {
    Row { listing: Listing::LastIteration, ..row(name, Rows::Multiops, true, 2, old::netperf) }
}

/// June 2026, by the directory in `shellpack_src`.
const CURRENT: &[Row] = &[
    row("autonumabench", Rows::Multiops, false, 2, new::times),
    row("cyclictest", Rows::Multiops, false, 2, new::cyclictest),
    Row {
        sub_headings: DBENCH_HEADINGS,
        ..row("dbench", Rows::NormalisedLeftSkewops, false, 4, new::dbench)
    },
    row("gitcheckout", Rows::Multiops, false, 2, new::times),
    row("gitsource", Rows::Multiops, false, 2, new::times),
    row("hackbench", Rows::Multiops, false, 4, new::hackbench),
    row("kernbench", Rows::Multiops, false, 2, new::times),
    row("nas", Rows::Multiops, false, 2, new::times),
    row("netperf", Rows::Multiops, true, 2, new::netperf),
    row("perfpipe", Rows::Normalisedops, false, 4, new::perfpipe),
    row("perfsyscall", Rows::Multiops, false, 4, new::perfsyscall),
    row("poundsyscall", Rows::Multiops, false, 2, new::times),
    Row {
        sub_headings: &[SubHeading { name: "RPS", higher: true, rows: None }],
        ..row("schbench", Rows::Normalisedops, false, 2, new::schbench)
    },
    row("sembench", Rows::Multiops, true, 2, new::sembench),
    // Its configuration says `preferhigher: yes`, which mmtests does not take for a yes.
    row("stressng", Rows::Multiops, false, 2, new::stressng),
    row("sysbench", Rows::Multiops, true, 2, new::sysbench),
    // Events a second, and lower is better there.
    row("sysbenchcpu", Rows::Multiops, false, 2, new::sysbenchcpu),
    row("sysbenchmutex", Rows::Multiops, false, 2, new::sysbenchmutex),
    Row {
        sub_headings: DBENCH_HEADINGS,
        ..row("tbench", Rows::NormalisedLeftSkewops, false, 4, new::tbench)
    },
    row("unixbenchd", Rows::Multiops, true, 2, new::unixbenchd),
];

/// January 2020, by the class's name in lower case without `-`.
const CLASSIC: &[Row] = &[
    Row { operation_name: "Lat", ..row("cyclictest", Rows::Singleops, false, 2, old::cyclictest) },
    row("cyclictestfine", Rows::Multiops, false, 2, old::cyclictest_fine),
    row("cyclictestfinepinned", Rows::Multiops, false, 2, old::cyclictest_fine),
    row("cyclictestfineunbound", Rows::Multiops, false, 2, old::cyclictest_fine),
    Row { operation_name: "Lat", ..row("cyclictestpinned", Rows::Singleops, false, 2, old::cyclictest) },
    Row { operation_name: "Lat", ..row("cyclictestunbound", Rows::Singleops, false, 2, old::cyclictest) },
    Row { selection: Selection::Whole, ..row("dbench4", Rows::Subselection, false, 2, old::dbench4) },
    row("dbench4latency", Rows::Multiops, false, 2, old::dbench4_latency),
    Row {
        operation_name: "latency",
        ..row("dbench4opslatency", Rows::Singleops, false, 2, old::dbench4_operations)
    },
    Row {
        selection: Selection::Whole,
        ..row("dbench4tput", Rows::Multiops, true, 2, old::dbench4_throughput)
    },
    row("hackbenchprocesspipes", Rows::Multiops, false, 4, old::hackbench),
    row("hackbenchprocesssockets", Rows::Multiops, false, 4, old::hackbench),
    row("hackbenchthreadpipes", Rows::Multiops, false, 4, old::hackbench),
    row("hackbenchthreadsockets", Rows::Multiops, false, 4, old::hackbench),
    netperf_2020("netperfmultitcp"),
    netperf_2020("netperfmultitcprr"),
    netperf_2020("netperfmultiudp"),
    netperf_2020("netperfmultiudprr"),
    netperf_2020("netperftcp"),
    netperf_2020("netperftcprr"),
    netperf_2020("netperfudp"),
    netperf_2020("netperfudprr"),
    netperf_2020("netperfunix"),
    row("perfpipe", Rows::Variabletime, false, 2, old::perfpipe),
    row("pipetest", Rows::Variabletime, false, 2, old::pipetest),
    Row {
        operation_name: "Lat",
        selection: Selection::Whole,
        listing: Listing::LastIterationOfRatios,
        ..row("schbench", Rows::Singleops, false, 2, old::schbench)
    },
    Row { selection: Selection::Whole, ..row("tbench4", Rows::Multiops, true, 2, old::tbench4) },
];

/// Names under which a benchmark of one state goes in the other: `(name, its name there)`.
const CURRENT_ALIASES: &[(&str, &str)] = &[("dbench4", "dbench"), ("tbench4", "tbench")];
const CLASSIC_ALIASES: &[(&str, &str)] =
    &[("dbench", "dbench4"), ("tbench", "tbench4"), ("hackbench", "hackbenchprocesspipes")];

/// The benchmark that the options name.
pub(super) fn find(options: &Options) -> Result<Benchmark, Error> {
    let found = match options.style {
        Style::Interval2024 => find_current(&options.benchmark),
        Style::Classic2020 => find_classic(&options.benchmark, options.alternative.as_deref().unwrap_or("")),
    };
    let table = match options.style {
        Style::Interval2024 => CURRENT,
        Style::Classic2020 => CLASSIC,
    };
    let alternative = options.alternative.as_deref().unwrap_or("");
    // The newer state has other reports of benchmarks that are not read here; of these it has the main one only.
    if let (true, Some(_), Style::Interval2024) = (!alternative.is_empty(), found, options.style) {
        let known = "there is the main report only; `--sub-heading` selects operations of it".to_owned();
        return Err(unknown_report(options, alternative, known));
    }
    let Some(row) = found else {
        let reports = reports_of(options);
        if !alternative.is_empty() && !reports.is_empty() {
            let known = reports.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(unknown_report(options, alternative, format!("there are the main one and {known}")));
        }
        if !alternative.is_empty() && find_classic(&options.benchmark, "").is_some() {
            return Err(unknown_report(options, alternative, "there is the main report only".to_owned()));
        }
        return Err(Error::UnknownBenchmark {
            benchmark: format!("{}{}", options.benchmark, options.alternative.as_deref().unwrap_or("")),
            style: options.style.name(),
            known: table.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        });
    };
    let sub_heading = options.sub_heading.as_deref().unwrap_or("");
    let changes = row.sub_headings.iter().find(|heading| heading.name == sub_heading);
    Ok(Benchmark {
        rows: changes.and_then(|changes| changes.rows).unwrap_or(row.rows),
        higher: row.higher || changes.is_some_and(|changes| changes.higher),
        decimals: row.decimals,
        operation_name: row.operation_name,
        selection: row.selection,
        listing: row.listing,
        reader: row.reader,
    })
}

fn unknown_report(options: &Options, alternative: &str, known: String) -> Error {
    Error::UnknownReport {
        benchmark: options.benchmark.clone(),
        alternative: alternative.to_owned(),
        style: options.style.name(),
        known,
    }
}

/// The further reports of a benchmark of 2020: the rest of the names that its own name begins.
fn reports_of(options: &Options) -> Vec<&'static str> {
    let Some(main) = find_classic(&options.benchmark, "").filter(|_| options.style == Style::Classic2020)
    else {
        return Vec::new();
    };
    // `cyclictestpinned` is a benchmark of its own, not a report of `cyclictest`.
    let rest = |row: &'static Row| row.name.strip_prefix(main.name).filter(|rest| !rest.is_empty());
    let is_report = |rest: &&str| ["tput", "latency", "opslatency"].contains(rest);
    CLASSIC.iter().filter_map(rest).filter(is_report).collect()
}

/// A benchmark's family, by which trees and files of outputs are told apart; the newer state's row of it; what the names
/// of its directories begin with.
const FAMILIES: &[(&str, &str, &str)] = &[
    ("cyclictest", "cyclictest", "cyclictest"),
    ("dbench", "dbench", "dbench"),
    ("hackbench", "hackbench", "hackbench"),
    ("kernbench", "kernbench", "kernbench"),
    ("netperf", "netperf", "netperf"),
    ("perfpipe", "perfpipe", "perfpipe"),
    ("pipetest", "", "pipetest"),
    ("schbench", "schbench", "schbench"),
    ("stress-ng", "stressng", "stressng"),
    ("tbench", "tbench", "tbench"),
    ("unixbench", "unixbenchd", "unixbench"),
];

/// The family of a benchmark's directory (`hackbench-process-pipes`: `hackbench`).
pub(super) fn family(benchmark: &str) -> Result<&'static str, Error> {
    let plain = benchmark.to_ascii_lowercase();
    let found = FAMILIES.iter().find(|(.., start)| plain.starts_with(start));
    found.map(|(family, ..)| *family).ok_or_else(|| Error::UnknownBenchmark {
        benchmark: benchmark.to_owned(),
        style: "text",
        known: FAMILIES.iter().map(|(family, ..)| *family).collect::<Vec<_>>().join(", "),
    })
}

/// The newer layout's reader of a family.
pub(super) fn reader_2024(family: &str) -> Option<Reader> {
    let (_, name, _) = FAMILIES.iter().find(|(known, ..)| *known == family)?;
    CURRENT.iter().find(|row| row.name == *name).map(|row| row.reader)
}

/// mmtests looks for the whole name, then drops the last `-part` again and again.
fn find_current(benchmark: &str) -> Option<&'static Row> {
    let mut name = benchmark;
    loop {
        let target = CURRENT_ALIASES.iter().find(|alias| alias.0 == name).map_or(name, |alias| alias.1);
        if let Some(row) = CURRENT.iter().find(|row| row.name == target) {
            return Some(row);
        }
        name = name.rsplit_once('-')?.0;
    }
}

fn find_classic(benchmark: &str, alternative: &str) -> Option<&'static Row> {
    let base = benchmark.replace('-', "").to_ascii_lowercase();
    let base = CLASSIC_ALIASES.iter().find(|alias| alias.0 == base).map_or(base.as_str(), |alias| alias.1);
    let name = format!("{base}{}", alternative.to_ascii_lowercase());
    CLASSIC.iter().find(|row| row.name == name)
}

impl Rows {
    /// The statistics of the set, in the style's order.
    pub(super) const fn stats(self, style: Style) -> &'static [Stat] {
        use Stat::{BestMean, CoeffVar, Max, Mean, Min, Percentile, Stddev, SubMean, SubMeanInterval, Value};
        match (self, style) {
            (Self::Multiops, Style::Interval2024) => &[Min, Mean, Stddev, CoeffVar, Max, BestMean(95.0)],
            (Self::Multiops, Style::Classic2020) => {
                &[Min, Mean, Stddev, CoeffVar, Max, BestMean(50.0), BestMean(95.0), BestMean(99.0)]
            }
            (Self::Normalisedops, _) => &[Min, Mean, BestMean(95.0), Percentile(95.0), Stddev, CoeffVar, Max],
            (Self::NormalisedLeftSkewops, _) => &[
                Min,
                Mean,
                BestMean(50.0),
                Percentile(50.0),
                BestMean(75.0),
                Percentile(75.0),
                BestMean(90.0),
                Percentile(90.0),
                BestMean(99.0),
                Percentile(99.0),
                Stddev,
                CoeffVar,
                Max,
            ],
            (Self::Singleops, _) => &[Value],
            (Self::Subselection, Style::Interval2024) => {
                &[Min, Mean, BestMean(95.0), Stddev, CoeffVar, Max, SubMean, SubMeanInterval]
            }
            (Self::Subselection, Style::Classic2020) => {
                &[Min, Mean, Stddev, CoeffVar, Max, SubMean, SubMeanInterval]
            }
            (Self::Variabletime, _) => &[
                Min,
                Percentile(25.0),
                Percentile(50.0),
                Percentile(75.0),
                Percentile(1.0),
                Percentile(5.0),
                Percentile(10.0),
                Percentile(90.0),
                Percentile(95.0),
                Percentile(99.0),
                Max,
                Mean,
                Stddev,
                CoeffVar,
                BestMean(99.0),
                BestMean(95.0),
                BestMean(90.0),
                BestMean(75.0),
                BestMean(50.0),
                BestMean(25.0),
            ],
        }
    }

    /// The statistic that ratio tables show.
    pub(super) const fn ratio_stat(self) -> Stat {
        match self {
            Self::Multiops | Self::Normalisedops | Self::NormalisedLeftSkewops => Stat::Mean,
            Self::Singleops => Stat::Value,
            Self::Subselection => Stat::SubMean,
            Self::Variabletime => Stat::Percentile(95.0),
        }
    }

    /// Whether ratio tables have a column of differences by spread.
    pub(super) const fn ratio_has_spread(self) -> bool {
        match self {
            Self::Multiops | Self::Normalisedops | Self::NormalisedLeftSkewops | Self::Subselection => true,
            Self::Singleops | Self::Variabletime => false,
        }
    }
}

impl Stat {
    /// The name in the table's first column.
    pub(super) fn name(self, benchmark: &Benchmark, style: Style) -> String {
        let letter = if benchmark.higher { "H" } else { "A" };
        let classic = style == Style::Classic2020;
        let harmonic = if benchmark.higher && !classic { "H" } else { "" };
        match self {
            Self::Min => "Min".to_owned(),
            Self::Max => "Max".to_owned(),
            Self::Mean => format!("{letter}mean"),
            Self::BestMean(percent) if classic => format!("B{letter}mean-{percent:.0}"),
            Self::BestMean(percent) => format!("B{letter}mean.{percent:.0}"),
            Self::Percentile(25.0) if classic => "1st-qrtle".to_owned(),
            Self::Percentile(50.0) if classic => "2nd-qrtle".to_owned(),
            Self::Percentile(75.0) if classic => "3rd-qrtle".to_owned(),
            Self::Percentile(percent) if classic => format!("Max-{percent:.0}"),
            Self::Percentile(percent) => format!("Pctile.{percent:.0}"),
            Self::Stddev => format!("{harmonic}Stddev"),
            Self::CoeffVar => format!("{harmonic}CoeffVar"),
            Self::Value => benchmark.operation_name.to_owned(),
            Self::SubMean => format!("Sub{letter}mean"),
            Self::SubMeanInterval if classic => "SubmeanCI".to_owned(),
            Self::SubMeanInterval => format!("Sub{letter}meanCI"),
        }
    }

    /// Whether less of it is better whatever the metric.
    pub(super) const fn is_spread(self) -> bool {
        match self {
            Self::Stddev | Self::CoeffVar | Self::SubMeanInterval => true,
            Self::Min
            | Self::Max
            | Self::Mean
            | Self::BestMean(_)
            | Self::Percentile(_)
            | Self::Value
            | Self::SubMean => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_last_parts_until_a_benchmark_is_found() {
        assert_eq!(find_current("hackbench-process-pipes").map(|row| row.name), Some("hackbench"));
        assert_eq!(find_current("netperf-ipv4-tcp-rr").map(|row| row.name), Some("netperf"));
        assert_eq!(find_current("dbench4").map(|row| row.name), Some("dbench"));
        assert!(find_current("hackbenchx").is_none());
        assert_eq!(find_classic("dbench4", "tput").map(|row| row.name), Some("dbench4tput"));
        assert_eq!(find_classic("netperf-tcp-rr", "").map(|row| row.name), Some("netperftcprr"));
    }
}
