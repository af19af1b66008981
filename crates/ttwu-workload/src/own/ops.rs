//! The language of programs: one operation a line (or between `;`), bodies in braces.
//!
//! ```text
//! repeat 100 as r0 {
//!     run uniform(5us..15us)
//!     write requests 100
//! }
//! ```
//!
//! Objects are named, in quotes where the name has spaces; `@2` is the task's link 2, `@2+r0` its link 2 + r0, `@5+cpu` its link
//! 5 + the CPU, `item@1` link 1 of the item that was taken out. `task 3` is the task of that number, a bare name all of that name.

use super::Names;
use crate::text::{did_you_mean, dist_text, parse_dist, parse_time, time_text};
use crate::{Dist, GroupRef, MeterRef, ObjectId, Op, Reg, Slot, TaskRef, Times, Workload};

/// An error in a program: bytes from its start, and what is wrong.
pub(super) type OpsError = (usize, String);

/// How many braces may be open: no program that a person writes has more, and a recursion has an end.
const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Open,
    Close,
    End,
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    at: usize,
    names: &'a Names,
    length: usize,
}

pub(super) fn parse(text: &str, names: &Names) -> Result<Vec<Op>, OpsError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, names, length: text.len() };
    let ops = parser.body(0)?;
    match parser.next() {
        None => Ok(ops),
        Some((offset, _)) => Err((offset, "`}` without `{`".to_owned())),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, OpsError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let start = at;
        at += c.len_utf8();
        match c {
            '\n' | ';' => tokens.push((start, Token::End)),
            '{' => tokens.push((start, Token::Open)),
            '}' => tokens.push((start, Token::Close)),
            '#' => at += text[at..].find('\n').unwrap_or(text.len() - at),
            '"' => {
                let length =
                    text[at..].find('"').ok_or((start, "a quoted name without its end".to_owned()))?;
                tokens.push((start, Token::Quoted(text[at..at + length].to_owned())));
                at += length + 1;
            }
            c if c.is_whitespace() => {}
            _ => {
                at = word_end(text, start)?;
                tokens.push((start, Token::Word(text[start..at].to_owned())));
            }
        }
    }
    Ok(tokens)
}

/// A word ends at a space or sign outside brackets.
fn word_end(text: &str, start: usize) -> Result<usize, OpsError> {
    let mut depth = 0usize;
    for (offset, c) in text[start..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '\n' if depth > 0 => break,
            c if depth == 0 && (c.is_whitespace() || matches!(c, ';' | '{' | '}' | '"' | '#')) => {
                return Ok(start + offset);
            }
            _ => {}
        }
    }
    if depth > 0 { Err((start, "`(` without `)`".to_owned())) } else { Ok(text.len()) }
}

/// All operations, for the nearest name.
const VERBS: &[&str] = &[
    "run",
    "run-kernel",
    "spin",
    "sleep",
    "periodic",
    "write",
    "read",
    "poll",
    "post",
    "post-all",
    "wait",
    "spin-wait",
    "reset",
    "if-ready",
    "send",
    "receive",
    "wait-unlock",
    "lock",
    "unlock",
    "push",
    "take-all",
    "submit",
    "queue",
    "flush",
    "touch",
    "yield",
    "spawn",
    "join",
    "exit",
    "affinity",
    "nice",
    "group",
    "repeat",
    "forever",
    "until",
    "choose",
    "stamp",
    "store",
    "load",
    "sample",
    "count",
    "count-cpu",
];

type Parsed<T> = Result<T, OpsError>;

