//! A writer of perf.data files for tests and benchmarks: byte orders, word sizes and containers at will.
//!
//! Shared by path, so that neither has to be part of the library. It writes what perf would, for three tracepoints, and
//! lets a test put any other record in between; it does not compress.

/// How the imagined machine lays out numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// Most significant byte first.
    pub(crate) order: Order,
    /// Bytes of a `long`: 4 or 8.
    pub(crate) long: usize,
}

/// Byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Least significant first.
    Little,
    /// Most significant first.
    Big,
}

/// The common target.
pub(crate) const X86_64: Target = Target { order: Order::Little, long: 8 };

/// Ids of the tracepoints that [`PerfWriter`] knows.
pub(crate) const SWITCH: u16 = 316;
/// `sched_waking`.
pub(crate) const WAKING: u16 = 319;
/// `sched_migrate_task`, with a dynamic name.
pub(crate) const MIGRATE: u16 = 315;
const TRACEPOINTS: [u16; 3] = [SWITCH, WAKING, MIGRATE];

/// IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER: what perf sched asks for.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// `sample_id_all`.
const FLAGS: u64 = 1 << 18;
const ATTR_BYTES: usize = 128;

/// Makes a perf.data file.
#[derive(Debug, Clone)]
pub(crate) struct PerfWriter {
    target: Target,
    records: Vec<u8>,
    /// Where each record begins in `records`.
    pub(crate) starts: Vec<usize>,
}

impl PerfWriter {
    /// No records yet.
    pub(crate) fn new(target: Target) -> Self {
        Self { target, records: Vec::new(), starts: Vec::new() }
    }

    /// Adds a record of any type.
    pub(crate) fn record(&mut self, kind: u32, body: &[u8]) {
        self.starts.push(self.records.len());
        let padded = body.len().next_multiple_of(8);
        let size = u16::try_from(8 + padded).expect("records are shorter than 64 KiB");
        self.records.extend(self.target.u32(kind));
        self.records.extend(self.target.u16(0));
        self.records.extend(self.target.u16(size));
        self.records.extend(body);
        self.records.resize(self.records.len() + padded - body.len(), 0);
    }

    /// Adds a sample of a tracepoint with its raw payload.
    pub(crate) fn sample(&mut self, tracepoint: u16, at: u64, cpu: u32, tid: i32, payload: &[u8]) {
        let index = TRACEPOINTS.iter().position(|&id| id == tracepoint).expect("a known tracepoint");
        let t = self.target;
        let mut body = Vec::with_capacity(64 + payload.len());
        body.extend(t.u64(id_of(index, cpu)));
        body.extend(t.u64(0));
        body.extend([t.u32(tid.cast_unsigned()), t.u32(tid.cast_unsigned())].concat());
        body.extend(t.u64(at));
        body.extend([t.u32(cpu), t.u32(0)].concat());
        body.extend(t.u64(1));
        // The size field and the payload together are a multiple of 8.
        let raw = (payload.len() + 4).next_multiple_of(8) - 4;
        body.extend(t.u32(u32::try_from(raw).expect("short")));
        body.extend(payload);
        body.resize(body.len() + raw - payload.len(), 0);
        self.record(9, &body);
    }

    /// Adds a `sched_switch`.
    pub(crate) fn switch(&mut self, at: u64, cpu: u32, prev: (i32, &str), state: u64, next: (i32, &str)) {
        let t = self.target;
        let mut payload = t.common(SWITCH, prev.0);
        payload.extend(comm(prev.1));
        payload.extend([t.u32(prev.0.cast_unsigned()), t.u32(120)].concat());
        payload.extend(t.long(state));
        payload.extend(comm(next.1));
        payload.extend([t.u32(next.0.cast_unsigned()), t.u32(120)].concat());
        self.sample(SWITCH, at, cpu, prev.0, &payload);
    }

    /// Adds a `sched_waking` by `waker`.
    pub(crate) fn waking(&mut self, at: u64, cpu: u32, waker: i32, wakee: (i32, &str), prev_cpu: u32) {
        let t = self.target;
        let mut payload = t.common(WAKING, waker);
        payload.extend(comm(wakee.1));
        payload.extend([t.u32(wakee.0.cast_unsigned()), t.u32(120), t.u32(prev_cpu)].concat());
        self.sample(WAKING, at, cpu, waker, &payload);
    }

    /// Adds a `sched_migrate_task` whose name is behind `__data_loc`.
    pub(crate) fn migrate(&mut self, at: u64, cpu: u32, task: (i32, &str), from: u32, to: u32) {
        let t = self.target;
        let mut payload = t.common(MIGRATE, 0);
        let len = u32::try_from(task.1.len() + 1).expect("short");
        payload.extend(t.u32(len << 16 | 28));
        payload.extend([t.u32(task.0.cast_unsigned()), t.u32(120), t.u32(from), t.u32(to)].concat());
        payload.extend(task.1.as_bytes());
        payload.push(0);
        self.sample(MIGRATE, at, cpu, 0, &payload);
    }

