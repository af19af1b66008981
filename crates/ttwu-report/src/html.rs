//! A report as one HTML page: no scripts, nothing loaded from elsewhere, light and dark by the reader's preference.
//!
//! It shows what the overview says and the drawings that text cannot: the distribution of waits, queue lengths over time,
//! the migration matrix.

use crate::layout::{count, percent};
use crate::perf_latency::seconds;
use crate::placement::{STACKED, relations, stacked_parts};
use crate::report::{Report, health_faults};
use crate::svg::{Part, cells, escape, histogram, stacked_bar};
use crate::units::{short, short_ns};
use std::fmt::Write;
use ttwu_analysis::{
    ByRelation, Cpus, LatencyReport, Measured, MigrationCause, Migrations, Placement, Relation, SwitchCause,
    Switches, WakeContext, Wakers, Who,
};
use ttwu_model::{Duration, Level};

/// Rows of a table.
const ROWS: usize = 12;
/// CPUs up to which the matrix has a cell each; beyond it, cells stand for groups of neighbours.
const MATRIX_CELLS_MAX: usize = 64;

const STYLE: &str = "\
:root{--bg:#fbfbfa;--fg:#1d2328;--dim:#68737d;--card:#fff;--line:#e3e6e8;--a:#3b76b8;--b:#e08a3c;--c:#4f9d69;--d:#b8517a;\
--e:#8c6bb1;--f:#c9b037;--g:#9aa5ae;--h:#2a9d9d;--q0:#eef1f3;--q1:#cfe0f0;--q2:#8fb8de;--q3:#3b76b8;--q4:#f0b060;--q5:#e0733c;--q6:#b83232}\
@media(prefers-color-scheme:dark){:root{--bg:#15191d;--fg:#e2e6e9;--dim:#93a0aa;--card:#1d2328;--line:#313940;--a:#6aa5e6;--b:#f0a35e;\
--c:#6fc08b;--d:#e07aa5;--e:#b094d6;--f:#dcc65a;--g:#77838d;--h:#55c4c4;--q0:#262d33;--q1:#29415a;--q2:#34638f;--q3:#5c9ddf;--q4:#c98a3e;--q5:#df6a33;--q6:#f04848}}\
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,sans-serif}\
main{max-width:940px;margin:0 auto;padding:20px 16px 48px}h1{font-size:21px;margin:0;overflow-wrap:anywhere}h2{font-size:16px;margin:0 0 8px}\
p{margin:4px 0}.m{color:var(--dim)}section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 16px;margin-top:14px}\
.ok,.bad{display:inline-block;border-radius:5px;padding:3px 9px;margin:8px 0 0;font-weight:600;color:#fff;background:#3d8b58}.bad{background:#b8562a}\
.k{display:flex;flex-wrap:wrap;gap:8px 26px;margin-top:12px}.k div{font-size:12.5px;color:var(--dim)}.k b{display:block;font-size:19px;color:var(--fg);font-weight:600}\
table{border-collapse:collapse;width:100%;font-size:13.5px;margin-top:8px}th{text-align:right;font-weight:500;color:var(--dim);border-bottom:1px solid var(--line);padding:3px 6px}\
td{text-align:right;padding:3px 6px;font-variant-numeric:tabular-nums;white-space:nowrap}th:first-child,td:first-child,.w{text-align:left!important}tr:nth-child(even) td{background:color-mix(in srgb,var(--line) 28%,transparent)}\
.x{overflow-x:auto}.bar{display:grid;grid-template-columns:150px 1fr;gap:2px 10px;align-items:center;margin:7px 0}.bar svg{width:100%;height:18px;border-radius:3px;display:block}.bar .l{grid-column:2}\
.t{color:var(--dim)}.l{display:flex;flex-wrap:wrap;gap:1px 14px;font-size:12.5px;color:var(--dim)}.l b{color:var(--fg);font-weight:600}.l i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}\
svg.h{width:100%;max-height:230px;display:block}text{fill:var(--dim);font-size:10px}.n{text-anchor:middle}.o{display:grid;grid-template-columns:auto 1fr;gap:0 8px}.o svg{width:100%;display:block}\
.o .r{display:flex;flex-direction:column;justify-content:space-around;font-size:11px;color:var(--dim);text-align:right}.ax{grid-column:2;display:flex;justify-content:space-between;font-size:12px;color:var(--dim)}\
.mx{display:flex;gap:20px;flex-wrap:wrap;align-items:flex-start}.mx>div:first-child{flex:0 0 auto}.mx svg{display:block}.mx>div:last-child{flex:1 1 260px;min-width:0}\
@media(max-width:560px){.bar{grid-template-columns:1fr}.bar .l{grid-column:1}}";

