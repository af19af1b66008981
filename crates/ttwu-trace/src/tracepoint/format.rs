//! The parser of tracepoint format texts, and reading any field by its description.
//!
//! The text is line-oriented (`name:`, `ID:`, `field:DECLARATION; offset:N; size:N; signed:N;`, `print fmt:`). A field's
//! shape follows from its C declaration, because that is all the kernel gives: `char comm[16]` is text, `__data_loc
//! char[] comm` is text elsewhere in the record.

use std::fmt;

/// Byte order of a recording machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// How the recording machine lays out numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// Its byte order.
    pub endian: Endian,
    /// Bytes of its kernel's `long` and pointers: 4 or 8.
    pub long_bytes: u8,
}

/// Records are at most a ring-buffer page (64 KiB at most, in theory); a description beyond this is damage.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// What kind of value a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// One integer of 1, 2, 4 or 8 bytes.
    Integer,
    /// One pointer or other address.
    Pointer,
    /// `char x[N]`: text up to its NUL.
    Text,
    /// `T x[N]` with elements of this many bytes.
    Array {
        /// Bytes of an element: 1, 2, 4 or 8.
        element: u8,
    },
    /// `__data_loc char[] x` or `__rel_loc char[] x`: text at a place that the field names.
    DynamicText {
        /// What the place is counted from.
        origin: Origin,
    },
    /// `__data_loc T[] x` or `__rel_loc T[] x`.
    DynamicArray {
        /// What the place is counted from.
        origin: Origin,
        /// Bytes of an element: 1, 2, 4 or 8.
        element: u8,
    },
    /// Anything else; only its bytes can be had.
    Opaque,
}

/// What the place of a dynamic field is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `__data_loc`: the record's start.
    Record,
    /// `__rel_loc`: the end of the field itself.
    Field,
}

/// A value read from a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue<'a> {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer or a pointer.
    Unsigned(u64),
    /// Text up to its NUL; tracepoints do not promise UTF-8.
    Text(&'a [u8]),
    /// Elements of `element` bytes in the file's byte order.
    Array {
        /// The elements' bytes.
        bytes: &'a [u8],
        /// Bytes of an element.
        element: u8,
    },
    /// Bytes without known structure.
    Opaque(&'a [u8]),
}

impl FieldValue<'_> {
    /// The value as a number, if it is one that fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Signed(value) => Some(value),
            Self::Unsigned(value) => i64::try_from(value).ok(),
            Self::Text(_) | Self::Array { .. } | Self::Opaque(_) => None,
        }
    }
}

/// One field of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: Box<str>,
    declaration: Box<str>,
    offset: usize,
    size: usize,
    signed: bool,
    shape: Shape,
    endian: Endian,
}

impl Field {
    /// The field's name, without array brackets.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its C declaration, as the format text has it.
    #[must_use]
    pub fn declaration(&self) -> &str {
        &self.declaration
    }

    /// Bytes from the record's start.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes in the record's fixed part.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Is it a signed number?
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// What kind of value it holds.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The field's value in a record, or `None` where the record is too short for it.
    #[must_use]
    pub fn read<'a>(&self, payload: &'a [u8]) -> Option<FieldValue<'a>> {
        let fixed = || payload.get(self.offset..self.offset + self.size);
        Some(match self.shape {
            Shape::Integer | Shape::Pointer => {
                let value = integer(fixed()?, self.endian, self.signed)?;
                if self.signed {
                    FieldValue::Signed(value)
                } else {
                    FieldValue::Unsigned(value.cast_unsigned())
                }
            }
            Shape::Text => FieldValue::Text(until_nul(fixed()?)),
            Shape::Array { element } => FieldValue::Array { bytes: fixed()?, element },
            Shape::DynamicText { origin } => FieldValue::Text(until_nul(self.dynamic(payload, origin)?)),
            Shape::DynamicArray { origin, element } => {
                FieldValue::Array { bytes: self.dynamic(payload, origin)?, element }
            }
            Shape::Opaque => FieldValue::Opaque(fixed()?),
        })
    }

    /// The bytes that a dynamic field points to: its 32 bits are the length (upper half) and place (lower half).
    fn dynamic<'a>(&self, payload: &'a [u8], origin: Origin) -> Option<&'a [u8]> {
        let end = self.offset + self.size;
        let place = integer(payload.get(self.offset..end)?, self.endian, false)?;
        let start = usize::try_from(place & 0xffff).ok()?;
        let len = usize::try_from((place >> 16) & 0xffff).ok()?;
        let start = match origin {
            Origin::Record => start,
            Origin::Field => end + start,
        };
        payload.get(start..start + len)
    }
}