impl Parser<'_> {
    fn next(&mut self) -> Option<(usize, Token)> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    /// Where the next token stands.
    fn here(&self) -> usize {
        self.tokens.get(self.at).map_or(self.length, |(offset, _)| *offset)
    }

    /// Operations up to a closing brace, which is left, or the end.
    fn body(&mut self, depth: usize) -> Parsed<Vec<Op>> {
        if depth > DEPTH_MAX {
            return Err((self.here(), format!("expected at most {DEPTH_MAX} bodies inside each other")));
        }
        let mut ops = Vec::new();
        loop {
            match self.peek() {
                None | Some(Token::Close) => return Ok(ops),
                Some(Token::End) => self.at += 1,
                Some(Token::Open) => {
                    return Err((self.here(), "expected an operation, found `{`".to_owned()));
                }
                Some(Token::Word(_) | Token::Quoted(_)) => {
                    self.operation(depth, &mut ops)?;
                    if !matches!(self.peek(), None | Some(Token::End | Token::Close)) {
                        return Err((self.here(), "expected the end of the line or `;`".to_owned()));
                    }
                }
            }
        }
    }

    fn braces(&mut self, depth: usize) -> Parsed<Vec<Op>> {
        let here = self.here();
        match self.next() {
            Some((_, Token::Open)) => {}
            _ => return Err((here, "expected `{`".to_owned())),
        }
        let ops = self.body(depth + 1)?;
        match self.next() {
            Some((_, Token::Close)) => Ok(ops),
            _ => Err((here, "`{` without `}`".to_owned())),
        }
    }

    fn otherwise(&mut self, depth: usize) -> Parsed<Vec<Op>> {
        if self.keyword("else") { self.braces(depth) } else { Ok(Vec::new()) }
    }

    /// Takes this word if it is next.
    fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, what: &str) -> Parsed<(usize, String)> {
        let here = self.here();
        match self.peek() {
            Some(Token::Word(word) | Token::Quoted(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok((here, word))
            }
            _ => Err((here, format!("expected {what}"))),
        }
    }

    fn operation(&mut self, depth: usize, ops: &mut Vec<Op>) -> Parsed<()> {
        let (offset, verb) = self.word("an operation")?;
        let op = match verb.as_str() {
            "run" => Op::Run(self.dist()?),
            "run-kernel" => Op::RunKernel(self.dist()?),
            "spin" => Op::Spin(self.dist()?),
            "sleep" => Op::Sleep(self.dist()?),
            "periodic" => {
                let (timer, period) = (self.reg()?, self.dist()?);
                Op::Periodic { timer, period, rebase: self.keyword("rebase") }
            }
            "write" => Op::Write { to: self.slot()?, bytes: self.number("a number of bytes")? },
            "read" => Op::Read { from: self.slot()?, bytes: self.number("a number of bytes")? },
            "poll" => Op::Poll { on: self.slot()? },
            "post" => Op::Post(self.slot()?),
            "post-all" => Op::PostAll(self.slot()?),
            "wait" => Op::Wait(self.slot()?),
            "spin-wait" => Op::SpinWait(self.slot()?),
            "reset" => Op::Reset(self.slot()?),
            "send" => Op::Send { to: self.slot()?, value: self.reg()? },
            "receive" => Op::Receive { from: self.slot()?, into: self.reg()? },
            "wait-unlock" => Op::WaitUnlock { on: self.slot()?, mutex: self.slot()? },
            "lock" => Op::Lock(self.slot()?),
            "unlock" => Op::Unlock(self.slot()?),
            "push" => Op::Push(self.slot()?),
            "submit" => Op::Submit { to: self.slot()?, request: self.number("the number of a request")? },
            "queue" => Op::Queue(self.slot()?),
            "flush" => Op::Flush(self.slot()?),
            "touch" => Op::Touch(self.slot()?),
            "yield" => Op::Yield,
            "exit" => Op::Exit,
            "affinity" => Op::SetAffinity(self.slot()?),
            "nice" => Op::SetNice(self.number("a nice value")?),
            "group" => Op::SetGroup(self.group()?),
            "stamp" => Op::Stamp(self.reg()?),
            "store" => Op::Store { to: self.slot()?, from: self.reg()? },
            "load" => Op::Load { from: self.slot()?, to: self.reg()? },
            "sample" => Op::Sample { meter: self.meter()?, since: self.reg()? },
            "count" => Op::Count { meter: self.meter()?, by: self.number("how much")? },
            "count-cpu" => Op::CountCpu(self.meter()?),
            "spawn" => return self.tasks(ops, Op::Spawn),
            "join" => return self.tasks(ops, Op::Join),
            "take-all" => Op::TakeAll { list: self.slot()?, body: self.braces(depth)? },
            "repeat" => self.repeat(Some("how often"), depth)?,
            "forever" => self.repeat(None, depth)?,
            "until" => self.before(depth)?,
            "choose" => {
                let permille = self.number("thousandths")?;
                Op::Choose { permille, then: self.braces(depth)?, otherwise: self.otherwise(depth)? }
            }
            "if-ready" => {
                let on = self.slot()?;
                Op::IfReady { on, then: self.braces(depth)?, otherwise: self.otherwise(depth)? }
            }
            other => {
                let hint = did_you_mean(other, VERBS.iter().copied());
                return Err((offset, format!("unknown operation `{other}`{hint}")));
            }
        };
        ops.push(op);
        Ok(())
    }

    fn repeat(&mut self, count: Option<&str>, depth: usize) -> Parsed<Op> {
        let times = match count {
            Some(what) => Times::Count(self.number(what)?),
            None => Times::Forever,
        };
        self.rounds(times, depth)
    }

    fn before(&mut self, depth: usize) -> Parsed<Op> {
        let (offset, text) = self.word("a time")?;
        let end = parse_time(&text, 1).map_err(|message| (offset, message))?;
        self.rounds(Times::Before(end), depth)
    }

    fn rounds(&mut self, times: Times, depth: usize) -> Parsed<Op> {
        let counter = if self.keyword("as") { Some(self.reg()?) } else { None };
        Ok(Op::Repeat { times, counter, body: self.braces(depth)? })
    }

    fn dist(&mut self) -> Parsed<Dist> {
        let (offset, text) = self.word("a time or a distribution of times")?;
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err((offset, format!("expected a unit after `{text}`: ns, us, ms or s")));
        }
        parse_dist(&text, 1).map_err(|message| (offset, message))
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Parsed<T> {
        let (offset, text) = self.word(what)?;
        text.replace('_', "").parse().map_err(|_| (offset, format!("expected {what}, found `{text}`")))
    }

    fn reg(&mut self) -> Parsed<Reg> {
        let (offset, text) = self.word("a register, r0 to r7")?;
        register(&text).ok_or_else(|| (offset, format!("expected a register, r0 to r7, found `{text}`")))
    }

    fn slot(&mut self) -> Parsed<Slot> {
        let here = self.here();
        let quoted = matches!(self.peek(), Some(Token::Quoted(_)));
        let (_, text) = self.word("an object")?;
        let bad =
            || (here, format!("expected a link such as `@2`, `@2+r0`, `@2+cpu` or `item@2`, found `{text}`"));
        if !quoted && let Some(link) = text.strip_prefix("item@") {
            return link.parse().map(Slot::Item).map_err(|_| bad());
        }
        if !quoted && let Some(link) = text.strip_prefix('@') {
            let (base, by) = link.split_once('+').unwrap_or((link, ""));
            let base = base.parse().map_err(|_| bad())?;
            return match by {
                "" => Ok(Slot::Link(base)),
                "cpu" => Ok(Slot::ByCpu { base }),
                by => register(by).map(|by| Slot::Indexed { base, by }).ok_or_else(bad),
            };
        }
        let number = find("object", &self.names.objects, &text).map_err(|message| (here, message))?;
        Ok(Slot::Fixed(ObjectId(number)))
    }

    fn meter(&mut self) -> Parsed<MeterRef> {
        let (offset, text) = self.word("a meter")?;
        find("meter", &self.names.meters, &text).map(MeterRef).map_err(|message| (offset, message))
    }

    fn group(&mut self) -> Parsed<GroupRef> {
        let (offset, text) = self.word("a group")?;
        find("group", &self.names.groups, &text).map(GroupRef).map_err(|message| (offset, message))
    }

    /// One operation for each task that is meant.
    fn tasks(&mut self, ops: &mut Vec<Op>, op: fn(TaskRef) -> Op) -> Parsed<()> {
        if self.keyword("task") {
            ops.push(op(TaskRef(self.number("the number of a task")?)));
            return Ok(());
        }
        let (offset, name) = self.word("a task")?;
        let found = self.names.tasks_named(&name);
        if found.is_empty() {
            let hint = did_you_mean(&name, self.names.tasks.iter().map(String::as_str));
            return Err((offset, format!("no task is named `{name}`{hint}")));
        }
        ops.extend(found.into_iter().map(op));
        Ok(())
    }
}

