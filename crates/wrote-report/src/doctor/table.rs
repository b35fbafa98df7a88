//! What a person sees of an examination: what lies under the path, and each check, the worst first.

use super::{CHAPTERS, facts, facts_after, of, summary, title};
use crate::Screen;
use crate::paint::Tone;
use crate::table::Table;
use crate::target;
use std::io::{self, Write};
use wrote_result::doctor::{Check, Examination, State};

/// Labels stand here, and what they say behind them.
const LABEL_INDENT: usize = 4;
const LABEL_WIDTH: usize = 9;

/// Writes an examination for `screen`.
pub fn write(
    examination: &Examination,
    all: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let table = Table::new(screen);
    table.facts(target::facts_of(&examination.target, &examination.host), out)?;
    writeln!(out, "\n{}", table.paint.paint(Tone::Strong, &summary(examination)))?;
    for (state, chapter) in CHAPTERS {
        let checks = of(examination, state);
        if checks.is_empty() {
            continue;
        }
        writeln!(out, "\n{}", table.paint.paint(Tone::Strong, chapter))?;
        for (index, check) in checks.into_iter().enumerate() {
            if state == State::Fine && !all {
                table.line(check, out)?;
                continue;
            }
            if index > 0 {
                writeln!(out)?;
            }
            table.check(check, out)?;
        }
    }
    table.end(examination, out)
}

impl Table {
    /// A check in one paragraph.
    fn line(&self, check: &Check, out: &mut dyn Write) -> io::Result<()> {
        let text = format!("{}: {}", title(check), check.text);
        writeln!(out, "  {} {}", self.mark(check.state), self.text().wrapped(&text, LABEL_INDENT))
    }

    /// A check with all that is known of it.
    fn check(&self, check: &Check, out: &mut dyn Write) -> io::Result<()> {
        self.line(check, out)?;
        self.labelled(&facts(check), out)?;
        let Some(change) = &check.change else { return Ok(()) };
        for (number, command) in change.commands.iter().enumerate() {
            // Not wrapped: it is there to be copied.
            let label = if number == 0 { "command" } else { "" };
            writeln!(out, "    {label:<LABEL_WIDTH$}{}", crate::text::plain(command))?;
        }
        self.labelled(&facts_after(change), out)
    }

    fn labelled(&self, facts: &[(&'static str, String)], out: &mut dyn Write) -> io::Result<()> {
        for (label, text) in facts {
            let text = self.text().wrapped(text, LABEL_INDENT + LABEL_WIDTH);
            writeln!(out, "    {label:<LABEL_WIDTH$}{text}")?;
        }
        Ok(())
    }

    fn mark(&self, state: State) -> String {
        match state {
            State::Risk => self.paint.paint(Tone::Red, "!"),
            State::Advice => self.paint.paint(Tone::Yellow, "-"),
            State::Unknown => self.paint.paint(Tone::Cyan, "?"),
            State::Fine => self.paint.paint(Tone::Green, "+"),
        }
    }

    fn end(&self, examination: &Examination, out: &mut dyn Write) -> io::Result<()> {
        let said = format!(
            "Nothing was written, and no command was run. Commands need root; docs/doctor.md says what \
             each check means and where that comes from. Looked at {}.",
            examination.examined_at
        );
        writeln!(out)?;
        for line in self.text().wrapped(&said, 0).lines() {
            writeln!(out, "{}", self.paint.paint(Tone::Faint, line))?;
        }
        Ok(())
    }
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
    fn the_worst_comes_first_with_its_command_on_a_line_of_its_own() {
        let text = text(false);
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(place("! mount-barrier") < place("- scheduler of vda"), "{text}");
        assert!(place("- scheduler of vda") < place("? queue"), "{text}");
        assert!(place("? queue") < place("+ space"), "{text}");
        assert!(
            text.contains("\n    command  echo none > /sys/block/vda/queue/scheduler\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_is_fine_is_told_at_length_only_when_asked_for() {
        let (short, long) = (text(false), text(true));
        let after = |text: &str| text.split("+ space").nth(1).unwrap().contains("found");
        assert!(!after(&short), "{short}");
        assert!(after(&long), "{long}");
    }

    #[test]
    fn prose_keeps_to_the_width_of_the_screen() {
        assert!(text(true).lines().all(|line| line.width() <= 80), "{}", text(true));
    }
}
