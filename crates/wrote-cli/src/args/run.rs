//! The arguments of `wrote run`.

use super::fio::OPTION;
use super::values::words;
use super::{OutputArgs, RankArgs};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use wrote_jobs::jobs::Permissions;
use wrote_report::Format;

/// The arguments of `wrote run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// fio job files, in turn; - is standard input
    #[arg(value_name = "JOB", required_unless_present = OPTION, value_hint = ValueHint::FilePath)]
    pub jobs: Vec<PathBuf>,

    /// An option of a job, from fio's command line: `key` or `key=value`.
    #[arg(long = OPTION, id = OPTION, hide = true, allow_hyphen_values = true)]
    pub options: Vec<String>,

    /// How the result is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = words([
        ("table", "For people: tables with bars, and findings", RunFormat::Own(Format::Table)),
        ("json", "The whole result, `wrote.result/1`", RunFormat::Own(Format::Json)),
        ("csv", "One line for each job", RunFormat::Own(Format::Csv)),
        ("markdown", "To paste in an issue", RunFormat::Own(Format::Markdown)),
        ("fio-json", "fio's own JSON, for scripts and plots that read it", RunFormat::FioJson)
    ]))]
    pub format: RunFormat,

    /// Where the result goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Write over files that exist
    #[arg(long)]
    pub overwrite: bool,

    /// Read blocks that were never written, which no disk has to look for
    #[arg(long)]
    pub read_unwritten: bool,

    /// Let jobs write to the same bytes at once
    #[arg(long)]
    pub allow_overlap: bool,

    /// Run only the job of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    pub section: Vec<String>,

    /// The folder where relative file names lie [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,

    /// Refuse jobs that write
    #[arg(long)]
    pub readonly: bool,

    /// Say what would be done, and touch nothing
    #[arg(long, conflicts_with = "files")]
    pub check: bool,

    /// The settings of several ranks.
    #[command(flatten)]
    pub ranks: RankArgs,
}

/// How a result of jobs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFormat {
    /// As results of all kinds are.
    Own(Format),
    /// fio's JSON.
    FioJson,
}

impl RunArgs {
    /// The permissions of the jobs.
    pub fn permissions(&self) -> Permissions {
        Permissions {
            overwrite: self.overwrite,
            read_unwritten: self.read_unwritten,
            overlap: self.allow_overlap,
            fill: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;

    fn arguments(line: &str) -> RunArgs {
        let cli = Cli::try_parse_from(line.split(' ')).expect("a good command line");
        let Command::Run(arguments) = cli.command else { panic!("not a run: {line}") };
        arguments
    }

    #[test]
    fn nothing_is_permitted_that_was_not_said() {
        // W7
        let arguments = arguments("wrote run a.fio b.fio");
        assert_eq!(arguments.jobs, [PathBuf::from("a.fio"), PathBuf::from("b.fio")]);
        assert_eq!(arguments.permissions(), Permissions::default());
        assert_eq!(arguments.format, RunFormat::Own(Format::Table));
    }

    #[test]
    fn each_permission_is_an_argument_of_its_own() {
        let permissions = |line| arguments(line).permissions();
        let none = Permissions::default();
        assert_eq!(
            permissions("wrote run a.fio --overwrite"),
            Permissions { overwrite: true, ..none }
        );
        assert_eq!(
            permissions("wrote run a.fio --read-unwritten"),
            Permissions { read_unwritten: true, ..none }
        );
        assert_eq!(
            permissions("wrote run a.fio --allow-overlap"),
            Permissions { overlap: true, ..none }
        );
    }
}
