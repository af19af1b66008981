//! Readers of the logs as mmtests of June 2026 lays them out, one a benchmark, faults included where they show in a table.

use super::Error;
use super::benchmarks::Sample;
use super::printed::leading;
use super::tree::Logs;
use std::fmt::Display;

/// One line of mmtests' common form between its readers and its tables.
struct Line {
    metric: String,
    factors: Vec<String>,
    interval: String,
    value: String,
    ratio: bool,
}

impl Line {
    fn new(metric: &str, factor: &str, interval: &dyn Display, value: &str) -> Self {
        Self {
            metric: metric.to_owned(),
            factors: vec![factor.to_owned()],
            interval: interval.to_string(),
            value: value.to_owned(),
            ratio: false,
        }
    }

    /// The operation's name: metric and factors, those that are empty or `_` left out.
    fn sample(self) -> Sample {
        let mut label = self.metric;
        for factor in self.factors.iter().filter(|factor| !factor.is_empty() && *factor != "_") {
            label.push('-');
            label.push_str(factor);
        }
        Sample { label, interval: self.interval, value: self.value, ratio: self.ratio }
    }

    /// The order of `sort -k1,1 -k2,2n [-k3,3n] -k4,4n`, then of the whole line, in the C locale.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let factors = self.factors.iter().zip(&other.factors);
        let by_factors = factors.map(|(a, b)| leading(a).total_cmp(&leading(b))).find(|order| order.is_ne());
        self.metric
            .cmp(&other.metric)
            .then(by_factors.unwrap_or(std::cmp::Ordering::Equal))
            .then_with(|| leading(&self.interval).total_cmp(&leading(&other.interval)))
            .then_with(|| self.factors.cmp(&other.factors))
            .then_with(|| (&self.interval, &self.value).cmp(&(&other.interval, &other.value)))
    }
}

fn sorted(mut lines: Vec<Line>) -> Vec<Sample> {
    lines.sort_by(Line::order);
    unsorted(lines)
}

fn unsorted(lines: Vec<Line>) -> Vec<Sample> {
    lines.into_iter().map(Line::sample).collect()
}

/// In the order of `sort -n`, each once.
pub(super) fn by_number(mut names: Vec<String>) -> Vec<String> {
    names.sort_by(|a, b| leading(a).total_cmp(&leading(b)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

/// The field at `index` (from 0) of a line's white-space separated ones; empty where there is none.
pub(super) fn field(line: &str, index: usize) -> &str {
    line.split_whitespace().nth(index).unwrap_or("")
}

/// `hackbench-<groups>`: the third field of each `Total time:` line. Also 2020's `hackbench-<groups>-<iteration>`.
pub(super) fn hackbench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let rests = logs.between("hackbench-", "");
    let groups =
        by_number(rests.iter().map(|rest| rest.split('-').next().unwrap_or("").to_owned()).collect());
    let mut lines = Vec::new();
    for group in groups {
        let mut iteration = 0;
        for file in files_of(logs, &rests, &group) {
            for line in logs.text(&file)?.lines().filter(|line| line.contains("Total time:")) {
                let value = field(line, 2);
                if !value.is_empty() {
                    iteration += 1;
                    lines.push(Line::new("time", &group, &iteration, value));
                }
            }
        }
    }
    Ok(sorted(lines))
}

fn files_of(logs: &Logs, rests: &[String], group: &str) -> Vec<String> {
    let whole = format!("hackbench-{group}");
    if logs.has(&whole) {
        return vec![whole];
    }
    let part = format!("{group}-");
    rests.iter().filter(|rest| rest.starts_with(&part)).map(|rest| format!("hackbench-{rest}")).collect()
}

/// `benchlog-<heading>-<clients>`, or 2020's `dbench-<clients>.log`.
pub(super) fn dbench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    load_file_benchmark(logs, "dbench-")
}

/// `benchlog-<heading>-<clients>`, or 2020's `tbench-<clients>.log`.
pub(super) fn tbench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    load_file_benchmark(logs, "tbench-")
}