/// Colours as classes: fill in drawings, background in legends.
const COLOURS: [&str; 8] = ["ca", "cb", "cc", "cd", "ce", "cf", "cg", "ch"];
/// Queue lengths, and shares of the largest cell.
const HEAT: [&str; 7] = ["q0", "q1", "q2", "q3", "q4", "q5", "q6"];

/// The page.
#[must_use]
pub fn report_html(report: &Report) -> String {
    let mut out = String::from("<!doctype html><html lang=en><meta charset=utf-8>");
    out.push_str("<meta name=viewport content=\"width=device-width,initial-scale=1\"><meta name=color-scheme content=\"light dark\">");
    let _ = write!(out, "<title>{} – ttwu report</title><style>{STYLE}", escape(&report.file));
    for (class, colour) in COLOURS.iter().zip("abcdefgh".chars()) {
        let _ = write!(out, ".{class}{{fill:var(--{colour});background:var(--{colour})}}");
    }
    for class in HEAT {
        let _ = write!(out, ".{class}{{fill:var(--{class});background:var(--{class})}}");
    }
    out.push_str("</style><main>\n");
    head(&mut out, report);
    let results = &report.results;
    section(&mut out, "Waits for a CPU", results.latency.as_ref(), latency);
    section(&mut out, "Placement of woken tasks", results.placement.as_ref(), placement);
    section(&mut out, "Why tasks left their CPUs", results.switches.as_ref(), switches);
    section(&mut out, "CPUs", results.cpus.as_ref(), cpus);
    section(&mut out, "Migrations", results.migrations.as_ref(), migrations);
    section(&mut out, "Who woke whom", results.wakers.as_ref(), wakers);
    notes(&mut out, report);
    out.push_str("</main></html>\n");
    out
}

fn section<T>(
    out: &mut String,
    title: &str,
    found: Option<&Measured<T>>,
    show: impl FnOnce(&mut String, &T),
) {
    let Some(found) = found else { return };
    let _ = writeln!(out, "<section><h2>{title}</h2>");
    match found {
        Measured::Measured(found) => show(out, found),
        Measured::NotMeasured { missing } => {
            let _ =
                write!(out, "<p class=m>Not measured: the recording lacks {}.", escape(&missing.join(", ")));
        }
    }
    out.push_str("</section>\n");
}

