//! How a ring buffer's pages are laid out, from the kernel's own description (`events/header_page`).
//!
//! Not assumed, because it varies: 32-bit kernels have a 4-byte `commit`, and since 6.8 a sub-buffer can be larger than a
//! page. Where a recording lacks the description, [`PageLayout::LITTLE_64`] is what nearly every machine has.

use crate::tracepoint::Endian;

/// Where a ring-buffer page keeps what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    order: Endian,
    /// Size of `commit`, which is the kernel's `long`: 4 or 8.
    long_len: usize,
    data_at: usize,
    size: usize,
}

/// Sub-buffers larger than this are damage: the kernel's limit is an order of 10 pages.
const SIZE_MAX: usize = 64 << 20;

impl PageLayout {
    /// 4096-byte pages of a 64-bit little-endian kernel.
    pub const LITTLE_64: Self = Self::new(Endian::Little, 8, 4096);

    const fn new(order: Endian, long_len: usize, size: usize) -> Self {
        Self { order, long_len, data_at: 8 + long_len, size }
    }

    /// The usual layout of a kernel with this `long` and page size, for recordings that do not describe theirs. `None`
    /// for a size that no kernel has.
    pub(crate) fn usual(order: Endian, long_len: usize, size: usize) -> Option<Self> {
        let sound = matches!(long_len, 4 | 8) && size > 64 && size <= SIZE_MAX;
        sound.then(|| Self::new(order, long_len, size))
    }

    /// Reads the text of `header_page`.
    ///
    /// # Errors
    /// What is wrong with it, as a lowercase fragment.
    pub fn parse(header_page: &str, order: Endian) -> Result<Self, String> {
        let field = |name: &str| {
            let line = header_page
                .lines()
                .find(|line| line.split(';').next().is_some_and(|head| head.ends_with(&format!(" {name}"))))
                .ok_or_else(|| format!("header_page has no field `{name}`"))?;
            let number = |key: &str| {
                line.split(';')
                    .find_map(|part| part.trim().strip_prefix(key)?.strip_prefix(':')?.parse::<usize>().ok())
                    .ok_or_else(|| format!("header_page's field `{name}` has no {key}"))
            };
            Ok::<_, String>((number("offset")?, number("size")?))
        };
        let (time_at, time_len) = field("timestamp")?;
        let (commit_at, long_len) = field("commit")?;
        let (data_at, data_len) = field("data")?;
        if (time_at, time_len, commit_at) != (0, 8, 8)
            || !matches!(long_len, 4 | 8)
            || data_at != 8 + long_len
        {
            return Err(format!(
                "header_page is laid out as no known kernel does it (timestamp at {time_at}+{time_len}, commit at \
                 {commit_at}+{long_len}, data at {data_at})"
            ));
        }
        let size = data_at.checked_add(data_len).filter(|&size| size > 64 && size <= SIZE_MAX);
        let size = size.ok_or_else(|| format!("header_page gives pages of {data_len} bytes"))?;
        Ok(Self { order, long_len, data_at, size })
    }

    /// The same in the byte order in which the committed length of `page` is a small number: pages do not say theirs.
    pub(crate) fn with_order_of(self, page: &[u8]) -> Self {
        let [little, big] = [Endian::Little, Endian::Big].map(|order| Self { order, ..self });
        if big.committed(page) < little.committed(page) { big } else { little }
    }

    /// The committed length of `page`, or a huge number if its `commit` is none that a kernel writes.
    pub(crate) fn committed(&self, page: &[u8]) -> u64 {
        let Some(commit) = self.order.long(page, 8, self.long_len) else { return u64::MAX };
        // The flags are bits 30 and 31; the kernel adds the latter as a negative int, which fills the upper word.
        match commit >> 32 {
            0 | 0xffff_ffff => commit & 0x3fff_ffff,
            _ => u64::MAX,
        }
    }

    /// Bytes of a page (sub-buffer), header included.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The kernel's byte order.
    pub(crate) const fn order(&self) -> Endian {
        self.order
    }

    /// Bytes of the kernel's `long`.
    pub(crate) const fn long_len(&self) -> usize {
        self.long_len
    }

    /// Where the entries begin.
    pub(crate) const fn data_at(&self) -> usize {
        self.data_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::testing::PageWriter;

    fn header(commit: usize, data: usize, len: usize) -> String {
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{commit};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{len};\tsigned:0;\n"
        )
    }

    #[test]
    fn layouts_of_both_word_sizes_and_of_large_sub_buffers() {
        let check = |commit, data, len, expect: (usize, usize, usize)| {
            let layout = PageLayout::parse(&header(commit, data, len), Endian::Big).expect("sound");
            assert_eq!((layout.long_len(), layout.data_at(), layout.size()), expect);
        };
        check(8, 16, 4080, (8, 16, 4096));
        check(4, 12, 4084, (4, 12, 4096));
        check(8, 16, 65520, (8, 16, 65536));
    }

    #[test]
    fn the_byte_order_is_seen_in_any_page() {
        for layout in crate::ring::testing::layouts() {
            for page in [
                PageWriter::new(layout, 1).short(0, b"abcd").finish(),
                PageWriter::new(layout, 1 << 60).short(0, &[0xff; 112]).lost(None).finish(),
            ] {
                let little = PageLayout::usual(Endian::Little, layout.long_len(), 4096).expect("sound");
                assert_eq!(little.with_order_of(&page), layout);
            }
        }
    }

    #[test]
    fn impossible_layouts_say_what_is_wrong() {
        let check = |text: &str, part: &str| {
            let error = PageLayout::parse(text, Endian::Little).expect_err(part);
            assert!(error.contains(part), "{error}");
        };
        check("", "no field `timestamp`");
        check(&header(2, 10, 4086), "no known kernel");
        check(&header(8, 16, usize::MAX), "bytes");
        check(&header(8, 16, 0), "0 bytes");
        check(&header(8, 16, 4080).replace("offset:16;", ""), "no offset");
    }
}
