//! What a text's `prev_state` means. Three ways to print it lose different things, and the text itself must tell them apart:
//!
//! * letters (`prev_state=R+`): the kernel's own print format; exact.
//! * libtraceevent's plugin (`comm:pid [prio] R ==> …`: `trace-cmd report`, `perf script` of perf 7): the `+` is dropped, and
//!   older versions print by a fixed table of bits, `SDTtZXxW`, so that on kernels since 4.14 `W` is `I`, `X` is `Z`,
//!   `Z` is `X` and `x` is `P`. Newer versions print the kernel's letters.
//! * numbers (`prev_state=256`: `trace-cmd report -R`): the bits changed meaning several times, and the text does not name
//!   the kernel.
//!
//! So the text is searched for evidence before the first event is handed out ([`Evidence`]); what it shows is said in
//! the trace's notes, and what it does not show is unknown.

use super::scan::Scan;
use std::collections::BTreeMap;
use ttwu_model::{StateLetter, TaskState};

/// Distinct numbers that are kept as evidence; real kernels show about ten.
const NUMBERS_MAX: usize = 256;
/// The bits that have marked a preemption, newest kernels last.
const PREEMPTED_BITS: [u64; 5] = [4096, 2048, 1024, 512, 256];

/// How often a number occurred, and how often the idle task ran next.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: u64,
    to_idle: u64,
}

/// What a text shows about the way it prints states.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    letters: u64,
    plugin: u64,
    plugin_w: u64,
    plugin_i: u64,
    plugin_plus: u64,
    plugin_ambiguous: u64,
    numbers: BTreeMap<u64, Count>,
}

impl Evidence {
    /// Takes the payload of one `sched_switch`.
    pub(super) fn add(&mut self, payload: &[u8]) {
        let mut scan = Scan::new(payload);
        if !scan.skip_past(b" prev_state=") {
            let mut scan = Scan::new(payload);
            if scan.skip_past(b"] ") {
                self.add_plugin(scan.word());
            }
        } else if scan.rest().first().is_some_and(u8::is_ascii_digit) {
            let Some(number) = scan.unsigned() else { return };
            if self.numbers.len() < NUMBERS_MAX || self.numbers.contains_key(&number) {
                let count = self.numbers.entry(number).or_default();
                count.all += 1;
                count.to_idle += u64::from(scan.skip_past(b" next_pid=") && scan.word() == b"0");
            }
        } else {
            self.letters += 1;
        }
    }

    fn add_plugin(&mut self, letters: &[u8]) {
        self.plugin += 1;
        self.plugin_w += u64::from(letters == b"W");
        self.plugin_i += u64::from(letters == b"I");
        self.plugin_plus += u64::from(letters.ends_with(b"+"));
        self.plugin_ambiguous += u64::from(matches!(letters, b"X" | b"Z" | b"x"));
    }

    /// Would more lines add nothing?
    pub(super) fn is_complete(&self) -> bool {
        self.letters > 0 || self.plugin_w + self.plugin_i > 0
    }

    /// Did any line print states in this way?
    pub(super) fn style(&self) -> Option<&'static str> {
        if self.plugin > 0 {
            Some("plugin text")
        } else if !self.numbers.is_empty() {
            Some("raw fields")
        } else {
            None
        }
    }
}

/// Which table libtraceevent's plugin printed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PluginTable {
    /// `SDTtZXxW` by bit, on a kernel since 4.14.
    Fixed,
    /// The kernel's own letters.
    Kernel,
    Unknown,
}

/// Which bits `prev_state` numbers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NumberTable {
    /// The bit of a preemption, if the text shows which.
    preempted: Option<u64>,
    /// Since 4.14 (16 is `X`, 32 `Z`, 64 `P`, 128 `I`), or before (64 is `x`)?
    modern: Option<bool>,
}

/// How one text's states read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct States {
    plugin: PluginTable,
    plugin_prints_plus: bool,
    numbers: NumberTable,
}

