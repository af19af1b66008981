//! ftrace's ring buffer: pages of entries, one stream of pages a CPU, merged by time.
//!
//! trace.dat, copied tracefs directories, SchedViz archives and bare pages all hold the same pages; only where the pages
//! and the format descriptions lie differs. So everything about pages is here, once: `page` walks one, `stream` walks a
//! CPU's, `merge` all CPUs', and a container's reader fills a `recording::Recording` with which bytes are whose.

mod layout;
mod merge;
mod page;
mod recording;
mod stream;
#[cfg(test)]
pub(crate) mod testing;
mod tree;

pub use layout::PageLayout;
pub use page::{Entry, Lost, PageCursor, PageHead, Step};
pub(crate) use recording::{
    CpuPages, CpuStats, Recording, chosen_clock, memory_share, note_clock, parse_formats, parse_names,
    parse_tgids,
};
pub(crate) use stream::{ClockMap, Fill, PageSource, PlainPages};
pub(crate) use tree::{Tree, described_layout, formats, has_pages, recording};
