//! Per-entity load tracking: geometric averages with a half-life of 32 periods of 1024 × 1024 ns, bit for bit.
//!
//! What this does not do: scale by frequency or capacity (`clock_pelt`); all CPUs run at capacity 1024, and callers pass the
//! task clock.

use crate::weight::scale_down;

/// Largest value of Σ 1024·yⁿ in the kernel's integer form.
pub const LOAD_AVG_MAX: u64 = 47742;
const PERIOD: u64 = 1024;

/// yⁿ·2³² for n = 0 … 31, y³² = ½.
const DECAY: [u32; 32] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// `value` after `periods` periods.
///
/// The table's first entry lies just below 1, so even 0 periods take one off: the kernel's rounding, kept.
///
/// Models: decay_load(), v5.5–v7.2.
#[must_use]
pub const fn decay_load(value: u64, periods: u64) -> u64 {
    if periods > 32 * 63 {
        return 0;
    }
    let halved = value >> (periods / 32);
    ((halved as u128 * DECAY[(periods % 32) as usize] as u128) >> 32) as u64
}

/// What an entity or a queue contributes during the time being accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// Task: 1 if queued. Queue: the scaled-down sum of weights.
    pub load: u64,
    /// Task: 1 if queued and not delay-dequeued. Group entity or queue: number of runnable tasks.
    pub runnable: u64,
    /// Is it (or does it contain) the running entity?
    pub running: bool,
}

impl Contribution {
    /// A blocked entity.
    pub const NONE: Self = Self { load: 0, runnable: 0, running: false };
}

/// Does a zero load still accumulate the time, as v5.5 does?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroLoad {
    /// v5.5: the segments are computed even when nothing will be added.
    Accumulates,
    /// Later kernels.
    Skips,
}

/// Averages of an entity or a queue.
///
/// Models: struct sched_avg, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SchedAvg {
    /// Time of the last update, ns, a multiple of 1024 behind the clock; 0 for a fresh or migrated entity.
    pub last_update_time: u64,
    /// Part of the current period already counted, in units of 1024 ns: 0 … 1023.
    pub period_contrib: u64,
    /// Σ load · units, decayed.
    pub load_sum: u64,
    /// Σ runnable · units · 1024, decayed.
    pub runnable_sum: u64,
    /// Σ running · units · 1024, decayed.
    pub util_sum: u64,
    /// Load average.
    pub load_avg: u64,
    /// Runnable average, 1024 a task.
    pub runnable_avg: u64,
    /// Utilisation, 0 … 1024.
    pub util_avg: u64,
}

impl SchedAvg {
    /// The divider of the averages now.
    ///
    /// Models: get_pelt_divider(), v5.5–v7.2.
    #[must_use]
    pub const fn divider(&self) -> u64 {
        LOAD_AVG_MAX - 1024 + self.period_contrib
    }

    /// Accounts the time up to `now` with what was contributed during it. Did a period end (averages changed)?
    ///
    /// `weight` scales the load average: an entity's scaled-up weight, or [`SchedAvg::QUEUE`] for a queue.
    ///
    /// Models: ___update_load_sum(), accumulate_sum(), ___update_load_avg(), v5.5–v7.2.
    pub fn update(&mut self, now: u64, what: Contribution, weight: u64, zero: ZeroLoad) -> bool {
        let Some(delta) = now.checked_sub(self.last_update_time) else {
            // The clocks of two CPUs disagree: start over from here.
            self.last_update_time = now;
            return false;
        };
        let delta = delta >> 10;
        if delta == 0 {
            return false;
        }
        self.last_update_time += delta << 10;
        let what = if what.load == 0 { Contribution { running: false, runnable: 0, ..what } } else { what };
        let (contribution, periods) = self.segments(delta, what, zero);
        self.load_sum += what.load * contribution;
        self.runnable_sum += (what.runnable * contribution) << 10;
        if what.running {
            self.util_sum += contribution << 10;
        }
        if periods == 0 {
            return false;
        }
        self.average(weight);
        true
    }

    /// A queue's weight for [`SchedAvg::update`]: its load sum already contains the weights.
    pub const QUEUE: u64 = 1 << 10;

