//! `--set`: changes in the text of a scenario, so that there is one grammar and one set of messages for files and flags.

use super::load::ScenarioSource;
use anyhow::{Result, anyhow};
use ttwu_fair::{FEATURES, TUNABLES, VARIANTS};
use ttwu_sim::{COSTS, Scenario};
use ttwu_workload::spec_toml::{Key, Node, Source, SpecError, Value, quoted};

/// Keys at the top of a scenario.
const TOP: [&str; 5] = ["workload", "machine", "policy", "seed", "duration"];

/// What who gives `--set loops=100` should know.
const OPTIONS_HINT: &str =
    "; a workload's own options belong to its line, as in --set workload=hackbench:groups=2,loops=50";

/// The scenario with all changes, in their order.
pub(super) fn apply(source: &ScenarioSource, mut scenario: Scenario, sets: &[String]) -> Result<Scenario> {
    let mut text = source.text.clone();
    for set in sets {
        let fail = |message: String| anyhow!("--set {set}: {message}");
        let (path, value) = change(set, &scenario).map_err(fail)?;
        let path: Vec<&str> = path.split('.').collect();
        text = put(&text, &path, &literal(&value)).map_err(|error| fail(error.to_string()))?;
        scenario = Scenario::parse(&text, &source.surroundings).map_err(|error| {
            let unknown = path[0] == "settings" && error.message.contains("unknown key");
            fail(if unknown { format!("{}{OPTIONS_HINT}", error.message) } else { error.message })
        })?;
    }
    Ok(scenario)
}

/// Which key of the file gets which value.
fn change(set: &str, scenario: &Scenario) -> Result<(String, String), String> {
    let policy = |words: &str| ("policy".to_owned(), format!("{} {words}", scenario.policy));
    let bare = set.strip_prefix("NO_").unwrap_or(set);
    if set.starts_with(['+', '-']) || FEATURES.iter().any(|row| row.name == bare) {
        return Ok(policy(set));
    }
    let (key, value) = set.split_once('=').ok_or("expected KEY=VALUE, +FEATURE or -FEATURE")?;
    let (key, value) = (key.trim(), value.trim());
    if TUNABLES.iter().any(|row| row.name == key) || VARIANTS.iter().any(|row| row.name == key) {
        return Ok(policy(&format!("{key}={value}")));
    }
    let path = if key.contains('.') || TOP.contains(&key) {
        key.to_owned()
    } else if key == "costs" || key == "preset" {
        "costs.preset".to_owned()
    } else if COSTS.iter().any(|row| row.name == key) {
        format!("costs.{key}")
    } else {
        format!("settings.{key}")
    };
    Ok((path, value.to_owned()))
}

/// The value as it stands in a file; words need no quotes on the command line.
fn literal(value: &str) -> String {
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if number || value == "true" || value == "false" || value.starts_with(['{', '[', '"', '\'']) {
        value.to_owned()
    } else {
        quoted(value)
    }
}

/// The text with this key's value. A key that is not there is added to its table.
fn put(text: &str, path: &[&str], value: &str) -> Result<String, SpecError> {
    let root = Source::new(text).parse()?;
    let at_top = |key: &str| format!("{key} = {value}\n{text}");
    match *path {
        [key] => Ok(match find(&root, key) {
            Some((_, node)) => replace(text, node, value),
            None => at_top(key),
        }),
        [table, key] => Ok(match find(&root, table) {
            None => at_top(&format!("{table}.{key}")),
            Some((name, node)) => match find(node, key) {
                Some((_, node)) => replace(text, node, value),
                None => add(text, name, node, key, value),
            },
        }),
        _ => Err(Source::new(text).error(0, "expected a key, or a table's name, a dot and a key")),
    }
}

fn find<'a>(node: &'a Node, key: &str) -> Option<(&'a Key, &'a Node)> {
    match &node.value {
        Value::Table(entries) => {
            entries.iter().find(|(found, _)| found.name == key).map(|(key, node)| (key, node))
        }
        Value::Text(_) | Value::Integer(_) | Value::Flag(_) | Value::Array(_) | Value::Other(_) => None,
    }
}

fn replace(text: &str, node: &Node, value: &str) -> String {
    format!("{}{value}{}", &text[..node.span.start], &text[node.span.end..])
}

/// Adds a key to a table that is there: `{ … }`, `[table]`, or dotted keys.
fn add(text: &str, name: &Key, node: &Node, key: &str, value: &str) -> String {
    if text[node.span.clone()].starts_with('{') {
        let (before, after) = text.split_at(node.span.start + 1);
        let comma = if after.trim_start().starts_with('}') { "" } else { "," };
        return format!("{before} {key} = {value}{comma}{after}");
    }
    let line = text[..name.span.start].rfind('\n').map_or(0, |end| end + 1);
    let table = &name.name;
    let head = text[line..].trim_start();
    let at_line = |added: String| format!("{}{added}{}", &text[..line], &text[line..]);
    if !head.starts_with('[') {
        return at_line(format!("{table}.{key} = {value}\n"));
    }
    let is_header_of_it =
        head[1..].trim_start().get(table.len()..).is_some_and(|rest| rest.trim_start().starts_with(']'));
    if !is_header_of_it {
        // Only a table inside of it has a header.
        return at_line(format!("[{table}]\n{key} = {value}\n"));
    }
    let end = text[line..].find('\n').map_or(text.len(), |length| line + length);
    format!("{}\n{key} = {value}{}", &text[..end], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::{literal, put};

    #[track_caller]
    fn check(text: &str, key: &str, value: &str, expected: &str) {
        let path: Vec<&str> = key.split('.').collect();
        let changed = put(text, &path, &literal(value)).expect("a scenario");
        assert_eq!(changed, expected);
        assert!(ttwu_workload::spec_toml::Source::new(&changed).parse().is_ok(), "{changed}");
    }

    #[test]
    fn values_are_replaced_where_they_stand() {
        check("seed = 1 # one\nduration = \"1s\"", "seed", "7", "seed = 7 # one\nduration = \"1s\"");
        check("duration = \"1s\"\n", "duration", "20ms", "duration = \"20ms\"\n");
        check("[settings]\ncpus = \"0\"\n", "settings.cpus", "0-3", "[settings]\ncpus = \"0-3\"\n");
    }

    #[test]
    fn keys_are_added_to_their_table_however_it_is_written() {
        check("a = 1\n", "seed", "7", "seed = 7\na = 1\n");
        check("a = 1\n", "costs.ipi", "3/2", "costs.ipi = \"3/2\"\na = 1\n");
        check("a = 1\n[costs]\nb = 2", "costs.ipi", "5", "a = 1\n[costs]\nipi = 5\nb = 2");
        check("a = 1\n[costs]", "costs.ipi", "5", "a = 1\n[costs]\nipi = 5");
        check("costs = {}\n", "costs.ipi", "5", "costs = { ipi = 5}\n");
        check("costs = { b = 2 }\n", "costs.ipi", "5", "costs = { ipi = 5, b = 2 }\n");
        check("costs.b = 2\n", "costs.ipi", "5", "costs.ipi = 5\ncosts.b = 2\n");
        check("[costs.b]\nc = 2\n", "costs.ipi", "5", "[costs]\nipi = 5\n[costs.b]\nc = 2\n");
    }
}
