//! The examples, inside the program.

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../../scenarios/", $name)))),*]
    };
}

/// File name and text; the files that scenarios name stand among them.
const FILES: &[(&str, &str)] = embedded![
    "context1.toml",
    "cyclictest.toml",
    "dbench-bound.toml",
    "dbench.toml",
    "desktop.toml",
    "dmatest-3204.toml",
    "dmatest-epyc-polled.toml",
    "dmatest-epyc.toml",
    "dmatest.toml",
    "duty.toml",
    "hackbench-altra-l3.toml",
    "hackbench-two-nodes.toml",
    "hackbench.toml",
    "massive_intr.toml",
    "messaging.toml",
    "netperf.toml",
    "own.toml",
    "pipe.toml",
    "rpc.toml",
    "rt-app.json",
    "rt-app.toml",
    "schbench-altra.toml",
    "schbench-wakelist.toml",
    "schbench.toml",
    "tbench.toml",
];

/// The text of an example or of a file beside it.
pub(super) fn file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The examples' names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(name, _)| name.strip_suffix(".toml"))
}

/// A line an example: its name and the first sentence of its comment.
pub(super) fn list() -> String {
    let width = names().map(str::len).max().unwrap_or(0);
    let lines = names().map(|name| {
        let text = file(&format!("{name}.toml")).unwrap_or("");
        let title = text.lines().next().unwrap_or("").trim_start_matches(['#', ' ']);
        format!("{name:width$}  {title}\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::{FILES, list, names};
    use std::collections::BTreeSet;

    #[test]
    fn all_examples_are_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        let there: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the examples")
            .map(|entry| entry.expect("an entry"))
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().into_string().expect("UTF-8"))
            .collect();
        let here: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(here, there);
        assert_eq!(list().lines().count(), names().count());
    }
}
