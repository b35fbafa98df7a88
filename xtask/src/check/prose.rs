//! `cargo xtask prose`: checks comments, documents and the program's output against those rules of
//! prose that a program can check. The phrases are in `phrases.txt`.

use super::links::{self, events};
use super::sources::{self, Text};
use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{files, root};
use pulldown_cmark::{Event, Tag, TagEnd};
use std::sync::LazyLock;

/// The maximum width of a line of source.
const COLUMNS_MAX: usize = 100;
/// The maximum number of characters that are shown of a text with a fault.
const SHOWN_MAX: usize = 100;

/// Check comments, documents and printed texts against the rules of prose.
///
/// Reads the comments of Rust sources, of TOML files and of shell scripts, and whole Markdown
/// files. In the sources of crates it also reads string literals, help texts and the values of TOML
/// files, except in tests. Text in backticks is code. Links lead to existing headings.
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
    links::check()?;
    links::check_paths()
}

/// Checks every file below `paths`, or all files if there are no `paths`.
pub fn check(paths: &[&str]) -> Result<(), Failure> {
    let files = files(paths)?;
    let mut faults = printed(&files)?;
    for file in files {
        let Some(sign) = sign(&file) else { continue };
        let text = std::fs::read_to_string(root().join(&file)).tried(&file)?;
        faults.extend(self::faults(sign, &text).iter().map(|fault| format!("{file}:{fault}")));
    }
    faults.iter().for_each(|fault| println!("{fault}"));
    match faults.len() {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 line breaks a rule of prose".to_owned())),
        count => Err(Failure::Failed(format!("{count} lines break a rule of prose"))),
    }
}

/// Returns the sign before comments in this kind of file; an empty text if every line is prose, and
/// `None` if no line is.
fn sign(file: &str) -> Option<&'static str> {
    match file.rsplit(['.', '/']).next() {
        Some("rs") => Some("//"),
        Some("toml" | "sh" | "run") => Some("#"),
        Some("md") => Some(""),
        _ => None,
    }
}

/// Returns the faults of printed texts in `files` of crates.
fn printed(files: &[String]) -> Result<Vec<String>, Failure> {
    let mut faults = Vec::new();
    let mut add = |file: &str, texts: &[Text]| {
        let faults_of = texts.iter().filter_map(|text| fault(text, &[Where::Everywhere]));
        faults.extend(faults_of.map(|fault| format!("{file}:{fault}")));
    };
    for module in sources::modules()?.iter().filter(|module| files.contains(&module.file)) {
        add(&module.file, &sources::texts(module.tokens.clone()));
    }
    let is_printed = |file: &&String| {
        let is_text = file.ends_with(".toml") || file.ends_with(".txt");
        is_text && file.starts_with("crates/") && file.contains("/src/")
    };
    for file in files.iter().filter(is_printed) {
        add(file, &paragraphs(&std::fs::read_to_string(root().join(file)).tried(file)?));
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

/// Returns the faults of `text`, each as "line: reason: the line".
fn faults(sign: &str, text: &str) -> Vec<String> {
    use Where::{Beginning, Comment, Everywhere};
    let of = |text: &Text, is_doc: bool| match sign {
        "//" if is_doc => fault(text, &[Everywhere, Comment, Beginning]),
        "//" => fault(text, &[Everywhere, Comment]),
        _ => fault(text, &[Everywhere]),
    };
    let mut faults = too_wide(sign, text);
    if sign.is_empty() {
        faults.extend(blocks(text).iter().filter_map(|block| of(block, false)));
    } else {
        faults.extend(comments(sign, text).iter().filter_map(|(text, is_doc)| of(text, *is_doc)));
    }
    faults
}

/// Returns the lines with comments that are too wide. For code, rustfmt limits the width.
fn too_wide(sign: &str, text: &str) -> Vec<String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| {
        line.chars().count() > COLUMNS_MAX && !sign.is_empty() && comment(line, sign).is_some()
    });
    let fault = |(number, line): (usize, &str)| {
        format!("{number}: over {COLUMNS_MAX} columns: {}", line.trim())
    };
    lines.map(fault).collect()
}

