//! Replays the fuzzers' corpus: what was found once does not come back.
#![cfg(not(loom))]

#[path = "../../../fuzz/src/checks.rs"]
mod checks;

#[test]
fn the_corpus_is_harmless() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    for (name, check) in checks::ALL {
        let files = std::fs::read_dir(format!("{corpus}/{name}")).expect("every target has seeds");
        let mut count = 0;
        for file in files.flatten() {
            println!("{}", file.path().display());
            check(&std::fs::read(file.path()).expect("a seed can be read"));
            count += 1;
        }
        assert!(count > 2, "{name} has hardly any seeds");
    }
}
