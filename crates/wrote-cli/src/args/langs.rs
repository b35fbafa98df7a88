//! The arguments of `wrote langs`, and their conversion into a request.

use super::OutputArgs;
use super::values::{formats, many, words};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_bench::langs::{Kind, Request};
use wrote_report::Format;
use wrote_result::units;

/// The arguments of `wrote langs`.
#[derive(Debug, Args)]
pub struct LangsArgs {
    /// The folder to write in
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::DirPath)]
    pub path: PathBuf,

    /// How the result is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = formats(
        "For people: a table for each workload, the fastest first",
        "The whole result, `wrote.result/1`",
        "One line for each run of each language in each workload"
    ))]
    pub format: Format,

    /// Where the result goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Run only these languages, by the ids of --list
    #[arg(long, value_name = "LANG,..", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Do only these workloads
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = words([
        ("bytes", "Bytes written one at a time, and read one at a time", Kind::Bytes),
        ("save", "A short text saved again and again, with and without sync", Kind::Save),
        ("lines", "Short lines appended", Kind::Lines),
        ("log", "Lines by 64 tasks, each durable; by languages of --add", Kind::Log)
    ]))]
    pub workloads: Vec<Kind>,

    /// Time of the whole run, in which each language moves as much as it can [default: 5min]
    ///
    /// A trial run of each program finds how much that is, 256MB, 1000 saves and 1M lines at most
    /// in a run. --size, --saves and --lines fix the amount of all; then nothing limits the time.
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration,
        allow_hyphen_values = true)]
    pub within: Option<Duration>,

    /// How many bytes are written and read one at a time, without a time limit: 256MB
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, allow_hyphen_values = true)]
    pub size: Option<u64>,

    /// Runs of each language in each workload, from 1 to 1000; a trial before them is not counted
    #[arg(long, value_name = "N", default_value = "5",
        value_parser = units::parse_count::<{ RUNS_MAX }>, allow_hyphen_values = true)]
    pub runs: u32,

    /// How often each text is saved in a run, without a time limit, from 1 to 1000000
    #[arg(long, value_name = "N", value_parser = units::parse_count::<{ SAVES_MAX }>,
        allow_hyphen_values = true)]
    pub saves: Option<u32>,

    /// How many lines of 64 bytes are appended, without a time limit: 100k, 1M
    #[arg(long, value_name = "N", value_parser = many, allow_hyphen_values = true)]
    pub lines: Option<u64>,

    /// Also read bytes after dropping the file from the page cache
    #[arg(long)]
    pub drop_caches: bool,

    /// How long one run of a program may take; one that takes longer is considered hung and ended
    #[arg(long, value_name = "TIME", default_value = "15min", value_parser = units::parse_duration,
        allow_hyphen_values = true)]
    pub timeout: Duration,

    /// Also run the language of FOLDER: a manifest.toml and a program; may be given several times
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub add: Vec<PathBuf>,

    /// List all languages, or what --only names, with the version of each or how it is installed,
    /// and measure nothing
    #[arg(long, conflicts_with = "files")]
    pub list: bool,
}

const RUNS_MAX: u32 = 1000;
const SAVES_MAX: u32 = 1_000_000;

impl LangsArgs {
    /// Returns the request. Programs are built below `cache`; `command` is the command line as
    /// given.
    pub fn request(&self, cache: PathBuf, command: Vec<String>) -> Request {
        Request {
            only: self.only.clone(),
            workloads: self.workloads.clone(),
            add: self.add.clone(),
            size_bytes: self.size,
            runs: self.runs,
            saves: self.saves,
            lines: self.lines,
            within: self.within,
            began: Some(Instant::now()),
            drop_caches: self.drop_caches,
            timeout: self.timeout,
            // Without `/proc`, the path of this program is unknown, and the rows of wrote itself
            // are left out.
            wrote: std::env::current_exe().ok(),
            command,
            commit: crate::commit(),
            ..Request::new(self.path.clone(), cache)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, one_line};
    use clap::Parser;

    fn request(line: &str) -> Request {
        let cli = Cli::try_parse_from(line.split(' ')).expect("a good command line");
        let Command::Langs(arguments) = cli.command else { panic!("no languages: {line}") };
        arguments.request("/cache".into(), vec!["wrote".into()])
    }

    #[test]
    fn unset_options_are_those_of_the_library() {
        let (said, usual) = (request("wrote langs"), Request::new(".".into(), "/c".into()));
        assert_eq!(said.path, usual.path);
        assert_eq!((said.size_bytes, said.runs), (usual.size_bytes, usual.runs));
        assert_eq!((said.saves, said.lines), (usual.saves, usual.lines));
        assert_eq!((said.timeout, said.drop_caches), (usual.timeout, usual.drop_caches));
        assert!(said.only.is_empty() && said.workloads.is_empty() && said.add.is_empty());
        assert_eq!((said.within, said.size_bytes), (None, None));
        assert_eq!(said.cache, PathBuf::from("/cache"));
        assert!(said.wrote.is_some_and(|wrote| wrote.is_absolute()));
    }

    #[test]
    fn every_set_option_reaches_the_comparison() {
        let said = request(
            "wrote langs /a --only c,cpp-get-put --workloads lines,bytes --size 25MB --runs 2 \
             --saves 20 --lines 100k --drop-caches --timeout 2s --add one --add two",
        );
        assert_eq!(said.path, PathBuf::from("/a"));
        assert_eq!(said.only, ["c", "cpp-get-put"]);
        assert_eq!(said.workloads, [Kind::Lines, Kind::Bytes]);
        assert_eq!((said.size_bytes, said.runs), (Some(25_000_000), 2));
        assert_eq!((said.saves, said.lines), (Some(20), Some(100_000)));
        assert_eq!((said.timeout, said.drop_caches), (Duration::from_secs(2), true));
        assert_eq!(said.add, [PathBuf::from("one"), PathBuf::from("two")]);
    }

    #[test]
    fn senseless_options_are_refused_in_a_line_that_names_valid_ones() {
        for (line, told) in [
            ("--size 0", "--size \"0\": must be more than 0"),
            ("--runs 0", "--runs \"0\": must be a whole number from 1 to 1000"),
            ("--saves -1", "--saves \"-1\": must be a whole number from 1 to 1000000"),
            ("--lines 1.5M", "--lines \"1.5M\": must be a whole number"),
            ("--timeout 0", "--timeout \"0\": must be more than 0"),
            ("--workloads byte", "'bytes'"),
            ("--force", "--output <FILE>"),
        ] {
            let line = format!("wrote langs {line}");
            let error = Cli::try_parse_from(line.split(' ')).expect_err("must be refused");
            let said = one_line(&error);
            assert!(said.contains(told) && !said.contains('\n'), "{line}: {said}");
        }
    }
}
