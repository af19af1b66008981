//! Programs compiled to flat code: nested bodies become jumps, so that a task's place in its program is one number.

use ttwu_workload::{Dist, GroupRef, MeterRef, Op, Reg, Slot, TaskRef, Times};

/// A length of time to be drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Amount {
    Fixed(u64),
    /// Index into [`Code::dists`].
    Drawn(u32),
}

/// One step of a compiled program. Targets are positions in [`Code::steps`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Run(Amount),
    RunKernel(Amount),
    Spin(Amount),
    Sleep(Amount),
    Periodic {
        timer: Reg,
        period: Amount,
        rebase: bool,
    },
    Write {
        to: Slot,
        bytes: u32,
    },
    Read {
        from: Slot,
        bytes: u32,
    },
    Poll(Slot),
    Post(Slot),
    PostAll(Slot),
    Wait(Slot),
    SpinWait(Slot),
    Reset(Slot),
    UnlessReady {
        on: Slot,
        target: u32,
    },
    Send {
        to: Slot,
        value: Reg,
    },
    Receive {
        from: Slot,
        into: Reg,
    },
    WaitUnlock {
        on: Slot,
        mutex: Slot,
    },
    Lock(Slot),
    Unlock(Slot),
    Push(Slot),
    TakeAll(Slot),
    /// The next task taken; past the last, on to `target`.
    NextItem {
        target: u32,
    },
    Submit {
        to: Slot,
        request: u32,
    },
    Queue(Slot),
    Flush(Slot),
    Touch(Slot),
    Yield,
    Spawn(TaskRef),
    Join(TaskRef),
    Exit,
    SetAffinity(Slot),
    SetNice(i8),
    SetGroup(GroupRef),
    LoopStart {
        depth: u32,
        counter: Option<Reg>,
    },
    LoopTest {
        depth: u32,
        times: Rounds,
        target: u32,
    },
    LoopEnd {
        depth: u32,
        counter: Option<Reg>,
        target: u32,
    },
    /// On to `target` unless drawn.
    Unless {
        permille: u32,
        target: u32,
    },
    Jump(u32),
    Stamp(Reg),
    Store {
        to: Slot,
        from: Reg,
    },
    Load {
        from: Slot,
        to: Reg,
    },
    Sample {
        meter: MeterRef,
        since: Reg,
    },
    Count {
        meter: MeterRef,
        by: u64,
    },
    CountCpu(MeterRef),
    /// The end of a program: a task exits, a worker or handler is done.
    End,
}

/// How often a loop goes round.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rounds {
    Count(u64),
    Forever,
    Before(u64),
}

/// All programs of a run.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) dists: Vec<Dist>,
    /// The deepest nesting of loops.
    pub(super) depth: u32,
}

impl Code {
    /// Compiles a program and gives its first step.
    pub(super) fn add(&mut self, ops: &[Op]) -> u32 {
        let entry = self.here();
        self.block(ops, 0);
        self.steps.push(Step::End);
        entry
    }

    fn here(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("programs have fewer than 2^32 steps")
    }

    fn amount(&mut self, dist: &Dist) -> Amount {
        match dist.as_constant() {
            Some(value) => Amount::Fixed(value),
            None => {
                self.dists.push(dist.clone());
                Amount::Drawn(u32::try_from(self.dists.len() - 1).expect("few distributions"))
            }
        }
    }

    fn block(&mut self, ops: &[Op], depth: u32) {
        for op in ops {
            self.op(op, depth);
        }
    }

