//! ttwu's own format, `.ttwu`.

use crate::detect::Head;
use crate::source::{Decoder, Source};
use crate::{Input, ReadError};

/// The first bytes of every `.ttwu` file. The second half catches transfers that change line ends, as PNG's does.
const MAGIC: &[u8; 8] = b"TTWU\r\n\x1a\n";

/// Is it ours?
pub(crate) fn probe(head: &Head<'_>) -> bool {
    head.bytes.starts_with(MAGIC)
}

/// Opens a `.ttwu` file.
pub(crate) fn open(_input: Input, _source: &mut Source) -> Result<Box<dyn Decoder>, ReadError> {
    Err(ReadError::Unsupported { format: "ttwu", what: "no reader yet".to_owned() })
}
