//! Any bytes as ring-buffer pages of every kind of machine, and as bare pages to be told by their looks: no panic, no hang,
//! and every entry within its page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ttwu_trace::ring::{PageCursor, PageHead, Step};
use ttwu_trace::{Endian, Input, PageLayout, TraceStream};

fuzz_target!(|bytes: &[u8]| {
    for (order, long) in [(Endian::Little, 8), (Endian::Little, 4), (Endian::Big, 8), (Endian::Big, 4)] {
        let data = 8 + long;
        let text = format!(
            "field: u64 timestamp; offset:0; size:8; signed:0;\nfield: local_t commit; offset:8; size:{long}; signed:1;\n\
             field: char data; offset:{data}; size:{}; signed:0;\n",
            4096 - data
        );
        let layout = PageLayout::parse(&text, order).expect("as kernels lay it out");
        for page in bytes.chunks(layout.size()) {
            let Ok(head) = PageHead::parse(page, &layout) else { continue };
            let mut cursor = PageCursor::new(&head, &layout);
            while let Step::Entry(entry) = cursor.next(page) {
                assert!(entry.start <= entry.end && entry.end <= head.end);
            }
        }
    }
    let _ = TraceStream::from_input(Input::from_bytes(bytes.to_vec(), "fuzz")).and_then(TraceStream::collect);
});
