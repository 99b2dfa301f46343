//! The fuzz targets' checks. `tests/corpus.rs` of `wire`, `door` and `text` replay the corpus through
//! them.

#![forbid(unsafe_code)]

pub mod checks;
pub mod doors;
pub mod gateways;
pub mod texts;
