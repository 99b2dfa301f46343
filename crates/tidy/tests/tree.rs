//! Every rule, applied to the whole tree.

use tidy::{Complaint, File, imports, size, tree, unsafety, words};

fn keep(rule: fn(&File) -> Vec<Complaint>) {
    let files = tree();
    assert!(files.iter().any(|file| file.path == "crates/wire/src/lib.rs"), "this is not the tree");
    let complaints: Vec<String> = files.iter().flat_map(rule).map(|c| c.to_string()).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn roles_import_only_what_they_may() {
    keep(imports::check);
}

#[test]
fn unsafe_code_is_where_it_may_be_and_says_why() {
    keep(unsafety::check);
}

#[test]
fn files_and_functions_are_short() {
    keep(size::check);
}

#[test]
fn nothing_is_left_unfinished_and_no_registry_is_named() {
    keep(words::check);
}
