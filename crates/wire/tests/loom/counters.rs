//! Metrics that several processes name at once: one name, one cell, whoever dies.

use crate::kit::*;
use loom::thread::spawn;
use std::sync::Arc;
use wire::counters::table::{Definition, Kind, Missing, Table};

fn counter(name: &str) -> Definition<'_> {
    Definition { name, kind: Kind::Counter, bounds: &[] }
}

fn count(table: &Table, name: &str) {
    table.find(&counter(name)).unwrap().add(1);
}

fn value(table: &Table, name: &str) -> u64 {
    let found: Vec<_> = table.metrics().filter(|cell| cell.name() == name).collect();
    assert_eq!(found.len(), 1, "a name has one cell");
    assert_eq!(found[0].kind(), Some(Kind::Counter), "a cell that is seen is whole");
    found[0].get()
}

/// Both count in the same cell, and the one that was written in vain is free again.
#[test]
fn two_insert_one_name() {
    explore(3, || {
        let table = Arc::new(*Table::boxed());
        let other = table.clone();
        let thread = spawn(move || count(&other, "a"));
        count(&table, "a");
        thread.join().unwrap();
        assert_eq!(value(&table, "a"), 2);
        count(&table, "b");
        count(&table, "c");
        assert_eq!(table.find(&counter("d")).err(), Some(Missing::Full(true)));
    });
}

/// Two names, in whatever order they are inserted, and each is found whole.
#[test]
fn two_insert_two_names() {
    explore(3, || {
        let table = Arc::new(*Table::boxed());
        let other = table.clone();
        let thread = spawn(move || {
            count(&other, "b");
            count(&other, "a");
        });
        count(&table, "a");
        count(&table, "b");
        thread.join().unwrap();
        assert_eq!((value(&table, "a"), value(&table, "b")), (2, 2));
    });
}

/// A name has one kind: whoever comes second learns it.
#[test]
fn two_insert_two_kinds() {
    explore(3, || {
        let table = Arc::new(*Table::boxed());
        let other = table.clone();
        let gauge = Definition { kind: Kind::Gauge, ..counter("a") };
        let thread = spawn(move || other.find(&counter("a")).map(drop));
        let mine = table.find(&gauge).map(drop);
        let others = thread.join().unwrap();
        assert!(matches!(
            (mine, others),
            (Ok(()), Err(Missing::Kind(Kind::Gauge))) | (Err(Missing::Kind(Kind::Counter)), Ok(()))
        ));
    });
}

/// Wherever one dies that inserts, another neither waits nor counts twice, and one cell is lost at
/// the most.
#[test]
fn one_dies_that_inserts() {
    explore_deaths(1, |death| {
        let table = Arc::new(*Table::boxed());
        let other = table.clone();
        let thread = spawn(move || death.strikes(|| count(&other, "a")).is_some());
        count(&table, "a");
        let whole = thread.join().unwrap();
        let counted = value(&table, "a");
        assert!(counted == 2 || !whole && counted == 1);
        count(&table, "b");
        assert_eq!((value(&table, "a"), value(&table, "b")), (counted, 1));
    });
}

/// No observation is lost where two add to one sum.
#[test]
fn two_observe() {
    explore(3, || {
        let table = Arc::new(*Table::boxed());
        let seconds = Definition { name: "s", kind: Kind::Histogram, bounds: &[1.0] };
        let other = table.clone();
        let thread = spawn(move || other.find(&seconds).unwrap().observe(0.5));
        table.find(&seconds).unwrap().observe(2.0);
        thread.join().unwrap();
        let (bounds, buckets, sum) = table.find(&seconds).unwrap().buckets();
        assert_eq!((bounds, buckets, sum), (vec![1.0], vec![1, 1], 2.5));
    });
}
