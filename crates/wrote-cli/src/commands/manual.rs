//! `wrote man`: one manual page for the command and all its subcommands.

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};

/// Facts beyond the argument definitions, as (term, meaning).
const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "Done."),
    (
        "1",
        "Failed, or 'wrote fit' found that the disk does not suit the program. One line on \
         standard error says why.",
    ),
    ("2", "Bad usage. One line on standard error says what would be right."),
    (
        "3",
        "'wrote log verify' found garbage behind a segment, and no damage: no record is lost. \
         'wrote fit' could not decide a rule.",
    ),
    (
        "129, 130, 143",
        "Ended by SIGHUP, SIGINT or SIGTERM, with everything that the run had made removed.",
    ),
];

const ENVIRONMENT: [(&str, &str); 4] = [
    ("NO_COLOR", "When set and not empty, nothing is coloured."),
    ("COLUMNS", "The width of the table where standard output is not a terminal."),
    ("TERM", "When 'dumb', there is neither colour nor a progress bar."),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "The first that is set decides whether characters beyond ASCII are used: only in UTF-8.",
    ),
];

const FILES: [(&str, &str); 4] = [
    (
        "PATH/.wrote-XXXX",
        "The folder that holds a run's files. It is removed when the run ends; 'wrote clean' \
         removes those that a killed run left.",
    ),
    (
        ".NAME.wrote-PROCESS-NUMBER",
        "A copy that is not whole yet, beside its place. Only kill -9 or a crash leaves one; \
         'wrote clean' removes it.",
    ),
    (
        "DIR/SEGMENT.torn-N",
        "What a crash left of a write to a log, kept when the log was opened next. It can be \
         removed.",
    ),
    (
        "DIR/SEGMENT.damaged-N",
        "A damaged file of a log as it was before 'wrote log repair'. It can be removed.",
    ),
];

/// Writes the page, in roff (`man(7)`).
pub(super) fn write(out: &mut dyn Write) -> io::Result<()> {
    let command = crate::args::definition();
    let man = Man::new(command.clone());
    // Without a date, so that the same source always gives the same page. clap_mangen's own title
    // would then use the source in its place.
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
    write_section("EXIT STATUS", &EXIT_STATUS, out)?;
    write_section("ENVIRONMENT", &ENVIRONMENT, out)?;
    write_section("FILES", &FILES, out)
}

/// A section for a subcommand of `parent`, in which the sections of its page are subsections, and
/// one for each of its subcommands.
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

/// The examples at the end of a command's help, line by line.
fn write_examples(heading: &str, command: &clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let Some(help) = command.get_after_long_help().or(command.get_after_help()) else {
        return Ok(());
    };
    let help = help.to_string();
    let mut section = Roff::new();
    section.control(heading, ["EXAMPLES"]).control("nf", []);
    for line in help.trim_start_matches("Examples:\n").lines() {
        section.text([roman(line.trim_start())]);
    }
    section.control("fi", []).to_writer(out)
}

fn write_section(title: &str, items: &[(&str, &str)], out: &mut dyn Write) -> io::Result<()> {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (term, meaning) in items {
        section.control("TP", []).text([bold(*term)]).text([roman(*meaning)]);
    }
    section.to_writer(out)
}
