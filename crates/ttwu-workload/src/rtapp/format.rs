//! JSON as rt-app's json-c takes it: with comments, trailing commas and single quotes, keys in order, and positions.
//!
//! A key that occurs twice keeps its first place and its last value there; the reader of such a file should hear of it, so that
//! each object says which keys it had twice.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::spec_toml::{Source, SpecError};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Json {
    pub(super) at: usize,
    pub(super) value: JsonValue,
}

#[derive(Clone, Debug)]
pub(super) enum JsonValue {
    Text(String),
    /// As written.
    Number(String),
    Flag(bool),
    Null,
    Array(Vec<Json>),
    Object(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: usize,
    pub(super) key: String,
    pub(super) value: Json,
    /// The key occurs again, and this is the last value.
    pub(super) repeated: bool,
}

impl JsonValue {
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Number(_) => "a number",
            Self::Flag(_) => "a truth value",
            Self::Null => "null",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

pub(super) fn parse(source: Source<'_>, text: &str) -> Result<Json, SpecError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_single_quoted_strings: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|error| source.error(error.range().start, error.kind().to_string()))?;
    let value = parsed.value.ok_or_else(|| source.error(0, "expected an object, found nothing"))?;
    Ok(convert(value))
}

fn convert(value: ast::Value<'_>) -> Json {
    match value {
        ast::Value::StringLit(text) => {
            Json { at: text.range.start, value: JsonValue::Text(text.value.into_owned()) }
        }
        ast::Value::NumberLit(number) => {
            Json { at: number.range.start, value: JsonValue::Number(number.value.to_owned()) }
        }
        ast::Value::BooleanLit(flag) => Json { at: flag.range.start, value: JsonValue::Flag(flag.value) },
        ast::Value::NullKeyword(null) => Json { at: null.range.start, value: JsonValue::Null },
        ast::Value::Array(array) => Json {
            at: array.range.start,
            value: JsonValue::Array(array.elements.into_iter().map(convert).collect()),
        },
        ast::Value::Object(object) => {
            Json { at: object.range.start, value: JsonValue::Object(entries(object.properties)) }
        }
    }
}

fn entries(properties: Vec<ast::ObjectProp<'_>>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for property in properties {
        let (at, key) = (property.range.start, property.name.as_str().to_owned());
        let value = convert(property.value);
        match entries.iter_mut().find(|entry| entry.key == key) {
            Some(first) => (first.value, first.repeated) = (value, true),
            None => entries.push(Entry { at, key, value, repeated: false }),
        }
    }
    entries
}
