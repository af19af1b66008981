//! Scenario files: reading, errors at their place, and back.

use ttwu_fair::Kernel;
use ttwu_model::{MACHINES, Topology};

use super::{Nothing, Surroundings, preset_of};
use crate::{Basis, Cost, Costs, Governor, MemoryPlacement, PRESETS, PreemptionModel, Scenario, Switch};

const FULL: &str = r#"scenario = 1
workload = "hackbench:groups=1,threads,pipe,loops=10"
machine = { name = "kunpeng920-node", with = "llc cluster" }
policy = "linux-6.12 -RUN_TO_PARITY"
seed = 7
duration = "2s"

[costs]
preset = "altra"
ipi_delivery_ns = 0
wake_base_ns = "3/2"
scan_cpu_ns = { value = 31, basis = "measured" }

[settings]
preemption = "full"
governor = "fixed 1"
deepest_idle = 2
idle_history = "400us"
polling = "never"
frequency = { min_permille = 390, sample = "10ms" }
noise = { run = "20us", sleep_min = "20ms", sleep_max = "100ms" }
wait_queue_lock = false
memory = "node 0"
tick_skew = "spread"
cpus = "0-11"
starved = "5s"
idle_spans_count_exit = true
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, &Nothing).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn fault(text: &str) -> String {
    Scenario::parse(text, &Nothing).expect_err("faulty").to_string()
}

#[test]
fn every_key_reaches_the_scenario() {
    let scenario = parse(FULL);
    assert_eq!((scenario.seed, scenario.until_ns), (7, 2_000_000_000));
    assert_eq!(scenario.policy.to_string(), "linux-6.12 -RUN_TO_PARITY");
    assert_eq!(scenario.costs.preset_name(), "altra");
    let preset = Costs::preset("altra").expect("known");
    assert_eq!(scenario.costs.get(Cost::IpiDelivery), 0);
    assert_eq!(scenario.costs.get(Cost::WakeBase), preset.get(Cost::WakeBase) * 3 / 2);
    assert_eq!(
        (scenario.costs.get(Cost::ScanCpu), scenario.costs.basis(Cost::ScanCpu)),
        (31, Basis::Measured)
    );
    let settings = &scenario.settings;
    assert_eq!((settings.preemption, settings.idle.governor), (PreemptionModel::Full, Governor::Fixed(1)));
    assert_eq!((settings.idle.deepest, settings.idle.history_ns), (Some(2), Some(400_000)));
    assert_eq!((settings.wait_queue_lock, settings.starved_ns), (Switch::Off, 5_000_000_000));
    assert!(matches!(settings.memory, MemoryPlacement::Node(_)));
    assert_eq!(settings.allowed.as_ref().map(ttwu_model::CpuSet::len), Some(12));
}

#[test]
fn a_scenario_prints_the_file_that_it_reads() {
    let plain = "workload = \"pipe:loop=5\"\nmachine = \"uma-8\"\n";
    let own = "machine = { text = \"2 sockets x 3 cores\" }\n[costs]\npreset = \"vm\"\n[workload]\n[[workload.tasks]]\nname = \"t\"\ndo = \"repeat 3 { run 1ms; sleep 2ms }\"\n";
    for text in [FULL, plain, own] {
        let scenario = parse(text);
        let printed = scenario.to_toml();
        let back = parse(&printed);
        assert_eq!(back.to_toml(), printed);
        assert_eq!(
            (&back.workload, &back.topology, &back.policy),
            (&scenario.workload, &scenario.topology, &scenario.policy)
        );
        assert_eq!((&back.costs, &back.settings), (&scenario.costs, &scenario.settings));
        assert_eq!((back.seed, back.until_ns, back.id()), (scenario.seed, scenario.until_ns, scenario.id()));
    }
    let scenario = parse(plain);
    assert_eq!((scenario.policy.kernel(), scenario.until_ns), (Kernel::V6_12, 60_000_000_000));
    assert_eq!(
        scenario.to_toml(),
        "scenario = 1\nworkload = \"pipe:loop=5\"\nmachine = \"uma-8\"\npolicy = \"linux-6.12\"\nseed = 1\nduration = \"60s\"\n"
    );
}

#[test]
fn an_id_changes_with_anything_that_counts() {
    let base = parse(FULL).id();
    assert_eq!(parse(FULL).id(), base);
    assert_eq!(base.to_string().len(), 32);
    for (from, to) in [
        ("seed = 7", "seed = 8"),
        ("loops=10", "loops=11"),
        ("-RUN_TO_PARITY", "+RUN_TO_PARITY"),
        ("llc cluster", "llc core"),
        ("ipi_delivery_ns = 0", "ipi_delivery_ns = 1"),
        ("basis = \"measured\"", "basis = \"fitted\""),
        ("duration = \"2s\"", "duration = \"3s\""),
        ("deepest_idle = 2", "deepest_idle = 1"),
    ] {
        assert_ne!(parse(&FULL.replace(from, to)).id(), base, "{to}");
    }
    // The way in which it is written does not.
    assert_eq!(parse(&FULL.replace("groups=1,threads", "T, g=1").replace("\"2s\"", "\"2000ms\"")).id(), base);
}

