//! Percentages beside the values that they are of: mmtests' cells, rows of before and after, pairs in the text.
//!
//! mmtests computes a percentage from unrounded values and rounds it; everybody else may also have cut digits off, and
//! divides by the first value or, for a speed-up, by the second. Which of several columns a lone percentage is of is taken
//! from the table itself: the pair that fits nearly all of its rows.

use super::text::{Number, Token, increase};
use super::{Finding, Kind, Line, Report};
use std::collections::BTreeMap;

/// Rows beyond this belong to the next table; bounds memory.
const ROWS_MAX: usize = 4096;

/// The tables of a text, as far as they are open.
#[derive(Default)]
pub(super) struct Tables {
    cells: Vec<CellRow>,
    wide: Vec<WideRow>,
    two: Vec<TwoRow>,
    /// Lines since the head of a table of changes.
    since_head: Option<usize>,
}

/// A row of mmtests: a statistic, an operation, values with percentages.
struct CellRow {
    line: usize,
    statistic: String,
    operation: String,
    values: Vec<Number>,
    percents: Vec<Option<Number>>,
}

/// A row with more than two values before its percentage.
struct WideRow {
    line: usize,
    values: Vec<Number>,
    percent: Number,
}

/// A row `label before after percent` that nothing but its neighbours could confirm.
struct TwoRow {
    line: usize,
    base: Number,
    new: Number,
    percent: Number,
    certain: bool,
}

/// Column heads of the old and of the new, and words that head a column of changes.
const PAIRS: [(&[&str], &[&str]); 4] = [
    (&["before"], &["after"]),
    (&["without"], &["with"]),
    (&["w/o"], &["w/", "with"]),
    (
        &["vanilla", "base", "baseline", "old", "tip", "unpatched", "mainline"],
        &["patched", "patch", "new", "series", "after"],
    ),
];
const CHANGE: [&str; 8] =
    ["diff", "delta", "change", "improvement", "gain", "regression", "speedup", "effect"];

/// Whether a line heads a table of changes; prose that has such a word in passing does not.
fn is_head(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || "|():,*".contains(c))
        .map(|word| word.trim_matches('%'))
        .filter(|word| !word.is_empty())
        .collect();
    let any = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let pair = PAIRS.iter().any(|(old, new)| any(old) && any(new));
    words.len() <= 12 && (pair || (any(&CHANGE) && words.len() <= 8))
}

impl Tables {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        self.since_head = if is_head(line.text) { Some(0) } else { self.since_head.map(|lines| lines + 1) };
        if !line.tokens.iter().any(|token| token.number().is_some_and(|number| number.percent)) {
            // A rule or a blank line does not end a table of rows; a line of text does.
            if line.tokens.iter().any(|token| token.word().is_some_and(|word| !word.starts_with('-'))) {
                self.finish(report);
            }
            return;
        }
        if self.cells.len().max(self.wide.len()).max(self.two.len()) >= ROWS_MAX {
            self.finish(report);
        }
        if pairs(line, report) {
            return;
        }
        if let Some(row) = cell_row(line) {
            self.cells.push(row);
        } else if !based_cells(line, report) {
            self.row(line);
        }
    }

    /// The end of a table: what only the whole table tells.
    pub(super) fn finish(&mut self, report: &mut Report) {
        check_cells(&std::mem::take(&mut self.cells), report);
        check_wide(&std::mem::take(&mut self.wide), report);
        check_two(&std::mem::take(&mut self.two), report);
    }

    /// A row whose last figure is a percentage.
    fn row(&mut self, line: &Line<'_>) {
        let Some((values, percent)) = values_and_percent(line) else { return };
        match values.as_slice() {
            [base, new] => {
                let headed = self.since_head.is_some_and(|lines| lines <= 20);
                // UnixBench's lists stand alone: fractions, and a percentage to two decimals.
                let fine = base.decimals > 0 && new.decimals > 0 && percent.decimals >= 2;
                self.two.push(TwoRow {
                    line: line.number,
                    base: base.clone(),
                    new: new.clone(),
                    certain: headed || percent.signed || fine,
                    percent,
                });
            }
            [_, _, ..] => self.wide.push(WideRow { line: line.number, values, percent }),
            _ => {}
        }
    }
}

/// Words between a value and what follows it that say only its unit.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 19] = [
        "s", "ms", "us", "ns", "sec", "secs", "seconds", "usec", "usecs", "iops", "IOPS", "MB/s", "MB/sec",
        "KB/s", "GB/s", "lps", "ops/s", "ops/sec", "µs",
    ];
    UNITS.contains(&word.trim_end_matches([',', ':', ';']))
}

