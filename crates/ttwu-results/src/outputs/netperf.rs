//! netperf's request/response tests: the classic table, chosen keys (`-k`), and the warning about confidence.
//!
//! Source: netperf afc51ff.

use super::scan::Lines;
use super::{Better, ParseError, Samples};

/// The widths that were reached when the wanted confidence was not.
#[derive(Debug, Clone, PartialEq)]
pub struct NetperfWarning {
    /// Percent, of the throughput.
    pub throughput_pct: f64,
    /// Percent, of the local CPU use.
    pub local_cpu_pct: f64,
    /// Percent, of the remote CPU use.
    pub remote_cpu_pct: f64,
}

/// What stands below the title.
#[derive(Debug, Clone, PartialEq)]
pub enum NetperfBody {
    /// The classic table.
    Table {
        /// Local send and receive buffer, bytes.
        local_bytes: [u64; 2],
        /// Remote send and receive buffer, bytes.
        remote_bytes: [u64; 2],
        /// Bytes a request.
        request_bytes: u64,
        /// Bytes a response.
        response_bytes: u64,
        /// Seconds.
        elapsed_s: f64,
        /// Transactions a second.
        rate: f64,
    },
    /// `KEY=value` lines, as printed.
    Keys(Vec<(String, String)>),
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Netperf {
    /// The title line.
    pub title: String,
    /// Set when the wanted confidence was not reached.
    pub warning: Option<NetperfWarning>,
    /// Result.
    pub body: NetperfBody,
}

const HEAD: [&str; 5] = [
    "Local /Remote",
    "Socket Size   Request  Resp.   Elapsed  Trans.",
    "Send   Recv   Size     Size    Time     Rate         ",
    "bytes  Bytes  bytes    bytes   secs.    per sec   ",
    "",
];
const WARNING: [&str; 4] = [
    "!!! WARNING",
    "!!! Desired confidence was not achieved within the specified iterations.",
    "!!! This implies that there was variability in the test environment that",
    "!!! must be investigated before going further.",
];

impl Netperf {
    pub(crate) fn parse(lines: &mut Lines<'_>) -> Result<Option<Self>, ParseError> {
        let Some(scan) = lines.next_if("") else { return Ok(None) };
        let title = scan.rest().to_owned();
        if !(title.contains(" REQUEST/RESPONSE TEST from ") && title.contains(" to ")) {
            return Ok(None);
        }
        let mut warning = None;
        if lines.peek() == Some(WARNING[0]) {
            for text in WARNING {
                lines.exact(text)?;
            }
            let mut percent = |before: &str| {
                let mut scan = lines.next(before)?;
                scan.literal(before)?;
                let percent = scan.f64("percent")?;
                scan.literal("%")?;
                scan.end().map(|()| percent)
            };
            warning = Some(NetperfWarning {
                throughput_pct: percent("!!! Confidence intervals: Throughput      : ")?,
                local_cpu_pct: percent("!!!                       Local CPU util  : ")?,
                remote_cpu_pct: percent("!!!                       Remote CPU util : ")?,
            });
            lines.exact("")?;
        }
        let body = if lines.peek() == Some(HEAD[0]) { table(lines)? } else { keys(lines)? };
        Ok(Some(Self { title, warning, body }))
    }

    /// Appends the output.
    pub fn write(&self, out: &mut String) {
        out.push_str(&format!("{}\n", self.title));
        if let Some(warning) = &self.warning {
            for text in WARNING {
                out.push_str(&format!("{text}\n"));
            }
            out.push_str(&format!(
                "!!! Confidence intervals: Throughput      : {:.3}%\n!!!                       Local CPU util  : {:.3}%\n!!!                       Remote CPU util : {:.3}%\n\n",
                warning.throughput_pct, warning.local_cpu_pct, warning.remote_cpu_pct
            ));
        }
        match &self.body {
            NetperfBody::Table {
                local_bytes,
                remote_bytes,
                request_bytes,
                response_bytes,
                elapsed_s,
                rate,
            } => {
                for text in HEAD {
                    out.push_str(&format!("{text}\n"));
                }
                let (local, remote) = (local_bytes, remote_bytes);
                out.push_str(&format!(
                    "{:<6} {:<6} {request_bytes:<6}   {response_bytes:<6}  {elapsed_s:<6.2}   {rate:<6.2}   \n{:<6} {:<6}\n",
                    local[0], local[1], remote[0], remote[1]
                ));
            }
            NetperfBody::Keys(keys) => {
                for (key, value) in keys {
                    out.push_str(&format!("{key}={value}\n"));
                }
            }
        }
    }

    pub(crate) fn samples(&self) -> Vec<Samples> {
        match &self.body {
            NetperfBody::Table { rate, .. } => {
                vec![Samples::one("transactions", "1/s", Better::Higher, *rate)]
            }
            NetperfBody::Keys(keys) => keys
                .iter()
                .filter_map(|(key, value)| {
                    let value: f64 = value.parse().ok().filter(|value: &f64| value.is_finite())?;
                    if key == "THROUGHPUT" || key == "TRANSACTION_RATE" {
                        return Some(Samples::one("transactions", "1/s", Better::Higher, value));
                    }
                    let name = key.strip_suffix("_LATENCY")?;
                    Some(Samples::one(format!("latency_{}", name.to_lowercase()), "us", Better::Lower, value))
                })
                .collect(),
        }
    }
}

fn table(lines: &mut Lines<'_>) -> Result<NetperfBody, ParseError> {
    for text in HEAD {
        lines.exact(text)?;
    }
    let mut scan = lines.next("buffer sizes and the rate")?;
    let local_bytes = [scan.u64("bytes")?, scan.u64("bytes")?];
    let request_bytes = scan.u64("bytes")?;
    let response_bytes = scan.u64("bytes")?;
    let elapsed_s = scan.f64("seconds")?;
    let rate = scan.f64("transactions a second")?;
    scan.pad();
    scan.end()?;
    let mut scan = lines.next("the remote buffer sizes")?;
    let remote_bytes = [scan.u64("bytes")?, scan.u64("bytes")?];
    scan.pad();
    scan.end()?;
    Ok(NetperfBody::Table { local_bytes, remote_bytes, request_bytes, response_bytes, elapsed_s, rate })
}

fn keys(lines: &mut Lines<'_>) -> Result<NetperfBody, ParseError> {
    let mut keys = Vec::new();
    while let Some((key, value)) = lines.peek().and_then(|line| line.split_once('=')) {
        if key.is_empty()
            || !key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        {
            break;
        }
        lines.next("")?;
        keys.push((key.to_owned(), value.to_owned()));
    }
    if keys.is_empty() {
        Err(lines.fail("the table's head, or KEY=value"))
    } else {
        Ok(NetperfBody::Keys(keys))
    }
}
