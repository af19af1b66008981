//! Streams written by the test writer, merged; losses, clocks that go back, damage.

use super::*;
use crate::Input;
use crate::ring::PageLayout;
use crate::ring::stream::{ClockMap, PlainPages};
use crate::ring::testing::{PageWriter, layouts};
use std::sync::Arc;
use ttwu_testing::damage;

fn stream(cpu: u16, layout: PageLayout, clock: ClockMap, pages: Vec<u8>) -> CpuStream {
    let len = pages.len() as u64;
    let source = PlainPages::new(Arc::new(Input::from_bytes(pages, "pages")), 0, len);
    CpuStream::new(CpuId::new(cpu), layout, clock, Box::new(source), 0)
}

/// The merged items as `cpu@time:payload`, and what the health says.
fn merged(streams: Vec<CpuStream>) -> (String, TraceHealth) {
    let mut health = TraceHealth::default();
    let mut merge = Merge::new(streams);
    let mut out = Vec::new();
    let mut last = Time::ZERO;
    while let Some(item) = merge.advance(&mut health).expect("in memory") {
        let at = match item {
            Item::Record { at, cpu, payload } => {
                out.push(format!("{cpu}@{}:{}", at.as_ns(), String::from_utf8_lossy(payload)));
                at
            }
            Item::Lost { at, cpu, count } => {
                let count = count.map_or("?".to_owned(), |count| count.to_string());
                out.push(format!("{cpu}@{}:-{count}", at.as_ns()));
                at
            }
        };
        assert!(at >= last, "order broken after {out:?}");
        last = at;
    }
    (out.join(" "), health)
}

/// Pages of two CPUs written for every kind of machine, and the expected merge.
fn check(write: impl Fn(PageLayout) -> [Vec<Vec<u8>>; 2], expect: &str) -> TraceHealth {
    let mut result = TraceHealth::default();
    for layout in layouts() {
        let [zero, one] = write(layout).map(|pages| pages.concat());
        let streams =
            vec![stream(0, layout, ClockMap::IDENTITY, zero), stream(1, layout, ClockMap::IDENTITY, one)];
        let (text, health) = merged(streams);
        assert_eq!(text, expect, "{layout:?}");
        result = health;
    }
    result
}

fn page(layout: PageLayout, time: u64) -> PageWriter {
    PageWriter::new(layout, time)
}

#[test]
fn records_come_by_time_and_equal_times_by_cpu() {
    let health = check(
        |l| {
            let zero = [page(l, 10).short(0, b"aaaa").short(5, b"bbbb"), page(l, 30).short(0, b"cccc")];
            let one = [page(l, 9).short(0, b"AAAA").short(6, b"BBBB").short(15, b"CCCC")];
            [zero.map(PageWriter::finish).into(), one.map(PageWriter::finish).into()]
        },
        "1@9:AAAA 0@10:aaaa 0@15:bbbb 1@15:BBBB 0@30:cccc 1@30:CCCC",
    );
    assert!(health.is_clean());
    check(|_| [Vec::new(), Vec::new()], "");
}

#[test]
fn losses_come_just_before_the_record_behind_them() {
    check(
        |l| {
            let zero = [
                page(l, 10).short(1, b"aaaa"),
                page(l, 20).short(5, b"bbbb").lost(Some(3)),
                page(l, 28).lost(None),
                page(l, 29).short(1, b"cccc").short(1, b"dddd").lost(Some(2)),
                page(l, 40).lost(Some(7)),
            ];
            let one = [page(l, 22).short(0, b"AAAA"), page(l, 23).short(7, b"BBBB")];
            [zero.map(PageWriter::finish).into(), one.map(PageWriter::finish).into()]
        },
        "0@11:aaaa 1@22:AAAA 0@25:-3 0@25:bbbb 0@30:-? 0@30:cccc 1@30:BBBB 0@31:dddd 0@31:-7",
    );
}

#[test]
fn a_damaged_page_stamp_moves_only_its_own_page() {
    // The second page claims to start in the far future; the third shows that it cannot.
    let health = check(
        |l| {
            let zero = [
                page(l, 10).short(0, b"aaaa"),
                page(l, 1 << 50).short(0, b"bbbb").short(1, b"cccc"),
                page(l, 30).short(0, b"dddd"),
            ];
            [zero.map(PageWriter::finish).into(), vec![page(l, 12).short(0, b"AAAA").finish()]]
        },
        "0@10:aaaa 1@12:AAAA 0@30:bbbb 0@30:cccc 0@30:dddd",
    );
    assert_eq!(health.clock_steps_total, 1);
    assert_eq!(health.clock_steps[0].back, ttwu_model::Duration::from_ns((1 << 50) - 30));
}