#[test]
fn errors_point_at_line_and_column() {
    for (from, to, message) in [
        (
            "scenario = 1",
            "scenario = 2",
            "1:1: scenario: this file is of format 2, and formats up to 1 are known; a newer ttwu reads it",
        ),
        (
            "hackbench:groups",
            "hackbench:group",
            "2:23: hackbench has no option `group`; did you mean `groups`?",
        ),
        (
            "kunpeng920-node",
            "kunpeng920-nod",
            "3:20: machine: no machine is named `kunpeng920-nod`; did you mean `kunpeng920-node`?",
        ),
        (
            "linux-6.12 -RUN_TO_PARITY",
            "linux-6.12 -RUN_TO_PARTY",
            "4:10: policy: unknown setting `RUN_TO_PARTY`; did you mean `RUN_TO_PARITY`?",
        ),
        ("seed = 7", "sed = 7", "5:1: scenario: unknown key `sed`; did you mean `seed`?"),
        ("\"2s\"", "2", "6:12: duration: expected a time above 0 with its unit, such as `2s`"),
        ("\"altra\"", "\"altar\"", "9:10: preset: unknown preset `altar`; did you mean `altra`?"),
        (
            "ipi_delivery_ns",
            "ipi_delivery",
            "10:1: costs: unknown cost `ipi_delivery`; did you mean `ipi_delivery_ns`?",
        ),
        (
            "\"3/2\"",
            "\"much\"",
            "11:16: wake_base_ns: expected ns, a fraction of the preset such as \"3/2\", or { value, basis }",
        ),
        (
            "\"full\"",
            "\"ful\"",
            "15:14: preemption: expected one of none, voluntary, full, lazy, found `ful`; did you mean `full`?",
        ),
        ("cpus = \"0-11\"", "cpus = \"24\"", "25:8: cpus: expected some of the CPUs 0-23, found `24`"),
        ("\"node 0\"", "\"node 9\"", "23:10: memory: the machine has no node `9`"),
        ("tick_skew", "tick_skwe", "24:1: settings: unknown key `tick_skwe`; did you mean `tick_skew`?"),
    ] {
        assert!(FULL.contains(from), "{from}");
        assert_eq!(fault(&FULL.replace(from, to)), message);
    }
    assert_eq!(fault("workload = \"pipe\""), "1:1: scenario: `machine` is missing");
    assert_eq!(
        fault("machine = \"host\""),
        "1:11: machine: this machine is not looked at here; name one or give its text"
    );
    assert!(
        fault("machine = { text = \"4 cores\" }\nworkload = \"pipe\"")
            .starts_with("1:1: costs: `preset` is missing")
    );
    assert!(
        fault("machine = { text = \"4 corse\" }\nworkload = \"pipe\"").starts_with("1:20: machine: text: ")
    );
}

struct Shelf;

impl Surroundings for Shelf {
    fn file(&self, path: &str) -> Result<String, String> {
        match path {
            "own.toml" => Ok("[[tasks]]\nname = \"t\"\ndo = \"rnu 1us\"\n".to_owned()),
            "rt.json" => Ok("{\"tasks\": {\"t\": {\"loop\": 1, \"suspend\": \"t\"}}}".to_owned()),
            "machine.txt" => Ok("2 cores x 2 threads".to_owned()),
            "host.toml" => {
                Ok("# ours\npreset = \"vm\"\nsyscall_ns = { value = 77, basis = \"measured\" }\n".to_owned())
            }
            "broken.toml" => Ok("preset = \"vm\"\nsyscal_ns = 77\n".to_owned()),
            _ => Err("no such file".to_owned()),
        }
    }

    fn host(&self) -> Result<Topology, String> {
        Topology::parse("2 cores").map_err(|error| error.to_string())
    }
}

#[test]
fn files_and_the_host_come_from_the_surroundings() {
    let read = |text: &str| Scenario::parse(text, &Shelf);
    let costs = "[costs]\npreset = \"vm\"\n";
    let host = read(&format!("workload = \"pipe\"\nmachine = \"host\"\n{costs}")).expect("valid");
    assert_eq!(host.topology.cpu_bound(), 2);
    let measured =
        |file: &str| read(&format!("workload = \"pipe\"\nmachine = \"host\"\ncosts = \"{file}\"\n"));
    let costs_of_host = measured("host.toml").expect("valid").costs;
    assert_eq!((costs_of_host.preset_name(), costs_of_host.get(Cost::Syscall)), ("vm", 77));
    assert_eq!(costs_of_host.basis(Cost::Syscall), Basis::Measured);
    assert_eq!(
        measured("broken.toml").expect_err("a typing error").to_string(),
        "3:9: costs: broken.toml: 2:1: costs: unknown cost `syscal_ns`; did you mean `syscall_ns`?"
    );
    let file = read(&format!("workload = \"pipe\"\nmachine = {{ file = \"machine.txt\" }}\n{costs}"))
        .expect("valid");
    assert_eq!(file.topology.cpu_bound(), 4);
    let rtapp = format!("workload = {{ rtapp = \"rt.json\" }}\nmachine = \"host\"\n{costs}");
    let (scenario, notes) = Scenario::parse_with_notes(&rtapp, &Shelf).expect("valid");
    assert_eq!(
        (scenario.workload.tasks.len(), scenario.workload.name.as_str(), notes.len()),
        (1, "rt.json", 1)
    );
    let faulty = read(&format!("workload = {{ file = \"own.toml\" }}\nmachine = \"host\"\n{costs}"));
    assert_eq!(
        faulty.expect_err("faulty").to_string(),
        "1:21: own.toml: 3:7: unknown operation `rnu`; did you mean `run`?"
    );
}

