//! A report in Markdown, with the tables of GitHub Flavored Markdown, to be pasted into an issue.

use crate::Format;
use crate::table::{Column, On, Table};
use crate::text::plain;
use crate::tree::{Block, Card, Notes, Remark, Remarks, Role, Section, Style, Weight};
use std::io::{self, Write};
use wrote_result::document::Severity;

/// Writes a title, followed by the sections in their order. An empty line precedes each block.
pub fn write(title: &str, sections: &[Section], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## {}", inline(title))?;
    for section in sections {
        match section.role {
            Role::Page => continue,
            Role::Headline | Role::Facts | Role::Answer | Role::Foot => {}
            Role::Scenario => writeln!(out, "\n{}", inline(&section.lede))?,
            Role::Part | Role::Findings | Role::Advice => {
                write_heading(&section.title, &section.lede, out)?;
            }
        }
        section.blocks.iter().try_for_each(|block| write_block(block, out))?;
    }
    Ok(())
}

fn write_block(block: &Block, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Facts(facts) => {
            writeln!(out)?;
            facts.iter().try_for_each(|(name, facts)| {
                writeln!(out, "- **{}**: {}", inline(name), inline(&facts.join(", ")))
            })
        }
        Block::Heading(title, rest) => write_heading(title, rest, out),
        Block::Banner(_, done) => writeln!(out, "\n{}:", inline(done)),
        Block::Table(table) if table.on != On::Screen => write_table(table, out),
        Block::Notes(notes) => write_notes(notes, out),
        Block::Remarks(remarks) => write_remarks(remarks, out),
        Block::Cards(cards) => write_cards(cards, out),
        Block::Table(_) | Block::Figures(_) | Block::Drawing(_) | Block::Chapter(..) => Ok(()),
    }
}

fn write_heading(title: &str, rest: &str, out: &mut dyn Write) -> io::Result<()> {
    let colon = if rest.is_empty() { "" } else { ": " };
    writeln!(out, "\n### {}{colon}{}", inline(title), inline(rest))
}

fn write_notes(Notes { notes, style }: &Notes, out: &mut dyn Write) -> io::Result<()> {
    let notes = notes.iter().filter(|note| note.on != On::Screen);
    for (number, note) in notes.enumerate() {
        match style {
            Style::Lead | Style::Foot => writeln!(out, "\n{}", inline(&note.text))?,
            _ if number == 0 => writeln!(out, "\n- {}", inline(&note.text))?,
            _ => writeln!(out, "- {}", inline(&note.text))?,
        }
    }
    Ok(())
}

fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let columns: Vec<&Column> = table.shown(Format::Markdown).collect();
    writeln!(out)?;
    let mut line = |cells: Vec<String>| writeln!(out, "| {} |", cells.join(" | "));
    line(columns.iter().map(|column| inline(&column.title)).collect())?;
    let rule = |column: &&Column| if column.is_of_figures() { "---:" } else { "---" }.to_owned();
    line(columns.iter().map(rule).collect())?;
    (0..table.height()).try_for_each(|row| {
        let cell = |column: &&Column| match &column.cells[row] {
            figure if column.is_of_figures() => figure.text.clone(),
            words => inline(&words.text),
        };
        line(columns.iter().map(cell).collect())
    })
}

fn write_remarks(Remarks { remarks, is_brief }: &Remarks, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    for remark in remarks {
        let (id, text) = (inline(&remark.id), inline(&remark.text));
        match remark.weight {
            Weight::Finding(Severity::Info) => writeln!(out, "- info ({id}): {text}")?,
            Weight::Finding(_) => writeln!(out, "- **{}** ({id}): {text}", remark.weight.word())?,
            Weight::Check(_) => {
                writeln!(out, "- **{id}**: {text}")?;
                if !is_brief {
                    write_details(remark, out)?;
                }
            }
        }
    }
    Ok(())
}

fn write_details(check: &Remark, out: &mut dyn Write) -> io::Result<()> {
    let fact = |(label, text): &(String, String)| format!("{label}: {}", inline(text));
    let facts = check.facts.iter().chain(&check.before).map(fact);
    let commands = check.commands.iter().map(|command| format!("command: {}", code(command)));
    let mut lines = facts.chain(commands).chain(check.after.iter().map(fact));
    lines.try_for_each(|line| writeln!(out, "  - {line}"))
}

fn write_cards(cards: &[Card], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    for card in cards {
        let (purpose, action) = (inline(&card.purpose), inline(&card.action));
        writeln!(out, "- **{purpose}**: {action} Because: {}", inline(&card.because))?;
        for code in &card.codes {
            if card.codes.len() > 1 {
                writeln!(out, "\n  {}:", code.title)?;
            }
            writeln!(out, "\n  ```{}", code.language)?;
            for line in code.text.lines() {
                writeln!(out, "{}", format!("  {line}").trim_end())?;
            }
            writeln!(out, "  ```")?;
        }
    }
    Ok(())
}

/// Returns a command as code, enclosed in more backticks than occur in a row within it.
fn code(command: &str) -> String {
    let plain = plain(command);
    let longest = plain.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let gap = if longest > 0 { " " } else { "" };
    format!("{fence}{gap}{plain}{gap}{fence}")
}

/// Returns text on one line, with the markup of Markdown and HTML escaped.
pub fn inline(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // Within a word, as in `O_DSYNC`, an underscore is not markup.
            '_' if plain.ends_with(char::is_alphanumeric) => plain.push('_'),
            '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '[' | ']' => {
                plain.extend(['\\', character]);
            }
            control if control.is_control() => plain.push(' '),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_or_a_way_breaks_the_table() {
        assert_eq!(inline("a|b\nc*d"), "a\\|b c\\*d");
        assert_eq!(inline("/_mnt_/<b>"), "/\\_mnt_/\\<b\\>");
        assert_eq!(inline("O_DSYNC"), "O_DSYNC");
    }

    #[test]
    fn backticks_in_a_command_do_not_end_it() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a ``b`"), "``` a ``b` ```");
    }
}
