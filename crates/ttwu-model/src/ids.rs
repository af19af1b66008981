//! Dense ids. A pid is an attribute of a task, never a key: pids are reused, `TaskId`s are not.

use std::fmt;
use std::num::NonZeroU32;

/// A logical CPU, numbered as Linux numbers it.
///
/// 16 bits: Linux's largest `NR_CPUS` is 8192, and events are stored by the hundred million. Readers refuse (or count as
/// unknown) anything that does not fit instead of truncating it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuId(u16);

impl CpuId {
    /// The CPU with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number, for indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The number as Linux prints it.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl TryFrom<u64> for CpuId {
    type Error = std::num::TryFromIntError;

    fn try_from(number: u64) -> Result<Self, Self::Error> {
        u16::try_from(number).map(Self)
    }
}

impl fmt::Debug for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A task of one trace: one incarnation of a pid. Dense from 0, so it indexes a `Vec`.
///
/// [`TaskId::IDLE`] stands for the idle task of whatever CPU the event is on; Linux gives all of them pid 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u32);

impl TaskId {
    /// The idle task (`swapper/N`) of the CPU at hand.
    pub const IDLE: Self = Self(0);

    /// The task with this dense number.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The dense number, for indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Is this the idle task?
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task{}", self.0)
    }
}

/// A process id in the root pid namespace, as tracepoints carry it. Not a key: see [`TaskId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pid(i32);

impl Pid {
    /// The idle tasks' shared pid.
    pub const IDLE: Self = Self(0);
    /// What a reader gives where its source does not say which task it was.
    pub const UNKNOWN: Self = Self(-1);

    /// A pid with this number.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// The number as Linux prints it.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid{}", self.0)
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A string of one trace (a task name, a call site, an interrupt's name), interned in [`crate::Strings`].
///
/// Non-zero inside, so that `Option<StrId>` costs four bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrId(NonZeroU32);

impl StrId {
    pub(crate) fn from_index(index: usize) -> Self {
        let number = u32::try_from(index + 1).expect("a trace has fewer than 2^32 distinct strings");
        Self(NonZeroU32::new(number).expect("index + 1 is not zero"))
    }

    /// The dense number, for indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl fmt::Debug for StrId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "str{}", self.index())
    }
}
