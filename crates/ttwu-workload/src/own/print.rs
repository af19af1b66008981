//! A workload as the text that reads back as it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Names, object, ops};
use crate::spec_toml::{quoted, quoted_key};
use crate::text::time_text;
use crate::{MeterKind, Start, TaskSpec, Until, Workload};

impl Workload {
    /// The workload as the TOML that [`Workload::from_toml`] reads; `table` is the name of the table that it stands in, empty for a
    /// file of its own. What it measures is kept, which benchmark it was is not.
    #[must_use]
    pub fn to_toml(&self, table: &str) -> String {
        let names = self.names();
        let mut out = String::new();
        let section = |name: &str| if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
        if !table.is_empty() {
            let _ = writeln!(out, "[{table}]");
        }
        let until = match self.until {
            Until::AllExit => "all exit".to_owned(),
            Until::Exit(task) => format!("exit task {}", task.0),
            Until::Time(ns) => time_text(ns),
        };
        let _ = writeln!(out, "name = {}\nuntil = {}", quoted(&self.name), quoted(&until));
        self.print_tables(&names, &section, &mut out);
        for (number, program) in self.programs.iter().enumerate() {
            if number == 0 {
                let _ = writeln!(out, "\n[{}]", section("programs"));
            }
            let text = ops::print(&program.ops, self, &names, Some(0));
            // A name that would end the string early cannot be: names have no quotes, see `names`.
            let _ = writeln!(out, "p{number} = '''\n{text}'''");
        }
        self.print_tasks(&names, &section("tasks"), &mut out);
        out
    }

    fn print_tables(&self, names: &Names, section: &impl Fn(&str) -> String, out: &mut String) {
        for (number, object) in self.objects.iter().enumerate() {
            if number == 0 {
                let _ = writeln!(out, "\n[{}]", section("objects"));
            }
            let kind = object::print(&object.kind, self, names);
            let _ = writeln!(out, "{} = {kind}", quoted_key(&names.objects[number]));
        }
        for (number, group) in self.groups.iter().enumerate() {
            if number == 0 {
                let _ = writeln!(out, "\n[{}]", section("groups"));
            }
            let parent = group.parent.map_or_else(String::new, |parent| {
                format!("parent = {}, ", quoted(&names.groups[parent.0 as usize]))
            });
            let _ = writeln!(
                out,
                "{} = {{ {parent}shares = {} }}",
                quoted_key(&names.groups[number]),
                group.shares
            );
        }
        for (number, meter) in self.meters.iter().enumerate() {
            if number == 0 {
                let _ = writeln!(out, "\n[{}]", section("meters"));
            }
            let kind = match meter.kind {
                MeterKind::Samples => "samples",
                MeterKind::Count => "count",
                MeterKind::Cpus => "cpus",
                MeterKind::Seconds => "seconds",
            };
            let _ = writeln!(out, "{} = \"{kind}\"", quoted_key(&names.meters[number]));
        }
    }

    /// Neighbours that differ in nothing are one entry.
    fn print_tasks(&self, names: &Names, section: &str, out: &mut String) {
        let mut number = 0;
        while number < self.tasks.len() {
            let task = &self.tasks[number];
            // A process of one's own is not printed; it is a task's own number, and so differs from task to task.
            let own = |number: usize| self.tasks[number].process == number as u32;
            let same = |other: usize| {
                let process =
                    if own(number) { own(other) } else { task.process == self.tasks[other].process };
                process && TaskSpec { process: task.process, ..self.tasks[other].clone() } == *task
            };
            let count = (number..self.tasks.len()).take_while(|other| same(*other)).count();
            let _ = writeln!(out, "\n[[{section}]]");
            let _ = writeln!(out, "name = {}\nprogram = \"p{}\"", quoted(&task.name), task.program);
            if count > 1 {
                let _ = writeln!(out, "count = {count}");
            }
            print_task(task, names, out);
            if !own(number) {
                let _ = writeln!(out, "process = {}", task.process);
            }
            number += count;
        }
    }

    /// Names for the text: as they are, made distinct where two are equal, without quotes.
    fn names(&self) -> Names {
        let distinct = |names: Vec<&str>| {
            let mut seen = BTreeSet::new();
            names
                .into_iter()
                .map(|name| {
                    let name = name.replace(['"', '\'', '\\', '\n', '\r'], "_");
                    let mut candidate = name.clone();
                    let mut number = 2;
                    while !seen.insert(candidate.clone()) {
                        candidate = format!("{name} ({number})");
                        number += 1;
                    }
                    candidate
                })
                .collect()
        };
        Names {
            objects: distinct(self.objects.iter().map(|object| object.name.as_str()).collect()),
            groups: distinct(self.groups.iter().map(|group| group.name.as_str()).collect()),
            meters: distinct(self.meters.iter().map(|meter| meter.name.as_str()).collect()),
            tasks: self.tasks.iter().map(|task| task.name.clone()).collect(),
        }
    }
}

fn print_task(task: &TaskSpec, names: &Names, out: &mut String) {
    if !task.links.is_empty() {
        let links: Vec<String> =
            task.links.iter().map(|link| quoted(&names.objects[link.0 as usize])).collect();
        let _ = writeln!(out, "links = [{}]", links.join(", "));
    }
    if task.nice != 0 {
        let _ = writeln!(out, "nice = {}", task.nice);
    }
    if task.idle_policy {
        let _ = writeln!(out, "policy = \"idle\"");
    }
    if task.batch_policy {
        let _ = writeln!(out, "policy = \"batch\"");
    }
    if let Some(slice) = task.slice_ns {
        let _ = writeln!(out, "slice = \"{}\"", time_text(slice));
    }
    if let Some(group) = task.group {
        let _ = writeln!(out, "group = {}", quoted(&names.groups[group.0 as usize]));
    }
    if let Some(allowed) = &task.allowed {
        let _ = writeln!(out, "cpus = \"{allowed}\"");
    }
    if task.kernel_thread {
        let _ = writeln!(out, "kernel_thread = true");
    }
    match task.start {
        Start::At(0) => {}
        Start::At(ns) => {
            let _ = writeln!(out, "start = \"{}\"", time_text(ns));
        }
        Start::Forked => {
            let _ = writeln!(out, "start = \"forked\"");
        }
    }
    if task.working_set_bytes > 0 {
        let _ = writeln!(out, "working_set = {}", task.working_set_bytes);
    }
}
