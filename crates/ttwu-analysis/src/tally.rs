//! A counter table keyed by packed ids, for the hot paths of analyses.
//!
//! Open addressing with a fixed multiplicative hash: a lookup is a few nanoseconds and allocates nothing, where a
//! `BTreeMap` costs a hundred. The order of the table never shows: results are read through [`Tally::sorted`] only.
//!
//! What this does not do: remove keys.

/// Values by packed key; a key's value starts as `V::default()`.
#[derive(Clone, Debug)]
pub(crate) struct Tally<V> {
    slots: Vec<(u64, V)>,
    used: usize,
}

/// No packed key has all bits set: task ids and CPU numbers that large do not occur.
const EMPTY: u64 = u64::MAX;

impl<V> Default for Tally<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), used: 0 }
    }
}

impl<V: Copy + Default> Tally<V> {
    /// The value of `key`, new or known.
    pub(crate) fn entry(&mut self, key: u64) -> &mut V {
        debug_assert_ne!(key, EMPTY);
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let index = Self::find(&self.slots, key);
        if self.slots[index].0 == EMPTY {
            self.slots[index].0 = key;
            self.used += 1;
        }
        &mut self.slots[index].1
    }

    /// All keys with their values, by key.
    pub(crate) fn sorted(&self) -> Vec<(u64, V)> {
        let mut all: Vec<_> = self.slots.iter().copied().filter(|&(key, _)| key != EMPTY).collect();
        all.sort_unstable_by_key(|&(key, _)| key);
        all
    }

    fn find(slots: &[(u64, V)], key: u64) -> usize {
        let mask = slots.len() - 1;
        // The topmost bits of the product are those on which all of the key has its effect; of a pair's high half none of
        // the bits below the 32nd knows.
        let bits = slots.len().trailing_zeros();
        let mut index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - bits)) as usize & mask;
        while slots[index].0 != key && slots[index].0 != EMPTY {
            index = (index + 1) & mask;
        }
        index
    }

    fn grow(&mut self) {
        let mut slots = vec![(EMPTY, V::default()); (self.slots.len() * 2).max(64)];
        for &(key, value) in self.slots.iter().filter(|&&(key, _)| key != EMPTY) {
            let index = Self::find(&slots, key);
            slots[index] = (key, value);
        }
        self.slots = slots;
    }
}

/// Two 32-bit ids in one key.
pub(crate) const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// The ids of [`pair`].
pub(crate) const fn unpair(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, (key & 0xffff_ffff) as u32)
}

/// The element at `index` of a list that grows as ids are met.
pub(crate) fn at<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if index >= list.len() {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_a_map_does() {
        let mut tally = Tally::<u64>::default();
        let mut expected = std::collections::BTreeMap::new();
        let mut rng = ttwu_testing::Rng::new(7);
        for _ in 0..20_000 {
            let key = pair(rng.below(300) as u32, rng.below(70) as u32);
            *tally.entry(key) += 1;
            *expected.entry(key).or_insert(0) += 1;
        }
        assert_eq!(tally.sorted(), expected.iter().map(|(&key, &count)| (key, count)).collect::<Vec<_>>());
        assert_eq!(unpair(pair(5, 9)), (5, 9));
    }
}
