//! `ttwu conform`: recorded kernel decisions against the model.

pub(super) mod open;
mod render;

use crate::args;
use crate::exit::{Done, Failure, Outcome};
use crate::output::{OutputFormat, Rereadable, print};
use anyhow::anyhow;
use open::Opened;
use std::collections::BTreeMap;
use ttwu_conform::{
    FreeReport, PlacementReport, QueueReport, ReconstructReport, free_run, placements, queues,
    queues_followed, reconstruct,
};

/// Scores recordings; prints one block a kernel.
pub(crate) fn run(args: &args::Conform) -> Outcome {
    let mut kernels: BTreeMap<&'static str, Kernel> = BTreeMap::new();
    for path in &args.recordings {
        let input = Rereadable::open(path).map_err(Failure::input)?;
        let Some(opened) = open::open(input.path(), args)? else { continue };
        let name = opened.recording.policy().kernel().name();
        let kernel = kernels.entry(name).or_default();
        let scores = score(&opened, args.free)?;
        kernel.total.merge(&scores);
        kernel.without_trace += usize::from(scores.plain.is_none());
        kernel.without_probes += usize::from(scores.queues.is_none() && scores.plain.is_some());
        let notes = opened.recording.notes().iter().chain(&opened.notes);
        kernel.notes.extend(notes.map(|note| format!("{}: {note}", opened.recording.name())));
        kernel.recordings.push((opened.recording.name().to_owned(), scores));
    }
    if kernels.is_empty() {
        return Err(Failure::input(anyhow!("no recording of such a kernel")));
    }
    match args.format {
        OutputFormat::Text => print(&render::text(&kernels, args.examples, args.live)),
        OutputFormat::Json => print(&format!("{:#}", render::json(&kernels))),
    }?;
    Ok(Done::Ok)
}

/// What is scored of one recording, or of all of a kernel. `None`: the recording does not have it.
#[derive(Default)]
struct Scores {
    placement: Option<PlacementReport>,
    queues: Option<QueueReport>,
    plain: Option<ReconstructReport>,
    /// Values kept, decisions fed back.
    followed: Option<QueueReport>,
    /// Nothing fed back.
    free: Option<FreeReport>,
}

impl Scores {
    fn merge(&mut self, other: &Self) {
        if let Some(theirs) = &other.placement {
            self.placement.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.queues {
            self.queues.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.plain {
            self.plain.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.followed {
            self.followed.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.free {
            self.free.get_or_insert_default().merge(theirs);
        }
    }
}

#[derive(Default)]
struct Kernel {
    total: Scores,
    /// Recordings without a trace: neither queues nor plain events.
    without_trace: usize,
    /// Recordings with a trace that has no probes: only plain events.
    without_probes: usize,
    recordings: Vec<(String, Scores)>,
    notes: Vec<String>,
}

fn score(opened: &Opened, free: bool) -> Result<Scores, Failure> {
    let recording = &opened.recording;
    let mut scores = Scores::default();
    if opened.decisions {
        scores.placement = Some(placements(recording).map_err(Failure::input)?);
    }
    if opened.probes {
        scores.queues = Some(queues(recording).map_err(Failure::input)?);
        if free {
            scores.followed = Some(queues_followed(recording).map_err(Failure::input)?);
        }
    }
    if let Some(path) = recording.trace() {
        let trace = ttwu_trace::read(path).map_err(Failure::input)?;
        scores.plain = Some(reconstruct(&trace, recording.policy(), recording.machine()));
        if free {
            scores.free = Some(free_run(&trace, recording.policy(), recording.machine()));
        }
    }
    Ok(scores)
}
