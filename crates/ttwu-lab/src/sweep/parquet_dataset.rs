//! The dataset as Parquet: the lines of `results.csv` as rows, with the seed and the value as numbers.

use super::store::direction;
use super::{SweepCell, SweepError, SweepSetup};
use crate::runs::Measured;
use std::fs;
use std::io;
use std::path::Path;
use ttwu_trace::{ParquetCell as Cell, ParquetColumn as Column, ParquetTable};

/// The columns, those of the CSV.
const COLUMNS: [(&str, Column); 11] = [
    ("machine", Column::Text),
    ("policy", Column::Text),
    ("workload", Column::Text),
    ("settings", Column::Text),
    ("seed", Column::Long),
    ("scenario_id", Column::Text),
    ("kind", Column::Text),
    ("name", Column::Text),
    ("unit", Column::Text),
    ("better", Column::Text),
    ("value", Column::Double),
];

/// Writes `results.parquet` aside and renames it, so that a reader sees the old file or the new one.
pub(super) fn write(
    folder: &Path,
    setups: &[SweepSetup],
    results: &[(SweepCell, Measured)],
) -> Result<(), SweepError> {
    // The process' number keeps parts of a sweep apart that share the folder.
    let aside = format!("results-{}", std::process::id());
    let path = folder.join(format!("{aside}.parquet"));
    let done = rows(folder, &aside, setups, results)
        .and_then(|()| fs::rename(&path, folder.join("results.parquet")));
    done.map_err(|source| {
        let _ = fs::remove_file(&path);
        SweepError::Io { path, source }
    })
}

fn rows(
    folder: &Path,
    name: &str,
    setups: &[SweepSetup],
    results: &[(SweepCell, Measured)],
) -> io::Result<()> {
    match fs::remove_file(folder.join(format!("{name}.parquet"))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut table = ParquetTable::new(folder, name, &COLUMNS)?;
    for (cell, measured) in results {
        let setup = &setups[cell.setup];
        for (kind, metrics) in [("row", &measured.rows), ("counter", &measured.counters)] {
            for metric in metrics {
                table.push([
                    Cell::text(&setup.machine),
                    Cell::text(&setup.policy),
                    Cell::text(&setup.workload),
                    Cell::text(&setup.settings),
                    Cell::Long(i64::try_from(cell.seed).ok()),
                    Cell::text(&cell.id),
                    Cell::text(kind),
                    Cell::text(&metric.name),
                    Cell::text(&metric.unit),
                    metric.better.map_or(Cell::Text(None), |better| Cell::text(direction(better))),
                    Cell::Double(Some(metric.value)),
                ])?;
            }
        }
    }
    table.finish().map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::super::{Shard, SweepPlan, sweep};
    use crate::{Cancel, Simulator};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use std::num::NonZeroUsize;

    #[test]
    fn the_dataset_is_the_same_as_parquet_and_as_csv() {
        let plan = "machines = [\"uma-8\"]\npolicies = [\"linux-6.12\"]\nworkloads = [\"pipe:loop=10\"]\nseeds = 2\n";
        let plan = SweepPlan::parse(plan, &ttwu_sim::Nothing).expect("a plan");
        let folder = std::env::temp_dir().join(format!("ttwu-lab-{}-parquet", std::process::id()));
        // Twice: the second replaces what the first wrote.
        for _ in 0..2 {
            sweep(&plan, &folder, Shard::WHOLE, NonZeroUsize::MIN, &Simulator, &Cancel::new(), &mut |_| {})
                .expect("swept");
        }
        let csv = std::fs::read_to_string(folder.join("results.csv")).expect("a dataset");
        let file = std::fs::File::open(folder.join("results.parquet")).expect("a dataset");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let lines: Vec<String> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| {
                let row = row.expect("a row");
                let text = |column: usize| row.get_string(column).map_or("", |text| text.as_str()).to_owned();
                let (seed, value) = (row.get_long(4).expect("a seed"), row.get_double(10).expect("a value"));
                let [machine, policy, workload, settings, id] = [0, 1, 2, 3, 5].map(text);
                let [kind, name, unit, better] = [6, 7, 8, 9].map(text);
                format!("{machine},{policy},{workload},{settings},{seed},{id},{kind},{name},{unit},{better},{value}")
            })
            .collect();
        let names: Vec<String> = std::fs::read_dir(&folder)
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(lines, csv.lines().skip(1).collect::<Vec<_>>());
        assert!(lines.len() > 20, "{csv}");
        assert_eq!(names.len(), 3, "nothing aside is left: {names:?}");
    }
}