/// The integer in `bytes` (1, 2, 4 or 8 of them), widened; unsigned 64-bit numbers keep their bits.
pub(super) fn integer(bytes: &[u8], endian: Endian, signed: bool) -> Option<i64> {
    let little = matches!(endian, Endian::Little);
    let value = match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(if little { u16::from_le_bytes([a, b]) } else { u16::from_be_bytes([a, b]) }),
        [a, b, c, d] => {
            let bytes = [a, b, c, d];
            u64::from(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
        }
        _ => {
            let bytes: [u8; 8] = bytes.try_into().ok()?;
            if little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
        }
    };
    let unused = 64 - 8 * u32::try_from(bytes.len()).ok()?;
    let value = value.cast_signed();
    Some(if signed { (value << unused) >> unused } else { value })
}

/// `bytes` up to the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..len]
}

/// Why a text is not a tracepoint format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tracepoint format line {line}: {what}")]
pub struct FormatError {
    line: usize,
    what: String,
}

/// The description of one tracepoint.
#[derive(Clone, PartialEq, Eq)]
pub struct TracepointFormat {
    system: Box<str>,
    name: Box<str>,
    id: u16,
    fields: Vec<Field>,
    print: Box<str>,
    encoding: Encoding,
}

impl fmt::Debug for TracepointFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} (id {}, {} fields)", self.system, self.name, self.id, self.fields.len())
    }
}

impl TracepointFormat {
    /// Reads one `format` file's text. `system` is the directory that it was in (`sched`); the text does not say.
    ///
    /// # Errors
    /// Without `name:` and `ID:`, and for fields whose place is missing or absurd. Unknown lines are passed over: kernels
    /// may add some.
    pub fn parse(system: &str, text: &[u8], encoding: Encoding) -> Result<Self, FormatError> {
        let text = String::from_utf8_lossy(text);
        let (mut name, mut id, mut print) = (None, None, "");
        let mut fields = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let bad = |what: String| FormatError { line: index + 1, what };
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("name:") {
                name.get_or_insert(rest.trim());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                let found = rest.trim();
                let parsed = found.parse::<u16>();
                id = Some(parsed.map_err(|_| bad(format!("expected an id below 65536, found `{found}`")))?);
            } else if let Some(rest) =
                line.strip_prefix("field:").or_else(|| line.strip_prefix("field special:"))
            {
                fields.push(parse_field(rest, encoding).map_err(bad)?);
            } else if let Some(rest) = line.strip_prefix("print fmt:") {
                print = rest.trim();
            }
        }
        let missing =
            |what: &str| FormatError { line: text.lines().count(), what: format!("no `{what}` line") };
        Ok(Self {
            system: system.into(),
            name: name.ok_or_else(|| missing("name:"))?.into(),
            id: id.ok_or_else(|| missing("ID:"))?,
            fields,
            print: print.into(),
            encoding,
        })
    }

    /// The system it belongs to (`sched`).
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Its name (`sched_switch`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number by which records name it (`common_type`), valid within its recording.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Its fields in the text's order, the common ones first.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| &*field.name == name)
    }

    /// The text after `print fmt:`.
    #[must_use]
    pub fn print(&self) -> &str {
        &self.print
    }

    /// How numbers in its records are laid out.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }
}

