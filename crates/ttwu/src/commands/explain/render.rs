//! Reasons as text of 80 columns, or JSON.

use super::{Explanation, Reasons, Source};
use crate::output::wrapped;
use serde_json::{Value, json};
use std::fmt::Write;
use ttwu_conform::Recording;
use ttwu_fair::{Affine, Policy, PreemptReason, Rule, Site};
use ttwu_model::{TaskId, Time, Trace};

/// What the reasons are about.
pub(super) struct About<'a> {
    pub(super) recording: &'a Recording,
    pub(super) trace: &'a Trace,
    pub(super) against: Option<&'a Policy>,
    /// The simulator wrote the reasons down.
    pub(super) decided: bool,
}

impl About<'_> {
    fn name(&self, task: TaskId, at_ns: u64) -> String {
        if task.is_idle() {
            return "the idle task".to_owned();
        }
        let name = self.trace.tasks().name_at(task, Time::from_ns(at_ns));
        let name = name.map_or("?", |name| self.trace.strings().get(name));
        format!("{name}-{}", self.trace.tasks().get(task).pid.number())
    }
}

pub(super) fn text(about: &About<'_>, explanation: &Explanation) -> String {
    let mut out = String::new();
    let of = |part: u64, whole: u64| match whole {
        0 => "no case".to_owned(),
        whole => format!("{:.2} % ({part} of {whole})", 100.0 * part as f64 / whole as f64),
    };
    let _ = writeln!(out, "{}, {}", about.recording.name(), about.recording.policy());
    let _ = writeln!(
        out,
        "{} wake-ups, {} with a placement; reasons {}",
        explanation.wakeups,
        explanation.explained,
        if about.decided { "as the simulator decided" } else { "rebuilt from the trace's events" }
    );
    if !about.decided {
        let asked = explanation.explained - explanation.in_doubt;
        put_wrapped(&mut out, "", &format!("the rules agree in {}", of(explanation.agree, asked)));
        let stable = of(explanation.certain_agree, explanation.certain);
        put_wrapped(
            &mut out,
            "",
            &format!("where no single value that the trace lacks would change the answer, in {stable}"),
        );
    }
    if let Some(policy) = about.against {
        let other = of(explanation.differ, explanation.compared);
        put_wrapped(
            &mut out,
            "",
            &format!(
                "{policy} would choose another CPU in {other} of those in which the rebuilt state gives what happened"
            ),
        );
    }
    let mut rules: Vec<_> = explanation.rules.iter().collect();
    rules.sort_by_key(|&(name, count)| (std::cmp::Reverse(*count), *name));
    let rules: Vec<String> = rules.iter().map(|(name, count)| format!("{name} {count}")).collect();
    put_wrapped(&mut out, "rules: ", &rules.join(", "));
    for reasons in &explanation.shown {
        out.push('\n');
        one(&mut out, about, reasons);
    }
    if explanation.left_out > 0 {
        let _ = writeln!(out, "\n{} more (--limit 0 for all; --wakeup, --task, --at)", explanation.left_out);
    }
    out
}

const LABEL: usize = 12;

