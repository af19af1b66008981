//! What tasks do: benchmarks and one's own programs, as plain data.
//!
//! A [`Workload`] names tasks, the kernel objects through which they wait for each other, and a program per task. It says
//! nothing of CPUs, clocks or kernels, so that a simulator and a native runner can execute the same one.
#![forbid(unsafe_code)]

pub mod bench;
mod check;
mod dist;
mod named;
mod object;
mod own;
mod program;
pub mod rtapp;
pub mod spec_toml;
mod text;
mod workload;

pub use bench::{Bench, Transport};
pub use check::Unsound;
pub use dist::Dist;
pub use named::{
    COMMON_OPTIONS, MachineInfo, NameError, OptionDoc, OptionKind, WorkloadDoc, expand, workloads,
};
pub use object::{
    Bound, Device, InterruptCpu, ObjectId, ObjectKind, Request, SocketKind, StreamKind, Work, WorkQueue,
};
pub use program::{Op, Program, Reg, Slot, Times};
pub use text::{did_you_mean as nearest_name, dist_text, parse_dist, parse_size, parse_time, time_text};
pub use workload::{
    Builder, Group, GroupRef, Meter, MeterKind, MeterRef, ObjectSpec, Start, TaskRef, TaskSpec, Until,
    Workload,
};
