//! Reads a trace.dat's metadata field by field, saying where it stopped.

use super::FORMAT;
use crate::tracepoint::Endian;
use crate::{Input, ReadError};

/// Names and other short strings; longer ones are damage.
const STRING_MAX: u64 = 4096;

/// A place in the file, or in one unpacked section of it.
pub(super) struct Reader<'a> {
    input: &'a Input,
    at: u64,
    order: Endian,
    /// What is being read, for messages: `header`, `section of event formats`.
    part: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a Input, at: u64, order: Endian, part: &'static str) -> Self {
        Self { input, at, order, part }
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The bytes left.
    pub(super) fn left(&self) -> u64 {
        self.input.len().saturating_sub(self.at)
    }

    pub(super) fn input(&self) -> &'a Input {
        self.input
    }

    pub(super) fn order(&self) -> Endian {
        self.order
    }

    pub(super) fn set_order(&mut self, order: Endian) {
        self.order = order;
    }

    pub(super) fn set_part(&mut self, part: &'static str) {
        self.part = part;
    }

    /// Damage at `at`.
    pub(super) fn damaged(&self, at: u64, what: impl AsRef<str>) -> ReadError {
        ReadError::damaged(FORMAT, at, format!("{}: {}", self.part, what.as_ref()))
    }

    /// `len` bytes, which must all be there; `what` is for the message.
    pub(super) fn bytes(&mut self, len: u64, what: &str) -> Result<Vec<u8>, ReadError> {
        if len > self.left() {
            let found = format!("expected {len} bytes of {what}, only {} are left", self.left());
            return Err(self.damaged(self.at, found));
        }
        let bytes = self.input.bytes(self.at, len)?;
        if bytes.len() as u64 != len {
            return Err(
                self.damaged(self.at, format!("{what} ends early: the file shrank while it was read"))
            );
        }
        self.at += len;
        Ok(bytes)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, ReadError> {
        Ok(self.bytes(1, what)?[0])
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, ReadError> {
        let bytes = self.bytes(2, what)?;
        Ok(self.order.u16(&bytes, 0).expect("2 bytes"))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, ReadError> {
        let bytes = self.bytes(4, what)?;
        Ok(self.order.u32(&bytes, 0).expect("4 bytes"))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, ReadError> {
        let bytes = self.bytes(8, what)?;
        Ok(self.order.u64(&bytes, 0).expect("8 bytes"))
    }

    /// A text up to its NUL.
    pub(super) fn string(&mut self, what: &str) -> Result<String, ReadError> {
        let bytes = self.input.bytes(self.at, STRING_MAX)?;
        let Some(len) = bytes.iter().position(|&byte| byte == 0) else {
            return Err(self.damaged(self.at, format!("{what} does not end within {} bytes", bytes.len())));
        };
        self.at += len as u64 + 1;
        Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
    }

    /// Exactly these bytes.
    pub(super) fn expect(&mut self, tag: &[u8]) -> Result<(), ReadError> {
        let at = self.at;
        let text = String::from_utf8_lossy(tag).trim_end_matches('\0').to_owned();
        let found = self.bytes(tag.len() as u64, &format!("`{text}`"))?;
        if found != tag {
            let found = String::from_utf8_lossy(&found).into_owned();
            return Err(self.damaged(at, format!("expected `{text}`, found {found:?}")));
        }
        Ok(())
    }
}
