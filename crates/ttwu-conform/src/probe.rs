//! The queue probes of a recording: which record says what, with the probes' short names spelled out.
//!
//! Records that say nothing about queues are not decoded.

use ttwu_fair::Resched;
use ttwu_trace::{FieldValue, RawRecord};

/// An entity as a probe read it. Fields that a kernel lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntityValues {
    pub(crate) weight: u64,
    pub(crate) vruntime: u64,
    pub(crate) deadline: u64,
    pub(crate) vlag: i64,
    pub(crate) vprot: u64,
    pub(crate) slice: u64,
    pub(crate) exec_start: u64,
    pub(crate) sum: u64,
    pub(crate) prev_sum: u64,
    pub(crate) delayed: bool,
    pub(crate) on_rq: bool,
    pub(crate) relative: bool,
}

/// A queue's sums as a probe read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueValues {
    /// `min_vruntime` or `zero_vruntime`.
    pub(crate) zero: u64,
    pub(crate) sum: i64,
    pub(crate) sum_weight: i64,
    pub(crate) weight: u64,
    pub(crate) nr: u32,
    /// Tasks in the hierarchy.
    pub(crate) h_nr: u32,
    /// Address of the next buddy's entity.
    pub(crate) next: u64,
    /// Address of the running entity.
    pub(crate) curr: u64,
}

/// An entity as seen in its own probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Named {
    pub(crate) pid: i64,
    /// Address of the entity where the probe has it.
    pub(crate) se: u64,
    /// Does it stand for a group?
    pub(crate) group: bool,
    pub(crate) values: EntityValues,
}

/// What a record says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe {
    /// sched_stat_runtime: so many ns were accounted to the task.
    Runtime { pid: i64, runtime: u64 },
    /// sched_switch.
    /// `prev_special`: it blocked in a state whose dequeue is never delayed (stopped, traced, dead, parked).
    Switch { prev: i64, prev_blocked: bool, prev_special: bool, next: i64 },
    /// sched_wakeup_new.
    WakeupNew { pid: i64, cpu: u16 },
    /// sched_wakeup.
    Wakeup { pid: i64 },
    /// The timer interrupt begins.
    TimerIn,
    /// The timer interrupt ends.
    TimerOut,
    /// Entry of place_entity().
    Place { cfs: u64, flags: u64, entity: Named, queue: QueueValues },
    /// Entry of dequeue_entity().
    Dequeue { flags: u64, entity: Named, queue: QueueValues },
    /// Entry of the pick.
    PickIn { cfs: u64, curr: Named, queue: QueueValues },
    /// Its answer.
    Pick { entity: Named },
    /// Entry of the wake-up preemption check. The queue is the CPU's root queue.
    CheckIn(Check),
    /// Its end.
    CheckOut,
    /// Entry of the fair tick.
    Tick { cpu: u16, entity: Named, clock: u64, queue: QueueValues },
    /// Entry of sched_yield().
    Yield { cpu: u16, curr: Named, queue: QueueValues },
    /// resched_curr(), or __resched_curr() with its flag on 7.2.
    Resched { cpu: u16, lazy: bool },
    /// resched_curr_lazy().
    ReschedLazy { cpu: u16 },
    /// Entry of migrate_task_rq_fair().
    Migrate { to: u16, from: u16, entity: Named },
    /// Entry of try_to_wake_up().
    Wake,
}

/// A wake-up preemption check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub(crate) cpu: u16,
    pub(crate) flags: u64,
    pub(crate) clock: u64,
    pub(crate) wakee: Named,
    pub(crate) wakee_policy: u64,
    pub(crate) curr: Named,
    pub(crate) curr_policy: u64,
    pub(crate) queue: QueueValues,
}

