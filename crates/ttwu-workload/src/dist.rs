//! Distributions of times as integer quantile tables: equal on every machine, and cheap to draw from.

use std::sync::Arc;

/// A distribution of non-negative integers (nanoseconds, mostly), by equally spaced quantiles with straight lines between.
///
/// One point is a constant, two are a uniform distribution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dist {
    points: Points,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Points {
    Constant(u64),
    Table(Arc<[u64]>),
}

/// −ln(1 − q) at q = 0, 1/64, …, 63/64, and at 1 − 1/1024 for the end, in 1/65536. Straight lines and the cut tail make the mean
/// 1.007 of the nominal one, which the constructor makes good.
const EXPONENTIAL: [u64; 65] = [
    0, 1032, 2081, 3146, 4230, 5331, 6451, 7591, 8751, 9932, 11135, 12360, 13608, 14880, 16178, 17502, 18854,
    20233, 21643, 23083, 24556, 26063, 27605, 29184, 30802, 32461, 34164, 35911, 37707, 39553, 41453, 43409,
    45426, 47507, 49656, 51877, 54177, 56561, 59034, 61604, 64280, 67069, 69982, 73031, 76228, 79590, 83133,
    86879, 90852, 95082, 99603, 104460, 109706, 115408, 121654, 128559, 136278, 145029, 155132, 167080,
    181704, 200558, 227130, 272557, 454261,
];

impl Dist {
    /// Always `value`.
    #[must_use]
    pub const fn constant(value: u64) -> Self {
        Self { points: Points::Constant(value) }
    }

    /// Every value from `low` to `high` alike.
    ///
    /// # Panics
    /// If `low` is above `high`.
    #[must_use]
    pub fn uniform(low: u64, high: u64) -> Self {
        assert!(low <= high, "a uniform distribution from {low} to {high} is empty");
        if low == high { Self::constant(low) } else { Self { points: Points::Table([low, high].into()) } }
    }

    /// Equally spaced quantiles, from the least value to the greatest; `None` if there are none or they fall.
    #[must_use]
    pub fn quantiles(points: &[u64]) -> Option<Self> {
        match points {
            [] => None,
            [one] => Some(Self::constant(*one)),
            many => many.is_sorted().then(|| Self { points: Points::Table(many.into()) }),
        }
    }

    /// Time between events of a Poisson process, with this mean; cut off at the 1023/1024 quantile.
    #[must_use]
    pub fn exponential(mean: u64) -> Self {
        let table = EXPONENTIAL.map(|x| (u128::from(mean) * u128::from(x) / 65_536) as u64);
        let scale = Self { points: Points::Table(table.into()) }.mean();
        let rescaled = table.map(|x| {
            if scale == 0 { x } else { (u128::from(x) * u128::from(mean) / u128::from(scale)) as u64 }
        });
        Self { points: Points::Table(rescaled.into()) }
    }

    /// The value at which a uniform 64-bit number puts the draw.
    #[must_use]
    pub fn at(&self, uniform: u64) -> u64 {
        match &self.points {
            Points::Constant(value) => *value,
            Points::Table(points) => {
                let scaled = u128::from(uniform) * (points.len() as u128 - 1);
                let index = (scaled >> 64) as usize;
                let fraction = scaled as u64;
                let (low, high) = (points[index], points[index + 1]);
                low + ((u128::from(high - low) * u128::from(fraction)) >> 64) as u64
            }
        }
    }

    /// The constant, if it is one: executors need no random number then.
    #[must_use]
    pub const fn as_constant(&self) -> Option<u64> {
        match &self.points {
            Points::Constant(value) => Some(*value),
            Points::Table(_) => None,
        }
    }

    /// The mean, rounded down.
    #[must_use]
    pub fn mean(&self) -> u64 {
        match &self.points {
            Points::Constant(value) => *value,
            Points::Table(points) => {
                let doubled: u128 =
                    points.windows(2).map(|pair| u128::from(pair[0]) + u128::from(pair[1])).sum();
                (doubled / (2 * (points.len() as u128 - 1))) as u64
            }
        }
    }

    /// The quantiles: one for a constant.
    #[must_use]
    pub fn points(&self) -> &[u64] {
        match &self.points {
            Points::Constant(value) => std::slice::from_ref(value),
            Points::Table(points) => points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dist;

    #[test]
    fn a_uniform_draw_is_where_the_number_puts_it() {
        let d = Dist::uniform(100, 300);
        assert_eq!((d.at(0), d.at(1 << 63), d.at(u64::MAX)), (100, 200, 299));
        assert_eq!(d.mean(), 200);
    }

    #[test]
    fn quantiles_must_rise() {
        assert_eq!(Dist::quantiles(&[3, 1]), None);
        assert_eq!(Dist::quantiles(&[]), None);
        let d = Dist::quantiles(&[0, 10, 1000]).expect("rising");
        assert_eq!((d.at(1 << 62), d.at(3 << 62), d.mean()), (5, 505, 255));
    }

    #[test]
    fn an_exponential_has_its_mean_and_median() {
        let d = Dist::exponential(1_000_000);
        assert!((999_000..=1_000_000).contains(&d.mean()), "{}", d.mean());
        // The median of an exponential is ln 2 of its mean.
        let median = d.at(1 << 63);
        assert!((670_000..=720_000).contains(&median), "{median}");
    }
}
