//! Weights and the kernel's fixed-point scaling by them, bit for bit.
//!
//! Weights are kept *scaled up* (×1024), as 64-bit kernels do: nice 0 is 1 048 576. Reciprocals of table weights are the
//! kernel's ⌊2³²/w⌋, those of sums are computed from 2³²−1: the two differ in the last digit, and results show it.

/// The weight of nice 0, scaled up.
pub const NICE_0_LOAD: u64 = 1 << 20;

const SCALE_SHIFT: u32 = 10;
const WMULT: u64 = u32::MAX as u64;

/// Weights of nice −20 … 19 and their reciprocals ⌊2³²/w⌋.
const TABLE: [(u32, u32); 40] = [
    (88761, 48388),
    (71755, 59856),
    (56483, 76040),
    (46273, 92818),
    (36291, 118_348),
    (29154, 147_320),
    (23254, 184_698),
    (18705, 229_616),
    (14949, 287_308),
    (11916, 360_437),
    (9548, 449_829),
    (7620, 563_644),
    (6100, 704_093),
    (4904, 875_809),
    (3906, 1_099_582),
    (3121, 1_376_151),
    (2501, 1_717_300),
    (1991, 2_157_191),
    (1586, 2_708_050),
    (1277, 3_363_326),
    (1024, 4_194_304),
    (820, 5_237_765),
    (655, 6_557_202),
    (526, 8_165_337),
    (423, 10_153_587),
    (335, 12_820_798),
    (272, 15_790_321),
    (215, 19_976_592),
    (172, 24_970_740),
    (137, 31_350_126),
    (110, 39_045_157),
    (87, 49_367_440),
    (70, 61_356_676),
    (56, 76_695_844),
    (45, 95_443_717),
    (36, 119_304_647),
    (29, 148_102_320),
    (23, 186_737_708),
    (18, 238_609_294),
    (15, 286_331_153),
];

/// Weight of a SCHED_IDLE task and its reciprocal.
const IDLE_POLICY: (u32, u32) = (3, 1_431_655_765);

/// A weight with its reciprocal.
///
/// Models: struct load_weight, v5.5–v7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWeight {
    weight: u64,
    inverse: u32,
}

impl LoadWeight {
    /// A task of this nice value.
    ///
    /// # Panics
    /// If `nice` is outside −20..=19.
    #[must_use]
    pub fn of_nice(nice: i32) -> Self {
        let row = usize::try_from(nice + 20).expect("nice is at least -20");
        Self::of_row(TABLE[row])
    }

    /// A SCHED_IDLE task.
    #[must_use]
    pub fn of_idle_policy() -> Self {
        Self::of_row(IDLE_POLICY)
    }

    fn of_row((weight, inverse): (u32, u32)) -> Self {
        Self { weight: u64::from(weight) << SCALE_SHIFT, inverse }
    }

    /// A sum of weights, or the weight of a group entity (scaled up).
    ///
    /// Models: __update_inv_weight(), v5.5–v7.2.
    #[must_use]
    pub const fn of_sum(weight: u64) -> Self {
        let down = scale_down(weight);
        let inverse = match WMULT.checked_div(down) {
            None => u32::MAX,
            Some(0) => 1,
            Some(quotient) => quotient as u32,
        };
        Self { weight, inverse }
    }

    /// The weight, scaled up.
    #[must_use]
    pub const fn weight(self) -> u64 {
        self.weight
    }

    /// The weight in the table's units: nice 0 is 1024.
    #[must_use]
    pub const fn scaled_down(self) -> u64 {
        scale_down(self.weight)
    }

    /// The reciprocal in 2⁻³².
    #[must_use]
    pub const fn inverse(self) -> u32 {
        self.inverse
    }
}

/// A scaled-up weight in the table's units; at least 2 unless 0.
///
/// Models: scale_load_down(), v5.5–v7.2.
#[must_use]
pub const fn scale_down(weight: u64) -> u64 {
    if weight == 0 {
        return 0;
    }
    let down = weight >> SCALE_SHIFT;
    if down > 2 { down } else { 2 }
}