/// Returns the comments of a source, joined if they are on adjacent lines. The flag marks doc
/// comments.
fn comments(sign: &str, text: &str) -> Vec<(Text, bool)> {
    let mut comments: Vec<(Text, bool)> = Vec::new();
    let mut goes_on = false;
    for (line, words) in (1..).zip(text.lines()) {
        let Some(comment) = comment(words, sign) else {
            goes_on = false;
            continue;
        };
        let is_whole = words.trim_start().starts_with(sign);
        let part = comment.trim_start().trim_start_matches(['/', '!', '#']);
        match comments.last_mut().filter(|_| goes_on && is_whole) {
            Some((text, _)) => text.value.push_str(part),
            None => {
                let is_doc = ["///", "//!"].iter().any(|doc| words.trim_start().starts_with(doc));
                comments.push((Text { line, value: part.to_owned() }, is_doc));
            }
        }
        goes_on = is_whole;
    }
    comments
}

/// Returns the comment that the line consists of or ends with; `None` if there is none.
fn comment<'a>(line: &'a str, sign: &str) -> Option<&'a str> {
    if line.trim_start().starts_with(sign) {
        return Some(line);
    }
    let (code, comment) = line.rsplit_once(&format!(" {sign} "))?;
    // After an odd number of quotation marks, the sign is part of a string.
    let quotes = code.matches('"').count() - code.matches("\\\"").count();
    (quotes % 2 == 0).then_some(comment)
}

/// Returns the text of each heading, paragraph, list item and table cell of a Markdown document,
/// with code in backticks.
fn blocks(text: &str) -> Vec<Text> {
    let (mut blocks, mut block, mut is_code) = (Vec::new(), String::new(), false);
    for (event, range) in events(text).into_offset_iter() {
        match event {
            Event::Text(text) if !is_code => block.push_str(&text),
            Event::Code(code) => block.push_str(&format!("`{code}`")),
            Event::SoftBreak | Event::HardBreak => block.push(' '),
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_) | Tag::Heading { .. })
            | Event::End(
                TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::TableCell,
            ) => {
                let line = text[..range.start].matches('\n').count() + 1;
                blocks.push(Text { line, value: std::mem::take(&mut block) });
            }
            _ => {}
        }
    }
    blocks
}

/// The texts in which a phrase is a fault.
#[derive(Clone, Copy, PartialEq)]
enum Where {
    Everywhere,
    Comment,
    /// The first words of a doc comment, where the phrase would hide the subject in a clause.
    Beginning,
}

/// A phrase that makes the reader stumble.
struct Phrase {
    place: Where,
    words: &'static str,
    better: &'static str,
    /// The words after which the phrase is allowed.
    unless_after: Vec<&'static str>,
}

static PHRASES: LazyLock<Vec<Phrase>> = LazyLock::new(|| {
    let (mut phrases, mut place) = (Vec::new(), Where::Everywhere);
    for line in include_str!("phrases.txt").lines() {
        match line {
            "[everywhere]" => place = Where::Everywhere,
            "[in comments]" => place = Where::Comment,
            "[at the beginning of a doc comment]" => place = Where::Beginning,
            _ => {}
        }
        let Some((words, better)) = line.split_once(" = ") else { continue };
        let (better, after) = better.split_once(", unless after ").unwrap_or((better, ""));
        let unless_after = after.split(", ").filter(|word| !word.is_empty()).collect();
        phrases.push(Phrase { place, words, better, unless_after });
    }
    phrases
});

/// Returns the first fault of a text, as "line: `phrase` (better): the text". Text in backticks is
/// treated as code.
fn fault(Text { line, value }: &Text, places: &[Where]) -> Option<String> {
    let prose = value.split('`').step_by(2).flat_map(str::split_whitespace);
    let prose = prose.collect::<Vec<_>>().join(" ").to_lowercase().replace("no longer", "not");
    let begins_with_code = value.trim_start().starts_with('`');
    let is_here =
        |place: &Where| places.contains(place) && !(begins_with_code && *place == Where::Beginning);
    let mut phrases = PHRASES.iter().filter(|phrase| is_here(&phrase.place));
    let Phrase { words, better, .. } = phrases.find(|phrase| phrase.is_in(&prose))?;
    let shown: String = value.trim().chars().take(SHOWN_MAX).collect();
    Some(format!("{line}: `{words}` ({better}): {shown:?}"))
}

