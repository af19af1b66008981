//! The table of ratios: value over baseline, change, difference by spread; then mean, least and largest difference, and the
//! geometric mean of the ratios.

use super::benchmarks::Benchmark;
use super::extract::Arm;
use super::printed::{bare, fixed, signed};
use super::summary::{Operation, Summariser};
use super::table::{header, value_width};
use super::{Options, Style};
use ttwu_stats::mmtests as stat;

/// One operation of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    ratio: f64,
    change: f64,
    by_spread: f64,
}

/// What is missing counts as no change.
const MISSING: Cell = Cell { ratio: 1.0, change: 0.0, by_spread: 0.0 };

/// The table's text.
pub(super) fn render(options: &Options, benchmark: &Benchmark, arms: &[Arm]) -> String {
    let summariser = Summariser { benchmark, style: options.style, r: options.r };
    let labels = &arms[0].shown;
    let column = summariser.column(benchmark.rows.ratio_stat()).unwrap_or(0);
    let summaries: Vec<Vec<Option<Operation>>> = labels
        .iter()
        .map(|label| arms.iter().map(|arm| summariser.operation(arm, label)).collect())
        .collect();
    let has_spread = benchmark.rows.ratio_has_spread()
        && summaries
            .iter()
            .any(|row| row[0].as_ref().is_some_and(|operation| spread(operation, options.style).is_some()));
    let cells: Vec<Vec<Cell>> = summaries
        .iter()
        .map(|row| {
            (0..arms.len()).map(|arm| cell(row, arm, column, options.style, benchmark.higher)).collect()
        })
        .collect();
    let label_width = labels.iter().map(String::len).max().unwrap_or(0) + "Ratio ".len();
    let (width, decimals) = (value_width(options.style), benchmark.decimals);
    // mmtests makes one more set of formats than there are operations, not arms; what lies beyond prints as bare numbers.
    let formatted = labels.len() + 1;
    let mut text = header(arms, label_width, width);
    for (label, row) in labels.iter().zip(&cells) {
        text.push_str(&format!("{:<label_width$}", format!("Ratio {label}")));
        for (arm, cell) in row.iter().enumerate() {
            let by_spread = if has_spread { cell.by_spread } else { f64::NAN };
            if arm < formatted {
                text.push_str(&fixed(cell.ratio, width, decimals));
                text.push_str(&format!(" ({}%) ({}s)", bare(cell.change, 2), signed(by_spread, 2)));
            } else {
                for value in [cell.ratio, cell.change, by_spread] {
                    text.push_str(&fixed(value, width, 2));
                }
            }
        }
        text.push('\n');
    }
    let direction = if benchmark.higher { "Higher" } else { "Lower" };
    let mut summary_row = |name: &str, of_arm: &dyn Fn(&[Cell]) -> f64| {
        text.push_str(&format!("{:<label_width$}", format!("{name:<5} {direction}")));
        for arm in 0..arms.len() {
            let column: Vec<Cell> = cells.iter().map(|row| row[arm]).collect();
            // Blanks as wide as what is not there: " (0.00%)" and " (+0.00s)", or two bare numbers.
            let (decimals, blanks) = if arm < formatted { (decimals, 8 + 9) } else { (2, 2 * width) };
            text.push_str(&format!("{}{}", fixed(of_arm(&column), width, decimals), " ".repeat(blanks)));
        }
        text.push('\n');
    };
    if has_spread {
        let by_spread = |cells: &[Cell]| cells.iter().map(|cell| cell.by_spread).collect::<Vec<_>>();
        summary_row("Dmean", &|cells| stat::amean(&by_spread(cells)).unwrap_or(f64::NAN));
        summary_row("Dmin", &|cells| by_spread(cells).into_iter().reduce(f64::min).unwrap_or(f64::NAN));
        summary_row("Dmax", &|cells| by_spread(cells).into_iter().reduce(f64::max).unwrap_or(f64::NAN));
    }
    summary_row("Gmean", &|cells| {
        let ratios: Vec<f64> =
            cells.iter().map(|cell| if cell.ratio == 0.0 { 0.00001 } else { cell.ratio }).collect();
        stat::gmean(&ratios).unwrap_or(f64::NAN)
    });
    text
}

fn spread(operation: &Operation, style: Style) -> Option<f64> {
    match style {
        Style::Interval2024 => operation.interval.map(|interval| interval.1),
        Style::Classic2020 => operation.spread,
    }
}

fn cell(row: &[Option<Operation>], arm: usize, column: usize, style: Style, higher: bool) -> Cell {
    let value = |arm: usize| {
        row[arm].as_ref().and_then(|operation| operation.values[column]).filter(|&value| value != -1.0)
    };
    let (Some(new), Some(base), Some(new_row), Some(base_row)) = (value(arm), value(0), &row[arm], &row[0])
    else {
        return MISSING;
    };
    let ratio = stat::ratio(new, base);
    let change = if higher { stat::gain_higher(ratio, 1.0) } else { stat::gain_lower(ratio, 1.0) };
    let by_spread = match style {
        Style::Interval2024 => stat::interval_ratio(
            new,
            new_row.interval.unwrap_or((0.0, 0.0)),
            base,
            base_row.interval.unwrap_or((0.0, 0.0)),
        ),
        Style::Classic2020 => {
            stat::pooled_ratio(new, new_row.spread.unwrap_or(0.0), base, base_row.spread.unwrap_or(0.0))
        }
    };
    Cell { ratio, change, by_spread: if by_spread.is_nan() { 0.0 } else { by_spread } }
}
