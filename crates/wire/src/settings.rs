//! Placeholder while the options table is being written.
