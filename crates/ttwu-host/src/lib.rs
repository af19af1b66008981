//! The only crate that touches the machine: its `/sys` tree, and the recorder behind `ttwu record`.
//!
//! Everything that needs a system call beyond std's, a file under /proc or /sys, the wall clock or the environment is here,
//! and all of the workspace's `unsafe` is in this crate. Above it, nobody can tell whether a trace was recorded here.

pub mod measure;
pub mod record;
mod sys;
pub mod sysfs;