    /// Adds a loss on `cpu`.
    pub(crate) fn lost(&mut self, at: u64, cpu: u32, count: u64) {
        let t = self.target;
        let id = id_of(0, cpu);
        let body = [t.u64(id).to_vec(), t.u64(count).to_vec(), self.trailer(at, cpu, id)].concat();
        self.record(2, &body);
    }

    /// Adds a task's name.
    pub(crate) fn comm(&mut self, at: u64, tgid: i32, tid: i32, name: &str) {
        let t = self.target;
        let mut body = [t.u32(tgid.cast_unsigned()), t.u32(tid.cast_unsigned())].concat();
        body.extend(name.as_bytes());
        body.push(0);
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend(self.trailer(at, 0, id_of(0, 0)));
        self.record(3, &body);
    }

    /// Ends a round.
    pub(crate) fn finished_round(&mut self) {
        self.record(68, &[]);
    }

    /// Bytes of records so far.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// A seekable file.
    pub(crate) fn finish(&self) -> Vec<u8> {
        let t = self.target;
        let (mut ids, mut attrs) = (Vec::new(), Vec::new());
        let ids_at = 104;
        for (index, &tracepoint) in TRACEPOINTS.iter().enumerate() {
            let start = ids.len() as u64;
            (0..4).for_each(|cpu| ids.extend(t.u64(id_of(index, cpu))));
            attrs.extend(t.attr(tracepoint));
            attrs.extend([t.u64(ids_at + start), t.u64(4 * 8)].concat());
        }
        let attrs_at = ids_at + ids.len() as u64;
        let data_at = attrs_at + attrs.len() as u64;
        let features = self.features();
        let mut bits = [0u64; 4];
        features.iter().for_each(|&(bit, _)| bits[0] |= 1 << bit);
        // An array of `long`: on 32 bits, the first word holds bits 0 to 31.
        if t.long == 4 && t.order == Order::Big {
            bits[0] = bits[0].rotate_left(32);
        }
        let mut out = t.magic().to_vec();
        for number in [104, (ATTR_BYTES + 16) as u64, attrs_at, attrs.len() as u64, data_at] {
            out.extend(t.u64(number));
        }
        out.extend(t.u64(self.records.len() as u64));
        out.extend([0; 16]);
        bits.into_iter().for_each(|word| out.extend(t.u64(word)));
        out.extend(ids);
        out.extend(attrs);
        out.extend(&self.records);
        let mut at = out.len() + 16 * features.len();
        for (_, content) in &features {
            out.extend([t.u64(at as u64), t.u64(content.len() as u64)].concat());
            at += content.len();
        }
        features.iter().for_each(|(_, content)| out.extend(content));
        out
    }

    /// A pipe's content.
    pub(crate) fn finish_pipe(&self) -> Vec<u8> {
        let t = self.target;
        let mut head = Self::new(t);
        for (bit, content) in self.features().into_iter().filter(|&(bit, _)| bit != 1) {
            head.record(80, &[&t.u64(bit)[..], &content].concat());
        }
        for (index, &tracepoint) in TRACEPOINTS.iter().enumerate() {
            let ids = (0..4).flat_map(|cpu| t.u64(id_of(index, cpu)));
            head.record(64, &t.attr(tracepoint).into_iter().chain(ids).collect::<Vec<_>>());
        }
        let mut tracing = t.tracing_data();
        tracing.resize(tracing.len().next_multiple_of(8), 0);
        head.record(66, &t.u32(u32::try_from(tracing.len()).expect("short")));
        let out = [&t.magic()[..], &t.u64(16), &head.records, &tracing, &self.records];
        out.concat()
    }

    /// Bit and content.
    fn features(&self) -> Vec<(u64, Vec<u8>)> {
        let t = self.target;
        let string = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize((bytes.len() + 1).next_multiple_of(64), 0);
            [&t.u32(u32::try_from(bytes.len()).expect("short"))[..], &bytes].concat()
        };
        vec![
            (1, t.tracing_data()),
            (3, string("box")),
            (4, string("6.18.1")),
            (5, string("6.1.0")),
            (6, string(if t.long == 8 { "x86_64" } else { "armv7l" })),
            (7, [t.u32(4), t.u32(4)].concat()),
        ]
    }

    /// `sample_id_all` of the sample type above: TID, TIME, CPU, IDENTIFIER.
    fn trailer(&self, at: u64, cpu: u32, id: u64) -> Vec<u8> {
        let t = self.target;
        [&t.u64(0)[..], &t.u64(at), &t.u32(cpu), &t.u32(0), &t.u64(id)].concat()
    }
}

