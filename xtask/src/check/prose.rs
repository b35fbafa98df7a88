//! `cargo xtask prose`: the rules of prose that a program can check, in comments, in documents and
//! in what the program prints.

mod pages;
mod phrases;
mod rules;

use super::links;
use super::sources::{self, Text};
use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{files, root};
use rules::Rules;

/// The longest line of a source.
const COLUMNS_MAX: usize = 100;
/// Words for people without a role.
const BANNED: [&str; 3] = ["nobody", "somebody", "whoever"];
/// First words that hide the subject of a doc comment in a clause.
const CLAUSES: [&str; 5] = ["what", "who", "whoever", "which", "that"];

/// Check comments, documents and printed texts against the rules of prose.
///
/// Reads the comments of Rust sources, of TOML files and of shell scripts, and whole Markdown
/// files. In the sources of crates it also reads string literals, help texts and the values of TOML
/// files, except in tests. Text in backticks is code. Each page of the book has a size, and so have
/// all pages together. Its sentences are short, a rule is defined in one of them, and links lead to
/// existing headings.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files and folders to check, from the repository's root [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

/// Checks the files that `arguments` name.
pub fn prose(arguments: &Arguments) -> Result<(), Failure> {
    let paths: Vec<&str> = arguments.paths.iter().map(String::as_str).collect();
    check(&paths)?;
    links::check()
}

/// Checks every tracked file below `paths`, or all tracked files where there are no `paths`.
pub fn check(paths: &[&str]) -> Result<(), Failure> {
    let files = files(paths)?;
    let (mut faults, mut rules) = (printed(&files)?, Rules::default());
    let mut bytes_of_pages = 0;
    for file in files {
        let Some(sign) = sign(&file) else { continue };
        let text = std::fs::read_to_string(root().join(&file)).tried(&file)?;
        faults.extend(self::faults(sign, &text).iter().map(|fault| format!("{file}:{fault}")));
        faults.extend(pages::faults(&file, &text));
        if pages::is_page(&file) {
            bytes_of_pages += text.len();
        }
        if sign == "//" {
            faults.extend(phrases_in(&text).iter().map(|fault| format!("{file}:{fault}")));
        }
        if sign.is_empty() {
            rules.read(&file, &text);
        }
    }
    faults.extend(rules.faults());
    faults.extend(pages::fault_of_all(bytes_of_pages));
    faults.iter().for_each(|fault| println!("{fault}"));
    match faults.len() {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 line breaks a rule of prose".to_owned())),
        count => Err(Failure::Failed(format!("{count} lines break a rule of prose"))),
    }
}

/// Returns the faults of printed texts in `files` of crates.
fn printed(files: &[String]) -> Result<Vec<String>, Failure> {
    let mut faults = Vec::new();
    for begin in lab::tools::repository::files(&["crates/*/src/lib.rs", "crates/*/src/main.rs"])? {
        for module in sources::modules(&begin)?.iter() {
            if module.is_test || !files.contains(&module.file) {
                continue;
            }
            let texts = sources::texts(module.tokens.clone());
            let faults_of = texts.iter().filter_map(|text| fault_of_text(text, phrases::find));
            faults.extend(faults_of.map(|fault| format!("{}:{fault}", module.file)));
        }
    }
    for file in files.iter().filter(|file| file.starts_with("crates/") && file.contains("/src/")) {
        let texts_of = match file.rsplit('.').next() {
            Some("toml") => strings_of_toml,
            Some("txt") => paragraphs,
            _ => continue,
        };
        let text = std::fs::read_to_string(root().join(file)).tried(file)?;
        let texts = texts_of(&text);
        let faults_of = texts.iter().filter_map(|text| fault_of_text(text, phrases::find));
        faults.extend(faults_of.map(|fault| format!("{file}:{fault}")));
    }
    Ok(faults)
}

/// Returns each paragraph of a text as one line.
fn paragraphs(text: &str) -> Vec<Text> {
    let mut line = 1;
    let paragraph = |lines: &str| {
        let text = Text { line, value: lines.replace('\n', " ") };
        line += lines.lines().count() + 1;
        text
    };
    text.split("\n\n").map(paragraph).collect()
}

/// Returns each value of a TOML file; a string that continues after a backslash is one.
fn strings_of_toml(text: &str) -> Vec<Text> {
    let mut texts: Vec<Text> = Vec::new();
    let mut goes_on = false;
    for (line, part) in (1..).zip(text.lines()).filter(|(_, part)| !part.starts_with('#')) {
        let value = part.strip_suffix('\\').unwrap_or(part);
        match texts.last_mut().filter(|_| goes_on) {
            Some(text) => text.value.push_str(value),
            None => texts.push(Text { line, value: value.to_owned() }),
        }
        goes_on = part.ends_with('\\');
    }
    texts
}

/// Returns the fault of a text by a search for phrases: "line: phrase: the text".
fn fault_of_text(
    Text { line, value }: &Text,
    find: fn(&str) -> Option<(&'static str, &'static str)>,
) -> Option<String> {
    const SHOWN_MAX: usize = 100;
    let (phrase, better) = find(value)?;
    let shown: String = value.trim().chars().take(SHOWN_MAX).collect();
    Some(format!("{line}: `{phrase}` ({better}): {shown:?}"))
}

/// Returns the sign before comments in this kind of file: empty if every line is prose, `None`
/// where no line is.
fn sign(file: &str) -> Option<&'static str> {
    match file.rsplit(['.', '/']).next() {
        Some("rs") => Some("//"),
        Some("toml" | "sh" | "run") => Some("#"),
        Some("md") => Some(""),
        _ => None,
    }
}

