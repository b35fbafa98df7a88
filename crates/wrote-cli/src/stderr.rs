//! Lines on standard error.

use std::io::Write as _;
use wrote_report::plain;

/// Says one line on standard error, without what a terminal would obey: names of files may hold
/// anything.
pub(crate) fn say(line: &str) {
    // Where standard error is closed, no reader is left for a message about that.
    let _ = writeln!(std::io::stderr(), "{}", plain(line));
}

/// Says on standard error, in one line, why the program ends.
pub fn complain(text: &str) {
    say(&format!("wrote: {text}"));
}
