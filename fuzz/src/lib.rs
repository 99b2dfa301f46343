//! The fuzz targets' checks. `crates/wire/tests/corpus.rs` replays the corpus through them.

#![forbid(unsafe_code)]

pub mod checks;