#[test]
fn a_clock_that_goes_back_is_held_and_said() {
    let health = check(
        |l| {
            let zero = [
                page(l, 90).short(0, b"____"),
                page(l, 100).short(0, b"aaaa"),
                page(l, 40).short(0, b"bbbb").short(9, b"cccc"),
                page(l, 0),
            ];
            [zero.map(PageWriter::finish).into(), Vec::new()]
        },
        "0@90:____ 0@100:aaaa 0@100:bbbb 0@100:cccc",
    );
    let step = health.clock_steps[0];
    assert_eq!((step.cpu, step.at.as_ns(), step.back.as_ns()), (CpuId::new(0), 100, 60));
    assert_eq!(health.clock_steps_total, 1);
}

#[test]
fn damage_inside_a_page_loses_its_rest_and_says_so() {
    let health = check(
        |l| {
            let zero = [page(l, 10).short(0, b"aaaa").word(28, 0), page(l, 20).short(0, b"bbbb")];
            let mut one =
                [page(l, 11).short(0, b"AAAA"), page(l, 12).short(0, b"BBBB")].map(PageWriter::finish);
            one[0][8..16].fill(0x7f);
            [zero.map(PageWriter::finish).into(), one.into()]
        },
        "0@10:aaaa 1@12:-? 1@12:BBBB 0@20:-? 0@20:bbbb",
    );
    assert_eq!(health.repairs.len(), 2);
    assert!(health.repairs.iter().any(|text| text.contains("reaches beyond its page")), "{health:?}");
}

#[test]
fn an_unused_page_behind_says_nothing_of_time() {
    check(
        |l| [[page(l, 10).short(0, b"aaaa"), page(l, 0)].map(PageWriter::finish).into(), Vec::new()],
        "0@10:aaaa",
    );
}

#[test]
fn a_cut_last_page_is_used_as_far_as_it_is_whole() {
    for layout in layouts() {
        let pages = page(layout, 10).short(0, b"aaaa").finish();
        let check = |len: usize, expect: &str, repairs: usize| {
            let pages = [&pages[..], &pages[..len]].concat();
            let (text, health) = merged(vec![stream(0, layout, ClockMap::IDENTITY, pages)]);
            assert_eq!((text.as_str(), health.repairs.len()), (expect, repairs), "{layout:?} {len}");
        };
        check(100, "0@10:aaaa 0@10:aaaa", 0);
        check(layout.data_at() + 4, "0@10:aaaa 0@10:-?", 1);
        check(3, "0@10:aaaa 0@10:-?", 1);
    }
}

#[test]
fn clocks_are_scaled_and_shifted() {
    let check = |clock: ClockMap, raw: u64, expect: u64| assert_eq!(clock.map(raw), expect);
    check(ClockMap::IDENTITY, 17, 17);
    check(ClockMap { mult: 1, shift: 0, offset: -20 }, 17, 0);
    check(ClockMap { mult: 1 << 30, shift: 31, offset: 5 }, u64::MAX, (u64::MAX >> 1) + 5);
    check(ClockMap { mult: u32::MAX, shift: 0, offset: i64::MAX }, u64::MAX, u64::MAX);
    check(ClockMap { mult: 3, shift: u32::MAX, offset: 1 }, 9, 1);
}

#[test]
fn damaged_streams_keep_their_order_and_end() {
    for layout in layouts() {
        let pages: Vec<u8> = (0..12u64)
            .flat_map(|n| {
                let mut page = page(layout, 1000 * n);
                for k in 0..60 {
                    page = page.short(k, b"some payload").extend(3);
                }
                page.finish()
            })
            .collect();
        for seed in 0..300 {
            let streams = (0..3u16)
                .map(|cpu| {
                    let pages = damage(&pages, seed * 3 + u64::from(cpu));
                    stream(cpu, layout, ClockMap::IDENTITY, pages)
                })
                .collect();
            merged(streams);
        }
    }
}
