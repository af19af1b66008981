//! Words into arms.

use super::{Arm, Cell, KeptArm, SimulatedArm};
use crate::Setup;
use std::fmt::Write;
use std::path::Path;
use ttwu_fair::{FEATURES, Kernel, Policy, TUNABLES, VARIANTS};
use ttwu_model::{MACHINES, Machine};
use ttwu_sim::{COSTS, PRESETS, Scenario, Surroundings};
use ttwu_workload::spec_toml::quoted;
use ttwu_workload::{expand, nearest_name, workloads};

/// What holds for all arms unless an arm says otherwise, in the command's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// A policy.
    pub policy: String,
    /// A machine: a name, `host`, or a topology file.
    pub machine: String,
    /// A workload, or several by a range.
    pub workload: String,
    /// A cost preset or a cost file; `None`: the machine family's.
    pub costs: Option<String>,
    /// Changes, as `key=value`.
    pub sets: Vec<String>,
}

/// Why words are no arms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArmError {
    /// No name is known, and no file is called so.
    #[error("`{word}` is no kernel, machine, workload or file{hint}")]
    Unknown {
        /// As given.
        word: String,
        /// The nearest known name, as the end of a sentence.
        hint: String,
    },
    /// A change of nothing.
    #[error(
        "`{word}` changes what stands before it, and nothing does; name a policy, machine or workload first"
    )]
    NothingToChange {
        /// As given.
        word: String,
    },
    /// A change of a file.
    #[error("`{word}` cannot change {before}, which was measured before")]
    Measured {
        /// As given.
        word: String,
        /// The arm.
        before: String,
    },
    /// No setting of that name.
    #[error("unknown setting `{key}`{hint}")]
    UnknownKey {
        /// As given.
        key: String,
        /// The nearest known name, as the end of a sentence.
        hint: String,
    },
    /// The parts do not make a scenario.
    #[error("{arm}: {why}")]
    Scenario {
        /// The arm.
        arm: String,
        /// What is wrong.
        why: String,
    },
    /// A file without a result.
    #[error("{word} has no result to compare: {why}")]
    NoResult {
        /// As given.
        word: String,
        /// What it has instead.
        why: String,
    },
    /// Fewer than two arms.
    #[error("expected two arms or more, or one with a change; found {found}")]
    TooFew {
        /// How many.
        found: usize,
    },
}

/// Settings of a scenario file, beside costs and a policy's own.
const SETTINGS: [&str; 13] = [
    "governor",
    "deepest_idle",
    "idle_history",
    "polling",
    "preemption",
    "frequency",
    "noise",
    "wait_queue_lock",
    "memory",
    "tick_skew",
    "cpus",
    "starved",
    "duration",
];

/// An arm while its words come in.
#[derive(Clone, Debug)]
struct Draft {
    words: Vec<String>,
    /// Words after the first, which a lone arm is compared without.
    changed: bool,
    policy: String,
    machine: String,
    workload: String,
    costs: Option<String>,
    sets: Vec<(String, String)>,
    file: Option<String>,
}

/// Reads the arguments of a comparison.
///
/// # Errors
/// Unknown names, with the nearest known; parts that do not fit together; files without a result; fewer than two arms.
pub fn parse_arms(
    arguments: &[String],
    defaults: &Defaults,
    surroundings: &dyn Surroundings,
) -> Result<Vec<Arm>, ArmError> {
    let plain = plain_draft(defaults)?;
    let mut drafts: Vec<Draft> = Vec::new();
    for argument in arguments {
        let words: Vec<&str> = match argument.contains('&') || Path::new(argument).exists() {
            true => vec![argument.as_str()],
            false => argument.split_whitespace().collect(),
        };
        for (number, word) in words.into_iter().enumerate() {
            let kind = classify(word)?;
            if number == 0 && !kind.is_change() {
                drafts.push(plain.clone());
            }
            let Some(draft) = drafts.last_mut() else {
                return Err(ArmError::NothingToChange { word: word.to_owned() });
            };
            draft.add(word, kind)?;
        }
    }
    if let [lone] = drafts.as_slice()
        && lone.changed
    {
        let first = &lone.words[0];
        let mut before = plain;
        before.add(first, classify(first)?)?;
        drafts.insert(0, before);
    }
    if drafts.len() < 2 {
        return Err(ArmError::TooFew { found: drafts.len() });
    }
    let mut arms = drafts.iter().map(|draft| draft.build(surroundings)).collect::<Result<Vec<_>, _>>()?;
    for index in 1..arms.len() {
        let same = arms[..index].iter().filter(|arm| arm.label() == arms[index].label()).count();
        if same > 0 {
            let _ = write!(arms[index].label_mut(), " (again)");
        }
    }
    Ok(arms)
}

