//! What several crates' tests need: the reference material beside the checkout, and seeded damage.
//!
//! A development dependency only; nothing that ships may depend on it.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};

/// The path of `name` in the reference material: `$TTWU_SHARED`, else `shared/` beside the checkout.
///
/// `None` where it is not there; that is said on standard error past the test harness' capture, so that a skipped test is
/// never mistaken for a passed one.
#[must_use]
pub fn shared(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "tests may be pointed at the reference material")]
    let root = std::env::var_os("TTWU_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    // Not eprintln!: the harness captures that, and a skip must be seen.
    let _ = writeln!(std::io::stderr(), "SKIPPED (no {}): set TTWU_SHARED", path.display());
    None
}

/// A small deterministic generator (splitmix64), so that a failing case is named by its seed.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (which is not 0). The tiny bias does not matter for tests.
    pub const fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }
}

/// `bytes` damaged as files are in practice: cut short, bits flipped, a run overwritten with zeros or ones, a length field
/// made huge, a piece repeated or taken out. The same seed gives the same damage.
#[must_use]
pub fn damage(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        if out.is_empty() {
            return out;
        }
        let at = rng.below(out.len());
        let run = 1 + rng.below(64.min(out.len() - at));
        match rng.below(6) {
            0 => out.truncate(at),
            1 => out[at] ^= 1 << rng.below(8),
            2 => out[at..at + run].fill(0),
            3 => out[at..at + run].fill(0xff),
            4 => {
                out.drain(at..at + run);
            }
            _ => {
                let piece = out[at..at + run].to_vec();
                out.splice(at..at, piece);
            }
        }
    }
    out
}

/// Compares `text` with the kept file `path` (relative to the crate under test, whose `CARGO_MANIFEST_DIR` is `root`). With
/// `UPDATE=1` in the environment the file is written instead.
///
/// # Panics
/// At the first line that differs, or when the file is not there; the message says how to renew it.
pub fn golden(root: &str, path: &str, text: &str) {
    let file = Path::new(root).join(path);
    #[expect(clippy::disallowed_methods, reason = "a developer renews kept texts with UPDATE=1")]
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    if update {
        std::fs::create_dir_all(file.parent().expect("a file in a folder")).expect("golden folder");
        std::fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return;
    }
    let kept = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE=1 makes it", file.display()));
    let lines = kept.lines().count().max(text.lines().count());
    for number in 0..lines {
        let (old, new) = (kept.lines().nth(number), text.lines().nth(number));
        assert_eq!(new, old, "{}:{}: (left is new; UPDATE=1 renews it)", file.display(), number + 1);
    }
}
