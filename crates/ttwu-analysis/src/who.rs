//! Naming tasks in results: an id alone says nothing to a reader.

use ttwu_model::{Pid, TaskId, TraceParts};

/// A task in a result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Its id in the trace.
    pub task: TaskId,
    /// Its pid.
    pub pid: Pid,
    /// Its last name; `swapper` for the idle task, `<pid>` where no event named it.
    pub name: String,
}

impl Who {
    /// The task `task` of a trace. An id that the table lacks becomes `?`.
    pub(crate) fn of(parts: &TraceParts, task: TaskId) -> Self {
        if task.index() >= parts.tasks.len() {
            return Self { task, pid: Pid::UNKNOWN, name: "?".to_owned() };
        }
        let pid = parts.tasks.get(task).pid;
        let name = match parts.tasks.last_name(task) {
            Some(name) if !task.is_idle() => parts.strings.get(name).to_owned(),
            Some(_) | None if task.is_idle() => "swapper".to_owned(),
            Some(_) | None => format!("<{pid}>"),
        };
        Self { task, pid, name }
    }

    /// The task with the dense number `index`.
    pub(crate) fn at(parts: &TraceParts, index: usize) -> Self {
        Self::of(parts, TaskId::new(u32::try_from(index).expect("dense ids")))
    }

    /// Is it, by its name (`ksoftirqd/3`, `kworker/3:1H`, `migration/3`), a kernel thread that may run on `cpu` only?
    #[must_use]
    pub fn is_bound_kthread(&self) -> bool {
        bound_cpu(&self.name).is_some()
    }
}

/// The CPU in the name of a per-CPU kernel thread.
fn bound_cpu(name: &str) -> Option<u16> {
    const PREFIXES: [&str; 9] = [
        "kworker/",
        "ksoftirqd/",
        "migration/",
        "cpuhp/",
        "rcuc/",
        "idle_inject/",
        "watchdog/",
        "irq_work/",
        "backlog_napi/",
    ];
    let number = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    // `kworker/u8:1` is unbound, `kworker/R-name` a rescuer.
    let digits = number.len() - number.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    number[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_per_cpu_threads_are_known() {
        let names = [
            "kworker/3:1H",
            "ksoftirqd/12",
            "migration/0",
            "kworker/u8:1",
            "kworker/R-xfs",
            "bash",
            "rcuc/x",
        ];
        let cpus: Vec<_> = names.iter().map(|name| bound_cpu(name)).collect();
        assert_eq!(cpus, [Some(3), Some(12), Some(0), None, None, None, None]);
    }
}