fn load_file_benchmark(logs: &Logs, classic_prefix: &str) -> Result<Vec<Sample>, Error> {
    let mut lines = Vec::new();
    let rests = logs.between("benchlog-", "");
    for (heading, clients) in rests.iter().filter_map(|rest| rest.split_once('-')) {
        let text = logs.text(&format!("benchlog-{heading}-{clients}"))?;
        for line in text.lines() {
            lines.extend(load_file_line(heading, clients, line));
        }
    }
    if rests.is_empty() {
        for clients in by_number(logs.between(classic_prefix, ".log")) {
            for line in logs.text(&format!("{classic_prefix}{clients}.log"))?.lines() {
                if line.contains("completed in") {
                    lines.extend(load_file_line("loadfile", &clients, line));
                } else if line.contains("sec  execute") {
                    lines.extend(load_file_line("tput", &clients, line));
                }
            }
        }
    }
    Ok(sorted(lines))
}

fn load_file_line(heading: &str, clients: &str, line: &str) -> Option<Line> {
    match heading {
        "loadfile" => {
            let time = leading(field(line, 7)) / 1000.0;
            Some(Line { ratio: true, ..Line::new("loadfile", clients, &time, field(line, 3)) })
        }
        "tput" => Some(Line::new("tput", clients, &field(line, 5), field(line, 2))),
        "op" => Some(Line::new(&format!("op-{}", field(line, 0)), clients, &0, field(line, 2))),
        _ => None,
    }
}

/// `schbench-<workers>.log`: percentiles of each report, taken over when `current rps` follows; so the last, shorter report
/// is left out.
pub(super) fn schbench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    const SHOWN: [&str; 5] = ["20.0th:", "50.0th:", "90.0th:", "99.0th:", "99.9th:"];
    let mut lines = Vec::new();
    for workers in by_number(logs.between("schbench-", ".log")) {
        let mut pending: Vec<Line> = Vec::new();
        let (mut metric, mut runtime) = (String::new(), "1".to_owned());
        for line in logs.text(&format!("schbench-{workers}.log"))?.lines() {
            if line.contains("percentile") {
                field(line, 0).clone_into(&mut metric);
            }
            if line.split_once("Wakeup Latencies").is_some_and(|(_, rest)| rest.contains("runtime")) {
                field(line, 5).clone_into(&mut runtime);
            }
            if line.contains("current rps") {
                lines.append(&mut pending);
            }
            let (plain, marked) = (field(line, 0), field(line, 1));
            let (percentile, value) = if SHOWN.contains(&plain) && line.contains(&format!("  {plain}")) {
                (plain, field(line, 1))
            } else if plain == "*" && SHOWN.contains(&marked) {
                (marked, field(line, 2))
            } else {
                continue;
            };
            let mut found = Line::new(&metric, percentile.trim_end_matches(':'), &runtime, value);
            found.factors.push(workers.clone());
            pending.push(found);
        }
    }
    Ok(unsorted(lines))
}

/// The first field of each `usecs/op` line.
pub(super) fn perfpipe(logs: &Logs) -> Result<Vec<Sample>, Error> {
    fields_of_lines(logs, "usecs-op", |line| line.contains("usecs/op").then(|| field(line, 0)))
}

/// The same of `perf bench syscall`.
pub(super) fn perfsyscall(logs: &Logs) -> Result<Vec<Sample>, Error> {
    fields_of_lines(logs, "usecs/syscall", |line| line.contains("usecs/op").then(|| field(line, 0)))
}

/// The last field of each `events per second` line.
pub(super) fn sysbenchcpu(logs: &Logs) -> Result<Vec<Sample>, Error> {
    fields_of_lines(logs, "events/sec", |line| {
        line.contains("events per second").then(|| line.split_whitespace().last().unwrap_or(""))
    })
}

/// The third field of each `95th percentile:` line.
pub(super) fn sysbenchmutex(logs: &Logs) -> Result<Vec<Sample>, Error> {
    fields_of_lines(logs, "latency", |line| line.contains("95th percentile:").then(|| field(line, 2)))
}

/// The fifth field of each line that begins with `run time`.
pub(super) fn sembench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    fields_of_lines(logs, "burns/sec", |line| line.starts_with("run time").then(|| field(line, 4)))
}