/// Reads what follows `field:`.
fn parse_field(text: &str, encoding: Encoding) -> Result<Field, String> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next().unwrap_or_default();
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in parts.filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once(':').unwrap_or((part, ""));
        let number = || {
            let parsed = value.trim().parse::<usize>().ok().filter(|&number| number <= RECORD_BYTES_MAX);
            parsed.ok_or_else(|| {
                format!("{key} of `{declaration}` is `{value}`, not a number that fits a record")
            })
        };
        match key {
            "offset" => offset = Some(number()?),
            "size" => size = Some(number()?),
            "signed" => signed = Some(number()? != 0),
            _ => {}
        }
    }
    let offset = offset.ok_or_else(|| format!("`{declaration}` has no offset"))?;
    let size = size.ok_or_else(|| format!("`{declaration}` has no size"))?;
    let (bare, bound) = match declaration.rsplit_once('[') {
        Some((bare, rest)) if rest.trim_end().ends_with(']') => {
            (bare.trim(), rest.trim_end().trim_end_matches(']').trim().parse::<usize>().ok())
        }
        Some(_) | None => (declaration, None),
    };
    let name = bare.rsplit(|c: char| c.is_whitespace() || c == '*').next().unwrap_or_default();
    if name.is_empty() {
        return Err(format!("`{declaration}` names no field"));
    }
    // Kernels before 3.0 do not say; C's rules then do, for the types that tracepoints use.
    let signed = signed.unwrap_or_else(|| {
        let declared = |word| declaration.split_whitespace().any(|part| part == word);
        !declared("unsigned")
            && ["int", "long", "short", "pid_t", "s8", "s16", "s32", "s64"].into_iter().any(declared)
    });
    let shape = shape_of(declaration, bare, bound, size, encoding);
    let endian = encoding.endian;
    Ok(Field { name: name.into(), declaration: declaration.into(), offset, size, signed, shape, endian })
}

fn shape_of(declaration: &str, bare: &str, bound: Option<usize>, size: usize, encoding: Encoding) -> Shape {
    let dynamic = [("__data_loc ", Origin::Record), ("__rel_loc ", Origin::Field)];
    if let Some((rest, origin)) =
        dynamic.into_iter().find_map(|(prefix, origin)| Some((declaration.strip_prefix(prefix)?, origin)))
    {
        return match element_bytes(rest, encoding) {
            1 if rest.contains("char") => Shape::DynamicText { origin },
            element => Shape::DynamicArray { origin, element },
        };
    }
    if bare.len() != declaration.len() {
        let element =
            bound.filter(|&bound| bound > 0 && size.is_multiple_of(bound)).map(|bound| size / bound);
        return match element.and_then(|element| u8::try_from(element).ok()) {
            Some(1) if bare.contains("char") => Shape::Text,
            Some(element @ (1 | 2 | 4 | 8)) => Shape::Array { element },
            // `char comm[TASK_COMM_LEN]`: a bound by name says nothing, but characters are bytes.
            None if bare.contains("char ") => Shape::Text,
            Some(_) | None => Shape::Opaque,
        };
    }
    match size {
        1 | 2 | 4 | 8 if declaration.contains('*') => Shape::Pointer,
        1 | 2 | 4 | 8 => Shape::Integer,
        _ => Shape::Opaque,
    }
}

