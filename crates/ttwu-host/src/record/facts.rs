//! What the machine says about its scheduler: kernel, features, tunables, preemption, idle states, clock, virtualisation.
//!
//! Stored in every recording, because none of it can be asked once the machine is gone, and any of it can explain a
//! difference between two recordings. Values stand in the kernel's own words. What may not be read says so and what it
//! would take, so that "off" and "unknown" cannot be confused.

use crate::sys;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Facts by name, ordered.
pub(crate) type Facts = BTreeMap<String, String>;

/// Every fact that can be had without rights that recording does not need anyway.
pub(crate) fn gather() -> Facts {
    let mut facts = Facts::new();
    kernel(&mut facts);
    scheduler(&mut facts);
    sysctls(&mut facts);
    cpus(&mut facts);
    platform(&mut facts);
    facts
}

fn put(facts: &mut Facts, name: &str, value: impl Into<String>) {
    facts.insert(name.to_owned(), value.into());
}

/// A file's trimmed content as a fact; nothing where there is no such file, the obstacle where it may not be read.
fn put_file(facts: &mut Facts, name: &str, path: &Path, needs: &str) {
    match fs::read_to_string(path) {
        Ok(text) => put(facts, name, text.trim()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => put(facts, name, format!("not readable: {error}; needs {needs}")),
    }
}

/// The kernel and how it was built and booted.
fn kernel(facts: &mut Facts) {
    let uname = sys::uname();
    put(facts, "kernel.version", &*uname.version);
    put_file(facts, "kernel.cmdline", Path::new("/proc/cmdline"), "/proc");
    let config = kernel_config(&uname.release);
    match &config {
        Some(config) => {
            if let Some(hz) = option(config, "CONFIG_HZ") {
                put(facts, "kernel.hz", hz);
            }
            let options = CONFIG_OPTIONS
                .iter()
                .map(|name| format!("{name}={}", option(config, name).unwrap_or("n")))
                .collect::<Vec<_>>();
            put(facts, "kernel.config", options.join(" "));
        }
        None => put(
            facts,
            "kernel.config",
            "not readable: needs CONFIG_IKCONFIG_PROC (/proc/config.gz) or a readable /boot/config-*",
        ),
    }
    preemption(facts, &uname.version, config.as_deref());
}

/// Options that decide what the scheduler can do.
const CONFIG_OPTIONS: [&str; 16] = [
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_LAZY",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_SCHED_SMT",
    "CONFIG_SCHED_CLUSTER",
    "CONFIG_SCHED_MC",
    "CONFIG_SCHED_CORE",
    "CONFIG_SCHED_CLASS_EXT",
    "CONFIG_SCHED_AUTOGROUP",
    "CONFIG_SCHEDSTATS",
    "CONFIG_FAIR_GROUP_SCHED",
    "CONFIG_NUMA_BALANCING",
    "CONFIG_NO_HZ_FULL",
];

/// The running kernel's configuration text.
fn kernel_config(release: &str) -> Option<String> {
    if let Ok(packed) = fs::read("/proc/config.gz") {
        let mut text = String::new();
        // A kernel's configuration is a few hundred kilobytes.
        if flate2::read::GzDecoder::new(&packed[..]).take(16 << 20).read_to_string(&mut text).is_ok() {
            return Some(text);
        }
    }
    [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok())
}

/// The value of a configuration option that is set.
fn option<'a>(config: &'a str, name: &str) -> Option<&'a str> {
    config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// The preemption model that is in force, from the best source there is.
fn preemption(facts: &mut Facts, version: &str, config: Option<&str>) {
    let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let live = debug_file("sched/preempt").ok();
    let (model, source) = preemption_of(live.as_deref(), &cmdline, config, version);
    put(facts, "kernel.preempt", model);
    put(facts, "kernel.preempt_source", source);
}

