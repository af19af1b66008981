//! Decisions out of a trace's probe records: which records belong to one wake-up, fork or exec.
//!
//! Probes of one function fire one after another on the CPU that runs it; an interrupt may wake somebody in between, so open
//! wake-ups are kept on a stack for each CPU. The result has the same form as a line of `decisions.jsonl`, which makes a
//! bare trace with the probes and a folder with extracted decisions the same thing to everything that follows.

use crate::format::Decision;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use ttwu_trace::{FieldValue, RawRecord};

type Object = Map<String, Value>;

/// What is open on a CPU.
#[derive(Default)]
struct Open {
    /// Wake-ups, the innermost last.
    wakes: Vec<Object>,
    /// The selection.
    selection: Option<Object>,
    /// Parts of its snapshot that were seen before its arguments.
    parts: BTreeMap<usize, Object>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Extract {
    cpus: BTreeMap<u16, Open>,
}

impl Extract {
    /// Takes the next record; gives the decision that it ends.
    pub(crate) fn take(&mut self, record: &RawRecord<'_>) -> Option<Decision> {
        let name = record.format.name();
        let number = record.cpu.number();
        let open = self.cpus.entry(number).or_default();
        match name {
            "ttwu" => {
                let mut wake = begin(record);
                wake.insert("ttwu".to_owned(), Value::Object(fields(record)));
                open.wakes.push(wake);
            }
            "sel_in" => {
                let mut selection = begin(record);
                selection.insert("sel".to_owned(), Value::Object(fields(record)));
                let rows = std::mem::take(&mut open.parts).into_values().map(Value::Object);
                selection.insert("rq".to_owned(), Value::Array(rows.collect()));
                open.selection = Some(selection);
            }
            "sel_n" => {
                // Read last: it overlays the earlier parts.
                let rows = open.selection.as_mut()?.get_mut("rq")?.as_array_mut()?;
                for (cpu, part) in by_cpu(record) {
                    rows.get_mut(cpu)?.as_object_mut()?.extend(part);
                }
            }
            "idle_in" => {
                push(open.selection.as_mut()?, "idle", json!([fields(record).get("cpu")?, Value::Null]));
            }
            "idle" => {
                let of = fields(record);
                let selection = open.selection.as_mut()?;
                if let Some(cpu) = of.get("cpu") {
                    push(selection, "idle", json!([cpu, of.get("idle")?]));
                } else {
                    let last = selection.get_mut("idle")?.as_array_mut()?.last_mut()?.as_array_mut()?;
                    last[1] = of.get("idle")?.clone();
                }
            }
            "thl" => push(open.selection.as_mut()?, "thl", fields(record).get("load")?.clone()),
            "sel_out" => return finish_selection(open, number, record),
            "wlist" => {
                let of = fields(record);
                let question =
                    json!([of.get("cpu")?, Value::Null, of.get("oncpu").cloned().unwrap_or(json!(0))]);
                push(open.wakes.last_mut()?, "wl", question);
            }
            "wlist_out" => {
                let last = open.wakes.last_mut()?.get_mut("wl")?.as_array_mut()?.last_mut()?;
                last.as_array_mut()?[1] = fields(record).get("ret")?.clone();
            }
            "ttwu_out" => {
                let wake = open.wakes.pop()?;
                return decision(with_kind(wake, &fields(record)));
            }
            _ if name.starts_with("sel_q") || name.starts_with("sel_s") => {
                for (cpu, part) in by_cpu(record) {
                    open.parts.entry(cpu).or_default().extend(part);
                }
            }
            _ if name.starts_with("i_") => {
                let mut point = vec![json!(name)];
                point.extend(ordered(record).into_iter().map(|(_, value)| value));
                push(open.selection.as_mut()?, "inl", Value::Array(point));
            }
            _ => {}
        }
        None
    }
}

/// The return of the selection: it goes to the wake-up that asked, or stands for itself.
fn finish_selection(open: &mut Open, cpu: u16, record: &RawRecord<'_>) -> Option<Decision> {
    let mut selection = open.selection.take()?;
    selection.insert("ret".to_owned(), fields(record).get("cpu")?.clone());
    selection.insert("cpu".to_owned(), json!(cpu));
    let flags = selection.get("sel")?.get("wf")?.as_u64()?;
    let kind = |bit: u64| flags & bit != 0;
    if let Some(wake) = open.wakes.last_mut().filter(|_| kind(8)) {
        for name in ["sel", "rq", "idle", "thl", "ret", "inl"] {
            if let Some(value) = selection.remove(name) {
                wake.insert(name.to_owned(), value);
            }
        }
        wake.insert("kind".to_owned(), json!("select"));
        return None;
    }
    let name = if kind(4) {
        "fork"
    } else if kind(2) {
        "exec"
    } else {
        "other"
    };
    selection.insert("kind".to_owned(), json!(name));
    decision(selection)
}

/// How a wake-up without a selection was resolved.
fn with_kind(mut wake: Object, out: &Object) -> Object {
    if !wake.contains_key("kind") {
        let on = |object: Option<&Value>, name: &str| {
            object.and_then(|object| object.get(name)).and_then(Value::as_i64).is_some_and(|value| value != 0)
        };
        let asked = wake.get("ttwu");
        let answers = wake.get("wl").and_then(Value::as_array).map_or_else(Vec::new, |list| {
            list.iter()
                .map(|question| question[1].as_i64().is_some_and(|answer| answer != 0))
                .collect::<Vec<bool>>()
        });
        let listed = !answers.is_empty() && answers.iter().all(|&answer| answer);
        let kind = if out.get("ret").and_then(Value::as_i64) == Some(0) {
            "none"
        } else if on(asked, "onrq") {
            "on_rq"
        } else if listed && on(asked, "oncpu") {
            "on_cpu"
        } else {
            "pinned"
        };
        wake.insert("kind".to_owned(), json!(kind));
    }
    wake
}

/// Broken off ones (an idle check without an answer at the recording's end) are no decisions.
fn decision(object: Object) -> Option<Decision> {
    serde_json::from_value(Value::Object(object)).ok()
}

fn push(object: &mut Object, name: &str, value: Value) {
    let list = object.entry(name.to_owned()).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(value);
    }
}

