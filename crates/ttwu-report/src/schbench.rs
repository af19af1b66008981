//! Wake-up latencies in the layouts of schbench's generations.

use std::fmt::Write;
use ttwu_analysis::SchbenchTable;

/// Whose layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchbenchGeneration {
    /// 2016: labels with four decimals, no counts, the minimum always 0.
    Y2016,
    /// 2019: labels with one decimal.
    Y2019,
    /// October 2020 to April 2023: counts and the run time.
    Y2020,
    /// Since April 2023: `Wakeup Latencies`, other percentiles.
    Y2023,
}

/// The table; `seconds` is the recording's length, which generations since 2020 print as run time.
#[must_use]
pub fn schbench(table: &SchbenchTable, generation: SchbenchGeneration, seconds: u64) -> String {
    let mut out = String::new();
    let samples = table.samples;
    let run = format!("runtime {seconds} (s) ({samples} total samples)");
    let _ = match generation {
        SchbenchGeneration::Y2016 | SchbenchGeneration::Y2019 => writeln!(out, "Latency percentiles (usec)"),
        SchbenchGeneration::Y2020 => writeln!(out, "Latency percentiles (usec) {run}"),
        SchbenchGeneration::Y2023 => writeln!(out, "Wakeup Latencies percentiles (usec) {run}"),
    };
    let lines = match generation {
        SchbenchGeneration::Y2016 | SchbenchGeneration::Y2019 | SchbenchGeneration::Y2020 => {
            &table.until_2023[..]
        }
        // The 20th is not shown.
        SchbenchGeneration::Y2023 => &table.since_2023[1..],
    };
    for line in lines {
        let (percent, us, samples) = (line.percent, line.us, line.samples);
        let star = percent == 99.0;
        let _ = match generation {
            SchbenchGeneration::Y2016 => {
                writeln!(out, "\t{}{percent:2.4}th: {us}", if star { "*" } else { "" })
            }
            SchbenchGeneration::Y2019 => {
                writeln!(out, "\t{}{percent:2.1}th: {us}", if star { "*" } else { "" })
            }
            SchbenchGeneration::Y2020 | SchbenchGeneration::Y2023 => {
                let mark = if star { "* " } else { "  " };
                writeln!(out, "\t{mark}{percent:2.1}th: {us:<10} ({samples} samples)")
            }
        };
    }
    let (min, max) = (table.us_min, table.us_max);
    let _ = match generation {
        SchbenchGeneration::Y2016 | SchbenchGeneration::Y2019 => writeln!(out, "\tmin=0, max={max}"),
        SchbenchGeneration::Y2020 | SchbenchGeneration::Y2023 => {
            writeln!(out, "\t  min={min}, max={max}")
        }
    };
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttwu_analysis::Distribution;
    use ttwu_model::Time;

    fn table() -> SchbenchTable {
        let mut latencies = Distribution::new();
        for us in 1..=1000_u64 {
            latencies.add(Time::ZERO, Time::from_ns(us * 1000));
        }
        SchbenchTable::new(&latencies)
    }

    // In double precision 99.9 / 100 * 1000 is a little more than 999, so that schbench asks for the 1000th of 1000.
    #[test]
    fn layouts_are_those_of_the_generations() {
        let of = |generation| schbench(&table(), generation, 6);
        assert_eq!(
            of(SchbenchGeneration::Y2016),
            "Latency percentiles (usec)\n\t50.0000th: 500\n\t75.0000th: 751\n\t90.0000th: 901\n\t95.0000th: 951\n\
             \t*99.0000th: 991\n\t99.5000th: 995\n\t99.9000th: 1001\n\tmin=0, max=1000\n"
        );
        assert_eq!(
            of(SchbenchGeneration::Y2023),
            "Wakeup Latencies percentiles (usec) runtime 6 (s) (1000 total samples)\n\
             \t  50.0th: 500        (300 samples)\n\t  90.0th: 901        (401 samples)\n\
             \t* 99.0th: 991        (90 samples)\n\t  99.9th: 1001       (9 samples)\n\t  min=1, max=1000\n"
        );
        let lines: Vec<_> = of(SchbenchGeneration::Y2020).lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "Latency percentiles (usec) runtime 6 (s) (1000 total samples)");
        assert_eq!(lines[5], "\t* 99.0th: 991        (40 samples)");
        assert_eq!(of(SchbenchGeneration::Y2019).lines().nth(5), Some("\t*99.0th: 991"));
    }
}
