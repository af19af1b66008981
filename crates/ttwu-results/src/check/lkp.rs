//! The tables of the kernel test robot's mails (LKP): a mean with its relative deviation, the change, the other commit's mean.
//!
//! ```text
//!        fail:runs  %reproduction    fail:runs
//!            |             |             |
//!          1:6           17%           2:6     dmesg.BUG
//!         %stddev     %change         %stddev
//!             \          |                \
//!     138055 ± 18%     +33.4%     184128 ± 14%  cpuidle..usage
//!       3.32 ± 46%      +1.5        4.82 ± 13%  perf-profile.calltrace.x
//! ```
//!
//! A change without a percent sign is a difference, of metrics that are percentages themselves. Means are of unrounded runs,
//! so the printed ones stand for intervals. A deviation of `n` runs that cannot be negative is at most √(n − 1) of
//! their mean; it is checked where the table says how many runs there were.
//!
//! Not done: the robot's `%reproduction`, which mixes counts with rates; whether a change is more than its deviations.

use super::text::{Number, Token, increase, tokens};
use super::{Finding, Kind, Line, Report};

/// What is known of the table that is open.
#[derive(Default)]
pub(super) struct Tables {
    /// Between `%stddev` and the next head.
    open: bool,
    /// Runs a commit, from `fail:runs`.
    runs: Vec<Option<u64>>,
}

/// A mean and its relative deviation in percent.
struct Mean {
    value: Number,
    deviation: Option<Number>,
}

impl Tables {
    /// Whether the line belongs to such a table.
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report) -> bool {
        let has = |word: &str| line.text.split_whitespace().any(|found| found == word);
        if has("fail:runs") {
            *self = Self { open: true, runs: Vec::new() };
            return true;
        }
        if has("%stddev") && has("%change") {
            self.open = true;
            return true;
        }
        // The next comparison has other runs.
        if line.text.trim_start().starts_with("commit:") {
            *self = Self::default();
            return false;
        }
        if !self.open {
            return false;
        }
        if let Some(runs) = fail_row(line.text) {
            self.note_runs(&runs);
            return true;
        }
        let Some((base, others)) = row(line.text) else { return false };
        for (change, new) in &others {
            check_change(line.number, &base.value, change, &new.value, report);
        }
        for (column, mean) in std::iter::once(&base).chain(others.iter().map(|(_, new)| new)).enumerate() {
            if let (Some(deviation), Some(Some(runs))) = (&mean.deviation, self.runs.get(column)) {
                check_deviation(line.number, mean, deviation, *runs, report);
            }
        }
        true
    }

    /// The number of runs is the same in all rows of a commit.
    fn note_runs(&mut self, runs: &[u64]) {
        self.runs.resize(self.runs.len().max(runs.len()), None);
        for (known, found) in self.runs.iter_mut().zip(runs) {
            known.get_or_insert(*found);
        }
    }
}

/// `1:6   17%   2:6   name`: runs by commit; an empty count of failures stands before the colon where there were none.
fn fail_row(text: &str) -> Option<Vec<u64>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let runs_of = |word: &str| -> Option<u64> {
        let (fails, runs) = word.split_once(':')?;
        let is_count = fails.bytes().all(|byte| byte.is_ascii_digit());
        runs.parse().ok().filter(|runs| is_count && *runs > 0)
    };
    let mut runs = vec![runs_of(words.first()?)?];
    let mut at = 1;
    while let (Some(percent), Some(count)) = (words.get(at), words.get(at + 1)) {
        let (true, Some(count)) = (percent.ends_with('%'), runs_of(count)) else { break };
        runs.push(count);
        at += 2;
    }
    (runs.len() >= 2 && words.len() == at + 1).then_some(runs)
}

/// A row: a mean, then changes each with the mean of another commit, then a name.
fn row(text: &str) -> Option<(Mean, Vec<(Number, Mean)>)> {
    // The sign may be glued to its figure.
    let spaced = text.replace('\u{b1}', " \u{b1} ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (name, figures) = words.split_last()?;
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let mut rest = figures;
    let base = mean(&mut rest)?;
    let mut others = Vec::new();
    while !rest.is_empty() {
        let change = number(rest.first()?).filter(|change| change.signed)?;
        rest = &rest[1..];
        others.push((change, mean(&mut rest)?));
    }
    (!others.is_empty()).then_some((base, others))
}

fn number(word: &str) -> Option<Number> {
    match tokens(word).as_slice() {
        [Token::Number(number)] => Some(number.clone()),
        _ => None,
    }
}

fn mean(words: &mut &[&str]) -> Option<Mean> {
    let mut value = number(words.first()?).filter(|value| !value.percent)?;
    // Four significant digits, of which zeros at the end are left out: `1.06e+08` is 1.060.
    if let Some((_, exponent)) = value.text.split_once('e') {
        value.half = value.half.min(0.5 * 10f64.powi(exponent.parse::<i32>().ok()?.checked_sub(3)?));
    }
    *words = &words[1..];
    let deviation = match words {
        ["\u{b1}", percent, rest @ ..] => {
            *words = rest;
            Some(number(percent).filter(|deviation| deviation.percent)?)
        }
        _ => None,
    };
    Some(Mean { value, deviation })
}

fn check_change(line: usize, base: &Number, change: &Number, new: &Number, report: &mut Report) {
    let range = if change.percent {
        increase(base, new)
    } else {
        Some((new.low() - base.high(), new.high() - base.low(), new.value - base.value))
    };
    // Of nothing there is no percentage.
    let Some((least, most, middle)) = range else { return };
    let holds = change.admits(least, most, false);
    let turned = !holds && change.admits(-most, -least, false);
    report.check(holds, || Finding {
        line,
        says: change.shown(),
        should_be: change.alike(middle),
        kind: if turned { Kind::Sign } else { Kind::Percentage },
        why: format!("{} against {}: {least:.4} to {most:.4}", new.text, base.text),
    });
}

fn check_deviation(line: usize, mean: &Mean, deviation: &Number, runs: u64, report: &mut Report) {
    if mean.value.value < 0.0 {
        return;
    }
    let most = 100.0 * (runs.saturating_sub(1) as f64).sqrt();
    report.check(deviation.low() <= most, || Finding {
        line,
        says: deviation.shown(),
        should_be: format!("at most {most:.0}%"),
        kind: Kind::Variation,
        why: format!(
            "{runs} runs that are not negative differ from their mean by no more than \u{221a}(n - 1) of it"
        ),
    });
}
