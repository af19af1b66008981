//! Benchmarks as workloads.

/// Which benchmark a workload is, with what its original output needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bench {
    /// None: one's own program, which has no output of its own.
    Own,
}
