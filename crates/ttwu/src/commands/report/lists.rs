//! Event lists, printed as the recording is read.

use super::Request;
use crate::args::{AnalysisName, Style};
use crate::output::{Harmless, OutputFormat};
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use ttwu_analysis::{Analyser, PerfVersion, Results};
use ttwu_report::{PerfTimehistColumns, PerfTimehistPrinter, timehist_header, timehist_row};
use ttwu_trace::TraceStream;

/// Does somebody still read what is printed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    There,
    Gone,
}

/// The list that was asked for, if any.
pub(super) struct Lists {
    out: BufWriter<Harmless<Stdout>>,
    kind: Kind,
}

enum Kind {
    None,
    Ttwu,
    Perf { printer: PerfTimehistPrinter, rows: bool, summary: bool },
}

/// CPUs on line as perf's own files say it.
pub(super) fn cpus_online(stream: &TraceStream) -> Option<u32> {
    let facts = &stream.meta().facts;
    facts.get("cpus_online_count").and_then(|count| count.parse().ok()).or(stream.meta().cpus_recorded)
}

impl Lists {
    pub(super) fn new(request: &Request<'_>, stream: &TraceStream) -> Self {
        let args = request.args;
        let listed = request.wants(AnalysisName::Timehist) && args.format == OutputFormat::Text;
        let version = match args.style {
            Style::Perf61 => Some(PerfVersion::V6_1),
            Style::Perf7 => Some(PerfVersion::V7),
            Style::Ttwu | Style::Sum | Style::Schbench => None,
        };
        let kind = match (listed, version) {
            (false, _) => Kind::None,
            (true, None) => Kind::Ttwu,
            (true, Some(version)) => {
                let has = |letter| args.show.contains(letter);
                let columns = PerfTimehistColumns {
                    cpu_visual: has('V'),
                    state: true,
                    next: has('n'),
                    wakeups: has('w'),
                };
                let printer = PerfTimehistPrinter::new(version, columns, cpus_online(stream));
                Kind::Perf { printer, rows: !has('s'), summary: has('s') || has('S') }
            }
        };
        Self { out: BufWriter::with_capacity(1 << 16, Harmless(io::stdout())), kind }
    }

    pub(super) fn begin(&mut self) -> io::Result<()> {
        let done = match &self.kind {
            Kind::Ttwu => timehist_header(&mut self.out),
            Kind::Perf { printer, rows: true, .. } => printer.header(&mut self.out),
            Kind::None | Kind::Perf { .. } => Ok(()),
        };
        reader(done).map(drop)
    }

    pub(super) fn rows(&mut self, analyser: &mut Analyser) -> io::Result<Reader> {
        let out = &mut self.out;
        let done = match &mut self.kind {
            Kind::None => Ok(()),
            Kind::Ttwu => analyser.timehist_rows().iter().try_for_each(|row| timehist_row(out, row)),
            Kind::Perf { printer, .. } => {
                analyser.perf_timehist_rows().iter().try_for_each(|row| printer.row(out, row))
            }
        };
        reader(done)
    }

    pub(super) fn end(&mut self, results: &Results) -> io::Result<()> {
        let out = &mut self.out;
        let mut done = Ok(());
        if let Kind::Perf { printer, summary: true, .. } = &mut self.kind
            && let Some(summary) = results.perf_timehist.as_ref().and_then(ttwu_analysis::Measured::value)
        {
            done = printer.summary(out, summary);
        }
        reader(done.and_then(|()| self.out.flush())).map(drop)
    }
}

/// A reader that has gone (`| head`) ends the list without an error.
fn reader(done: io::Result<()>) -> io::Result<Reader> {
    match done {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error),
    }
}
