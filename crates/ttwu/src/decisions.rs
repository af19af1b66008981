//! The simulator's decisions as side tables of a `.ttwu` file.
//!
//! Tables are called `decisions`, `decisions.1`, … Each begins with a version and the names that its numbers stand for, so
//! that a file outlives changes of the enums. A row: event (which may go back) and time as differences to the row before, then numbers.

use anyhow::{Context, Result, bail};
use std::path::Path;
use ttwu_fair::{Affine, Check, PreemptReason, Rule, ScanEnd, Site};
use ttwu_model::CpuId;
use ttwu_sim::Decision;
use ttwu_trace::{Bytes, put_bytes, put_number as put, read_side_table};

const VERSION: u64 = 1;

/// A table is ended when it has so many bytes; a block of the file holds 15 MiB.
const TABLE_BYTES: usize = 8 << 20;

fn table_name(number: usize) -> String {
    if number == 0 { "decisions".to_owned() } else { format!("decisions.{number}") }
}

/// Name and content of each table.
pub(crate) fn encode(decisions: &[Decision]) -> Vec<(String, Vec<u8>)> {
    let mut tables = Vec::new();
    let mut rest = decisions;
    while !rest.is_empty() {
        let mut table = header();
        let (mut event, mut at) = (0, 0);
        let mut rows = 0;
        for decision in rest {
            put(&mut table, decision.event.wrapping_sub(event));
            put(&mut table, decision.at_ns - at);
            (event, at) = (decision.event, decision.at_ns);
            put_row(&mut table, decision);
            rows += 1;
            if table.len() >= TABLE_BYTES {
                break;
            }
        }
        tables.push((table_name(tables.len()), table));
        rest = &rest[rows..];
    }
    tables
}

fn header() -> Vec<u8> {
    fn names<T: Copy>(table: &mut Vec<u8>, all: &[T], name: fn(T) -> &'static str) {
        let names: Vec<&str> = all.iter().map(|&one| name(one)).collect();
        put_bytes(table, names.join(" ").as_bytes());
    }
    let mut table = Vec::new();
    put(&mut table, VERSION);
    names(&mut table, Rule::ALL, Rule::name);
    names(&mut table, Affine::ALL, Affine::name);
    names(&mut table, ScanEnd::ALL, ScanEnd::name);
    names(&mut table, Site::ALL, Site::name);
    names(&mut table, PreemptReason::ALL, PreemptReason::name);
    table
}

fn put_row(table: &mut Vec<u8>, decision: &Decision) {
    let number = |cpu: CpuId| u64::from(cpu.number());
    let Decision { this_cpu, prev_cpu, cpu, target, .. } = *decision;
    for cpu in [this_cpu, prev_cpu, cpu, target] {
        put(table, number(cpu));
    }
    // 0 is "none".
    put(table, decision.rule.map_or(0, |rule| 1 + index(Rule::ALL, rule)));
    put(table, index(Affine::ALL, decision.affine));
    put(table, index(ScanEnd::ALL, decision.scan));
    put(table, u64::from(decision.scanned));
    put(table, u64::from(decision.wake_list));
    put(table, decision.preempt.map_or(0, |reason| 1 + index(PreemptReason::ALL, reason)));
    put(table, decision.checks.len() as u64);
    for check in &decision.checks {
        put(table, index(Site::ALL, check.site));
        put(table, number(check.cpu) << 1 | u64::from(check.idle));
    }
}

fn index<T: PartialEq + Copy>(all: &[T], one: T) -> u64 {
    all.iter().position(|other| *other == one).expect("ALL has all") as u64
}

/// The decisions of a file that the simulator wrote; `None` for any other.
///
/// # Errors
/// When a table is damaged or of a later version.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<Decision>>> {
    let mut decisions = Vec::new();
    for number in 0.. {
        let name = table_name(number);
        // What is no `.ttwu` file has no tables.
        let Ok(Some(table)) = read_side_table(path, &name) else {
            return Ok((number > 0).then_some(decisions));
        };
        decode(&table, &mut decisions).with_context(|| format!("{}: table {name}", path.display()))?;
    }
    unreachable!("the tables end")
}

/// What the numbers of a table stand for.
struct Names {
    rules: Vec<Rule>,
    affine: Vec<Affine>,
    scans: Vec<ScanEnd>,
    sites: Vec<Site>,
    reasons: Vec<PreemptReason>,
}

