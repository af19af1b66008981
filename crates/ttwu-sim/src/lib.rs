//! A timed machine under the fair class: tasks that compute, block and wake each other, on CPUs that sleep, tick, send
//! interrupts and lose their caches.
//!
//! [`run`] is a pure function of a [`Scenario`]: integers only, its own seeded generator, no clock, no environment. The rules
//! of the scheduler are `ttwu-fair`'s; what this crate adds is *when* the kernel asks them and what hardware and kernel paths
//! cost ([`Costs`]). What it puts out is what a kernel's tracepoints could say, so that every analysis of recorded traces works
//! on it unchanged; what only a simulator knows (the rule that chose a CPU) is in a table beside it.
//!
//! What this does not do: real-time and deadline classes, CPU hot-plug, bandwidth limits, NUMA balancing.
#![forbid(unsafe_code)]

mod costs;
mod counters;
mod machine;
mod outcome;
mod presets;
mod rng;
mod scenario;
mod scenario_file;

pub use costs::{Basis, COSTS, Cost, CostError, CostRow, Costs};
pub use counters::{ByLevel, Counters, Histogram, TaskCounters};
pub use machine::run;
pub use outcome::{Decision, End, MeterValue, Outcome, SAMPLES_MAX, Starved, Waiting, WaitsFor};
pub use presets::{PRESETS, Preset};
pub use scenario::{
    Control, Frequency, Governor, IdleSettings, MemoryPlacement, Noise, Options, Polling, PreemptionModel,
    Progress, Scenario, Settings, Switch, TickSkew,
};
pub use scenario_file::{FORMAT, Nothing, ScenarioId, Surroundings, preset_of};
