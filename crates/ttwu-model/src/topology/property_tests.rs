//! Laws that hold for every machine, on random ones.

use super::*;
use ttwu_testing::Rng;

/// A random regular shape with random damage: offline CPUs, unknown or private caches, capacities, memory.
fn random_text(rng: &mut Rng) -> String {
    let mut text = String::from(["arch x86", "arch generic"][rng.below(2)]);
    let words = ["sockets", "nodes", "dies", "llcs", "clusters"];
    let mut counts: Vec<String> = Vec::new();
    let mut nodes = 1;
    let mut cpus = 1;
    for word in words {
        if rng.below(2) == 0 {
            let count = 1 + rng.below(3);
            counts.push(format!("{count} {word}"));
            cpus *= count;
            if word == "nodes" || word == "sockets" {
                nodes *= count;
            }
        }
    }
    let (cores, threads) = (1 + rng.below(4), 1 + rng.below(2));
    cpus *= cores * threads;
    counts.push(format!("{cores} cores x {threads} threads"));
    text += &format!("; {}", counts.join(" x "));
    text += ["", "; threads adjacent"][rng.below(2)];
    text += ["", "", "; llc cpu", "; llc core", "; llc unknown"][if threads == 1 { rng.below(5) } else { 0 }];
    let has_nodes = counts.iter().any(|count| count.contains("nodes"));
    if has_nodes && rng.below(4) > 0 {
        text += &format!("; distances {}", distances(rng, nodes));
    }
    if cpus > 2 && rng.below(3) == 0 {
        text += &format!("; offline {}", rng.below(cpus));
    }
    if rng.below(4) == 0 {
        text += &format!("; capacity {}: 0-{}", 1 + rng.below(1024), rng.below(cpus));
    }
    text
}

/// A metric on a ring, as real interconnects nearly are, or arbitrary numbers.
fn distances(rng: &mut Rng, nodes: usize) -> String {
    let arbitrary = rng.below(3) == 0;
    let hop = 1 + rng.below(12);
    let row = |rng: &mut Rng, from: usize| {
        let number = |rng: &mut Rng, to: usize| {
            let apart = from.abs_diff(to).min(nodes - from.abs_diff(to));
            if from == to {
                10
            } else if arbitrary {
                11 + rng.below(30)
            } else {
                10 + hop * apart
            }
        };
        (0..nodes).map(|to| number(rng, to).to_string()).collect::<Vec<_>>().join(" ")
    };
    (0..nodes).map(|from| row(rng, from)).collect::<Vec<_>>().join(" / ")
}

fn check_domains(topology: &Topology, generation: Generation, context: &str) {
    let domains = SchedDomains::build(topology, generation);
    for cpu in topology.online().iter() {
        let chain = domains.of(cpu);
        for (index, domain) in chain.iter().enumerate() {
            assert!(domain.span().contains(cpu), "{context}: CPU {cpu} outside its {:?}", domain.level());
            assert!(domain.span().is_subset(topology.online()), "{context}: offline CPU in a span");
            assert!(domain.weight() > 1, "{context}: CPU {cpu} keeps a domain of one CPU");
            if index > 0 {
                assert!(
                    chain[index - 1].span().is_subset(domain.span()),
                    "{context}: CPU {cpu} spans do not nest"
                );
                let same = chain[index - 1].span() == domain.span();
                let old_numa = !generation.since(5, 10) && domain.flags().contains(SdFlags::NUMA);
                assert!(!same || old_numa, "{context}: CPU {cpu} keeps two domains of one span");
            }
            check_groups(&domains, domain, cpu, context);
        }
        if let Some(llc) = domains.llc(cpu) {
            assert_eq!(domains.llc_id(cpu), llc.span().lowest().unwrap(), "{context}");
            assert_eq!(domains.llc_size(cpu) as usize, llc.weight(), "{context}");
        } else {
            assert_eq!((domains.llc_id(cpu), domains.llc_size(cpu)), (cpu, 1), "{context}");
        }
        if !generation.since(6, 7) {
            assert_eq!(domains.share_id(cpu), domains.llc_id(cpu), "{context}");
        }
    }
}

fn check_groups(domains: &SchedDomains, domain: &SchedDomain, cpu: CpuId, context: &str) {
    let groups: Vec<&SchedGroup> = domains.groups_of(domain).collect();
    assert!(groups[0].span().contains(cpu), "{context}: CPU {cpu} is not in its own group");
    let covered = groups.iter().fold(CpuSet::new(), |all, group| all.union(group.span()));
    let numa = domain.flags().contains(SdFlags::NUMA);
    if !numa {
        let total: usize = groups.iter().map(|group| group.weight()).sum();
        assert_eq!(
            &covered,
            domain.span(),
            "{context}: groups of CPU {cpu} do not cover {:?}",
            domain.level()
        );
        assert_eq!(total, domain.weight(), "{context}: groups of CPU {cpu} overlap on {:?}", domain.level());
    }
    for group in groups {
        assert!(group.sgc().index() < domains.sgc_count(), "{context}");
        assert!(group.balance_mask().is_subset(group.span()), "{context}: balance mask outside its group");
    }
}

#[test]
fn laws_hold_on_random_machines() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let text = random_text(&mut rng);
        let context = format!("seed {seed}: `{text}`");
        let topology = Topology::parse(&text).unwrap_or_else(|error| panic!("{context}: {error}"));
        let printed = topology.to_string();
        assert_eq!(Topology::parse(&printed).as_ref(), Ok(&topology), "{context} printed as\n{printed}");
        for generation in Generation::CHECKED {
            check_domains(&topology, generation, &format!("{context} {generation}"));
        }
        let number = |rng: &mut Rng| CpuId::new(u16::try_from(rng.below(topology.cpu_bound())).unwrap());
        for _ in 0..20 {
            let (a, b) = (number(&mut rng), number(&mut rng));
            assert_eq!(topology.level(a, b), topology.level(b, a), "{context}: {a} and {b}");
        }
    }
}

#[test]
fn groups_cover_numa_spans_on_metric_distances() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let nodes = 2 + rng.below(6);
        let hop = 1 + rng.below(12);
        let apart = |from: usize, to: usize| from.abs_diff(to).min(nodes - from.abs_diff(to));
        let row = |from| {
            (0..nodes).map(|to| (10 + hop * apart(from, to)).to_string()).collect::<Vec<_>>().join(" ")
        };
        let table = (0..nodes).map(row).collect::<Vec<_>>().join(" / ");
        let text = format!("{nodes} nodes x {} cores; distances {table}", 1 + rng.below(4));
        let topology = Topology::parse(&text).expect(&text);
        let domains = SchedDomains::build(&topology, Generation::V6_12);
        for cpu in topology.online().iter() {
            for domain in domains.of(cpu) {
                let covered =
                    domains.groups_of(domain).fold(CpuSet::new(), |all, group| all.union(group.span()));
                assert_eq!(&covered, domain.span(), "seed {seed}: `{text}` CPU {cpu} {:?}", domain.level());
                assert!(
                    domains.groups_of(domain).all(|group| !group.balance_mask().is_empty()),
                    "seed {seed}"
                );
            }
        }
    }
}

#[test]
fn damaged_texts_never_panic() {
    for machine in MACHINES {
        for seed in 0..300 {
            let bytes = ttwu_testing::damage(machine.text.as_bytes(), seed);
            if let Ok(topology) = Topology::parse(&String::from_utf8_lossy(&bytes)) {
                let printed = topology.to_string();
                assert_eq!(Topology::parse(&printed), Ok(topology), "{} seed {seed}", machine.name);
            }
        }
    }
}
