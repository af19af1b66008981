//! TOML read key by key with positions, so that every error points at line and column.
//!
//! A file is parsed into [`Node`]s that keep their order and where they stand. [`Fields`] hands out a table's values by name and, at the
//! end, refuses what nobody asked for, with the nearest of the names that were asked.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::text::did_you_mean;

/// What is wrong in a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What was expected and found.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for SpecError {}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Bytes in the file.
    pub span: Range<usize>,
    /// What it is.
    pub value: Value,
}

/// A key and where it stands.
#[derive(Clone, Debug)]
pub struct Key {
    /// Bytes in the file.
    pub span: Range<usize>,
    /// Its name.
    pub name: String,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A truth value.
    Flag(bool),
    /// An array.
    Array(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<(Key, Node)>),
    /// Anything else, by the name of its type.
    Other(&'static str),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Flag(_) => "a truth value",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
            Self::Other(name) => name,
        }
    }
}

/// The text of a file, for positions.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    text: &'a str,
}

impl<'a> Source<'a> {
    /// Of this text.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// An error at this byte.
    #[must_use]
    pub fn error(&self, at: usize, message: impl Into<String>) -> SpecError {
        let at = (0..=at.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        SpecError { line, column, message: message.into() }
    }

    /// Reads the text as TOML.
    ///
    /// # Errors
    /// Where it is none.
    pub fn parse(&self) -> Result<Node, SpecError> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, error.message().lines().next().unwrap_or("not TOML").to_owned())
        })?;
        let span = table.span();
        Ok(Node { span, value: self.table(table.get_ref())? })
    }

    /// Where the text inside a string value begins, if it stands in the file as it is (no escapes).
    #[must_use]
    pub fn inside(&self, span: &Range<usize>) -> Option<usize> {
        let raw = self.text.get(span.clone())?;
        for (quote, escapes) in [("\"\"\"", true), ("'''", false), ("\"", true), ("'", false)] {
            let Some(body) = raw.strip_prefix(quote) else { continue };
            if escapes && body.contains('\\') {
                return None;
            }
            // A line end right after three quotes is not part of the string.
            let skipped = match quote.len() {
                3 if body.starts_with("\r\n") => 2,
                3 if body.starts_with('\n') => 1,
                _ => 0,
            };
            return Some(span.start + quote.len() + skipped);
        }
        None
    }

    fn table(&self, table: &DeTable<'_>) -> Result<Value, SpecError> {
        let mut entries = Vec::new();
        for (key, value) in table {
            let key = Key { span: key.span(), name: key.get_ref().to_string() };
            entries.push((key, self.node(value)?));
        }
        entries.sort_by_key(|(key, _)| key.span.start);
        Ok(Value::Table(entries))
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Result<Node, SpecError> {
        let span = value.span();
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                Value::Integer(parsed.map_err(|_| self.error(span.start, "expected an integer of 64 bits"))?)
            }
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => self.table(table)?,
            DeValue::Float(_) => Value::Other("a number with a fraction"),
            DeValue::Datetime(_) => Value::Other("a date"),
        };
        Ok(Node { span, value })
    }
}

/// A table whose values are asked for by name.
#[derive(Debug)]
pub struct Fields<'a> {
    source: Source<'a>,
    what: String,
    at: usize,
    entries: &'a [(Key, Node)],
    asked: Vec<&'static str>,
    /// Whoever reads the table has taken the rest.
    open: bool,
}

impl<'a> Fields<'a> {
    /// Of a node, which must be a table; `what` names it in messages.
    ///
    /// # Errors
    /// If it is no table.
    pub fn new(source: Source<'a>, node: &'a Node, what: impl Into<String>) -> Result<Self, SpecError> {
        let what = what.into();
        match &node.value {
            Value::Table(entries) => {
                Ok(Self { source, what, at: node.span.start, entries, asked: Vec::new(), open: false })
            }
            other => {
                Err(source
                    .error(node.span.start, format!("{what}: expected a table, found {}", other.kind())))
            }
        }
    }

