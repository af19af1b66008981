//! Queue lengths over time, in a fixed number of bins: what a strip chart of CPUs shows.
//!
//! The length of a recording is not known while it is read, so bins double their width whenever the time runs out of them,
//! and neighbours are added up. The memory does not depend on the recording.

use crate::tally::at;
use ttwu_model::{CpuId, Duration, Time};

/// Bins at most; after a doubling half as many are in use.
pub const BINS_MAX: usize = 256;

/// Mean queue lengths by CPU and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Where the first bin begins.
    pub from: Time,
    /// The width of a bin.
    pub bin: Duration,
    /// Per CPU, by number, the bins: mean number of runnable tasks (the running one among them) in thousandths over the
    /// time that is known; `None` where nothing is known.
    pub cpus: Vec<Vec<Option<u32>>>,
}

/// Known time, and its sum weighted by length, of one bin.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    known_ns: u64,
    area_ns: u64,
}

/// The fold of it.
#[derive(Clone, Debug)]
pub(crate) struct Strip {
    from: Option<Time>,
    /// Bins are `1 << shift` ns wide.
    shift: u32,
    cpus: Vec<Vec<Bin>>,
}

impl Default for Strip {
    /// Starts with bins of 1 µs.
    fn default() -> Self {
        Self { from: None, shift: 10, cpus: Vec::new() }
    }
}

impl Strip {
    /// Says when the trace begins; later calls do nothing.
    pub(crate) fn begin(&mut self, at: Time) {
        self.from.get_or_insert(at);
    }

    /// `length` tasks were runnable on `cpu` for `lasted_ns` from `since` on.
    pub(crate) fn add(&mut self, cpu: CpuId, since: Time, lasted_ns: u64, length: u32) {
        let Some(from) = self.from else { return };
        let mut start = since.saturating_since(from).as_ns();
        let end = start.saturating_add(lasted_ns);
        while end.saturating_sub(1) >> self.shift >= BINS_MAX as u64 {
            self.double();
        }
        while start < end {
            let index = start >> self.shift;
            let stop = end.min((index + 1) << self.shift);
            let bins = at(&mut self.cpus, cpu.index());
            let bin = at(bins, index as usize);
            bin.known_ns += stop - start;
            bin.area_ns += (stop - start).saturating_mul(length.into());
            start = stop;
        }
    }

    fn double(&mut self) {
        self.shift += 1;
        for bins in &mut self.cpus {
            for index in 0..bins.len().div_ceil(2) {
                let (a, b) = (bins[index * 2], bins.get(index * 2 + 1).copied().unwrap_or_default());
                bins[index] = Bin { known_ns: a.known_ns + b.known_ns, area_ns: a.area_ns + b.area_ns };
            }
            bins.truncate(bins.len().div_ceil(2));
        }
    }

    pub(crate) fn result(self) -> Occupancy {
        let bins_used = self.cpus.iter().map(Vec::len).max().unwrap_or(0);
        let mean = |bin: &Bin| {
            let mean = u128::from(bin.area_ns) * 1000 / u128::from(bin.known_ns.max(1));
            (bin.known_ns != 0).then(|| u32::try_from(mean).unwrap_or(u32::MAX))
        };
        let row = |bins: &Vec<Bin>| {
            let mut row: Vec<Option<u32>> = bins.iter().map(mean).collect();
            row.resize(bins_used, None);
            row
        };
        Occupancy {
            from: self.from.unwrap_or_default(),
            bin: Duration::from_ns(1 << self.shift),
            cpus: self.cpus.iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_the_mean_over_the_known_time() {
        let mut strip = Strip::default();
        strip.begin(Time::from_ns(1000));
        let cpu = CpuId::new(1);
        strip.add(cpu, Time::from_ns(1000), 512, 2);
        strip.add(cpu, Time::from_ns(1512), 1024, 0);
        let out = strip.result();
        assert_eq!((out.bin.as_ns(), out.from.as_ns()), (1024, 1000));
        assert_eq!(out.cpus, [vec![None; 2], vec![Some(1000), Some(0)]]);
    }

    #[test]
    fn doubling_keeps_the_areas() {
        let mut strip = Strip::default();
        strip.begin(Time::ZERO);
        for step in 0..100_000_u64 {
            strip.add(CpuId::new(0), Time::from_ns(step * 1000), 1000, u32::from(step % 4 == 0) * 3);
        }
        let out = strip.result();
        assert_eq!(out.bin.as_ns(), 1 << 19, "190 bins of half a millisecond");
        assert_eq!(out.cpus[0].len(), 191);
        assert!(out.cpus[0].iter().flatten().all(|&mean| (740..=760).contains(&mean)), "{:?}", out.cpus[0]);
    }
}
