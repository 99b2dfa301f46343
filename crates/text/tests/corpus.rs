//! Replays the fuzzers' seeds.

#[path = "../../../fuzz/src/texts.rs"]
mod texts;

use std::fs;
use std::path::PathBuf;

#[test]
fn seeds_are_harmless() {
    for (name, check) in texts::ALL {
        let directory =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let entries = fs::read_dir(&directory).expect("the corpus is there");
        let mut count = 0;
        for path in entries.flatten().map(|entry| entry.path()) {
            println!("{}", path.display());
            check(&fs::read(&path).expect("a seed can be read"));
            count += 1;
        }
        assert!(count > 2, "{} holds hardly anything", directory.display());
    }
}
