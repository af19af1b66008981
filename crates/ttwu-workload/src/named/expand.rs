//! Ranges in a workload's name: `hackbench:groups=1..4` is four workloads.

use super::NameError;
use super::options::split;

/// More cells than anybody means.
const CELLS_MAX: usize = 10_000;

/// The names that a name with ranges stands for, in order, the last range turning fastest. `A..B` counts by one, `A..B+N` by N,
/// `A..B*N` multiplies by N, and `{X,Y,Z}` lists; both ends are included.
///
/// # Errors
/// Ranges that fall or never end, and products of more than 10000.
pub fn expand(text: &str) -> Result<Vec<String>, NameError> {
    let mut done = vec![String::new()];
    let mut offset = 0;
    for (number, part) in text.split('&').enumerate() {
        if number > 0 {
            done.iter_mut().for_each(|name| name.push_str(" & "));
        }
        let start = offset + part.len() - part.trim_start().len();
        expand_part(part.trim(), start, &mut done)?;
        offset += part.len() + 1;
    }
    Ok(done)
}

fn expand_part(part: &str, start: usize, done: &mut Vec<String>) -> Result<(), NameError> {
    let Some((name, options)) = part.split_once(':') else {
        done.iter_mut().for_each(|text| text.push_str(part));
        return Ok(());
    };
    done.iter_mut().for_each(|text| text.push_str(name));
    for (number, (offset, item)) in split(options).into_iter().enumerate() {
        let fail = |message: String| NameError { offset: start + name.len() + 1 + offset, message };
        let values = match item.split_once('=') {
            Some((option, value)) => values(value.trim())
                .map_err(|reason| fail(format!("{option}: {reason}")))?
                .into_iter()
                .map(|value| format!("{}={value}", option.trim()))
                .collect(),
            None => vec![item.to_owned()],
        };
        if done.len() * values.len() > CELLS_MAX {
            return Err(fail(format!("expected at most {CELLS_MAX} workloads")));
        }
        let separator = if number == 0 { ':' } else { ',' };
        *done = done
            .iter()
            .flat_map(|text| values.iter().map(move |value| format!("{text}{separator}{value}")))
            .collect();
    }
    Ok(())
}

fn values(value: &str) -> Result<Vec<String>, String> {
    if let Some(inner) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        return Ok(split(inner).into_iter().map(|(_, item)| item.to_owned()).collect());
    }
    let Some((low, rest)) = value.split_once("..").filter(|_| !value.contains('(')) else {
        return Ok(vec![value.to_owned()]);
    };
    let (high, step) = match rest.find(['+', '*']) {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, "+1"),
    };
    let number = |text: &str| {
        text.trim().parse::<u64>().map_err(|_| {
            format!("expected a range such as `1..4`, `1..128*2` or `0..90+10`, found `{value}`")
        })
    };
    let (low, high, by) = (number(low)?, number(high)?, number(&step[1..])?);
    let multiplies = step.starts_with('*');
    if low > high || by == 0 || (multiplies && (by == 1 || low == 0)) {
        return Err(format!("the range `{value}` is empty or never ends"));
    }
    let next = |at: &u64| if multiplies { at.checked_mul(by) } else { at.checked_add(by) };
    let values: Vec<String> = std::iter::successors(Some(low), next)
        .take_while(|at| *at <= high)
        .take(CELLS_MAX + 1)
        .map(|at| at.to_string())
        .collect();
    Ok(values)
}
