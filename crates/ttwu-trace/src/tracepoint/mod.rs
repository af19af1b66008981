//! Tracepoints by their own description: what `events/*/*/format` says, and the scheduler events that it means.
//!
//! perf.data, trace.dat, tracefs pages and SchedViz archives all hold the same thing: records whose layout is described by
//! format texts in the same file. Layouts differ by kernel version, patch set and architecture, so nothing here knows an
//! offset: fields are found by name, once per format ([`Tracepoints::new`]), and then read in place.
//!
//! Two ways to use a record: [`Tracepoints`] makes a `RawEvent` of it (what the readers do), [`Field::read`] gives any
//! field of any tracepoint (what a study of probes does).
//!
//! This does not interpret `print fmt` as a language; only the state letters of `sched_switch` are taken from it.

mod extract;
mod format;
mod names;
mod record;
mod state;
mod symbols;
mod table;

pub(crate) use format::until_nul;
pub use format::{Encoding, Endian, Field, FieldValue, FormatError, Origin, Shape, TracepointFormat};
pub(crate) use names::Names;
pub use record::RawRecord;
pub(crate) use state::StateTable;
pub use symbols::Symbols;
pub(crate) use table::{Machine, Tracepoints};