fn one(out: &mut String, about: &About<'_>, reasons: &Reasons) {
    let Reasons { number, at_ns, this, prev, chosen, answer, .. } = reasons;
    let _ = writeln!(out, "wake-up {number} at {}.{:09}", at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    let mut line = |label: &str, text: &str| put_wrapped(out, &format!("  {label:LABEL$}"), text);
    line(
        "who",
        &format!(
            "{} by {} on CPU {this}",
            about.name(reasons.wakee, *at_ns),
            about.name(reasons.waker, *at_ns)
        ),
    );
    line("previous", &format!("CPU {prev}"));
    match reasons.rule {
        None => {
            line("went to", &format!("CPU {chosen}"));
            line("rule", "not placed: it may run on one CPU only, or was still queued");
        }
        Some(rule) => {
            let model =
                if answer == chosen { String::new() } else { format!("; the rules say CPU {answer}") };
            line("went to", &format!("CPU {chosen}{model}"));
            line("rule", &format!("{}: {}", rule.name(), rule.meaning()));
            line(
                "target",
                &format!("CPU {}, {}: {}", reasons.target, reasons.affine.name(), reasons.affine.meaning()),
            );
            line("looked at", &looks(reasons));
            line("scan", &format!("{} CPUs; {}", reasons.scanned, reasons.scan.meaning()));
        }
    }
    match &reasons.source {
        Source::Decided { wake_list, preempt } => {
            line("queued", if *wake_list { "through its CPU's wake list" } else { "by the waker" });
            line(
                "preempts",
                preempt.map_or("nobody: the CPU was idle, or the run ended first", PreemptReason::meaning),
            );
        }
        Source::Rebuilt { hangs_on, reason_hangs_on, doubt } => {
            let hangs = if hangs_on.is_empty() {
                "no single value that the trace lacks".to_owned()
            } else {
                hangs_on.join("; ")
            };
            line("hangs on", &hangs);
            if !reason_hangs_on.is_empty() {
                line("", &format!("(rule or target, not the CPU: {})", reason_hangs_on.join("; ")));
            }
            if let Some(doubt) = doubt {
                line("in doubt", doubt);
            }
        }
    }
    if let (Some(policy), Some((own, other))) = (about.against, reasons.against) {
        let same = if other.cpu == own { ", the same" } else { "" };
        let rule = format!("{}: {}", other.rule.name(), other.rule.meaning());
        let text = format!("{policy}: CPU {}{same}; {rule}", other.cpu);
        if own == *chosen {
            line("else", &text);
        } else {
            line(
                "else",
                &format!(
                    "the rebuilt state gives CPU {own} under the trace's own rules, so not told; {text}"
                ),
            );
        }
    }
}

/// The CPUs looked at, by where in the rules.
fn looks(reasons: &Reasons) -> String {
    let mut parts: Vec<(Site, Vec<String>)> = Vec::new();
    for check in &reasons.checks {
        let look = format!("{} {}", check.cpu, if check.idle { "idle" } else { "busy" });
        match parts.last_mut() {
            Some((site, looks)) if *site == check.site => looks.push(look),
            Some(_) | None => parts.push((check.site, vec![look])),
        }
    }
    if parts.is_empty() {
        return "no CPU".to_owned();
    }
    let parts: Vec<String> =
        parts.iter().map(|(site, looks)| format!("{}: {}", site.meaning(), looks.join(", "))).collect();
    parts.join("; ")
}

/// Puts text behind a label, in lines of at most 80 columns.
fn put_wrapped(out: &mut String, label: &str, text: &str) {
    out.push_str(label);
    wrapped(out, label.chars().count(), text);
}

pub(super) fn json(about: &About<'_>, explanation: &Explanation) -> Value {
    let wakeups: Vec<Value> = explanation.shown.iter().map(|reasons| json_of(about, reasons)).collect();
    json!({
        "schema": "ttwu/explain/1",
        "trace": about.recording.name(),
        "policy": about.recording.policy().to_string(),
        "against": about.against.map(ToString::to_string),
        "source": if about.decided { "decided" } else { "rebuilt" },
        "wakeups_total": explanation.wakeups,
        "explained": explanation.explained,
        "in_doubt": explanation.in_doubt,
        "agree": explanation.agree,
        "certain": explanation.certain,
        "certain_agree": explanation.certain_agree,
        "counterfactual_compared": about.against.map(|_| explanation.compared),
        "counterfactual_differs": about.against.map(|_| explanation.differ),
        "rules": explanation.rules,
        "left_out": explanation.left_out,
        "wakeups": wakeups,
    })
}

fn json_of(about: &About<'_>, reasons: &Reasons) -> Value {
    let candidates: Vec<Value> = reasons
        .checks
        .iter()
        .map(|check| json!({"site": check.site.name(), "cpu": check.cpu.number(), "idle": check.idle}))
        .collect();
    let (hangs_on, reason_hangs_on, doubt) = match &reasons.source {
        Source::Decided { .. } => (&Vec::new(), &Vec::new(), None),
        Source::Rebuilt { hangs_on, reason_hangs_on, doubt } => (hangs_on, reason_hangs_on, *doubt),
    };
    let (wake_list, preempt) = match reasons.source {
        Source::Decided { wake_list, preempt } => (Some(wake_list), preempt.map(PreemptReason::name)),
        Source::Rebuilt { .. } => (None, None),
    };
    let certain = hangs_on.is_empty() && doubt.is_none();
    let counterfactual = reasons.against.map(|(own, other)| {
        json!({
            "cpu": other.cpu.number(),
            "rule": other.rule.name(),
            "target": other.target.number(),
            "own_cpu": own.number(),
        })
    });
    json!({
        "index": reasons.number,
        "at_ns": reasons.at_ns,
        "wakee": about.name(reasons.wakee, reasons.at_ns),
        "waker": about.name(reasons.waker, reasons.at_ns),
        "this_cpu": reasons.this.number(),
        "prev_cpu": reasons.prev.number(),
        "chosen": reasons.chosen.number(),
        "model": reasons.answer.number(),
        "rule": reasons.rule.map(Rule::name),
        "affine": Affine::name(reasons.affine),
        "target": reasons.target.number(),
        "candidates": candidates,
        "scanned": reasons.scanned,
        "scan": reasons.scan.name(),
        "certain": certain,
        "hangs_on": hangs_on,
        "reason_hangs_on": reason_hangs_on,
        "doubt": doubt,
        "wake_list": wake_list,
        "preempt": preempt,
        "counterfactual": counterfactual,
    })
}
