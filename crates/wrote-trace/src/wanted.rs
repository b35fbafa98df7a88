//! The events that `watch` observes in addition to the calls that change files, such as a program's
//! signs that something is saved. They have a small module of their own because `watch` and its
//! submodules all need them.

use regex::bytes::{Regex, RegexBuilder};
use std::str::FromStr;
use wrote_result::trace::Ack;

/// The events that are observed in addition to the calls that change files.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How the program signals that something is saved.
    pub ack: Sign,
    /// Whether the program may use io_uring.
    pub io_uring: bool,
    /// Whether the data of writes is read.
    pub data: bool,
    /// Whether daemons that the program leaves behind are watched until they exit.
    pub daemons: bool,
    /// Whether files are judged as if they were on a disk with a journal, wherever they are.
    pub on_disk: bool,
}

/// A sign that something is saved.
#[derive(Clone, Debug)]
pub enum Sign {
    /// The program's exit.
    Exit,
    /// A write to its standard output.
    Stdout,
    /// A write to a socket.
    Socket,
    /// A write that matches this expression, to the standard output or error, or to a socket.
    Text(Regex),
}

impl FromStr for Sign {
    type Err = String;

    /// Parses `exit`, `stdout`, `socket`, or a regular expression between slashes.
    fn from_str(text: &str) -> Result<Sign, String> {
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        match (text, inner) {
            ("exit", _) => Ok(Sign::Exit),
            ("stdout", _) => Ok(Sign::Stdout),
            ("socket", _) => Ok(Sign::Socket),
            (_, Some(inner)) => {
                // A parse error has several lines, with the reason in the last one.
                let reason = |error: regex::Error| {
                    let text = error.to_string();
                    text.lines().last().unwrap_or_default().to_owned()
                };
                let lines = RegexBuilder::new(inner).multi_line(true).build();
                lines.map(Sign::Text).map_err(reason)
            }
            _ => Err("must be exit, stdout, socket, or /REGEX/".into()),
        }
    }
}

impl Sign {
    /// Returns the kind of sign, as the document names it.
    pub fn kind(&self) -> Ack {
        match self {
            Sign::Exit => Ack::Exit,
            Sign::Stdout => Ack::Stdout,
            Sign::Socket => Ack::Socket,
            Sign::Text(_) => Ack::Text,
        }
    }

    /// Returns the regular expression of [`Sign::Text`]; `None` for other signs.
    pub fn text(&self) -> Option<String> {
        match self {
            Sign::Text(text) => Some(text.as_str().into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_a_word_or_an_expression_between_slashes() {
        let kind = |text: &str| text.parse::<Sign>().map(|sign| sign.kind());
        assert_eq!(kind("stdout"), Ok(Ack::Stdout));
        assert_eq!(kind("/saved|OK/"), Ok(Ack::Text));
        assert_eq!(kind("stdot"), Err("must be exit, stdout, socket, or /REGEX/".into()));
        assert_eq!(kind("/(/"), Err("error: unclosed group".into()));
    }
}