fn decode(table: &[u8], decisions: &mut Vec<Decision>) -> Result<()> {
    fn names<T: Copy>(bytes: &mut Bytes<'_>, all: &[T], name: fn(T) -> &'static str) -> Result<Vec<T>> {
        let text = bytes.get_text();
        let known = |word| all.iter().copied().find(|&one| name(one) == word);
        text.split_whitespace()
            .map(|word| known(word).with_context(|| format!("unknown name `{word}`: from a later ttwu?")))
            .collect()
    }
    let mut bytes = Bytes::new(table);
    let version = bytes.get();
    if version != VERSION {
        bail!("version {version}, this ttwu reads {VERSION}");
    }
    let names = Names {
        rules: names(&mut bytes, Rule::ALL, Rule::name)?,
        affine: names(&mut bytes, Affine::ALL, Affine::name)?,
        scans: names(&mut bytes, ScanEnd::ALL, ScanEnd::name)?,
        sites: names(&mut bytes, Site::ALL, Site::name)?,
        reasons: names(&mut bytes, PreemptReason::ALL, PreemptReason::name)?,
    };
    let (mut event, mut at) = (0u64, 0u64);
    while !bytes.is_empty() {
        event = event.wrapping_add(bytes.get());
        at = at.wrapping_add(bytes.get());
        decisions.push(get_row(&mut bytes, event, at, &names).context("a row is damaged")?);
    }
    if bytes.finished() { Ok(()) } else { bail!("cut short") }
}

fn get_row(bytes: &mut Bytes<'_>, event: u64, at_ns: u64, names: &Names) -> Option<Decision> {
    fn pick<T: Copy>(all: &[T], number: u64) -> Option<T> {
        all.get(usize::try_from(number).ok()?).copied()
    }
    let cpu = |number: u64| u16::try_from(number).ok().map(CpuId::new);
    let (this_cpu, prev_cpu, chosen, target) =
        (cpu(bytes.get())?, cpu(bytes.get())?, cpu(bytes.get())?, cpu(bytes.get())?);
    let rule = match bytes.get() {
        0 => None,
        number => Some(pick(&names.rules, number - 1)?),
    };
    let affine = pick(&names.affine, bytes.get())?;
    let scan = pick(&names.scans, bytes.get())?;
    let scanned = bytes.get_u32();
    let wake_list = bytes.get() == 1;
    let preempt = match bytes.get() {
        0 => None,
        number => Some(pick(&names.reasons, number - 1)?),
    };
    let count = bytes.get();
    let mut checks = Vec::new();
    for _ in 0..count {
        let site = pick(&names.sites, bytes.get())?;
        let packed = bytes.get();
        checks.push(Check { site, cpu: cpu(packed >> 1)?, idle: packed & 1 == 1 });
        if !bytes.sound() {
            return None;
        }
    }
    let row = Decision {
        event,
        at_ns,
        this_cpu,
        prev_cpu,
        cpu: chosen,
        rule,
        affine,
        target,
        checks,
        scanned,
        scan,
        wake_list,
        preempt,
    };
    bytes.sound().then_some(row)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use ttwu_sim::{Decision, Nothing, Options, Scenario};

    fn simulated() -> Vec<Decision> {
        let text = "workload = \"hackbench:groups=4,fds=4,loops=10\"\nmachine = \"oracle-d\"\n";
        let scenario = Scenario::parse(text, &Nothing).expect("a scenario");
        ttwu_sim::run(&scenario, &mut Options::traced()).decisions
    }

    #[test]
    fn decisions_come_back() {
        let decisions = simulated();
        assert!(decisions.iter().any(|decision| decision.checks.len() > 1));
        assert!(decisions.iter().any(|decision| decision.preempt.is_some()));
        let mut again = Vec::new();
        for (_, table) in encode(&decisions) {
            decode(&table, &mut again).expect("it was written so");
        }
        assert_eq!(again, decisions);
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let [(_, table)] = &encode(&simulated())[..] else { panic!("one table") };
        let mut out = Vec::new();
        assert!(decode(&table[..table.len() - 1], &mut out).is_err());
        for at in 0..table.len().min(4000) {
            let mut damaged = table.clone();
            damaged[at] ^= 0x55;
            let _ = decode(&damaged, &mut Vec::new());
        }
    }
}