fn begin(record: &RawRecord<'_>) -> Object {
    let at = record.at.as_ns();
    let flags = record.format.field("common_flags").and_then(|field| field.read(record.payload));
    let flags = match flags {
        Some(FieldValue::Unsigned(flags)) => flags,
        Some(FieldValue::Signed(flags)) => flags.cast_unsigned(),
        _ => 0,
    };
    // trace-cmd's flag column: the third character is the interrupt context.
    let context = if flags & 0x48 != 0 {
        "..h"
    } else if flags & 0x10 != 0 {
        "..s"
    } else {
        "..."
    };
    let mut object = Object::new();
    object.insert("ts".to_owned(), json!(format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000)));
    object.insert("cpu".to_owned(), json!(record.cpu.number()));
    object.insert("ctx".to_owned(), json!(context));
    object
}

/// The record's own fields in their order.
fn ordered<'a>(record: &'a RawRecord<'_>) -> Vec<(&'a str, Value)> {
    let own = record.format.fields().iter().filter(|field| {
        let name = field.name();
        !name.starts_with("common_") && !name.starts_with("__probe_")
    });
    own.filter_map(|field| {
        let value = match field.read(record.payload)? {
            FieldValue::Signed(value) => json!(value),
            FieldValue::Unsigned(value) => json!(value),
            FieldValue::Text(text) => json!(format!("\"{}\"", String::from_utf8_lossy(text))),
            _ => return None,
        };
        Some((field.name(), value))
    })
    .collect()
}

fn fields(record: &RawRecord<'_>) -> Object {
    ordered(record).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Fields named `n0`, `c0`, `n1`, … by CPU.
fn by_cpu(record: &RawRecord<'_>) -> BTreeMap<usize, Object> {
    let mut cpus: BTreeMap<usize, Object> = BTreeMap::new();
    for (name, value) in ordered(record) {
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if let Ok(cpu) = name[letters.len()..].parse() {
            cpus.entry(cpu).or_default().insert(letters.to_owned(), value);
        }
    }
    cpus
}