impl States {
    /// Decides by the evidence, and says in `notes` what was decided.
    pub(super) fn new(evidence: &Evidence, notes: &mut Vec<String>) -> Self {
        let plugin = match evidence {
            Evidence { plugin_i: 1.., .. } => PluginTable::Kernel,
            Evidence { plugin_w: 1.., .. } => PluginTable::Fixed,
            _ => PluginTable::Unknown,
        };
        if evidence.plugin > 0 && evidence.plugin_plus == 0 {
            notes.push(
                "task states are libtraceevent's plugin text, which drops the + of R+: whether a task was preempted inside \
                 the kernel is unknown (trace-cmd report -N or -R keeps it)"
                    .to_owned(),
            );
        }
        match plugin {
            PluginTable::Fixed => notes.push(
                "states W, X, Z and x are read as I, Z, X and P: libtraceevent printed a newer kernel's bits by its old table"
                    .to_owned(),
            ),
            PluginTable::Unknown if evidence.plugin_ambiguous > 0 => notes.push(
                "states X and Z cannot be told apart here, both are read as dead; x is unknown".to_owned(),
            ),
            PluginTable::Unknown | PluginTable::Kernel => {}
        }
        let numbers = NumberTable::new(&evidence.numbers);
        if !evidence.numbers.is_empty() {
            notes.push(numbers.note());
        }
        Self { plugin, plugin_prints_plus: evidence.plugin_plus > 0, numbers }
    }

    /// The state behind `prev_state=`: letters or a number.
    pub(super) fn field(&self, word: &[u8]) -> TaskState {
        match word.first() {
            None => TaskState::new(StateLetter::Unknown, None),
            Some(digit) if digit.is_ascii_digit() => match Scan::new(word).unsigned() {
                Some(number) => self.numbers.decode(number),
                None => TaskState::new(StateLetter::Unknown, None),
            },
            // Of several letters (`D|K`) the first counts, as the rest only qualify it.
            Some(&letter) => {
                TaskState::new(StateLetter::from_letter(char::from(letter)), Some(word.ends_with(b"+")))
            }
        }
    }

    /// The state in the plugin's text.
    pub(super) fn plugin(&self, word: &[u8]) -> TaskState {
        let letter = match (self.plugin, word) {
            (PluginTable::Fixed, b"W") => StateLetter::Idle,
            (PluginTable::Fixed, b"X") => StateLetter::Zombie,
            (PluginTable::Fixed, b"x") => StateLetter::Parked,
            (PluginTable::Fixed, b"Z") | (PluginTable::Unknown, b"X" | b"Z") => StateLetter::Dead,
            (PluginTable::Unknown, b"x" | b"W") => StateLetter::Unknown,
            (_, []) => StateLetter::Unknown,
            (_, [letter, ..]) => StateLetter::from_letter(char::from(*letter)),
        };
        TaskState::new(letter, self.plugin_prints_plus.then(|| word.ends_with(b"+")))
    }
}

impl NumberTable {
    /// A number that is exactly one candidate bit is `R` with that bit as the `+` of its era, unless the idle task ran
    /// next: a runnable task is not switched out for idle.
    fn new(numbers: &BTreeMap<u64, Count>) -> Self {
        let is_preemption =
            |&bit: &u64| numbers.get(&bit).is_some_and(|count| count.to_idle * 10 <= count.all);
        if let Some(bit) = PREEMPTED_BITS.into_iter().find(is_preemption) {
            return Self { preempted: Some(bit), modern: Some(bit == 256) };
        }
        let seen = |bits: &[u64]| bits.iter().any(|bit| numbers.contains_key(bit));
        // Before 4.14 a dying task showed 64; 16 and 32 were never shown, nor 128 alone. 130 and 1026 ended with 4.14.
        if seen(&[16, 32, 128]) {
            return Self { preempted: Some(256), modern: Some(true) };
        }
        Self { preempted: None, modern: seen(&[130, 1026]).then_some(false) }
    }

    fn decode(self, number: u64) -> TaskState {
        let preempted = self.preempted.map(|bit| number & bit != 0);
        let state = number & !self.preempted.unwrap_or(0);
        let letter = match (state & state.wrapping_neg(), self.modern) {
            (0, _) => StateLetter::Running,
            (1, _) => StateLetter::Sleeping,
            (2, _) => StateLetter::DiskSleep,
            (4, _) => StateLetter::Stopped,
            (8, _) => StateLetter::Traced,
            (16, Some(true)) | (64, Some(false)) => StateLetter::Dead,
            (32, Some(true)) => StateLetter::Zombie,
            (64, Some(true)) => StateLetter::Parked,
            (128, Some(true)) => StateLetter::Idle,
            (512, Some(false)) => StateLetter::Parked,
            (16..=128, None) => StateLetter::Unknown,
            (256.., None) => StateLetter::Unknown,
            _ => StateLetter::Other,
        };
        TaskState::new(letter, preempted)
    }

