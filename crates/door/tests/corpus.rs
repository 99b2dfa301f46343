//! Judges the requests of `test/corpus`, and replays the fuzzers' seeds.

#[path = "../../../fuzz/src/doors.rs"]
mod doors;
#[path = "../../../fuzz/src/gateways.rs"]
mod gateways;

use std::fs;
use std::path::PathBuf;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The files of a directory: name and bytes.
fn files(directory: &str) -> Vec<(String, Vec<u8>)> {
    let directory = PathBuf::from(ROOT).join(directory);
    let entries = fs::read_dir(&directory).unwrap_or_else(|_| panic!("{}", directory.display()));
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).expect("a file can be read"))
    };
    let files: Vec<_> = entries.flatten().map(read).collect();
    assert!(files.len() > 2, "{} holds hardly anything", directory.display());
    files
}

#[test]
fn valid_requests_pass() {
    for (name, bytes) in files("test/corpus/valid") {
        assert_eq!(doors::verdict(&bytes), Ok(()), "{name}");
    }
}

#[test]
fn invalid_requests_are_refused_with_the_status_of_their_name() {
    for (name, bytes) in files("test/corpus/invalid") {
        let Err(fault) = doors::verdict(&bytes) else { panic!("{name} passes") };
        let status = fault.map_or(400, |fault| fault.status());
        assert!(name.starts_with(&status.to_string()), "{name}: {fault:?}");
    }
}

#[test]
fn seeds_are_harmless() {
    for (name, check) in doors::ALL.into_iter().chain(gateways::ALL) {
        let own = format!("fuzz/corpus/{name}");
        let directories = match name {
            "http" => &["test/corpus/valid", "test/corpus/invalid"][..],
            _ => &[&*own],
        };
        for (file, bytes) in directories.iter().flat_map(|directory| files(directory)) {
            println!("{file}");
            check(&bytes);
        }
    }
}
