//! An examination, to paste in an issue.

use super::{CHAPTERS, facts, facts_after, of, summary, title};
use crate::markdown::{inline, write_head};
use crate::{target, text};
use std::io::{self, Write};
use wrote_result::doctor::{Check, Examination, State};

/// Writes an examination in Markdown. `all` writes fine checks at length too.
pub fn write(examination: &Examination, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let path = format!("wrote doctor {}", examination.target.path);
    write_head(&path, &target::facts(&examination.target, &examination.host), out)?;
    writeln!(out, "\n{}.", summary(examination))?;
    for (state, chapter) in CHAPTERS {
        let checks = of(examination, state);
        if !checks.is_empty() {
            writeln!(out, "\n### {chapter}\n")?;
        }
        for check in checks {
            write_check(check, state != State::Fine || all, out)?;
        }
    }
    Ok(())
}

fn write_check(check: &Check, at_length: bool, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "- **{}**: {}", inline(&title(check)), inline(&check.text))?;
    if !at_length {
        return Ok(());
    }
    let write_facts = |facts: Vec<(&str, String)>, out: &mut dyn Write| {
        facts.iter().try_for_each(|(label, text)| writeln!(out, "  - {label}: {}", inline(text)))
    };
    write_facts(facts(check), out)?;
    let Some(change) = &check.change else { return Ok(()) };
    for command in &change.commands {
        writeln!(out, "  - command: {}", code(command))?;
    }
    write_facts(facts_after(change), out)
}

/// Returns a command as code, between more backticks than it has in a row.
fn code(command: &str) -> String {
    let plain = text::plain(command);
    let longest = plain.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let gap = if longest > 0 { " " } else { "" };
    format!("{fence}{gap}{plain}{gap}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::sample;

    #[test]
    fn commands_are_code_and_everything_else_is_plain() {
        let mut text = Vec::new();
        write(&sample(), false, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("  - command: `echo none > /sys/block/vda/queue/scheduler`\n"),
            "{text}"
        );
        assert!(text.contains("  - found: /proc/x: a\\|b\n"), "{text}");
        assert!(text.contains("- **space**: 1 GB are free\n"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn backticks_in_a_command_do_not_end_it() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a ``b`"), "``` a ``b` ```");
    }
}
