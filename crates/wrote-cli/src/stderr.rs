//! Lines on standard error.

use std::io::Write as _;
use wrote_report::plain;

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
