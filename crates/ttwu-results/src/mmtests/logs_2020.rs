//! Readers of the logs as mmtests of January 2020 lays them out, one a class. Where hackbench, dbench and tbench logs lie in
//! the newer layout, that is read under the older names.

use super::Error;
use super::benchmarks::Sample;
use super::logs_2024::{by_number, field, netperf_result, netperf_sizes, protocol};
use super::printed::leading;
use super::tree::Logs;
use std::fmt::Display;

fn sample(label: impl Into<String>, interval: &dyn Display, value: &str) -> Sample {
    Sample { label: label.into(), interval: interval.to_string(), value: value.to_owned(), ratio: false }
}

/// `hackbench-<groups>-<iteration>`.
pub(super) fn hackbench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let groups = by_number(logs.between("hackbench-", "-1"));
    let groups = if groups.is_empty() { by_number(logs.between("hackbench-", "")) } else { groups };
    let mut samples = Vec::new();
    for group in groups {
        let mut files: Vec<String> = logs.between(&format!("hackbench-{group}-"), "");
        for file in &mut files {
            *file = format!("hackbench-{group}-{file}");
        }
        if files.is_empty() {
            files.push(format!("hackbench-{group}"));
        }
        let mut iteration = 0;
        for file in files {
            for line in logs.text(&file)?.lines() {
                let Some((_, rest)) = line.split_once("Total time: ") else { continue };
                let end =
                    rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
                iteration += 1;
                samples.push(sample(&group, &iteration, &rest[..end]));
            }
        }
    }
    Ok(samples)
}

/// `<name>-<clients>.log`, or the newer `benchlog-<heading>-<clients>`: clients and text.
fn load_files(logs: &Logs, name: &str, heading: &str) -> Result<Vec<(String, String)>, Error> {
    let clients = by_number(logs.between(&format!("{name}-"), ".log"));
    if !clients.is_empty() {
        return clients
            .into_iter()
            .map(|clients| Ok((clients.clone(), logs.text(&format!("{name}-{clients}.log"))?)))
            .collect();
    }
    let newer = by_number(logs.between(&format!("benchlog-{heading}-"), ""));
    newer
        .into_iter()
        .map(|clients| Ok((clients.clone(), logs.text(&format!("benchlog-{heading}-{clients}"))?)))
        .collect()
}

/// Execution times of the load file, those dropped that look like a negative number that wrapped.
pub(super) fn dbench4(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    for (clients, text) in load_files(logs, "dbench", "loadfile")? {
        for line in text.lines().filter(|line| line.contains("completed in")) {
            let value = field(line, 3);
            if leading(value) <= f64::from(1_u32 << 31) {
                samples.push(sample(&clients, &(leading(field(line, 7)) / 1000.0), value));
            }
        }
    }
    Ok(samples)
}

/// Throughput so far, by second.
pub(super) fn dbench4_throughput(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    for (clients, text) in load_files(logs, "dbench", "tput")? {
        for line in text.lines().filter(|line| line.contains("sec  execute")) {
            samples.push(sample(&clients, &field(line, 5), field(line, 2)));
        }
    }
    Ok(samples)
}

/// The longest operation, by second.
pub(super) fn dbench4_latency(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    for (clients, text) in load_files(logs, "dbench", "tput")? {
        for (index, line) in text.lines().filter(|line| line.contains("execute")).enumerate() {
            // Counted with the empty field before the line's leading blanks; without blanks it is the next field.
            let shift = usize::from(line.starts_with([' ', '\t']));
            samples.push(sample(format!("latency-{clients}"), &(index + 1), field(line, 9 - shift)));
        }
    }
    Ok(samples)
}

/// Count, mean and longest time of each operation, from the table at the end.
pub(super) fn dbench4_operations(logs: &Logs) -> Result<Vec<Sample>, Error> {
    const OPERATIONS: [&str; 16] = [
        "NTCreateX",
        "Close",
        "Rename",
        "Unlink",
        "Deltree",
        "Mkdir",
        "Qpathinfo",
        "WriteX",
        "ReadX",
        "Qfileinfo",
        "Qfsinfo",
        "Flush",
        "Sfileinfo",
        "LockX",
        "UnlockX",
        "Find",
    ];
    let texts = load_files(logs, "dbench", "op")?;
    let mut samples = Vec::new();
    for (column, heading) in ["count", "avg", "max"].iter().enumerate() {
        for (clients, text) in &texts {
            // Only lines that begin with a blank are looked at, because of the empty field before it.
            let table = text.lines().skip_while(|line| !line.contains("Operation"));
            for line in
                table.filter(|line| line.starts_with([' ', '\t']) && OPERATIONS.contains(&field(line, 0)))
            {
                let label = format!("{heading}-{}-{clients}", field(line, 0));
                samples.push(sample(label, &0, field(line, column + 1)));
            }
        }
    }
    Ok(samples)
}

/// Throughput so far, by second.
pub(super) fn tbench4(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    for (clients, text) in load_files(logs, "tbench", "tput")? {
        for (index, line) in text.lines().filter(|line| line.contains("execute")).enumerate() {
            samples.push(sample(&clients, &(index + 1), field(line, 2)));
        }
    }
    Ok(samples)
}