    fn note(self) -> String {
        let era = match self.modern {
            Some(true) => "of kernels since 4.14 (16 X, 32 Z, 64 P, 128 I)",
            Some(false) => "of kernels before 4.14 (64 X, 512 P)",
            None => "of an unknown era (states from 16 on are unknown)",
        };
        match self.preempted {
            Some(bit) => {
                format!("task states are numbers, read as those {era}, R+ is {bit}, by the values that occur")
            }
            None => format!(
                "task states are numbers, read as those {era}; none shows which bit is R+, so preempted is unknown"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `words` by a text in which exactly `payloads` occur.
    fn check(payloads: &[&str], words: &[(&str, &str, Option<bool>)]) {
        let mut evidence = Evidence::default();
        for payload in payloads {
            evidence.add(payload.as_bytes());
        }
        let states = States::new(&evidence, &mut Vec::new());
        for &(word, text, preempted) in words {
            let state = match payloads[0].contains("prev_state=") {
                true => states.field(word.as_bytes()),
                false => states.plugin(word.as_bytes()),
            };
            assert_eq!((state.to_string().as_str(), state.preempted()), (text, preempted), "{word}");
        }
    }

    fn number(state: u64, next: i32) -> String {
        format!(
            "prev_comm=a prev_pid=1 prev_prio=120 prev_state={state} next_comm=b next_pid={next} next_prio=120"
        )
    }

    #[test]
    fn letters_are_exact() {
        check(
            &["prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120"],
            &[
                ("R", "R", Some(false)),
                ("R+", "R+", Some(true)),
                ("D|K", "D", Some(false)),
                ("I", "I", Some(false)),
            ],
        );
    }

    #[test]
    fn plugin_text_by_the_old_table_on_a_new_kernel() {
        check(
            &["a:1 [120] S ==> b:2 [120]", "rcu:15 [120] W ==> b:2 [120]"],
            &[
                ("R", "R", None),
                ("W", "I", None),
                ("X", "Z", None),
                ("Z", "X", None),
                ("x", "P", None),
                ("D", "D", None),
            ],
        );
    }

    #[test]
    fn plugin_text_with_the_kernels_letters() {
        check(&["rcu:15 [120] I ==> b:2 [120]"], &[("X", "X", None), ("Z", "Z", None), ("P", "P", None)]);
    }

    #[test]
    fn plugin_text_without_evidence() {
        check(
            &["a:1 [120] S ==> b:2 [120]"],
            &[("X", "X", None), ("Z", "X", None), ("x", "?", None), ("S", "S", None)],
        );
    }

    #[test]
    fn numbers_by_era() {
        check(
            &[&number(256, 5), &number(1, 0), &number(32, 0)],
            &[
                ("256", "R+", Some(true)),
                ("0", "R", Some(false)),
                ("16", "X", Some(false)),
                ("128", "I", Some(false)),
            ],
        );
        check(
            &[&number(4096, 5), &number(64, 0)],
            &[
                ("4096", "R+", Some(true)),
                ("64", "X", Some(false)),
                ("130", "D", Some(false)),
                ("1026", "D", Some(false)),
            ],
        );
        check(
            &[&number(1024, 5)],
            &[("1024", "R+", Some(true)), ("1025", "S+", Some(true)), ("512", "P", Some(false))],
        );
        check(&[&number(32, 0)], &[("256", "R+", Some(true)), ("64", "P", Some(false))]);
    }

    #[test]
    fn a_state_in_which_the_cpu_goes_idle_is_no_preemption() {
        check(
            &[&number(256, 0), &number(256, 0), &number(64, 0), &number(1, 0)],
            &[("256", "?", None), ("64", "?", None), ("1", "S", None), ("0", "R", None)],
        );
    }
}
