//! `oribi config nginx` and its like: working configurations of what lies in front of the server or
//! starts it, for the settings as they are. The texts are the files beside this one's folder; the
//! examples are printed from them, too.

mod unit;
mod web;

use crate::answer::print;
use crate::place::Place;
use crate::sources::Sources;
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Names and values of the words in braces.
type Values = Vec<(&'static str, String)>;

const LISTEN: &str = "listen";

/// The commands, for clap; each takes the options that the server takes.
pub fn subcommands(options: impl Fn() -> Vec<Arg>) -> Vec<Command> {
    let server = |name, title: &str| {
        let listen = Arg::new(LISTEN)
            .long(LISTEN)
            .value_name("ADDRESS")
            .default_value("127.0.0.1:8080")
            .help("Where the web server listens: HOST:PORT, or a port of all interfaces")
            .help_heading("What to print");
        Command::new(name)
            .about(format!("Print a configuration for {title} in front of this server"))
            .arg(listen)
            .args(options())
    };
    vec![
        server("nginx", "nginx"),
        server("lighttpd", "lighttpd"),
        server("apache", "Apache"),
        server("caddy", "Caddy"),
        Command::new("systemd")
            .about("Print a unit file that starts the server with these settings")
            .args(options()),
    ]
}

/// Prints what the command of this name is for.
pub fn run(name: &str, matches: &ArgMatches, sources: &Sources) -> Result<ExitCode, String> {
    let settings = sources.settings()?;
    let here = Place::here().map_err(|error| format!("the present directory: {error}"))?;
    let directory = match &settings.process.chdir {
        Some(named) => here.file(named),
        None => here.directory,
    };
    let text = match name {
        "systemd" => unit::print(&settings, sources, &directory)?,
        _ => {
            let listen = matches.get_one::<String>(LISTEN).map_or("", String::as_str);
            web::print(name, &settings, &directory, listen)?
        }
    };
    print(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// The template with each `{{name}}` replaced by its value. A line that was a name whose value is
/// empty goes.
fn fill(template: &str, values: &Values) -> String {
    let mut text = String::with_capacity(template.len());
    for line in template.lines() {
        let mut filled = line.to_owned();
        for (name, value) in values {
            filled = filled.replace(&format!("{{{{{name}}}}}"), value);
        }
        if line.trim().is_empty() || !filled.trim().is_empty() {
            text += filled.trim_end();
            text.push('\n');
        }
    }
    text
}

/// Where a socket's file really is.
fn absolute(directory: &Path, path: &str) -> PathBuf {
    directory.join(path.strip_prefix("./").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in() {
        let values = vec![("a", "1".into()), ("none", String::new())];
        assert_eq!(fill("x {{a}}{{a}}\n\n  {{none}}\ny\n", &values), "x 11\n\ny\n");
        assert_eq!(absolute(Path::new("/srv"), "./a.sock"), Path::new("/srv/a.sock"));
        assert_eq!(absolute(Path::new("/srv"), "/run/a.sock"), Path::new("/run/a.sock"));
    }
}