    fn op(&mut self, op: &Op, depth: u32) {
        let step = match op {
            Op::Repeat { times, counter, body } => return self.repeat(times, *counter, body, depth),
            Op::Choose { permille, then, otherwise } => {
                let at = self.here();
                self.steps.push(Step::End);
                let target = self.branch(then, otherwise, depth);
                self.steps[at as usize] = Step::Unless { permille: *permille, target };
                return;
            }
            Op::IfReady { on, then, otherwise } => {
                let at = self.here();
                self.steps.push(Step::End);
                let target = self.branch(then, otherwise, depth);
                self.steps[at as usize] = Step::UnlessReady { on: *on, target };
                return;
            }
            Op::TakeAll { list, body } => {
                self.steps.push(Step::TakeAll(*list));
                let top = self.here();
                self.steps.push(Step::End);
                self.block(body, depth);
                self.steps.push(Step::Jump(top));
                let target = self.here();
                self.steps[top as usize] = Step::NextItem { target };
                return;
            }
            Op::Run(dist) => Step::Run(self.amount(dist)),
            Op::RunKernel(dist) => Step::RunKernel(self.amount(dist)),
            Op::Spin(dist) => Step::Spin(self.amount(dist)),
            Op::Sleep(dist) => Step::Sleep(self.amount(dist)),
            Op::Periodic { timer, period, rebase } => {
                Step::Periodic { timer: *timer, period: self.amount(period), rebase: *rebase }
            }
            Op::Write { to, bytes } => Step::Write { to: *to, bytes: *bytes },
            Op::Read { from, bytes } => Step::Read { from: *from, bytes: *bytes },
            Op::Poll { on } => Step::Poll(*on),
            Op::Post(slot) => Step::Post(*slot),
            Op::PostAll(slot) => Step::PostAll(*slot),
            Op::Wait(slot) => Step::Wait(*slot),
            Op::SpinWait(slot) => Step::SpinWait(*slot),
            Op::Reset(slot) => Step::Reset(*slot),
            Op::Send { to, value } => Step::Send { to: *to, value: *value },
            Op::Receive { from, into } => Step::Receive { from: *from, into: *into },
            Op::WaitUnlock { on, mutex } => Step::WaitUnlock { on: *on, mutex: *mutex },
            Op::Lock(slot) => Step::Lock(*slot),
            Op::Unlock(slot) => Step::Unlock(*slot),
            Op::Push(slot) => Step::Push(*slot),
            Op::Submit { to, request } => Step::Submit { to: *to, request: *request },
            Op::Queue(slot) => Step::Queue(*slot),
            Op::Flush(slot) => Step::Flush(*slot),
            Op::Touch(slot) => Step::Touch(*slot),
            Op::Yield => Step::Yield,
            Op::Spawn(task) => Step::Spawn(*task),
            Op::Join(task) => Step::Join(*task),
            Op::Exit => Step::Exit,
            Op::SetAffinity(slot) => Step::SetAffinity(*slot),
            Op::SetNice(nice) => Step::SetNice(*nice),
            Op::SetGroup(group) => Step::SetGroup(*group),
            Op::Stamp(reg) => Step::Stamp(*reg),
            Op::Store { to, from } => Step::Store { to: *to, from: *from },
            Op::Load { from, to } => Step::Load { from: *from, to: *to },
            Op::Sample { meter, since } => Step::Sample { meter: *meter, since: *since },
            Op::Count { meter, by } => Step::Count { meter: *meter, by: *by },
            Op::CountCpu(meter) => Step::CountCpu(*meter),
        };
        self.steps.push(step);
    }

    /// Both arms; the start of the second is where the test before must jump if it fails.
    fn branch(&mut self, then: &[Op], otherwise: &[Op], depth: u32) -> u32 {
        self.block(then, depth);
        let over = self.here();
        self.steps.push(Step::End);
        let target = self.here();
        self.block(otherwise, depth);
        self.steps[over as usize] = Step::Jump(self.here());
        target
    }

    fn repeat(&mut self, times: &Times, counter: Option<Reg>, body: &[Op], depth: u32) {
        self.depth = self.depth.max(depth + 1);
        self.steps.push(Step::LoopStart { depth, counter });
        let top = self.here();
        self.steps.push(Step::End);
        self.block(body, depth + 1);
        self.steps.push(Step::LoopEnd { depth, counter, target: top });
        let times = match times {
            Times::Count(count) => Rounds::Count(*count),
            Times::Forever => Rounds::Forever,
            Times::Before(at) => Rounds::Before(*at),
        };
        self.steps[top as usize] = Step::LoopTest { depth, times, target: self.here() };
    }
}
