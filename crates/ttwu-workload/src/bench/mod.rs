//! Benchmarks as workloads: each module has a table row (name, options with the original's defaults) and a constructor.
//!
//! A [`Bench`] value says what a workload measured, so that the command can print it as the original does: the options that
//! the original prints, and which meters hold the figures. Meters keep nanoseconds and plain counts; what the original drops or
//! rounds (schbench's zero-microsecond wake-ups, hackbench's truncated milliseconds) is left to whoever prints.

mod cyclictest;
mod dbench;
mod desktop;
mod dmatest;
mod hackbench;
mod perf_messaging;
mod perf_pipe;
mod round_trip;
mod rpc;
mod schbench;
mod small;
mod spray;

use crate::named::Table;
use crate::rtapp::RtApp;
use crate::{ObjectId, Slot};

pub use cyclictest::{Cyclictest, CyclictestThread};
pub use dbench::Dbench;
pub use desktop::Desktop;
pub use dmatest::{Dmatest, DmatestThread};
pub use hackbench::{Hackbench, Transport};
pub use perf_messaging::PerfMessaging;
pub use perf_pipe::PerfPipe;
pub use round_trip::{Context1, Netperf, Tbench};
pub use rpc::Rpc;
pub use schbench::{SchbenchA, SchbenchC};
pub use small::{Duty, MassiveIntr};

/// Which benchmark a workload is, with what its original output needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bench {
    /// None: one's own program, which has no output of its own.
    Own,
    /// rt-tests' hackbench.
    Hackbench(Hackbench),
    /// `perf bench sched messaging`.
    PerfMessaging(PerfMessaging),
    /// `perf bench sched pipe`.
    PerfPipe(PerfPipe),
    /// schbench as of 2016 to 2019.
    SchbenchA(SchbenchA),
    /// schbench since 2023.
    SchbenchC(SchbenchC),
    /// massive_intr.
    MassiveIntr(MassiveIntr),
    /// Two tasks on one CPU.
    Duty(Duty),
    /// dbench on XFS.
    Dbench(Dbench),
    /// dmatest.
    Dmatest(Dmatest),
    /// UnixBench's pipe-based context switching.
    Context1(Context1),
    /// tbench.
    Tbench(Tbench),
    /// netperf TCP_RR and UDP_RR.
    Netperf(Netperf),
    /// cyclictest.
    Cyclictest(Cyclictest),
    /// A thread-pool service.
    Rpc(Rpc),
    /// Hogs beside a browser.
    Desktop(Desktop),
    /// An rt-app file.
    RtApp(RtApp),
}

/// All named workloads, in the order of help.
pub(crate) static TABLES: &[Table] = &[
    hackbench::TABLE,
    perf_messaging::TABLE,
    perf_pipe::TABLE,
    schbench::TABLE_C,
    schbench::TABLE_A,
    dbench::TABLE,
    dmatest::TABLE,
    small::MASSIVE_INTR,
    round_trip::CONTEXT1,
    round_trip::TBENCH,
    round_trip::NETPERF,
    cyclictest::TABLE,
    rpc::TABLE,
    desktop::TABLE,
    small::DUTY,
    small::NOISE,
];

/// The least and greatest of counts that are limited by memory only.
pub(crate) const MANY: u64 = 1_000_000_000;

const fn link(number: u32) -> Slot {
    Slot::Link(number)
}

const fn fixed(object: ObjectId) -> Slot {
    Slot::Fixed(object)
}

#[cfg(test)]
mod tests;