    /// The file.
    #[must_use]
    pub const fn source(&self) -> Source<'a> {
        self.source
    }

    /// Where the table stands.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The value of a key as it is.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        self.entries.iter().find(|(found, _)| found.name == key).map(|(_, node)| node)
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// If it is not.
    pub fn required(&mut self, key: &'static str) -> Result<&'a Node, SpecError> {
        let missing = self.source.error(self.at, format!("{}: `{key}` is missing", self.what));
        self.node(key).ok_or(missing)
    }

    /// A string.
    ///
    /// # Errors
    /// If it is something else.
    pub fn text(&mut self, key: &'static str) -> Result<Option<(&'a str, Range<usize>)>, SpecError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match &node.value {
            Value::Text(text) => Ok(Some((text, node.span.clone()))),
            other => Err(self.wrong(key, node, "a string", other)),
        }
    }

    /// A truth value.
    ///
    /// # Errors
    /// If it is something else.
    pub fn flag(&mut self, key: &'static str) -> Result<Option<bool>, SpecError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match &node.value {
            Value::Flag(flag) => Ok(Some(*flag)),
            other => Err(self.wrong(key, node, "true or false", other)),
        }
    }

    /// An integer from `low` to `high`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn integer(&mut self, key: &'static str, low: i64, high: i64) -> Result<Option<i64>, SpecError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match &node.value {
            Value::Integer(number) if (low..=high).contains(number) => Ok(Some(*number)),
            Value::Integer(number) => Err(self
                .source
                .error(node.span.start, format!("{key}: expected {low} to {high}, found {number}"))),
            other => Err(self.wrong(key, node, "an integer", other)),
        }
    }

    /// A string that `read` understands, or an integer, which `read` gets as text.
    ///
    /// # Errors
    /// What `read` says, at the value.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SpecError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let read = match &node.value {
            Value::Text(text) => read(text),
            Value::Integer(number) => read(&number.to_string()),
            other => return Err(self.wrong(key, node, "a string", other)),
        };
        read.map(Some).map_err(|message| self.source.error(node.span.start, format!("{key}: {message}")))
    }

    /// One of these words.
    ///
    /// # Errors
    /// Otherwise, with the nearest.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, SpecError> {
        self.read(key, |text| {
            words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                format!("expected one of {}, found `{text}`{}", known.join(", "), did_you_mean(text, known))
            })
        })
    }

    /// A table.
    ///
    /// # Errors
    /// If it is something else.
    pub fn table(&mut self, key: &'static str) -> Result<Option<Fields<'a>>, SpecError> {
        self.node(key).map(|node| Self::new(self.source, node, key)).transpose()
    }

    /// The items of an array; none if there is none.
    ///
    /// # Errors
    /// If it is something else.
    pub fn array(&mut self, key: &'static str) -> Result<&'a [Node], SpecError> {
        match self.node(key) {
            None => Ok(&[]),
            Some(Node { value: Value::Array(items), .. }) => Ok(items),
            Some(node) => Err(self.wrong(key, node, "an array", &node.value)),
        }
    }

    /// All entries of a table of free names; none if there is none.
    ///
    /// # Errors
    /// If it is something else.
    pub fn entries(&mut self, key: &'static str) -> Result<&'a [(Key, Node)], SpecError> {
        match self.node(key) {
            None => Ok(&[]),
            Some(Node { value: Value::Table(entries), .. }) => Ok(entries),
            Some(node) => Err(self.wrong(key, node, "a table", &node.value)),
        }
    }

    /// The entries that were not asked for so far, which count as asked for from here on: keys whose names another table knows.
    pub fn rest(&mut self) -> Vec<(&'a Key, &'a Node)> {
        self.open = true;
        let asked = &self.asked;
        let left = self.entries.iter().filter(|(key, _)| !asked.contains(&key.name.as_str()));
        left.map(|(key, node)| (key, node)).collect()
    }

    /// Refuses keys that were not asked for.
    ///
    /// # Errors
    /// The first of them, with the nearest known.
    pub fn finish(self) -> Result<(), SpecError> {
        if self.open {
            return Ok(());
        }
        match self.entries.iter().find(|(key, _)| !self.asked.contains(&key.name.as_str())) {
            None => Ok(()),
            Some((key, _)) => {
                let hint = did_you_mean(&key.name, self.asked.iter().copied());
                Err(self
                    .source
                    .error(key.span.start, format!("{}: unknown key `{}`{hint}", self.what, key.name)))
            }
        }
    }

    fn wrong(&self, key: &str, node: &Node, expected: &str, found: &Value) -> SpecError {
        self.source.error(node.span.start, format!("{key}: expected {expected}, found {}", found.kind()))
    }
}

/// A string as TOML, on one line where that needs no escapes.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c == '\t' || !c.is_control();
    if !text.contains(['"', '\\']) && text.chars().all(plain) {
        return format!("\"{text}\"");
    }
    if !text.contains('\'') && text.chars().all(plain) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key as TOML: bare where it can be.
#[must_use]
pub fn quoted_key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_owned() } else { quoted(name) }
}
