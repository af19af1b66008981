//! Lists of runs with their mean, and the percentage that a mail draws from two of them.
//!
//! A mean with more decimals than its runs was computed from the printed runs; it has to be theirs to its last digit. One
//! with as many may come from unrounded runs, so their rounding is granted.

use super::text::{Number, Token, increase};
use super::{Finding, Kind, Line, Report};

/// A mean, or a single figure with a label, that a later percentage may be of.
struct Arm {
    line: usize,
    role: Option<Role>,
    value: Number,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Old,
    New,
}

/// What a text has listed so far.
#[derive(Default)]
pub(super) struct Lists {
    arms: Vec<Arm>,
    /// Runs on lines of their own, waiting for a mean.
    pending: Vec<Number>,
    /// Runs were left out of the list.
    gap: bool,
    /// The text is about times of hackbench.
    hackbench: bool,
}

/// How far back a percentage may look.
const LINES_BACK: usize = 40;
const RUNS_MAX: usize = 100_000;

impl Lists {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let lower = line.text.to_lowercase();
        self.hackbench |= lower.contains("hackbench");
        self.arms.retain(|arm| line.number - arm.line <= LINES_BACK);
        if self.percentage(line, &lower, report) {
            return;
        }
        if self.own_mean(line, report) || self.list(line, report) {
            return;
        }
        if self.runs_only(line) || line.tokens.is_empty() {
            return;
        }
        self.pending.clear();
        self.gap = false;
        self.single(line);
    }

    /// `w/o: 7.689 7.485 … 7.674=7.5853`
    fn list(&mut self, line: &Line<'_>, report: &mut Report) -> bool {
        let tokens = line.tokens;
        let Some(first) = tokens.iter().position(|token| matches!(token, Token::Number(_))) else {
            return false;
        };
        let mut runs = Vec::new();
        let mut gap = false;
        let mut at = first;
        while let Some(token) = tokens.get(at) {
            match token {
                Token::Number(number) if !number.percent => runs.push(number.clone()),
                Token::Word(word) if word.starts_with("..") => gap = true,
                Token::Mark('|') if runs.is_empty() => {}
                Token::Number(_) | Token::Word(_) | Token::Mark(_) => break,
            }
            at += 1;
        }
        // Then `=`, or a word for the mean, and the mean.
        let rest: Vec<&Token<'_>> = tokens[at..].iter().filter(|token| !token.is_mark("()[];|")).collect();
        let mean = match rest.as_slice() {
            [Token::Mark('='), Token::Number(mean), ..] => mean,
            [Token::Word(word), Token::Number(mean), ..] if is_mean(word) => mean,
            [Token::Word(word), Token::Mark('='), Token::Number(mean), ..] if is_mean(word) => mean,
            _ => return false,
        };
        let fractions = mean.decimals > 0 || runs.iter().any(|run| run.decimals > 0);
        if mean.percent || !fractions || runs.len() < if gap { 1 } else { 2 } {
            return false;
        }
        // `1.5 2.5 = 4.0` is a sum.
        let sum: f64 = runs.iter().map(|run| run.value).sum();
        if (sum - mean.value).abs() <= mean.half {
            return false;
        }
        if !gap {
            check_mean(line.number, &runs, mean, report);
        }
        let label = label(&tokens[..first]);
        self.arms.push(Arm { line: line.number, role: role(&label), value: mean.clone() });
        self.pending.clear();
        true
    }

    /// A line of nothing but runs, or hackbench's own `Time: 7.689`.
    fn runs_only(&mut self, line: &Line<'_>) -> bool {
        let time = line.tokens.first().and_then(Token::word) == Some("Time:") && line.tokens.len() == 2;
        let tokens = if time { &line.tokens[1..] } else { line.tokens };
        let plain = tokens.iter().all(|token| match token {
            Token::Number(number) => !number.percent && (time || number.decimals > 0),
            Token::Word(word) => word.starts_with(".."),
            Token::Mark(_) => false,
        });
        if !plain || tokens.is_empty() || self.pending.len() > RUNS_MAX {
            // hackbench's two other lines stand between its times.
            return line.text.starts_with("Running in ") || line.text.starts_with("Each sender will pass ");
        }
        self.gap |= tokens.iter().any(|token| token.word().is_some());
        self.pending.extend(tokens.iter().filter_map(Token::number).cloned());
        true
    }

    /// `mean: 7.6697` below lines of runs.
    fn own_mean(&mut self, line: &Line<'_>, report: &mut Report) -> bool {
        let tokens: Vec<&Token<'_>> = line.tokens.iter().filter(|token| !token.is_mark("=()")).collect();
        let [Token::Word(word), Token::Number(mean), ..] = tokens.as_slice() else { return false };
        if !is_mean(word) || mean.percent || tokens.iter().skip(2).any(|token| token.number().is_some()) {
            return false;
        }
        if self.pending.len() >= 2 && !self.gap {
            check_mean(line.number, &self.pending, mean, report);
        }
        if !self.pending.is_empty() {
            self.arms.push(Arm { line: line.number, role: None, value: mean.clone() });
        }
        self.pending.clear();
        self.gap = false;
        true
    }

    /// `w/o: 7.5853`
    fn single(&mut self, line: &Line<'_>) {
        let mut numbers = line.tokens.iter().filter_map(Token::number);
        let (Some(value), None) = (numbers.next(), numbers.next()) else { return };
        let Some(first) = line.tokens.iter().position(|token| token.number().is_some()) else { return };
        // "After 10 minutes" is prose; a figure follows a colon or the like, and ends the line but for its unit.
        let labelled = first.checked_sub(1).is_some_and(|before| {
            let token = &line.tokens[before];
            token.is_mark("=|") || token.word().is_some_and(|word| word.ends_with(':'))
        });
        if !labelled || line.tokens.len() > first + 3 {
            return;
        }
        let label = label(&line.tokens[..first]);
        if let Some(role) = role(&label).filter(|_| !value.percent && label.len() <= 24) {
            self.arms.push(Arm { line: line.number, role: Some(role), value: value.clone() });
        }
    }

    /// `performance improvement w/ patch: -1.01%`
    fn percentage(&mut self, line: &Line<'_>, lower: &str, report: &mut Report) -> bool {
        const SAYS: [&str; 9] =
            ["improve", "performance", "gain", "regress", "change", "diff", "delta", "speedup", "speed-up"];
        let numbers: Vec<&Number> = line.tokens.iter().filter_map(Token::number).collect();
        let percents: Vec<&&Number> = numbers.iter().filter(|number| number.percent).collect();
        let [percent] = percents.as_slice() else { return false };
        if numbers.iter().any(|number| !number.percent && number.decimals > 0)
            || !SAYS.iter().any(|says| lower.contains(says))
        {
            return false;
        }
        let last = |role| self.arms.iter().rposition(|arm| arm.role == Some(role));
        let (old, new) = match (last(Role::Old), last(Role::New)) {
            (Some(old), Some(new)) => (old, new),
            _ if self.arms.len() >= 2 => (self.arms.len() - 2, self.arms.len() - 1),
            _ => return false,
        };
        let (old, new) = (&self.arms[old].value, &self.arms[new].value);
        let Some((least, most, middle)) = increase(old, new) else { return false };
        let by_new = increase(new, old);
        let fits = |low: f64, high: f64| percent.admits(low, high, true);
        let down = fits(-most, -least) || by_new.is_some_and(|(low, high, _)| fits(low, high));
        let up = fits(least, most) || by_new.is_some_and(|(low, high, _)| fits(-high, -low));
        // An improvement of a time is a fall. Elsewhere the direction is not known and either sign will do.
        let is_time = self.hackbench && (lower.contains("improve") || lower.contains("gain"));
        let holds = down || (up && !is_time);
        let falls = is_time || (percent.value < 0.0) != (middle < 0.0);
        let (least, most, middle) = if falls { (-most, -least, -middle) } else { (least, most, middle) };
        report.check(holds, || Finding {
            line: line.number,
            says: percent.shown(),
            should_be: percent.alike(middle),
            kind: if up { Kind::Sign } else { Kind::Percentage },
            why: format!(
                "from {} to {}: {least:.4} to {most:.4}; off by {:.2}",
                old.text,
                new.text,
                (percent.value - middle).abs()
            ),
        });
        self.arms.clear();
        true
    }
}

