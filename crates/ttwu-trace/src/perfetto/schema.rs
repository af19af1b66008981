//! The field numbers of Perfetto's schema that we use, once for reader and writer.
//!
//! Names are the schema's own. Numbers never change once published; that is protobuf's promise.

/// `TracePacket`.
pub(super) mod packet {
    pub(in super::super) const FTRACE_EVENTS: u32 = 1;
    pub(in super::super) const PROCESS_TREE: u32 = 2;
    pub(in super::super) const TRUSTED_UID: u32 = 3;
    pub(in super::super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const SEQUENCE_ID: u32 = 10;
    pub(in super::super) const INTERNED_DATA: u32 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const TRACE_CONFIG: u32 = 33;
    pub(in super::super) const FTRACE_STATS: u32 = 34;
    pub(in super::super) const TRACE_STATS: u32 = 35;
    pub(in super::super) const SYNCHRONIZATION_MARKER: u32 = 36;
    pub(in super::super) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(in super::super) const SYSTEM_INFO: u32 = 45;
    pub(in super::super) const COMPRESSED_PACKETS: u32 = 50;
    pub(in super::super) const ZSTD_COMPRESSED_PACKETS: u32 = 133;
}

/// `FtraceEventBundle`.
pub(super) mod bundle {
    pub(in super::super) const CPU: u32 = 1;
    pub(in super::super) const EVENT: u32 = 2;
    pub(in super::super) const LOST_EVENTS: u32 = 3;
    pub(in super::super) const COMPACT_SCHED: u32 = 4;
    pub(in super::super) const FTRACE_CLOCK: u32 = 5;
    pub(in super::super) const ERROR: u32 = 8;
    pub(in super::super) const GENERIC_EVENT_DESCRIPTORS: u32 = 11;
}

/// `FtraceEvent`: its own fields, and the kinds of event that are read or written.
pub(super) mod event {
    pub(in super::super) const TIMESTAMP: u32 = 1;
    pub(in super::super) const PID: u32 = 2;
    pub(in super::super) const SCHED_SWITCH: u32 = 4;
    pub(in super::super) const COMMON_FLAGS: u32 = 5;
    pub(in super::super) const CPU_FREQUENCY: u32 = 11;
    pub(in super::super) const CPU_IDLE: u32 = 13;
    pub(in super::super) const SCHED_WAKEUP: u32 = 17;
    pub(in super::super) const SCHED_WAKING: u32 = 20;
    pub(in super::super) const IPI_ENTRY: u32 = 21;
    pub(in super::super) const IPI_EXIT: u32 = 22;
    pub(in super::super) const IPI_RAISE: u32 = 23;
    pub(in super::super) const SOFTIRQ_ENTRY: u32 = 24;
    pub(in super::super) const SOFTIRQ_EXIT: u32 = 25;
    pub(in super::super) const SOFTIRQ_RAISE: u32 = 26;
    pub(in super::super) const IRQ_HANDLER_ENTRY: u32 = 36;
    pub(in super::super) const IRQ_HANDLER_EXIT: u32 = 37;
    pub(in super::super) const WORKQUEUE_EXECUTE_END: u32 = 57;
    pub(in super::super) const WORKQUEUE_EXECUTE_START: u32 = 58;
    pub(in super::super) const SCHED_WAKEUP_NEW: u32 = 114;
    pub(in super::super) const SCHED_PROCESS_EXEC: u32 = 237;
    pub(in super::super) const SCHED_PROCESS_EXIT: u32 = 238;
    pub(in super::super) const SCHED_PROCESS_FORK: u32 = 239;
    pub(in super::super) const GENERIC: u32 = 327;
    pub(in super::super) const SYS_ENTER: u32 = 329;
    pub(in super::super) const SCHED_MIGRATE_TASK: u32 = 491;
    pub(in super::super) const HRTIMER_EXPIRE_ENTRY: u32 = 553;
    pub(in super::super) const TIMER_EXPIRE_ENTRY: u32 = 557;

    /// Names of events that scheduler recordings often hold beside the above. Others are shown by number.
    pub(in super::super) const OTHERS: &[(u32, &str)] = &[
        (3, "print"),
        (12, "cpu_frequency_limits"),
        (14, "clock_enable"),
        (15, "clock_disable"),
        (16, "clock_set_rate"),
        (18, "sched_blocked_reason"),
        (19, "sched_cpu_hotplug"),
        (27, "i2c_read"),
        (59, "workqueue_queue_work"),
        (113, "suspend_resume"),
        (235, "task_newtask"),
        (236, "task_rename"),
        (240, "sched_process_free"),
        (241, "sched_process_hang"),
        (242, "sched_process_wait"),
        (330, "sys_exit"),
        (353, "sched_pi_setprio"),
    ];
}

/// `FtraceEventBundle.CompactSched`.
pub(super) mod compact {
    pub(in super::super) const SWITCH_TIMESTAMP: u32 = 1;
    pub(in super::super) const SWITCH_PREV_STATE: u32 = 2;
    pub(in super::super) const SWITCH_NEXT_PID: u32 = 3;
    pub(in super::super) const SWITCH_NEXT_PRIO: u32 = 4;
    pub(in super::super) const INTERN_TABLE: u32 = 5;
    pub(in super::super) const SWITCH_NEXT_COMM_INDEX: u32 = 6;
    pub(in super::super) const WAKING_TIMESTAMP: u32 = 7;
    pub(in super::super) const WAKING_PID: u32 = 8;
    pub(in super::super) const WAKING_TARGET_CPU: u32 = 9;
    pub(in super::super) const WAKING_PRIO: u32 = 10;
    pub(in super::super) const WAKING_COMM_INDEX: u32 = 11;
    pub(in super::super) const WAKING_COMMON_FLAGS: u32 = 12;
}

/// `FtraceClock` by number: the kernel's name of the trace clock. Without the field, it is `boot`.
pub(super) const FTRACE_CLOCKS: [&str; 5] = ["boot", "unknown", "global", "local", "mono_raw"];
