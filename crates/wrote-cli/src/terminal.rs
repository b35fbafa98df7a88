//! The capabilities of the screen: width, colour, characters; and lines on standard error. Apart,
//! because `main` and every command need it.

use std::ffi::OsString;
use std::io::{IsTerminal, Write as _, stderr, stdout};
use std::os::fd::AsFd;
use wrote_report::{Screen, plain};

const WIDTH_DEFAULT: usize = 80;

/// Returns the capabilities of standard output. Its width is its terminal's, else `COLUMNS`, else
/// 80. It is coloured only on a terminal, if `NO_COLOR` is unset or empty (the convention of
/// no-color.org) and `TERM` is not `dumb`.
pub fn stdout_screen() -> Screen {
    screen(stdout(), WIDTH_DEFAULT)
}

/// Returns the capabilities of standard error, in the same way.
pub fn stderr_screen() -> Screen {
    screen(stderr(), WIDTH_DEFAULT)
}

/// Returns the capabilities of standard output for a list, which has a row per line for scripts
/// where neither a terminal nor `COLUMNS` limits it.
pub fn list_screen() -> Screen {
    screen(stdout(), usize::MAX)
}

/// Returns the capabilities of a stream, `piped_width` wide where nothing limits it.
fn screen(stream: impl AsFd + IsTerminal, piped_width: usize) -> Screen {
    let is_terminal = stream.is_terminal();
    let (width, default) = match is_terminal {
        true => (terminal_width(stream), WIDTH_DEFAULT),
        false => (None, piped_width),
    };
    Screen {
        width: width.or_else(columns).unwrap_or(default),
        colour: is_terminal && !is_dumb() && !is_set("NO_COLOR"),
        unicode: is_utf8(),
    }
}

/// Returns the layout of a file: `COLUMNS` wide, or 80, and never coloured.
pub fn file_screen() -> Screen {
    Screen { width: columns().unwrap_or(WIDTH_DEFAULT), colour: false, unicode: is_utf8() }
}

/// Returns whether `TERM` names a terminal that can neither colour nor move its cursor.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Returns whether the locale's characters are UTF-8. The first of `LC_ALL`, `LC_CTYPE` and `LANG`
/// that is set decides (`locale(7)`).
pub fn is_utf8() -> bool {
    names_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os))
}

fn names_utf8(locale: [Option<OsString>; 3]) -> bool {
    let chosen = locale.into_iter().flatten().find(|value| !value.is_empty());
    let chosen = chosen.unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    chosen.ends_with("utf-8") || chosen.ends_with("utf8")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn terminal_width(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0)
}

/// Prints one line on standard error, without characters that a terminal would obey: file names may
/// hold anything.
pub(crate) fn say(line: &str) {
    // If standard error is closed, no message about that can be read.
    let _ = writeln!(std::io::stderr(), "{}", plain(line));
}

/// Prints on standard error, in one line, why the program ends.
pub fn complain(text: &str) {
    say(&format!("wrote: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locale(all: &str, ctype: &str, lang: &str) -> [Option<OsString>; 3] {
        [all, ctype, lang].map(|value| (value != "unset").then(|| value.into()))
    }

    #[test]
    fn the_first_locale_variable_that_is_set_decides() {
        assert!(names_utf8(locale("unset", "unset", "en_GB.UTF-8")));
        assert!(names_utf8(locale("", "C.utf8", "C")));
        assert!(!names_utf8(locale("C", "unset", "en_GB.UTF-8")));
        assert!(!names_utf8(locale("unset", "unset", "unset")));
        assert!(!names_utf8(locale("unset", "unset", "de_DE.ISO-8859-1")));
    }
}