fn is_mean(word: &str) -> bool {
    let word = word.trim_matches(['(', ',', ':', ';', '.']).to_lowercase();
    ["mean", "avg", "average", "amean", "ave"].contains(&word.as_str())
}

/// The words before the first number, lower case.
fn label(tokens: &[Token<'_>]) -> String {
    let words: Vec<String> = tokens.iter().filter_map(Token::word).map(str::to_lowercase).collect();
    words.join(" ")
}

fn role(label: &str) -> Option<Role> {
    const OLD: [&str; 13] = [
        "w/o",
        "without",
        "before",
        "vanilla",
        "base",
        "baseline",
        "old",
        "orig",
        "original",
        "unpatched",
        "tip",
        "stock",
        "mainline",
    ];
    const NEW: [&str; 7] = ["w/", "with", "after", "patched", "patch", "new", "w"];
    let mut words =
        label.split(|c: char| c.is_whitespace() || ":,-_".contains(c)).filter(|word| !word.is_empty());
    words.find_map(|word| {
        let word = word.trim_matches(['[', ']', '(', ')']);
        if OLD.contains(&word) {
            Some(Role::Old)
        } else if NEW.contains(&word) {
            Some(Role::New)
        } else {
            None
        }
    })
}

fn check_mean(line: usize, runs: &[Number], mean: &Number, report: &mut Report) {
    let count = runs.len() as f64;
    let of = |take: fn(&Number) -> f64| runs.iter().map(take).sum::<f64>() / count;
    let value = of(|run| run.value);
    let finest = runs.iter().map(|run| run.decimals).max().unwrap_or(0);
    let (low, high) =
        if mean.decimals > finest { (value, value) } else { (of(Number::low), of(Number::high)) };
    report.check(mean.admits(low, high, true), || Finding {
        line,
        says: mean.text.clone(),
        should_be: mean.alike(value),
        kind: Kind::Mean,
        why: format!(
            "the mean of {} runs is {value:.6}; off by {:.6}",
            runs.len(),
            (mean.value - value).abs()
        ),
    });
}
