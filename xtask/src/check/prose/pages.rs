//! Checks the pages of the book: their sizes, the length of their sentences, and their phrases.

use super::phrases;
use crate::check::links::events;
use pulldown_cmark::{Event, Tag, TagEnd};

/// The most words of a sentence, or of its parts between colons and semicolons.
const WORDS_MAX: usize = 30;

/// The most bytes of each page. A page that would grow beyond it is shortened first.
const BYTES_MAX: &[(&str, usize)] = &[
    ("CHANGELOG.md", 1_000),
    ("CONTRIBUTING.md", 5_500),
    ("README.md", 6_500),
    ("docs/SUMMARY.md", 2_000),
    ("docs/architecture.md", 11_000),
    ("docs/choosing.md", 3_500),
    ("docs/copy.md", 2_500),
    ("docs/doctor.md", 9_500),
    ("docs/durability.md", 13_500),
    ("docs/findings.md", 19_500),
    ("docs/fio.md", 14_000),
    ("docs/fit.md", 8_400),
    ("docs/glossary.md", 3_000),
    ("docs/install.md", 2_000),
    ("docs/languages.md", 2_000),
    ("docs/library.md", 12_500),
    ("docs/log-format.md", 23_500),
    ("docs/log.md", 8_500),
    ("docs/measuring.md", 9_500),
    ("docs/methodology.md", 16_500),
    ("docs/performance.md", 10_500),
    ("docs/reliability.md", 8_000),
    ("docs/results.md", 14_000),
    ("docs/scale.md", 3_000),
    ("docs/scenarios.md", 9_500),
    ("docs/serve.md", 19_000),
    ("docs/trace.md", 8_280),
];

/// The most bytes of all pages together.
const BYTES_MAX_OF_ALL: usize = 240_000;

/// Returns whether `file` is a page.
pub fn is_page(file: &str) -> bool {
    BYTES_MAX.iter().any(|(page, _)| *page == file)
}

/// Returns the fault of all pages if their `bytes` are too many.
pub fn fault_of_all(bytes: usize) -> Option<String> {
    (bytes > BYTES_MAX_OF_ALL)
        .then(|| format!("all pages: {bytes} bytes, and at most {BYTES_MAX_OF_ALL} are agreed"))
}

/// Returns the faults of the page `file`; none of a file that is not a page.
pub fn faults(file: &str, text: &str) -> Vec<String> {
    let Some(&(_, most)) = BYTES_MAX.iter().find(|(page, _)| *page == file) else {
        let is_page = file.starts_with("docs/") && file.ends_with(".md");
        return is_page.then(|| format!("{file}: no size in {}", file!())).into_iter().collect();
    };
    let mut faults = Vec::new();
    if text.len() > most {
        faults.push(format!("{file}: {} bytes, and at most {most} are agreed", text.len()));
    }
    faults.extend(blocks(text).iter().flat_map(|block| faults_of_block(file, block)));
    faults
}

fn faults_of_block(file: &str, block: &str) -> Vec<String> {
    let phrase = phrases::find(block)
        .map(|(phrase, better)| format!("{file}: `{phrase}` ({better}): {}", beginning(block)));
    let words: Vec<&str> = block.split_whitespace().collect();
    let parts = words.split_inclusive(|word| ends_part(word));
    let long = parts.filter(|part| part.len() > WORDS_MAX);
    let long = long.map(|part| {
        format!("{file}: {} words in a sentence: {}", part.len(), beginning(&part.join(" ")))
    });
    phrase.into_iter().chain(long).collect()
}

fn ends_part(word: &str) -> bool {
    word.trim_end_matches([')', '"']).ends_with(['.', '!', '?', ':', ';'])
}

/// Returns the first letters of a text.
fn beginning(text: &str) -> String {
    const SHOWN_MAX: usize = 100;
    text.chars().take(SHOWN_MAX).collect()
}

/// Returns the text of each heading, paragraph, list item and cell; code is one word in backticks.
fn blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut block, mut is_code) = (Vec::new(), String::new(), false);
    for event in events(text) {
        match event {
            Event::Text(text) if !is_code => block.push_str(&text),
            Event::Code(code) => block.push_str(&format!("`{}`", code.replace(' ', "_"))),
            Event::SoftBreak | Event::HardBreak => block.push(' '),
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_) | Tag::Heading { .. })
            | Event::End(
                TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::TableCell,
            ) => {
                blocks.push(std::mem::take(&mut block));
            }
            _ => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_grows_beyond_its_size_is_found_and_one_without_a_size() {
        assert_eq!(faults("docs/copy.md", "short\n"), [""; 0]);
        let long = "word.\n\n".repeat(1000);
        let (page, most) = BYTES_MAX.iter().min_by_key(|(_, most)| most).expect("there are pages");
        let expected = [format!("{page}: 7000 bytes, and at most {most} are agreed")];
        assert_eq!(faults(page, &long), expected);
        let [fault] = &faults("docs/new.md", "")[..] else { panic!("one fault") };
        assert!(fault.starts_with("docs/new.md: no size in "), "{fault}");
        assert_eq!(faults("lab/README.md", &long.repeat(9)), [""; 0]);
    }

    #[test]
    fn pages_that_are_too_long_together_are_found() {
        assert_eq!(fault_of_all(BYTES_MAX_OF_ALL), None);
        let fault = fault_of_all(BYTES_MAX_OF_ALL + 1).expect("a byte too many");
        assert!(fault.starts_with("all pages: "), "{fault}");
        assert!(is_page("README.md") && is_page("docs/log.md") && !is_page("lab/README.md"));
    }

    #[test]
    fn a_sentence_of_more_than_thirty_words_is_found_and_code_and_parts_are_counted_apart() {
        let words = |count: usize| "word ".repeat(count);
        for fine in [
            format!("{}end. {}end\n", words(29), words(29)),
            format!("{}end: {}`a b c`\n", words(29), words(29)),
            format!("```\n{}\n```\n", words(40)),
            format!("- {}\n- {}\n", words(20), words(20)),
            format!("| a | b |\n|---|---|\n| {} | {} |\n", words(20), words(20)),
        ] {
            assert_eq!(faults("docs/copy.md", &fine), [""; 0], "{fine}");
        }
        let [fault] = &faults("docs/copy.md", &words(31))[..] else { panic!("one fault") };
        assert!(fault.starts_with("docs/copy.md: 31 words in a sentence: word word"), "{fault}");
    }

    #[test]
    fn a_phrase_that_stops_the_reader_is_found_in_a_page_and_not_in_its_code() {
        let page = "It runs\nmeanwhile.\n\n- `meanwhile`\n\n```\nmeanwhile\n```\n";
        assert_eq!(
            faults("docs/copy.md", page),
            ["docs/copy.md: `meanwhile` (while ..): It runs meanwhile."]
        );
    }
}
