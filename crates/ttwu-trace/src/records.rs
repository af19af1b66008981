//! Records before interpretation, of any format that has them.

use crate::ring::Recording;
use crate::source::Source;
use crate::tracepoint::RawRecord;
use crate::unwrap::unwrap;
use crate::{Format, Input, ReadError, detect, perf, schedviz, tracedat, tracefs};
use std::path::Path;
use ttwu_model::{TraceHealth, TraceMeta};

/// Shows every tracepoint record of a recording to `visit`, in time order: for fields that events do not keep, such as
/// those of probes. Record *n* is event *n* of [`read`](crate::read), losses and tracepoints without a format left out;
/// the health has both.
///
/// # Errors
/// As [`TraceStream::open`](crate::TraceStream::open), and for formats that hold no records with described fields.
pub fn walk_records(
    path: &Path,
    visit: &mut dyn FnMut(&RawRecord<'_>),
) -> Result<(TraceMeta, TraceHealth), ReadError> {
    let mut source = Source::default();
    if path.is_dir() {
        let recording = tracefs::recording(path, &mut source)?;
        return walk_pages(recording, tracefs::FORMAT, source, visit);
    }
    let (input, _) = unwrap(Input::open(path)?, &mut source.health)?;
    match detect(&input)? {
        Format::PerfData => {
            perf::walk_records(input, &mut source, visit)?;
            Ok((source.meta, source.health))
        }
        Format::TraceDat => {
            let recording = tracedat::recording(input, &mut source)?;
            walk_pages(recording, tracedat::FORMAT, source, visit)
        }
        Format::Schedviz => {
            let recording = schedviz::recording(input, &mut source)?;
            walk_pages(recording, schedviz::FORMAT, source, visit)
        }
        format @ (Format::Tracefs
        | Format::RawPages
        | Format::FtraceText
        | Format::PerfScript
        | Format::Perfetto
        | Format::Ttwu) => {
            let what = format!(
                "{format} gives events only; raw records are read from perf.data and ring-buffer pages"
            );
            Err(ReadError::Unsupported { format: "raw records", what })
        }
    }
}

fn walk_pages(
    recording: Recording,
    format: &'static str,
    mut source: Source,
    visit: &mut dyn FnMut(&RawRecord<'_>),
) -> Result<(TraceMeta, TraceHealth), ReadError> {
    recording.walk(format, &mut source, visit)?;
    Ok((source.meta, source.health))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldValue;
    use std::collections::BTreeMap;

    /// Counts by `trace-cmd report -R | awk '{print $4}' | sort | uniq -c`, trace-cmd 3.1.6.
    #[rustfmt::skip]
    const COUNTS: &[(&str, u64)] = &[
        ("act", 3509), ("call_function_single_entry", 67), ("cp_in", 3371), ("cp_out", 3371),
        ("cpu_idle", 545), ("deq", 3995), ("i_cpu", 1800), ("i_dst", 21), ("i_sis", 3333), ("i_wa", 32),
        ("i_waw", 22), ("idle", 3601), ("ipi_send_cpu", 286), ("local_timer_entry", 5658),
        ("local_timer_exit", 5659), ("mig", 374), ("newidle", 269), ("pick", 6218), ("pick_in", 6218),
        ("place", 3885), ("resched", 6525), ("reschedule_entry", 219), ("sched_migrate_task", 374),
        ("sched_process_exec", 3), ("sched_process_exit", 19), ("sched_process_fork", 19),
        ("sched_stat_runtime", 14412), ("sched_switch", 5818), ("sched_wakeup", 3576),
        ("sched_wakeup_new", 19), ("sched_waking", 3576), ("sel_in", 3354), ("sel_n", 3354), ("sel_out",
        3354), ("sel_q0", 3354), ("sel_q1", 3354), ("sel_s0", 3354), ("sel_s1", 3354), ("softirq_entry",
        2939), ("softirq_exit", 2939), ("thl", 327), ("tick", 5514), ("ttwu", 3609), ("ttwu_out", 3609),
        ("wlist", 3511), ("wlist_out", 3511), ("workqueue_queue_work", 64),
    ];

    /// The first `sel_in` record, which `trace-cmd report -R -t` prints with the same values.
    const FIRST: &str = "cpu 3 14064236119 __probe_ip=18446744071580037668 p=18379471558631727360 prev=3 wf=4 pid=206 \
        rec=3 wcpu=3 tcpu=3 nca=8 mask=255 flips=10 lastw=18379471558573785088 fdec=4294895283 migdis=0 pol=0 prio=120 \
        pf=4194368 w=1048576 vr=0 dl=786548105 vlag=0 slice=2800000 exec=0 sum=0 psum=0 dly=0 onrq=0 rdl=0 load=1024 \
        util=0 run=0 uest=0 plut=0 jif=4294895463 comm=init";

    #[test]
    fn probes_are_read_with_all_their_fields() {
        let Some(path) = ttwu_testing::shared("oracle/recordings/6.12-a-batch/trace.dat.zst") else { return };
        let mut counts = BTreeMap::new();
        let mut first = String::new();
        let mut visit = |record: &RawRecord<'_>| {
            *counts.entry(record.format.name().to_owned()).or_insert(0) += 1;
            if record.format.name() == "sel_in" && first.is_empty() {
                first = show(record);
            }
        };
        let (meta, health) = walk_records(&path, &mut visit).expect("readable");
        assert_eq!(first, FIRST);
        let counts: Vec<(&str, u64)> = counts.iter().map(|(name, &count)| (name.as_str(), count)).collect();
        assert_eq!(counts, COUNTS);
        assert!(health.is_clean(), "{health:?}");
        assert_eq!(meta.kernel_release.as_deref(), Some("6.12.117+deb13-amd64"));
    }

    /// A record's own fields as `name=value`.
    fn show(record: &RawRecord<'_>) -> String {
        let mut out = format!("cpu {} {}", record.cpu, record.at.as_ns());
        for field in record.format.fields() {
            if field.name().starts_with("common_") {
                continue;
            }
            let value = match field.read(record.payload) {
                Some(FieldValue::Signed(value)) => value.to_string(),
                Some(FieldValue::Unsigned(value)) => value.to_string(),
                Some(FieldValue::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            };
            out.push_str(&format!(" {}={value}", field.name()));
        }
        out
    }
}
