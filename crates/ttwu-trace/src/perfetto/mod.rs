//! Perfetto's protobuf traces.

use crate::detect::Head;
use crate::source::{Decoder, Source};
use crate::{Input, ReadError};

/// Is it a sequence of `Trace.packet` fields (tag 0x0a, length, packet)?
pub(crate) fn probe(_head: &Head<'_>) -> bool {
    false
}

/// Opens a Perfetto trace.
pub(crate) fn open(_input: Input, _source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    Err(ReadError::Unsupported { format: "Perfetto", what: "no reader yet".to_owned() })
}
