//! Request and answer between two tasks: UnixBench's context1, netperf's RR tests, tbench.

use super::{Bench, Transport, fixed};
use crate::named::{MachineInfo, OptionDoc, OptionKind, Options, Table, WorkloadDoc, refused};
use crate::{
    Builder, MeterKind, MeterRef, ObjectId, ObjectKind, Op, Reg, Slot, SocketKind, Start, StreamKind, Times,
    Until,
};

/// UnixBench's "Pipe-based Context Switching" as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Context1 {
    /// Parallel copies.
    pub copies: u32,
    /// Seconds.
    pub seconds: u64,
    /// Round trips of each copy (`COUNT`).
    pub counts: Vec<MeterRef>,
}

/// netperf TCP_RR or UDP_RR as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Netperf {
    /// UDP_RR (else TCP_RR).
    pub udp: bool,
    /// `-l`, s.
    pub testlen_s: u64,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of an answer.
    pub response_bytes: u32,
    /// Instances beside each other.
    pub clients: u32,
    /// Latency of each transaction, ns: their number is the transactions.
    pub transaction: MeterRef,
}

/// tbench as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tbench {
    /// Clients, each with its server.
    pub clients: u32,
    /// `-t`, s.
    pub timelimit_s: u64,
    /// Bytes that ReadX and WriteX carried, from which the original's MB/s are (10⁶ bytes a second).
    pub bytes: MeterRef,
    /// Operations by second.
    pub operations: MeterRef,
    /// Latency of each operation, ns.
    pub latency: MeterRef,
}

const fn integer(
    name: &'static str,
    short: &'static [&'static str],
    default: &'static str,
    max: u64,
    doc: &'static str,
) -> OptionDoc {
    OptionDoc { name, short, kind: OptionKind::Integer { min: 1, max }, default, doc }
}

fn forever(body: Vec<Op>) -> Vec<Op> {
    vec![Op::Repeat { times: Times::Forever, counter: None, body }]
}

pub(super) const CONTEXT1: Table = Table {
    doc: WorkloadDoc {
        name: "context1",
        doc: "UnixBench's pipe-based context switching: pairs of processes hand a counter to and fro",
        result: "round trips of each copy; a round trip is two switches",
        options: &[
            integer("seconds", &["s"], "10", 86_400, "seconds"),
            integer("copies", &["c"], "1", 10_000, "pairs beside each other"),
        ],
    },
    build: context1,
};

/// Bytes of the counter: an unsigned long.
const COUNTER: u32 = 8;

fn context1(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let (copies, seconds) = (options.count("copies"), options.integer("seconds"));
    let mut counts = Vec::new();
    for copy in 0..copies {
        let meter = builder.meter(format!("count {copy}"), MeterKind::Count);
        let [to, back] = ["to", "back"].map(|name| {
            builder.object(format!("{name} {copy}"), ObjectKind::Stream(Transport::Pipe.stream()))
        });
        let read = |pipe: ObjectId| Op::Read { from: fixed(pipe), bytes: COUNTER };
        let write = |pipe: ObjectId| Op::Write { to: fixed(pipe), bytes: COUNTER };
        let child_program = builder.program(forever(vec![read(to), write(back)]));
        let child = builder.task("context1", child_program, Start::Forked);
        let rounds = forever(vec![write(to), read(back), Op::Count { meter, by: 1 }]);
        let program = builder.program([vec![Op::Spawn(child)], rounds].concat());
        builder.task("context1", program, Start::At(0));
        counts.push(meter);
    }
    builder.until(Until::Time(seconds * 1_000_000_000));
    Ok(Bench::Context1(Context1 { copies, seconds, counts }))
}

pub(super) const NETPERF: Table = Table {
    doc: WorkloadDoc {
        name: "netperf",
        doc: "netperf TCP_RR or UDP_RR over loopback: one request and one answer at a time",
        result: "transactions per second and their latency",
        options: &[
            OptionDoc {
                name: "test",
                short: &["t"],
                kind: OptionKind::Choice(&["TCP_RR", "UDP_RR"]),
                default: "TCP_RR",
                doc: "protocol (the original's default is TCP_STREAM, which is not modelled)",
            },
            integer("testlen", &["l"], "10", 86_400, "seconds"),
            integer("request", &["r"], "1", 65_507, "bytes of a request"),
            integer("response", &[], "1", 65_507, "bytes of an answer"),
            integer("clients", &[], "1", 10_000, "instances beside each other, each with its netserver"),
            refused("burst", &["b"], "several requests at once"),
            refused("confidence", &["I", "i"], "repetition; use `ttwu compare`"),
        ],
    },
    build: netperf,
};

fn loopback(kind: SocketKind) -> ObjectKind {
    let StreamKind::Socket { send_buffer_bytes, .. } = Transport::Inet.stream() else {
        unreachable!("TCP is a socket")
    };
    // netperf prints 212992 for both buffers of UDP.
    let send_buffer_bytes = if kind == SocketKind::Udp { 212_992 } else { send_buffer_bytes };
    ObjectKind::Stream(StreamKind::Socket { kind, send_buffer_bytes })
}

