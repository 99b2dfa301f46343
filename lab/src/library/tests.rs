//! Scenarios and servers as files in a folder of their own, right and wrong.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::Library;

const PUMA: &str = "name = 'puma'\ntitle = 'Puma'\nneeds = ['sh']\nlistens = ['tcp']\n\
    most_threads = 4\ncommand = ['sh', '{{ options.cluster | default(1) }}']\n";
const THIN: &str = "name = 'thin'\ntitle = 'Thin'\nneeds = ['sh']\ncommand = ['sh']\n";
const NGINX: &str = "name = 'nginx'\ntitle = 'nginx'\nfront = true\nrack = false\nneeds = []\n\
    command = ['nginx', '{{ options.keepalive }}']\n";

/// A scenario in which nothing is wrong.
const GOOD: &str = r#"
name = "good"
title = "Good"
app = "apps/a.ru"
workers = 2
servers = ["puma", "thin"]
show = ["load.p99_ms.fast", "load.rps", "pss_mb"]
baseline = ["thin"]
env = { A = "1", B = "2" }

[[contender]]
name = "behind"
server = "thin"
front = "nginx"
instances = 2
options = { keepalive = 8 }

[[request]]
class = "fast"
path = "/fast"

[[phase]]
name = "load"
kind = "closed"
connections = 4
seconds = 1

[[phase]]
name = "open"
kind = "open"
of = "load"
rate = 0.5
seconds = 1

[[target]]
label = "faster"
metric = "load.rps"
of = "puma"
over = ["thin"]
at_least = 1
"#;

fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a folder");
    write(home.path(), "apps/a.ru", "run -> {}");
    for (name, text) in [("puma", PUMA), ("thin", THIN), ("nginx", NGINX)] {
        write(home.path(), &format!("servers/{name}.toml"), text);
    }
    write(home.path(), "scenarios/good.toml", GOOD);
    home
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn open(home: &TempDir) -> Library {
    Library::open(home.path()).expect("a good library")
}

/// What is said about the good scenario with one change.
fn wrong(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from} is not in the scenario");
    let home = home();
    write(home.path(), "scenarios/good.toml", &GOOD.replacen(from, to, 1));
    let error = open(&home).scenario_of("good", None).expect_err(to);
    assert!(error.starts_with("scenarios/good.toml"), "{error}");
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn servers_become_contenders_and_stacks_are_laid_over_each_other() {
    let home = home();
    let mut library = open(&home);
    assert_eq!(library.names(), Ok(vec!["good".into()]));
    let cases = library.scenario_of("good", None).expect("it is good");
    let names: Vec<&str> = cases[0].contender.iter().map(|its| its.name.as_str()).collect();
    assert_eq!(names, ["puma", "thin", "behind"]);
    let app = library.app(&cases[0], &cases[0].contender[0]).expect("an app");
    assert!(app.is_absolute() && app.ends_with("apps/a.ru"), "{app:?}");
}

