//! Protocol buffers on the wire, as far as Perfetto's traces need them.
//!
//! By hand, because the generated code for Perfetto's schema takes minutes to build and this takes two pages. A message is
//! a borrowed slice; nothing is allocated and no length is believed beyond the slice.

/// A field's value as the wire has it; what it means, the schema knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// The bytes of a string or message; nothing if it is a number.
    pub(super) const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32(_) => &[],
        }
    }

    /// The number; 0 if it is none.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => number,
            Self::Fixed32(number) => number as u64,
            Self::Bytes(_) => 0,
        }
    }

    /// The number as the `int32` that it was declared as: negative ones are sign-extended to ten bytes.
    pub(super) const fn int32(self) -> i32 {
        self.number().cast_signed() as i32
    }

    /// The text; what is not UTF-8 is replaced.
    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

/// The fields of a message in their order.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    damaged: bool,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message, damaged: false }
    }

    /// Did the message end otherwise than after a whole field?
    pub(super) const fn damaged(&self) -> bool {
        self.damaged
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|&number| number > 0)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut self.rest)?),
            1 => {
                let (bytes, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Value::Fixed64(u64::from_le_bytes(*bytes))
            }
            2 => {
                let len = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(len)?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            5 => {
                let (bytes, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Value::Fixed32(u32::from_le_bytes(*bytes))
            }
            // 3 and 4 are groups, which nothing has used for fifteen years.
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.damaged = true;
            self.rest = &[];
        }
        field
    }
}

/// Takes a number off the front; `None` where it does not end or has more than 64 bits.
#[inline]
pub(super) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, &byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * index as u32)?;
        if byte < 0x80 {
            *rest = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

/// The numbers of a packed repeated field.
pub(super) fn packed(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || varint(&mut bytes))
}

/// Appends fields to a message.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a bare number, as packed fields hold them.
    pub(super) fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.put(u64::from(field) << 3);
        self.put(value);
        self
    }

    pub(super) fn int(&mut self, field: u32, value: i32) -> &mut Self {
        self.number(field, i64::from(value).cast_unsigned())
    }

    pub(super) fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.raw(field, value.as_bytes())
    }

    pub(super) fn raw(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.put(u64::from(field) << 3 | 2);
        self.put(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends the fields of another message.
    pub(super) fn append(&mut self, fields: &Self) {
        self.bytes.extend_from_slice(&fields.bytes);
    }

    /// Appends a message that `fill` makes.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.put(u64::from(field) << 3 | 2);
        let at = self.bytes.len();
        fill(self);
        let len = self.bytes.len() - at;
        // The length goes before what it counts; moving a few bytes is cheaper than a buffer per message.
        let mut prefix = Self::default();
        prefix.put(len as u64);
        self.bytes.splice(at..at, prefix.bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut message = Message::default();
        message.number(1, u64::MAX).int(2, -1).text(3, "comm").message(100, |inner| {
            inner.number(1, 300).raw(2, &[7; 300]);
        });
        let fields: Vec<_> = Fields::new(message.as_bytes()).collect();
        assert_eq!(fields[0], (1, Value::Varint(u64::MAX)));
        assert_eq!(fields[1].1.int32(), -1);
        assert_eq!(fields[2], (3, Value::Bytes(b"comm")));
        let inner: Vec<_> = Fields::new(fields[3].1.bytes()).collect();
        assert_eq!(
            (fields[3].0, &inner[..]),
            (100, &[(1, Value::Varint(300)), (2, Value::Bytes(&[7; 300]))][..])
        );
    }

    #[test]
    fn damage_ends_a_message() {
        for bytes in
            [&[0x0a, 5, 1][..], &[0x08], &[0x0b], &[0x00, 1], &[0x08, 0xff, 0xff], &[0x0d, 1, 2], &[0xff; 20]]
        {
            let mut fields = Fields::new(bytes);
            assert_eq!(fields.next(), None, "{bytes:?}");
            assert!(fields.damaged(), "{bytes:?}");
        }
        let long = [&[0x08][..], &[0x80; 10], &[1]].concat();
        assert_eq!(Fields::new(&long).next(), None);
    }
}
