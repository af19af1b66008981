//! Options of a named workload: their table, their reading, their canonical form.

use std::collections::BTreeMap;

use ttwu_model::CpuSet;

use super::{COMMON_OPTIONS, NameError, WorkloadDoc};
use crate::Dist;
use crate::text::{did_you_mean, dist_text, parse_dist, parse_size, parse_time, time_text};

/// An option, for help and for reading.
#[derive(Debug)]
pub struct OptionDoc {
    /// Its name: the original's long option where there is one.
    pub name: &'static str,
    /// The original's letters, and other spellings.
    pub short: &'static [&'static str],
    /// What it takes.
    pub kind: OptionKind,
    /// What it is if not given, as text.
    pub default: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Nothing, or `on`/`off`.
    Flag,
    /// A whole number.
    Integer {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// A whole number, or `auto`.
    IntegerOrAuto {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// A size, with `K`, `KiB`, `M`, `MiB`.
    Size {
        /// Bytes that a number without unit counts.
        bare_bytes: u64,
        /// The least, bytes.
        min: u64,
        /// The greatest, bytes.
        max: u64,
    },
    /// A time: `10us`.
    Time {
        /// Nanoseconds that a number without unit counts.
        bare_ns: u64,
        /// The least, ns.
        min: u64,
        /// The greatest, ns.
        max: u64,
    },
    /// A time or a distribution of times: `exponential(10us)`.
    Dist {
        /// Nanoseconds that a number without unit counts.
        bare_ns: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A set of CPUs, items joined by `+`.
    Cpus,
    /// A nice value.
    Nice,
    /// The original has it; here it is refused for this reason.
    Refused(&'static str),
}

/// The row of a flag that is off by default.
pub(crate) const fn flag(name: &'static str, short: &'static [&'static str], doc: &'static str) -> OptionDoc {
    OptionDoc { name, short, kind: OptionKind::Flag, default: "off", doc }
}

/// The row of an option of the original that is refused.
pub(crate) const fn refused(
    name: &'static str,
    short: &'static [&'static str],
    why: &'static str,
) -> OptionDoc {
    OptionDoc { name, short, kind: OptionKind::Refused(why), default: "off", doc: "refused" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Flag(bool),
    Integer(u64),
    Auto,
    Size(u64),
    Time(u64),
    Dist(Dist),
    Choice(&'static str),
    Cpus(CpuSet),
    Nice(i8),
    /// The default of an option whose default is no value of its kind.
    Unset,
}

/// The options of one workload, complete with defaults.
#[derive(Debug)]
pub(crate) struct Options {
    doc: &'static str,
    values: BTreeMap<&'static str, Value>,
    canonical: String,
}

impl Options {
    /// Reads `a=1,b,c=2`; `start` is where it stands in the whole text.
    pub(super) fn parse(doc: &'static WorkloadDoc, text: &str, start: usize) -> Result<Self, NameError> {
        let rows = || doc.options.iter().chain(COMMON_OPTIONS);
        let mut values: BTreeMap<&'static str, Value> = BTreeMap::new();
        for (offset, item) in split(text) {
            let fail = |message: String| NameError { offset: start + offset, message };
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (item, None),
            };
            if name.is_empty() {
                return Err(fail("expected an option, found nothing".to_owned()));
            }
            let row = rows().find(|row| row.name == name || row.short.contains(&name)).ok_or_else(|| {
                fail(format!(
                    "{} has no option `{name}`{}",
                    doc.name,
                    did_you_mean(name, rows().map(|row| row.name))
                ))
            })?;
            let value = row.read(value).map_err(|reason| fail(format!("{}: {reason}", row.name)))?;
            if values.insert(row.name, value).is_some() {
                return Err(fail(format!("{}: given twice", row.name)));
            }
        }
        let canonical = canonical(doc, &values);
        for row in rows() {
            values.entry(row.name).or_insert_with(|| row.default_value());
        }
        Ok(Self { doc: doc.name, values, canonical })
    }

    /// The name with what differs from the defaults, in the table's order.
    pub(super) fn canonical(&self) -> String {
        self.canonical.clone()
    }

    fn value(&self, name: &str) -> &Value {
        self.values.get(name).unwrap_or_else(|| panic!("{} has no option {name}", self.doc))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        *self.value(name) == Value::Flag(true)
    }

    pub(crate) fn integer(&self, name: &str) -> u64 {
        self.integer_or_auto(name).unwrap_or_else(|| panic!("{}: {name} is auto", self.doc))
    }

    /// An integer that the table keeps within 32 bits.
    pub(crate) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).expect("the table's limit fits")
    }

    pub(crate) fn integer_or_auto(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Value::Integer(value) | Value::Size(value) | Value::Time(value) => Some(*value),
            Value::Auto => None,
            other => panic!("{}: {name} is {other:?}", self.doc),
        }
    }

    pub(crate) fn dist(&self, name: &str) -> Dist {
        match self.value(name) {
            Value::Dist(dist) => dist.clone(),
            other => panic!("{}: {name} is {other:?}", self.doc),
        }
    }

    pub(crate) fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            other => panic!("{}: {name} is {other:?}", self.doc),
        }
    }

    pub(super) fn cpus(&self, name: &str) -> Option<&CpuSet> {
        match self.value(name) {
            Value::Cpus(set) => Some(set),
            _ => None,
        }
    }

    pub(super) fn nice(&self, name: &str) -> Option<i8> {
        match self.value(name) {
            Value::Nice(nice) => Some(*nice),
            _ => None,
        }
    }
}