/// The values of a row and the percentage that ends it: the first cell of a barred row, and words, are its label.
fn values_and_percent(line: &Line<'_>) -> Option<(Vec<Number>, Number)> {
    let mut tokens: Vec<&Token<'_>> = line.tokens.iter().filter(|token| !token.is_mark("()*[]")).collect();
    let barred = tokens.iter().filter(|token| token.is_mark("|")).count() >= 2;
    if barred {
        let first = tokens.iter().position(|token| token.is_mark("|"))?;
        let lead = usize::from(first == 0);
        let second = tokens.iter().skip(first + lead).position(|token| token.is_mark("|"))?;
        tokens.drain(..=first + second);
        tokens.retain(|token| !token.is_mark("|"));
    }
    tokens.retain(|token| !token.word().is_some_and(is_unit));
    let percent = tokens.pop()?.number().filter(|number| number.percent)?.clone();
    let mut values: Vec<Number> = Vec::new();
    while let Some(number) = tokens.last().and_then(|token| token.number()) {
        if number.percent {
            // Several percentages: which is of what is not known.
            return None;
        }
        values.insert(0, number.clone());
        tokens.pop();
    }
    // `1  7.5853  7.6697  -1.01%`: a whole number before fractions counts groups or clients.
    if !barred && tokens.is_empty() && values.len() >= 3 {
        let fractions = values[1..].iter().all(|value| value.decimals > 0);
        if values[0].decimals == 0 && (fractions || values.len() == 3) {
            values.remove(0);
        }
    }
    (values.len() >= 2).then_some((values, percent))
}

/// mmtests' cells: a value and its percentage in brackets or stars; the first is the baseline, 0.00 %.
fn cell_row(line: &Line<'_>) -> Option<CellRow> {
    let (mut values, mut percents) = (Vec::new(), Vec::new());
    let mut first = None;
    let mut at = 0;
    while at + 2 < line.tokens.len() {
        let opened = line.tokens[at + 1].is_mark("(*") && line.tokens[at].number().is_some();
        let percent = match &line.tokens[at + 2] {
            Token::Number(number) if number.percent => Some(Some(number.clone())),
            Token::Word(word) if word.trim_start_matches('-').starts_with("nan%") => Some(None),
            Token::Number(_) | Token::Word(_) | Token::Mark(_) => None,
        };
        if let (true, Some(percent), Some(value)) = (opened, percent, line.tokens[at].number()) {
            first.get_or_insert(at);
            values.push(value.clone());
            percents.push(percent);
            at += 3;
        }
        at += 1;
    }
    let zero = percents.first()?.as_ref().is_some_and(|percent| percent.value == 0.0);
    if values.len() < 2 || !zero {
        return None;
    }
    let mut label = line.tokens[..first?].iter().map(|token| match token {
        Token::Number(number) => number.text.clone(),
        Token::Word(word) => (*word).to_owned(),
        Token::Mark(mark) => mark.to_string(),
    });
    let statistic = label.next().unwrap_or_default();
    let operation = label.collect::<Vec<_>>().join(" ");
    Some(CellRow { line: line.number, statistic, operation, values, percents })
}

/// Smaller is always better.
fn is_spread(statistic: &str) -> bool {
    ["Stddev", "HStddev", "CoeffVar", "HCoeffVar", "SubmeanCI", "SubAmeanCI", "SubHmeanCI"]
        .contains(&statistic)
}

fn check_cells(rows: &[CellRow], report: &mut Report) {
    // Votes of rows that fit one direction only.
    let (mut lower, mut higher) = (0usize, 0usize);
    for (row, base, new, percent) in comparisons(rows) {
        if let Some((least, most, _)) = increase(base, new).filter(|_| !is_spread(&row.statistic)) {
            match (percent.admits(-most, -least, false), percent.admits(least, most, false)) {
                (true, false) => lower += 1,
                (false, true) => higher += 1,
                (true, true) | (false, false) => {}
            }
        }
    }
    for (row, base, new, percent) in comparisons(rows) {
        // mmtests prints what is missing as 0 and 0.00 %.
        let missing = new.value == 0.0 && percent.value == 0.0;
        let Some((least, most, middle)) = increase(base, new).filter(|_| !missing) else { continue };
        let named_lower = if row.statistic.contains("mean") {
            !row.statistic.contains("Hmean")
        } else {
            percent_sign_is_lower(percent, middle)
        };
        let is_lower =
            is_spread(&row.statistic) || if lower == higher { named_lower } else { lower > higher };
        let (least, most, middle) = if is_lower { (-most, -least, -middle) } else { (least, most, middle) };
        let holds = percent.admits(least, most, false);
        let turned = !holds && percent.admits(-most, -least, false);
        report.check(holds, || {
            let kind = if turned { Kind::Sign } else { Kind::Percentage };
            let direction = if is_lower { "lower is better here" } else { "higher is better here" };
            finding(
                row.line,
                percent,
                middle,
                (least, most),
                kind,
                &format!("{} against {}, {direction}", new.text, base.text),
            )
        });
    }
    check_variation(rows, report);
}

