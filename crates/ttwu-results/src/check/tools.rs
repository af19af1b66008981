//! Lines that single tools print: the figures of one line, or of a few, against each other.

use super::text::{Number, Token};
use super::{Finding, Kind, Line, Report};
use crate::outputs::scan::Lines;
use crate::outputs::{CpusHit, DmatestSummary};

mod dmatest;

/// What is open between lines.
#[derive(Default)]
pub(super) struct Tools {
    /// A hackbench line that a mail program broke.
    broken: Option<String>,
    /// The last dmatest summary: line and tests.
    dmatest: Option<(usize, u64)>,
    /// `perf bench sched pipe`: loops, milliseconds, microseconds an operation.
    pipe: (Option<u64>, Option<Number>, Option<Number>),
    /// Inside UnixBench's index table: the indices so far.
    indices: Option<Vec<Number>>,
    /// Inside `perf sched latency`'s table: run times and switches so far.
    delays: Option<(f64, f64, u64, usize)>,
}

impl Tools {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        self.hackbench(line, report);
        self.dmatest(line, report);
        self.perf_pipe(line, report);
        self.unixbench(line, report);
        self.perf_sched(line, report);
        cyclictest(line, report);
    }

    /// Groups × descriptors = tasks; groups × 2 × senders = tasks.
    fn hackbench(&mut self, line: &Line<'_>, report: &mut Report) {
        let text = match self.broken.take() {
            Some(before) if line.text.trim_start().starts_with("(==") => format!("{before} {}", line.text),
            _ => line.text.to_owned(),
        };
        if text.contains(" mode with ") && text.contains(" file descriptors each") {
            let figures = between(&text, " mode with ", " groups using ").zip(between(
                &text,
                " groups using ",
                " file descriptors each",
            ));
            let Some((groups, fds)) = figures else { return };
            let Some(tasks) = between(&text, "(== ", " tasks") else {
                if text.trim_end().ends_with("each") {
                    self.broken = Some(text);
                }
                return;
            };
            tasks_check(
                line.number,
                tasks,
                groups.checked_mul(fds),
                &format!("{groups} groups of {fds}"),
                report,
            );
        }
        if let (Some(groups), true) = (between(&text, "# ", " groups == "), text.trim_end().ends_with(" run"))
        {
            let tasks = between(&text, " groups == ", " processes run").or(between(
                &text,
                " groups == ",
                " threads run",
            ));
            if let Some(tasks) = tasks {
                // perf has 20 senders and as many receivers a group, whatever it is asked for.
                tasks_check(
                    line.number,
                    tasks,
                    groups.checked_mul(40),
                    &format!("{groups} groups of 40"),
                    report,
                );
            }
        }
    }

    fn dmatest(&mut self, line: &Line<'_>, report: &mut Report) {
        if let Ok(Some(summary)) = DmatestSummary::parse(&mut Lines::new(line.text)) {
            dmatest::check(line.number, &summary, report);
            self.dmatest = Some((line.number, summary.tests));
        }
        if let Ok(Some(hit)) = CpusHit::parse(&mut Lines::new(line.text)) {
            let tests = self.dmatest.take().filter(|(summary, _)| line.number - summary <= 8);
            let sum = hit.hits.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count));
            let finding = |says: String, should_be: String, why: String| Finding {
                line: line.number,
                says,
                should_be,
                kind: Kind::CpusHit,
                why,
            };
            if let Some((summary, tests)) = tests {
                report.check(sum == Some(tests), || {
                    let says =
                        sum.map_or_else(|| "more than can be counted".to_owned(), |sum| sum.to_string());
                    let off = sum.map_or(u64::MAX, |sum| sum.abs_diff(tests));
                    finding(
                        says,
                        tests.to_string(),
                        format!("line {summary} counts {tests} tests; off by {off}"),
                    )
                });
            }
            if let Some(pair) = hit.hits.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
                report.check(false, || {
                    let says = format!("#{} before #{}", pair[0].0, pair[1].0);
                    finding(
                        says,
                        "CPUs ascending".to_owned(),
                        "the kernel prints each CPU once, in order".to_owned(),
                    )
                });
            }
        }
    }

    fn perf_pipe(&mut self, line: &Line<'_>, report: &mut Report) {
        if let Some(loops) = between(line.text, "# Executed ", " pipe operations") {
            self.pipe = (Some(loops), None, None);
        }
        match line.tokens {
            [Token::Word("Total"), Token::Word("time:"), Token::Number(time), ..] => {
                self.pipe.1 = Some(time.clone());
            }
            [Token::Number(each), Token::Word("usecs/op")] => self.pipe.2 = Some(each.clone()),
            [Token::Number(rate), Token::Word("ops/sec")] => {
                let (Some(loops), Some(time), Some(each)) = std::mem::take(&mut self.pipe) else { return };
                let loops = loops as f64;
                let (least, most) = (each.low() * loops / 1e6, each.high() * loops / 1e6);
                // Milliseconds and operations are cut off.
                report.check(time.value <= most + 1e-6 && least < time.value + 2.0 * time.half, || {
                    rate_finding(
                        line.number,
                        &time,
                        each.value * loops / 1e6,
                        &format!("{} usecs/op", each.text),
                    )
                });
                let (slowest, fastest) = (1e6 / each.high(), 1e6 / each.low());
                report.check(rate.value <= fastest + 1.0 && slowest < rate.value + 1.0, || {
                    rate_finding(
                        line.number,
                        rate,
                        (1e6 / each.value).floor(),
                        &format!("{} usecs/op", each.text),
                    )
                });
            }
            _ => {}
        }
    }

    /// Index = result / baseline × 10; the score is the indices' geometric mean.
    fn unixbench(&mut self, line: &Line<'_>, report: &mut Report) {
        if line.text.contains("BASELINE") && line.text.trim_end().ends_with("INDEX") {
            self.indices = Some(Vec::new());
            return;
        }
        let Some(indices) = &mut self.indices else { return };
        if line.text.contains("Index Score") {
            let indices = self.indices.take().unwrap_or_default();
            if let (Some(Token::Number(score)), false) = (line.tokens.last(), indices.is_empty()) {
                let mean = |take: fn(&Number) -> f64| {
                    let logs = indices.iter().map(|index| take(index).max(f64::MIN_POSITIVE).ln());
                    (logs.sum::<f64>() / indices.len() as f64).exp()
                };
                let value = mean(|index| index.value);
                report.check(score.admits(mean(Number::low), mean(Number::high), true), || Finding {
                    line: line.number,
                    says: score.text.clone(),
                    should_be: score.alike(value),
                    kind: Kind::Index,
                    why: format!("the geometric mean of {} indices is {value:.3}", indices.len()),
                });
            }
            return;
        }
        if let [.., Token::Number(baseline), Token::Number(result), Token::Number(index)] = line.tokens
            && baseline.low() > 0.0
        {
            let (least, most) = (result.low() / baseline.value * 10.0, result.high() / baseline.value * 10.0);
            report.check(index.admits(least, most, true), || Finding {
                line: line.number,
                says: index.text.clone(),
                should_be: index.alike(result.value / baseline.value * 10.0),
                kind: Kind::Index,
                why: format!("ten times {} by {}", result.text, baseline.text),
            });
            indices.push(index.clone());
        } else if !line.text.contains("====") {
            self.indices = None;
        }
    }

    /// Rows: mean ≤ longest delay = end − begin. The total is no smaller than the rows shown.
    fn perf_sched(&mut self, line: &Line<'_>, report: &mut Report) {
        if line.text.contains("Runtime ms") && line.text.contains("Switches") {
            self.delays = Some((0.0, 0.0, 0, 0));
            return;
        }
        let Some((runtime, slack, switches, rows)) = &mut self.delays else { return };
        let numbers: Vec<&Number> = line.tokens.iter().filter_map(Token::number).collect();
        if line.text.trim_start().starts_with("TOTAL:") {
            if let ([total, total_switches, ..], true) = (numbers.as_slice(), *rows > 0) {
                report.check(total.high() + *slack >= *runtime, || Finding {
                    line: line.number,
                    says: total.text.clone(),
                    should_be: format!("at least {runtime:.3}"),
                    kind: Kind::Total,
                    why: format!("the run times of {rows} rows above add up to more"),
                });
                report.check(total_switches.value >= *switches as f64, || Finding {
                    line: line.number,
                    says: total_switches.text.clone(),
                    should_be: format!("at least {switches}"),
                    kind: Kind::Total,
                    why: format!("the switches of {rows} rows above add up to more"),
                });
            }
            self.delays = None;
            return;
        }
        if let (Some(average), Some(max)) = (after(line.text, "avg:"), after(line.text, "max:")) {
            report.check(average <= max + 0.001, || Finding {
                line: line.number,
                says: format!("{average:.3}"),
                should_be: format!("at most {max:.3}"),
                kind: Kind::Bounds,
                why: "a mean delay is not above the longest".to_owned(),
            });
            if let (Some(start), Some(end)) = (after(line.text, "max start:"), after(line.text, "max end:")) {
                let span = (end - start) * 1e3;
                report.check((span - max).abs() <= 0.0025, || Finding {
                    line: line.number,
                    says: format!("{max:.3}"),
                    should_be: format!("{span:.3}"),
                    kind: Kind::Total,
                    why: format!("from {start:.6} to {end:.6}; off by {:.3}", (span - max).abs()),
                });
            }
            let cells: Vec<&str> = line.text.split('|').collect();
            if let [_, time, count, ..] = cells.as_slice() {
                let time: Option<f64> = time.trim().trim_end_matches("ms").trim().parse().ok();
                if let (Some(time), Some(count)) =
                    (time.filter(|time: &f64| time.is_finite()), count.trim().parse::<u64>().ok())
                {
                    *runtime += time;
                    *slack += 0.001;
                    *switches = switches.saturating_add(count);
                    *rows += 1;
                }
            }
        }
    }
}