/// `benchlog-<name>-<name>[-<number>]`: what `pick` takes of each line.
fn fields_of_lines(
    logs: &Logs,
    metric: &str,
    pick: impl Fn(&str) -> Option<&str>,
) -> Result<Vec<Sample>, Error> {
    let rests = logs.between("benchlog-", "");
    let mut pairs: Vec<(String, String)> = rests
        .iter()
        .filter_map(|rest| {
            let mut parts = rest.split('-');
            Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
        })
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut lines = Vec::new();
    for (first, second) in pairs {
        let whole = format!("benchlog-{first}-{second}");
        let files = if logs.has(&whole) {
            vec![whole]
        } else {
            let numbers = by_number(logs.between(&format!("{whole}-"), ""));
            numbers.iter().map(|number| format!("{whole}-{number}")).collect()
        };
        let mut iteration = 0;
        for file in files {
            for value in logs.text(&file)?.lines().filter_map(&pick).filter(|value| !value.is_empty()) {
                iteration += 1;
                let mut found = Line::new(metric, &first, &iteration, value);
                found.factors.push(second.clone());
                lines.push(found);
            }
        }
    }
    Ok(sorted(lines))
}

/// `time-<name>-<iteration>`: what time(1) says of user, system and elapsed time, the latter in seconds.
pub(super) fn times(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let first_part = |rest: String| rest.split('-').next().unwrap_or("").to_owned();
    let mut names: Vec<String> = logs.between("time-", "-1").into_iter().map(first_part).collect();
    names.dedup();
    let mut lines = Vec::new();
    for name in names {
        let prefix = format!("time-{name}-");
        for iteration in by_number(logs.between(&prefix, "").into_iter().map(first_part).collect()) {
            let text = logs.text(&format!("{prefix}{iteration}"))?;
            let words = text.lines().filter(|line| line.contains("elapsed")).flat_map(str::split_whitespace);
            for word in words {
                let times = [("User", "user"), ("System", "system")];
                let found = times.iter().find_map(|(metric, end)| Some((*metric, word.strip_suffix(end)?)));
                if let Some((metric, value)) = found {
                    lines.push(Line::new(metric, &name, &iteration, value));
                } else if let Some(value) = word.strip_suffix("elapsed") {
                    lines.push(Line::new("Elapsed", &name, &iteration, &seconds(value)));
                }
            }
        }
    }
    Ok(sorted(lines))
}

/// `1:02:03.45`, `2:03.45` or `3.45` in seconds, with the six digits that awk prints.
fn seconds(clock: &str) -> String {
    let total = clock.split(':').fold(0.0, |total, part| total * 60.0 + leading(part));
    let six: f64 = format!("{total:.5e}").parse().unwrap_or(total);
    six.to_string()
}

/// `sysbench-raw-<clients>-<iteration>`: transactions a second, in brackets behind their number.
pub(super) fn sysbench(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut lines = Vec::new();
    for clients in by_number(logs.between("sysbench-raw-", "-1")) {
        let mut iteration = 0;
        for number in logs.between(&format!("sysbench-raw-{clients}-"), "") {
            let text = logs.text(&format!("sysbench-raw-{clients}-{number}"))?;
            let wanted = |line: &&str| {
                line.split_once("transactions:").is_some_and(|(_, rest)| rest.contains("per sec"))
            };
            for line in text.lines().filter(wanted) {
                // Perl's split keeps an empty first field where the line begins with white space.
                let shift = usize::from(line.starts_with([' ', '\t']));
                let rate = field(line, 3 - shift).replacen('(', "", 1);
                lines.push(Line::new("txn/sec", &clients, &iteration, &rate));
                iteration += 1;
            }
        }
    }
    Ok(unsorted(lines))
}

/// `<PROTOCOL>-<size>.<number>`: the last field of the last result line; the protocol stands in the file `protocols`.
///
/// UDP streams: what was received is reported with what was sent, and the first loss of more than a tenth ends the reading.
pub(super) fn netperf(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let protocol = protocol(logs)?;
    let metric = protocol.to_lowercase().replace('_', "");
    let mut lines = Vec::new();
    for size in netperf_sizes(logs, &protocol) {
        for (iteration, number) in logs.between(&format!("{protocol}-{size}."), "").iter().enumerate() {
            let text = logs.text(&format!("{protocol}-{size}.{number}"))?;
            let (sent, received) = netperf_result(&text, protocol == "UDP_STREAM");
            let mut line = |direction: &str| {
                let mut line = Line::new(&metric, direction, &(iteration + 1), &sent);
                line.factors.push(size.clone());
                lines.push(line);
            };
            line("send");
            if protocol != "UDP_STREAM" {
                continue;
            }
            line("recv");
            if leading(&sent) - leading(&received) > leading(&sent) / 10.0 {
                line("loss");
                return Ok(unsorted(lines));
            }
        }
    }
    Ok(unsorted(lines))
}

