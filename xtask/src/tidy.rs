//! The rules on the architecture page, as a check: layers, bans, reasons, sizes, fixtures.
//!
//! It reads files as text, line by line, and prints one `file:line: rule` per fault. No parsing of Rust: a rule that needs
//! more belongs into clippy.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates by layer; a crate may use crates of lower layers only. One row a crate.
const LAYERS: &[(&str, u8)] = &[
    ("ttwu-model", 0),
    ("ttwu-stats", 0),
    ("ttwu-fair", 1),
    ("ttwu-workload", 1),
    ("ttwu-trace", 1),
    ("ttwu-analysis", 1),
    ("ttwu-results", 1),
    ("ttwu-sim", 2),
    ("ttwu-host", 2),
    ("ttwu-conform", 2),
    ("ttwu-report", 2),
    ("ttwu-lab", 3),
    ("ttwu", 4),
];

/// Edges that the layer rule alone would allow but the architecture does not.
const FORBIDDEN_EDGES: &[(&str, &str)] =
    &[("ttwu-sim", "ttwu-trace"), ("ttwu-sim", "ttwu-analysis"), ("ttwu-fair", "ttwu-stats")];

/// Where the machine may be touched: clocks, environment, hash maps.
const IMPURE: &[&str] = &["crates/ttwu-host/", "crates/ttwu/", "crates/ttwu-testing/", "xtask/"];

/// Where a result must not depend on floating point.
const INTEGER_ONLY: &[&str] = &["crates/ttwu-model/src/", "crates/ttwu-fair/src/", "crates/ttwu-sim/src/"];

/// Text that must not stand in the repository: private paths and hosts.
const FORBIDDEN_TEXT: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!(".lib", "rary/"),
    concat!("crates", ".io/"),
    concat!("py", "pi.org"),
    concat!("registry.", "npmjs"),
    concat!("deb.", "debian.org"),
];

/// Longest source file without a stated reason.
const LINES_MAX: usize = 800;

/// Checks all rules; returns how many are broken.
pub(crate) fn run(root: &Path) -> Result<usize> {
    let mut faults = Vec::new();
    let files = tracked_files(root)?;
    check_manifests(root, &mut faults)?;
    for file in files.iter().filter(|file| has_extension(file, "rs")) {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| file.display().to_string())?;
        check_source(file, &text, &mut faults);
    }
    for file in &files {
        if let Ok(text) = std::fs::read_to_string(root.join(file)) {
            check_text(file, &text, &mut faults);
        }
    }
    check_fixtures(root, &files, &mut faults)?;
    faults.sort();
    for fault in &faults {
        println!("{fault}");
    }
    println!("tidy: {} files checked, {} faults", files.len(), faults.len());
    Ok(faults.len())
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|found| found == extension)
}

/// Files that git tracks or would track.
fn tracked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git ls-files")?;
    if !listing.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim());
    }
    let names = String::from_utf8(listing.stdout).context("file names are UTF-8")?;
    Ok(names.split_terminator('\0').map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

fn check_manifests(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let layers: BTreeMap<&str, u8> = LAYERS.iter().copied().collect();
    let root_manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let mut inside = false;
    for (index, line) in root_manifest.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.trim() == "[workspace.dependencies]";
        } else if inside && !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            let reason = line.rsplit_once('#').map(|(_, reason)| reason.trim());
            if reason.is_none_or(|reason| reason.len() < 8) {
                faults.push(format!("Cargo.toml:{}: dependency without a reason", index + 1));
            }
        }
    }
    for entry in std::fs::read_dir(root.join("crates")).context("crates/")? {
        let path = entry?.path().join("Cargo.toml");
        if !path.is_file() {
            continue;
        }
        let manifest: toml::Table =
            std::fs::read_to_string(&path)?.parse().with_context(|| path.display().to_string())?;
        let name = manifest["package"]["name"].as_str().context("package name")?.to_owned();
        if name == "ttwu-testing" {
            continue;
        }
        let Some(&layer) = layers.get(name.as_str()) else {
            faults.push(format!("{name}: crate without a layer (xtask/src/tidy.rs)"));
            continue;
        };
        let used = manifest.get("dependencies").and_then(toml::Value::as_table);
        for dependency in used.into_iter().flatten().map(|(dependency, _)| dependency.as_str()) {
            if dependency == "ttwu-testing" {
                faults.push(format!("{name}: ttwu-testing is a dev-dependency only"));
            }
            if let Some(&below) = layers.get(dependency)
                && (below >= layer || FORBIDDEN_EDGES.contains(&(name.as_str(), dependency)))
                && !same_layer_exception(&name, dependency)
            {
                faults.push(format!("{name} (layer {layer}) must not use {dependency} (layer {below})"));
            }
        }
        if manifest.get("lints").and_then(|lints| lints.get("workspace")).is_none() {
            faults.push(format!("{name}: [lints] workspace = true is missing"));
        }
    }
    Ok(())
}

/// The architecture's own exceptions to "never sideways"; none so far.
const fn same_layer_exception(_user: &str, _used: &str) -> bool {
    false
}

fn starts_with_any(file: &Path, places: &[&str]) -> bool {
    let name = file.to_string_lossy();
    places.iter().any(|place| name.starts_with(place))
}

fn is_test_or_bench(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.contains("/tests/")
        || name.contains("/benches/")
        || name.contains("_tests.rs")
        || name.contains("/tests.rs")
}