/// Reads numbers by field name; what is absent is 0.
struct Fields<'a>(&'a RawRecord<'a>);

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<u64> {
        match self.0.format.field(name)?.read(self.0.payload)? {
            FieldValue::Signed(value) => Some(value.cast_unsigned()),
            FieldValue::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    fn u(&self, name: &str) -> u64 {
        self.get(name).unwrap_or(0)
    }

    fn pid(&self, name: &str) -> i64 {
        i64::from(self.u(name) as i32)
    }

    fn cpu(&self, name: &str) -> u16 {
        self.u(name) as u16
    }

    fn entity(&self, own: &[&str; 12]) -> EntityValues {
        let [w, vr, dl, vlag, vprot, slice, exec, sum, psum, dly, onrq, rdl] = own.map(|name| self.u(name));
        EntityValues {
            weight: w,
            vruntime: vr,
            deadline: dl,
            vlag: vlag.cast_signed(),
            vprot,
            slice,
            exec_start: exec,
            sum,
            prev_sum: psum,
            delayed: dly != 0,
            on_rq: onrq != 0,
            relative: rdl != 0,
        }
    }

    fn named(&self) -> Named {
        Named {
            pid: self.pid("pid"),
            se: self.u("se"),
            group: self.u("myq") != 0,
            values: self.entity(&ENTITY),
        }
    }

    fn curr(&self) -> Named {
        Named { pid: self.pid("cpid"), se: self.u("q_ccur"), group: false, values: self.entity(&CURR) }
    }

    fn queue(&self) -> QueueValues {
        QueueValues {
            zero: self.get("q_zero").unwrap_or_else(|| self.u("q_minv")),
            sum: self.u("q_avgv").cast_signed(),
            sum_weight: self.u("q_avgl").cast_signed(),
            weight: self.u("q_cw"),
            nr: self.u("q_nrq") as u32,
            h_nr: self.u("q_hnr") as u32,
            next: self.u("q_nxt"),
            curr: self.u("q_ccur"),
        }
    }
}

const ENTITY: [&str; 12] =
    ["w", "vr", "dl", "vlag", "vprot", "slice", "exec", "sum", "psum", "dly", "onrq", "rdl"];
const CURR: [&str; 12] = [
    "c_w", "c_vr", "c_dl", "c_vlag", "c_vprot", "c_slice", "c_exec", "c_sum", "c_psum", "c_dly", "c_onrq",
    "c_rdl",
];

/// `TIF_NEED_RESCHED` of x86 from 7.x on; the lazy flag is another bit.
const TIF_NEED_RESCHED: u64 = 4;
/// Bits of sched_switch's `prev_state` for stopped, traced, dead, zombie and parked.
const SPECIAL: u64 = 0x7c;
/// Bit of sched_switch's `prev_state` that says "preempted".
const PREEMPTED: u64 = 0x100;

/// What `record` says about queues, if anything.
pub(crate) fn probe(record: &RawRecord<'_>) -> Option<Probe> {
    let f = Fields(record);
    Some(match record.format.name() {
        "sched_stat_runtime" => Probe::Runtime { pid: f.pid("pid"), runtime: f.u("runtime") },
        "sched_switch" => Probe::Switch {
            prev: f.pid("prev_pid"),
            prev_blocked: f.u("prev_state") & (PREEMPTED - 1) != 0 && f.u("prev_state") & PREEMPTED == 0,
            prev_special: f.u("prev_state") & SPECIAL != 0,
            next: f.pid("next_pid"),
        },
        "sched_wakeup_new" => Probe::WakeupNew { pid: f.pid("pid"), cpu: f.cpu("target_cpu") },
        "sched_wakeup" => Probe::Wakeup { pid: f.pid("pid") },
        "local_timer_entry" => Probe::TimerIn,
        "local_timer_exit" => Probe::TimerOut,
        "place" => Probe::Place { cfs: f.u("cfs"), flags: f.u("fl"), entity: f.named(), queue: f.queue() },
        "deq" => Probe::Dequeue { flags: f.u("fl"), entity: f.named(), queue: f.queue() },
        "pick_in" => Probe::PickIn { cfs: f.u("cfs"), curr: f.curr(), queue: f.queue() },
        "pick" => Probe::Pick { entity: f.named() },
        "cp_in" => Probe::CheckIn(Check {
            cpu: f.cpu("cpu"),
            flags: f.u("wf"),
            clock: f.u("clk"),
            wakee: f.named(),
            wakee_policy: f.u("pol"),
            curr: f.curr(),
            curr_policy: f.u("cpol"),
            queue: f.queue(),
        }),
        "cp_out" => Probe::CheckOut,
        "tick" => Probe::Tick { cpu: f.cpu("cpu"), entity: f.named(), clock: f.u("clk"), queue: f.queue() },
        "yield" => Probe::Yield { cpu: f.cpu("cpu"), curr: f.curr(), queue: f.queue() },
        "resched" => Probe::Resched {
            cpu: f.cpu("cpu"),
            lazy: f.get("tif").is_some_and(|tif| tif != TIF_NEED_RESCHED),
        },
        "resched_lazy" => Probe::ReschedLazy { cpu: f.cpu("cpu") },
        "mig" => Probe::Migrate { to: f.cpu("to"), from: f.cpu("from"), entity: f.named() },
        "ttwu" => Probe::Wake,
        _ => return None,
    })
}

/// The request that was pending for the task that emitted the record.
pub(crate) fn need_resched(record: &RawRecord<'_>) -> Option<Resched> {
    let flags = Fields(record).u("common_flags");
    if flags & 0x04 != 0 {
        Some(Resched::Full)
    } else if flags & 0x02 != 0 {
        Some(Resched::Lazy)
    } else {
        None
    }
}
