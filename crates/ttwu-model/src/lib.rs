//! The words of ttwu: ids, units, CPU sets, topology, scheduler events, traces, and the timeline that interprets
//! events as intervals.
//!
//! Everything else in the workspace speaks in these types, and nothing here knows where a trace came from. There is one
//! type per thing: one [`Event`] for simulated, recorded and imported traces, one [`Topology`] for live machines, file
//! headers and named machines.
//!
//! Integers only: no floating point, no hash-map iteration, no clock, no environment. Any function here gives the same
//! answer on every machine.
#![forbid(unsafe_code)]

mod compare;
mod cpuset;
mod event;
mod ids;
mod note;
mod resolve;
mod timeline;
mod topology;
mod trace;
mod units;

pub use compare::{Difference, Lenience, WhereUnknown};
pub use cpuset::{CpuSet, CpuSetError};
pub use event::{Context, Event, EventFlags, EventKind, Prio, RawEvent, StateLetter, TaskState};
pub use ids::{CpuId, Pid, StrId, TaskId};
pub use note::{NoteKind, TaskNote};
pub use resolve::{ContinuityCheck, Resolver};
pub use timeline::{Interval, Phase, Placed, Timeline, Wait, Wake};
pub use topology::{
    Arch, CacheSharing, Citation, DomainLevel, Generation, GroupId, Level, MACHINES, Machine, Mark, Node,
    NodeId, NodeList, NodeMemory, SchedDomain, SchedDomains, SchedGroup, SdFlags, SgcId, SiblingLists,
    Topology, TopologyError, Unit, UnitId,
};
pub use trace::{
    ClockStep, LossWindow, Strings, TaskInfo, TaskTable, Trace, TraceBuilder, TraceHealth, TraceMeta,
    TraceParts,
};
pub use units::{Duration, Time};
