//! Statistics on plain slices of `f64`: mmtests' definitions to the digit, intervals, tests, and the verdict on two arms.
//!
//! No type of ttwu's is used here, so that every function can be checked against another program's figures. Nothing reads a
//! clock or an environment; what is random takes a seed.
#![forbid(unsafe_code)]
