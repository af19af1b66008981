//! Inline SVG for the HTML page: stacked bars, a histogram, a strip chart, a matrix.
//!
//! Colours are CSS classes, so that light and dark pages share one drawing. Cells of one colour are one path: a strip chart
//! of 256 CPUs stays a few tens of kilobytes.

use crate::layout::{count, percent};
use std::fmt::Write;

/// A share of a stacked bar.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) label: String,
    pub(crate) value: u64,
    /// CSS class of its colour.
    pub(crate) class: &'static str,
}

/// Text that may stand in HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// A horizontal bar of shares with its legend.
pub(crate) fn stacked_bar(title: &str, parts: &[Part]) -> String {
    const WIDTH: u64 = 600;
    let whole: u64 = parts.iter().map(|part| part.value).sum();
    let mut out = String::new();
    let _ = write!(out, "<div class=bar><span class=t>{}</span>", escape(title));
    let _ = write!(out, "<svg viewBox=\"0 0 {WIDTH} 18\" preserveAspectRatio=none role=img>");
    let mut x = 0;
    for part in parts.iter().filter(|part| part.value > 0) {
        let end_of = |value: u64| u128::from(value) * u128::from(WIDTH) * 10 / u128::from(whole.max(1));
        let (from, to) = (end_of(x), end_of(x + part.value));
        x += part.value;
        let _ = write!(
            out,
            "<rect class={} x={}.{} width={}.{} height=18><title>{} {} ({})</title></rect>",
            part.class,
            from / 10,
            from % 10,
            (to - from) / 10,
            (to - from) % 10,
            escape(&part.label),
            count(part.value),
            percent(part.value, whole)
        );
    }
    out.push_str("</svg><span class=l>");
    for part in parts.iter().filter(|part| part.value > 0) {
        let _ = write!(
            out,
            "<span><i class={}></i>{} <b>{}</b></span>",
            part.class,
            escape(&part.label),
            percent(part.value, whole)
        );
    }
    out.push_str("</span></div>\n");
    out
}

/// Bars of two stacked series over named classes.
pub(crate) fn histogram(classes: &[(String, [u64; 2])], series: [(&str, &'static str); 2]) -> String {
    const HEIGHT: u64 = 150;
    let step = (640 / classes.len().max(1) as u64).clamp(8, 44);
    let width = step * classes.len() as u64;
    let most = classes.iter().map(|(_, values)| values[0] + values[1]).max().unwrap_or(0).max(1);
    let mut out = String::new();
    let _ = write!(out, "<svg class=h viewBox=\"0 0 {} {}\" role=img>", width.max(1), HEIGHT + 34);
    for (index, (label, values)) in classes.iter().enumerate() {
        let x = index as u64 * step;
        let mut y = HEIGHT + 12;
        for (value, (name, class)) in values.iter().zip(series) {
            // At least one unit high: a single outlier must be seen.
            let height = if *value == 0 { 0 } else { (value * HEIGHT).div_ceil(most) };
            y -= height.min(y);
            if height > 0 {
                let _ = write!(
                    out,
                    "<rect class={class} x={} y={y} width={} height={height}><title>{} {}: {}</title></rect>",
                    x + 1,
                    step - 2,
                    escape(label),
                    escape(name),
                    count(*value)
                );
            }
        }
        let total = values[0] + values[1];
        let middle = x + step / 2;
        if total > 0 && step >= 24 {
            let _ = write!(
                out,
                "<text class=n x={middle} y={}>{}</text>",
                y.saturating_sub(3).max(8),
                short_count(total)
            );
        }
        if index % 2 == 0 || step >= 40 {
            let _ = write!(out, "<text class=n x={middle} y={}>{}</text>", HEIGHT + 24, escape(label));
        }
    }
    out.push_str("</svg><span class=l>");
    for (name, class) in series {
        let _ = write!(out, "<span><i class={class}></i>{}</span>", escape(name));
    }
    out.push_str("</span>\n");
    out
}

/// `1234567` as `1.2M`.
fn short_count(value: u64) -> String {
    for (scale, unit) in [(1_000_000_000, 'G'), (1_000_000, 'M'), (1_000, 'k')] {
        if value >= scale * 10 {
            return format!("{}{unit}", value / scale);
        }
        if value >= scale {
            return format!("{}.{}{unit}", value / scale, value % scale * 10 / scale);
        }
    }
    value.to_string()
}

/// Cells in rows, each of a class number; `None` is left out. One path a class.
pub(crate) fn cells(
    rows: &[Vec<Option<usize>>],
    size: (u64, u64),
    classes: &[&str],
    attributes: &str,
) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0) as u64;
    let (width, height) = size;
    let mut paths = vec![String::new(); classes.len()];
    for (row, cells) in rows.iter().enumerate() {
        let mut column = 0;
        while column < cells.len() {
            let class = cells[column];
            let run = cells[column..].iter().take_while(|&&cell| cell == class).count();
            if let Some(path) = class.and_then(|class| paths.get_mut(class)) {
                let (x, y, w) = (column as u64 * width, row as u64 * height, run as u64 * width);
                let gap = u64::from(height > 4);
                let _ = write!(path, "M{x} {y}h{w}v{}h-{w}z", height - gap);
            }
            column += run;
        }
    }
    let mut out = String::new();
    let (w, h) = ((columns * width).max(1), (rows.len() as u64 * height).max(1));
    let _ = write!(out, "<svg viewBox=\"0 0 {w} {h}\" {attributes}>");
    for (class, path) in classes.iter().zip(paths).filter(|(_, path)| !path.is_empty()) {
        let _ = write!(out, "<path class={class} d=\"{path}\"/>");
    }
    out.push_str("</svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_reaches_the_markup() {
        assert_eq!(escape("a<b>&\"'\u{7}"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}");
    }

    #[test]
    fn runs_of_one_colour_are_one_piece() {
        let drawn = cells(&[vec![Some(0), Some(0), None, Some(1)]], (2, 3), &["a", "b"], "");
        assert_eq!(
            drawn,
            "<svg viewBox=\"0 0 8 3\" ><path class=a d=\"M0 0h4v3h-4z\"/><path class=b d=\"M6 0h2v3h-2z\"/></svg>"
        );
    }

    #[test]
    fn counts_are_short() {
        assert_eq!(
            [999, 1_234, 56_789, 1_234_567].map(short_count),
            ["999", "1.2k", "56k", "1.2M"].map(str::to_owned)
        );
    }
}
