//! The migration view: who was moved where, and by whom.

use crate::layout::{count, list, percent};
use crate::units::fit;
use std::fmt::Write;
use ttwu_analysis::{MigrationCause, MigrationEvidence, Migrations, Relation};

/// CPUs up to which the matrix is printed; beyond it, only the busiest routes are.
const MATRIX_CPUS_MAX: usize = 10;

/// The view, with at most `limit` tasks and routes.
#[must_use]
pub fn migrations(found: &Migrations, limit: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} migrations of {} tasks", count(found.total), count(found.tasks_moved));
    let columns: Vec<Relation> = found.by_level.iter().map(|(relation, _)| relation).collect();
    let _ = write!(out, "\n{:<18} {:>8}", "cause", "count");
    for relation in &columns {
        let _ = write!(out, " {:>9}", relation.name());
    }
    out.push('\n');
    for cause in MigrationCause::ALL {
        let total = found.by_cause[cause as usize];
        if total == 0 {
            continue;
        }
        let _ = write!(out, "{:<18} {:>8}", cause.name(), count(total));
        for &relation in &columns {
            let _ = write!(out, " {:>9}", count(found.by_cause_and_level[cause as usize].get(relation)));
        }
        out.push('\n');
        let evidence = MigrationEvidence::ALL
            .into_iter()
            .filter(|one| one.cause() == cause && found.by_evidence[*one as usize] > 0)
            .map(|one| format!("{} {}", one.name(), count(found.by_evidence[one as usize])));
        list(&mut out, "  by ", evidence);
    }
    out.push('\n');
    matrix(&mut out, found, limit);
    if !found.tasks.is_empty() {
        let _ = writeln!(out, "\n{:<24} {:>9}  by cause", "task:pid", "moves");
    }
    for (who, by_cause) in found.tasks.iter().take(limit) {
        let total: u64 = by_cause.iter().sum();
        let causes = MigrationCause::ALL.into_iter().zip(by_cause).filter(|&(_, &times)| times > 0);
        let label = format!("{} {:>9}  ", fit(&format!("{}:{}", who.name, who.pid), 24), count(total));
        list(&mut out, &label, causes.map(|(cause, times)| format!("{} {}", cause.name(), count(*times))));
    }
    if found.tasks_moved > limit as u64 {
        let _ = writeln!(out, "… {} more", found.tasks_moved - limit as u64);
    }
    if !found.exec_recorded && found.by_cause[MigrationCause::Affinity as usize] > 0 {
        let _ = writeln!(out, "not measured: exec apart from affinity (needs sched_process_exec)");
    }
    out
}

fn matrix(out: &mut String, found: &Migrations, limit: usize) {
    let bound =
        found.matrix.iter().map(|route| route.orig.index().max(route.dest.index()) + 1).max().unwrap_or(0);
    if bound == 0 {
        return;
    }
    if bound > MATRIX_CPUS_MAX {
        let mut routes: Vec<_> = found.matrix.iter().collect();
        routes.sort_by_key(|route| (std::cmp::Reverse(route.count()), route.orig, route.dest));
        let routes = routes.iter().take(limit).map(|route| {
            format!(
                "#{}→#{} {} ({})",
                route.orig,
                route.dest,
                count(route.count()),
                percent(route.count(), found.total)
            )
        });
        list(out, "routes  ", routes);
        return;
    }
    let _ = write!(out, "from \\ to");
    for dest in 0..bound {
        let _ = write!(out, " {:>6}", format!("#{dest}"));
    }
    out.push('\n');
    for orig in 0..bound {
        let _ = write!(out, "{:>9}", format!("#{orig}"));
        for dest in 0..bound {
            let route =
                found.matrix.iter().find(|route| (route.orig.index(), route.dest.index()) == (orig, dest));
            let _ = write!(
                out,
                " {:>6}",
                route.map_or_else(|| "·".to_owned(), |route| route.count().to_string())
            );
        }
        out.push('\n');
    }
}
