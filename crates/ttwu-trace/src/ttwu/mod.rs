//! ttwu's own format, `.ttwu`: columnar, compressed, streamed in both directions.
//!
//! ```text
//! header   16 bytes: "TTWU\r\n\x1a\n", u16 major, u16 minor, 4 bytes 0
//! block    META
//! blocks   { STRINGS, TASKS, NOTES, EVENTS, SIDE }*   in time order
//! block    SUMMARY                             meta data and health as known at the end
//! block    END                                 offset of the SUMMARY
//! ```
//!
//! Why our own: a recording needs to be written as it happens, at a few million events a second, survive a crash, keep
//! what no other format has a place for (which incarnation of a pid, what was lost, kernel facts), and be read faster than
//! it can be analysed. Events keep their resolved tasks, so reading needs no second resolution and gives the identical
//! table.
//!
//! lz4 rather than zstd, measured on 42 838 events of `perf bench sched messaging`: predicted columns 319 kB, lz4 204 kB
//! (0.8 ms to pack, 0.4 ms to unpack), zstd -3 175 kB, zstd -19 167 kB; the pure-Rust zstd encoder at hand made 217 kB in
//! 54 ms and takes 1.7 ms to unpack. What the predictions leave is mostly noise in the time stamps.
//!
//! A reader refuses a newer major version. Within a major version, new block kinds and new tagged fields may appear; they
//! are counted as unknown records. What this format does not do: random access by time (a block could say its time range;
//! nobody has needed it yet).

mod block;
mod columns;
mod parts;
mod reader;
#[cfg(test)]
mod tests;
mod wire;
mod writer;

pub(crate) use reader::{open, probe};
pub use reader::{read_side_table, side_tables};
pub use wire::{Bytes, put as put_number, put_bytes};
pub use writer::{TtwuWriter, write_ttwu, write_ttwu_with};

/// The first bytes of every `.ttwu` file. The second half catches transfers that change line ends, as PNG's does.
const MAGIC: &[u8; 8] = b"TTWU\r\n\x1a\n";
const HEADER: usize = 16;
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
const FORMAT: &str = "ttwu";