fn register(text: &str) -> Option<Reg> {
    let number: u8 = text.strip_prefix('r')?.parse().ok()?;
    (usize::from(number) < Reg::COUNT).then_some(Reg(number))
}

pub(super) fn find(what: &str, names: &[String], name: &str) -> Result<u32, String> {
    names.iter().position(|known| known == name).map(|at| at as u32).ok_or_else(|| {
        format!("no {what} is named `{name}`{}", did_you_mean(name, names.iter().map(String::as_str)))
    })
}

/// Prints operations, one a line, or all on one line when `indent` is `None`.
pub(super) fn print(ops: &[Op], workload: &Workload, names: &Names, indent: Option<usize>) -> String {
    let mut out = String::new();
    Printer { workload, names }.body(ops, indent, &mut out);
    out
}

struct Printer<'a> {
    workload: &'a Workload,
    names: &'a Names,
}

impl Printer<'_> {
    fn body(&self, ops: &[Op], indent: Option<usize>, out: &mut String) {
        for (number, op) in ops.iter().enumerate() {
            match indent {
                Some(indent) => out.push_str(&" ".repeat(indent)),
                None if number > 0 => out.push_str("; "),
                None => {}
            }
            self.operation(op, indent, out);
            if indent.is_some() {
                out.push('\n');
            }
        }
    }

    fn braces(&self, ops: &[Op], indent: Option<usize>, out: &mut String) {
        out.push_str(if indent.is_some() { " {\n" } else { " { " });
        self.body(ops, indent.map(|indent| indent + 4), out);
        match indent {
            Some(indent) => out.push_str(&format!("{}}}", " ".repeat(indent))),
            None => out.push_str(" }"),
        }
    }

    fn operation(&self, op: &Op, indent: Option<usize>, out: &mut String) {
        let slot = |slot: &Slot| self.slot(slot);
        let meter = |meter: &MeterRef| name(&self.workload.meters[meter.0 as usize].name);
        let line = match op {
            Op::Run(dist) => format!("run {}", dist_text(dist)),
            Op::RunKernel(dist) => format!("run-kernel {}", dist_text(dist)),
            Op::Spin(dist) => format!("spin {}", dist_text(dist)),
            Op::Sleep(dist) => format!("sleep {}", dist_text(dist)),
            Op::Periodic { timer, period, rebase } => {
                let rebase = if *rebase { " rebase" } else { "" };
                format!("periodic r{} {}{rebase}", timer.0, dist_text(period))
            }
            Op::Write { to, bytes } => format!("write {} {bytes}", slot(to)),
            Op::Read { from, bytes } => format!("read {} {bytes}", slot(from)),
            Op::Poll { on } => format!("poll {}", slot(on)),
            Op::Post(to) => format!("post {}", slot(to)),
            Op::PostAll(to) => format!("post-all {}", slot(to)),
            Op::Wait(on) => format!("wait {}", slot(on)),
            Op::SpinWait(on) => format!("spin-wait {}", slot(on)),
            Op::Reset(what) => format!("reset {}", slot(what)),
            Op::Send { to, value } => format!("send {} r{}", slot(to), value.0),
            Op::Receive { from, into } => format!("receive {} r{}", slot(from), into.0),
            Op::WaitUnlock { on, mutex } => format!("wait-unlock {} {}", slot(on), slot(mutex)),
            Op::Lock(what) => format!("lock {}", slot(what)),
            Op::Unlock(what) => format!("unlock {}", slot(what)),
            Op::Push(list) => format!("push {}", slot(list)),
            Op::Submit { to, request } => format!("submit {} {request}", slot(to)),
            Op::Queue(work) => format!("queue {}", slot(work)),
            Op::Flush(work) => format!("flush {}", slot(work)),
            Op::Touch(data) => format!("touch {}", slot(data)),
            Op::Yield => "yield".to_owned(),
            Op::Spawn(task) => format!("spawn task {}", task.0),
            Op::Join(task) => format!("join task {}", task.0),
            Op::Exit => "exit".to_owned(),
            Op::SetAffinity(cpus) => format!("affinity {}", slot(cpus)),
            Op::SetNice(nice) => format!("nice {nice}"),
            Op::SetGroup(group) => format!("group {}", name(&self.workload.groups[group.0 as usize].name)),
            Op::Stamp(reg) => format!("stamp r{}", reg.0),
            Op::Store { to, from } => format!("store {} r{}", slot(to), from.0),
            Op::Load { from, to } => format!("load {} r{}", slot(from), to.0),
            Op::Sample { meter: of, since } => format!("sample {} r{}", meter(of), since.0),
            Op::Count { meter: of, by } => format!("count {} {by}", meter(of)),
            Op::CountCpu(of) => format!("count-cpu {}", meter(of)),
            Op::TakeAll { list, body } => {
                return self.block(&format!("take-all {}", slot(list)), body, indent, out);
            }
            Op::Repeat { times, counter, body } => {
                let times = match times {
                    Times::Count(count) => format!("repeat {count}"),
                    Times::Forever => "forever".to_owned(),
                    Times::Before(end) => format!("until {}", time_text(*end)),
                };
                let counter = counter.map_or_else(String::new, |reg| format!(" as r{}", reg.0));
                return self.block(&format!("{times}{counter}"), body, indent, out);
            }
            Op::Choose { permille, then, otherwise } => {
                return self.either(&format!("choose {permille}"), then, otherwise, indent, out);
            }
            Op::IfReady { on, then, otherwise } => {
                return self.either(&format!("if-ready {}", slot(on)), then, otherwise, indent, out);
            }
        };
        out.push_str(&line);
    }

    fn block(&self, head: &str, body: &[Op], indent: Option<usize>, out: &mut String) {
        out.push_str(head);
        self.braces(body, indent, out);
    }

    fn either(&self, head: &str, then: &[Op], otherwise: &[Op], indent: Option<usize>, out: &mut String) {
        self.block(head, then, indent, out);
        if !otherwise.is_empty() {
            self.block(" else", otherwise, indent, out);
        }
    }

    fn slot(&self, slot: &Slot) -> String {
        match slot {
            Slot::Fixed(object) => name(&self.names.objects[object.0 as usize]),
            Slot::Link(number) => format!("@{number}"),
            Slot::Indexed { base, by } => format!("@{base}+r{}", by.0),
            Slot::ByCpu { base } => format!("@{base}+cpu"),
            Slot::Item(number) => format!("item@{number}"),
        }
    }
}

/// A name, in quotes where it is no plain word.
pub(super) fn name(name: &str) -> String {
    let plain = !name.is_empty()
        && !name.starts_with(['@', '"'])
        && !name.starts_with("item@")
        && !matches!(name, "task" | "rebase" | "else" | "as")
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':'));
    if plain { name.to_owned() } else { format!("\"{name}\"") }
}
