//! What touches the machine: its `/sys` tree.

pub mod sysfs;
