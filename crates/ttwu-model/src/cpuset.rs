//! A set of CPUs, and the kernel's list form of it (`0-3,8,10-11`).

use crate::CpuId;
use std::fmt;

/// A set of CPUs as a bit mask that grows as needed. Equal sets compare equal whatever their capacity.
#[derive(Clone, Default)]
pub struct CpuSet {
    words: Vec<u64>,
}

/// Why a text is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad CPU list `{list}`: expected ranges such as `0-3,8`, found `{found}`")]
pub struct CpuSetError {
    list: String,
    found: String,
}

impl CpuSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// CPUs 0 up to but not including `count`.
    #[must_use]
    pub fn first(count: usize) -> Self {
        (0..count).map(|cpu| CpuId::new(u16::try_from(cpu).expect("at most 65536 CPUs"))).collect()
    }

    /// Reads the kernel's list form: `0-3,8`, empty for no CPU. Also takes its stride form `0-31:2/4`.
    ///
    /// # Errors
    /// When an item is not a number or an ascending range of numbers below 65536.
    pub fn parse_list(list: &str) -> Result<Self, CpuSetError> {
        let mut set = Self::new();
        for item in list.trim().split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let bad = || CpuSetError { list: list.trim().to_owned(), found: item.to_owned() };
            let (range, stride) = match item.split_once(':') {
                Some((range, stride)) => (range, Some(stride)),
                None => (item, None),
            };
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let low: u16 = low.trim().parse().map_err(|_| bad())?;
            let high: u16 = high.trim().parse().map_err(|_| bad())?;
            let (used, group) = match stride {
                None => (1, 1),
                Some(stride) => {
                    let (used, group) = stride.split_once('/').ok_or_else(bad)?;
                    (used.parse::<u16>().map_err(|_| bad())?, group.parse::<u16>().map_err(|_| bad())?)
                }
            };
            if low > high || used == 0 || group == 0 || used > group {
                return Err(bad());
            }
            for cpu in low..=high {
                if (cpu - low) % group < used {
                    set.insert(CpuId::new(cpu));
                }
            }
        }
        Ok(set)
    }

    /// Adds `cpu`; was it absent?
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (cpu.index() / 64, 1u64 << (cpu.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let absent = self.words[word] & bit == 0;
        self.words[word] |= bit;
        absent
    }

    /// Takes `cpu` out; was it present?
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (cpu.index() / 64, 1u64 << (cpu.index() % 64));
        match self.words.get_mut(word) {
            Some(bits) if *bits & bit != 0 => {
                *bits &= !bit;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Is `cpu` in the set?
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|bits| bits & (1 << (cpu.index() % 64)) != 0)
    }

    /// How many CPUs are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Is it the empty set?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&bits| bits == 0)
    }

    /// The mask as words of 64 CPUs, CPU 0 in the lowest bit of the first word; CPUs beyond the last word are absent.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The CPU with the lowest number.
    #[must_use]
    pub fn lowest(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The CPUs in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        Members { bits: 0, rest: &self.words, next_word: 0 }
    }

    /// The CPUs in the kernel's wrapping scan order: from `start` (or the next member above it) upwards, then from the
    /// lowest up to just before `start`.
    pub fn scan(&self, start: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        Scan::new(&self.words, &self.words, start)
    }

    /// As [`CpuSet::scan`], over the CPUs in both sets.
    pub fn scan_within<'a>(&'a self, other: &'a Self, start: CpuId) -> impl Iterator<Item = CpuId> + 'a {
        Scan::new(&self.words, &other.words, start)
    }

    /// CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() }
    }

    /// CPUs in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let word = |set: &Self, index: usize| set.words.get(index).copied().unwrap_or(0);
        let len = self.words.len().max(other.words.len());
        Self { words: (0..len).map(|index| word(self, index) | word(other, index)).collect() }
    }

    /// CPUs in this set and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let word = |index: usize| other.words.get(index).copied().unwrap_or(0);
        Self { words: self.words.iter().enumerate().map(|(index, bits)| bits & !word(index)).collect() }
    }

    /// Is every CPU of this set in `other`?
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Do the sets share a CPU?
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    fn significant(&self) -> &[u64] {
        let len = self.words.iter().rposition(|&bits| bits != 0).map_or(0, |last| last + 1);
        &self.words[..len]
    }
}

/// A walk over one mask, in increasing order.
struct Members<'a> {
    /// What is left of the word under way, and the words after it.
    bits: u64,
    rest: &'a [u64],
    next_word: usize,
}

impl Iterator for Members<'_> {
    type Item = CpuId;

    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        while self.bits == 0 {
            let (&word, rest) = self.rest.split_first()?;
            (self.bits, self.rest) = (word, rest);
            self.next_word += 1;
        }
        let bit = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        let number = (self.next_word - 1) * 64 + bit;
        Some(CpuId::new(u16::try_from(number).expect("inserted as a u16")))
    }
}

/// A wrapping walk over the CPUs in two masks: word by word, since the idle search of a wake-up is made of it.
struct Scan<'a> {
    a: &'a [u64],
    b: &'a [u64],
    /// The word under way, and what is left of it.
    index: usize,
    bits: u64,
    start: CpuId,
    wrapped: bool,
}

