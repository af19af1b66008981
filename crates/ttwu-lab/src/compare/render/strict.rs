//! All that the statistics say of each row: for whoever distrusts a word such as "better".

use super::{direction, value};
use crate::compare::Comparison;
use std::fmt::Write;
use ttwu_stats::{Interval, Verdict, describe};

pub(super) fn render(comparison: &Comparison) -> String {
    let mut out = format!(
        "# style strict; no stars: better or worse = 95 % interval beside 0 and Holm's p < 0.05 over all rows;\n\
         # equivalent = interval inside +-{} %; {}\n",
        comparison.plan.margin_pct,
        super::text::sampling(comparison)
    );
    for row in &comparison.rows {
        let _ = writeln!(out, "\n{} ({}, {} is better)", row.name, row.unit, direction(row.better));
        for (info, arm) in comparison.arms.iter().zip(&row.arms) {
            let Some(mean) = describe::mean(&arm.samples) else {
                let _ = writeln!(out, "  {}: missing", info.label);
                continue;
            };
            let spread = describe::variance(&arm.samples).map(f64::sqrt);
            let spread = spread.map_or("no spread".to_owned(), |spread| format!("sd {}", value(spread)));
            let _ =
                writeln!(out, "  {}: mean {}, {spread}, n {}", info.label, value(mean), arm.samples.len());
            let Some(judgement) = &arm.judgement else { continue };
            let interval = |interval: Option<Interval>, unit: &str| match interval {
                Some(Interval { estimate, low, high }) => {
                    format!("{estimate:+.4}{unit} [{low:+.4}, {high:+.4}]")
                }
                None => "not computable".to_owned(),
            };
            let p = |p: Option<f64>| p.map_or("not computable".to_owned(), |p| format!("{p:.3e}"));
            let _ = writeln!(out, "    ratio of means       {}", interval(judgement.change_pct, " %"));
            let _ = writeln!(
                out,
                "    Hodges-Lehmann shift {}",
                interval(judgement.shift, &format!(" {}", row.unit))
            );
            let permutation = judgement.permutation.map(|permutation| permutation.probability);
            let _ = writeln!(
                out,
                "    p {}, Holm {}, permutation {}",
                p(judgement.probability),
                p(arm.probability_holm),
                p(permutation)
            );
            let outliers = judgement.new_outliers.len() + judgement.base_outliers.len();
            if outliers > 0 {
                let _ = writeln!(out, "    {outliers} outliers, kept");
            }
            let verdict = match arm.verdict {
                Some(Verdict::Better) => "better".to_owned(),
                Some(Verdict::Worse) => "worse".to_owned(),
                Some(Verdict::Equivalent) => "equivalent".to_owned(),
                Some(Verdict::CannotTell { detectable_pct: Some(pct) }) => {
                    format!("cannot tell; {pct:.2} % would have shown four times in five")
                }
                Some(Verdict::CannotTell { detectable_pct: None }) | None => "cannot tell".to_owned(),
            };
            let _ = writeln!(out, "    {verdict}");
        }
    }
    out
}