/// The arm that `words` make of the defaults, such as a cell of a sweep.
///
/// # Errors
/// As [`parse_arms`].
pub fn set_words(
    words: &[&str],
    defaults: &Defaults,
    surroundings: &dyn Surroundings,
) -> Result<Arm, ArmError> {
    let mut draft = plain_draft(defaults)?;
    for word in words {
        draft.add(word, classify(word)?)?;
    }
    if draft.words.is_empty() {
        draft.words.push(draft.policy.clone());
    }
    draft.build(surroundings)
}

fn plain_draft(defaults: &Defaults) -> Result<Draft, ArmError> {
    let mut plain = Draft {
        words: Vec::new(),
        changed: false,
        policy: defaults.policy.clone(),
        machine: defaults.machine.clone(),
        workload: defaults.workload.clone(),
        costs: defaults.costs.clone(),
        sets: Vec::new(),
        file: None,
    };
    for set in &defaults.sets {
        match classify(set)? {
            Word::Policy => plain.policy = format!("{} {set}", plain.policy),
            Word::Set => plain.set(set),
            Word::Kernel | Word::Machine | Word::Workload | Word::File => {
                return Err(ArmError::UnknownKey {
                    key: set.clone(),
                    hint: "; expected key=value".to_owned(),
                });
            }
        }
    }
    Ok(plain)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Kernel,
    Machine,
    Workload,
    File,
    /// A change of the policy.
    Policy,
    /// A change of costs or settings.
    Set,
}

impl Word {
    const fn is_change(self) -> bool {
        match self {
            Self::Policy | Self::Set => true,
            Self::Kernel | Self::Machine | Self::Workload | Self::File => false,
        }
    }
}

fn classify(word: &str) -> Result<Word, ArmError> {
    let bare = word.strip_prefix("NO_").unwrap_or(word);
    if word.starts_with(['+', '-']) || FEATURES.iter().any(|row| row.name == bare) {
        return Ok(Word::Policy);
    }
    let workload = |word: &str| {
        let name = word.split(':').next().unwrap_or(word).trim();
        workloads().iter().any(|known| known.name == name)
    };
    if Kernel::from_name(word).is_some() {
        return Ok(Word::Kernel);
    }
    if word == "host" || Machine::find(word).is_some() {
        return Ok(Word::Machine);
    }
    if workload(word) {
        return Ok(Word::Workload);
    }
    let file = word.rsplit_once('@').map_or(word, |(file, _)| file);
    if Path::new(word).exists() || Path::new(file).exists() {
        return Ok(Word::File);
    }
    let policy = TUNABLES.iter().map(|row| row.name).chain(VARIANTS.iter().map(|row| row.name));
    if let Some((key, _)) = word.split_once('=').filter(|(key, _)| !key.contains(':')) {
        if policy.clone().any(|name| name == key) {
            return Ok(Word::Policy);
        }
        let sets = SETTINGS.into_iter().chain(COSTS.iter().map(|row| row.name)).chain(["costs"]);
        if sets.clone().any(|name| name == key) {
            return Ok(Word::Set);
        }
        return Err(ArmError::UnknownKey {
            key: key.to_owned(),
            hint: nearest_name(key, policy.chain(sets)),
        });
    }
    let names = Kernel::ALL.into_iter().map(Kernel::name);
    let names = names.chain(MACHINES.iter().map(|machine| machine.name));
    let names = names.chain(workloads().into_iter().map(|workload| workload.name));
    let name = word.split(':').next().unwrap_or(word);
    // Of versions the nearest is the generation before them, not the name with the fewest other letters.
    let hint = match Kernel::before_release(name).filter(|_| name.starts_with("linux-")) {
        Some(kernel) => format!("; did you mean `{kernel}`?"),
        None => nearest_name(name, names),
    };
    Err(ArmError::Unknown { word: word.to_owned(), hint })
}

impl Draft {
    fn add(&mut self, word: &str, kind: Word) -> Result<(), ArmError> {
        if let Some(file) = &self.file {
            return Err(ArmError::Measured { word: word.to_owned(), before: file.clone() });
        }
        self.changed |= !self.words.is_empty();
        self.words.push(word.to_owned());
        match kind {
            Word::Kernel => self.policy = word.to_owned(),
            Word::Machine => self.machine = word.to_owned(),
            Word::Workload => self.workload = word.to_owned(),
            Word::File => self.file = Some(word.to_owned()),
            Word::Policy => self.policy = format!("{} {word}", self.policy),
            Word::Set => self.set(word),
        }
        Ok(())
    }

