//! The capabilities of the screen (width, colour, characters), lines on standard error, and the
//! options of every command that affect both. This is a separate file because `main` and every
//! command use it.

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::io::{IsTerminal, Write as _, stderr, stdout};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use wrote_report::{Screen, plain, wrapped};

const WIDTH_DEFAULT: usize = 80;
/// The maximum width of help texts. Longer lines are hard to read.
const HELP_WIDTH_MAX: usize = 100;
/// The indentation of the second and later lines of a message, in columns.
const INDENT: usize = 2;

/// The options of every command.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(skip)]
pub struct Manner {
    /// Print no progress and no notes: only results, warnings and errors
    #[arg(short, long, global = true, hide_short_help = true)]
    quiet: bool,

    /// Print progress as a line each second, and what the library notes
    #[arg(short, long, global = true, hide_short_help = true)]
    verbose: bool,

    /// Whether what is printed has colours
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "WHEN",
        visible_alias = "colour",
        value_enum,
        default_value_t
    )]
    color: Colour,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Also in a pipe
    Always,
    /// Nowhere
    Never,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

/// The bar on the screen. Lines from the library are printed above it.
pub(crate) static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Applies the user's choices. Call this before the first output.
pub fn obey(manner: Manner) {
    let _ = MANNER.set(manner);
    if manner.verbose {
        say_logged(log::LevelFilter::Info);
    }
}

fn manner() -> Manner {
    MANNER.get().copied().unwrap_or_default()
}

/// Returns whether only results, warnings and errors are printed.
pub fn is_quiet() -> bool {
    manner().quiet
}

/// Returns whether progress is printed as lines each second, even on a terminal.
pub fn is_verbose() -> bool {
    manner().verbose
}

/// Returns whether progress is drawn, which requires a terminal that can move its cursor.
pub fn draws() -> bool {
    stderr().is_terminal() && !is_dumb() && !is_quiet() && !is_verbose()
}

/// Returns the width of a help text.
pub fn help_width() -> usize {
    stdout_screen().width.min(HELP_WIDTH_MAX)
}

/// Returns the capabilities of standard output. Its width is the terminal's, or else `COLUMNS`, or
/// else 80. Unless `--color` says otherwise, colours are used only on a terminal, if `NO_COLOR` is
/// unset or empty (the convention of no-color.org) and `TERM` is not `dumb`.
pub fn stdout_screen() -> Screen {
    screen(stdout(), WIDTH_DEFAULT)
}

/// Returns the capabilities of standard error, which are determined in the same way.
pub fn stderr_screen() -> Screen {
    screen(stderr(), WIDTH_DEFAULT)
}

/// Returns the capabilities of standard output for a list. If neither a terminal nor `COLUMNS`
/// limits the width, each row is on one line, for scripts.
pub fn list_screen() -> Screen {
    screen(stdout(), usize::MAX)
}

/// Returns the capabilities of a stream, which is `piped_width` wide if nothing limits it.
fn screen(stream: impl AsFd + IsTerminal, piped_width: usize) -> Screen {
    let is_terminal = stream.is_terminal();
    let (width, default) = match is_terminal {
        true => (terminal_width(stream), WIDTH_DEFAULT),
        false => (None, piped_width),
    };
    Screen {
        width: width.or_else(columns).unwrap_or(default),
        colour: match manner().color {
            Colour::Auto => is_terminal && !is_dumb() && !is_set("NO_COLOR"),
            colour => colour == Colour::Always,
        },
        unicode: is_utf8(),
    }
}

/// Returns the layout for a file: never coloured, and as wide as `COLUMNS`, or else 80.
pub fn file_screen() -> Screen {
    Screen { width: columns().unwrap_or(WIDTH_DEFAULT), colour: false, unicode: is_utf8() }
}

/// Returns whether `TERM` names a terminal that can neither show colours nor move its cursor.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Returns whether the locale uses UTF-8, according to the first of `LC_ALL`, `LC_CTYPE` and `LANG`
/// that is set (`locale(7)`).
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

/// Prints a line that is neither a result nor an error, unless the user wants quiet.
pub(crate) fn say(line: &str) {
    if !is_quiet() {
        print(line);
    }
}

/// Prints why the program fails, on one line of standard error.
pub fn complain(text: &str) {
    print(&format!("wrote: {text}"));
}

/// Prints a line on standard error, without terminal control characters, which file names may
/// contain. On a terminal, wraps the line between words.
fn print(line: &str) {
    let line = match terminal_width(stderr()).filter(|_| stderr().is_terminal()) {
        Some(width) => format!("{}\n", wrapped(line, width, INDENT)),
        None => format!("{}\n", plain(line)),
    };
    // If standard error is closed, no message about it could be read.
    let _ = stderr().write_all(line.as_bytes());
}

/// Prints messages up to this level that the library and the server log, as lines.
pub(crate) fn say_logged(level: log::LevelFilter) {
    struct Said;

    impl log::Log for Said {
        fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
            metadata.level() <= log::max_level()
        }

        fn log(&self, record: &log::Record<'_>) {
            if self.enabled(record.metadata()) {
                let line = || complain(&record.args().to_string());
                BAR.get().map_or_else(line, |bar| bar.suspend(line));
            }
        }

        fn flush(&self) {}
    }

    // If the logger has already been set, only the level changes.
    let _ = log::set_logger(&Said);
    log::set_max_level(log::max_level().max(level));
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
