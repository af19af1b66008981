//! Tasks of the workspace itself: `cargo xtask tidy` holds the rules of ARCHITECTURE.md and the style guide that neither
//! rustc nor clippy can; `cargo xtask fidelity [--check]` writes FIDELITY.md or holds it against the sources.
#![forbid(unsafe_code)]

mod fidelity;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let done = match task.as_deref() {
        Some("tidy") => tidy::run(root),
        Some("fidelity") => fidelity::run(root, std::env::args().any(|arg| arg == "--check")),
        other => {
            eprintln!("unknown task {}; tasks: tidy, fidelity", other.unwrap_or("(none)"));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            eprintln!("xtask: {count} rules broken");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
