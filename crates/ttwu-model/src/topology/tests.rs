//! The worked examples: numbers that a person computed, for named machines and kernels.

use super::*;

fn cpu(number: u16) -> CpuId {
    CpuId::new(number)
}

fn machine(name: &str) -> Topology {
    Machine::find(name).expect(name).topology()
}

/// `CLS 0-3, MC 0-23, NUMA 0-47`.
fn chain(domains: &SchedDomains, number: u16) -> String {
    let name =
        |domain: &SchedDomain| format!("{} {}", domain.level().name(domains.generation()), domain.span());
    domains.of(cpu(number)).iter().map(name).collect::<Vec<_>>().join(", ")
}

fn check_chain(text: &str, generation: Generation, number: u16, expect: &str) {
    let topology = Topology::parse(text).expect(text);
    let domains = SchedDomains::build(&topology, generation);
    assert_eq!(chain(&domains, number), expect, "CPU {number} of `{text}` under {generation}");
}

fn check_machine(name: &str, generation: Generation, number: u16, expect: &str) {
    check_chain(Machine::find(name).expect(name).text, generation, number, expect);
}

#[test]
fn named_machines_are_valid_and_print_what_they_are_read_from() {
    for machine in MACHINES {
        let topology = machine.topology();
        assert_eq!(Topology::parse(&topology.to_string()).as_ref(), Ok(&topology), "{}", machine.name);
        assert!(!machine.sources.is_empty(), "{} has no sources", machine.name);
        assert!(
            topology.to_string().lines().count() <= 4,
            "{} is not a short text:\n{topology}",
            machine.name
        );
    }
}

#[test]
fn kunpeng_domains() {
    let k = "kunpeng920";
    // NUMA(24) spans what NUMA(22) does for CPU 0; NUMA(20) adds nothing for CPU 24.
    check_machine(k, Generation::V5_19, 0, "CLS 0-3, MC 0-23, NUMA 0-47, NUMA 0-71, NUMA 0-95");
    check_machine(k, Generation::V7_2, 24, "CLS 24-27, MC 24-47, NUMA 0-47, NUMA 0-71, NUMA 0-95");
    check_machine(k, Generation::V5_9, 0, "MC 0-23, NUMA 0-47, NUMA 0-71, NUMA 0-95");
    check_machine(k, Generation::V5_9_CLUSTER_RFC, 5, "CL 4-7, MC 0-23, NUMA 0-47, NUMA 0-71, NUMA 0-95");
    check_machine("kunpeng920-node", Generation::V5_9_CLUSTER_RFC, 0, "CL 0-3, MC 0-23");

    let domains = SchedDomains::build(&machine(k), Generation::V6_12);
    assert!(domains.of(cpu(0)).iter().all(|domain| domain.flags().contains(SdFlags::WAKE_AFFINE)));
    assert_eq!(domains.llc_size(cpu(30)), 24);
    assert_eq!(domains.llc_id(cpu(30)), cpu(24));
    assert_eq!(domains.share_id(cpu(30)), cpu(28));
    assert!(domains.cluster_active());
    assert!(!domains.smt_active());
    let old = SchedDomains::build(&machine(k), Generation::V6_1);
    assert!(!old.cluster_active(), "the CLUSTER flag came with v6.7");
    assert_eq!(old.share_id(cpu(30)), cpu(24));
}

