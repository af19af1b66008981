//! What the laboratory's commands share: progress with time left, Ctrl-C, what lies outside of a scenario.

pub(crate) mod attribute;
pub(crate) mod compare;
pub(crate) mod sweep;

use crate::args::lab::Common;
use crate::exit::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ttwu_host::record::{SignalGuard, StopHandle};
use ttwu_lab::arm::Defaults;
use ttwu_lab::{Cancel, FinishedRun};
use ttwu_model::Topology;
use ttwu_sim::Surroundings;

/// Files and this machine.
struct Outside;

impl Surroundings for Outside {
    fn file(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn host(&self) -> Result<Topology, String> {
        ttwu_host::sysfs::read_topology(Path::new("/")).map_err(|error| error.to_string())
    }
}

fn defaults(common: &Common) -> Defaults {
    Defaults {
        policy: common.policy.clone(),
        machine: common.machine.clone(),
        workload: common.workload.clone(),
        costs: common.costs.clone(),
        sets: common.set.clone(),
    }
}

fn threads(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}

/// Runs `work` with progress on a terminal; Ctrl-C cancels it, and says so in the result.
fn watched<T>(
    quiet: bool,
    work: impl FnOnce(&Cancel, &mut dyn FnMut(FinishedRun<'_>)) -> T,
) -> Result<(T, bool), Failure> {
    let bar = bar(quiet);
    watched_by(&bar, |cancel| {
        work(cancel, &mut |run| {
            bar.set_length(run.total as u64);
            bar.set_position(run.done as u64);
        })
    })
}

/// Runs `work`, whose progress is shown by `bar`; Ctrl-C cancels it.
pub(crate) fn watched_by<T>(
    bar: &ProgressBar,
    work: impl FnOnce(&Cancel) -> T,
) -> Result<(T, bool), Failure> {
    let stop = StopHandle::new().map_err(Failure::input)?;
    let signals = SignalGuard::install(&stop).map_err(Failure::input)?;
    let (cancel, ended) = (Cancel::new(), AtomicBool::new(false));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if signals.arrived().is_some() {
                    cancel.cancel();
                    bar.set_message("ending, with what there is");
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // Also when the work panics: the scope waits for the watcher.
        let _ended = SetOnDrop(&ended);
        work(&cancel)
    });
    bar.finish_and_clear();
    Ok((result, cancel.is_cancelled()))
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn bar(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left {msg}")
        .expect("a constant template");
    ProgressBar::new(0).with_style(style)
}
