//! Exit codes, and how an error becomes one.

use std::fmt;
use std::process::ExitCode;

/// How a command ended, when it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// The job is done.
    Ok,
    /// The answer is "no".
    No,
    /// The user ended it; what there was has been kept.
    Interrupted,
}

/// Usage or input was wrong (exit code 2) or the machine forbids the job (3).
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// Bad usage or input.
    pub(crate) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self { code: 2, error: error.into() }
    }

    /// The machine does not allow it.
    pub(crate) fn forbidden(error: impl Into<anyhow::Error>) -> Self {
        Self { code: 3, error: error.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = String::new();
        for cause in self.error.chain().map(ToString::to_string) {
            // Library errors say their cause themselves.
            if said.ends_with(&cause) {
                continue;
            }
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&cause);
        }
        f.write_str(&said)
    }
}

/// A command's result.
pub(crate) type Outcome = Result<Done, Failure>;

/// The process' exit code; an error is printed on one line.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(Done::Ok) => ExitCode::SUCCESS,
        Ok(Done::No) => ExitCode::from(1),
        Ok(Done::Interrupted) => ExitCode::from(130),
        Err(failure) => {
            crate::output::say(&format!("ttwu: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}