/// `Min:  11 Act:  13 Avg:  28 Max:  2188`
fn cyclictest(line: &Line<'_>, report: &mut Report) {
    if !line.text.trim_start().starts_with("T:") {
        return;
    }
    // Without a cycle the minimum is a huge start value.
    if after(line.text, "C:") == Some(0.0) {
        return;
    }
    let figures = ["Min:", "Avg:", "Max:"].map(|name| after(line.text, name));
    if let [Some(min), Some(average), Some(max)] = figures {
        report.check(min <= average && average <= max, || Finding {
            line: line.number,
            says: average.to_string(),
            should_be: format!("{min} to {max}"),
            kind: Kind::Bounds,
            why: "a mean lies between minimum and maximum".to_owned(),
        });
    }
}

fn tasks_check(line: usize, tasks: u64, should_be: Option<u64>, from: &str, report: &mut Report) {
    report.check(should_be == Some(tasks), || Finding {
        line,
        says: format!("{tasks} tasks"),
        should_be: should_be.map_or_else(|| "fewer".to_owned(), |tasks| format!("{tasks} tasks")),
        kind: Kind::TaskArithmetic,
        why: should_be.map_or_else(
            || format!("{from} cannot be counted"),
            |right| format!("{from}; off by {}", right.abs_diff(tasks)),
        ),
    });
}

fn rate_finding(line: usize, printed: &Number, right: f64, from: &str) -> Finding {
    Finding {
        line,
        says: printed.text.clone(),
        should_be: printed.alike(right),
        kind: Kind::Rate,
        why: format!("from {from}; off by {}", (printed.value - right).abs()),
    }
}

/// The whole number that stands between two texts.
fn between(text: &str, before: &str, behind: &str) -> Option<u64> {
    let start = text.find(before)? + before.len();
    let length = text[start..].find(behind)?;
    text[start..start + length].trim().parse().ok()
}

/// The number after a text.
fn after(text: &str, name: &str) -> Option<f64> {
    let rest = text[text.find(name)? + name.len()..].trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(rest.len());
    rest[..end].parse().ok().filter(|value: &f64| value.is_finite())
}