#[test]
fn kunpeng_without_clusters_has_single_cpu_groups() {
    let rings = |generation| {
        let domains = SchedDomains::build(&machine("kunpeng920"), generation);
        let mc = domains.of(cpu(5)).iter().find(|domain| domain.level() == DomainLevel::Mc).unwrap().clone();
        domains.groups_of(&mc).map(|group| group.span().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(rings(Generation::V5_9), "5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 0 1 2 3 4");
    assert_eq!(rings(Generation::V5_19), "4-7 8-11 12-15 16-19 20-23 0-3");
    assert_eq!(rings(Generation::V5_9_CLUSTER_RFC), "4-7 8-11 12-15 16-19 20-23 0-3");
}

#[test]
fn cluster_rfc_intervals_follow_its_weight() {
    let domains = SchedDomains::build(&machine("kunpeng920-node"), Generation::V5_9_CLUSTER_RFC);
    let cl = &domains.of(cpu(0))[0];
    assert_eq!((cl.min_interval_ms(), cl.max_interval_ms()), (4, 8));
    assert_eq!(cl.flags(), domains.of(cpu(0))[1].flags());
    assert_eq!(domains.cluster(cpu(7)).unwrap().span().to_string(), "4-7");
}

#[test]
fn kunpeng_numa_groups() {
    let domains = SchedDomains::build(&machine("kunpeng920"), Generation::V6_12);
    let ring = |number: u16, index: usize| {
        let domain = &domains.of(cpu(number))[index];
        let group = |group: &SchedGroup| {
            format!("{}:{{{} mask={}}}", group.balance_cpu(), group.span(), group.balance_mask())
        };
        domains.groups_of(domain).map(group).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ring(0, 2), "0:{0-23 mask=0-23} 24:{24-47 mask=24-47}");
    // NUMA(20) of CPU 0: its own pair, and node 2 as far as it does not leave 0-71.
    assert_eq!(ring(0, 3), "0:{0-47 mask=0-47} 48:{48-71 mask=48-71}");
    // Of NUMA(22) node 3 is left; within 20 it sees node 2, and only its own CPUs balance for that view.
    assert_eq!(ring(0, 4), "0:{0-71 mask=0-23} 72:{48-95 mask=72-95}");
}

#[test]
fn xeon_and_epyc_domains() {
    check_machine("xeon-8269cy", Generation::V5_19, 0, "SMT 0,52, MC 0-25,52-77, NUMA 0-103");
    check_machine("xeon-6132x2", Generation::V5_15, 14, "SMT 14,42, MC 14-27,42-55, NUMA 0-55");
    check_machine("xeon-3204x2", Generation::V6_12, 7, "MC 6-11, NUMA 0-11");
    check_machine("epyc-7313", Generation::V5_15, 5, "SMT 5,21, MC 4-7,20-23, DIE 0-31");
    check_machine("epyc-7313", Generation::V6_12, 5, "SMT 5,21, MC 4-7,20-23, PKG 0-31");
    check_machine("epyc-7313x2", Generation::V6_1, 5, "SMT 5,37, MC 4-7,36-39, DIE 0-15,32-47, NUMA 0-63");
    check_machine("i7-4790", Generation::V6_6, 3, "SMT 3,7, MC 0-7");
    check_machine("uma-8", Generation::V5_5, 0, "MC 0-7");
    check_machine("xfs-48cpu-numa", Generation::V5_5, 0, "SMT 0,24, MC 0-11,24-35, NUMA 0-47");
    let domains = SchedDomains::build(&machine("xeon-8269cy"), Generation::V6_1);
    assert_eq!(domains.llc_size(cpu(60)), 52);
    assert!(domains.smt_active());
    let domains = SchedDomains::build(&machine("epyc-7313"), Generation::V6_12);
    assert_eq!(domains.llc_size(cpu(21)), 8);
    assert!(!domains.same_llc(cpu(3), cpu(4)));
}

#[test]
fn altra_with_private_last_levels_has_no_llc_domain() {
    check_machine("ampere-altra", Generation::V5_19, 7, "DIE 0-79");
    check_machine("ampere-altra", Generation::V6_12, 7, "PKG 0-79");
    check_machine("ampere-altra-l3", Generation::V6_1, 7, "MC 0-79");
    let domains = SchedDomains::build(&machine("ampere-altra"), Generation::V5_19);
    assert!(domains.llc(cpu(7)).is_none());
    assert_eq!((domains.llc_size(cpu(7)), domains.llc_id(cpu(7))), (1, cpu(7)));
    assert!(!domains.same_llc(cpu(6), cpu(7)));
    assert_eq!(domains.of(cpu(7))[0].groups().len(), 80);
    // With pairs in the firmware's tables the pair is the cache domain.
    let pairs = "1 socket x 40 clusters x 2 cores; llc cpu";
    check_chain(pairs, Generation::V5_19, 7, "CLS 6-7, DIE 0-79");
    check_chain(pairs, Generation::V6_12, 7, "MC 6-7, PKG 0-79");
    let domains = SchedDomains::build(&Topology::parse(pairs).unwrap(), Generation::V6_1);
    assert_eq!(domains.llc(cpu(7)).unwrap().span().to_string(), "6-7");
}

#[test]
fn unknown_last_level_is_not_a_private_one() {
    // The neutral rules take the package or the node, x86 takes the CPU itself.
    check_chain("1 socket x 8 cores; llc unknown", Generation::V6_12, 0, "MC 0-7");
    check_chain("1 socket x 8 cores; llc cpu", Generation::V6_12, 0, "PKG 0-7");
    check_chain("2 sockets x 4 cores; llc unknown", Generation::V6_12, 0, "MC 0-3, PKG 0-7");
    check_chain("arch x86; 1 socket x 2 cores; llc unknown", Generation::V6_12, 0, "PKG 0-1");
    check_chain(
        "arch x86; 1 socket x 2 cores x 2 threads; llc unknown",
        Generation::V6_12,
        0,
        "SMT 0,2, PKG 0-3",
    );
    let unknown = Topology::parse("8 cores; llc unknown").unwrap();
    assert!(!unknown.is_known(Unit::Llc));
    assert_eq!(unknown.level(cpu(0), cpu(1)), Some(Level::Node));
}

#[test]
fn attributes_of_each_generation() {
    let row = |name: &str, generation, index: usize| {
        let domains = SchedDomains::build(&machine(name), generation);
        let d = domains.of(cpu(0))[index].clone();
        (d.min_interval_ms(), d.max_interval_ms(), d.busy_factor(), d.imbalance_pct(), d.cache_nice_tries())
    };
    assert_eq!(row("epyc-7313x2", Generation::V5_5, 0), (2, 4, 32, 110, 0));
    assert_eq!(row("epyc-7313x2", Generation::V5_9, 1), (8, 16, 32, 117, 1));
    assert_eq!(row("epyc-7313x2", Generation::V5_9, 2), (32, 64, 32, 125, 1));
    assert_eq!(row("epyc-7313x2", Generation::V5_9, 3), (64, 128, 32, 125, 2));
    assert_eq!(row("epyc-7313x2", Generation::V5_15, 2), (32, 64, 16, 117, 1));
    assert_eq!(row("epyc-7313x2", Generation::V7_2, 3), (64, 128, 16, 117, 2));
}

#[test]
fn flags_of_each_generation() {
    let flags = |name: &str, generation, index: usize| {
        let domains = SchedDomains::build(&machine(name), generation);
        domains.of(cpu(0))[index].flags().names(generation).collect::<Vec<_>>().join(" ")
    };
    let common = "BALANCE_NEWIDLE BALANCE_EXEC BALANCE_FORK WAKE_AFFINE";
    assert_eq!(
        flags("uma-8", Generation::V5_5, 0),
        format!("LOAD_BALANCE {common} SHARE_PKG_RESOURCES PREFER_SIBLING")
    );
    assert_eq!(flags("uma-8", Generation::V5_9, 0), format!("{common} SHARE_PKG_RESOURCES PREFER_SIBLING"));
    assert_eq!(flags("uma-8", Generation::V6_12, 0), format!("{common} SHARE_LLC PREFER_SIBLING"));
    assert_eq!(flags("xeon-3204x2", Generation::V6_12, 1), format!("{common} SERIALIZE OVERLAP NUMA"));
    assert_eq!(flags("xeon-3204x2", Generation::V7_2, 1), format!("{common} SERIALIZE NUMA"));
}

#[test]
fn far_nodes_do_not_pull_wakeups() {
    let flags = |text: &str| {
        let domains = SchedDomains::build(&Topology::parse(text).unwrap(), Generation::V6_12);
        domains.numa(cpu(0)).unwrap().flags().names(Generation::V6_12).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(flags("2 nodes x 4 cores; distances 31"), "BALANCE_NEWIDLE SERIALIZE OVERLAP NUMA");
    let near = "BALANCE_NEWIDLE BALANCE_EXEC BALANCE_FORK WAKE_AFFINE SERIALIZE OVERLAP NUMA";
    assert_eq!(flags("2 nodes x 4 cores; distances 30"), near);
    assert_eq!(flags("2 nodes x 4 cores; distances 32; reclaim 32"), near);
}

#[test]
fn numa_imbalance_table() {
    let top = |text: &str, generation, from: usize| {
        let domains = SchedDomains::build(&Topology::parse(text).unwrap(), generation);
        let nr = |domain: &SchedDomain| domain.imb_numa_nr().map(|nr| nr.to_string()).unwrap_or_default();
        domains.of(cpu(0))[from..].iter().map(nr).collect::<Vec<_>>().join(" ")
    };
    let text = |name: &str| Machine::find(name).unwrap().text;
    assert_eq!(top(text("xeon-8269cy"), Generation::V5_19, 2), "13");
    assert_eq!(top(text("xeon-8269cy"), Generation::V6_1, 2), "6");
    // CLS, MC, NUMA 48, 72, 96: 96 is twice the first NUMA domain's 48, 72 is not.
    assert_eq!(top(text("kunpeng920"), Generation::V5_19, 2), "6 6 12");
    assert_eq!(top(text("kunpeng920"), Generation::V6_6, 2), "3 3 6");
    assert_eq!(top(text("epyc-7313x2"), Generation::V5_19, 2), "4 4");
    assert_eq!(top(text("epyc-7313x2"), Generation::V6_12, 2), "4 4");
    assert_eq!(top(text("oracle-b"), Generation::V5_19, 1), "1");
    assert_eq!(top(text("oracle-b"), Generation::V6_1, 1), "1");
    assert_eq!(top("2 nodes x 8 cores; distances 21", Generation::V6_12, 1), "1");
    assert_eq!(top(text("kunpeng920"), Generation::V5_15, 1), "  ", "not there before v5.18");
}

#[test]
fn root_domains_cut_spans() {
    let topology = machine("kunpeng920");
    let roots = [CpuSet::parse_list("0-5").unwrap(), CpuSet::parse_list("24-47").unwrap()];
    let domains = SchedDomains::build_within(&topology, Generation::V6_12, &roots);
    assert_eq!(chain(&domains, 0), "CLS 0-3, MC 0-5");
    assert_eq!(chain(&domains, 4), "CLS 4-5, MC 0-5");
    assert_eq!(chain(&domains, 25), "CLS 24-27, MC 24-47");
    assert_eq!(chain(&domains, 6), "");
    assert_eq!((domains.llc_size(cpu(6)), domains.llc_id(cpu(6))), (1, cpu(6)));
    assert_eq!(domains.of(cpu(0))[1].min_interval_ms(), 24, "the interval counts the whole mask");
    assert!(domains.of(cpu(9999)).is_empty());
}

#[test]
fn offline_cpus_are_in_no_domain() {
    let topology = Topology::parse("arch x86; 1 socket x 2 cores x 2 threads; offline 3").unwrap();
    let domains = SchedDomains::build(&topology, Generation::V6_12);
    assert_eq!(chain(&domains, 0), "SMT 0,2, MC 0-2");
    assert_eq!(chain(&domains, 1), "MC 0-2");
    assert_eq!(chain(&domains, 3), "");
    assert_eq!(topology.level(cpu(1), cpu(3)), Some(Level::Smt));
}

#[test]
fn degenerate_small_machines() {
    check_chain("1 core", Generation::V6_12, 0, "");
    check_chain("2 cores", Generation::V6_12, 0, "MC 0-1");
    check_chain("1 core x 2 threads", Generation::V6_12, 0, "SMT 0-1");
}

#[test]
fn nodes_inside_a_package() {
    // Sub-NUMA clusters: the LLC spans the package, the kernel cuts it at the node; no PKG level on x86.
    let snc = "arch x86; 2 sockets x 2 nodes x 4 cores; llc socket; distances 10 11 21 21 / 11 10 21 21 / 21 21 10 11 / 21 21 11 10";
    check_chain(snc, Generation::V6_12, 0, "MC 0-3, NUMA 0-7, NUMA 0-15");
    let topology = Topology::parse(snc).unwrap();
    assert_eq!(topology.level(cpu(0), cpu(3)), Some(Level::Llc));
    assert_eq!(topology.level(cpu(0), cpu(4)), Some(Level::Remote));
    assert_eq!(topology.distance(cpu(0), cpu(4)), Some(11));
    let nps = "arch x86; 1 socket x 4 nodes x 2 llcs x 4 cores; distances 12";
    check_chain(nps, Generation::V6_12, 0, "MC 0-3, NODE 0-7, NUMA 0-31");
}

#[test]
fn asymmetric_capacities() {
    let text = "8 cores; capacity 446: 0-3";
    let flags = |generation| {
        let domains = SchedDomains::build(&Topology::parse(text).unwrap(), generation);
        domains.of(cpu(0))[0].flags()
    };
    let full = SdFlags::ASYM_CPUCAPACITY.with(SdFlags::ASYM_CPUCAPACITY_FULL);
    assert!(flags(Generation::V6_12).contains(full));
    assert!(flags(Generation::V5_9).contains(SdFlags::ASYM_CPUCAPACITY));
    assert!(!flags(Generation::V5_9).contains(SdFlags::ASYM_CPUCAPACITY_FULL));
    assert!(!flags(Generation::V5_9).contains(SdFlags::BALANCE_WAKE));
    assert!(flags(Generation::V5_5).contains(SdFlags::BALANCE_WAKE));
    // Little and big clusters with an LLC each: the caches lose PREFER_SIBLING, the level above is asymmetric.
    let text = "1 socket x 2 llcs x 4 cores; capacity 446: 0-3";
    let domains = SchedDomains::build(&Topology::parse(text).unwrap(), Generation::V6_12);
    assert_eq!(chain(&domains, 0), "MC 0-3, PKG 0-7");
    assert!(!domains.of(cpu(0))[0].flags().contains(SdFlags::PREFER_SIBLING));
    assert_eq!(domains.asym(cpu(0)).unwrap().span().to_string(), "0-7");
    let capacities: Vec<u32> = domains.groups_of(&domains.of(cpu(0))[1]).map(SchedGroup::capacity).collect();
    assert_eq!(capacities, [4 * 446, 4 * 1024]);
}

#[test]
fn levels_between_cpus() {
    let kunpeng = machine("kunpeng920");
    let level = |topology: &Topology, a, b| topology.level(cpu(a), cpu(b));
    assert_eq!(level(&kunpeng, 1, 1), Some(Level::SameCpu));
    assert_eq!(level(&kunpeng, 1, 3), Some(Level::Cluster));
    assert_eq!(level(&kunpeng, 1, 4), Some(Level::Llc));
    assert_eq!(level(&kunpeng, 1, 24), Some(Level::Remote));
    assert_eq!(level(&kunpeng, 1, 96), None);
    let epyc = machine("epyc-7313x2");
    assert_eq!(level(&epyc, 0, 32), Some(Level::Smt));
    assert_eq!(level(&epyc, 0, 35), Some(Level::Llc));
    assert_eq!(level(&epyc, 0, 4), Some(Level::Node));
    assert_eq!(level(&epyc, 0, 16), Some(Level::Remote));
    // A cluster that is the whole last level is that, not a cluster.
    let same = Topology::parse("2 clusters x 4 cores; llc cluster").unwrap();
    assert_eq!(level(&same, 0, 1), Some(Level::Llc));
    let dies = Topology::parse("1 socket x 2 dies x 4 cores").unwrap();
    assert_eq!(level(&dies, 0, 4), Some(Level::Node));
    let ccx = Topology::parse("1 socket x 2 dies x 2 llcs x 4 cores").unwrap();
    assert_eq!(level(&ccx, 0, 4), Some(Level::Die));
}

fn check_error(text: &str, expect: &str) {
    let error = Topology::parse(text).expect_err(text).to_string();
    assert_eq!(error, expect, "`{text}`");
}

#[test]
fn impossible_machines_are_refused_by_name() {
    check_error("", "no online CPU: expected at least one");
    check_error(
        "cpus 0-3; cluster 0-1 | 2-3; llc 0 | 1-2 | 3",
        "cluster `0-1` and llc `1-2` cross: expected one inside the other",
    );
    check_error(
        "cpus 0-3; core 0-1; llc 0 | 1-3",
        "core `0-1` is only partly in llc `0`: expected it inside",
    );
    check_error(
        "cpus 0-3; package 0-2 | 2-3",
        "CPU 2 is in two packages, `0-2` and `2-3`: expected disjoint lists",
    );
    check_error(
        "cpus 0-1; node 0: 0-1; node 1:; no-memory 1",
        "node 1 has neither CPUs nor memory: take it out or say what it has",
    );
    check_error("cpus 0-2; node 0: 0-1", "online CPU 2 is in no node: expected it in one");
    check_error("cpus 0-1; node 0: 0; node 0: 1", "node 0 is stated twice: expected one list a node");
    check_error(
        "cpus 0-1; llc 0-4",
        "llc list `0-4` has CPU 2, which is neither online nor offline: add it or take it out",
    );
    check_error(
        "2 nodes x 1 core; distances 10 21 / 9 10",
        "distance from node 1 to node 0 is 9: expected 10 to itself and 11 to 254 to any other",
    );
    check_error(
        "2 nodes x 1 core; distances 10 21",
        "distances: expected 2 rows of 2 numbers, found 1 rows of 2",
    );
    check_error("4 cores; capacity 2000: 0", "capacity 2000 of CPUs `0`: expected 1 to 1024");
    check_error("4 cores; reclaim 3", "reclaim distance 3: expected at least 10");
    check_error("cpus 0-1; offline 1", "CPU 1 is both online and offline: expected one of them");
    check_error("cpus 9000", "CPU 9000: expected a number below 8192");
    check_error(
        "4 cores\nfoo 3",
        "line 2: expected a shape such as `2 sockets x 4 cores` or a known statement, found `foo`",
    );
    check_error("4 cores\nllc 0-", "line 2: bad CPU list `0-`: expected ranges such as `0-3,8`, found `0-`");
    check_error(
        "2 sockets x 5000 cores",
        "line 1: expected 1 to 8192 CPUs in all, found `2 sockets x 5000 cores`",
    );
    check_error("2 sockets", "line 1: expected a number of cores, found `2 sockets`");
}

#[test]
fn text_form_round_trips() {
    for text in [
        "cpus 0-3,8-11; offline 4-7; core 0,8 | 1,9 | 2,10 | 3,11; llc 0-3,8-11; package 0-3,8-11",
        "arch x86; 2 nodes x 2 cores x 2 threads; threads adjacent; distances 10 15 / 20 10; memory 0; no-memory 1",
        "node 0: 0-3; node 2: 4-7; node 5:; distances 10 12 20 / 12 10 30 / 20 30 10; cluster 0-7 by 2",
        "4 cores; offline 3; capacity 300: 0; capacity 512: 1-2; reclaim 40",
        "8 cores; llc 0-3 | 4-7; cluster 0-1",
        "cpus 5",
        "cpus 0-1\nllc unknown",
        "1 core; memory 0",
    ] {
        let topology = Topology::parse(text).expect(text);
        let printed = topology.to_string();
        assert_eq!(Topology::parse(&printed).as_ref(), Ok(&topology), "`{text}` printed as\n{printed}");
    }
}

#[test]
fn regular_machines_print_as_a_shape() {
    let kunpeng = machine("kunpeng920").to_string();
    assert_eq!(
        kunpeng,
        "arch generic\n2 sockets x 2 nodes x 6 clusters x 4 cores\ndistances 10 12 20 22 / 12 10 22 24 / 20 22 10 12 / 22 24 12 10\n"
    );
    assert_eq!(machine("ampere-altra").to_string(), "arch generic\n1 socket x 80 cores\nllc core\n");
    assert_eq!(
        machine("epyc-7313").to_string(),
        "arch x86\n1 socket x 4 llcs x 4 cores x 2 threads\nreclaim 32\n"
    );
}

#[test]
fn caches_become_last_levels() {
    let set = |list: &str| CpuSet::parse_list(list).unwrap();
    let cache = |level, list: &str| CacheSharing { level, cpus: set(list) };
    let mut lists = SiblingLists::new(Arch::X86, set("0-3"));
    lists.set_caches(&[cache(1, "0"), cache(2, "0-1"), cache(2, "2-3"), cache(3, "0-3")]);
    let topology = Topology::from_sibling_lists(&lists).unwrap();
    assert_eq!(topology.units(Unit::Llc), [set("0-3")]);
    assert_eq!(topology.units(Unit::Cluster), [set("0-1"), set("2-3")]);
    let mut lists = SiblingLists::new(Arch::Generic, set("0-3"));
    lists.set_caches(&[cache(1, "0"), cache(1, "1")]);
    assert!(!Topology::from_sibling_lists(&lists).unwrap().is_known(Unit::Llc), "an L1 states no last level");
}

#[test]
fn releases_name_generations() {
    assert_eq!(Generation::from_release("6.12.117+deb13-amd64"), Some(Generation::V6_12));
    assert_eq!(Generation::from_release("5.9+CL"), Some(Generation::V5_9_CLUSTER_RFC));
    assert_eq!(Generation::from_release("6.18.44-fc-v669"), Some(Generation::new(6, 18)));
    assert_eq!(Generation::from_release("linux"), None);
    for generation in Generation::CHECKED {
        assert_eq!(Generation::from_release(&generation.to_string()), Some(generation));
    }
}

#[test]
fn a_large_machine_has_few_groups() {
    let text = "arch x86; 2 sockets x 4 nodes x 4 llcs x 8 cores x 2 threads; distances 10 12 12 12 32 32 32 32 / 12 10 12 12 32 32 32 32 / 12 12 10 12 32 32 32 32 / 12 12 12 10 32 32 32 32 / 32 32 32 32 10 12 12 12 / 32 32 32 32 12 10 12 12 / 32 32 32 32 12 12 10 12 / 32 32 32 32 12 12 12 10; reclaim 32";
    let topology = Topology::parse(text).unwrap();
    let domains = SchedDomains::build(&topology, Generation::V6_12);
    assert_eq!(
        chain(&domains, 0),
        "SMT 0,256, MC 0-7,256-263, NODE 0-31,256-287, NUMA 0-127,256-383, NUMA 0-511"
    );
    // 512 threads, 256 cores, 32 caches, 8 nodes, 2 sockets: no level went, so own and others' views are equal.
    assert_eq!(domains.groups.len(), 512 + 256 + 32 + 8 + 2);
}
