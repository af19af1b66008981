//! FIDELITY.md: which kernel functions the model claims, where it is known to differ, and how often it decides as real
//! kernels did. Collected from the sources' `Models:` and `DEVIATION:` marks and from `ttwu conform`, so that it cannot
//! flatter.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes FIDELITY.md, or with `check` compares what can be compared: everything but the figures of recordings that are
/// not at hand.
pub(crate) fn run(root: &Path, check: bool) -> Result<usize> {
    let marks = marks(root)?;
    let inside = conform(root, &root.join("crates/ttwu-conform/fixtures"))?;
    let shared = root.join("../shared/oracle/recordings");
    let outside = if shared.is_dir() { Some(conform(root, &shared)?) } else { None };
    let path = root.join("FIDELITY.md");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let outside = match outside {
        Some(text) => text,
        None => section(&old, "## All recordings")
            .context("FIDELITY.md has no section of all recordings")?
            .to_owned(),
    };
    let native = std::fs::read_to_string(root.join("docs/native.md")).context("docs/native.md")?;
    let native = section(&native, "## The benchmarks").context("docs/native.md has no benchmarks")?;
    let new = render(&marks, &inside, &outside, native);
    if !check {
        std::fs::write(&path, new)?;
        return Ok(0);
    }
    if new == old {
        println!("fidelity: FIDELITY.md is up to date");
        return Ok(0);
    }
    let differs = new.lines().zip(old.lines()).find(|(new, old)| new != old);
    if let Some((new, old)) = differs {
        println!("FIDELITY.md: should be `{new}`, is `{old}`");
    }
    println!("FIDELITY.md is out of date: run `cargo xtask fidelity`");
    Ok(1)
}

/// The text under a heading, up to the next heading of its rank.
fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let start = text.find(&format!("{heading}\n"))? + heading.len() + 1;
    let rest = &text[start..];
    Some(rest[..rest.find("\n## ").map_or(rest.len(), |end| end + 1)].trim_matches('\n'))
}

/// Marks by crate and file, in source order.
struct Marks {
    models: BTreeMap<PathBuf, Vec<String>>,
    deviations: BTreeMap<PathBuf, Vec<String>>,
}

fn marks(root: &Path) -> Result<Marks> {
    let mut found = Marks { models: BTreeMap::new(), deviations: BTreeMap::new() };
    for folder in [
        "crates/ttwu-fair/src",
        "crates/ttwu-model/src/topology",
        "crates/ttwu-sim/src",
        "crates/ttwu-workload/src",
    ] {
        collect(root, Path::new(folder), &mut found)?;
    }
    Ok(found)
}

fn collect(root: &Path, folder: &Path, found: &mut Marks) -> Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(root.join(folder))
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(folder.join(entry?.file_name())))
        .collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        if root.join(&path).is_dir() {
            collect(root, &path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(root.join(&path))?;
            for paragraph in comment_paragraphs(&text) {
                for (mark, into) in [("Models: ", &mut found.models), ("DEVIATION: ", &mut found.deviations)]
                {
                    for part in paragraph.split(mark).skip(1) {
                        let end = part.find("Models: ").or(part.find("DEVIATION: ")).unwrap_or(part.len());
                        into.entry(path.clone()).or_default().push(part[..end].trim().to_owned());
                    }
                }
            }
        }
    }
    Ok(())
}

/// Comments joined to paragraphs: a mark may run over several lines.
fn comment_paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut current = String::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let comment =
            ["///", "//!", "//"].into_iter().find_map(|start| trimmed.strip_prefix(start)).map(str::trim);
        match comment {
            Some(words) if !words.is_empty() => {
                if !current.is_empty() {
                    current.push(' ');
                }
                current.push_str(words);
            }
            Some(_) | None => {
                if !current.is_empty() {
                    paragraphs.push(std::mem::take(&mut current));
                }
            }
        }
    }
    paragraphs.push(current);
    paragraphs
}

/// What `ttwu conform` prints for all recordings in a folder.
fn conform(root: &Path, folder: &Path) -> Result<String> {
    let mut recordings: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.join("meta").is_file())
        .collect();
    recordings.sort();
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--package", "ttwu", "--", "conform", "--free"])
        .args(&recordings)
        .current_dir(root)
        .output()
        .context("cargo run")?;
    if !output.status.success() {
        bail!("ttwu conform: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(format!("{} recordings.\n\n```text\n{}```", recordings.len(), text))
}

fn render(marks: &Marks, inside: &str, outside: &str, native: &str) -> String {
    let mut out = String::from(
        "# Fidelity\n\nGenerated by `cargo xtask fidelity` from the sources' marks and from `ttwu conform`; not written by \
         hand. CI regenerates it\nand fails on any difference.\n\n",
    );
    out.push_str(include_str!("fidelity_scores.md"));
    let _ = write!(out, "## All recordings\n\n{outside}\n\n## The repository's recordings\n\n{inside}\n\n");
    let _ = write!(
        out,
        "## Native against simulated\n\nOn one small virtual machine, with costs calibrated there; how it was made, and why figures \
         miss: docs/native.md.\n\n{native}\n\n"
    );
    out.push_str("## What no recording exercises\n\nUntested against a kernel: ");
    out.push_str(
        "generations other than 6.1, 6.12 and 7.2 (they rest on the specification's worked examples), WF_CURRENT_CPU, \
         asymmetric\ncapacities, bandwidth control, the budget of SIS_PROP (off in the recorded kernels, and what it hangs on \
         is not\nrecorded), NEXT buddies of generations other than 6.1, 6.12 and 7.2, the variants proposed on the lists.\n\n",
    );
    out.push_str("## Known deviations\n\n");
    list(&mut out, &marks.deviations);
    out.push_str("## Kernel functions modelled\n\n");
    list(&mut out, &marks.models);
    out
}

fn list(out: &mut String, marks: &BTreeMap<PathBuf, Vec<String>>) {
    for (path, lines) in marks {
        let _ = writeln!(out, "`{}`\n", path.display());
        for line in lines {
            let _ = writeln!(out, "- {line}");
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_run_over_lines_and_end_at_the_next_mark() {
        let text = "/// Words.\n///\n/// Models: f(), v6.1. DEVIATION: something\n/// goes on.\nfn f() {}\n";
        let paragraphs = comment_paragraphs(text);
        assert!(paragraphs.contains(&"Models: f(), v6.1. DEVIATION: something goes on.".to_owned()));
    }

    #[test]
    fn a_section_ends_at_the_next_heading() {
        let text = "# a\n\n## All recordings\n\nx\ny\n\n## next\n";
        assert_eq!(section(text, "## All recordings"), Some("x\ny"));
    }
}
