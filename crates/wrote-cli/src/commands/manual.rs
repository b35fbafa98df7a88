//! `wrote man`: prints a manual page for the command and all its subcommands.

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};

/// The sections after the subcommands, each with a title, and with terms and their meanings.
const SECTIONS: &str = include_str!("manual.txt");

/// Writes the page, in roff (`man(7)`).
pub(super) fn write(out: &mut dyn Write) -> io::Result<()> {
    // The width is fixed, so that the same source always gives the same page.
    let command = crate::args::defined(100);
    let man = Man::new(command.clone());
    // For the same reason, there is no date. clap_mangen's title would put the source in the date's
    // place.
    let source = concat!("wrote ", env!("CARGO_PKG_VERSION"));
    writeln!(out, ".TH wrote 1 \"\" \"{source}\" \"User Commands\"")?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    write_examples("SH", &command, out)?;
    for subcommand in command.get_subcommands() {
        write_subcommand("wrote", subcommand, out)?;
    }
    SECTIONS.split("\n\n").try_for_each(|section| write_section(section, out))
}

/// Writes a section for a subcommand of `parent`, and one for each of its subcommands. The sections
/// of a command's page become subsections.
fn write_subcommand(
    parent: &str,
    subcommand: &clap::Command,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = format!("{parent} {}", subcommand.get_name());
    let man = Man::new(subcommand.clone().bin_name(&name).disable_help_flag(true));
    let mut page = Vec::new();
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if subcommand.get_arguments().next().is_some() {
        man.render_options_section(&mut page)?;
    }
    Roff::new().control("SH", [name.to_uppercase().as_str()]).to_writer(out)?;
    for line in String::from_utf8_lossy(&page).lines() {
        match line.strip_prefix(".SH ") {
            Some(title) => writeln!(out, ".SS {title}")?,
            None => writeln!(out, "{line}")?,
        }
    }
    write_examples("SS", subcommand, out)?;
    subcommand.get_subcommands().try_for_each(|inner| write_subcommand(&name, inner, out))
}

/// Writes the examples at the end of a command's help, line by line.
fn write_examples(heading: &str, command: &clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let Some(help) = command.get_after_long_help().or(command.get_after_help()) else {
        return Ok(());
    };
    let help = help.to_string();
    let mut section = Roff::new();
    section.control(heading, ["EXAMPLES"]).control("nf", []);
    // The exit codes and the environment have separate sections.
    let examples = help.trim_start_matches("Examples:\n").split("\n\n").next();
    for line in examples.into_iter().flat_map(str::lines) {
        section.text([roman(line.trim_start())]);
    }
    section.control("fi", []).to_writer(out)
}

fn write_section(text: &str, out: &mut dyn Write) -> io::Result<()> {
    // An indented line continues the previous line.
    let text = text.replace("\n  ", " ");
    let mut lines = text.lines();
    let mut section = Roff::new();
    section.control("SH", lines.next());
    for (term, meaning) in lines.filter_map(|line| line.split_once(": ")) {
        section.control("TP", []).text([bold(term)]).text([roman(meaning)]);
    }
    section.to_writer(out)
}
