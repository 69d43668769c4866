//! What a fuzz target calls: it compares the reading of a word with a table. A difference is a panic.

use kr_types::RestoreMode;

use crate::seam::{Forced, parse_forced};

/// A forced mode, from bytes of which those that are no UTF-8 become replacement characters.
pub fn forced(data: &[u8]) {
    let word = &*String::from_utf8_lossy(data);
    let expected = match word {
        "auto" => Some(Forced::Auto),
        "full" => Some(Forced::Always(RestoreMode::Full)),
        "hash-every-pass" => Some(Forced::Always(RestoreMode::HashEveryPass)),
        "hash-once" => Some(Forced::Always(RestoreMode::HashOnce)),
        _ => None,
    };
    match parse_forced(word) {
        Ok(forced) => assert_eq!(Some(forced), expected),
        Err(error) => {
            assert_eq!(expected, None);
            assert!(word.starts_with(error.given()));
            assert_eq!(error.given().chars().count(), word.chars().count().min(64));
            let message = error.to_string();
            assert!(!message.contains(char::is_control), "one line for a log");
            assert!(message.ends_with("known are auto, full, hash-every-pass, hash-once"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::forced;

    /// The table agrees on each word and on what is close to it; the same function is fuzzed.
    #[test]
    fn words_and_what_is_close_to_them() {
        for word in ["auto", "full", "hash-every-pass", "hash-once", ""] {
            forced(word.as_bytes());
            for byte in 0..=255 {
                forced(&[word.as_bytes(), &[byte]].concat());
            }
        }
    }
}
