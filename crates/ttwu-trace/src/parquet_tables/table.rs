//! One Parquet file: typed columns that fill up, and row groups written from them.

use parquet::basic::{Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group. Readers skip by row group, and a writer holds one in memory.
const GROUP_ROWS: usize = 1 << 18;

/// What a column holds. Every one may be null, except where values are pushed as `Some` throughout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Times, which grow: stored as differences.
    Time,
    /// 64-bit numbers.
    Long,
    /// 32-bit numbers.
    Int,
    /// Numbers with a fraction.
    Double,
    /// Text, in a dictionary.
    Text,
}

/// A cell; `None` is null.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Of a column of times or 64-bit numbers.
    Long(Option<i64>),
    /// Of a column of 32-bit numbers.
    Int(Option<i32>),
    /// Of a column of numbers with a fraction.
    Double(Option<f64>),
    /// Of a column of text.
    Text(Option<ByteArray>),
}

impl Cell {
    /// Text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Some(ByteArray::from(text)))
    }
}

enum Values {
    Long(Vec<i64>),
    Int(Vec<i32>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
}

struct Column {
    values: Values,
    /// 1 where there is a value, 0 where there is none.
    present: Vec<i16>,
}

/// A table being written.
pub struct Table {
    file: SerializedFileWriter<File>,
    columns: Vec<Column>,
    rows: usize,
    pub(super) rows_written: u64,
}

fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => io::Error::other(source),
        other => io::Error::other(other),
    }
}

impl Table {
    /// Begins the table `name` in `directory`, as the file `name.parquet`, with these columns.
    ///
    /// # Errors
    /// When the file is there already or cannot be written.
    pub fn new(directory: &Path, name: &str, columns: &[(&str, Holds)]) -> io::Result<Self> {
        let file = File::create_new(directory.join(format!("{name}.parquet")))?;
        let mut properties = WriterProperties::builder().set_created_by(crate::convert::WRITER.to_owned());
        let mut fields = Vec::new();
        for &(column, holds) in columns {
            let path = ColumnPath::from(column);
            let (physical, logical) = match holds {
                Holds::Time | Holds::Long => (PhysicalType::INT64, None),
                Holds::Int => (PhysicalType::INT32, None),
                Holds::Double => (PhysicalType::DOUBLE, None),
                Holds::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            };
            if holds == Holds::Time {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            let field = Type::primitive_type_builder(column, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()
                .map_err(as_io)?;
            fields.push(Arc::new(field));
        }
        let schema = Type::group_type_builder(name).with_fields(fields).build().map_err(as_io)?;
        let file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()));
        let column = |&(_, holds): &(&str, Holds)| Column {
            values: match holds {
                Holds::Time | Holds::Long => Values::Long(Vec::new()),
                Holds::Int => Values::Int(Vec::new()),
                Holds::Double => Values::Double(Vec::new()),
                Holds::Text => Values::Text(Vec::new()),
            },
            present: Vec::new(),
        };
        let columns = columns.iter().map(column).collect();
        Ok(Self { file: file.map_err(as_io)?, columns, rows: 0, rows_written: 0 })
    }

    /// Adds a row: one cell for each column.
    ///
    /// # Errors
    /// When a full row group cannot be written.
    ///
    /// # Panics
    /// When the cells are not those of the columns.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) -> io::Result<()> {
        assert_eq!(N, self.columns.len(), "a row has a cell for each column");
        for (column, cell) in self.columns.iter_mut().zip(row) {
            let present = match (&mut column.values, cell) {
                (Values::Long(values), Cell::Long(value)) => {
                    values.extend(value);
                    value.is_some()
                }
                (Values::Int(values), Cell::Int(value)) => {
                    values.extend(value);
                    value.is_some()
                }
                (Values::Double(values), Cell::Double(value)) => {
                    values.extend(value);
                    value.is_some()
                }
                (Values::Text(values), Cell::Text(value)) => {
                    let present = value.is_some();
                    values.extend(value);
                    present
                }
                _ => panic!("a cell of the column's type"),
            };
            column.present.push(i16::from(present));
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.flush().map_err(as_io) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for Column { values, present } in &mut self.columns {
            let mut writer = group.next_column()?.expect("as many columns as in the schema");
            match values {
                Values::Long(values) => {
                    writer.typed::<Int64Type>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Values::Int(values) => {
                    writer.typed::<Int32Type>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Values::Double(values) => {
                    writer.typed::<DoubleType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Values::Text(values) => {
                    writer.typed::<ByteArrayType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
            }
            present.clear();
            writer.close()?;
        }
        group.close()?;
        self.rows_written += self.rows as u64;
        self.rows = 0;
        Ok(())
    }

    /// Ends the table: its rows and bytes.
    ///
    /// # Errors
    /// When the rest cannot be written.
    pub fn finish(mut self) -> io::Result<(u64, u64)> {
        self.flush().map_err(as_io)?;
        let file = self.file.into_inner().map_err(as_io)?;
        Ok((self.rows_written, file.metadata()?.len()))
    }
}
