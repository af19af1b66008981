//! `ttwu policy`: one policy with what each setting does, or the settings in which two differ.

use crate::args;
use crate::exit::{Failure, Outcome};
use crate::output::{OutputFormat, print, wrapped};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use ttwu_fair::{FEATURES, FeatureRow, Policy, TUNABLES};

/// Prints the policy or the difference.
pub(crate) fn run(args: &args::Policy) -> Outcome {
    let policies = policies(&args.words)?;
    match (policies.as_slice(), args.format) {
        ([one], OutputFormat::Text) => print(&describe(one)),
        ([one], OutputFormat::Json) => print(&format!("{:#}", policy_json(one))),
        ([old, new], OutputFormat::Text) => print(&difference(old, new)),
        ([old, new], OutputFormat::Json) => print(&format!("{:#}", difference_json(old, new))),
        _ => Err(Failure::input(anyhow::anyhow!("expected one policy or two, found {}", policies.len()))),
    }
}

/// Words into policies: a word that begins with `+` or `-`, has a `=`, or is a feature's name changes the one before it.
fn policies(words: &[String]) -> Result<Vec<Policy>, Failure> {
    let mut policies: Vec<Policy> = Vec::new();
    for word in words.iter().flat_map(|word| word.split_whitespace()) {
        let is_change = word.starts_with(['+', '-'])
            || word.contains('=')
            || FEATURES.iter().any(|row| Some(row.name) == Some(word.strip_prefix("NO_").unwrap_or(word)));
        match policies.last_mut() {
            Some(policy) if is_change => policy.apply(word).map_err(Failure::input)?,
            Some(_) | None => policies.push(Policy::parse(word).map_err(Failure::input)?),
        }
    }
    Ok(policies)
}

/// CPUs for which scaled tunables are shown: the factor is the same from 8 on.
const CPUS: usize = 8;

fn on(policy: &Policy, row: &FeatureRow) -> &'static str {
    if !row.exists_in(policy.kernel()) {
        "absent"
    } else if policy.has(row.feature) {
        "on"
    } else {
        "off"
    }
}

fn describe(policy: &Policy) -> String {
    let mut out = format!("{policy}\n\nfeatures\n");
    for row in FEATURES.iter().filter(|row| row.exists_in(policy.kernel())) {
        entry(&mut out, row.name, on(policy, row), row.doc);
        if let Some(why) = row.refused {
            let _ = write!(out, "{:34}", "");
            wrapped(&mut out, 34, &format!("(cannot be changed: {why})"));
        }
    }
    out.push_str("\nvariants\n");
    for (name, value, meaning) in policy.variants() {
        entry(&mut out, name, value, meaning);
    }
    let _ = write!(out, "\ntunables, {CPUS} CPUs or more\n");
    let tunables = policy.tunables(CPUS);
    for row in TUNABLES.iter().filter(|row| row.exists_in(policy.kernel())) {
        entry(&mut out, row.name, &tunables.get(row.tunable).to_string(), row.doc);
    }
    out
}

/// One line of at most 80 columns; a longer description goes on below.
fn entry(out: &mut String, name: &str, value: &str, doc: &str) {
    let _ = write!(out, "  {name:23}");
    let value_width = if value.len() <= 8 { 9 } else { value.len() + 1 };
    let _ = write!(out, "{value:value_width$}");
    wrapped(out, 25 + value_width, doc);
}

/// A setting in which two policies differ: name, old value, new value, meaning.
type Differing = (&'static str, String, String, String);

fn differing(old: &Policy, new: &Policy) -> Vec<Differing> {
    let mut rows: Vec<Differing> = Vec::new();
    for row in FEATURES {
        let (before, after) = (on(old, row), on(new, row));
        if before != after {
            rows.push((row.name, before.to_owned(), after.to_owned(), row.doc.to_owned()));
        }
    }
    for ((name, before, _), (_, after, meaning)) in old.variants().zip(new.variants()) {
        if before != after {
            rows.push((name, before.to_owned(), after.to_owned(), meaning.to_owned()));
        }
    }
    let (before, after) = (old.tunables(CPUS), new.tunables(CPUS));
    for row in TUNABLES {
        let value = |policy: &Policy, value: u64| {
            if row.exists_in(policy.kernel()) { value.to_string() } else { "absent".to_owned() }
        };
        let (before, after) = (value(old, before.get(row.tunable)), value(new, after.get(row.tunable)));
        if before != after {
            rows.push((row.name, before, after, row.doc.to_owned()));
        }
    }
    rows
}

fn difference(old: &Policy, new: &Policy) -> String {
    let mut out = format!("{old} -> {new}\n");
    let rows = differing(old, new);
    if rows.is_empty() {
        out.push_str("\nno setting differs\n");
    }
    for (name, before, after, doc) in rows {
        let _ = writeln!(out, "\n  {name}: {before} -> {after}");
        out.push_str("    ");
        wrapped(&mut out, 4, &doc);
    }
    if old.kernel() != new.kernel() {
        out.push('\n');
        let rules = "The generations also differ in rules that have no switch; FIDELITY.md lists them.";
        wrapped(&mut out, 0, rules);
    }
    out
}

fn policy_json(policy: &Policy) -> Value {
    let features: Map<String, Value> = FEATURES
        .iter()
        .filter(|row| row.exists_in(policy.kernel()))
        .map(|row| (row.name.to_owned(), Value::Bool(policy.has(row.feature))))
        .collect();
    let variants: Map<String, Value> =
        policy.variants().map(|(name, value, _)| (name.to_owned(), Value::from(value))).collect();
    let tunables = policy.tunables(CPUS);
    let tunables: Map<String, Value> = TUNABLES
        .iter()
        .filter(|row| row.exists_in(policy.kernel()))
        .map(|row| (row.name.to_owned(), Value::from(tunables.get(row.tunable))))
        .collect();
    json!({
        "schema": "ttwu/policy/1",
        "policy": policy.to_string(),
        "kernel": policy.kernel().name(),
        "features": features,
        "variants": variants,
        "tunables": tunables,
        "tunables_for_cpus": CPUS,
    })
}

fn difference_json(old: &Policy, new: &Policy) -> Value {
    let rows: Vec<Value> = differing(old, new)
        .into_iter()
        .map(|(name, before, after, doc)| json!({"name": name, "old": before, "new": after, "doc": doc}))
        .collect();
    json!({
        "schema": "ttwu/policy-difference/1",
        "old": policy_json(old),
        "new": policy_json(new),
        "differences": rows,
    })
}