    fn segments(&mut self, delta: u64, what: Contribution, zero: ZeroLoad) -> (u64, u64) {
        let total = delta + self.period_contrib;
        let periods = total / PERIOD;
        let rest = total % PERIOD;
        let mut contribution = delta;
        if periods > 0 {
            for sum in [&mut self.load_sum, &mut self.runnable_sum, &mut self.util_sum] {
                *sum = decay_load(*sum, periods);
            }
            if what.load > 0 || zero == ZeroLoad::Accumulates {
                let first = decay_load(PERIOD - self.period_contrib, periods);
                let whole = LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, periods) - 1024;
                contribution = first + whole + rest;
            }
        }
        self.period_contrib = rest;
        (contribution, periods)
    }

    /// Recomputes the averages from the sums.
    pub fn average(&mut self, weight: u64) {
        let divider = self.divider();
        let factor = if weight == Self::QUEUE { 1 } else { scale_down(weight) };
        self.load_avg = factor * self.load_sum / divider;
        self.runnable_avg = self.runnable_sum / divider;
        self.util_avg = self.util_sum / divider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weight::NICE_0_LOAD;

    const RUNNING: Contribution = Contribution { load: 1, runnable: 1, running: true };

    fn advance(avg: &mut SchedAvg, now: u64, what: Contribution) {
        avg.update(now, what, NICE_0_LOAD, ZeroLoad::Skips);
    }

    #[test]
    fn decay_by_periods() {
        const PERIODS: [u64; 13] = [0, 1, 2, 8, 16, 31, 32, 33, 64, 96, 320, 345, 2017];
        let decay = |value| PERIODS.map(|periods| decay_load(value, periods));
        assert_eq!(decay(1024), [1023, 1002, 980, 861, 724, 523, 511, 501, 255, 127, 0, 0, 0]);
        assert_eq!(
            decay(47742),
            [47741, 46718, 45717, 40146, 33758, 24393, 23870, 23359, 11934, 5966, 45, 26, 0]
        );
    }

    #[test]
    fn a_task_that_always_runs() {
        let rows: [(u64, u64, u64, u64); 16] = [
            (1, 0, 0, 976),
            (2, 41, 41, 929),
            (4, 81, 81, 834),
            (8, 156, 155, 644),
            (10, 191, 191, 549),
            (16, 288, 288, 265),
            (20, 346, 346, 75),
            (32, 495, 495, 530),
            (33, 506, 506, 482),
            (50, 659, 659, 700),
            (64, 751, 750, 36),
            (100, 894, 894, 376),
            (128, 951, 951, 72),
            (200, 1008, 1007, 752),
            (345, 1023, 1023, 18),
            (400, 1024, 1023, 481),
        ];
        let sums = [(1, 999_424), (2, 1_976_408), (10, 9_036_263), (32, 23_410_391), (100, 42_135_012)];
        let mut avg = SchedAvg::default();
        for ms in 1..=400 {
            advance(&mut avg, ms * 1_000_000, RUNNING);
            if let Some(&(_, util, load, contrib)) = rows.iter().find(|row| row.0 == ms) {
                assert_eq!(
                    (avg.util_avg, avg.load_avg, avg.period_contrib),
                    (util, load, contrib),
                    "{ms} ms"
                );
            }
            if let Some(&(_, sum)) = sums.iter().find(|row| row.0 == ms) {
                assert_eq!(avg.util_sum, sum, "{ms} ms");
            }
        }
    }

    #[test]
    fn one_long_update_differs_from_many_short_ones() {
        let mut avg = SchedAvg::default();
        advance(&mut avg, 10_000_000, RUNNING);
        assert_eq!((avg.util_avg, avg.load_avg, avg.load_sum), (191, 191, 8824));
        assert_eq!((avg.util_sum, avg.period_contrib), (9_035_776, 549));
        let mut avg = SchedAvg::default();
        advance(&mut avg, 32 * 1_048_576, RUNNING);
        assert_eq!((avg.util_avg, avg.load_avg, avg.load_sum), (512, 512, 23359));
        assert_eq!((avg.util_sum, avg.period_contrib), (23_919_616, 0));
    }

    #[test]
    fn a_saturated_task_that_blocks() {
        let mut full = SchedAvg::default();
        for period in 1..=2000 {
            advance(&mut full, period * 1_048_576, RUNNING);
        }
        assert_eq!((full.load_sum, full.util_avg, full.load_avg), (46715, 1024, 1023));
        for (periods, util, load, sum) in [
            (1, 1002, 1001, 45713),
            (8, 861, 861, 39282),
            (16, 724, 724, 33032),
            (32, 512, 511, 23356),
            (64, 256, 255, 11677),
            (96, 128, 127, 5838),
            (345, 0, 0, 26),
        ] {
            let mut avg = full;
            advance(&mut avg, (2000 + periods) * 1_048_576, Contribution::NONE);
            assert_eq!((avg.util_avg, avg.load_avg, avg.load_sum), (util, load, sum), "{periods} periods");
        }
    }

    #[test]
    fn a_clock_that_goes_back_starts_over() {
        let mut avg = SchedAvg { last_update_time: 5_000_000, ..SchedAvg::default() };
        assert!(!avg.update(4_000_000, RUNNING, NICE_0_LOAD, ZeroLoad::Skips));
        assert_eq!(avg.last_update_time, 4_000_000);
    }
}