/// Returns each fault of `text`: "line: reason: the line".
fn faults(sign: &str, text: &str) -> Vec<String> {
    let mut in_doc_comment = false;
    let mut faults = too_wide(sign, text);
    for (number, line) in (1..).zip(text.lines()) {
        let was_in_doc_comment = in_doc_comment;
        in_doc_comment = doc(line).is_some();
        let Some(prose) = comment(line, sign) else { continue };
        let first = doc(line).filter(|_| !was_in_doc_comment);
        if let Some(reason) = fault(sign, prose, first) {
            faults.push(format!("{number}: {reason}: {}", line.trim()));
        }
    }
    faults
}

/// Returns the faults of phrases in the comments of a Rust source: "line: phrase: the comment".
fn phrases_in(text: &str) -> Vec<String> {
    let (mut faults, mut begin, mut comment) = (Vec::new(), 1, String::new());
    for (number, line) in (1..).zip(text.lines().chain([""])) {
        let part = line.trim_start().strip_prefix("//");
        match part.map(|part| part.trim_start_matches(['/', '!'])) {
            Some(part) => comment.push_str(part),
            None => {
                let value = std::mem::take(&mut comment);
                let text = Text { line: begin, value };
                faults.extend(fault_of_text(&text, phrases::find_in_comment));
                begin = number + 1;
            }
        }
    }
    faults
}

/// Returns the lines that are too wide. Lines of raw strings in Rust can't be broken and may be
/// wide; in other languages only comments count.
fn too_wide(sign: &str, text: &str) -> Vec<String> {
    let is_wide = |line: &str| line.chars().count() > COLUMNS_MAX;
    if sign.is_empty() || !text.lines().any(is_wide) {
        return Vec::new();
    }
    let raw_strings = if sign == "//" { sources::raw_strings(text) } else { Vec::new() };
    let lines = (1..).zip(text.lines()).filter(|(number, line)| {
        let may_be_wide = match sign {
            "//" => raw_strings.iter().any(|lines| lines.contains(number)),
            _ => comment(line, sign).is_none(),
        };
        is_wide(line) && !may_be_wide
    });
    let fault = |(number, line): (usize, &str)| {
        format!("{number}: over {COLUMNS_MAX} columns: {}", line.trim())
    };
    lines.map(fault).collect()
}

/// Returns the fault of a line with `prose`; `first` is the text that begins a doc comment.
fn fault(sign: &str, prose: &str, first: Option<&str>) -> Option<String> {
    if let Some(word) = banned(prose) {
        return Some(format!("`{word}`"));
    }
    let word = words(first.filter(|_| sign == "//")?).next()?;
    is_among(word, &CLAUSES).then(|| format!("begins with `{word}`"))
}

/// Returns the comment that is the whole line or its end; the whole line without a `sign`.
fn comment<'a>(line: &'a str, sign: &str) -> Option<&'a str> {
    if line.trim_start().starts_with(sign) {
        return Some(line);
    }
    let (code, comment) = line.rsplit_once(&format!(" {sign} "))?;
    // Between quotation marks it is part of a string.
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
    fn a_paragraph_is_one_line() {
        let texts = paragraphs("one\ntwo\n\nthree\n");
        let shown: Vec<_> = texts.iter().map(|text| (text.line, &*text.value)).collect();
        assert_eq!(shown, [(1, "one two"), (4, "three ")]);
    }

    #[test]
    fn a_string_of_toml_that_goes_on_is_one_text() {
        let texts = strings_of_toml("# A comment.\n[a]\ntext = \"\"\"\none \\\ntwo\"\"\"\n");
        let shown: Vec<_> = texts.iter().map(|text| (text.line, &*text.value)).collect();
        assert_eq!(shown, [(2, "[a]"), (3, "text = \"\"\""), (4, "one two\"\"\"")]);
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
    fn a_line_that_is_too_wide_is_found_and_a_raw_string_or_table_may_be_wide() {
        let wide = "x".repeat(COLUMNS_MAX - 3);
        for fine in [format!("// {wide}\n"), format!("f(r\"{wide}\n{wide}{wide}\");\n")] {
            assert_eq!(faults("a.rs", &fine), [""; 0]);
        }
        for line in [format!("// {wide}x"), format!("f(\"{wide}\");"), format!("{wide}();;")] {
            let [fault] = &faults("a.rs", &line)[..] else { panic!("one fault: {line}") };
            assert_eq!(*fault, format!("1: over 100 columns: {line}"));
        }
        assert_eq!(faults("a.md", &format!("| {wide}{wide} |\n")), [""; 0]);
        assert_eq!(faults("a.toml", &format!("{wide} = 1\n")), [""; 0]);
        assert_eq!(faults("a.toml", &format!("# {wide}xx\n")).len(), 1);
    }

    #[test]
    fn a_phrase_that_stops_the_reader_is_found_in_a_comment_across_its_lines() {
        let code = "g(); // it goes on\n";
        let rust =
            format!("/// The log goes\n/// on.\n{code}// `goes on`\nlet on = \"goes on\";\n");
        assert_eq!(phrases_in(&rust), ["1: `goes on` (continues): \"The log goes on.\""]);
    }

    #[test]
    fn a_phrase_that_stops_the_reader_is_found_in_a_printed_text() {
        let text = Text { line: 7, value: "\nit goes on\n".to_owned() };
        let fault = "7: `goes on` (continues): \"it goes on\"";
        assert_eq!(fault_of_text(&text, phrases::find), Some(fault.to_owned()));
    }
}
