//! Recorded kernel decisions against `ttwu-fair`: how often does the model decide as the kernel did, and if not, why?
//!
//! A recording is a directory with decisions taken from kernel probes (`decisions.jsonl.zst`, …) and the kernel's own
//! description of its machine (`state/`). Each decision is put to the model several times, each time with other
//! knowledge; see [`Score`].
//!
//! What this does not do: tune anything. There is no parameter here that a recording could be fitted with.
#![forbid(unsafe_code)]

mod error;
mod extract;
mod format;
mod free;
mod placement;
mod plain;
mod probe;
mod queues;
mod recording;
mod replay;
mod score;
mod snapshot;

pub use error::ConformError;
pub use free::{Divergence, FreeReport, Share, free_run};
pub use placement::{PlacementReport, placements};
pub use plain::{Against, Explained, ReconstructReport, explain, reconstruct};
pub use queues::{QueueReport, queues, queues_followed};
pub use recording::{Recording, kernel_of, policy_with_features};
pub use score::{Aside, Cause, Found, Miss, Score};
