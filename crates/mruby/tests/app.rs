//! What a rackup file finds: the subset of Rack, `require`, and that its code is compiled once.

use mruby::{App, Env, Level, Limits, Plan, Source};
use std::sync::Arc;

fn plan(source: Source) -> Arc<Plan> {
    let env = Env { multiprocess: false, run_once: false };
    Plan::new(source, Limits::default(), env, None)
}

fn text(source: &str) -> App {
    App::boot(&plan(Source::Text("app.ru".into(), source.into()))).expect("it boots")
}

/// What the app answers for these variables, inspected.
fn ask(app: &App, variables: &[(&str, &str)]) -> String {
    let interp = app.interp();
    let env = app.template().unwrap().call("dup", &[]).unwrap();
    for (name, value) in variables {
        env.set(interp.str(name).unwrap(), interp.str(value).unwrap()).unwrap();
    }
    let reply = app.app().unwrap().call("call", &[env]).unwrap_or_else(|e| panic!("{}", e.full()));
    reply.inspect().unwrap()
}

#[test]
fn a_rackup_file_uses_maps_and_runs() {
    let app = text(
        "class Add
           def initialize(app, name, option: 'none', &block)
             @app, @name, @block = app, name, block
           end
           def call(env)
             status, headers, body = @app.call(env)
             [status, headers.merge('x-' + @name => @block ? @block.call : 'yes'), body]
           end
         end
         use Add, 'one'
         use(Add, 'two') { 'block' }
         map '/a/' do
           use Add, 'inner'
           map('/b') { run { |env| [201, {}, [env['SCRIPT_NAME'], env['PATH_INFO']]] } }
           run ->(env) { [200, {}, [env['SCRIPT_NAME'], env['PATH_INFO']]] }
         end
         map('http://other.example/') { run { |env| [202, {}, []] } }
         run ->(env) { [203, {}, [env['SCRIPT_NAME'], env['PATH_INFO']]] }",
    );
    let get = |path: &str| ask(&app, &[("PATH_INFO", path)]);
    let outer = r#""x-two"=>"block", "x-one"=>"yes"}"#;
    assert_eq!(get("/a"), format!(r#"[200, {{"x-inner"=>"yes", {outer}, ["/a", ""]]"#));
    assert_eq!(get("/a/b/c"), format!(r#"[201, {{"x-inner"=>"yes", {outer}, ["/a/b", "/c"]]"#));
    assert_eq!(get("/ab"), format!(r#"[203, {{{outer}, ["", "/ab"]]"#));
    let other = ask(&app, &[("PATH_INFO", "/"), ("HTTP_HOST", "Other.example")]);
    assert!(other.starts_with("[202"), "{other}");
}

#[test]
fn utils_know_what_apps_ask_for() {
    let app = text(
        "run ->(env) {
           u = Rack::Utils
           [u.escape('a b&ü/'), u.unescape('a+b%26%c3%BC%2'), u.escape_html('<a b=\"\\'&\\'\">'),
            u.parse_query('a=1&b=%20&a=2&c'), u.build_query({ 'a' => [1, 2], 'b c' => nil }),
            u.status_code(:not_found), u::HTTP_STATUS_CODES[201], Rack.release]
         }",
    );
    let expected = r#"["a+b%26%C3%BC%2F", "a b&ü%2", "&lt;a b=&quot;&#39;&amp;&#39;&quot;&gt;", "#
        .to_owned()
        + r#"{"a"=>["1", "2"], "b"=>" ", "c"=>nil}, "a=1&a=2&b+c", 404, "Created", "3.0.0"]"#;
    // Bytes above ASCII are inspected as escapes.
    assert_eq!(ask(&app, &[]).replace("\\xc3\\xbc", "ü"), expected);
}

#[test]
fn other_files_are_found_from_the_file_that_asks() {
    let directory = std::env::temp_dir().join(format!("oribi-mruby-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("lib/deep")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write(
        "config.ru",
        "require 'rack'\nN = []\np require_relative('lib/one')\n\
                        raise 'twice' if require_relative 'lib/one.rb'\nrun ->(env) { [200, {}, N + [TWO, four]] }",
    );
    write("lib/one.rb", "require_relative 'deep/two'\nN << 'one'");
    write("lib/deep/two.rb", "N << 'two'\nTWO = 'three'\ndef four = 'four'");
    let plan = plan(Source::File(directory.join("config.ru")));
    let app = App::boot(&plan).unwrap();
    assert_eq!(ask(&app, &[]), r#"[200, {}, ["two", "one", "three", "four"]]"#);
    // All of it was compiled: another interpreter needs no files.
    std::fs::remove_dir_all(&directory).unwrap();
    let again = App::boot(&plan);
    let again = again.map(|app| ask(&app, &[]));
    // Only where a file lies is looked up anew.
    assert!(again.is_ok() || again.unwrap_err().class_name() == "LoadError");
}

#[test]
fn an_app_that_does_not_load_says_where() {
    let fails = |source: &str| {
        let booted = App::boot(&plan(Source::Text("app.ru".into(), source.into())));
        booted.err().expect(source)
    };
    let error = fails("def a\n  raise 'no'\nend\na");
    assert_eq!(error.full(), "app.ru:2:in a: no (RuntimeError)\n\tfrom app.ru:4");
    assert_eq!(fails("\n)").message(), "app.ru:2: syntax error, unexpected ')'");
    assert!(fails("require 'nokogiri'").message().starts_with("cannot load such file -- nokogiri"));
    assert_eq!(fails("require_relative 'none'").class_name(), "LoadError");
    assert_eq!(fails("use Object").message(), "missing run or map statement");
    let missing = App::boot(&plan(Source::File("/nowhere/config.ru".into())));
    assert!(missing.err().unwrap().message().contains("cannot load /nowhere/config.ru"));
}

#[test]
fn an_app_is_renewed() {
    let mut app = text("$n = 0\nrun ->(env) { $n += 1; [200, {}, [$n, rand(1_000_000_000)]] }");
    app.freeze(true).unwrap();
    assert!(ask(&app, &[]).starts_with("[200, {}, [1, ") && ask(&app, &[]).contains("[2, "));
    let mut seen = std::collections::HashSet::new();
    for _ in 0..20 {
        app.renew().unwrap();
        let reply = ask(&app, &[]);
        assert!(reply.starts_with("[200, {}, [1, "), "{reply}");
        assert!(seen.insert(reply), "random numbers repeat");
    }
    let _ = Level::Fresh;
}

/// One whose interpreter cannot be brought back is opened anew.
#[test]
fn what_is_kept_outside_is_opened_anew() {
    struct Outside;
    impl mruby::Gem for Outside {
        const NAME: &'static str = "outside";
        const OUTSIDE: bool = true;
        fn install(_: &mruby::Interp) -> Result<(), mruby::Exception> {
            Ok(())
        }
    }
    let source = Source::Text("app.ru".into(), "$n = 0; run ->(e) { [$n += 1, {}, []] }".into());
    let env = Env { multiprocess: false, run_once: true };
    let init: mruby::Init = Arc::new(|interp| interp.install::<Outside>());
    let mut app = App::boot(&Plan::new(source, Limits::default(), env, Some(init))).unwrap();
    app.freeze(false).unwrap();
    assert!(!app.interp().is_frozen() && app.interp().has_gem("outside"));
    for _ in 0..3 {
        assert_eq!(ask(&app, &[]), "[1, {}, []]");
        app.renew().unwrap();
    }
}
