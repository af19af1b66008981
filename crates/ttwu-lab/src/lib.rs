//! Experiments: many runs, compared with honest statistics, and what they say of a change.
//!
//! What this does not do: the runs themselves (an executor does), the tests and intervals (`ttwu-stats`), and printing progress
//! (callers get callbacks).
#![forbid(unsafe_code)]

pub mod reproduce;
mod runs;
