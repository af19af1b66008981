//! The `ttwu` command.
#![forbid(unsafe_code)]

fn main() {}
