//! Tests of the width of the screen: no line is longer, no word is cut, and without Unicode the
//! text is pure ASCII.

use crate::text::screen::{PLAIN, exported};
use crate::text::{export, export_fit, export_loops};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use unicode_width::UnicodeWidthStr;
use wrote_jobs::import;
use wrote_report::{Content, Format, Screen};
use wrote_result::{compare, doctor, trace};

/// A narrow terminal, the usual one, and a wide one.
const WIDTHS: [usize; 3] = [60, 80, 140];
/// A width at which no word is cut and no text is shortened.
const WHOLE: usize = 2000;
/// The words of abbreviated verdicts and of their explanation.
const SHORT: [&str; 1] = [""];

/// Returns the text of the recorded document for a screen of this width.
fn shown(path: &Path, width: usize) -> String {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).unwrap();
    let schema = serde_json::from_str::<Value>(&text).unwrap()["schema"].clone();
    let screen = Screen { width, colour: false, unicode: true };
    let (format, mut out) = (Format::Table, Vec::new());
    let content = match schema.as_str() {
        Some(compare::SCHEMA) => Content::Comparison(read(&text)),
        Some(doctor::SCHEMA) => Content::Examination { of: read(&text), all: true },
        Some(trace::SCHEMA) => Content::Trace(read(&text)),
        _ => Content::Result(Box::new(import::read(&name, &text).unwrap())),
    };
    content.write(format, screen, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

/// Returns the words of a text, without its bars and drawings. A name that may be broken after a
/// hyphen or slash counts as several words.
fn words(text: &str) -> BTreeSet<&str> {
    let is_bar = |word: &&str| word.contains(|letter| ('▁'..='▏').contains(&letter));
    let drawn = ['│', '└'];
    let lines = text.lines().filter(|line| !line.contains(drawn));
    let mut all = BTreeSet::new();
    for word in lines.flat_map(str::split_whitespace).filter(|word| !is_bar(word)) {
        let ends = word.match_indices(['-', '/']).map(|(at, _)| at + 1);
        let ends: Vec<usize> = [0].into_iter().chain(ends).chain([word.len()]).collect();
        for (number, begin) in ends.iter().enumerate() {
            all.extend(ends[number + 1..].iter().map(|end| &word[*begin..*end]));
        }
    }
    all
}

/// Returns the lines of code and the commands of a document, which are never wrapped, because
/// readers copy them.
fn copied(path: &Path) -> String {
    let value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let of = |list: &Value, keys: &[&str]| {
        let each = list.as_array().into_iter().flatten();
        let texts = each.flat_map(|of| keys.iter().map(|key| of[*key].clone()).collect::<Vec<_>>());
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<_>>().join("\n")
    };
    of(&value["advice"], &["code", "with_wrote"])
}

/// Returns whether a line is wider than the screen without a reason. Code and commands are copied
/// as a whole, and a path after its label cannot be broken.
fn is_too_wide(line: &str, width: usize, copied: &str) -> bool {
    let is_code = copied.lines().any(|code| !code.trim().is_empty() && line.ends_with(code.trim()));
    let is_path = line.split_whitespace().count() <= 2 && line.contains('/');
    line.width() > width && !is_code && !is_path
}

#[test]
fn no_recorded_document_has_a_line_wider_than_the_screen_or_a_word_that_is_cut() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/pages/results", "../wrote-jobs/src/import/samples"];
    let files = folders.into_iter().flat_map(|folder| fs::read_dir(here.join(folder)).unwrap());
    let mut faults = String::new();
    for path in files.map(|file| file.unwrap().path()) {
        let name = path.file_name().unwrap().display().to_string();
        let (whole, copied) = (shown(&path, WHOLE), copied(&path));
        let known: BTreeSet<&str> = words(&whole).into_iter().chain(SHORT).collect();
        for width in WIDTHS {
            let text = shown(&path, width);
            for line in text.lines().filter(|line| is_too_wide(line, width, &copied)) {
                faults += &format!("{name} at {width}: {} columns: {line}\n", line.width());
            }
            for word in words(&text).difference(&known) {
                faults += &format!("{name} at {width}: {word}\n");
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn no_line_of_a_made_up_document_is_wider_than_any_screen_or_has_more_than_ascii() {
    let mut documents = export::documents();
    documents.extend([export_loops::curve(), export_fit::etcd()]);
    for document in documents {
        for width in 72..=200 {
            let text = exported(&document, Format::Table, Screen { width, ..PLAIN });
            // Code is meant to be copied, so its lines are not broken.
            for line in text.lines().filter(|line| !line.contains("wrote::")) {
                assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
            }
        }
        let ascii = exported(&document, Format::Table, Screen { unicode: false, ..PLAIN });
        assert!(ascii.is_ascii(), "{ascii}");
    }
}