/// Without a word on the direction, the printed sign is believed.
fn percent_sign_is_lower(percent: &Number, increase: f64) -> bool {
    (percent.value < 0.0) == (increase > 0.0)
}

/// Every value with a percentage, against its row's baseline.
fn comparisons(rows: &[CellRow]) -> impl Iterator<Item = (&CellRow, &Number, &Number, &Number)> {
    // In `Significant` rows the percent slot holds something else.
    rows.iter().filter(|row| row.statistic != "Significant").flat_map(|row| {
        let columns = row.values.iter().zip(&row.percents).skip(1);
        columns.filter_map(move |(value, percent)| Some((row, &row.values[0], value, percent.as_ref()?)))
    })
}

/// The coefficient of variation against mean and deviation; the mean between the extremes.
fn check_variation(rows: &[CellRow], report: &mut Report) {
    let mut by_name: BTreeMap<(&str, &str), &CellRow> = BTreeMap::new();
    for row in rows {
        by_name.entry((&row.statistic, &row.operation)).or_insert(row);
    }
    for ((statistic, operation), row) in &by_name {
        let get = |name: &str, column: usize| {
            by_name.get(&(name, *operation)).and_then(|other| other.values.get(column))
        };
        for (column, value) in row.values.iter().enumerate() {
            let parts = match *statistic {
                "CoeffVar" => Some(("Amean", "Stddev")),
                "HCoeffVar" => Some(("Hmean", "HStddev")),
                _ => None,
            };
            if let Some((mean, deviation)) = parts
                && let (Some(mean), Some(deviation)) = (get(mean, column), get(deviation, column))
                && mean.low() > 0.0
            {
                let percent = |deviation: f64, mean: f64| 100.0 * deviation.max(0.0) / mean;
                let (least, most) =
                    (percent(deviation.low(), mean.high()), percent(deviation.high(), mean.low()));
                report.check(value.admits(least, most, false), || {
                    let middle = percent(deviation.value, mean.value);
                    let from = format!("deviation {} of mean {}", deviation.text, mean.text);
                    finding(row.line, value, middle, (least, most), Kind::Variation, &from)
                });
            }
            if (*statistic == "Amean" || *statistic == "Hmean")
                && let (Some(min), Some(max)) = (get("Min", column), get("Max", column))
            {
                report.check(min.low() <= value.high() && value.low() <= max.high(), || Finding {
                    line: row.line,
                    says: value.text.clone(),
                    should_be: format!("{} to {}", min.text, max.text),
                    kind: Kind::Bounds,
                    why: "a mean lies between minimum and maximum".to_owned(),
                });
            }
        }
    }
}

fn finding(line: usize, printed: &Number, middle: f64, range: (f64, f64), kind: Kind, from: &str) -> Finding {
    let off = match kind {
        Kind::Sign => "the sign is turned".to_owned(),
        _ => {
            let beyond =
                if printed.value > range.1 { printed.low() - range.1 } else { range.0 - printed.high() };
            format!("off by {:.2}, {beyond:.2} beyond what rounding allows", (printed.value - middle).abs())
        }
    };
    Finding {
        line,
        says: printed.shown(),
        should_be: printed.alike(middle),
        kind,
        why: format!("{from}: {:.4} to {:.4}; {off}", range.0, range.1),
    }
}

/// Whether a percentage of anybody's making fits: either sign, digits cut off or rounded, divided by either value.
fn fits(base: &Number, new: &Number, percent: &Number) -> Option<bool> {
    let signs = |base: &Number, new: &Number| {
        increase(base, new)
            .map(|(least, most, _)| percent.admits(least, most, true) || percent.admits(-most, -least, true))
    };
    let by_base = signs(base, new)?;
    Some(by_base || signs(new, base).unwrap_or(false))
}

/// What the percentage of a pair should have been, with the sign that was printed.
fn pair_finding(line: usize, base: &Number, new: &Number, percent: &Number) -> Finding {
    let (least, most, middle) = increase(base, new).unwrap_or((0.0, 0.0, 0.0));
    let turned = (percent.value < 0.0) != (middle < 0.0);
    let (least, most, middle) = if turned { (-most, -least, -middle) } else { (least, most, middle) };
    finding(
        line,
        percent,
        middle,
        (least, most),
        Kind::Percentage,
        &format!("{} against {}", new.text, base.text),
    )
}

