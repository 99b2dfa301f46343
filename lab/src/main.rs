//! `oribi lab`: measures any Ruby web server.

mod cli;
mod figures;
mod judge;
mod metrics;
mod recipe;
mod report;
mod results;
mod scenario;
mod series;
mod stats;

fn main() {}
