//! loom models: every interleaving of a few threads, and every point at which one of them can die.
//!
//! `docs/proofs.md` says what each model shows; `mutants.sh` shows that the models bite.
#![cfg(loom)]

#[expect(dead_code, reason = "the models need a part of it")]
#[path = "../../../worker/src/crew.rs"]
mod crew;
mod kit;

mod bells;
mod claims;
mod counters;
mod deaths;
mod overdue;
mod reply;
