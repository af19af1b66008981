//! Numbers in bytes whose order the file chooses.

use crate::tracepoint::Endian;

impl Endian {
    /// The 16-bit number at `at`, if it is there.
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }

    /// The 32-bit number at `at`, if it is there.
    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }

    /// The 64-bit number at `at`, if it is there.
    #[inline]
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        })
    }

    /// A number of the kernel's word size (`len` is 4, else 8) at `at`, if it is there.
    #[inline]
    pub(crate) fn long(self, bytes: &[u8], at: usize, len: usize) -> Option<u64> {
        if len == 4 { self.u32(bytes, at).map(u64::from) } else { self.u64(bytes, at) }
    }
}