/// About `delta · weight / load`, rounded exactly as the kernel rounds it.
///
/// `weight` is scaled up and below 2⁴² (a group's shares end at 2²⁸). The product is 128 bits wide; the result is cut to 64.
///
/// # Panics
/// In debug builds, when `weight` is larger: the kernel's shift would be out of range there.
///
/// Models: __calc_delta(), v5.5–v7.2.
#[must_use]
pub fn calc_delta(delta: u64, weight: u64, load: LoadWeight) -> u64 {
    let mut factor = scale_down(weight);
    let mut shift = 32;
    let fit = |factor: &mut u64, shift: &mut u32| {
        let high = *factor >> 32;
        if high != 0 {
            let bits = 64 - high.leading_zeros();
            *factor >>= bits;
            *shift -= bits;
        }
    };
    fit(&mut factor, &mut shift);
    factor *= u64::from(load.inverse);
    fit(&mut factor, &mut shift);
    ((u128::from(delta) * u128::from(factor)) >> shift) as u64
}

/// Wall time as the virtual time of an entity of this weight.
///
/// Models: calc_delta_fair(), v5.5–v7.2.
#[must_use]
pub fn calc_delta_fair(delta: u64, load: LoadWeight) -> u64 {
    if load.weight == NICE_0_LOAD { delta } else { calc_delta(delta, NICE_0_LOAD, load) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_by_nice() {
        const DELTAS: [u64; 6] = [1, 1000, 1_000_000, 3_000_000, 4_000_000, 6_000_000];
        let rows: [(i32, [u64; 6]); 9] = [
            (-20, [0, 11, 11536, 34609, 46146, 69219]),
            (-10, [0, 107, 107_247, 321_742, 428_990, 643_485]),
            (-5, [0, 328, 328_099, 984_299, 1_312_399, 1_968_599]),
            (-1, [0, 801, 801_879, 2_405_638, 3_207_517, 4_811_276]),
            (0, [1, 1000, 1_000_000, 3_000_000, 4_000_000, 6_000_000]),
            (1, [1, 1248, 1_248_780, 3_746_341, 4_995_121, 7_492_682]),
            (5, [3, 3056, 3_056_716, 9_170_149, 12_226_865, 18_340_298]),
            (10, [9, 9309, 9_309_090, 27_927_272, 37_236_363, 55_854_545]),
            (19, [68, 68266, 68_266_666, 204_799_999, 273_066_666, 409_599_999]),
        ];
        for (nice, expected) in rows {
            let load = LoadWeight::of_nice(nice);
            assert_eq!(DELTAS.map(|delta| calc_delta_fair(delta, load)), expected, "nice {nice}");
        }
        for (nice, expected) in [(5, 8_558_806), (-5, 918_679), (10, 26_065_454), (19, 191_146_666)] {
            assert_eq!(calc_delta_fair(2_800_000, LoadWeight::of_nice(nice)), expected, "nice {nice}");
        }
        assert_eq!(calc_delta_fair(1_000_000, LoadWeight::of_idle_policy()), 341_333_333);
        assert_eq!(calc_delta_fair(1_000_000, LoadWeight::of_sum(524_800)), 1_999_999);
    }

    #[test]
    fn shares_of_a_queue() {
        let both = LoadWeight::of_sum(2 * NICE_0_LOAD);
        assert_eq!(both.inverse(), 2_097_151);
        assert_eq!(calc_delta(24_000_000, NICE_0_LOAD, both), 11_999_994);
        let nice = |nice| LoadWeight::of_nice(nice).weight();
        let mixed = LoadWeight::of_sum(nice(0) + nice(5));
        assert_eq!(calc_delta(24_000_000, nice(0), mixed), 18_083_885);
        assert_eq!(calc_delta(24_000_000, nice(5), mixed), 5_916_114);
        let lopsided = LoadWeight::of_sum(nice(0) + nice(19));
        assert_eq!(calc_delta(24_000_000, nice(19), lopsided), 346_487);
        assert_eq!(calc_delta(24_000_000, nice(0), lopsided), 23_653_512);
        for (count, period, expected) in
            [(3, 24_000_000, 7_999_998), (8, 24_000_000, 2_999_994), (9, 27_000_000, 2_999_994)]
        {
            let load = LoadWeight::of_sum(count * NICE_0_LOAD);
            assert_eq!(calc_delta(period, NICE_0_LOAD, load), expected, "{count} tasks");
        }
    }

    #[test]
    fn extreme_loads_have_a_reciprocal() {
        assert_eq!(LoadWeight::of_sum(0).inverse(), u32::MAX);
        assert_eq!(LoadWeight::of_sum(1).scaled_down(), 2);
        assert_eq!(LoadWeight::of_sum(u64::MAX).inverse(), 1);
        // The largest operands allowed must neither overflow nor shift out of range.
        assert_eq!(calc_delta(u64::MAX, (1 << 42) - 1, LoadWeight::of_sum(1 << 42)), u64::MAX - (1 << 32));
    }
}
