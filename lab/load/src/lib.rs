//! The lab's load generator: takes a [`plan::Plan`], gives an [`outcome::Outcome`].

pub mod hist;
pub mod outcome;
pub mod plan;