fn netperf(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let udp = options.choice("test") == "UDP_RR";
    let (request_bytes, response_bytes) = (options.count("request"), options.count("response"));
    let transaction = builder.meter("transaction", MeterKind::Samples);
    let kind = if udp { SocketKind::Udp } else { SocketKind::Tcp };
    for client in 0..options.count("clients") {
        let [to, back] =
            ["request", "answer"].map(|name| builder.object(format!("{name} {client}"), loopback(kind)));
        let server = builder.program(forever(vec![
            Op::Read { from: fixed(to), bytes: request_bytes },
            Op::Write { to: fixed(back), bytes: response_bytes },
        ]));
        builder.task("netserver", server, Start::At(0));
        let program = builder.program(forever(vec![
            Op::Stamp(Reg(0)),
            Op::Write { to: fixed(to), bytes: request_bytes },
            Op::Read { from: fixed(back), bytes: response_bytes },
            Op::Sample { meter: transaction, since: Reg(0) },
        ]));
        builder.task("netperf", program, Start::At(0));
    }
    builder.until(Until::Time(options.integer("testlen") * 1_000_000_000));
    Ok(Bench::Netperf(Netperf {
        udp,
        testlen_s: options.integer("testlen"),
        request_bytes,
        response_bytes,
        clients: options.count("clients"),
        transaction,
    }))
}

pub(super) const TBENCH: Table = Table {
    doc: WorkloadDoc {
        name: "tbench",
        doc: "tbench: dbench's load file as requests over loopback TCP, each client with its server",
        result: "MB/s",
        options: &[
            integer("clients", &["n"], "1", 4_096, "clients (the original has no default)"),
            integer("timelimit", &["t"], "600", 86_400, "seconds"),
            OptionDoc {
                name: "client-work",
                short: &[],
                kind: OptionKind::Dist { bare_ns: 1_000 },
                default: "2us",
                doc: "client's work for an operation: a line of the load file (an estimate)",
            },
            OptionDoc {
                name: "server-work",
                short: &[],
                kind: OptionKind::Dist { bare_ns: 1_000 },
                default: "1us",
                doc: "server's work for an operation (an estimate)",
            },
        ],
    },
    build: tbench,
};

/// An operation of the load file.
struct Operation {
    /// How often among 1000 operations.
    permille: u32,
    /// Bytes of the request and of the answer, about as SMB has them.
    request: u32,
    answer: u32,
    /// Payload that counts for throughput.
    payload: u64,
}

const fn operation(permille: u32, request: u32, answer: u32, payload: u64) -> Operation {
    Operation { permille, request, answer, payload }
}

/// The mix of mmtests' measured part of the load file, 3573 lines: 962 ReadX (10 MB), 303 WriteX (7.7 MB), 613 NTCreateX, 584 path
/// queries, 450 Close, 215 FIND, 124 Unlink, 43 Flush, 26 Rename; the 253 others are small queries. Sizes of the messages without
/// payload are estimates.
const MIX: [Operation; 7] = [
    operation(269, 59, 63 + 10_500, 10_500),
    operation(85, 63 + 25_400, 47, 25_400),
    operation(172, 100, 107, 0),
    operation(163, 90, 100, 0),
    operation(126, 45, 39, 0),
    operation(60, 80, 1_000, 0),
    operation(125, 70, 60, 0),
];

/// Operations before the order repeats.
const ROUND: usize = 200;

/// An order in which the kinds of [`MIX`] are spread evenly. The load file too is one fixed order, which client and server follow
/// alike; its own has each file's operations together.
fn order() -> Vec<&'static Operation> {
    let mut credit = [0i64; MIX.len()];
    (0..ROUND)
        .map(|_| {
            for (credit, operation) in credit.iter_mut().zip(&MIX) {
                *credit += i64::from(operation.permille);
            }
            let next = (0..MIX.len()).max_by_key(|kind| (credit[*kind], MIX.len() - kind)).expect("kinds");
            credit[next] -= 1_000;
            &MIX[next]
        })
        .collect()
}

/// Links of client and server: requests and answers.
const TO: Slot = Slot::Link(0);
const BACK: Slot = Slot::Link(1);

fn tbench(options: &Options, _: &MachineInfo, builder: &mut Builder) -> Result<Bench, String> {
    let bytes = builder.meter("bytes", MeterKind::Count);
    let operations = builder.meter("operations", MeterKind::Seconds);
    let latency = builder.meter("latency", MeterKind::Samples);
    let order = order();
    let client_round = order.iter().flat_map(|operation| {
        let exchange = [
            Op::Run(options.dist("client-work")),
            Op::Stamp(Reg(0)),
            Op::Write { to: TO, bytes: operation.request },
            Op::Read { from: BACK, bytes: operation.answer },
            Op::Sample { meter: latency, since: Reg(0) },
            Op::Count { meter: operations, by: 1 },
        ];
        let payload = (operation.payload > 0).then_some(Op::Count { meter: bytes, by: operation.payload });
        exchange.into_iter().chain(payload)
    });
    let client_program = builder.program(forever(client_round.collect()));
    let server_round = order.iter().flat_map(|operation| {
        [
            Op::Read { from: TO, bytes: operation.request },
            Op::Run(options.dist("server-work")),
            Op::Write { to: BACK, bytes: operation.answer },
        ]
    });
    let server_program = builder.program(forever(server_round.collect()));
    let clients = options.count("clients");
    for client in 0..clients {
        let links = ["request", "answer"]
            .map(|name| builder.object(format!("{name} {client}"), loopback(SocketKind::Tcp)))
            .to_vec();
        for (name, program) in [("tbench_srv", server_program), ("tbench", client_program)] {
            let task = builder.task(name, program, Start::At(0));
            builder.task_mut(task).links = links.clone();
        }
    }
    let timelimit_s = options.integer("timelimit");
    builder.until(Until::Time(timelimit_s * 1_000_000_000));
    Ok(Bench::Tbench(Tbench { clients, timelimit_s, bytes, operations, latency }))
}
