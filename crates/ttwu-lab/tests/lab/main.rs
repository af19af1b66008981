//! The laboratory with a stand-in for the simulator: one program, as linking is what takes time.

mod arms;
mod attribute;
mod compare;
mod fake;
mod runs;
mod sweep;
