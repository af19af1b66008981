//! What a person looks at, whole; and what scripts rely on.

use super::*;
use ttwu_model::{MACHINES, Machine};

fn check_text(topology: &Topology, generation: Generation, expect: &str) {
    assert_eq!(render_text(topology, generation), expect);
}

#[test]
fn a_machine_of_96_cpus_fits_one_screen() {
    check_text(
        &Machine::find("kunpeng920").unwrap().topology(),
        Generation::V6_12,
        "\
96 CPUs 0-95, generic mask rules
  cores     96 of 1 CPU
  clusters  24 of 4 CPUs
  llcs      4 of 24 CPUs
  dies      not stated
  packages  2 of 48 CPUs
  nodes     4 of 24 CPUs
  distances    to   0   1   2   3
    from   0     10  12  20  22
    from   1     12  10  22  24
    from   2     20  22  10  12
    from   3     22  24  12  10

machine: 96 CPUs 0-95
  package 0: 48 CPUs 0-47
    node 0 = llc: 24 CPUs 0-23
      6 clusters: 0-3 | 4-7 | 8-11 | 12-15 | 16-19 | 20-23
    node 1 = llc: 24 CPUs 24-47
      6 clusters: 24-27 | 28-31 | 32-35 | 36-39 | 40-43 | 44-47
  package 1: 48 CPUs 48-95
    node 2 = llc: 24 CPUs 48-71
      6 clusters: 48-51 | 52-55 | 56-59 | 60-63 | 64-67 | 68-71
    node 3 = llc: 24 CPUs 72-95
      6 clusters: 72-75 | 76-79 | 80-83 | 84-87 | 88-91 | 92-95

scheduling domains as Linux 6.12 makes them
  CLS, 24 of 4 CPUs: 0-95 by 4
      4 groups, imbalance 117 %, CLUSTER, SHARE_LLC, PREFER_SIBLING
  MC, 4 of 24 CPUs: 0-23 | 24-47 | 48-71 | 72-95
      6 groups, imbalance 117 %, SHARE_LLC, PREFER_SIBLING
  NUMA within 12, 2 of 48 CPUs: 0-47 | 48-95
      2 groups, imbalance 117 %, imb_numa_nr 3, SERIALIZE, OVERLAP, NUMA
  NUMA within 20: 0-71 for 0-23 | 0-23,48-95 for 48-71
      2 groups, imbalance 117 %, imb_numa_nr 3, SERIALIZE, OVERLAP, NUMA
  NUMA within 22: 0-71 for 24-47 | 0-95 for 0-23,48-71 | 0-23,48-95 for 72-95
      2 groups, imbalance 117 %, imb_numa_nr 3 to 6, SERIALIZE, OVERLAP, NUMA
  NUMA within 24: 0-95 for 24-47,72-95
      2 groups, imbalance 117 %, imb_numa_nr 6, SERIALIZE, OVERLAP, NUMA
  flags of all: BALANCE_NEWIDLE BALANCE_EXEC BALANCE_FORK WAKE_AFFINE
  sd_llc, 4 of 24 CPUs: 0-23 | 24-47 | 48-71 | 72-95
",
    );
}

#[test]
fn threads_and_small_caches() {
    check_text(
        &Machine::find("epyc-7313").unwrap().topology(),
        Generation::V5_15,
        "\
32 CPUs 0-31, x86 mask rules
  cores     16 of 2 CPUs
  clusters  not stated
  llcs      4 of 8 CPUs
  dies      not stated
  packages  1 of 32 CPUs
  nodes     1 of 32 CPUs

package 0 = node 0: 32 CPUs 0-31
  4 llcs: 0-3,16-19 | 4-7,20-23 | 8-11,24-27 | 12-15,28-31
  16 threaded cores: 0-15 with 16-31

scheduling domains as Linux 5.15 makes them
  SMT, 16 of 2 CPUs: 0-15 with 16-31
      2 groups, imbalance 110 %, SHARE_CPUCAPACITY, SHARE_PKG_RESOURCES
  MC, 4 of 8 CPUs: 0-3,16-19 | 4-7,20-23 | 8-11,24-27 | 12-15,28-31
      4 groups, imbalance 117 %, SHARE_PKG_RESOURCES
  DIE, 1 of 32 CPUs: 0-31
      4 groups, imbalance 117 %
  flags of all: BALANCE_NEWIDLE BALANCE_EXEC BALANCE_FORK WAKE_AFFINE
    PREFER_SIBLING
  sd_llc, 4 of 8 CPUs: 0-3,16-19 | 4-7,20-23 | 8-11,24-27 | 12-15,28-31
",
    );
}

