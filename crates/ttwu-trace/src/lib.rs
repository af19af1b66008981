//! Trace formats: readers that turn other tools' recordings into [`Trace`](ttwu_model::Trace)s, and writers.
//!
//! A reader is a *decoder*: it parses the header when it is opened and then hands out events in time order, a batch at a
//! time, so that a file larger than memory can be read. [`TraceStream`] runs a decoder on a thread of its own, resolves
//! pids to tasks and yields chunks of finished events; [`read`] collects a whole trace.
//!
//! Importers drop nothing silently: what they cannot use is counted in [`TraceHealth`](ttwu_model::TraceHealth). Input is
//! hostile by default: no length in a file is believed before it is checked against what is there.
#![forbid(unsafe_code)]

mod bytes;
mod chrome;
mod convert;
mod detect;
mod error;
mod input;
#[cfg(feature = "parquet")]
mod parquet_tables;
#[cfg(not(feature = "parquet"))]
mod parquet_tables {
    //! This build has none.
    use crate::{ConvertError, ConvertSummary, Target, TraceStream};
    use std::path::Path;

    pub(crate) fn convert_to_directory(_: TraceStream, _: &Path) -> Result<ConvertSummary, ConvertError> {
        Err(ConvertError::NotBuilt { target: Target::Parquet })
    }
}
mod perf;
mod perfetto;
mod rawpages;
mod records;
pub mod ring;
mod schedviz;
mod source;
mod stream;
mod text;
mod tracedat;
mod tracefs;
mod tracepoint;
mod ttwu;
mod unwrap;

pub use chrome::ChromeWriter;
pub use convert::{ConvertError, ConvertSummary, Target, TraceWriter, Written, convert};
pub use detect::{Format, detect};
pub use error::ReadError;
pub use input::Input;
#[cfg(feature = "parquet")]
pub use parquet_tables::{Cell as ParquetCell, Holds as ParquetColumn, ParquetWriter, Table as ParquetTable};
pub use perfetto::PerfettoWriter;
pub use rawpages::RawPages;
pub use records::walk_records;
pub use ring::PageLayout;
pub use stream::{Chunk, TraceStream, read};
pub use tracepoint::{
    Encoding, Endian, Field, FieldValue, FormatError, Origin, RawRecord, Shape, Symbols, TracepointFormat,
};
pub use ttwu::{
    Bytes, TtwuWriter, put_bytes, put_number, read_side_table, side_tables, write_ttwu, write_ttwu_with,
};
