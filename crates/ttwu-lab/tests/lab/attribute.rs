//! Attributions whose answer is known.

use crate::compare::arm;
use crate::fake::Fake;
use std::num::NonZeroUsize;
use ttwu_fair::Feature;
use ttwu_lab::Cancel;
use ttwu_lab::attribute::{AttributeError, AttributePlan, Attribution, attribute, render_json, render_text};

fn plan() -> AttributePlan {
    AttributePlan { row: None, seeds: 10, seed: 1, orders: 2, threads: NonZeroUsize::new(2).expect("not 0") }
}

fn run(a: &str, b: &str, fake: &Fake, plan: &AttributePlan) -> Result<Attribution, AttributeError> {
    attribute(&[arm(a), arm(b)], plan, fake, &Cancel::new(), &mut |_| {})
}

fn effect(found: &Attribution, name: &str) -> f64 {
    let part = found.parts.iter().find(|part| part.factor.name == name);
    part.unwrap_or_else(|| panic!("no {name}: {found:?}")).effect_pct.estimate
}

fn sum(found: &Attribution) -> f64 {
    found.parts.iter().map(|part| part.effect_pct.estimate).sum()
}

#[test]
fn planted_parts_are_found_exactly_and_sum_to_the_whole() {
    // Without noise: taking away RUN_TO_PARITY (×1.25) and DELAY_DEQUEUE (×1.1).
    let fake =
        Fake { effects: vec![(Feature::RunToParity, 1.25), (Feature::DelayDequeue, 1.1)], ..Fake::quiet() };
    let found = run("linux-6.12", "linux-6.12 -RUN_TO_PARITY -DELAY_DEQUEUE -PREEMPT_SHORT", &fake, &plan())
        .expect("attributed");
    assert!(found.exact);
    let names: Vec<&str> = found.parts.iter().map(|part| part.factor.name.as_str()).collect();
    assert_eq!(names, ["RUN_TO_PARITY", "DELAY_DEQUEUE", "PREEMPT_SHORT"]);
    // Of 13.75: 1.25·1.1 → 1.1 or 1.25 → 1; half each. 100·((0.275 + 0.25)/2)/1.375 and the rest.
    assert!((effect(&found, "RUN_TO_PARITY") + 100.0 * 0.2625 / 1.375).abs() < 1e-9, "{found:?}");
    assert!((effect(&found, "DELAY_DEQUEUE") + 100.0 * 0.1125 / 1.375).abs() < 1e-9, "{found:?}");
    assert_eq!(effect(&found, "PREEMPT_SHORT"), 0.0);
    assert!((sum(&found) - found.total_pct.estimate).abs() < 1e-9);
    let shares: f64 = found.parts.iter().filter_map(|part| Some(part.share_pct?.estimate)).sum();
    assert!((shares - 100.0).abs() < 1e-9);
    // Both ends: alone from the start, and last.
    assert!((found.parts[0].added_pct.estimate + 20.0).abs() < 1e-9, "{:?}", found.parts[0]);
    assert!((found.parts[0].taken_pct.estimate + 100.0 * 0.25 / 1.375).abs() < 1e-9, "{:?}", found.parts[0]);
}

#[test]
fn an_interaction_is_shared_by_those_that_make_it() {
    let fake =
        Fake { interaction: Some((Feature::RunToParity, Feature::DelayDequeue, 1.5)), ..Fake::quiet() };
    let found =
        run("linux-6.12", "linux-6.12 -RUN_TO_PARITY -DELAY_DEQUEUE", &fake, &plan()).expect("attributed");
    assert_eq!(effect(&found, "RUN_TO_PARITY"), effect(&found, "DELAY_DEQUEUE"));
    assert!((sum(&found) - found.total_pct.estimate).abs() < 1e-9);
}

#[test]
fn between_generations_orders_are_sampled_and_the_rest_is_generation() {
    let fake = Fake { effects: vec![(Feature::RunToParity, 1.25)], shared_noise: 0.05, ..Fake::quiet() };
    let found = run("linux-6.1", "linux-6.12", &fake, &plan()).expect("attributed");
    assert!(!found.exact && found.parts.len() > 6);
    // The planted effect needs the feature and a kernel that has it: the two share it half and half.
    let [feature, generation] = ["RUN_TO_PARITY", "generation"].map(|name| effect(&found, name));
    assert!((sum(&found) - found.total_pct.estimate).abs() < 1e-9, "{found:?}");
    assert!((found.total_pct.estimate - 25.0).abs() < 0.5, "{:?}", found.total_pct);
    assert!((feature + generation - 25.0).abs() < 0.5, "{feature} {generation}");
    assert!((feature - 12.5).abs() < 2.0, "each order is taken with its reverse: {feature}");
    assert!(found.parts[2].effect_pct.estimate.abs() < 0.5, "{:?}", found.parts[2]);
    let text = render_text(&found);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.contains("rules of the kernel that no setting changes"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&render_json(&found)).expect("JSON");
    assert_eq!(json["schema"], "ttwu/attribute/1");
    assert!(json["features"][0]["share_pct"].is_number() && json["features"][0]["ci_pct"][1].is_number());
    let one = AttributePlan { threads: NonZeroUsize::MIN, ..plan() };
    assert_eq!(run("linux-6.1", "linux-6.12", &fake, &one).expect("attributed"), found, "threads");
}

#[test]
fn no_difference_has_no_shares() {
    let fake = Fake { own_noise: 0.01, ..Fake::quiet() };
    let found = run("linux-6.12", "linux-6.12 -RUN_TO_PARITY", &fake, &plan()).expect("attributed");
    assert!(found.total_pct.contains(0.0) && found.parts[0].share_pct.is_none(), "{found:?}");
    assert!(render_text(&found).contains("No shares"));
}

#[test]
fn what_cannot_be_attributed_is_refused() {
    let refusal = |a: &str, b: &str, plan: &AttributePlan| {
        run(a, b, &Fake::quiet(), plan).expect_err("refused").to_string()
    };
    assert_eq!(
        refusal("linux-6.12", "linux-6.12", &plan()),
        "linux-6.12 and linux-6.12 do not differ in any setting"
    );
    let wrong = AttributePlan { row: Some("tiem".to_owned()), ..plan() };
    assert_eq!(refusal("linux-6.6", "linux-6.12", &wrong), "the workload has no result `tiem`; it has time");
}