#[test]
fn what_nobody_states_is_said() {
    // No caches and no distances, one node without memory, weak and offline CPUs.
    let text = "2 nodes x 4 cores; llc unknown; offline 7; capacity 446: 0-1; no-memory 1";
    check_text(
        &Topology::parse(text).unwrap(),
        Generation::V7_2,
        "\
7 CPUs 0-6, offline 7, generic mask rules
  cores     7 of 1 CPU
  clusters  not stated
  llcs      not stated
  dies      not stated
  packages  1 of 7 CPUs
  nodes     1 of 3 CPUs, 1 of 4 CPUs
  distances not stated; domains assume 20 to another node, as Linux does
  capacity  446 (0-1), 1024 (2-6)

package 0: 7 CPUs 0-6
  node 0: 4 CPUs 0-3
  node 1 (no memory): 3 CPUs 4-6

scheduling domains as Linux 7.2 makes them
  MC, 1 of 4 CPUs: 0-3
      4 groups, imbalance 117 %, ASYM_CPUCAPACITY, ASYM_CPUCAPACITY_FULL,
      SHARE_LLC
  MC, 1 of 3 CPUs: 4-6
      3 groups, imbalance 117 %, SHARE_LLC, PREFER_SIBLING
  NUMA within 20, 1 of 7 CPUs: 0-6
      2 groups, imbalance 117 %, imb_numa_nr 1, ASYM_CPUCAPACITY,
      ASYM_CPUCAPACITY_FULL, SERIALIZE, NUMA
  flags of all: BALANCE_NEWIDLE BALANCE_EXEC BALANCE_FORK WAKE_AFFINE
  sd_llc, 1 of 3 CPUs, 1 of 4 CPUs: 0-3 | 4-6
      (no llcs are stated: this is what the kernel works with)
",
    );
}

#[test]
fn every_line_fits_80_columns() {
    let many = "arch x86; 2 sockets x 4 nodes x 4 llcs x 8 cores x 2 threads; distances 12";
    let odd = "cpus 0-199:2/3; llc 0-199:2/3; core 0,3 | 1,4; node 0: 0-199:2/3";
    let texts = MACHINES.iter().map(|machine| machine.text).chain([many, odd]);
    for text in texts {
        for generation in Generation::CHECKED {
            let topology = Topology::parse(text).expect(text);
            for line in render_text(&topology, generation).lines() {
                assert!(line.len() <= COLUMNS, "`{text}` under {generation}: {line}");
            }
        }
    }
}

#[test]
fn json_has_what_scripts_rely_on() {
    let topology =
        Topology::parse("arch x86; 2 sockets x 1 node x 2 cores; distances 21; offline 3").unwrap();
    let json: serde_json::Value = serde_json::from_str(&render_json(&topology, Generation::V6_12)).unwrap();
    assert_eq!(json["schema"], "ttwu/topology/1");
    assert_eq!(json["kernel"], "6.12");
    assert_eq!(Topology::parse(json["text"].as_str().unwrap()), Ok(topology));
    let cpu = &json["cpus"][1];
    assert_eq!(
        (&cpu["id"], &cpu["core"], &cpu["llc"], &cpu["node"]),
        (&1.into(), &1.into(), &0.into(), &0.into())
    );
    assert!(cpu["cluster"].is_null(), "not stated is null, not 0");
    assert_eq!(json["nodes"][1]["distances"], serde_json::json!([21, 10]));
    let domain = &json["domains"][0][1];
    assert_eq!(
        (&domain["level"], &domain["span"], &domain["numa_distance"]),
        (&"NUMA".into(), &"0-2".into(), &21.into())
    );
    let flags =
        "SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SERIALIZE SD_OVERLAP SD_NUMA";
    assert_eq!(domain["flags"], flags.split(' ').collect::<serde_json::Value>());
    assert_eq!(domain["groups"], serde_json::json!(["0-1", "2"]));
    assert_eq!(json["domains"][3], serde_json::json!([]), "an offline CPU has no domains");
}
