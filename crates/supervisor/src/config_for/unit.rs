//! A unit file for systemd.

use super::{Values, absolute, fill};
use crate::layers::{Origin, Said};
use crate::options::Settings;
use crate::ruby::{LIB, RUBY};
use crate::sources::Sources;
use std::path::{Path, PathBuf};
use wire::settings::{self, Kind, Socket};

/// Where a service's own files are.
const RUN: &str = "/run";
/// What systemd does itself, and what stands at its place in the line.
const ELSEWHERE: &[&str] = &["daemonize", "user", "group", "chdir", "config", "control"];

/// The unit of a server with these settings, started in `directory`.
pub fn print(settings: &Settings, sources: &Sources, directory: &Path) -> Result<String, String> {
    let (program, environment) = program()?;
    let control = settings.process.control.as_ref();
    let control = control.map(|path| directory.join(path));
    let control = control.unwrap_or_else(|| PathBuf::from(RUN).join("oribi/control.sock"));
    let mut start = vec![text(&program), "--chdir".into(), text(directory)];
    start.extend(["--control".into(), text(&control)]);
    if let Some(file) = &sources.config {
        start.extend(["--config".into(), text(file)]);
    }
    start.extend(options(sources));
    start.extend(sources.line.mounts.iter().map(|mount| format!("--mount={mount}")));
    start.extend(sources.rackup.as_deref().map(text));
    let reload = [text(&program), "restart".into(), "--control".into(), text(&control)];
    let stop = settings.shutdown_timeout.as_secs() + 15;
    let values: Values = vec![
        ("name", "oribi".into()),
        ("directory", escaped(&text(directory))),
        ("identity", identity(settings, directory, &control, &environment)),
        ("start", line(&start)),
        ("reload", line(&reload)),
        ("stop", stop.to_string()),
    ];
    Ok(fill(include_str!("systemd.service"), &values))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The command as it can be started without a shell, and variables that it needs.
fn program() -> Result<(PathBuf, Vec<String>), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut installed = std::env::split_paths(&path).map(|folder| folder.join("oribi"));
    if let Some(found) = installed.find(|file| file.is_absolute() && file.is_file()) {
        return Ok((found, Vec::new()));
    }
    let binary = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let variables = [RUBY, LIB].map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)));
    Ok((binary, variables.into_iter().flatten().collect()))
}

/// What the command line says, and what the environment has said in its place.
fn options(sources: &Sources) -> Vec<String> {
    let said = Said(&sources.layers);
    let mut words = Vec::new();
    for setting in settings::all().filter(|setting| !ELSEWHERE.contains(&setting.name)) {
        for given in said.all(setting) {
            if matches!(given.origin, Origin::CommandLine | Origin::Variable(_)) {
                let flag = setting.flag();
                words.push(match setting.kind {
                    Kind::Flag => format!("--{flag}={}", given.text),
                    _ => format!("--{flag}"),
                });
                words.extend((setting.kind != Kind::Flag).then_some(given.text));
            }
        }
    }
    words
}

/// Whom it runs as, and what that user may have.
fn identity(
    settings: &Settings,
    directory: &Path,
    control: &Path,
    environment: &[String],
) -> String {
    let process = &settings.process;
    let mut lines = Vec::new();
    match &process.user {
        Some(user) => lines.push(format!("User={}", escaped(user))),
        None => {
            lines.push("# TO DO: name a user, or the application runs as root.\n# User=app".into())
        }
    }
    lines.extend(process.group.iter().map(|group| format!("Group={}", escaped(group))));
    let low = |socket: &Socket| matches!(socket, Socket::Tcp(_, port) if (1..1024).contains(port));
    if process.user.is_some() && settings.binds.iter().any(|bind| low(&bind.socket)) {
        lines.push("AmbientCapabilities=CAP_NET_BIND_SERVICE".into());
    }
    let sockets = settings.binds.iter().filter_map(|bind| match &bind.socket {
        Socket::Unix(path) => Some(absolute(directory, path)),
        Socket::Tcp(..) => None,
    });
    let pid = process.pid_file.as_ref().map(|path| directory.join(path));
    let mut folders: Vec<String> =
        sockets.chain(pid).chain([control.into()]).filter_map(|file| runtime(&file)).collect();
    folders.sort();
    folders.dedup();
    if !folders.is_empty() {
        lines.push(format!("RuntimeDirectory={}", line(&folders)));
    }
    lines.extend(environment.iter().map(|pair| format!("Environment={}", quoted(pair))));
    lines.join("\n")
}

/// The folder of a file in `/run` that systemd makes for the service.
fn runtime(file: &Path) -> Option<String> {
    let folder = file.parent()?.strip_prefix(RUN).ok()?;
    let name = folder.to_string_lossy();
    (!name.is_empty()).then(|| name.into_owned())
}

fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// As systemd reads words (systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers").
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._~+@,:=%-".contains(c);
    let word = escaped(word);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => {
            format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$"))
        }
    }
}

/// Percent signs name things of systemd's.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::{Layer, given};
    use crate::options::resolve;
    use crate::sources::Line;

    fn unit(said: &[(&'static str, &str)], rackup: Option<&str>) -> String {
        let layer: Layer = said
            .iter()
            .map(|(name, value)| (*name, given([(*value).into()], &Origin::CommandLine)))
            .collect();
        let sources = Sources {
            layers: vec![layer],
            config: Some("/etc/oribi.rb".into()),
            rackup: rackup.map(Into::into),
            line: Line { mounts: vec!["/a=a.ru".into()], ..Line::default() },
            ..Sources::default()
        };
        let settings = resolve(&sources.layers, &[]).unwrap();
        print(&settings, &sources, Path::new("/srv/app/current")).unwrap()
    }

    #[test]
    fn what_was_said_is_said_again() {
        let text = unit(
            &[
                ("workers", "3"),
                ("user", "app"),
                ("bind", "unix:///run/app/a b"),
                ("oob_gc", "yes"),
            ],
            Some("my $app.ru"),
        );
        let start = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        let said = "--chdir /srv/app/current --control /run/oribi/control.sock --config \
                    /etc/oribi.rb --bind \"unix:///run/app/a b\" --workers 3 --oob-gc=yes \
                    --mount=/a=a.ru \"my $$app.ru\"";
        assert!(start.ends_with(said), "{start}");
        assert!(text.contains("\nUser=app\nRuntimeDirectory=app oribi\n"), "{text}");
        assert!(text.contains("\nTimeoutStopSec=45\n") && !text.contains("{{"), "{text}");
    }

    #[test]
    fn low_ports_need_a_capability_and_root_a_word() {
        assert!(unit(&[("port", "80"), ("user", "app")], None).contains("CAP_NET_BIND_SERVICE"));
        assert!(!unit(&[("port", "8080"), ("user", "app")], None).contains("CAP_"));
        assert!(unit(&[], None).contains("TO DO: name a user"));
    }

    #[test]
    fn words_as_systemd_reads_them() {
        assert_eq!(quoted("a-b/c"), "a-b/c");
        assert_eq!(quoted(r#"a "b" \ $c %d"#), r#""a \"b\" \\ $$c %%d""#);
        assert_eq!(quoted(""), "\"\"");
    }
}
