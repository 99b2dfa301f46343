//! The word that was probably meant.

/// ` (did you mean …?)` for the word that is most like `wrong`; if none is like it, which there
/// are.
pub fn nearest<S: AsRef<str>>(wrong: &str, right: impl IntoIterator<Item = S>) -> String {
    let right: Vec<S> = right.into_iter().collect();
    let distance = |word: &S| strsim::damerau_levenshtein(wrong, word.as_ref());
    match right.iter().min_by_key(|word| distance(word)) {
        None => String::new(),
        Some(word) if distance(word) <= (wrong.chars().count() / 3).max(2) => {
            format!(" (did you mean `{}`?)", word.as_ref())
        }
        Some(_) => {
            let words: Vec<&str> = right.iter().map(S::as_ref).collect();
            format!(" (there are: {})", words.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_anything_else_gets_the_list() {
        assert_eq!(nearest("pmua", ["unicorn", "puma"]), " (did you mean `puma`?)");
        assert_eq!(nearest("apache", ["unicorn", "puma"]), " (there are: unicorn, puma)");
        assert_eq!(nearest("x", Vec::<String>::new()), "");
    }
}
