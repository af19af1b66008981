//! The letters of `prev_state`, from `sched_switch`'s own print format.
//!
//! Which bit means what changed several times (16 was `Z`, is `X`; `R+` was 4096, 2048, 1024, 512, is 256), and vendors
//! back-port, so a table by kernel version would lie. The print format has it all: the pairs of `__print_flags` and the
//! bit behind `? "+"`. Its masks are constant expressions, for which a small evaluator is here.

use ttwu_model::{StateLetter, TaskState};

/// How one recording's `prev_state` numbers read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateTable {
    /// Bit and letter, in the print format's order.
    letters: Vec<(u64, StateLetter)>,
    /// The bits that the letters are chosen by.
    mask: u64,
    /// The bit of the `+`, where this kernel has one.
    preempted: Option<u64>,
}

/// More pairs than the kernel has ever had.
const LETTERS_MAX: usize = 32;

impl StateTable {
    /// A table by its parts: bits with their letters, the bits that letters are chosen by, the bit of the `+`.
    pub(crate) const fn new(letters: Vec<(u64, StateLetter)>, mask: u64, preempted: Option<u64>) -> Self {
        Self { letters, mask, preempted }
    }

    /// Reads `sched_switch`'s print format.
    pub(crate) fn from_print(print: &str) -> Self {
        let mut letters = Vec::new();
        let mut mask = u64::MAX;
        if let Some((_, call)) = print.split_once("__print_flags(") {
            let (value, pairs) = call.split_once("\"|\"").unwrap_or(("", call));
            if let Some((_, expression)) = value.rsplit_once("prev_state &") {
                mask = evaluate(expression.trim().trim_end_matches(',')).unwrap_or(u64::MAX);
            }
            // `{ 1, "S"} , { 2, "D" }`, up to the call's end.
            let pairs = pairs.split(") :").next().unwrap_or_default();
            for pair in pairs.split('{').skip(1).take(LETTERS_MAX) {
                let Some((bit, name)) = pair.split_once(',') else { continue };
                let letter = name.trim().trim_start_matches('"').chars().next();
                if let (Some(bit), Some(letter)) = (evaluate(bit), letter) {
                    letters.push((bit, StateLetter::from_letter(letter)));
                }
            }
        }
        let before_plus = print.split_once("? \"+\"").map(|(before, _)| before);
        let preempted = before_plus
            .and_then(|before| before.rsplit_once("prev_state &"))
            .and_then(|(_, expression)| evaluate(expression));
        Self { letters, mask, preempted }
    }

    /// What a number means. Of several letters (`D|K`) the first counts, as the rest only qualify it.
    pub(crate) fn decode(&self, number: u64) -> TaskState {
        let preempted = self.preempted.map(|bit| number & bit != 0);
        let state = number & self.mask;
        if state == 0 {
            return TaskState::new(StateLetter::Running, preempted);
        }
        if self.letters.is_empty() {
            return TaskState::new(StateLetter::Unknown, preempted);
        }
        let found = self.letters.iter().find(|&&(bit, _)| bit != 0 && state & bit == bit);
        TaskState::new(found.map_or(StateLetter::Other, |&(_, letter)| letter), preempted)
    }
}

/// Nesting that no real print format reaches; bounds the recursion on hostile ones.
const DEPTH_MAX: usize = 64;

/// The value of a C expression of numbers, `|`, `+`, `-`, `<<` and parentheses; `None` if it is anything else. A
/// surplus of closing parentheses ends it.
fn evaluate(expression: &str) -> Option<u64> {
    let mut rest = expression;
    let value = or(&mut rest, 0)?;
    rest.trim_start_matches([')', ' ']).is_empty().then_some(value)
}

/// Binary operators by C's precedence, loosest first.
fn or(rest: &mut &str, depth: usize) -> Option<u64> {
    let mut value = shift(rest, depth)?;
    while take(rest, "|") {
        value |= shift(rest, depth)?;
    }
    Some(value)
}

fn shift(rest: &mut &str, depth: usize) -> Option<u64> {
    let mut value = sum(rest, depth)?;
    while take(rest, "<<") {
        value = value.checked_shl(u32::try_from(sum(rest, depth)?).ok()?)?;
    }
    Some(value)
}

fn sum(rest: &mut &str, depth: usize) -> Option<u64> {
    let mut value = atom(rest, depth)?;
    loop {
        if take(rest, "+") {
            value = value.wrapping_add(atom(rest, depth)?);
        } else if take(rest, "-") {
            value = value.wrapping_sub(atom(rest, depth)?);
        } else {
            return Some(value);
        }
    }
}

fn atom(rest: &mut &str, depth: usize) -> Option<u64> {
    if depth >= DEPTH_MAX {
        return None;
    }
    if take(rest, "(") {
        let value = or(rest, depth + 1)?;
        return take(rest, ")").then_some(value);
    }
    let text = rest.trim_start();
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let len = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..len], radix).ok()?;
    *rest = digits[len..].trim_start_matches(['U', 'L', 'u', 'l']);
    Some(value)
}

fn take(rest: &mut &str, token: &str) -> bool {
    match rest.trim_start().strip_prefix(token) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated_as_c_does() {
        for (text, expect) in [
            ("(1024-1)", Some(1023)),
            ("((((0x0000 | 0x0001 | 0x0040) + 1) << 1) - 1)", Some(131)),
            ("256 ", Some(256)),
            ("1 | 2 << 3 + 1", Some(33)),
            ("(1024-1))", Some(1023)),
            ("REC->x", None),
            ("(1", None),
            ("", None),
        ] {
            assert_eq!(evaluate(text), expect, "{text}");
        }
        assert_eq!(evaluate(&"(".repeat(1_000_000)), None);
    }

    fn check(print: &str, expect: &[(u64, &str)]) {
        let table = StateTable::from_print(print);
        for &(number, text) in expect {
            assert_eq!(table.decode(number).to_string(), text, "{number:#x} by {table:?}");
        }
    }

    #[test]
    fn each_era_has_its_own_table() {
        let android_3_4 = r#"REC->prev_state & (512-1) ? __print_flags(REC->prev_state & (512-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "W" }) : "R", REC->prev_state & 512 ? "+" : "", REC->next_comm"#;
        check(android_3_4, &[(0, "R"), (512, "R+"), (1, "S"), (16, "Z"), (64, "X"), (128, "O"), (0x82, "D")]);
        let v6_18 = r#"(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R", REC->prev_state & (((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) ? "+" : "", REC->next_comm"#;
        check(v6_18, &[(0, "R"), (256, "R+"), (16, "X"), (32, "Z"), (128, "I"), (64, "P"), (0x101, "S+")]);
        // Before 3.x there was no `+`, so nothing is known of preemption.
        let old = r#"REC->prev_state ? __print_flags(REC->prev_state, "|", { 1, "S"} , { 2, "D" }) : "R""#;
        assert_eq!(StateTable::from_print(old).decode(0).preempted(), None);
        check(old, &[(0, "R"), (1, "S"), (2, "D"), (64, "O")]);
        check("nothing that we know", &[(0, "R"), (1, "?")]);
    }
}