#[test]
fn every_machine_has_a_preset_that_exists() {
    for machine in MACHINES {
        let preset = preset_of(machine.name);
        assert!(PRESETS.iter().any(|known| known.name == preset), "{}", machine.name);
    }
    assert_eq!(
        (preset_of("ampere-altra-l3"), preset_of("xeon-8269cy"), preset_of("xeon-3204x2")),
        ("altra", "skylake-server", "xeon-3204")
    );
}

#[test]
fn a_cost_file_reads_back() {
    let mut costs = Costs::preset("vm").expect("known");
    costs.put(Cost::WakeBase, 777, Basis::Measured);
    assert_eq!(Costs::from_toml(&costs.to_toml()), Ok(costs));
    assert_eq!(
        Costs::from_toml("preset = \"vm\"\nwake_base = 1").expect_err("faulty").to_string(),
        "2:1: costs: unknown cost `wake_base`; did you mean `wake_base_ns`?"
    );
}

/// Shipped scenarios: name, text.
fn shipped() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("scenarios/")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().expect("name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("text"))
        })
        .collect()
}

struct Folder;

impl Surroundings for Folder {
    fn file(&self, path: &str) -> Result<String, String> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())
    }

    fn host(&self) -> Result<Topology, String> {
        Err("a shipped scenario must not depend on the machine".to_owned())
    }
}

#[test]
fn every_workload_and_machine_has_a_scenario_that_is_shipped() {
    let mut names = String::new();
    let mut machines = Vec::new();
    let (mut own, mut rtapp) = (0, 0);
    for (name, text) in shipped() {
        let scenario =
            Scenario::parse(&text, &Folder).unwrap_or_else(|error| panic!("scenarios/{name}:{error}"));
        assert_eq!(scenario.workload.check(), Ok(()), "{name}");
        // A file begins with what it shows.
        assert!(text.starts_with("# "), "{name} does not say what it is");
        let back = parse(&scenario.to_toml());
        assert_eq!(back.id(), scenario.id(), "{name}");
        names.push_str(&format!(" & {}", scenario.workload.name));
        own += u32::from(scenario.workload.bench == ttwu_workload::Bench::Own);
        rtapp += u32::from(matches!(scenario.workload.bench, ttwu_workload::Bench::RtApp(_)));
        machines.push(scenario.topology);
    }
    for doc in ttwu_workload::workloads() {
        let found = names.split(" & ").any(|name| name.split(':').next() == Some(doc.name));
        assert!(found, "no scenario shows {}", doc.name);
    }
    for machine in MACHINES {
        assert!(machines.contains(&machine.topology()), "no scenario runs on {}", machine.name);
    }
    assert!(own >= 1, "no scenario shows one's own workload");
    assert!(rtapp >= 1, "no scenario shows an rt-app file");
}

#[test]
fn damaged_files_are_errors_or_scenarios_never_panics() {
    let mut read = 0u32;
    for (name, text) in shipped() {
        for seed in 0..40 {
            let damaged = ttwu_testing::damage(text.as_bytes(), seed);
            let damaged = String::from_utf8_lossy(&damaged);
            match Scenario::parse(&damaged, &Folder) {
                Ok(scenario) => {
                    read += 1;
                    assert_eq!(scenario.workload.check(), Ok(()), "{name}, seed {seed}");
                }
                Err(error) => assert!(error.line >= 1 && !error.message.is_empty(), "{name}, seed {seed}"),
            }
        }
    }
    assert!(read > 0, "no damage was harmless: the test looks at errors of the first line only");
}

/// A breaker's file: it got past the reader and panicked in the machine.
#[test]
fn a_task_that_may_run_nowhere_is_refused() {
    let own = |objects: &str, task: &str| {
        format!(
            "machine = \"uma-8\"\npolicy = \"linux-6.12\"\n[workload]\nname = \"x\"\nuntil = \"1ms\"\n[workload.objects]\n{objects}\n\
             [[workload.tasks]]\nname = \"a\"\n{task}"
        )
    };
    assert_eq!(
        fault(&own("", "cpus = \"99\"\ndo = \"run 1us\"")),
        "1:1: workload: task `a`: none of its CPUs is one of the machine's, 0-7"
    );
    assert_eq!(
        fault(&own("b = \"cpus 5000\"", "do = \"affinity b; run 1us\"")),
        "1:1: workload: CPUs `b`: none of them is one of the machine's, 0-7"
    );
}
