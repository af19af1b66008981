//! A record before interpretation.

use crate::TracepointFormat;
use ttwu_model::{CpuId, Time};

/// One tracepoint record as it is in a file: for fields that no [`EventKind`](ttwu_model::EventKind) carries, such as
/// those of probes. [`Field::read`](crate::Field::read) takes its values.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    /// When, on the trace's clock.
    pub at: Time,
    /// The CPU that emitted it.
    pub cpu: CpuId,
    /// What its bytes mean.
    pub format: &'a TracepointFormat,
    /// Its bytes, from `common_type` on.
    pub payload: &'a [u8],
}
