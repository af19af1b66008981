//! Reading numbers and strings from header sections, whose length is known and whose content is not trusted.

use crate::Endian;

/// A place in a section; every read is checked, and `None` means "ends too early".
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    endian: Endian,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self { rest: bytes, endian }
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.endian.u32(self.take(4)?, 0)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.endian.u64(self.take(8)?, 0)
    }

    /// Text up to a NUL, which is passed over.
    pub(super) fn c_string(&mut self) -> Option<&'a [u8]> {
        let len = self.rest.iter().position(|&byte| byte == 0)?;
        let text = self.take(len as u64)?;
        self.rest = &self.rest[1..];
        Some(text)
    }

    /// perf's header string: a padded length, then text with its NULs.
    pub(super) fn string(&mut self) -> Option<String> {
        let len = self.u32()?;
        let bytes = self.take(u64::from(len))?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// A count followed by that many of perf's header strings.
    pub(super) fn strings(&mut self) -> Option<Vec<String>> {
        let count = self.u32()?;
        // Each takes at least its length field, so the count cannot allocate more than the section is long.
        (0..count).map(|_| self.string()).collect()
    }
}
