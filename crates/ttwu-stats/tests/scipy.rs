//! Other programs' figures for the same samples.
//!
//! Made with SciPy 1.17.1 and NumPy 2.4.6 on Python 3.11.7: `ttest_ind(equal_var=False)`, `mannwhitneyu` (`exact` without
//! ties, else `asymptotic`), `permutation_test` of the difference of means (all arrangements up to 20 samples, else 200 000
//! or 100 000 random ones; of five and four samples counted by hand in NumPy, because SciPy doubles the smaller tail where
//! ours counts differences of either sign), `ttest_rel`, `wilcoxon(zero_method="wilcox", correction=True)` (`exact` without ties, else
//! `asymptotic`), `bootstrap(method="BCa", n_resamples=400_000)`, `false_discovery_control`, `t.sf`, `t.ppf`; and with
//! R 4.2.2: `wilcox.test(conf.int = TRUE)` for the Hodges–Lehmann shifts. Samples are drawn by NumPy (seed 5) and rounded;
//! the paired tests take the first samples of the longer arm. Holm's adjustment and the intervals of ratios of means are
//! the textbook formulas in NumPy, with SciPy's t quantiles.

use ttwu_stats::{
    bca_bootstrap, benjamini_hochberg, describe, equivalence, hodges_lehmann, hodges_lehmann_paired, holm,
    mann_whitney, paired_t, permutation_test, permutation_test_paired, ratio_of_means, student_t_quantile,
    student_t_two_sided, welch_t, wilcoxon_signed_rank,
};

struct Case {
    name: &'static str,
    new: &'static [f64],
    base: &'static [f64],
    /// t, degrees of freedom, probability.
    welch: (f64, f64, f64),
    /// U of the new arm, probability.
    mann_whitney: (f64, f64),
    permutation: f64,
    /// t, probability.
    paired_t: (f64, f64),
    /// Sum of positive ranks, probability.
    wilcoxon: (f64, f64),
    paired_permutation: f64,
}

const CASES: &[Case] = &[
    Case {
        name: "hackbench-like, 10 and 10",
        new: &[7.48, 7.401, 7.563, 7.663, 7.77, 7.616, 7.517, 7.482, 7.712, 7.845],
        base: &[7.427, 7.277, 7.304, 7.56, 7.42, 7.227, 7.392, 7.284, 7.337, 7.351],
        welch: (4.553595627706041, 15.813439098967981, 0.0003347633810578346),
        mann_whitney: (94.0, 0.00032475264673407085),
        permutation: 0.0003139275585096019,
        paired_t: (5.2515431779611275, 0.0005266162039376996),
        wilcoxon: (55.0, 0.001953125),
        paired_permutation: 0.001953125,
    },
    Case {
        name: "small, 5 and 4",
        new: &[97.8601, 101.6601, 99.8107, 98.2317, 101.2289],
        base: &[110.1493, 97.7849, 104.7163, 101.0963],
        welch: (-1.3346893240572182, 3.504012390684202, 0.2620871188250845),
        mann_whitney: (7.0, 0.5555555555555556),
        permutation: 27.0 / 126.0,
        paired_t: (-1.2161108717983165, 0.31090214116817816),
        wilcoxon: (2.0, 0.375),
        paired_permutation: 0.375,
    },
    Case {
        name: "ties, 8 and 8",
        new: &[5.0, 6.0, 6.0, 7.0, 7.0, 7.0, 8.0, 9.0],
        base: &[6.0, 7.0, 7.0, 8.0, 8.0, 9.0, 9.0, 10.0],
        welch: (-1.7602160821154047, 13.966219839142088, 0.10024387150326045),
        mann_whitney: (17.0, 0.11877131320789149),
        permutation: 0.14545454545454545,
        paired_t: (-9.0, 4.265700921124329e-05),
        wilcoxon: (0.0, 0.008334144577817367),
        paired_permutation: 0.0078125,
    },
    Case {
        name: "skewed, 20 and 15",
        new: &[
            18.42, 10.541, 20.294, 19.709, 17.25, 11.894, 16.476, 11.639, 10.2, 22.475, 11.534, 36.059,
            28.74, 7.397, 23.013, 11.578, 20.42, 20.529, 7.432, 17.873,
        ],
        base: &[
            21.587, 39.686, 13.589, 35.482, 14.161, 20.788, 16.115, 50.621, 32.593, 82.753, 33.817, 37.431,
            37.35, 18.114, 23.688,
        ],
        welch: (-3.0044113181441507, 17.4785246990187, 0.0077973168280058135),
        mann_whitney: (58.0, 0.0016186126853279046),
        permutation: 0.0007499962500187499,
        paired_t: (-3.026871391963043, 0.009055937733355505),
        wilcoxon: (11.0, 0.00335693359375),
        paired_permutation: 0.003173828125,
    },
    Case {
        name: "far apart, 12 and 12",
        new: &[
            1.0135, 0.99603, 1.00189, 0.99979, 1.00609, 0.99635, 0.99848, 1.00242, 1.00103, 0.99135, 1.00896,
            0.98702,
        ],
        base: &[
            1.07598, 1.07435, 1.11934, 1.09279, 1.08058, 1.07728, 1.10842, 1.0789, 1.07456, 1.11228, 1.07607,
            1.09355,
        ],
        welch: (-17.10627748896438, 15.20049868411947, 2.4224169593172588e-11),
        mann_whitney: (0.0, 7.39602301050679e-07),
        permutation: 9.999950000249999e-06,
        paired_t: (-15.053883663489007, 1.0974366025958563e-08),
        wilcoxon: (0.0, 0.00048828125),
        paired_permutation: 0.00048828125,
    },
];