#[test]
fn every_case_is_laid_over_the_top_key_by_key() {
    let home = home();
    let top = GOOD.replace("of = \"puma\"", "of = \"thin\"").replace("over = [\"thin\"]", "");
    let cases = "[[case]]\ncase = 'one'\nworkers = 3\nenv = { B = '3' }\n\
                 [[case]]\ncase = 'two'\nservers = ['thin']\n";
    write(home.path(), "scenarios/good.toml", &format!("{top}{cases}"));
    let found = open(&home).scenario_of("good", None).expect("two cases");
    assert_eq!(found.iter().map(|its| its.case.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!((found[0].stack.workers, found[1].stack.workers), (Some(3), Some(2)));
    assert_eq!((found[0].stack.env["A"].as_str(), found[0].stack.env["B"].as_str()), ("1", "3"));
    assert_eq!((found[0].contender.len(), found[1].contender.len()), (3, 2));
    write(home.path(), "scenarios/good.toml", &format!("{top}{}", cases.replace("two", "one")));
    let twice = open(&home).scenario_of("good", None).expect_err("two of a name");
    assert!(twice.contains("two cases are called `one`"), "{twice}");
}

#[test]
fn a_scenario_by_path_brings_its_servers_and_apps() {
    let (home, other) = (home(), tempfile::tempdir().expect("a folder"));
    let text = GOOD.replace("name = \"good\"", "name = \"mine\"").replace("\"puma\"", "\"mine\"");
    write(other.path(), "mine.toml", &text.replace("apps/a.ru", "my.ru"));
    write(other.path(), "my.ru", "run -> {}");
    write(other.path(), "servers/mine.toml", &THIN.replace("thin", "mine"));
    let mut library = open(&home);
    assert!(library.recipe("mine").is_err());
    let path = other.path().join("mine.toml").to_string_lossy().into_owned();
    let cases = library.scenario_of(&path, None).expect("a scenario elsewhere");
    assert_eq!(library.recipe("mine").map(|its| its.name.as_str()), Ok("mine"));
    let app = library.app(&cases[0], &cases[0].contender[0]).expect("an app");
    assert_eq!(app, fs::canonicalize(other.path().join("my.ru")).expect("it is there"));
}

#[test]
fn a_scenario_may_be_laid_over_another_ones_first_case() {
    let home = home();
    write(
        home.path(),
        "scenarios/soak.toml",
        "name = 'soak'\ntitle = 'Long'\nof = 'good'\nrounds = 1",
    );
    let mut library = open(&home);
    let cases = library.scenario_of("soak", None).expect("a long one");
    assert_eq!((cases[0].name.as_str(), cases[0].rounds, cases[0].phase.len()), ("soak", 1, 2));
    let over = library.scenario_of("soak", Some("goot")).expect_err("there is none");
    assert!(over.contains("of: there is no scenario `goot` (did you mean `good`?)"), "{over}");
    let circle = library.scenario_of("good", Some("soak")).expect_err("a circle");
    assert!(circle.contains("itself laid over"), "{circle}");
}

/// What is changed in the good scenario, into what, and what is said about it.
const SLIPS: &[(&str, &str, &str)] = &[
    ("workers = 2", "wokers = 2", "unknown key `wokers` (did you mean `workers`?)"),
    ("workers = 2", "workers = \"two\"", "workers: invalid type: string \"two\""),
    ("keepalive = 8", "keepalive = 8 }\nthreads = { a = 1", "contender[0].threads: invalid type"),
    ("title = \"Good\"", "", "missing field `title`"),
    ("connections = 4", "", "phase[0]: missing field `connections`"),
    ("workers = 2", "workers = 0", "contender `puma`: workers: must be at least 1"),
    ("workers = 2", "threads = 5\nrounds = 0", "rounds: must be at least 1"),
    ("connections = 4", "conections = 4", "`connections` (is it `conections`?)"),
    ("seconds = 1", "seconds = 0", "phase `load`: seconds: must be more than 0"),
    ("connections = 4", "connections = 4\nrate = 3", "phase `load`: unknown key `rate`"),
    ("kind = \"closed\"", "kind = \"close\"", "(did you mean `closed`?)"),
    ("\"puma\", \"thin\"]", "\"pmua\"]", "no server `pmua` (did you mean `puma`?)"),
    ("\"puma\", \"thin\"]", "\"puma\", \"puma\"]", "two contenders are called `puma`"),
    ("\"puma\", \"thin\"]", "\"puma\", \"nginx\"]", "contender `nginx`: server: nginx is a proxy"),
    ("front = \"nginx\"", "front = \"thin\"", "contender `behind`: front: thin is no proxy"),
    ("front = \"nginx\"", "front = \"none\"", "instances: more than one need a `front`"),
    ("instances = 2", "instances = 2\nserver_ = 2", "contender `behind`: unknown key `server_`"),
    ("workers = 2", "listen = \"unix\"", "contender `puma`: listen: puma listens on tcp only"),
    ("keepalive = 8", "kepalive = 8", "options: unknown `kepalive` (did you mean `keepalive`?)"),
    ("apps/a.ru", "apps/b.ru", "app: there is no "),
    ("path = \"/fast\"", "path = \"fast\"", "request `fast`: path: must begin with /"),
    ("class = \"fast\"", "class = \"p99_ms\"", "must have no dot and not be a metric's name"),
    (
        "seconds = 1",
        "seconds = 1\nclasses = [\"fats\"]",
        "classes: no request has the class `fats`",
    ),
    (
        "of = \"load\"",
        "of = \"open\"",
        "phase `open`: of: no earlier closed phase is called `open`",
    ),
    ("name = \"open\"", "name = \"load\"", "two phases are called `load`"),
    ("\"load.rps\", ", "\"load.rpm\", ", "show: `load.rpm` is no metric (did you mean `rps`?)"),
    ("\"load.rps\", ", "\"laod.rps\", ", "no phase is called `laod` (did you mean `load`?)"),
    ("p99_ms.fast", "p99_ms.slow", "no request has the class `slow`"),
    (
        "metric = \"load.rps\"",
        "metric = \"load.x\"",
        "target `faster`: metric: `load.x` is no metric",
    ),
    ("of = \"puma\"", "of = \"pum\"", "of: no contender is called `pum` (did you mean `puma`?)"),
    ("over = [\"thin\"]", "over = [\"thn\"]", "over: no contender is called `thn`"),
    (
        "baseline = [\"thin\"]",
        "baseline = [\"unicorn\"]",
        "baseline: no contender is called `unicorn`",
    ),
    ("at_least = 1", "at_least = 1\nat_most = 2", "must have one of at_least and at_most"),
    ("over = [\"thin\"]", "difference = true", "a difference needs over"),
    ("at_least = 1", "at_leats = 1", "at_leats"),
    ("name = \"good\"", "name = \"bad\"", "name: must be the file's, \"good\""),
    ("title = \"Good\"", "title = Good", "scenarios/good.toml:3: "),
];

#[test]
fn what_is_wrong_is_said_with_file_key_and_the_nearest_name() {
    for (from, to, expected) in SLIPS {
        let error = wrong(from, to);
        assert!(error.contains(expected), "{to}\n  said: {error}\n  not:  {expected}");
    }
    let home = home();
    let none = open(&home).scenario_of("god", None).expect_err("there is none");
    assert_eq!(none, "there is no scenario `god` (did you mean `good`?)");
}

#[test]
fn a_contender_asks_for_no_more_than_its_server_can() {
    let error = wrong(
        "instances = 2",
        "instances = 2\nworkers = 2\n[[contender]]\nname = \"x\"\nserver = \"puma\"\nthreads = 5\n#",
    );
    assert!(error.contains("contender `x`: threads: puma has at most 4"), "{error}");
}

#[test]
fn servers_are_checked_too() {
    for (text, expected) in [
        (THIN.replace("needs", "need"), "servers/thin.toml: "),
        (THIN.replace("'thin'", "'thing'"), "name: must be the file's, \"thin\""),
        (format!("{THIN}stop = 'TREM'"), "stop: unknown `TREM` (did you mean `TERM`?)"),
        (format!("{THIN}listens = ['udp']"), "listens: unknown `udp`"),
        (
            THIN.replace("['sh']\ncommand", "['sh']\ncomand"),
            "unknown field `comand` (did you mean `command`?)",
        ),
    ] {
        let home = home();
        write(home.path(), "servers/thin.toml", &text);
        let error = Library::open(home.path()).err().expect("something is wrong");
        assert!(error.contains(expected), "said: {error}\nnot:  {expected}");
        assert!(error.starts_with("servers/thin.toml") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn every_scenario_and_server_of_the_lab_is_right() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut library = Library::open(home).expect("the lab's servers");
    let names = library.names().expect("the lab's scenarios");
    assert!(names.iter().any(|name| name == "hello"), "{names:?}");
    let wrong: Vec<String> =
        names.iter().filter_map(|name| library.scenario_of(name, None).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
