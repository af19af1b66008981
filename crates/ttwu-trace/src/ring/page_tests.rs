//! Pages written by the test writer, walked; then the same pages damaged.

use super::*;
use crate::ring::testing::{PageWriter, layouts};
use ttwu_testing::{Rng, damage};

/// The page as text: `time:payload` for each entry, `!at` for damage.
fn walk(page: &[u8], layout: &PageLayout) -> String {
    let head = match PageHead::parse(page, layout) {
        Ok(head) => head,
        Err(len) => return format!("bad commit {len}"),
    };
    let mut cursor = PageCursor::new(&head, layout);
    let mut out = Vec::new();
    match head.lost {
        Lost::None => {}
        Lost::Uncounted => out.push("lost".to_owned()),
        Lost::Counted(count) => out.push(format!("lost {count}")),
    }
    loop {
        match cursor.next(page) {
            Step::Entry(entry) => {
                let payload: String = page[entry.start..entry.end].iter().map(|&b| char::from(b)).collect();
                out.push(format!("{}:{payload}", entry.time));
            }
            Step::End => return out.join(" "),
            Step::Damaged { at } => out.push(format!("!{}", at - layout.data_at())),
        }
    }
}

/// Writes the page for every kind of machine and compares the walk.
fn check(write: impl Fn(PageWriter) -> PageWriter, start: u64, expect: &str) {
    for layout in layouts() {
        let page = write(PageWriter::new(layout, start)).finish();
        assert_eq!(walk(&page, &layout), expect, "{layout:?}");
    }
}

#[test]
fn payloads_in_both_forms_add_up_their_deltas() {
    check(
        |p| p.short(0, b"abcd").short(5, b"efghijkl").long(7, b"long"),
        1000,
        "1000:abcd 1005:efghijkl 1012:long",
    );
    check(|p| p.long(1, b"odd").short(1, b"next"), 10, "11:odd 12:next");
    check(|p| p, 10, "");
}

#[test]
fn time_extends_count_and_absolute_stamps_replace() {
    check(|p| p.extend(1 << 40 | 3).short(2, b"aaaa"), 1, "1099511627782:aaaa");
    check(|p| p.short(1, b"aaaa").absolute(5000).short(2, b"bbbb"), 10, "11:aaaa 5002:bbbb");
    // The top five bits are taken from the time before, and carry when the low ones went round.
    let high = 3 << 59;
    check(|p| p.absolute(high + 500).short(0, b"aaaa"), high + 10, &format!("{}:aaaa", high + 500));
    check(|p| p.absolute(4).short(0, b"aaaa"), high + 10, &format!("{}:aaaa", (4u64 << 59) + 4));
}

#[test]
fn padding_is_skipped_and_its_delta_counts_unless_it_stands_for_none() {
    check(|p| p.word(29, 9).raw32(8).raw32(0).short(1, b"aaaa"), 0, "10:aaaa");
    check(|p| p.word(29, 1).raw32(4).short(1, b"aaaa"), 0, "1:aaaa");
    check(|p| p.short(1, b"aaaa").word(29, 0).short(1, b"bbbb"), 0, "1:aaaa");
}

#[test]
fn lost_events_are_counted_where_the_kernel_did() {
    check(|p| p.short(1, b"aaaa").lost(None), 0, "lost 1:aaaa");
    check(|p| p.short(1, b"aaaa").lost(Some(77)), 0, "lost 77 1:aaaa");
    check(|p| p.short(1, b"aaaa").lost(Some(0)), 0, "lost 1:aaaa");
}

#[test]
fn entries_beyond_the_page_end_the_walk() {
    check(|p| p.short(1, b"aaaa").word(20, 1), 0, "1:aaaa !8");
    check(|p| p.short(1, b"aaaa").word(0, 1), 0, "1:aaaa !8");
    check(|p| p.word(0, 1).raw32(3), 0, "!0");
    check(|p| p.word(0, 1).raw32(u32::MAX), 0, "!0");
    check(|p| p.word(29, 1).raw32(0), 0, "!0");
    check(|p| p.word(30, 1), 0, "!0");
}

#[test]
fn pages_cut_short_or_with_impossible_commits_are_refused() {
    for layout in layouts() {
        let mut page = PageWriter::new(layout, 1).short(0, b"aaaa").finish();
        for len in 0..layout.data_at() + 8 {
            assert!(PageHead::parse(&page[..len], &layout).is_err(), "{layout:?} cut to {len}");
        }
        page[8..16].fill(0x3f);
        assert!(PageHead::parse(&page, &layout).is_err(), "{layout:?}");
    }
}

#[test]
fn damaged_pages_never_panic_and_always_end() {
    for layout in layouts() {
        let mut page = PageWriter::new(layout, 1 << 60);
        for n in 0..40u32 {
            page = page.short(n, b"somepayload!").long(n, b"some long payload").extend(u64::from(n) << 30);
        }
        let page = page.absolute(1 << 50).word(29, 5).raw32(12).raw32(0).raw32(0).short(0, b"last").finish();
        for seed in 0..500 {
            let mut bytes = damage(&page, seed);
            if seed % 2 == 0 {
                // Damage in the middle of entries, where the whole page's would mostly hit unused bytes.
                let mut rng = Rng::new(seed);
                let at = rng.below(bytes.len().clamp(1, 1200));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.next_u64().to_le_bytes()[0];
                }
            }
            walk(&bytes, &layout);
        }
    }
}