/// `417 of 1000 (41.7%)`, a deviation in percent of its mean: a share, not a change. Signs are for changes.
fn is_share(base: &Number, new: &Number, percent: &Number) -> bool {
    let of = |part: &Number, whole: &Number| {
        whole.low() > 0.0
            && percent.admits(100.0 * part.low() / whole.high(), 100.0 * part.high() / whole.low(), true)
    };
    !percent.signed && (of(base, new) || of(new, base))
}

fn check_pair(line: usize, base: &Number, new: &Number, percent: &Number, report: &mut Report) {
    if let Some(holds) = fits(base, new, percent) {
        report.check(holds || is_share(base, new, percent), || pair_finding(line, base, new, percent));
    }
}

/// `7.5853 -> 7.6697 (-1.01%)`, `from 10.1006 to 9.6878, 4.08%`, `4.08% (10.1006 -> 9.6878)`.
fn pairs(line: &Line<'_>, report: &mut Report) -> bool {
    let tokens = line.tokens;
    let mut any = false;
    for at in 1..tokens.len().saturating_sub(1) {
        let Some(word) = tokens[at].word() else { continue };
        // A unit may stand between the value and the arrow.
        let before =
            if tokens[at - 1].word().is_some_and(is_unit) { at.checked_sub(2) } else { Some(at - 1) };
        let Some(before) = before else { continue };
        let Some(base) = tokens[before].number().filter(|number| !number.percent) else { continue };
        let joins = match word {
            "->" | "-->" | "=>" | "==>" | "vs" | "vs." | "versus" => true,
            "to" => before > 0 && tokens[before - 1].word() == Some("from"),
            _ => false,
        };
        let Some(new) = tokens[at + 1].number().filter(|number| joins && !number.percent) else { continue };
        let after = tokens[at + 2..]
            .iter()
            .find(|token| !(token.is_mark("(*[=") || token.word().is_some_and(is_unit)))
            .and_then(Token::number)
            .filter(|number| number.percent);
        let ahead = (before >= 2 && tokens[before - 1].is_mark("("))
            .then(|| tokens[before - 2].number())
            .flatten()
            .filter(|number| number.percent);
        if let Some(percent) = after.or(ahead) {
            check_pair(line.number, base, new, percent, report);
            any = true;
        }
    }
    any
}

/// `1   325.97   378.91 (  16.24%)`: a base without a percentage, then values with one each.
fn based_cells(line: &Line<'_>, report: &mut Report) -> bool {
    let mut tokens: Vec<&Token<'_>> = line.tokens.iter().filter(|token| !token.is_mark("|")).collect();
    tokens.retain(|token| !token.word().is_some_and(is_unit));
    let mut base: Option<&Number> = None;
    let mut any = false;
    let mut at = 0;
    while at + 2 < tokens.len() {
        let percent = tokens[at + 2].number().filter(|number| number.percent && tokens[at + 1].is_mark("(*"));
        if let (Some(new), Some(percent)) = (tokens[at].number().filter(|number| !number.percent), percent) {
            if base.is_none() {
                base =
                    at.checked_sub(1).and_then(|before| tokens[before].number()).filter(|base| !base.percent);
            }
            let Some(base) = base else { return false };
            // A group's number before deviations in brackets is no base.
            let (low, high) = (base.value.min(new.value), base.value.max(new.value));
            if base.decimals != new.decimals || (high > 5.0 * low && percent.value.abs() < 50.0) {
                return false;
            }
            check_pair(line.number, base, new, percent, report);
            any = true;
            at += 3;
        }
        at += 1;
    }
    any
}

fn check_two(rows: &[TwoRow], report: &mut Report) {
    let fit = rows.iter().filter(|row| fits(&row.base, &row.new, &row.percent) == Some(true)).count();
    let confirmed = fit >= 2 && fit * 2 > rows.len();
    for row in rows.iter().filter(|row| row.certain || confirmed) {
        check_pair(row.line, &row.base, &row.new, &row.percent, report);
    }
}

fn check_wide(rows: &[WideRow], report: &mut Report) {
    for columns in 3..=rows.iter().map(|row| row.values.len()).max().unwrap_or(0).min(16) {
        let same: Vec<&WideRow> = rows.iter().filter(|row| row.values.len() == columns).collect();
        let mut best: Option<(usize, usize, usize)> = None;
        for base in 0..columns {
            for new in (0..columns).filter(|new| *new != base) {
                let count = same
                    .iter()
                    .filter(|row| fits(&row.values[base], &row.values[new], &row.percent) == Some(true))
                    .count();
                if best.is_none_or(|(most, _, _)| count > most) {
                    best = Some((count, base, new));
                }
            }
        }
        // Two of three, four of five: fewer could be chance.
        if let Some((count, base, new)) = best
            && count >= 2
            && count * 3 >= same.len() * 2
        {
            for row in same {
                check_pair(row.line, &row.values[base], &row.values[new], &row.percent, report);
            }
        }
    }
}
