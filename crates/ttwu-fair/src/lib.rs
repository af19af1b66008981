//! The Linux fair scheduling class as pure functions over plain state.
//!
//! Kernel generations and features are data ([`Policy`]); the rules read them. Every rule names the kernel function and
//! the versions that it models (`Models: …`), every known difference is marked `DEVIATION: …`; both are collected into
//! FIDELITY.md by a tool. What is not modelled is refused when a policy is built, never accepted without effect.
#![forbid(unsafe_code)]

mod balance;
mod entity;
mod fair;
mod features;
mod kernel;
mod machine;
mod mutation;
mod pelt;
mod policy;
mod preempt;
mod queue;
mod tick;
mod tunables;
mod variants;
mod wakeup;
mod weight;

pub use balance::{
    ActiveBalance, BalanceState, BalanceView, Balancer, CpuState, DomainState, IdleType, KickReason,
    LlcState, NewIdle, NewIdlePass, Preemptible, TaskState, TickWork, Work, nr_idle_scan,
};
pub use entity::{Entities, EntityId, SchedEntity, TaskPolicy};
pub use fair::{Fair, FromBack, GroupId, TaskAttributes, WakeupCheck};
pub use features::{FEATURES, Feature, FeatureRow, FeatureSet};
pub use kernel::Kernel;
pub use machine::Machine;
pub use pelt::{Contribution, LOAD_AVG_MAX, SchedAvg, ZeroLoad, decay_load};
pub use policy::{Policy, PolicyError};
pub use preempt::{PreemptQuery, PreemptReason, Preemption, wakeup_preempt};
pub use queue::{CfsRq, DequeueFlags, Dequeued, EnqueueFlags, Protect, QueueRules, Resched, SwitchIn};
pub use tick::{TickReason, TickVerdict, entity_tick, hrtick_ns};
pub use tunables::{Scaling, TUNABLES, Tunable, TunableRow, Tunables};
pub use variants::{Cluster, KthreadStacking, VARIANTS, VariantRow, WakeAffineIdle, WakeList};
pub use wakeup::{
    Affine, Check, CpuStats, Flips, GroupStats, GroupType, Kind, Memory, Placement, Rule, ScanCost, ScanEnd,
    Site, SlowView, TaskLoad, View, WakeListQuery, Wakeup, place, queue_on_wake_list,
};
pub use weight::{LoadWeight, NICE_0_LOAD, calc_delta, calc_delta_fair, scale_down};
