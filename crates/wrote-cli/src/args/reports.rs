//! The arguments of `wrote compare`, `doctor` and `report`.

use super::OutputArgs;
use super::values::{formats, words};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use wrote_report::Format;

/// The arguments of `wrote compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The older result: what wrote or fio printed as JSON; - is standard input
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath, required_unless_present = "schema")]
    pub old: Option<PathBuf>,

    /// The newer one
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath, required_unless_present = "schema")]
    pub new: Option<PathBuf>,

    /// How the comparison is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = formats(
        "For people: a table for each workload, what differs, notes",
        "The whole comparison, `wrote.compare/1`",
        "One line for each row"
    ))]
    pub format: Format,

    /// Where the comparison goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Compare rows although these settings differ: keys of the result, with or without their unit
    #[arg(long, value_name = "KEY,..", value_delimiter = ',', value_parser = key)]
    pub allow: Vec<String>,

    /// Exit with 1 if a row is slower beyond chance and by more than this (such as 5%), or if a
    /// row of OLD could not be compared
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    pub fail_if_slower: Option<f64>,

    /// Print the JSON Schema of the comparison, and compare nothing
    #[arg(long, conflicts_with = "files")]
    pub schema: bool,
}

fn key(text: &str) -> Result<String, String> {
    if wrote_result::compare::is_allowable(text) {
        return Ok(text.into());
    }
    let keys = wrote_result::compare::allowable().join(", ");
    Err(format!("{text:?}: no such setting; the settings are {keys}"))
}

/// Parses `5%` or `5`, and returns the percentage as a share of 1.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let share = number.parse::<f64>().ok().map(|percent| percent / 100.0);
    share
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| format!("{text:?}: must be a percentage from 0% to below 100%, such as 5%"))
}

/// The arguments of `wrote doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The folder, file or block device to examine
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,

    /// How the result is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = words([
        ("table", "For people: the worst last", Format::Table),
        ("json", "The whole of it, `wrote.doctor/1`", Format::Json),
        ("markdown", "To paste into an issue", Format::Markdown)
    ]))]
    pub format: Format,

    /// Where the result goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Also show the details of what is fine
    #[arg(long)]
    pub all: bool,

    /// Print the JSON Schema of the result, and examine nothing
    #[arg(long, conflicts_with = "files")]
    pub schema: bool,
}

/// The arguments of `wrote report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// JSON that wrote or fio printed; - is standard input
    #[arg(value_name = "RESULT", value_hint = ValueHint::FilePath, required = true)]
    pub results: Vec<PathBuf>,

    /// Write the page to FILE instead of standard output; FILE must not exist
    #[arg(short, long, alias = "html", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace the FILE of --output if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, one_line};
    use clap::Parser;

    fn arguments(line: &str) -> CompareArgs {
        let cli = Cli::try_parse_from(line.split(' ')).expect("a good command line");
        let Command::Compare(arguments) = cli.command else { panic!("no comparison: {line}") };
        arguments
    }

    #[test]
    fn a_percentage_is_a_part_of_the_whole() {
        let share = |line| arguments(line).fail_if_slower;
        assert_eq!(share("wrote compare a b"), None);
        assert_eq!(share("wrote compare a b --fail-if-slower 5%"), Some(0.05));
        assert_eq!(share("wrote compare a b --fail-if-slower 12.5"), Some(0.125));
    }

    #[test]
    fn a_wrong_percentage_or_key_is_refused() {
        for (line, told) in [
            ("wrote compare a b --fail-if-slower fast", "must be a percentage"),
            ("wrote compare a b --fail-if-slower 100%", "must be a percentage"),
            ("wrote compare a b --fail-if-slower -5%", "must be a percentage"),
            ("wrote compare a b --allow speed", "no such setting; the settings are"),
        ] {
            let error = Cli::try_parse_from(line.split(' ')).expect_err("must be refused");
            assert!(one_line(&error).contains(told), "{}", one_line(&error));
        }
    }

    #[test]
    fn keys_may_be_said_with_or_without_their_unit() {
        assert_eq!(arguments("wrote compare a b --allow bs,iodepth").allow, ["bs", "iodepth"]);
        assert_eq!(arguments("wrote compare a b --allow bs_bytes").allow, ["bs_bytes"]);
    }
}
