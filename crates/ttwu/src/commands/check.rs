//! `ttwu check`: whether the figures of a pasted table or mail agree with each other.

use crate::args;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, print};
use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use ttwu_results::check::{Finding, Report, check};

/// A mail or a log is far smaller; what is larger is the wrong file.
const BYTES_MAX: u64 = 256 << 20;

/// Checks a text; the answer is "no" when figures disagree.
pub(crate) fn run(args: &args::Check) -> Outcome {
    let name =
        if is_stdin(&args.file) { "standard input".to_owned() } else { args.file.display().to_string() };
    let text = read(&args.file, &name).map_err(Failure::input)?;
    let report = check(&text);
    match args.format {
        OutputFormat::Text => print(&as_text(&name, &report)),
        OutputFormat::Json => print(&format!("{:#}", as_json(&name, &report))),
    }?;
    Ok(if report.findings.is_empty() { Done::Ok } else { Done::No })
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// The text, whatever its encoding's faults; never a binary file.
fn read(file: &Path, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = if is_stdin(file) {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(file).with_context(|| name.to_owned())?)
    };
    source.take(BYTES_MAX + 1).read_to_end(&mut bytes).with_context(|| name.to_owned())?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(anyhow!("{name}: larger than {} MiB; cut out the table", BYTES_MAX >> 20));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(anyhow!("{name}: empty; expected a table, a mail or a benchmark's output"));
    }
    if bytes.contains(&0) {
        return Err(anyhow!("{name}: not a text (it has NUL bytes); recordings are read by `ttwu report`"));
    }
    // Mails mix encodings; the figures are ASCII in all of them.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn as_text(name: &str, report: &Report) -> String {
    let mut out = String::new();
    let checked = report.checked;
    let relations = if checked == 1 { "relation" } else { "relations" };
    match (checked, report.findings.len()) {
        (0, _) => {
            let _ = writeln!(out, "{name}: nothing to check: no figures whose relation is known here");
        }
        (_, 0) => {
            let _ = writeln!(out, "{name}: {checked} {relations} between figures checked, all consistent");
        }
        (_, wrong) => {
            let _ =
                writeln!(out, "{name}: {checked} {relations} between figures checked, {wrong} inconsistent");
        }
    }
    for Finding { line, says, should_be, kind, why } in &report.findings {
        let _ = writeln!(out, "  line {line}: says {says}, should be {should_be} ({kind})\n    {why}");
    }
    out
}

fn as_json(name: &str, report: &Report) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "line": finding.line,
                "says": finding.says,
                "should_be": finding.should_be,
                "kind": finding.kind.name(),
                "why": finding.why,
            })
        })
        .collect();
    json!({
        "schema": "ttwu/check/1",
        "file": name,
        "checked": report.checked,
        "consistent": if report.checked == 0 { Value::Null } else { json!(report.findings.is_empty()) },
        "findings": findings,
    })
}
