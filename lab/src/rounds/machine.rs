//! Facts about the machine: what figures depend on besides the server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::process::{Resource, getrlimit};

use crate::results::Machine;

/// Settings of the kernel, below /proc/sys.
const SYSCTLS: &[&str] = &[
    "fs.file-max",
    "kernel.randomize_va_space",
    "net.core.netdev_max_backlog",
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "vm.overcommit_memory",
    "vm.swappiness",
];

/// Settings of the hardware, below /sys.
const DEVICES: &[(&str, &str)] = &[
    ("governor", "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("frequency driver", "devices/system/cpu/cpu0/cpufreq/scaling_driver"),
    ("no_turbo", "devices/system/cpu/intel_pstate/no_turbo"),
    ("boost", "devices/system/cpu/cpufreq/boost"),
    ("smt", "devices/system/cpu/smt/control"),
    ("clocksource", "devices/system/clocksource/clocksource0/current_clocksource"),
    ("transparent hugepages", "kernel/mm/transparent_hugepage/enabled"),
];

/// All of them, now. What this machine does not say stays empty.
pub fn facts() -> Machine {
    let memory = line("/proc/meminfo", "MemTotal:").unwrap_or_default();
    let kilobytes: u64 = memory.trim_end_matches("kB").trim().parse().unwrap_or(0);
    let mut machine = Machine {
        identity: String::new(),
        cpu: line("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
        cores: thread::available_parallelism().map_or(0, usize::from),
        memory_mb: kilobytes * 1024 / 1_000_000,
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        system: line("/etc/os-release", "PRETTY_NAME").unwrap_or_default(),
        ruby: ruby(),
        settings: settings(),
        load: load(),
    };
    machine.identity = identity(&machine);
    machine
}

/// A digest of what makes figures comparable, as 16 digits.
fn identity(machine: &Machine) -> String {
    let gibibytes = (machine.memory_mb as f64 * 1e6 / f64::from(1 << 30)).round();
    let (cpu, cores) = (&machine.cpu, machine.cores);
    let text = format!("{cpu}\n{cores}\n{gibibytes}\n{}\n{}", machine.kernel, machine.ruby);
    // FNV-1a: the same in every version of the lab, which the standard library's is not.
    let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{digest:016x}")
}

fn settings() -> BTreeMap<String, String> {
    let sysctls = SYSCTLS
        .iter()
        .map(|name| ((*name).to_owned(), read(format!("/proc/sys/{}", name.replace('.', "/")))));
    let devices = DEVICES.iter().map(|(name, path)| {
        ((*name).to_owned(), read(format!("/sys/{path}")).map(|text| chosen(&text)))
    });
    let files = getrlimit(Resource::Nofile);
    let limit = |value: Option<u64>| value.map_or("unlimited".into(), |value| value.to_string());
    let own = [
        ("RLIMIT_NOFILE", Some(format!("{} of {}", limit(files.current), limit(files.maximum)))),
        ("mitigations", mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities"))),
        (
            "hypervisor",
            line("/proc/cpuinfo", "flags").map(|flags| {
                if flags.split(' ').any(|flag| flag == "hypervisor") { "yes" } else { "no" }.into()
            }),
        ),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    let all = sysctls.chain(devices).chain(own);
    all.filter_map(|(name, value)| Some((name, value?))).collect()
}

/// `always [madvise] never` says which one is on.
fn chosen(text: &str) -> String {
    let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(text, |(word, _)| word).to_owned()
}

/// `mitigated: spectre_v1, …; vulnerable: …`; what does not affect this CPU is not named.
fn mitigations(folder: &Path) -> Option<String> {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let text = read(entry.path()).unwrap_or_default().to_lowercase();
        let group = match text.split([':', ';', ' ']).next() {
            Some("mitigation") => "mitigated",
            Some("vulnerable") => "vulnerable",
            Some("not") => continue,
            _ => "unknown",
        };
        groups.entry(group).or_default().push(entry.file_name().to_string_lossy().into_owned());
    }
    groups.values_mut().for_each(|names| names.sort());
    let texts = groups.iter().map(|(group, names)| format!("{group}: {}", names.join(", ")));
    let text = texts.collect::<Vec<_>>().join("; ");
    Some(if text.is_empty() { "not affected".into() } else { text })
}

fn ruby() -> String {
    let program = ["--disable-gems", "-e", "print RUBY_DESCRIPTION"];
    let said = Command::new("ruby").args(program).env_remove("RUBYOPT").output();
    said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default()
}

fn load() -> f64 {
    let text = read("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// What stands behind `NAME:` or `NAME=` in a file.
fn line(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let found = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(found.trim_start_matches([':', '=', ' ', '\t']).trim().trim_matches('"').to_owned())
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_this_machine_is() {
        let machine = facts();
        assert!(machine.cores > 0 && machine.memory_mb > 100, "{machine:?}");
        assert!(!machine.kernel.is_empty() && !machine.kernel.contains('\n'), "{machine:?}");
        assert!(machine.ruby.starts_with("ruby "), "{machine:?}");
        assert!(machine.settings.contains_key("net.core.somaxconn"), "{machine:?}");
        assert!(machine.settings["RLIMIT_NOFILE"].contains(" of "), "{machine:?}");
    }

    #[test]
    fn the_identity_depends_on_the_machine_and_not_on_its_mood() {
        let machine = Machine { cpu: "X".into(), cores: 2, memory_mb: 4000, ..Machine::default() };
        let same = Machine { load: 3.0, memory_mb: 4010, ..machine.clone() };
        let other = Machine { cores: 4, ..machine.clone() };
        let ruby = Machine { ruby: "ruby 9".into(), ..machine.clone() };
        assert_eq!(identity(&machine), identity(&same));
        assert_ne!(identity(&machine), identity(&other));
        assert_ne!(identity(&machine), identity(&ruby));
        // Runs are compared over years: the digest must not change with the lab.
        assert_eq!(identity(&Machine::default()), "761d67d100e52bc5");
    }

    #[test]
    fn condenses_the_mitigations() {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        assert_eq!(mitigations(folder.path()).as_deref(), Some("not affected"));
        write("meltdown", "Not affected\n");
        write("spectre_v2", "Mitigation: Enhanced IBRS; IBPB: conditional\n");
        write("spectre_v1", "Mitigation: usercopy\n");
        write("mds", "Vulnerable: no microcode\n");
        let text = mitigations(folder.path());
        assert_eq!(text.as_deref(), Some("mitigated: spectre_v1, spectre_v2; vulnerable: mds"));
        assert_eq!(mitigations(&folder.path().join("none")), None);
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("performance"), "performance");
    }
}
