//! The templates of a server file, filled in.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::Serialize;

use crate::recipe::Recipe;

/// Where something listens, in every spelling that a configuration may want. What does not apply
/// is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// `tcp://HOST:PORT` or `unix:///PATH`; `fastcgi://HOST:PORT`, `fastcgi+unix:///PATH` and the
    /// same for SCGI where that is spoken.
    pub listen: String,
    /// `127.0.0.1`.
    pub host: String,
    /// The port.
    pub port: String,
    /// Of the socket.
    pub path: String,
    /// `HOST:PORT` or the path.
    pub address: String,
}

impl Place {
    /// A TCP port of this machine.
    pub fn tcp(port: u16) -> Self {
        let address = format!("127.0.0.1:{port}");
        Self {
            listen: format!("tcp://{address}"),
            host: "127.0.0.1".into(),
            port: port.to_string(),
            path: String::new(),
            address,
        }
    }

    /// A unix socket.
    pub fn unix(path: &str) -> Self {
        let listen = format!("unix://{path}");
        Self { listen, path: path.into(), address: path.into(), ..Self::default() }
    }
}

/// All that templates know.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Context {
    /// Where it shall listen.
    #[serde(flatten)]
    pub place: Place,
    /// The rackup file; empty where there is none.
    pub app: String,
    /// Its folder; empty where there is none.
    pub app_dir: String,
    /// A folder of its own.
    pub dir: String,
    /// Processes.
    pub workers: u32,
    /// In each.
    pub threads: u32,
    /// What the server speaks: `http`, `fastcgi`, `scgi`.
    pub door: String,
    /// The lab's folder.
    pub lab: String,
    /// Run by root?
    pub root: bool,
    /// The stack's.
    pub options: BTreeMap<String, toml::Value>,
    /// What stands behind a front.
    pub backends: Vec<Place>,
    /// The server's first process; 0 before it is started.
    pub pid: u32,
}

impl Context {
    /// `template` filled in; `what` is for messages. A variable that is not there is an error, so
    /// that no slip becomes an empty argument.
    pub fn fill(&self, what: &str, template: &str) -> Result<String, String> {
        let rendered = environment().render_named_str(what, template, Value::from_serialize(self));
        rendered.map_err(|error| format!("{what}: {error:#}").replace('\n', " "))
    }

    /// Each filled in; those that come to nothing are left out.
    pub fn fill_all(&self, what: &str, templates: &[String]) -> Result<Vec<String>, String> {
        let filled = templates.iter().map(|template| self.fill(what, template));
        let all: Result<Vec<String>, String> = filled.collect();
        Ok(all?.into_iter().filter(|its| !its.is_empty()).collect())
    }
}

/// The options that a server's templates ask for.
pub fn options(recipe: &Recipe) -> BTreeSet<String> {
    let environment = environment();
    let templates = recipe.command.iter().chain(recipe.files.values()).chain(recipe.env.values());
    let templates = templates.chain(&recipe.deploy);
    let names = templates.flat_map(|template| {
        // What cannot be parsed says so when it is filled in.
        let parsed = environment.template_from_str(template);
        parsed.map(|its| its.undeclared_variables(true)).unwrap_or_default()
    });
    names
        .filter_map(|name| Some(name.strip_prefix("options.")?.split('.').next()?.into()))
        .collect()
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_know_what_they_are_told_and_nothing_else() {
        let options = BTreeMap::from([("keepalive".into(), toml::Value::Integer(8))]);
        let place = Place::unix("/tmp/a/sock");
        let context = Context { place, workers: 2, options, ..Context::default() };
        let fill = |template: &str| context.fill("server.command", template);
        assert_eq!(
            fill("-b {{ listen }} {{ address }}"),
            Ok("-b unix:///tmp/a/sock /tmp/a/sock".into())
        );
        assert_eq!(fill("{% if port %}x{% endif %}{{ options.keepalive }}"), Ok("8".into()));
        assert_eq!(fill("{{ options.cluster | default(3) }}\n"), Ok("3\n".into()));
        let wrong = fill("{{ wokers }}").expect_err("there is no such variable");
        assert!(wrong.contains("server.command"), "{wrong}");
        assert!(!wrong.contains('\n'), "{wrong}");
        let all = ["a".into(), "{% if workers > 2 %}b{% endif %}".into(), "c".into()];
        assert_eq!(context.fill_all("x", &all), Ok(vec!["a".into(), "c".into()]));
    }

    #[test]
    fn tells_which_options_a_server_has() {
        let text = "name = 'a'\ntitle = 'A'\nneeds = []\ncommand = ['a', '{{ options.x }}']\n\
                    [files]\nb = '{% if options.y is defined %}{{ port }}{% endif %}'";
        let recipe: Recipe = toml::from_str(text).expect("a recipe");
        assert_eq!(options(&recipe).into_iter().collect::<Vec<_>>(), ["x", "y"]);
    }
}
