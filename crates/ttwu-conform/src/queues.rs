//! Queues: every recorded run queue rebuilt from its events, and the model's picks, preemptions and values against the
//! kernel's.
//!
//! The model is taken one step at a time: what a record shows of an entity or a queue is compared with what the model made
//! of the last record, and then put in its place. So one wrong step is one miss, not a trail of them.

use crate::replay::{Replay, Values};
use crate::score::{Aside, Score};
use crate::{ConformError, Recording};
use std::collections::BTreeMap;

/// Scores of one recording's queues.
#[derive(Clone, Debug, Default)]
pub struct QueueReport {
    /// The rebuilt queue's number, weight and sums equal the recorded ones.
    pub rebuilt: Score,
    /// The entity picked by the scheduler, where more than one is queued.
    pub pick_schedule: Score,
    /// The entity picked in a wake-up preemption check, where more than one is queued.
    pub pick_wakeup: Score,
    /// The entity picked by the scheduler where several are queued and one is marked as buddy. Up to 6.12 EEVDF takes a buddy
    /// without the pick proper, so that it shows in the switch alone; the others are in `pick_schedule` too.
    pub pick_buddy: Score,
    /// Was a reschedule asked for by a wake-up preemption check?
    pub preempt: Score,
    /// The same, where the running task was to be rescheduled already.
    pub preempt_already: Score,
    /// Virtual run times after each step.
    pub vruntime: Score,
    /// Virtual deadlines after each step.
    pub deadline: Score,
    /// Lags (or, for the running entity of 6.12, its protection mark) after each step.
    pub vlag: Score,
    /// Ends of protected windows after each step (7.2).
    pub vprot: Score,
    /// The reference point (`min_vruntime`, `zero_vruntime`) after each step.
    pub zero: Score,
    /// Reschedules asked for by accounting, outside ticks.
    pub slice_end: Score,
    /// Reschedules asked for by ticks.
    pub tick: Score,
    /// Does a task that blocks stay queued, delayed?
    pub delayed: Score,
    /// What was not put to the model, by the test that says so.
    pub set_aside: BTreeMap<&'static str, Aside>,
    /// Followed values that were set to the recorded ones all the same: their weight changed without a probe, or a group's
    /// entity stands beside them.
    pub resynchronised: u64,
    /// Probes that the kernel itself says it missed.
    pub lost_probes: BTreeMap<String, u64>,
}

impl QueueReport {
    /// The scores with their names.
    #[must_use]
    pub fn scores(&self) -> [(&'static str, &Score); 14] {
        [
            ("rebuilt", &self.rebuilt),
            ("pick_schedule", &self.pick_schedule),
            ("pick_wakeup", &self.pick_wakeup),
            ("pick_buddy", &self.pick_buddy),
            ("preempt", &self.preempt),
            ("preempt_already", &self.preempt_already),
            ("vruntime", &self.vruntime),
            ("deadline", &self.deadline),
            ("vlag", &self.vlag),
            ("vprot", &self.vprot),
            ("zero", &self.zero),
            ("slice_end", &self.slice_end),
            ("tick", &self.tick),
            ("delayed", &self.delayed),
        ]
    }

    /// Adds another recording's scores.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.rebuilt, &other.rebuilt),
            (&mut self.pick_schedule, &other.pick_schedule),
            (&mut self.pick_wakeup, &other.pick_wakeup),
            (&mut self.pick_buddy, &other.pick_buddy),
            (&mut self.preempt, &other.preempt),
            (&mut self.preempt_already, &other.preempt_already),
            (&mut self.vruntime, &other.vruntime),
            (&mut self.deadline, &other.deadline),
            (&mut self.vlag, &other.vlag),
            (&mut self.vprot, &other.vprot),
            (&mut self.zero, &other.zero),
            (&mut self.slice_end, &other.slice_end),
            (&mut self.tick, &other.tick),
            (&mut self.delayed, &other.delayed),
        ] {
            ours.merge(theirs);
        }
        self.resynchronised += other.resynchronised;
        for (&test, count) in &other.set_aside {
            self.set_aside.entry(test).or_default().merge(count);
        }
        for (probe, count) in &other.lost_probes {
            *self.lost_probes.entry(probe.clone()).or_default() += count;
        }
    }
}

/// Rebuilds every queue of `recording` and puts its decisions to the model.
///
/// # Errors
/// When the trace cannot be read.
pub fn queues(recording: &Recording) -> Result<QueueReport, ConformError> {
    replay(recording, Values::Set)
}

/// The same with decisions fed back and values kept: every virtual time, deadline, lag and reference point is followed from
/// its first sight to the end of the recording, so that one wrong step makes all later ones wrong.
///
/// # Errors
/// When the trace cannot be read.
pub fn queues_followed(recording: &Recording) -> Result<QueueReport, ConformError> {
    replay(recording, Values::Kept)
}

fn replay(recording: &Recording, values: Values) -> Result<QueueReport, ConformError> {
    let mut replay = Replay::new(recording, values);
    recording.walk(&mut |record| replay.step(record))?;
    let mut report = replay.finish();
    report.lost_probes = recording.lost_probes();
    Ok(report)
}
