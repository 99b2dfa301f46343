//! A program that serves an mruby app and a file out of its own memory, with a class of its own
//! for the app. docs/embedding.md walks through it.

use oribi::mruby::{Exception, Gem, Interp};
use oribi::{Builder, Error, Isolation, Mount};
use std::process::ExitCode;

/// The app, in the binary.
const RACKUP: &str = r#"
run lambda { |env|
  text = Shout.loudly(env["PATH_INFO"].sub("/", ""))
  [200, { "content-type" => "text/plain" }, [text]]
}
"#;

/// `Shout.loudly("a")  # => "A!"`, written in Rust.
struct Shout;

impl Gem for Shout {
    const NAME: &'static str = "shout";

    fn install(interp: &Interp) -> Result<(), Exception> {
        let shout = interp.define_class("Shout", |_| Ok(()))?;
        shout.singleton_method("loudly", 1..=1, |call| {
            let text = call.arg(0).text()?.to_uppercase();
            call.interp().str(text + "!\n")
        })
    }
}

fn main() -> Result<ExitCode, Error> {
    let shout = Mount::from_rackup("shout", RACKUP, "/shout")
        .with_init(|interp| interp.install::<Shout>())
        .isolation(Isolation::Prefork { max_requests: 1000 });
    let addresses = std::env::var("BIND").unwrap_or_else(|_| "tcp://127.0.0.1:9292".into());
    let builder = addresses.split_whitespace().fold(Builder::default(), Builder::bind);
    builder
        .add_mount(shout)
        .add_static_asset("/index.html", &b"<!DOCTYPE html><title>Embedded</title>\n"[..])
        .serve()
}
