//! schbench's percentiles, one column or several side by side: in order, and values that its buckets print.

use super::text::{Number, Token};
use super::{Finding, Kind, Line, Report};
use crate::outputs::{VALUE_MAX, bucket_value, is_producible};

/// The block that is open.
#[derive(Default)]
pub(super) struct Blocks {
    /// Label of the last row, and its values by column.
    last: Option<(f64, Vec<Number>)>,
    /// The title's line and its count of samples, and the counts of the rows so far.
    total: Option<(usize, u64, u64)>,
}

impl Blocks {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let is_json = line.text.trim_start().starts_with(r#"{"normal": {"#);
        if is_json {
            // Its end is glued to the next stream's line, which may be a title.
            json(line, report);
        }
        if line.text.contains("percentiles (") {
            self.last = None;
            let total = number_before(line.tokens, "total");
            self.total = total.map(|total| (line.number, total, 0));
            return;
        }
        if is_json {
            return;
        }
        match row(line.tokens) {
            Some((label, values, samples)) => self.row(line, label, values, samples, report),
            None => self.end(line, report),
        }
    }

    fn row(
        &mut self,
        line: &Line<'_>,
        label: f64,
        values: Vec<Number>,
        samples: Option<u64>,
        report: &mut Report,
    ) {
        for value in &values {
            // A mean over runs has decimals and is nobody's bucket.
            let Some(whole) = value.whole() else { continue };
            report.check(is_producible(whole), || bucket_finding(line.number, whole));
        }
        if let Some((below, previous)) = self.last.as_ref().filter(|(below, _)| *below < label) {
            for (value, before) in values.iter().zip(previous) {
                report.check(value.value >= before.value, || Finding {
                    line: line.number,
                    says: value.text.clone(),
                    should_be: format!("at least {}", before.text),
                    kind: Kind::PercentileOrder,
                    why: format!(
                        "the {label} percentile is below the {below} percentile, by {}",
                        before.value - value.value
                    ),
                });
            }
        }
        if let (Some((title, total, sum)), Some(samples)) = (&mut self.total, samples) {
            *sum = sum.saturating_add(samples);
            let (title, total, sum) = (*title, *total, *sum);
            report.check(sum <= total, || Finding {
                line: line.number,
                says: format!("{sum} samples up to here"),
                should_be: format!("at most {total}"),
                kind: Kind::SampleCount,
                why: format!("line {title} counts {total} samples in all"),
            });
        }
        self.last = Some((label, values));
    }

    /// `min=0, max=208000` ends a block.
    fn end(&mut self, line: &Line<'_>, report: &mut Report) {
        let [
            Token::Word("min"),
            Token::Mark('='),
            Token::Number(_),
            Token::Word("max"),
            Token::Mark('='),
            Token::Number(max),
        ] = line.tokens
        else {
            // Text ends a block, an empty line does not.
            if !line.tokens.is_empty() {
                self.last = None;
                self.total = None;
            }
            return;
        };
        if let (Some((label, values)), Some(max)) = (self.last.take(), max.whole())
            && let [value] = values.as_slice()
        {
            let most = bucket_value(max);
            report.check(value.whole().is_none_or(|value| value <= most), || Finding {
                line: line.number,
                says: value.text.clone(),
                should_be: format!("at most {most}"),
                kind: Kind::PercentileOrder,
                why: format!("the {label} percentile is above the bucket of the maximum {max}"),
            });
        }
        self.total = None;
    }
}

fn bucket_finding(line: usize, printed: u64) -> Finding {
    let nearest = bucket_value(printed);
    Finding {
        line,
        says: printed.to_string(),
        should_be: nearest.to_string(),
        kind: Kind::Bucket,
        why: if printed > VALUE_MAX {
            format!("schbench's histogram saturates at {VALUE_MAX}")
        } else {
            format!(
                "no bucket of schbench's histogram prints {printed}; off by {}",
                printed.abs_diff(nearest)
            )
        },
    }
}

/// `* 99.0th: 4312       (26 samples)`, or `99.0000th:  17  10`: label, values by column, count of samples.
fn row(tokens: &[Token<'_>]) -> Option<(f64, Vec<Number>, Option<u64>)> {
    let mut tokens: Vec<&Token<'_>> = tokens.iter().filter(|token| !token.is_mark("*|")).collect();
    let label = tokens.first()?.word()?.strip_suffix("th:")?;
    let label: f64 = label.parse().ok().filter(|label| (0.0..=100.0).contains(label))?;
    let mut samples = None;
    if let Some(open) = tokens.iter().position(|token| token.is_mark("(")) {
        samples = match tokens[open + 1..] {
            [Token::Number(count), Token::Word("samples"), ..] => count.whole(),
            _ => None,
        };
        tokens.truncate(open);
    }
    let numbers = tokens[1..].iter().filter_map(|token| token.number());
    let values: Vec<Number> = numbers.filter(|number| !number.percent).cloned().collect();
    (!values.is_empty()).then_some((label, values, samples))
}

/// The whole number before a word.
fn number_before(tokens: &[Token<'_>], word: &str) -> Option<u64> {
    let at = tokens.iter().position(|token| token.word() == Some(word))?;
    tokens[at.checked_sub(1)?].number()?.whole()
}

/// The same of the JSON line.
fn json(line: &Line<'_>, report: &mut Report) {
    let mut last: Option<(&str, u64)> = None;
    for piece in line.text.split(", \"") {
        let Some((key, value)) = piece.split_once("\": ") else { continue };
        let Some((group, _)) = key.split_once("_pct") else { continue };
        let Ok(value) = value.parse::<u64>() else { continue };
        report.check(is_producible(value), || bucket_finding(line.number, value));
        if let Some((_, before)) = last.filter(|(name, _)| *name == group) {
            report.check(value >= before, || Finding {
                line: line.number,
                says: value.to_string(),
                should_be: format!("at least {before}"),
                kind: Kind::PercentileOrder,
                why: format!("{key} is below the percentile before it"),
            });
        }
        last = Some((group, value));
    }
}