impl<'a> Scan<'a> {
    fn new(a: &'a [u64], b: &'a [u64], start: CpuId) -> Self {
        let index = start.index() / 64;
        let mut scan = Self { a, b, index, bits: 0, start, wrapped: false };
        scan.bits = scan.word(index) & (u64::MAX << (start.index() % 64));
        scan
    }

    fn word(&self, index: usize) -> u64 {
        self.a.get(index).copied().unwrap_or(0) & self.b.get(index).copied().unwrap_or(0)
    }
}

impl Iterator for Scan<'_> {
    type Item = CpuId;

    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        while self.bits == 0 {
            let last = self.start.index() / 64;
            self.index += 1;
            if !self.wrapped && self.index >= self.a.len() {
                self.wrapped = true;
                self.index = 0;
            }
            if self.wrapped && self.index > last.min(self.a.len()) {
                return None;
            }
            self.bits = self.word(self.index);
            if self.wrapped && self.index == last {
                self.bits &= !(u64::MAX << (self.start.index() % 64));
            }
        }
        let bit = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(CpuId::new(u16::try_from(self.index * 64 + bit).expect("inserted as a u16")))
    }
}

impl PartialEq for CpuSet {
    fn eq(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }
}

impl Eq for CpuSet {}

impl std::hash::Hash for CpuSet {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.significant().hash(state);
    }
}

impl PartialOrd for CpuSet {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CpuSet {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.iter().cmp(other.iter())
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut set = Self::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl fmt::Display for CpuSet {
    /// The kernel's list form, `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(low) = cpus.next() {
            let mut high = low;
            while let Some(&next) = cpus.peek() {
                if next.index() != high.index() + 1 {
                    break;
                }
                high = next;
                cpus.next();
            }
            if low == high {
                write!(f, "{separator}{low}")?;
            } else {
                write!(f, "{separator}{low}-{high}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, printed: &str, len: usize) {
        let set = CpuSet::parse_list(list).expect(list);
        assert_eq!(set.to_string(), printed);
        assert_eq!(set.len(), len);
        assert_eq!(CpuSet::parse_list(printed).expect(printed), set);
    }

    #[test]
    fn lists_are_read_and_printed_as_the_kernel_does() {
        check("", "", 0);
        check("0", "0", 1);
        check("0-3,8,10-11\n", "0-3,8,10-11", 7);
        check("3,1,2", "1-3", 3);
        check("0-7:1/2", "0,2,4,6", 4);
        check("63-64,200", "63-64,200", 3);
    }

    #[test]
    fn bad_lists_name_the_item() {
        for list in ["a", "3-1", "1-", "70000", "0-7:3/2", "0-7:0/2"] {
            let error = CpuSet::parse_list(list).expect_err(list);
            assert!(error.to_string().contains(list), "{error}");
        }
    }

    #[test]
    fn scan_wraps_at_the_start() {
        let set = CpuSet::parse_list("1,4,9").unwrap();
        let order = |start| set.scan(CpuId::new(start)).map(CpuId::number).collect::<Vec<_>>();
        assert_eq!(order(0), [1, 4, 9]);
        assert_eq!(order(4), [4, 9, 1]);
        assert_eq!(order(5), [9, 1, 4]);
        assert_eq!(order(10), [1, 4, 9]);
    }

    /// Against the definition, over word borders, empty sets and starts beyond the last CPU.
    #[test]
    fn scans_equal_their_definition() {
        for (a, b) in [
            ("", ""),
            ("0", "0-3"),
            ("63-64,127-128", "0-200"),
            ("5,70,300", "70,300"),
            ("0-511", "0-511"),
            ("1-9", "300"),
            ("64-127", "64-127"),
        ] {
            let (a, b) = (CpuSet::parse_list(a).unwrap(), CpuSet::parse_list(b).unwrap());
            for start in [0, 1, 5, 6, 62, 63, 64, 65, 127, 128, 129, 300, 301, 511, 512, 1000, u16::MAX] {
                let start = CpuId::new(start);
                let both = a.intersection(&b);
                let members = || (0..600).map(CpuId::new).filter(|&cpu| both.contains(cpu));
                let above = members().filter(|&cpu| cpu >= start);
                let expected: Vec<_> = above.chain(members().filter(|&cpu| cpu < start)).collect();
                assert!(both.iter().eq(members()), "{both}");
                for (one, other) in [(&a, &b), (&b, &a)] {
                    let mut scan = one.scan_within(other, start);
                    assert_eq!(scan.by_ref().collect::<Vec<_>>(), expected, "{a} {b} from {start}");
                    assert_eq!(scan.next(), None, "a scan stays at its end");
                }
                assert_eq!(both.scan(start).collect::<Vec<_>>(), expected, "{a} {b} from {start}");
            }
        }
    }

    #[test]
    fn equality_ignores_capacity() {
        let mut set = CpuSet::parse_list("1,200").unwrap();
        set.remove(CpuId::new(200));
        assert_eq!(set, CpuSet::parse_list("1").unwrap());
        assert!(set.is_subset(&CpuSet::first(2)));
        assert!(!CpuSet::first(2).is_subset(&set));
    }
}
