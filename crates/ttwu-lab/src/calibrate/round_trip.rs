//! The micro-benchmarks of the calibration, simulated.

use ttwu_fair::Policy;
use ttwu_model::{CpuId, Topology};
use ttwu_sim::{Costs, MeterValue, Options, Scenario, Settings, run};
use ttwu_workload::{MachineInfo, Workload};

/// Round trips that are simulated; the first sleeps and wake-ups differ and count for little.
const ROUNDS: u64 = 2000;

/// Why a micro-benchmark could not be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoundTripError {
    /// The workload does not fit the machine.
    #[error("pipe round trip between CPU {first} and CPU {second}: {message}")]
    Workload {
        /// One CPU.
        first: CpuId,
        /// The other.
        second: CpuId,
        /// What is wrong.
        message: String,
    },
    /// It did not end.
    #[error("pipe round trip between CPU {first} and CPU {second}: it does not end")]
    Unfinished {
        /// One CPU.
        first: CpuId,
        /// The other.
        second: CpuId,
    },
}

/// A pipe round trip between two bound threads as the simulator has it, ns: what [`super::Measurement::PipeSameCpu`] and
/// its kin measure. On one CPU both are `SCHED_BATCH`, as they are natively.
///
/// # Errors
/// When a CPU is not there, or the run does not end.
pub fn simulated_round_trip(
    topology: &Topology,
    policy: &Policy,
    costs: &Costs,
    (first, second): (CpuId, CpuId),
) -> Result<u64, RoundTripError> {
    let class = if first == second { "batch" } else { "normal" };
    let text = format!(
        r#"name = "pipe round trip"
until = "all exit"
[objects]
there = "pipe"
back = "pipe"
[meters]
time = "samples"
[[tasks]]
name = "ping"
process = "pair"
policy = "{class}"
cpus = "{}"
do = "stamp r0; repeat {ROUNDS} {{ write there 1; read back 1 }}; sample time r0"
[[tasks]]
name = "pong"
process = "pair"
policy = "{class}"
cpus = "{}"
do = "repeat {ROUNDS} {{ read there 1; write back 1 }}"
"#,
        first.index(),
        second.index()
    );
    let machine = MachineInfo { cpus: topology.cpu_bound() as u32 };
    let workload = Workload::from_toml(&text, &machine).map_err(|error| RoundTripError::Workload {
        first,
        second,
        message: error.to_string(),
    })?;
    let scenario = Scenario {
        workload,
        topology: topology.clone(),
        policy: policy.clone(),
        costs: costs.clone(),
        settings: Settings::of(policy.kernel()),
        seed: 1,
        until_ns: 60_000_000_000,
    };
    let outcome = run(&scenario, &mut Options::quiet());
    let unfinished = RoundTripError::Unfinished { first, second };
    match outcome.meters.first() {
        Some(MeterValue::Samples(samples)) => match samples.as_slice() {
            [ns] => Ok(ns / ROUNDS),
            [] | [_, ..] => Err(unfinished),
        },
        Some(MeterValue::Count(_) | MeterValue::Cpus(_) | MeterValue::Seconds(_)) | None => Err(unfinished),
    }
}