impl OptionDoc {
    fn default_value(&self) -> Value {
        match self.kind {
            OptionKind::Cpus | OptionKind::Nice | OptionKind::Refused(_) => Value::Unset,
            _ => self
                .read(Some(self.default))
                .unwrap_or_else(|reason| panic!("default of {}: {reason}", self.name)),
        }
    }

    fn read(&self, text: Option<&str>) -> Result<Value, String> {
        if let OptionKind::Refused(why) = self.kind {
            return Err(format!("not modelled: {why}"));
        }
        if self.kind == OptionKind::Flag {
            return match text {
                None | Some("on" | "yes" | "1") => Ok(Value::Flag(true)),
                Some("off" | "no" | "0") => Ok(Value::Flag(false)),
                Some(other) => Err(format!("expected nothing, `on` or `off`, found `{other}`")),
            };
        }
        let text = text.ok_or_else(|| format!("expected a value: `{}={}`", self.name, self.default))?;
        match self.kind {
            OptionKind::Integer { min, max } => integer(text, min, max).map(Value::Integer),
            OptionKind::IntegerOrAuto { .. } if text == "auto" => Ok(Value::Auto),
            OptionKind::IntegerOrAuto { min, max } => integer(text, min, max).map(Value::Integer),
            OptionKind::Size { bare_bytes, min, max } => {
                within(parse_size(text, bare_bytes)?, min, max, |bytes| bytes.to_string()).map(Value::Size)
            }
            OptionKind::Time { bare_ns, min, max } => {
                within(parse_time(text, bare_ns)?, min, max, time_text).map(Value::Time)
            }
            OptionKind::Dist { bare_ns } => parse_dist(text, bare_ns).map(Value::Dist),
            OptionKind::Choice(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Choice(word))
                .ok_or_else(|| format!("expected one of {}, found `{text}`", words.join(", "))),
            OptionKind::Cpus => CpuSet::parse_list(&text.replace('+', ","))
                .map(Value::Cpus)
                .map_err(|error| error.to_string()),
            OptionKind::Nice => match text.parse::<i8>() {
                Ok(nice @ -20..=19) => Ok(Value::Nice(nice)),
                _ => Err(format!("expected -20 to 19, found `{text}`")),
            },
            OptionKind::Flag | OptionKind::Refused(_) => unreachable!("read above"),
        }
    }
}

fn integer(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let value = text
        .replace('_', "")
        .parse::<u64>()
        .map_err(|_| format!("expected a whole number from {min} to {max}, found `{text}`"))?;
    within(value, min, max, |value| value.to_string())
}

fn within(value: u64, min: u64, max: u64, show: impl Fn(u64) -> String) -> Result<u64, String> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(format!("expected {} to {}, found {}", show(min), show(max), show(value)))
    }
}

fn canonical(doc: &'static WorkloadDoc, values: &BTreeMap<&'static str, Value>) -> String {
    let mut items = Vec::new();
    for row in doc.options.iter().chain(COMMON_OPTIONS) {
        let Some(value) = values.get(row.name).filter(|value| **value != row.default_value()) else {
            continue;
        };
        items.push(match value {
            Value::Flag(true) => row.name.to_owned(),
            Value::Flag(false) => format!("{}=off", row.name),
            Value::Integer(number) | Value::Size(number) => {
                let bare = if let OptionKind::Size { bare_bytes, .. } = row.kind { bare_bytes } else { 1 };
                match number.is_multiple_of(bare) {
                    true => format!("{}={}", row.name, number / bare),
                    false => format!("{}={number}B", row.name),
                }
            }
            Value::Auto => format!("{}=auto", row.name),
            Value::Time(ns) => format!("{}={}", row.name, time_text(*ns)),
            Value::Dist(dist) => format!("{}={}", row.name, dist_text(dist)),
            Value::Choice(word) => format!("{}={word}", row.name),
            Value::Cpus(set) => format!("{}={}", row.name, set.to_string().replace(',', "+")),
            Value::Nice(nice) => format!("{}={nice}", row.name),
            Value::Unset => unreachable!("only as a default"),
        });
    }
    if items.is_empty() { doc.name.to_owned() } else { format!("{}:{}", doc.name, items.join(",")) }
}

/// The items between commas that are not within brackets, trimmed, with their offsets.
pub(super) fn split(text: &str) -> Vec<(usize, &str)> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in text.char_indices().chain([(text.len(), ',')]) {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 || at == text.len() => {
                let item = &text[start..at];
                items.push((start + item.len() - item.trim_start().len(), item.trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    if text.trim().is_empty() { Vec::new() } else { items }
}
