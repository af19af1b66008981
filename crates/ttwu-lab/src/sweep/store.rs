//! Done cells on disk, and the dataset.

use super::{SweepCell, SweepError, SweepSetup};
use crate::compare::csv_field;
use crate::metrics::Metric;
use crate::runs::Measured;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use ttwu_sim::End;
use ttwu_stats::Better;

/// The model is part of a result: cells of another version are run again.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn open(folder: &Path) -> Result<Self, SweepError> {
        let cells = folder.join("cells");
        fs::create_dir_all(&cells).map_err(|source| SweepError::Io { path: cells, source })?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(super) fn into_folder(self) -> PathBuf {
        self.folder
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join("cells").join(format!("{id}.json"))
    }

    /// A done cell; none of one that is missing, damaged or of another version: it is run again.
    pub(super) fn read(&self, id: &str) -> Option<Measured> {
        let value: Value = serde_json::from_str(&fs::read_to_string(self.path(id)).ok()?).ok()?;
        let sound =
            value["schema"] == "ttwu/sweep-cell/1" && value["ttwu"] == VERSION && value["scenario_id"] == id;
        if !sound {
            return None;
        }
        let end = match value["end"].as_str()? {
            "completed" => End::Completed,
            "time limit" => End::TimeLimit,
            _ => return None,
        };
        Some(Measured {
            end,
            sim_ns: value["sim_ns"].as_u64()?,
            events: value["events"].as_u64()?,
            digest: u64::from_str_radix(value["digest"].as_str()?, 16).ok()?,
            rows: metrics(&value["rows"])?,
            counters: metrics(&value["counters"])?,
        })
    }

    pub(super) fn write(&self, id: &str, measured: &Measured) -> Result<(), SweepError> {
        let end = match measured.end {
            End::Completed => "completed",
            End::TimeLimit => "time limit",
            End::Stuck | End::Cancelled => unreachable!("a run that ended so is an error"),
        };
        let value = json!({
            "schema": "ttwu/sweep-cell/1",
            "ttwu": VERSION,
            "scenario_id": id,
            "end": end,
            "sim_ns": measured.sim_ns,
            "events": measured.events,
            "digest": format!("{:016x}", measured.digest),
            "rows": measured.rows.iter().map(metric).collect::<Vec<_>>(),
            "counters": measured.counters.iter().map(metric).collect::<Vec<_>>(),
        });
        replace(&self.path(id), &format!("{value}\n"))
    }

    /// One line a number, so that any tool reads it.
    pub(super) fn write_dataset(
        &self,
        setups: &[SweepSetup],
        results: &[(SweepCell, Measured)],
    ) -> Result<(), SweepError> {
        let mut text =
            "machine,policy,workload,settings,seed,scenario_id,kind,name,unit,better,value\n".to_owned();
        for (cell, measured) in results {
            let setup = &setups[cell.setup];
            let [machine, policy, workload, settings] =
                [&setup.machine, &setup.policy, &setup.workload, &setup.settings].map(|text| csv_field(text));
            let start = format!("{machine},{policy},{workload},{settings},{},{}", cell.seed, cell.id);
            for (kind, metrics) in [("row", &measured.rows), ("counter", &measured.counters)] {
                for Metric { name, unit, better, value } in metrics {
                    let (name, better) = (csv_field(name), better.map_or("", direction));
                    let _ = writeln!(text, "{start},{kind},{name},{unit},{better},{value}");
                }
            }
        }
        replace(&self.folder.join("results.csv"), &text)?;
        #[cfg(feature = "parquet")]
        super::parquet_dataset::write(&self.folder, setups, results)?;
        Ok(())
    }
}

pub(super) const fn direction(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    }
}

fn metric(metric: &Metric) -> Value {
    json!({"name": metric.name, "unit": metric.unit, "better": metric.better.map(direction), "value": metric.value})
}

fn metrics(value: &Value) -> Option<Vec<Metric>> {
    let one = |value: &Value| {
        let better = match value["better"].as_str() {
            None => None,
            Some("lower") => Some(Better::Lower),
            Some("higher") => Some(Better::Higher),
            Some(_) => return None,
        };
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        Some(Metric { name: text("name")?, unit: text("unit")?, better, value: value["value"].as_f64()? })
    };
    value.as_array()?.iter().map(one).collect()
}

/// Writes aside and renames: a reader sees the old file or the new one. The process' number keeps parts of a sweep apart.
fn replace(path: &Path, text: &str) -> Result<(), SweepError> {
    let aside = path.with_extension(format!("{}.tmp", std::process::id()));
    let done = fs::write(&aside, text).and_then(|()| fs::rename(&aside, path));
    done.map_err(|source| {
        // What has no room is not left there half.
        let _ = fs::remove_file(&aside);
        SweepError::Io { path: path.to_owned(), source }
    })
}