/// Bytes of one element of a dynamic array by its C type; masks (`cpumask_t`) are arrays of `long`.
fn element_bytes(declaration: &str, encoding: Encoding) -> u8 {
    let declared = |word: &str| {
        let mut words = declaration.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|part| part == word)
    };
    let any = |words: &[&str]| words.iter().any(|word| declared(word));
    if any(&["char", "u8", "s8", "__u8", "__s8", "bool", "uint8_t"]) {
        1
    } else if any(&["short", "u16", "s16", "__u16", "__s16", "__le16", "__be16", "uint16_t"]) {
        2
    } else if any(&["u64", "s64", "__u64", "__s64", "__le64", "__be64", "uint64_t"]) {
        8
    } else if any(&["long", "cpumask_t", "size_t"]) || declaration.contains('*') {
        encoding.long_bytes
    } else {
        4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LE64: Encoding = Encoding { endian: Endian::Little, long_bytes: 8 };

    fn check(encoding: Encoding, declaration: &str, payload: &[u8], expect: Option<FieldValue<'_>>) {
        let text = format!("name: x\nID: 7\nformat:\n\tfield:{declaration}\n\nprint fmt: \"\"\n");
        let format = TracepointFormat::parse("test", text.as_bytes(), encoding).expect(declaration);
        assert_eq!(format.fields()[0].read(payload), expect, "{declaration}");
    }

    #[test]
    fn fields_are_read_by_their_declaration() {
        use FieldValue::{Array, Opaque, Signed, Text, Unsigned};
        let bytes = [0xfe, 0xff, 0xff, 0xff, b'a', b'b', 0, b'c'];
        check(LE64, "int x;\toffset:0;\tsize:4;\tsigned:1;", &bytes, Some(Signed(-2)));
        check(LE64, "int x; offset:0; size:4;", &bytes, Some(Signed(-2)));
        check(LE64, "unsigned int x; offset:0; size:4;", &bytes, Some(Unsigned(0xffff_fffe)));
        check(LE64, "u64 x; offset:0; size:8; signed:0;", &[0xff; 8], Some(Unsigned(u64::MAX)));
        check(LE64, "void * x; offset:0; size:8; signed:0;", &[1, 0, 0, 0, 0, 0, 0, 0], Some(Unsigned(1)));
        check(LE64, "char x[4]; offset:4; size:4; signed:0;", &bytes, Some(Text(b"ab")));
        check(LE64, "char x[TASK_COMM_LEN]; offset:4; size:4; signed:0;", &bytes, Some(Text(b"ab")));
        check(
            LE64,
            "u16 x[2]; offset:4; size:4; signed:0;",
            &bytes,
            Some(Array { bytes: b"ab\0c", element: 2 }),
        );
        check(LE64, "struct y x; offset:0; size:3; signed:0;", &bytes, Some(Opaque(&[0xfe, 0xff, 0xff])));
        check(LE64, "int x; offset:6; size:4; signed:1;", &bytes, None);
    }

    #[test]
    fn dynamic_fields_point_into_the_record() {
        use FieldValue::{Array, Text};
        let record = [4, 0, 3, 0, b'h', b'i', 0, 9];
        check(LE64, "__data_loc char[] x; offset:0; size:4; signed:0;", &record, Some(Text(b"hi")));
        let relative = [0, 0, 3, 0, b'h', b'i', 0, 9];
        check(LE64, "__rel_loc char[] x; offset:0; size:4; signed:0;", &relative, Some(Text(b"hi")));
        let big = Encoding { endian: Endian::Big, long_bytes: 4 };
        let record = [0, 4, 0, 4, 0, 0, 0, 5];
        let mask = Array { bytes: &[4, 0, 0, 0, 5][1..], element: 4 };
        check(big, "__data_loc cpumask_t x; offset:0; size:4; signed:0;", &record, Some(mask));
        // A place outside the record is no place.
        check(LE64, "__data_loc char[] x; offset:0; size:4; signed:0;", &[4, 0, 9, 0, b'h'], None);
    }

    #[test]
    fn bad_texts_name_the_line() {
        for (text, expect) in [
            ("name: x\n", "line 1: no `ID:` line"),
            ("ID: 3\n", "line 1: no `name:` line"),
            ("name: x\nID: 70000\n", "line 2: expected an id below 65536, found `70000`"),
            ("name: x\nID: 1\nfield:int y; size:4;\n", "line 3: `int y` has no offset"),
            (
                "name: x\nID: 1\nfield:int y; offset:99999999; size:4;\n",
                "line 3: offset of `int y` is `99999999`",
            ),
        ] {
            let error = TracepointFormat::parse("s", text.as_bytes(), LE64).expect_err(text);
            assert!(error.to_string().contains(expect), "{error}");
        }
    }
}
