//! Every language, with its version or the way to install it.

use crate::Screen;
use crate::page::Page;
use crate::paint::Tone;
use crate::table::{GAP, padded};
use crate::text::plain;
use itertools::Itertools;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::langs::{Language, State};

const TITLES: [&str; 4] = ["ID", "LANGUAGE", "HOW", "VERSION"];
/// The version is broken into lines. A screen that leaves it less room than this has no HOW.
const VERSION_WIDTH_MIN: usize = 30;

/// Writes a table of every language, with its version or the way to install it.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_languages(
    languages: &[Language],
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = Page { screen };
    let cells: Vec<[String; 3]> =
        languages.iter().map(|of| [&of.id, &of.name, &of.way].map(|text| plain(text))).collect();
    let width = |column: usize| {
        let cells = cells.iter().map(|line| line[column].width());
        cells.max().unwrap_or(0).max(TITLES[column].len())
    };
    let widths = [width(0), width(1), width(2)];
    let taken = |count: usize| widths[..count].iter().map(|width| width + GAP.len()).sum();
    let shown = if taken(3) + VERSION_WIDTH_MIN <= screen.width { 3 } else { 2 };
    let begin = |texts: [&str; 3]| -> String {
        let cells = texts.iter().zip(widths).take(shown);
        cells.map(|(text, width)| padded(text, width) + GAP).collect()
    };
    let titles = begin([TITLES[0], TITLES[1], TITLES[2]]) + TITLES[3];
    writeln!(out, "{}", page.paint(Tone::Faint, &titles))?;
    for (language, [id, name, how]) in languages.iter().zip(&cells) {
        let (tone, told) = told(language);
        let told = page.wide(&told, taken(shown));
        let mut lines = told.lines();
        let first = page.paint(tone, lines.next().unwrap_or_default());
        writeln!(out, "{}", (begin([id, name, how]) + &first).trim_end())?;
        lines.try_for_each(|line| writeln!(out, "{}", page.paint(tone, line)))?;
    }
    Ok(())
}

fn told(language: &Language) -> (Tone, String) {
    let because = language.because.as_deref().unwrap_or_default();
    match language.state {
        State::Ready => (Tone::Plain, language.version.clone().unwrap_or_default()),
        State::Missing => {
            let install = language.install.as_deref().unwrap_or_default();
            let mut told = [install, because].into_iter().filter(|text| !text.is_empty());
            (Tone::Yellow, format!("missing: {}", told.join("; ")))
        }
        State::BuildFailed => (Tone::Red, format!("not built: {because}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(id: &str, name: &str, state: State) -> Language {
        Language {
            id: id.into(),
            name: name.into(),
            way: "its own writer, 8 KiB".into(),
            reads: None,
            lines: None,
            state,
            version: (state == State::Ready).then(|| format!("{id} 1.2.3 (Debian 1.2.3-4)")),
            because: (state == State::Missing).then(|| format!("{id}: not found in PATH")),
            install: (state == State::Missing).then(|| format!("apt install {id}")),
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
             cpp-get-put  C++ get/put     its own writer, 8 KiB  cpp-get-put 1.2.3 (Debian 1.2.3-4)\n\
             zig          Zig             its own writer, 8 KiB  missing: apt install zig; zig: not found in PATH\n"
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
