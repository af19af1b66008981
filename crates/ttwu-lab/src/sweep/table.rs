//! The outcome of a sweep on a screen: a map of changes against the first policy.

use super::{SweepSetup, Swept};
use crate::metrics::Metric;
use serde_json::{Value, json};
use std::fmt::Write;
use ttwu_stats::{Better, describe, ratio_of_means_paired};

/// One square of the map.
struct Square {
    mean: f64,
    seeds: usize,
    /// Against the first policy: percent, its interval excludes 0.
    change: Option<(f64, bool)>,
}

/// A line of the map: what is run, the result's name and unit, a square a policy.
struct Line<'a> {
    setup: &'a SweepSetup,
    row: Option<Metric>,
    squares: Vec<Option<Square>>,
}

fn lines(swept: &Swept) -> Vec<Line<'_>> {
    let policies = swept.policies.len().max(1);
    let mut lines = Vec::new();
    for (number, group) in swept.setups.chunks(policies).enumerate() {
        let mut row: Option<Metric> = None;
        let mut series: Vec<Vec<(u64, f64)>> = Vec::new();
        for index in 0..group.len() {
            let cells = swept.results.iter().filter(|(cell, _)| cell.setup == number * policies + index);
            let mut values = Vec::new();
            for (cell, measured) in cells {
                let found = match &swept.row {
                    Some(name) => measured.rows.iter().find(|row| row.name == *name),
                    None => measured.rows.first(),
                };
                if let Some(found) = found {
                    row.get_or_insert_with(|| found.clone());
                    values.push((cell.seed, found.value));
                }
            }
            series.push(values);
        }
        let squares =
            series.iter().enumerate().map(|(index, values)| square(&series[0], values, index)).collect();
        lines.push(Line { setup: &group[0], row, squares });
    }
    lines
}

fn square(base: &[(u64, f64)], values: &[(u64, f64)], index: usize) -> Option<Square> {
    let only: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let mean = describe::mean(&only)?;
    // Pairs: seeds that both have.
    let pairs = values
        .iter()
        .filter_map(|(seed, value)| Some((*value, base.iter().find(|(other, _)| other == seed)?.1)));
    let (new, old): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let change = if index == 0 { None } else { ratio_of_means_paired(&new, &old) };
    let change = change.map(|ratio| (100.0 * (ratio.estimate - 1.0), !ratio.contains(1.0)));
    Some(Square { mean, seeds: values.len(), change })
}

/// The map in 80 columns for up to five policies; more make it wider.
#[must_use]
pub fn render_text(swept: &Swept) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} of {} cells done ({} now), {} failed; the plan has {}",
        swept.done,
        swept.cells,
        swept.run,
        swept.failed.len(),
        swept.cells_plan
    );
    if swept.interrupted {
        out.push_str("INTERRUPTED: the same command goes on.\n");
    }
    for (id, error) in swept.failed.iter().take(5) {
        let _ = writeln!(out, "failed: {id}: {error}");
    }
    let _ = writeln!(out, "dataset: {}\n", swept.out.join("results.csv").display());
    for (index, policy) in swept.policies.iter().enumerate() {
        let _ = writeln!(out, "{}: {policy}", column(index));
    }
    let lines = lines(swept);
    let _ = write!(out, "\n{:25}{:>11}", "", format!("{} mean", column(0)));
    for index in 1..swept.policies.len() {
        let _ = write!(out, " {:>10}", column(index));
    }
    out.push('\n');
    let mut machine = "";
    for line in &lines {
        let squares = &mut String::new();
        if line.setup.machine != machine {
            machine = &line.setup.machine;
            let _ = writeln!(out, "{machine}");
        }
        map_line(squares, line);
        let _ = writeln!(out, "{}", squares.trim_end());
    }
    out.push_str("\nchange against A in %, + better, - worse; ? = its 95 % interval has 0 in it\n. below 1, \u{2591} below 5, \u{2592} below 20, \u{2593} below 50, \u{2588} more\n");
    out
}

fn map_line(out: &mut String, line: &Line<'_>) {
    let label = format!("  {} {}", line.setup.workload, line.setup.settings);
    let label = label.trim_end();
    if label.chars().count() > 24 {
        let _ = writeln!(out, "{label}");
        let _ = write!(out, "{:25}", format!("    {}", line.row.as_ref().map_or("", |row| &row.name)));
    } else {
        let _ = write!(out, "{label:25}");
    }
    for (index, square) in line.squares.iter().enumerate() {
        match square {
            None => {
                let _ = write!(out, "{:>11}", "missing");
            }
            Some(square) if index == 0 => {
                let unit = line.row.as_ref().map_or("", |row| &row.unit);
                let _ = write!(out, "{:>11}", format!("{} {unit}", significant(square.mean)));
            }
            Some(Square { change: None, .. }) => {
                let _ = write!(out, "{:>11}", "1 seed");
            }
            Some(Square { change: Some((change, sure)), .. }) => {
                let better = line.row.as_ref().and_then(|row| row.better).unwrap_or(Better::Lower);
                let gain = match better {
                    Better::Lower => -change,
                    Better::Higher => *change,
                };
                let doubt = if *sure { ' ' } else { '?' };
                let _ = write!(out, "{:>11}", format!("{} {gain:+.1}{doubt}", shade(gain)));
            }
        }
    }
}

fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

fn shade(gain: f64) -> char {
    match gain.abs() {
        size if size < 1.0 => '.',
        size if size < 5.0 => '\u{2591}',
        size if size < 20.0 => '\u{2592}',
        size if size < 50.0 => '\u{2593}',
        _ => '\u{2588}',
    }
}

/// A, B, … Z, then numbers.
fn column(index: usize) -> String {
    u8::try_from(index)
        .ok()
        .filter(|index| *index < 26)
        .map_or_else(|| (index + 1).to_string(), |index| char::from(b'A' + index).to_string())
}

/// `ttwu/sweep/1`.
#[must_use]
pub fn render_json(swept: &Swept) -> String {
    let policies = swept.policies.len().max(1);
    let mut table: Vec<Value> = Vec::new();
    for (number, line) in lines(swept).iter().enumerate() {
        for (index, square) in line.squares.iter().enumerate() {
            let setup = &swept.setups[number * policies + index];
            table.push(json!({
                "machine": setup.machine,
                "policy": setup.policy,
                "workload": setup.workload,
                "settings": setup.settings,
                "name": line.row.as_ref().map(|row| &row.name),
                "unit": line.row.as_ref().map(|row| &row.unit),
                "mean": square.as_ref().map(|square| square.mean),
                "n": square.as_ref().map_or(0, |square| square.seeds),
                "change_pct": square.as_ref().and_then(|square| Some(square.change?.0)),
            }));
        }
    }
    let failed: Vec<Value> =
        swept.failed.iter().map(|(id, error)| json!({"scenario_id": id, "why": error.to_string()})).collect();
    let value = json!({
        "schema": "ttwu/sweep/1",
        "out": swept.out.display().to_string(),
        "cells_plan": swept.cells_plan,
        "cells": swept.cells,
        "done": swept.done,
        "run": swept.run,
        "failed": swept.failed.len(),
        "failures": failed,
        "interrupted": swept.interrupted,
        "table": table,
    });
    format!("{value:#}\n")
}
