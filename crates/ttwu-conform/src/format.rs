//! Mirror types of the decision files' lines. Short names are the files' own; what they mean stands at each.

use serde::Deserialize;

/// One line of `decisions.jsonl`: a wake-up, fork or exec.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Decision {
    /// Time of the wake-up, seconds as text.
    pub(crate) ts: String,
    /// The waker's CPU.
    pub(crate) cpu: u16,
    /// trace-cmd's flag column.
    pub(crate) ctx: String,
    /// `select`, `fork`, `exec`, `on_rq`, `on_cpu`, `pinned`, `none`, `other`.
    pub(crate) kind: String,
    /// Arguments of select_task_rq_fair().
    pub(crate) sel: Option<Selection>,
    /// Every CPU when it was entered.
    #[serde(default)]
    pub(crate) rq: Vec<RunQueueState>,
    /// Idle checks in the order asked: CPU and answer.
    #[serde(default)]
    pub(crate) idle: Vec<(u16, i64)>,
    /// Results of task_h_load() in order.
    #[serde(default)]
    pub(crate) thl: Vec<u64>,
    /// Inlined points reached, by name, with their values.
    #[serde(default)]
    pub(crate) inl: Vec<Vec<serde_json::Value>>,
    /// The CPU chosen.
    pub(crate) ret: Option<u16>,
    /// Wake-list questions: CPU, queued remotely?, on_cpu.
    #[serde(default)]
    pub(crate) wl: Vec<(u16, i64, i64)>,
}

impl Decision {
    /// The value at `index` of the first inlined point called `name`.
    pub(crate) fn inlined(&self, name: &str, index: usize) -> Option<i64> {
        let named =
            |point: &&Vec<serde_json::Value>| point.first().and_then(serde_json::Value::as_str) == Some(name);
        self.inl.iter().find(named)?.get(index + 1)?.as_i64()
    }
}

/// Arguments of select_task_rq_fair(), and the wakee.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Selection {
    /// The wakee's address: tells tasks apart.
    pub(crate) p: u64,
    /// Its pid.
    pub(crate) pid: i64,
    /// `prev_cpu`.
    pub(crate) prev: u16,
    /// Wake flags.
    pub(crate) wf: u32,
    /// `recent_used_cpu`.
    pub(crate) rec: u16,
    /// `task_cpu()`.
    pub(crate) tcpu: u16,
    /// Allowed CPUs.
    pub(crate) mask: u64,
    /// `wakee_flips`.
    pub(crate) flips: u32,
    /// Scheduling policy: 5 is SCHED_IDLE.
    pub(crate) pol: u32,
    /// `se.avg.load_avg`.
    pub(crate) load: u64,
    /// `se.avg.util_avg`.
    pub(crate) util: u64,
    /// `se.avg.runnable_avg`.
    pub(crate) run: u64,
    /// `se.avg.util_est`.
    #[serde(default)]
    pub(crate) uest: u64,
    /// `se.avg.last_update_time`.
    pub(crate) plut: u64,
    /// `on_rq`.
    #[serde(default)]
    pub(crate) onrq: i64,
    /// Jiffies.
    pub(crate) jif: u64,
    /// Name, in quotes.
    #[serde(default)]
    pub(crate) comm: String,
}

/// A CPU at the entry of the selection.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RunQueueState {
    /// `nr_running`.
    pub(crate) n: i64,
    /// `ttwu_pending`.
    pub(crate) tp: i64,
    /// Pid of the current task, 0 idle.
    pub(crate) c: i64,
    /// Idle-policy tasks in the hierarchy.
    pub(crate) hi: i64,
    /// `has_idle_cores` of the LLC.
    pub(crate) ic: i64,
    /// Queued tasks in the hierarchy.
    #[serde(default)]
    pub(crate) h: i64,
    /// Runnable tasks in the hierarchy (6.12, 7.2).
    pub(crate) hr: Option<i64>,
    /// Root `load_avg`, `util_avg`, `runnable_avg`, `util_est`.
    pub(crate) la: u64,
    pub(crate) ua: u64,
    pub(crate) ra: u64,
    #[serde(default)]
    pub(crate) ue: u64,
    /// Cached `h_load` and its jiffy.
    #[serde(default)]
    pub(crate) hl: u64,
    #[serde(default)]
    pub(crate) hlu: u64,
    /// Capacity.
    pub(crate) cap: u64,
    /// The current task's flips, last wakee, decay stamp, flags, allowed CPUs, load.
    pub(crate) cf: u32,
    pub(crate) cl: u64,
    pub(crate) cd: u64,
    pub(crate) cpf: u64,
    pub(crate) cnca: u64,
    #[serde(default)]
    pub(crate) cla: u64,
    /// `nr_idle_scan` of the LLC.
    #[serde(default)]
    pub(crate) is: i64,
    /// `idle_stamp` (newer layouts).
    pub(crate) ist: Option<u64>,
}
