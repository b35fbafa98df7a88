//! An examination for a person: what is fine in a line, then each other check, the worst last.

use super::{CHAPTERS, facts, facts_after, of, summary, title};
use crate::Screen;
use crate::page::Page;
use crate::paint::Tone;
use crate::target;
use crate::text::plain;
use std::io::{self, Write};
use wrote_result::doctor::{Check, Examination, State};

/// The column of labels, and their width.
const LABEL_INDENT: usize = 4;
const LABEL_WIDTH: usize = 9;

/// Writes an examination for `screen`. `all` writes fine checks at length too.
pub fn write(
    examination: &Examination,
    all: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = Page { screen };
    page.facts(&target::facts(&examination.target, &examination.host), out)?;
    // A screen shows the end of a long text: there stands what matters most.
    for (state, chapter) in CHAPTERS.into_iter().rev() {
        let checks = of(examination, state);
        if !checks.is_empty() {
            page.heading(chapter, "", out)?;
        }
        if state == State::Fine && !all {
            let names: Vec<String> = checks.iter().map(|check| title(check)).collect();
            let names = format!("{} (--all has the details)", names.join(", "));
            writeln!(out, "  {}", page.prose(&names, 2))?;
            continue;
        }
        for (index, check) in checks.into_iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_check(check, page, out)?;
        }
    }
    page.heading(&summary(examination), "", out)?;
    let said = format!(
        "Nothing was written, and no command was run. Commands need root; docs/doctor.md says what \
         each check means and where that comes from. Examined at {}.",
        examination.examined_at
    );
    page.foot([said.as_str()], out)
}

fn write_check(check: &Check, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let (tone, mark) = match check.state {
        State::Risk => (Tone::Red, "!"),
        State::Advice => (Tone::Yellow, "-"),
        State::Unknown => (Tone::Cyan, "?"),
        State::Fine => (Tone::Green, "+"),
    };
    let text = format!("{}: {}", title(check), check.text);
    writeln!(out, "  {} {}", page.paint(tone, mark), page.prose(&text, LABEL_INDENT))?;
    write_facts(&facts(check), page, out)?;
    let Some(change) = &check.change else { return Ok(()) };
    for (number, command) in change.commands.iter().enumerate() {
        // Not wrapped: a reader copies it.
        let label = if number == 0 { "command" } else { "" };
        writeln!(out, "    {label:<LABEL_WIDTH$}{}", plain(command))?;
    }
    write_facts(&facts_after(change), page, out)
}

fn write_facts(facts: &[(&str, String)], page: Page, out: &mut dyn Write) -> io::Result<()> {
    facts.iter().try_for_each(|(label, text)| {
        let text = page.prose(text, LABEL_INDENT + LABEL_WIDTH);
        writeln!(out, "    {label:<LABEL_WIDTH$}{text}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::sample;
    use unicode_width::UnicodeWidthStr;

    fn text(all: bool) -> String {
        let screen = Screen { width: 80, colour: false, unicode: false };
        let mut text = Vec::new();
        write(&sample(), all, screen, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_worst_comes_last_with_its_command_on_a_line_of_its_own() {
        let text = text(false);
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(place("! mount-barrier") > place("- scheduler of vda"), "{text}");
        assert!(place("- scheduler of vda") > place("? queue"), "{text}");
        assert!(place("? queue") > place("space (--all has the details)"), "{text}");
        assert!(place("1 risk, ") > place("! mount-barrier"), "{text}");
        assert!(
            text.contains("\n    command  echo none > /sys/block/vda/queue/scheduler\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_is_fine_is_told_at_length_only_when_asked_for() {
        let (short, long) = (text(false), text(true));
        assert!(!short.contains("+ space") && short.contains("  space (--all"), "{short}");
        let check = long.split("+ space").nth(1).unwrap();
        assert!(check.split("  ? ").next().unwrap().contains("found"), "{long}");
    }

    #[test]
    fn prose_keeps_to_the_width_of_the_screen() {
        assert!(text(true).lines().all(|line| line.width() <= 80), "{}", text(true));
    }
}