/// The first line of `protocols`; empty where there is no such file.
pub(super) fn protocol(logs: &Logs) -> Result<String, Error> {
    if !logs.has("protocols") {
        return Ok(String::new());
    }
    Ok(logs.text("protocols")?.lines().next().unwrap_or("").to_owned())
}

/// The message sizes of which there is a first result.
pub(super) fn netperf_sizes(logs: &Logs, protocol: &str) -> Vec<String> {
    let firsts = logs.between(&format!("{protocol}-"), ".1");
    by_number(firsts.iter().map(|size| size.rsplit('-').next().unwrap_or("").to_owned()).collect())
}

/// What was sent and received, as text; `0` where the log has no result.
pub(super) fn netperf_result(text: &str, is_udp_stream: bool) -> (String, String) {
    let (mut sent, mut received) = ("0", "0");
    for line in text.lines().filter(|line| !line.contains(|letter: char| letter.is_ascii_alphabetic())) {
        let count = line.split_whitespace().count();
        let last = line.split_whitespace().last().unwrap_or("");
        match (is_udp_stream, count) {
            (false, 5..) | (true, 6) => sent = last,
            (true, 4) => received = last,
            (false, _) | (true, _) => {}
        }
    }
    (sent.to_owned(), received.to_owned())
}

/// `unixbenchd.log`: what stands between the first two bars of each `COUNT` line; the program's name is in `commands.log`.
pub(super) fn unixbenchd(logs: &Logs) -> Result<Vec<Sample>, Error> {
    if !logs.has("unixbenchd.log") {
        return Ok(Vec::new());
    }
    let commands = if logs.has("commands.log") { logs.text("commands.log")? } else { String::new() };
    let command = commands.lines().find(|line| line.contains("pgms")).map_or("", |line| field(line, 0));
    let command = command.rsplit('/').next().unwrap_or("");
    let text = logs.text("unixbenchd.log")?;
    let counts = text.lines().filter(|line| line.contains("COUNT"));
    // The interval stays 0: mmtests counts in a misspelt variable.
    Ok(unsorted(
        counts
            .map(|line| Line::new(command, "_", &0, line.split('|').nth(1).unwrap_or(line).trim()))
            .collect(),
    ))
}

/// `cyclictest-histogram.log`: latencies and overflows by CPU.
///
/// DEVIATION: mmtests' own reader calls a function that does not exist, and fails; this one reads what it means to read,
/// the last CPU included.
pub(super) fn cyclictest(logs: &Logs) -> Result<Vec<Sample>, Error> {
    if !logs.has("cyclictest-histogram.log") {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    for line in logs.text("cyclictest-histogram.log")?.lines() {
        let Some((name, values)) = line.strip_prefix("# ").and_then(|rest| rest.split_once(": ")) else {
            continue;
        };
        let metric = match name.strip_suffix(" Latencies") {
            Some(which) if which.len() == 3 => format!("{which}Lat"),
            None if name == "Histogram Overflows" => "Overflow".to_owned(),
            Some(_) | None => continue,
        };
        for (cpu, value) in values.split_whitespace().enumerate() {
            lines.push(Line::new(&metric, &cpu.to_string(), &0, value));
        }
    }
    Ok(unsorted(lines))
}

/// `stressng-<clients>-<iteration>.log`: operations per second of real time, by stressor.
pub(super) fn stressng(logs: &Logs) -> Result<Vec<Sample>, Error> {
    let mut lines = Vec::new();
    for clients in by_number(logs.between("stressng-", "-1.log")) {
        for iteration in logs.between(&format!("stressng-{clients}-"), ".log") {
            let text = logs.text(&format!("stressng-{clients}-{iteration}.log"))?;
            let results = text.lines().skip_while(|line| !line.contains("(secs)"));
            for line in results.filter(|line| !line.contains("(secs)")) {
                let fields = line.rsplit_once("] ").map_or(line, |(_, rest)| rest);
                // Perl's split keeps an empty first field where the line begins with white space.
                let shift = usize::from(fields.starts_with([' ', '\t']));
                let at = |index: usize| if index < shift { "" } else { field(fields, index - shift) };
                lines.push(Line::new(&format!("bops-{}", at(0)), &clients, &iteration, at(5)));
            }
        }
    }
    Ok(unsorted(lines))
}