fn check_source(file: &Path, text: &str, faults: &mut Vec<String>) {
    let name = file.display();
    let mut fault = |line: usize, rule: &str| faults.push(format!("{name}:{line}: {rule}"));
    let root_file = file.ends_with("src/lib.rs") || file.ends_with("src/main.rs");
    let host = starts_with_any(file, &["crates/ttwu-host/"]);
    if root_file && !host && !starts_with_any(file, &["fuzz/"]) && !text.contains("#![forbid(unsafe_code)]") {
        fault(1, "crate root without #![forbid(unsafe_code)]");
    }
    if !text.starts_with("//!") && !starts_with_any(file, &["fuzz/"]) {
        fault(1, "file does not open with what it is (//!)");
    }
    let lines = text.lines().count();
    if lines > LINES_MAX && !is_test_or_bench(file) && !text.contains("//! Over 800 lines: ") {
        fault(lines, "over 800 lines; split along data ownership, or say `//! Over 800 lines: why`");
    }
    let serde_file = file.file_name().is_some_and(|name| name == "format.rs" || name == "spec.rs");
    let rules_apply = !file.starts_with("xtask");
    for (index, line) in text.lines().enumerate().filter(|_| rules_apply) {
        let line_number = index + 1;
        let code = line.split("//").next().unwrap_or(line);
        if code.contains("#[allow(") || code.contains("#![allow(") {
            fault(line_number, "#[allow]; use #[expect(lint, reason = …)]");
        }
        if code.contains("unsafe {") && !host && !is_test_or_bench(file) {
            fault(line_number, "unsafe outside ttwu-host");
        }
        if (code.contains("serde::") || code.contains("Serialize)")) && !serde_file && !is_test_or_bench(file)
        {
            fault(line_number, "serde outside format.rs/spec.rs");
        }
        if code.contains("disallowed_") && !starts_with_any(file, IMPURE) && !is_test_or_bench(file) {
            fault(line_number, "a pure crate must not lift the bans of clippy.toml");
        }
        if starts_with_any(file, INTEGER_ONLY)
            && !is_test_or_bench(file)
            && (has_word(code, "f64") || has_word(code, "f32"))
        {
            fault(line_number, "floating point in a crate whose results must not depend on it");
        }
    }
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

fn check_text(file: &Path, text: &str, faults: &mut Vec<String>) {
    let lock_file = file.file_name().is_some_and(|name| name == "Cargo.lock");
    for (index, line) in text.lines().enumerate().filter(|_| !lock_file) {
        for forbidden in FORBIDDEN_TEXT.iter().filter(|forbidden| line.contains(**forbidden)) {
            faults.push(format!("{}:{}: must not name `{forbidden}`", file.display(), index + 1));
        }
    }
}

/// Every file in a `fixtures` folder is named in that folder's `ORIGIN.md`, with what made it.
fn check_fixtures(root: &Path, files: &[PathBuf], faults: &mut Vec<String>) -> Result<()> {
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for file in files {
        if let Some(folder) =
            file.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "fixtures"))
        {
            folders.insert(folder.to_owned());
        }
    }
    for folder in folders {
        let origin = folder.join("ORIGIN.md");
        let Ok(listed) = std::fs::read_to_string(root.join(&origin)) else {
            faults.push(format!("{}: fixtures without an origin", origin.display()));
            continue;
        };
        for file in files.iter().filter(|file| file.starts_with(&folder) && **file != origin) {
            let inside = file.strip_prefix(&folder).expect("filtered by it").display().to_string();
            let parent = file.parent().and_then(|parent| parent.strip_prefix(&folder).ok());
            let as_folder =
                parent.map(|parent| format!("{}/", parent.display())).filter(|name| name.len() > 1);
            if !listed.contains(&inside) && !as_folder.is_some_and(|name| listed.contains(&name)) {
                faults.push(format!("{}: not listed in {}", file.display(), origin.display()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(file: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        check_source(Path::new(file), text, &mut faults);
        check_text(Path::new(file), text, &mut faults);
        faults
    }

    #[test]
    fn each_rule_can_fail() {
        let broken = [
            ("crates/ttwu-model/src/lib.rs", "//! x\n"),
            ("crates/ttwu-model/src/a.rs", "fn f() {}\n"),
            ("crates/ttwu-model/src/a.rs", "//! x\n#[allow(dead_code)]\n"),
            ("crates/ttwu-trace/src/a.rs", "//! x\nlet y = unsafe { z };\n"),
            ("crates/ttwu-report/src/a.rs", "//! x\nuse serde::Serialize;\n"),
            ("crates/ttwu-fair/src/a.rs", "//! x\nlet y: f64 = 0.0;\n"),
            ("crates/ttwu-fair/src/a.rs", "//! x\n#[expect(clippy::disallowed_types, reason = \"x\")]\n"),
            ("README.md", concat!("see /wo", "rk/main\n")),
        ];
        for (file, text) in broken {
            let found = faults(file, text);
            assert!(!found.is_empty(), "{file}: {text:?}");
        }
        let long = format!("//! x\n{}", "fn f() {}\n".repeat(LINES_MAX));
        assert_eq!(faults("crates/ttwu-model/src/a.rs", &long).len(), 1);
    }

    #[test]
    fn sound_text_passes() {
        assert!(faults("crates/ttwu-report/src/format.rs", "//! x\nuse serde::Serialize;\n").is_empty());
        assert!(faults("crates/ttwu-host/src/a.rs", "//! x\nlet y = unsafe { z };\n").is_empty());
        assert!(
            faults("crates/ttwu-model/src/a.rs", "//! x\n// f64 would do; integers are exact\n").is_empty()
        );
    }
}
