//! `oribi lab`: measures any Ruby web server.

mod metrics;
mod recipe;
mod results;
mod scenario;

fn main() {}