/// `schbench-<workers>.log`: every percentile line; ratios show the 99th.
pub(super) fn schbench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    for workers in by_number(logs.between("schbench-", ".log")) {
        for line in logs.text(&format!("schbench-{workers}.log"))?.lines() {
            let Some((before, after)) = line.split_once("th: ") else { continue };
            let percentile = before.rsplit([' ', '\t', '*']).next().unwrap_or("");
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let well_formed =
                percentile.split_once('.').is_some_and(|(whole, part)| is_number(whole) && is_number(part));
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            if !well_formed || percentile.len() == before.len() || digits == 0 {
                continue;
            }
            let percentile = percentile.strip_suffix("00").unwrap_or(percentile);
            let ratio = leading(percentile) == 99.0;
            samples.push(Sample {
                ratio,
                ..sample(format!("{percentile}th-qrtle-{workers}"), &0, &after[..digits])
            });
        }
    }
    Ok(samples)
}

/// `<PROTOCOL>-<size>.<number>`, by size; UDP streams by direction first, with losses where more than a tenth is lost, and
/// from then on.
pub(super) fn netperf(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let protocol = protocol(logs)?;
    let is_udp_stream = protocol == "UDP_STREAM";
    let sizes = netperf_sizes(logs, &protocol);
    let (mut sent_all, mut received_all, mut lost_all) = (Vec::new(), Vec::new(), Vec::new());
    let mut loses = false;
    for size in &sizes {
        for (index, number) in logs.between(&format!("{protocol}-{size}."), "").iter().enumerate() {
            let (sent, received) =
                netperf_result(&logs.text(&format!("{protocol}-{size}.{number}"))?, is_udp_stream);
            let label = if is_udp_stream { format!("send-{size}") } else { size.clone() };
            sent_all.push(sample(label, &(index + 1), &sent));
            received_all.push(sample(format!("recv-{size}"), &(index + 1), &received));
            let lost = leading(&sent) - leading(&received);
            if loses || lost > leading(&sent) / 10.0 {
                loses = true;
                lost_all.push(sample(format!("loss-{size}"), &(index + 1), &lost.to_string()));
            }
        }
    }
    if is_udp_stream {
        sent_all.append(&mut received_all);
        if loses {
            // Sizes without a loss have a row too; a sample that is no number registers it.
            sent_all.extend(sizes.iter().map(|size| sample(format!("loss-{size}"), &"", "")));
            sent_all.append(&mut lost_all);
        }
    }
    Ok(sent_all)
}

/// `pipe-<number>.log`: microseconds an operation.
pub(super) fn perfpipe(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    for number in logs.between("pipe-", ".log") {
        for line in logs.text(&format!("pipe-{number}.log"))?.lines() {
            let line = line.trim();
            if line.split([' ', '\t']).nth(1) == Some("usecs/op") {
                samples.push(sample("Time", &(samples.len() + 1), field(line, 0)));
            }
        }
    }
    Ok(samples)
}

/// `pipetest.log`: the first field of each line, rounded to halves.
pub(super) fn pipetest(logs: &Logs) -> Result<Vec<Sample>, Error> {
    if !logs.has("pipetest.log") {
        return Ok(Vec::new());
    }
    let text = logs.text("pipetest.log")?;
    let halves = |line: &str| {
        ((leading(line.split([' ', '\t']).next().unwrap_or("")) * 2.0).round() / 2.0).to_string()
    };
    Ok(text.lines().enumerate().map(|(index, line)| sample("Time", &(index + 1), &halves(line))).collect())
}

/// `cyclictest.log`: mean, then longest latency by thread; of threads with one digit only.
pub(super) fn cyclictest(logs: &Logs) -> Result<Vec<Sample>, Error> {
    if !logs.has("cyclictest.log") {
        return Ok(Vec::new());
    }
    let text = logs.text("cyclictest.log")?;
    let mut samples = Vec::new();
    for (heading, key) in [("Avg", "Avg:"), ("Max", "Max:")] {
        for line in text.lines() {
            let Some((thread, rest)) = line.strip_prefix("T: ").and_then(|rest| rest.split_once(' ')) else {
                continue;
            };
            let Some((_, value)) = rest.split_once(key) else { continue };
            if thread.len() == 1 && rest.contains("Avg:") && rest.contains("Max:") {
                samples.push(sample(format!("{heading}-{thread}"), &0, field(value, 0)));
            }
        }
    }
    Ok(samples)
}

/// `cyclictest.log.xz` with every sample: `thread: time: latency`.
pub(super) fn cyclictest_fine(logs: &Logs) -> Result<Vec<Sample>, Error> {
    if !logs.has("cyclictest.log") {
        return Ok(Vec::new());
    }
    let text = logs.text("cyclictest.log")?;
    let mut samples = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if let [thread, time, latency, ..] = fields[..]
            && let (Some(thread), Some(time)) = (thread.strip_suffix(':'), time.strip_suffix(':'))
            && is_number(thread)
            && is_number(time)
            && is_number(latency)
        {
            samples.push(sample("sample-anycpu", &time, latency));
        }
    }
    Ok(samples)
}