fn id_of(index: usize, cpu: u32) -> u64 {
    100 + index as u64 * 4 + u64::from(cpu)
}

fn comm(name: &str) -> [u8; 16] {
    let mut comm = [0; 16];
    comm[..name.len()].copy_from_slice(name.as_bytes());
    comm
}

impl Target {
    fn u16(self, number: u16) -> [u8; 2] {
        match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }

    fn u32(self, number: u32) -> [u8; 4] {
        match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }

    fn u64(self, number: u64) -> [u8; 8] {
        match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }

    fn long(self, number: u64) -> Vec<u8> {
        if self.long == 8 {
            self.u64(number).to_vec()
        } else {
            self.u32(u32::try_from(number).expect("small")).to_vec()
        }
    }

    fn magic(self) -> [u8; 8] {
        match self.order {
            Order::Little => *b"PERFILE2",
            Order::Big => *b"2ELIFREP",
        }
    }

    fn common(self, id: u16, pid: i32) -> Vec<u8> {
        [&self.u16(id)[..], &[1, 0], &self.u32(pid.cast_unsigned())].concat()
    }

    fn attr(self, tracepoint: u16) -> Vec<u8> {
        let size = u32::try_from(ATTR_BYTES).expect("small");
        let flags = match self.order {
            Order::Little => FLAGS,
            Order::Big => FLAGS.reverse_bits(),
        };
        let mut attr = [self.u32(2), self.u32(size)].concat();
        for number in [u64::from(tracepoint), 1, SAMPLE_TYPE, 4, flags] {
            attr.extend(self.u64(number));
        }
        attr.resize(ATTR_BYTES, 0);
        attr
    }

    fn tracing_data(self) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing0.6\0".to_vec();
        out.push(u8::from(self.order == Order::Big));
        out.push(u8::try_from(self.long).expect("4 or 8"));
        out.extend(self.u32(4096));
        // perf itself insists on these two.
        let long = self.long;
        let page = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:{long};\t\
             signed:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:{};\tsize:{};\t\
             signed:0;\n",
            8 + long,
            4096 - 8 - long
        );
        for (name, text) in [("header_page", &*page), ("header_event", "# compressed entry header\n")] {
            out.extend(name.as_bytes());
            out.push(0);
            out.extend(self.u64(text.len() as u64));
            out.extend(text.as_bytes());
        }
        out.extend(self.u32(0));
        out.extend([&self.u32(1)[..], b"sched\0", &self.u32(3)].concat());
        for text in self.formats() {
            out.extend(self.u64(text.len() as u64));
            out.extend(text.as_bytes());
        }
        // No kallsyms, no printk formats, no saved names.
        out.extend([&self.u32(0)[..], &self.u32(0), &self.u64(0)].concat());
        out
    }

    fn formats(self) -> [String; 3] {
        let field = |declaration: &str, offset: usize, size: usize, signed: u8| {
            format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
        };
        let head = |name: &str, id: u16| {
            let mut text = format!("name: {name}\nID: {id}\nformat:\n");
            text += &field("unsigned short common_type", 0, 2, 0);
            text += &field("unsigned char common_flags", 2, 1, 0);
            text += &field("unsigned char common_preempt_count", 3, 1, 0);
            text += &field("int common_pid", 4, 4, 1);
            text + "\n"
        };
        let next = 32 + self.long;
        let letters = r#"{ 0x01, "S" }, { 0x02, "D" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x80, "I" }"#;
        let print = format!(
            "\nprint fmt: \"%d\", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", {letters}) : \
             \"R\", REC->prev_state & 0x100 ? \"+\" : \"\"\n"
        );
        let switch = [
            head("sched_switch", SWITCH),
            field("char prev_comm[16]", 8, 16, 0),
            field("pid_t prev_pid", 24, 4, 1),
            field("int prev_prio", 28, 4, 1),
            field("long prev_state", 32, self.long, 1),
            field("char next_comm[16]", next, 16, 0),
            field("pid_t next_pid", next + 16, 4, 1),
            field("int next_prio", next + 20, 4, 1),
            print,
        ];
        let waking = [
            head("sched_waking", WAKING),
            field("char comm[16]", 8, 16, 0),
            field("pid_t pid", 24, 4, 1),
            field("int prio", 28, 4, 1),
            field("int target_cpu", 32, 4, 1),
            "\nprint fmt: \"\"\n".to_owned(),
        ];
        let migrate = [
            head("sched_migrate_task", MIGRATE),
            field("__data_loc char[] comm", 8, 4, 0),
            field("pid_t pid", 12, 4, 1),
            field("int prio", 16, 4, 1),
            field("int orig_cpu", 20, 4, 1),
            field("int dest_cpu", 24, 4, 1),
            "\nprint fmt: \"\"\n".to_owned(),
        ];
        [switch.concat(), waking.concat(), migrate.concat()]
    }
}