fn head(out: &mut String, report: &Report) {
    let meta = &report.meta;
    let _ = write!(out, "<h1>{}</h1><p class=m>", escape(&report.file));
    let kernel = meta.kernel_release.as_ref().map(|release| format!("Linux {release}"));
    let parts = [
        Some(meta.format.clone()),
        meta.recorder.clone(),
        kernel,
        meta.arch.clone(),
        report.topology.as_ref().map(|from| format!("topology {from}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    out.push_str(&escape(&parts.join(" · ")));
    let faults = health_faults(&report.health);
    if faults.is_empty() {
        out.push_str("</p><div class=ok>recording is clean</div>");
    } else {
        let _ =
            write!(out, "</p><div class=bad>check before you trust: {}</div>", escape(&faults.join(", ")));
    }
    out.push_str("<div class=k>");
    let mut tile = |name: &str, value: String| {
        let _ = write!(out, "<div><b>{}</b>{name}</div>", escape(&value));
    };
    tile("recorded", short(report.span()));
    if let Some(cpus) = report.cpus_count() {
        tile("CPUs", count(cpus));
    }
    tile("tasks", count(report.tasks_count));
    tile("events", count(report.events_count()));
    let results = &report.results;
    let value = |found: Option<u64>| found.map_or_else(|| "–".to_owned(), count);
    tile("wake-ups", value(results.placement.as_ref().and_then(|found| Some(found.value()?.total))));
    tile("switches", value(results.switches.as_ref().and_then(|found| Some(found.value()?.total))));
    tile("migrations", value(results.migrations.as_ref().and_then(|found| Some(found.value()?.total))));
    out.push_str("</div>\n");
}

/// A table; the first column is text, others are figures unless their title begins with `<`.
fn table(out: &mut String, titles: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let side = |title: &str| if title.starts_with('<') { " class=w" } else { "" };
    out.push_str("<div class=x><table><tr>");
    for title in titles {
        let _ = write!(out, "<th{}>{}", side(title), escape(title.trim_start_matches('<')));
    }
    for row in rows {
        out.push_str("<tr>");
        for (title, cell) in titles.iter().zip(row) {
            let _ = write!(out, "<td{}>{}", side(title), escape(&cell));
        }
    }
    out.push_str("</table></div>\n");
}

fn latency(out: &mut String, found: &LatencyReport) {
    let classes: Vec<(String, [u64; 2])> = found
        .histogram
        .iter()
        .map(|class| (power_of_two(class.below_ns), [class.wakeup, class.preempted]))
        .collect();
    if !classes.is_empty() {
        out.push_str(
            "<p class=m>number of waits by length; a bar reaches from half of its label to the label</p>",
        );
        out.push_str(&histogram(&classes, [("after a wake-up or fork", "ca"), ("after a preemption", "cb")]));
    }
    let time = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), short_ns);
    let rows = found.by_name.iter().take(ROWS).chain(std::iter::once(&found.total)).enumerate();
    let last = found.by_name.len().min(ROWS);
    let rows = rows.map(|(index, row)| {
        let name = if index == last { "(all)" } else { row.name.as_deref().unwrap_or("(no name)") };
        let delay = &row.delay;
        vec![
            name.to_owned(),
            count(row.tasks.len() as u64),
            short_ns(row.runtime_ns),
            count(delay.count),
            time(delay.ns_avg()),
            time(delay.ns.map(|ns| ns.p50)),
            time(delay.ns.map(|ns| ns.p99)),
            time((delay.count > 0).then_some(delay.ns_max)),
            short_ns(delay.ns_sum),
        ]
    });
    table(out, &["name", "tasks", "run", "waits", "average", "p50", "p99", "longest", "sum"], rows);
}

/// `1us`, `2us` … `512us`, `1ms`: powers of two counted as people do, 1024 ns as 1 µs.
fn power_of_two(ns: u64) -> String {
    let shift = ns.max(1).ilog2();
    let unit = ["ns", "us", "ms", "s"][(shift / 10).min(3) as usize];
    format!("{}{unit}", 1_u64 << (shift - (shift / 10).min(3) * 10).min(40))
}

fn shares(by: &ByRelation, topology_known: bool) -> Vec<Part> {
    let colour = |relation: Relation| match relation {
        Relation::At(Level::SameCpu) => "ca",
        Relation::At(Level::Smt) => "ch",
        Relation::At(Level::Cluster) => "cc",
        Relation::At(Level::Llc) => "cf",
        Relation::At(Level::Die) => "ce",
        Relation::At(Level::Node) => "cb",
        Relation::At(Level::Remote) => "cd",
        Relation::OtherCpu => "cb",
        Relation::Unknown => "cg",
    };
    let part = |(relation, value): (Relation, u64)| Part {
        label: relation.name().replace('_', " "),
        value,
        class: colour(relation),
    };
    relations(by, topology_known).into_iter().map(part).collect()
}

fn placement(out: &mut String, found: &Placement) {
    let part = |label: &str, value, class| Part { label: label.to_owned(), value, class };
    let outcome = &found.outcome;
    let outcomes = [
        part("kept on the previous CPU", outcome.kept, "ca"),
        part("pulled to the waker's", outcome.pulled, "cb"),
        part("elsewhere", outcome.elsewhere, "cc"),
        part("not known", outcome.unknown, "cg"),
    ];
    out.push_str(&stacked_bar("outcome", &outcomes));
    out.push_str(&stacked_bar("from previous CPU", &shares(&found.by_prev, found.topology_known)));
    out.push_str(&stacked_bar("from waker's CPU", &shares(&found.by_waker, found.topology_known)));
    let contexts: Vec<Part> = WakeContext::ALL
        .into_iter()
        .zip(found.context)
        .zip(["ca", "cb", "cd", "ch", "ce", "cg"])
        .map(|((context, value), class)| part(context.name(), value, class))
        .collect();
    out.push_str(&stacked_bar("woken from", &contexts));
    let stacked = stacked_parts(&found.stacked);
    if !stacked.is_empty() {
        let _ = write!(
            out,
            "<p>{STACKED}{}; of {} onto a busy CPU <span class=m>(affinity is not in a recording)</span></p>",
            escape(&stacked.join(", ")),
            count(found.stacked.onto_busy)
        );
    }
    if !found.stacked_worst.is_empty() {
        let rows = found.stacked_worst.iter().map(|example| {
            vec![
                name(&example.wakee),
                seconds(example.at),
                format!("{} #{}", name(&example.waker), example.waker_cpu),
                format!("#{}", example.cpu),
                format!("#{} ({})", example.idle_cpu, example.idle_relation.name()),
                short(example.waited),
            ]
        });
        table(out, &["stacked, longest waits", "at", "<woken by", "onto", "idle", "waited"], rows);
    }
}

fn name(who: &Who) -> String {
    format!("{}:{}", who.name, who.pid)
}

fn switches(out: &mut String, found: &Switches) {
    let colours = ["ca", "cb", "cf", "cd", "ce", "ch", "cg"];
    let parts: Vec<Part> = SwitchCause::ALL
        .into_iter()
        .zip(colours)
        .map(|(cause, class)| Part {
            label: cause.name().replace('_', " "),
            value: found.by_cause[cause as usize],
            class,
        })
        .collect();
    out.push_str(&stacked_bar("cause", &parts));
    if found.by_cause[SwitchCause::Unknown as usize] > 0 && !found.would_help.is_empty() {
        let _ = write!(out, "<p class=m>to know more, record {}</p>", escape(&found.would_help.join(", ")));
    }
    let rows = found.preemptions.iter().take(8);
    let rows = rows.map(|pair| vec![name(&pair.preempted), name(&pair.by), count(pair.count)]);
    if !found.preemptions.is_empty() {
        table(out, &["preempted by a wake-up", "<by", "times"], rows);
    }
}

fn cpus(out: &mut String, found: &Cpus) {
    let strip = &found.occupancy;
    // Nothing, below 5 %, half, a full CPU, and queues of 1.5, 3 and more.
    const BOUNDS_MILLI: [u32; 6] = [50, 350, 750, 1250, 2500, 5000];
    let class = |milli: u32| BOUNDS_MILLI.iter().filter(|&&bound| milli >= bound).count();
    let rows: Vec<Vec<Option<usize>>> =
        strip.cpus.iter().map(|bins| bins.iter().map(|bin| bin.map(class)).collect()).collect();
    let height = match rows.len() {
        0..=8 => 22,
        9..=32 => 12,
        33..=96 => 6,
        _ => 3,
    };
    let total = height * rows.len() as u64;
    out.push_str("<p class=m>runnable tasks per CPU over time</p><div class=o><div class=r>");
    let every = (rows.len() / 24 + 1).next_power_of_two();
    for cpu in (0..rows.len()).step_by(every) {
        let _ = write!(out, "<span>#{cpu}</span>");
    }
    let attributes = format!("preserveAspectRatio=none role=img style=\"height:{total}px\"");
    let _ = write!(out, "</div>{}", cells(&rows, (4, height), &HEAT, &attributes));
    let bins = strip.cpus.first().map_or(0, Vec::len) as u64;
    let end = strip.from + Duration::from_ns(strip.bin.as_ns().saturating_mul(bins));
    let _ = write!(
        out,
        "<div class=ax><span>{} s</span><span>bins of {}</span><span>{} s</span></div></div><span class=l>",
        seconds(strip.from),
        short(strip.bin),
        seconds(end)
    );
    for (class, label) in HEAT.iter().zip(["idle", "<0.35", "<0.75", "1", "<2.5", "<5", "5 and more"]) {
        let _ = write!(out, "<span><i class={class}></i>{}</span>", escape(label));
    }
    let work = &found.violations;
    let _ = write!(
        out,
        "</span><p>work waited while a CPU idled: {} times, {} in all",
        count(work.count),
        short(work.total)
    );
    if let Some(longest) = work.longest.first() {
        let _ = write!(out, ", the longest {} at {} s", short(longest.length), seconds(longest.at));
    }
    out.push_str("</p>");
    let rows = found.tasks.iter().take(ROWS).map(|task| {
        let mut cells: Vec<_> = task.cpus.iter().filter(|cell| cell.hits > 0).collect();
        cells.sort_by_key(|cell| (std::cmp::Reverse(cell.hits), cell.cpu));
        let more = if cells.len() > 6 { format!(" … {} more", cells.len() - 6) } else { String::new() };
        let hits: Vec<String> =
            cells.iter().take(6).map(|cell| format!("#{}:{}", cell.cpu, cell.hits)).collect();
        vec![name(&task.who), short(task.run()), count(task.hits()), format!("{}{more}", hits.join(" "))]
    });
    table(out, &["task", "run", "wake-ups", "<CPUs hit"], rows);
}

fn migrations(out: &mut String, found: &Migrations) {
    let colours = ["ca", "ch", "ce", "cc", "cf", "cd", "cg", "cb", "cg"];
    let parts: Vec<Part> = MigrationCause::ALL
        .into_iter()
        .zip(colours)
        .map(|(cause, class)| Part {
            label: cause.name().replace('_', " "),
            value: found.by_cause[cause as usize],
            class,
        })
        .collect();
    out.push_str(&stacked_bar("cause", &parts));
    out.push_str(&stacked_bar("distance", &shares(&found.by_level, found.topology_known)));
    let bound =
        found.matrix.iter().map(|route| route.orig.index().max(route.dest.index()) + 1).max().unwrap_or(0);
    if bound == 0 {
        return;
    }
    let group = bound.div_ceil(MATRIX_CELLS_MAX);
    let side = bound.div_ceil(group);
    let mut sums = vec![vec![0_u64; side]; side];
    for route in &found.matrix {
        sums[route.orig.index() / group][route.dest.index() / group] += route.count();
    }
    let most = sums.iter().flatten().max().copied().unwrap_or(0).max(1);
    // One hue, by share of the largest cell: the upper colours mean overload elsewhere on the page.
    let class = |value: u64| (value > 0).then(|| 1 + (value * 3 / (most + 1)) as usize);
    let rows: Vec<Vec<Option<usize>>> =
        sums.iter().map(|row| row.iter().map(|&value| Some(class(value).unwrap_or(0))).collect()).collect();
    let cell = (320 / side as u64).clamp(4, 40);
    let pixels = cell * side as u64;
    let each = if group == 1 { "CPU".to_owned() } else { format!("{group} CPUs") };
    let _ = write!(out, "<div class=mx><div><p class=m>from (down) to (across), a cell per {each}</p>");
    out.push_str(&cells(&rows, (cell, cell), &HEAT, &format!("width={pixels} height={pixels} role=img")));
    out.push_str("</div><div>");
    let mut routes: Vec<_> = found.matrix.iter().collect();
    routes.sort_by_key(|route| (std::cmp::Reverse(route.count()), route.orig, route.dest));
    let rows = routes.iter().take(8).map(|route| {
        vec![
            format!("#{} → #{}", route.orig, route.dest),
            count(route.count()),
            percent(route.count(), found.total),
        ]
    });
    table(out, &["route", "times", "share"], rows);
    out.push_str("</div></div>");
}

fn wakers(out: &mut String, found: &Wakers) {
    let rows = found.pairs.iter().take(ROWS).map(|pair| {
        vec![
            name(&pair.waker),
            name(&pair.wakee),
            count(pair.count),
            percent(pair.same_cpu, pair.count),
            pair.same_llc.map_or_else(|| "–".to_owned(), |part| percent(part, pair.count)),
        ]
    });
    table(out, &["waker", "<wakee", "times", "same CPU", "same cache"], rows);
    let rows = found.wide.iter().take(6);
    let rows =
        rows.map(|wide| vec![name(&wide.who), count(wide.wakees), count(wide.wakeups), count(wide.flips)]);
    if !found.wide.is_empty() {
        table(out, &["wide wakers", "different wakees", "wake-ups", "flips"], rows);
    }
}

fn notes(out: &mut String, report: &Report) {
    let health = &report.health;
    let unknown = health.unknown_records.iter().map(|(name, times)| format!("unknown: {name} ({times})"));
    let all: Vec<String> = health.repairs.iter().chain(&health.notes).cloned().chain(unknown).collect();
    if all.is_empty() {
        return;
    }
    out.push_str("<section><h2>Notes on the recording</h2><ul class=m>");
    for note in all.iter().take(40) {
        let _ = write!(out, "<li>{}", escape(note));
    }
    out.push_str("</ul></section>\n");
}
