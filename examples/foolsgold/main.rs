//! The ancestor's demonstration: one app at two levels of isolation, in two engines, with one
//! counter, and a page out of the binary's own memory. See README.md.

mod gem;

use oribi::{Builder, Error, Isolation, Mount};
use std::path::Path;
use std::process::ExitCode;

/// The app, for mruby: in the binary.
const RACKUP: &str = include_str!("config.ru");
/// The same, for CRuby: a file, because it requires another.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/foolsgold/config.ru");
/// The ancestor's number: exactly so many requests, then another interpreter.
const PREFORK: Isolation = Isolation::Prefork { max_requests: 150 };

const ASSETS: [(&str, &[u8]); 3] = [
    ("/fools-gold/index.html", include_bytes!("public/index.html")),
    ("/fools-gold/style.css", include_bytes!("public/style.css")),
    ("/fools-gold/pyrite.svg", include_bytes!("public/pyrite.svg")),
];

fn main() -> Result<ExitCode, Error> {
    let mruby = |name, path| {
        Mount::from_rackup(name, RACKUP, path)
            .with_init(|interp| interp.install::<gem::FoolsGold>())
    };
    let cruby = |name, path| Mount::cruby(Path::new(FILE), path).name(name);
    Builder::default()
        .bind(&std::env::var("BIND").unwrap_or_else(|_| "tcp://127.0.0.1:8000".into()))
        .workers(2)
        .add_mount(
            mruby("shared-nothing", "/fools-gold/shared-nothing").isolation(Isolation::Fresh),
        )
        .add_mount(mruby("prefork", "/fools-gold/prefork").isolation(PREFORK))
        .add_mount(
            cruby("cruby-shared-nothing", "/fools-gold/cruby/shared-nothing")
                .isolation(Isolation::Fresh),
        )
        .add_mount(cruby("cruby-prefork", "/fools-gold/cruby/prefork").isolation(PREFORK))
        .add_static_assets(ASSETS)
        .serve()
}
