//! `oribi lab`: measures any Ruby web server.

mod blocks;
mod bootstrap;
mod cli;
mod figures;
mod judge;
mod library;
mod machine;
mod metrics;
mod noise;
mod overload;
mod recipe;
mod report;
mod results;
mod scenario;
mod series;
mod stack;
mod stats;
mod timewait;
mod tree;

fn main() {}
