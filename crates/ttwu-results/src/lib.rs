//! What benchmarks print, read and written.
#![forbid(unsafe_code)]

pub mod check;
pub mod mmtests;
pub mod outputs;