#[track_caller]
fn near(what: &str, found: f64, expected: f64, relative: f64) {
    assert!((found - expected).abs() <= relative * expected.abs(), "{what}: {found}, expected {expected}");
}

#[test]
fn tests_agree_with_scipy() {
    for case in CASES {
        let pairs = case.new.len().min(case.base.len());
        let (first, second) = (&case.new[..pairs], &case.base[..pairs]);
        let welch = welch_t(case.new, case.base).expect("two samples");
        near(case.name, welch.t, case.welch.0, 1e-11);
        near(case.name, welch.df, case.welch.1, 1e-11);
        near(case.name, welch.probability, case.welch.2, 1e-9);
        let ranks = mann_whitney(case.new, case.base).expect("samples");
        near(case.name, ranks.statistic, case.mann_whitney.0, 0.0);
        near(case.name, ranks.probability, case.mann_whitney.1, 1e-10);
        let paired = paired_t(first, second).expect("pairs");
        near(case.name, paired.t, case.paired_t.0, 1e-11);
        near(case.name, paired.probability, case.paired_t.1, 1e-9);
        let signed = wilcoxon_signed_rank(first, second).expect("pairs");
        near(case.name, signed.statistic, case.wilcoxon.0, 0.0);
        near(case.name, signed.probability, case.wilcoxon.1, 1e-10);
    }
}