    fn set(&mut self, word: &str) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if key == "costs" {
            self.costs = Some(value.to_owned());
            return;
        }
        self.sets.retain(|(known, _)| known != key);
        self.sets.push((key.to_owned(), value.to_owned()));
    }

    fn label(&self) -> String {
        self.words.join(" ")
    }

    fn fail(&self, why: &dyn ToString) -> ArmError {
        ArmError::Scenario { arm: self.label(), why: why.to_string() }
    }

    fn build(&self, surroundings: &dyn Surroundings) -> Result<Arm, ArmError> {
        if let Some(file) = &self.file {
            return KeptArm::open(file).map(Arm::Kept);
        }
        Policy::parse(&self.policy).map_err(|error| self.fail(&error))?;
        let names = expand(&self.workload).map_err(|error| self.fail(&error))?;
        let cells = names.iter().map(|workload| {
            let text = self.toml(workload, surroundings)?;
            let scenario = Scenario::parse(&text, surroundings).map_err(|error| self.fail(&error.message))?;
            Ok(Cell { name: told_apart(workload, &names), setup: Setup::new(self.machine.clone(), scenario) })
        });
        let cells = cells.collect::<Result<Vec<_>, ArmError>>()?;
        Ok(Arm::Simulated(SimulatedArm { label: self.label(), cells }))
    }

    /// The scenario as a file: one grammar and one set of messages for files and command lines.
    fn toml(&self, workload: &str, surroundings: &dyn Surroundings) -> Result<String, ArmError> {
        let named = self.machine == "host" || Machine::find(&self.machine).is_some();
        let machine = match named {
            true => quoted(&self.machine),
            false if Path::new(&self.machine).is_file() => format!("{{ file = {} }}", quoted(&self.machine)),
            false => {
                let hint = nearest_name(&self.machine, MACHINES.iter().map(|machine| machine.name));
                return Err(self.fail(&format!("no machine and no file is called `{}`{hint}", self.machine)));
            }
        };
        let mut text = format!(
            "machine = {machine}\npolicy = {}\nworkload = {}\n",
            quoted(&self.policy),
            quoted(workload)
        );
        let is_cost = |key: &str| COSTS.iter().any(|row| row.name == key);
        let lines = |wanted: &dyn Fn(&str) -> bool| {
            let wanted = self.sets.iter().filter(|(key, _)| wanted(key));
            wanted.map(|(key, value)| format!("{key} = {}\n", toml_value(value))).collect::<String>()
        };
        text.push_str(&lines(&|key| key == "duration"));
        text.push_str("[costs]\n");
        match &self.costs {
            Some(name) if PRESETS.iter().any(|preset| preset.name == name) => {
                let _ = writeln!(text, "preset = {}", quoted(name));
            }
            Some(name) if !Path::new(name).exists() => {
                let hint = nearest_name(name, PRESETS.iter().map(|preset| preset.name));
                return Err(self.fail(&format!("no cost preset and no file is called `{name}`{hint}")));
            }
            Some(path) => text.push_str(&surroundings.file(path).map_err(|error| self.fail(&error))?),
            // Nobody has measured this machine: the costs of the rows themselves.
            None if Machine::find(&self.machine).is_none() => text.push_str("preset = \"skylake-server\"\n"),
            None => {}
        }
        text.push_str(&lines(&is_cost));
        text.push_str("[settings]\n");
        text.push_str(&lines(&|key| key != "duration" && !is_cost(key)));
        Ok(text)
    }
}

/// A value of a command line as TOML: numbers, truth values and tables as they are, anything else is a string.
fn toml_value(value: &str) -> String {
    let is_number = value.replace('_', "").parse::<i64>().is_ok();
    match value {
        "on" => "true".to_owned(),
        "off" => "false".to_owned(),
        "true" | "false" => value.to_owned(),
        _ if is_number || value.starts_with('{') => value.to_owned(),
        _ => quoted(value),
    }
}

/// The items of a workload's name that not all the others have.
fn told_apart(name: &str, all: &[String]) -> String {
    let items = |name: &str| -> Vec<String> {
        name.split([':', ',', '&']).map(|item| item.trim().to_owned()).collect()
    };
    let lists: Vec<Vec<String>> = all.iter().map(|name| items(name)).collect();
    let own = items(name).into_iter().filter(|item| !lists.iter().all(|list| list.contains(item)));
    own.collect::<Vec<_>>().join(",")
}
