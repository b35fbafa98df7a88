//! The languages of a comparison: the failures, each with its reason, and a list of all languages.

use crate::Screen;
use crate::paint::Tone;
use crate::table::{self, Column, Keep, Table, Text};
use crate::text::{Page, gathered};
use crate::tree::Section;
use std::io::{self, Write};
use wrote_result::document::{Document, Language, State};

/// Returns the lists of the languages that failed, were not built, or are not installed; empty if
/// the result has no languages.
pub fn sections<'a>(document: &Document) -> Vec<Section<'a>> {
    let languages = || document.languages.iter().flatten();
    let of_state = |state: State| {
        let of = languages().filter(move |language| language.state == state);
        // Languages with the same text share a line.
        let lines = gathered(of.map(|language| (told(language).1, language.name.as_str())));
        lines.into_iter().map(|(told, names)| format!("{}: {told}", names.join(", "))).collect()
    };
    let failures = languages().flat_map(|language| &language.failures);
    let failed = failures.map(|(row, because)| format!("{row}: {because}")).collect();
    let lists = [
        ("Failed", failed),
        ("Not built", of_state(State::BuildFailed)),
        ("Not installed", of_state(State::Missing)),
    ];
    lists.into_iter().filter_map(|(title, lines)| Section::list(title, lines)).collect()
}

/// The minimum width of the version, which is broken into lines. If a screen leaves less space, the
/// column HOW is dropped.
const VERSION_WIDTH_MIN: usize = 30;

/// Writes a table of all languages, each with its version or the command to install it.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_languages(
    languages: &[Language],
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let always = Keep::Always;
    let state = |of: &Language| {
        let (word, text) = told(of);
        let tone = match of.state {
            State::Ready => Tone::Plain,
            State::Missing => Tone::Yellow,
            State::BuildFailed => Tone::Red,
        };
        let text = if word.is_empty() { text } else { format!("{word}: {text}") };
        Text { tone, ..text.into() }
    };
    let columns = vec![
        Column::words("ID", always, languages, |of| &*of.id).kept(),
        Column::words("LANGUAGE", always, languages, |of| &*of.name).kept(),
        Column::words("HOW", Keep::If(0), languages, |of| &*of.way).kept(),
        Column::words("VERSION", always, languages, state).kept().flexible(1, VERSION_WIDTH_MIN),
    ];
    table::write(&Table::of("Languages", columns), Page { screen }, out)
}

/// Returns a word for a language that can't be run, and a text: the version, or the command to
/// install it and the reason.
fn told(language: &Language) -> (&'static str, String) {
    let because = || language.because.clone();
    match language.state {
        State::Ready => ("", language.version.clone().unwrap_or_default()),
        State::Missing => {
            let told = language.install.clone().into_iter().chain(because());
            ("missing", told.collect::<Vec<_>>().join("; "))
        }
        State::BuildFailed => {
            ("not built", because().unwrap_or_else(|| "its compiler said nothing".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    fn language(id: &str, name: &str, state: State) -> Language {
        Language {
            id: id.into(),
            name: name.into(),
            way: "its own writer, 8 KiB".into(),
            state,
            version: (state == State::Ready).then(|| format!("{id} 1.2.3 (Debian 1.2.3-4)")),
            because: (state == State::Missing).then(|| format!("{id}: not found in PATH")),
            install: (state == State::Missing).then(|| format!("apt install {id}")),
            failures: BTreeMap::new(),
        }
    }

    fn list(width: usize) -> String {
        let languages = [
            language("cpp", "C++ read/write", State::Ready),
            language("cpp-get-put", "C++ get/put", State::Ready),
            language("zig", "Zig", State::Missing),
        ];
        let mut text = Vec::new();
        let screen = Screen { width, colour: false, unicode: false };
        write_languages(&languages, screen, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_list_has_a_line_for_each_language_with_its_version_or_how_it_is_installed() {
        assert_eq!(
            list(100),
            "ID           LANGUAGE        HOW                    VERSION\n\
             cpp          C++ read/write  its own writer, 8 KiB  cpp 1.2.3 (Debian 1.2.3-4)\n\
             cpp-get-put  C++ get/put     its own writer, 8 KiB  cpp-get-put 1.2.3 (Debian \
             1.2.3-4)\n\
             zig          Zig             its own writer, 8 KiB  missing: apt install zig; zig: \
             not found in PATH\n"
        );
    }

    #[test]
    fn a_narrow_screen_does_without_how_and_breaks_versions() {
        assert_eq!(
            list(60),
            "ID           LANGUAGE        VERSION\n\
             cpp          C++ read/write  cpp 1.2.3 (Debian 1.2.3-4)\n\
             cpp-get-put  C++ get/put     cpp-get-put 1.2.3 (Debian\n\
             \x20                            1.2.3-4)\n\
             zig          Zig             missing: apt install zig; zig:\n\
             \x20                            not found in PATH\n"
        );
    }
}