#[test]
fn permutation_tests_agree_with_scipy() {
    for case in CASES {
        let pairs = case.new.len().min(case.base.len());
        let free = permutation_test(case.new, case.base, 1).expect("samples");
        let paired = permutation_test_paired(&case.new[..pairs], &case.base[..pairs], 1).expect("pairs");
        for (found, expected) in [(free, case.permutation), (paired, case.paired_permutation)] {
            if found.exact {
                near(case.name, found.probability, expected, 1e-12);
            } else {
                // Both are samples of arrangements; 20 000 of them are within this, four standard errors.
                let error = 4.0 * (expected * (1.0 - expected) / 20_000.0).sqrt() + 1.0 / 20_000.0;
                assert!(
                    (found.probability - expected).abs() < error,
                    "{}: {found:?}, expected {expected}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn shifts_agree_with_r() {
    // R falls back to the normal approximation at ties, so only the cases without.
    let expected = [
        ("hackbench-like, 10 and 10", [0.238, 0.125, 0.378], [0.246, 0.1245, 0.3695]),
        ("skewed, 20 and 15", [-12.236, -20.954, -3.62], [-11.68075, -23.796, -3.167]),
        ("far apart, 12 and 12", [-0.08352, -0.09946, -0.07587], [-0.089_245, -0.10093, -0.07401]),
    ];
    for (name, free, paired) in expected {
        let case = CASES.iter().find(|case| case.name == name).expect("a case");
        let pairs = case.new.len().min(case.base.len());
        let found = [
            hodges_lehmann(case.new, case.base).expect("enough samples"),
            hodges_lehmann_paired(&case.new[..pairs], &case.base[..pairs]).expect("enough pairs"),
        ];
        for (interval, [estimate, low, high]) in found.into_iter().zip([free, paired]) {
            near(name, interval.estimate, estimate, 1e-9);
            near(name, interval.low, low, 1e-9);
            near(name, interval.high, high, 1e-9);
        }
    }
    assert_eq!(
        hodges_lehmann(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]),
        None,
        "three samples an arm cover 90 % at most"
    );
}

#[test]
fn student_t_agrees_with_scipy() {
    for (t, df, expected) in [
        (0.1, 1.0, 0.936548965138893),
        (2.5, 3.0, 0.08770664700806556),
        (2.10092204024096, 18.0, 0.05000000000000764),
        (12.0, 18.0, 5.046511102563654e-10),
        (3.3, 4.7, 0.023544845344354696),
        (0.5, 250.0, 0.6175148859192405),
        (40.0, 9.0, 1.8982998449339822e-11),
        (0.0001, 7.0, 0.9999230017099803),
        (6.0, 1000.0, 2.7553691733774752e-09),
    ] {
        // statrs' incomplete beta function loses digits as the degrees of freedom grow.
        let relative = if df > 100.0 { 1e-8 } else { 1e-10 };
        near("two-sided", student_t_two_sided(t, df).expect("a probability"), expected, relative);
    }
    for (probability, df, expected) in [
        (0.975, 1.0, 12.706204736174694),
        (0.975, 2.0, 4.302652729749462),
        (0.975, 18.0, 2.1009220402410382),
        (0.95, 4.5, 2.065575888878524),
        (0.025, 30.0, -2.042272456301238),
        (0.9, 1000.0, 1.2823987214609247),
        (0.9995, 6.0, 5.95881617881889),
    ] {
        near("quantile", student_t_quantile(probability, df).expect("a value"), expected, 1e-10);
    }
    assert_eq!(student_t_two_sided(1.0, 0.0), None);
    assert_eq!(student_t_quantile(1.0, 3.0), None);
}

#[test]
fn ratios_of_means_and_equivalence_agree_with_scipy() {
    let expected = [
        ([1.0335693608230607, 1.0179029399544524, 1.0494769016778667], 0.021879416492365567),
        ([0.9644381539627618, 0.8919525067792905, 1.0428144388289262], 0.3326440112680255),
        ([0.859375, 0.7139520933083416, 1.0344186921601275], 0.8729807159382368),
        ([0.5391758673015541, 0.37778735772198313, 0.7695085871410218], 0.9985283235031827),
        ([0.9187705238018691, 0.9094245954091542, 0.9282124979557858], 0.9999992873094573),
    ];
    for (case, (ratio, tost)) in CASES.iter().zip(expected) {
        let found = ratio_of_means(case.new, case.base).expect("positive means");
        near(case.name, found.estimate, ratio[0], 1e-11);
        near(case.name, found.low, ratio[1], 1e-9);
        near(case.name, found.high, ratio[2], 1e-9);
        near(
            case.name,
            equivalence(case.new, case.base, 0.05).expect("positive means").probability,
            tost,
            1e-9,
        );
    }
}

#[test]
fn the_bootstrap_agrees_with_scipy() {
    let mean_ratio = |new: &[f64], base: &[f64]| {
        new.iter().sum::<f64>() / new.len() as f64 / (base.iter().sum::<f64>() / base.len() as f64)
    };
    let found = bca_bootstrap(&mean_ratio, CASES[3].new, CASES[3].base, 100_000, 1).expect("samples");
    near("low", found.low, 0.374_36, 0.01);
    near("high", found.high, 0.723_42, 0.01);
    let medians = |new: &[f64], base: &[f64]| {
        describe::median(new).unwrap_or(f64::NAN) - describe::median(base).unwrap_or(f64::NAN)
    };
    let found = bca_bootstrap(&medians, CASES[0].new, CASES[0].base, 100_000, 1).expect("samples");
    near("low", found.low, 0.1105, 0.03);
    near("high", found.high, 0.3985, 0.03);
}

#[test]
fn adjusted_probabilities_agree_with_scipy() {
    let given = [0.01, 0.04, 0.03, 0.005, 0.2, 0.9, 0.04];
    let stepped_up = [0.035, 0.056, 0.056, 0.035, 0.233_333_333_333_333_36, 0.9, 0.056];
    let stepped_down = [0.06, 0.16, 0.15, 0.035, 0.4, 0.9, 0.16];
    for (found, expected) in benjamini_hochberg(&given).iter().zip(stepped_up) {
        near("Benjamini–Hochberg", *found, expected, 1e-12);
    }
    for (found, expected) in holm(&given).iter().zip(stepped_down) {
        near("Holm", *found, expected, 1e-12);
    }
}

#[test]
fn descriptions_agree_with_scipy() {
    let expected = [
        [7.589499999999999, 0.10849999999999893, 7.7775, 7.5921666666666665],
        [99.8107, 1.5789999999999935, 101.48761999999999, 99.7571],
        [7.0, 1.0, 8.3, 6.833333333333333],
        [17.561500000000002, 5.559500000000001, 23.58570000000001, 16.468],
        [1.00041, 0.004220000000000057, 1.0086730000000002, 1.00026],
    ];
    for (case, [median, deviation, nine_tenths, trimmed]) in CASES.iter().zip(expected) {
        near(case.name, describe::median(case.new).expect("samples"), median, 1e-12);
        near(case.name, describe::median_deviation(case.new).expect("samples"), deviation, 1e-12);
        near(case.name, describe::quantile(case.new, 0.9).expect("samples"), nine_tenths, 1e-12);
        near(case.name, describe::trimmed_mean(case.new, 0.2).expect("samples"), trimmed, 1e-12);
    }
}