/// Pure part of [`preemption`]: the model, and where it is from.
fn preemption_of(
    live: Option<&str>,
    cmdline: &str,
    config: Option<&str>,
    version: &str,
) -> (String, &'static str) {
    // `none voluntary (full) lazy`: the one in parentheses is in force.
    if let Some(model) = live.and_then(|text| text.split_once('(')?.1.split_once(')')) {
        return (model.0.to_owned(), "/sys/kernel/debug/sched/preempt");
    }
    let option_on = |name: &str| config.is_some_and(|config| option(config, name) == Some("y"));
    if option_on("CONFIG_PREEMPT_RT") || version.contains("PREEMPT_RT") {
        return ("rt".to_owned(), "kernel version");
    }
    let boot = cmdline.split_ascii_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back();
    if let Some(model) = boot
        && (option_on("CONFIG_PREEMPT_DYNAMIC") || version.contains("PREEMPT_DYNAMIC"))
    {
        return (model.to_owned(), "boot command line");
    }
    for (name, model) in [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
    ] {
        if option_on(name) {
            return (model.to_owned(), "kernel configuration, may have been changed since boot");
        }
    }
    match config {
        Some(_) => ("none".to_owned(), "kernel configuration"),
        None => ("unknown".to_owned(), "neither debugfs nor the kernel's configuration is readable"),
    }
}

/// Features and tunables under debugfs.
fn scheduler(facts: &mut Facts) {
    const NEEDS: &str = "root and a kernel without lockdown (debugfs sched/)";
    for name in [
        "features",
        "base_slice_ns",
        "min_base_slice_ns",
        "latency_ns",
        "min_granularity_ns",
        "wakeup_granularity_ns",
        "idle_min_granularity_ns",
        "migration_cost_ns",
        "nr_migrate",
        "tunable_scaling",
        "preempt",
        "numa_balancing/scan_delay_ms",
    ] {
        match debug_file(&format!("sched/{name}")) {
            Ok(text) => put(facts, &format!("sched.{name}"), text.trim()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Which tunables exist depends on the kernel; without access only the features are known to.
            Err(error) if name == "features" || !is_refusal(&error) => {
                put(facts, &format!("sched.{name}"), format!("not readable: {error}; needs {NEEDS}"));
            }
            Err(_) => {}
        }
    }
    put_file(facts, "sched_ext.state", Path::new("/sys/kernel/sched_ext/state"), "root");
    put_file(facts, "sched_ext.ops", Path::new("/sys/kernel/sched_ext/root/ops"), "root");
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

/// A file of debugfs, where that is mounted, else through a private mount.
fn debug_file(name: &str) -> io::Result<String> {
    let mounted = Path::new("/sys/kernel/debug").join(name);
    match fs::read_to_string(mounted) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    let root: OwnedFd = sys::detached_mount(c"debugfs")?;
    fs::read_to_string(PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd())).join(name))
}

/// Sysctls that bear on placement and preemption.
fn sysctls(facts: &mut Facts) {
    for name in [
        "sched_autogroup_enabled",
        "sched_child_runs_first",
        "sched_schedstats",
        "sched_rt_runtime_us",
        "sched_rt_period_us",
        "sched_cfs_bandwidth_slice_us",
        "sched_util_clamp_min",
        "sched_energy_aware",
        "sched_latency_ns",
        "sched_min_granularity_ns",
        "sched_wakeup_granularity_ns",
        "sched_migration_cost_ns",
        "numa_balancing",
        "timer_migration",
        "nmi_watchdog",
    ] {
        put_file(facts, &format!("sysctl.{name}"), &Path::new("/proc/sys/kernel").join(name), "root");
    }
}

/// Idle states, frequency, SMT, isolation.
fn cpus(facts: &mut Facts) {
    let cpu = Path::new("/sys/devices/system/cpu");
    for (name, file) in [
        ("cpu.online", "online"),
        ("cpu.possible", "possible"),
        ("cpu.isolated", "isolated"),
        ("cpu.nohz_full", "nohz_full"),
        ("cpu.smt_control", "smt/control"),
        ("cpu.smt_active", "smt/active"),
        ("cpuidle.driver", "cpuidle/current_driver"),
        ("cpuidle.governor", "cpuidle/current_governor"),
    ] {
        put_file(facts, name, &cpu.join(file), "/sys");
    }
    per_cpu(facts, cpu, "cpuidle.states", idle_states);
    per_cpu(facts, cpu, "cpufreq", |directory| {
        let field = |name: &str| line(&directory.join("cpufreq").join(name));
        let governor = field("scaling_governor")?;
        Some(format!(
            "{} {governor} {}-{} kHz",
            field("scaling_driver").unwrap_or_default(),
            field("scaling_min_freq").unwrap_or_default(),
            field("scaling_max_freq").unwrap_or_default()
        ))
    });
    let boost = [cpu.join("cpufreq/boost"), cpu.join("intel_pstate/no_turbo")];
    put_file(facts, "cpufreq.boost", &boost[0], "/sys");
    put_file(facts, "cpufreq.no_turbo", &boost[1], "/sys");
    let clock = Path::new("/sys/devices/system/clocksource/clocksource0");
    put_file(facts, "clock.source", &clock.join("current_clocksource"), "/sys");
}

