//! Records before interpretation, of any format that has them.

use crate::source::Source;
use crate::tracepoint::RawRecord;
use crate::unwrap::unwrap;
use crate::{Format, Input, ReadError, detect, perf};
use std::path::Path;
use ttwu_model::{TraceHealth, TraceMeta};

/// Shows every tracepoint record of a recording to `visit`, in time order: for fields that events do not keep, such as
/// those of probes.
///
/// # Errors
/// As [`TraceStream::open`](crate::TraceStream::open), and for formats that hold no records with described fields.
pub fn walk_records(
    path: &Path,
    visit: &mut dyn FnMut(&RawRecord<'_>),
) -> Result<(TraceMeta, TraceHealth), ReadError> {
    let mut source = Source::default();
    let (input, _) = unwrap(Input::open(path)?, &mut source.health)?;
    match detect(&input)? {
        Format::PerfData => perf::walk_records(input, &mut source, visit)?,
        format @ (Format::TraceDat
        | Format::Tracefs
        | Format::Schedviz
        | Format::RawPages
        | Format::FtraceText
        | Format::PerfScript
        | Format::Perfetto
        | Format::Ttwu) => {
            let what = format!("{format} gives events only; raw records are read from perf.data");
            return Err(ReadError::Unsupported { format: "raw records", what });
        }
    }
    Ok((source.meta, source.health))
}