impl Phrase {
    /// Returns whether `prose` contains the phrase as whole words.
    fn is_in(&self, prose: &str) -> bool {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        prose.match_indices(self.words).any(|(begin, _)| {
            let (before, after) = (&prose[..begin], &prose[begin + self.words.len()..]);
            let last = before.split(|letter| !is_word(letter)).rfind(|word| !word.is_empty());
            !before.ends_with(is_word)
                && !after.starts_with(is_word)
                && (self.place != Where::Beginning || before.is_empty())
                && !last.is_some_and(|last| self.unless_after.contains(&last))
        })
    }
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
    fn a_phrase_is_found_in_comments_across_their_lines_and_in_documents() {
        let rust = "/// The log goes\n/// on.\ng(); // it goes on\n// `goes on`\nf(\"goes on\");\n";
        let found = [
            "1: `goes on` (continues): \"The log goes on.\"",
            "3: `goes on` (continues): \"it goes on\"",
        ];
        assert_eq!(faults("a.rs", rust), found);
        let nobody = |line: u32, text: &str| format!("{line}: `nobody` (name the actor): {text:?}");
        assert_eq!(
            faults("docs/a.md", "# A\n\n- Nobody\n  reads.\n"),
            [nobody(3, "Nobody reads.")]
        );
        assert_eq!(faults(".ci/run", "#!/bin/sh\n\n# nobody\n"), [nobody(3, "nobody")]);
        assert_eq!(faults("a.toml", "# nobody\nnobody = 1\n"), [nobody(1, "nobody")]);
    }

    #[test]
    fn code_is_not_prose() {
        let rust = "let said = \"for // nobody\";\nfn a_lock_that_nobody_holds() {}\n\
                    // See a_lock_that_nobody_holds.\n// The user `nobody`.\n";
        assert_eq!(faults("a.rs", rust), [""; 0]);
        assert_eq!(faults("a.md", "```\nnobody\n```\n"), [""; 0]);
        assert!(sign("a/golden.txt").is_none());
    }

    #[test]
    fn a_subject_in_a_clause_is_found_where_a_doc_comment_begins() {
        let rust = "//! What is asked.\n\n/// A size,\n/// which is even.\n/// That is all.\n\
                    fn f() {}\n/// Which is asked.\n// What follows is plain.\n\n// What else.\n";
        let found = faults("a.rs", rust);
        let begins = ["1: `what` (name the subject)", "7: `which` (name the subject)"];
        assert!(
            found.len() == 2 && found[0].starts_with(begins[0]) && found[1].starts_with(begins[1]),
            "{found:?}"
        );
    }

    #[test]
    fn a_comment_that_is_too_wide_is_found_and_a_table_may_be_wide() {
        let wide = "x".repeat(COLUMNS_MAX - 3);
        assert_eq!(faults("a.rs", &format!("// {wide}\n")), [""; 0]);
        let too_wide = format!("// {wide}x");
        assert_eq!(faults("a.rs", &too_wide), [format!("1: over 100 columns: {too_wide}")]);
        assert_eq!(faults("a.md", &format!("| {wide}{wide} |\n")), [""; 0]);
        assert_eq!(faults("a.toml", &format!("{wide}{wide} = 1\n# {wide}xx\n")).len(), 1);
    }

    #[test]
    fn a_phrase_is_whole_words_in_any_case_and_may_have_exceptions() {
        let text = |value: &str| Text { line: 1, value: value.to_owned() };
        let is_fault = |value: &str| fault(&text(value), &[Where::Everywhere]).is_some();
        for bad in ["Meanwhile it runs", "it goes\n  on", "{size} a GB", "{text} is no number"] {
            assert!(is_fault(bad), "{bad}");
        }
        for fine in [
            "an argon lamp",
            "a gbit",
            "ergo one",
            "no-go on",
            "once `go on` is run",
            "there is no file",
            "the log is no longer open",
            "There are no trims",
            "is nothing",
            "Removes the files of which none is open.",
        ] {
            assert!(!is_fault(fine), "{fine}");
        }
        let in_comment = |value: &str| fault(&text(value), &[Where::Comment]).is_some();
        assert!(
            in_comment("Files of which none is open.") && in_comment("The size, and that of it.")
        );
        assert!(!in_comment("Threads, each of which writes."));
    }
}
