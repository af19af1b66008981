//! The waker view: who woke whom.

use crate::layout::{count, list, percent};
use crate::perf_latency::seconds;
use crate::units::{fit, short};
use std::fmt::Write;
use ttwu_analysis::{WakeContext, Wakers, Who};
use ttwu_model::Duration;

/// The view, with at most `limit` rows a kind; `span` is the recording's, for rates.
#[must_use]
pub fn wakers(found: &Wakers, span: Duration, limit: usize) -> String {
    let mut out = String::new();
    let total: u64 = found.by_context.iter().sum();
    let contexts = WakeContext::ALL.into_iter().zip(found.by_context).filter(|&(_, times)| times > 0);
    let contexts = contexts.map(|(context, times)| format!("{} {}", context.name(), percent(times, total)));
    list(&mut out, &format!("{} wake-ups, from  ", count(total)), contexts);
    let name = |who: &Who, width| fit(&format!("{}:{}", who.name, who.pid), width);
    let _ = writeln!(
        out,
        "\n{:<24} {:<24} {:>9} {:>9} {:>10}",
        format!("waker ({} pairs)", count(found.pairs_total)),
        "wakee",
        "times",
        "same CPU",
        "same cache"
    );
    for pair in found.pairs.iter().take(limit) {
        let llc = pair.same_llc.map_or_else(|| "-".to_owned(), |part| percent(part, pair.count));
        let _ = writeln!(
            out,
            "{} {} {:>9} {:>9} {llc:>10}",
            name(&pair.waker, 24),
            name(&pair.wakee, 24),
            count(pair.count),
            percent(pair.same_cpu, pair.count)
        );
    }
    if !found.wide.is_empty() {
        let _ = writeln!(
            out,
            "\n{:<24} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "wide wakers", "wake-ups", "wakees", "flips", "flips/s", "flips max"
        );
    }
    for wide in found.wide.iter().take(limit) {
        let rate = wide.flips_per_ks(span).map_or_else(|| "-".to_owned(), |rate| count(rate / 1000));
        let _ = writeln!(
            out,
            "{} {:>9} {:>9} {:>9} {rate:>9} {:>9}",
            name(&wide.who, 24),
            count(wide.wakeups),
            count(wide.wakees),
            count(wide.flips),
            count(wide.flips_max)
        );
    }
    if !found.ping_pong.is_empty() {
        let _ = writeln!(out, "\n{:<24}   {:<24} {:>9} {:>9}", "ping", "pong", "wake-ups", "returns");
    }
    for pair in found.ping_pong.iter().take(limit) {
        let returns = percent(pair.returns, pair.wakeups);
        let (a, b) = (name(&pair.a, 24), name(&pair.b, 24));
        let _ = writeln!(out, "{a} ⇄ {b} {:>9} {returns:>9}", count(pair.wakeups));
    }
    if !found.chains.is_empty() {
        let _ = writeln!(out, "\nlongest chains");
    }
    for chain in found.chains.iter().take(limit) {
        let label = format!("  {} in {:>7}  ", seconds(chain.at), short(chain.length));
        let tasks = chain
            .tasks
            .iter()
            .enumerate()
            .map(|(index, who)| format!("{}{}:{}", if index > 0 { "→ " } else { "" }, who.name, who.pid));
        list(&mut out, &label, tasks);
    }
    if !found.waking_recorded {
        let _ = writeln!(out, "not measured: the waker where the wake list was used (needs sched_waking)");
    }
    out
}