/// A value of each CPU, with equal ones told once: `0-3: value; 4-7: other`.
fn per_cpu(facts: &mut Facts, root: &Path, name: &str, value: impl Fn(&Path) -> Option<String>) {
    let mut by_value: BTreeMap<String, ttwu_model::CpuSet> = BTreeMap::new();
    for cpu in super::machine::online_cpus() {
        if let Some(value) = value(&root.join(format!("cpu{cpu}"))) {
            by_value.entry(value).or_default().insert(ttwu_model::CpuId::new(cpu));
        }
    }
    if !by_value.is_empty() {
        let texts: Vec<String> = by_value.iter().map(|(value, cpus)| format!("{cpus}: {value}")).collect();
        put(facts, name, texts.join("; "));
    }
}

/// `POLL 0/0 us, C1 2/2 us (off)`: exit latency and target residency of each state in index order.
fn idle_states(cpu: &Path) -> Option<String> {
    let mut states = Vec::new();
    // Ten is the kernel's own limit.
    for index in 0..10 {
        let directory = cpu.join(format!("cpuidle/state{index}"));
        let Some(name) = line(&directory.join("name")) else { break };
        let number = |file: &str| line(&directory.join(file)).unwrap_or_else(|| "?".to_owned());
        let off = if number("disable") == "1" { " (off)" } else { "" };
        states.push(format!("{name} {}/{} us{off}", number("latency"), number("residency")));
    }
    (!states.is_empty()).then(|| states.join(", "))
}

fn line(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Processor model, and what lies below the kernel.
fn platform(facts: &mut Facts) {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |names: &[&str]| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            names.contains(&name.trim()).then(|| value.trim().to_owned())
        })
    };
    if let Some(model) = field(&["model name", "Model", "CPU part", "cpu"]) {
        put(facts, "cpu.model", model);
    }
    let in_vm = field(&["flags"]).is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let mut hints = Vec::new();
    if let Some(kind) = line(Path::new("/sys/hypervisor/type")) {
        hints.push(kind);
    }
    if in_vm {
        hints.push("cpuinfo says hypervisor".to_owned());
    }
    for file in ["sys_vendor", "product_name"] {
        hints.extend(line(&Path::new("/sys/class/dmi/id").join(file)).filter(|text| !text.is_empty()));
    }
    if !hints.is_empty() {
        put(facts, "platform.virtualisation", hints.join(", "));
    }
    if let Some(container) = super::error::container_hint() {
        put(facts, "platform.container", container);
    }
    put_file(facts, "platform.load", Path::new("/proc/loadavg"), "/proc");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preemption_model_comes_from_the_best_source() {
        let check = |live, cmdline, config, version, expect: (&str, &str)| {
            let found = preemption_of(live, cmdline, config, version);
            assert_eq!((&*found.0, found.1), expect, "{live:?} {cmdline:?} {config:?} {version:?}");
        };
        let dynamic = "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
        check(
            Some("none voluntary (lazy)\n"),
            "preempt=full",
            None,
            "",
            ("lazy", "/sys/kernel/debug/sched/preempt"),
        );
        check(None, "quiet preempt=full", Some(dynamic), "", ("full", "boot command line"));
        let changed = "kernel configuration, may have been changed since boot";
        check(None, "quiet", Some(dynamic), "", ("none", changed));
        check(None, "preempt=full", Some("CONFIG_PREEMPT_NONE=y\n"), "", ("none", changed));
        check(None, "", Some("CONFIG_PREEMPT=y\n"), "#1 SMP PREEMPT_RT", ("rt", "kernel version"));
        check(
            None,
            "",
            None,
            "#1 SMP",
            ("unknown", "neither debugfs nor the kernel's configuration is readable"),
        );
    }

    #[test]
    fn facts_are_there_or_say_why_not() {
        let facts = gather();
        for name in ["kernel.version", "kernel.cmdline", "kernel.config", "kernel.preempt", "cpu.online"] {
            assert!(facts.get(name).is_some_and(|text| !text.is_empty()), "no fact {name} in {facts:#?}");
        }
    }
}
