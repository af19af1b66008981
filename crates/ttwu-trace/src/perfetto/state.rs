//! `prev_state` numbers by kernel version.
//!
//! A Perfetto trace has the kernel's raw number and no print format to read it by, but it has the kernel's release. Four
//! layouts have existed; v4.14 made the reported states independent of the internal ones, and it has stayed so.

use crate::tracepoint::StateTable;
use ttwu_model::{StateLetter, TaskState};

/// How the kernels of one era number the states.
#[derive(Debug, Clone)]
pub(super) struct States {
    letters: &'static [(u64, StateLetter)],
    /// The bit of `R+`; all bits below it are states.
    preempted: u64,
    table: StateTable,
}

const MODERN: &[(u64, StateLetter)] = &[
    (0x01, StateLetter::Sleeping),
    (0x02, StateLetter::DiskSleep),
    (0x04, StateLetter::Stopped),
    (0x08, StateLetter::Traced),
    (0x10, StateLetter::Dead),
    (0x20, StateLetter::Zombie),
    (0x40, StateLetter::Parked),
    (0x80, StateLetter::Idle),
];

/// 16 and 32 had the other way round meant zombie and dead; 64 is `x`, also dead; 128 and up qualify.
const OLD: &[(u64, StateLetter)] = &[
    (0x01, StateLetter::Sleeping),
    (0x02, StateLetter::DiskSleep),
    (0x04, StateLetter::Stopped),
    (0x08, StateLetter::Traced),
    (0x10, StateLetter::Zombie),
    (0x20, StateLetter::Dead),
    (0x40, StateLetter::Dead),
    (0x80, StateLetter::Other),
    (0x100, StateLetter::Other),
    (0x200, StateLetter::Parked),
    (0x400, StateLetter::Other),
    (0x800, StateLetter::Other),
];

impl States {
    /// The numbering of a kernel release such as `6.1.0-18-amd64`; the present one where it is not known.
    pub(super) fn of_release(release: Option<&str>) -> Self {
        let mut numbers = release.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
        let (letters, preempted) = match (number(), number()) {
            (Some(major), Some(minor)) if (major, minor) < (3, 9) => (&OLD[..9], 0x200),
            (Some(major), Some(minor)) if (major, minor) < (4, 2) => (&OLD[..10], 0x400),
            (Some(major), Some(minor)) if (major, minor) < (4, 10) => (&OLD[..11], 0x800),
            (Some(major), Some(minor)) if (major, minor) < (4, 14) => (OLD, 0x1000),
            (Some(_) | None, _) => (MODERN, 0x100),
        };
        let table = StateTable::new(letters.to_vec(), preempted - 1, Some(preempted));
        Self { letters, preempted, table }
    }

    /// What a number means.
    pub(super) fn decode(&self, number: u64) -> TaskState {
        if number >= 2 * self.preempted {
            return TaskState::new(StateLetter::Unknown, None);
        }
        self.table.decode(number)
    }

    /// The number to write for a state. One that these kernels cannot say becomes a bit that they do not use, which
    /// Perfetto shows as unknown; that it is not known whether `R` was `R+` is lost.
    pub(super) fn encode(&self, state: TaskState) -> u64 {
        let preempted = if state.preempted() == Some(true) { self.preempted } else { 0 };
        if state.is_runnable() {
            return preempted;
        }
        let letter = self.letters.iter().find(|&&(_, letter)| letter == state.letter());
        letter.map_or(2 * self.preempted, |&(bit, _)| bit | preempted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_has_its_table() {
        let check = |release: Option<&str>, number, expect: &str| {
            let state = States::of_release(release).decode(number);
            assert_eq!(state.to_string(), expect, "{release:?} {number:#x}");
        };
        check(Some("3.4.0-gd59db4e"), 0x200, "R+");
        check(Some("3.10.49"), 0x400, "R+");
        check(Some("4.4.88"), 0x800, "R+");
        check(Some("4.4.88"), 0x10, "Z");
        check(Some("4.19.113-22067904"), 0x10, "X");
        check(Some("6.18"), 0x100, "R+");
        check(Some("6.18"), 0x80, "I");
        check(None, 0x102, "D+");
        check(Some("unknown"), 0, "R");
    }

    #[test]
    fn states_are_written_as_they_are_read() {
        for release in ["3.4", "3.18", "4.9", "4.13", "6.6"] {
            let states = States::of_release(Some(release));
            for letter in "RSDTtXZ".chars() {
                let state = TaskState::new(StateLetter::from_letter(letter), Some(false));
                assert_eq!(states.decode(states.encode(state)), state, "{release}");
            }
        }
        let unknown = TaskState::new(StateLetter::Unknown, None);
        let states = States::of_release(None);
        assert_eq!(states.decode(states.encode(unknown)), unknown);
    }
}
