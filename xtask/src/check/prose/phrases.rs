//! Phrases that stop a reader, with their substitutes.

/// Each phrase, in small letters, with its substitute.
const PHRASES: &[(&str, &str)] = &[
    ("a gb", "per GB"),
    ("and what comes", "and new ones"),
    ("are said", "are reported"),
    ("as often as must be", "as often as required"),
    ("at the most", "at most"),
    ("at the pace of", "based on"),
    ("broken off", "interrupted"),
    ("come by themselves", "independent"),
    ("first look", "trial run"),
    ("for good", "permanently"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("handed over", "submitted"),
    ("held against", "compared with"),
    ("hold a result against", "compare"),
    ("is said", "is reported"),
    ("is told", "is reported"),
    ("leads to its meaning", "is explained"),
    ("lies under", "name the thing"),
    ("looked at", "examined"),
    ("meanwhile", "while .."),
    ("nobody", "name the actor"),
    ("nothing is fair", "name what is unfair"),
    ("of its own", "its own, or nothing"),
    ("of their own", "their own, or nothing"),
    ("rule of thumb", "roughly"),
    ("so many", "name the number"),
    ("somebody", "name the actor"),
    ("survives no", "does not survive"),
    ("take how long", "latency"),
    ("told apart", "no measurable difference"),
    ("went on", "continued"),
    ("whoever", "name the actor"),
    ("without a word", "silently"),
];

/// Clauses without a noun, in small letters, with their substitutes.
const CLAUSES: &[(&str, &str)] = &[
    ("by which", "two sentences"),
    ("of which", "two sentences"),
    ("that of", "name the noun"),
    ("those of", "name the noun"),
    ("those that", "name the noun"),
    ("those which", "name the noun"),
    ("with which", "two sentences"),
];

/// Finds the first phrase in `comment` that has a substitute, or clause that lacks its noun.
pub fn find_in_comment(comment: &str) -> Option<(&'static str, &'static str)> {
    let text = prose(comment);
    let clause = CLAUSES.iter().find(|(clause, _)| {
        holds(&text, clause, |before| !before.ends_with("each ") && !before.ends_with("one "))
    });
    find(comment).or(clause.copied())
}

/// Finds the first phrase in `text` that has a substitute, and returns both. Text in backticks is
/// code.
pub fn find(text: &str) -> Option<(&'static str, &'static str)> {
    let text = prose(text).replace("no longer", "not");
    let phrase = PHRASES.iter().find(|(phrase, _)| holds(&text, phrase, |_| true)).copied();
    let denial = ["is no", "are no"]
        .into_iter()
        .find(|phrase| holds(&text, &format!("{phrase} "), |before| !before.ends_with("there ")));
    phrase.or(denial.map(|phrase| (phrase, "is not a")))
}

/// Returns the words of `text` outside of backticks, in small letters.
fn prose(text: &str) -> String {
    let prose = text.split('`').step_by(2);
    let words: Vec<&str> = prose.flat_map(str::split_whitespace).collect();
    words.join(" ").to_ascii_lowercase()
}

/// Returns whether `text` holds `phrase` as whole words, after a text that `behind` accepts.
fn holds(text: &str, phrase: &str, behind: impl Fn(&str) -> bool) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    text.match_indices(phrase).any(|(begin, _)| {
        let (before, after) = (&text[..begin], &text[begin + phrase.len()..]);
        let begins = !before.ends_with(is_word);
        let ends = phrase.ends_with(' ') || !after.starts_with(is_word);
        begins && ends && behind(before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_found_as_whole_words_in_any_case() {
        assert_eq!(find("Meanwhile it runs").map(|(phrase, _)| phrase), Some("meanwhile"));
        assert_eq!(find("it goes\n  on").map(|(phrase, _)| phrase), Some("goes on"));
        assert_eq!(find("{size} a GB").map(|(phrase, _)| phrase), Some("a gb"));
        for fine in ["an argon lamp", "a gbit", "ergo one", "no-go on", "once `go on` is run"] {
            assert_eq!(find(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_clause_without_its_noun_is_found_in_comments_alone() {
        let clause = "Removes the files of which none is open.";
        assert_eq!(find_in_comment(clause), Some(("of which", "two sentences")));
        assert_eq!(
            find_in_comment("The size, and that of the copy."),
            Some(("that of", "name the noun"))
        );
        assert_eq!(find_in_comment("It goes on."), Some(("goes on", "continues")));
        assert_eq!(find_in_comment("Threads, each of which writes."), None);
        assert_eq!(find(clause), None);
    }

    #[test]
    fn a_denied_noun_is_found_and_a_denied_presence_is_plain() {
        assert_eq!(find("{text} is no number"), Some(("is no", "is not a")));
        assert_eq!(find("there is no file"), None);
        assert_eq!(find("the log is no longer open"), None);
        assert_eq!(find("There are no trims"), None);
        assert_eq!(find("is nothing"), None);
    }
}
