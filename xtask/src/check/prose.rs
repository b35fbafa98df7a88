//! `cargo xtask prose`: the rules of prose that a program can check, in comments and documents.

use crate::failure::{Failure, Tried};
use crate::repository::{files, root};

/// The longest line that a comment may stand in.
const COLUMNS_MAX: usize = 100;
/// Words for people without a role.
const BANNED: [&str; 3] = ["nobody", "somebody", "whoever"];
/// First words that hide the subject of a doc comment in a clause.
const CLAUSES: [&str; 5] = ["what", "who", "whoever", "which", "that"];

/// Check comments and documents against the rules of prose.
///
/// Reads the comments of Rust sources, of TOML files and of shell scripts, and whole Markdown
/// files. Text in backticks is code.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files and folders to check, from the repository's root [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

/// Checks the files that `arguments` name.
pub fn prose(arguments: &Arguments) -> Result<(), Failure> {
    let paths: Vec<&str> = arguments.paths.iter().map(String::as_str).collect();
    check(&paths)
}

/// Checks every tracked file below `paths`, or all tracked files where there are no `paths`.
pub fn check(paths: &[&str]) -> Result<(), Failure> {
    let mut faults = 0;
    for file in files(paths)? {
        let Some(sign) = sign(&file) else { continue };
        let text = std::fs::read_to_string(root().join(&file)).tried(&file)?;
        for fault in self::faults(sign, &text) {
            println!("{file}:{fault}");
            faults += 1;
        }
    }
    match faults {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 line breaks a rule of prose".to_owned())),
        _ => Err(Failure::Failed(format!("{faults} lines break a rule of prose"))),
    }
}

/// The sign before comments in this kind of file, empty where every line is prose; `None` where no
/// line is.
fn sign(file: &str) -> Option<&'static str> {
    match file.rsplit(['.', '/']).next() {
        Some("rs") => Some("//"),
        Some("toml" | "sh" | "run") => Some("#"),
        Some("md") => Some(""),
        _ => None,
    }
}

/// Each fault of `text`: "line: reason: the line".
fn faults(sign: &str, text: &str) -> Vec<String> {
    let mut in_doc_comment = false;
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let was_in_doc_comment = in_doc_comment;
        in_doc_comment = doc(line).is_some();
        let Some(prose) = comment(line, sign) else { continue };
        let first = doc(line).filter(|_| !was_in_doc_comment);
        if let Some(reason) = fault(sign, line, prose, first) {
            faults.push(format!("{number}: {reason}: {}", line.trim()));
        }
    }
    faults
}

/// The fault of a `line` with `prose`; `first` is the text that begins a doc comment.
fn fault(sign: &str, line: &str, prose: &str, first: Option<&str>) -> Option<String> {
    if !sign.is_empty() && line.chars().count() > COLUMNS_MAX {
        return Some(format!("over {COLUMNS_MAX} columns"));
    }
    if let Some(word) = banned(prose) {
        return Some(format!("`{word}`"));
    }
    let word = words(first.filter(|_| sign == "//")?).next()?;
    is_among(word, &CLAUSES).then(|| format!("begins with `{word}`"))
}

/// The comment that stands alone in `line`, or at its end; the whole line without a `sign`.
fn comment<'a>(line: &'a str, sign: &str) -> Option<&'a str> {
    if line.trim_start().starts_with(sign) {
        return Some(line);
    }
    let (code, comment) = line.rsplit_once(&format!(" {sign} "))?;
    // Between two quotation marks it is text of the program.
    let quotes = code.matches('"').count() - code.matches("\\\"").count();
    (quotes % 2 == 0).then_some(comment)
}

fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

fn banned(prose: &str) -> Option<&str> {
    let text = prose.split('`').step_by(2);
    text.flat_map(words).find(|word| is_among(word, &BANNED))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_within = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(move |letter| !is_within(letter)).filter(|word| !word.is_empty())
}

fn is_among(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| other.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(file: &str, text: &str) -> Vec<String> {
        super::faults(sign(file).expect("prose"), text)
    }

    #[test]
    fn a_person_without_a_role_is_found_in_comments_and_documents() {
        let rust = "/// Waits.\n// Nobody's fault.\nlet nobody = 1; // or somebody\n";
        assert_eq!(
            faults("a.rs", rust),
            ["2: `Nobody`: // Nobody's fault.", "3: `somebody`: let nobody = 1; // or somebody"]
        );
        assert_eq!(faults("docs/a.md", "Whoever reads\n"), ["1: `Whoever`: Whoever reads"]);
        assert_eq!(faults(".ci/run", "#!/bin/sh\n# nobody\n"), ["2: `nobody`: # nobody"]);
        assert_eq!(faults("a.toml", "# nobody\nnobody = 1\n"), ["1: `nobody`: # nobody"]);
    }

    #[test]
    fn code_is_no_prose() {
        let rust = "let said = \"for // nobody\";\nfn a_lock_that_nobody_holds() {}\n\
                    // See a_lock_that_nobody_holds.\n// The user `nobody`.\n";
        assert_eq!(faults("a.rs", rust), [""; 0]);
        assert!(sign("a/golden.txt").is_none());
    }

    #[test]
    fn a_subject_in_a_clause_is_found_where_a_doc_comment_begins() {
        let rust = "//! What is asked.\n\n/// A size,\n/// which is even.\n/// That is all.\n\
                    fn f() {}\n/// Which is asked.\n// What follows is plain.\n";
        assert_eq!(
            faults("a.rs", rust),
            [
                "1: begins with `What`: //! What is asked.",
                "7: begins with `Which`: /// Which is asked."
            ]
        );
    }

    #[test]
    fn a_comment_that_is_too_wide_is_found_and_a_table_may_be_wide() {
        let wide = "x".repeat(COLUMNS_MAX - 3);
        assert_eq!(faults("a.rs", &format!("// {wide}\n\"{wide}{wide}\"\n")), [""; 0]);
        let [fault] = &faults("a.rs", &format!("// {wide}x\n"))[..] else { panic!("one fault") };
        assert!(fault.starts_with("1: over 100 columns: // x"));
        assert_eq!(faults("a.md", &format!("| {wide}{wide} |\n")), [""; 0]);
    }
}
