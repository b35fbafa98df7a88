//! The arguments of `wrote run`. They include the options of fio's command line, so that users can
//! paste one: `wrote run --name=a --rw=write --bs=4k`.

use super::values::words;
use super::{OutputArgs, RankArgs};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::iter::Peekable;
use std::path::PathBuf;
use wrote_jobs::fio as keys_of_fio;
use wrote_jobs::jobs::Permissions;
use wrote_report::Format;

/// The arguments of `wrote run`.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// fio job files, run one after the other; - is standard input
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
        ("markdown", "To paste into an issue", RunFormat::Own(Format::Markdown)),
        ("fio-json", "fio's own JSON, for scripts and plots that read it", RunFormat::FioJson)
    ]))]
    pub format: RunFormat,

    /// Where the result goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Write over files that exist
    #[arg(long)]
    pub overwrite: bool,

    /// Allow reads of blocks that were never written, which a disk answers without reading
    #[arg(long)]
    pub read_unwritten: bool,

    /// Let jobs write to the same bytes at once
    #[arg(long)]
    pub allow_overlap: bool,

    /// Run only the job of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    pub section: Vec<String>,

    /// The folder of relative file names [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,

    /// Refuse jobs that write
    #[arg(long)]
    pub readonly: bool,

    /// Print what would be done, and do nothing
    #[arg(long, conflicts_with = "files")]
    pub check: bool,

    /// The settings of several ranks.
    #[command(flatten)]
    pub ranks: RankArgs,

    /// Whether the program was called as fio.
    #[arg(skip)]
    pub as_fio: bool,
}

/// The words of fio's command line.
#[derive(Debug, Args)]
pub struct FioArgs {
    /// fio's options and job files
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// How a result of jobs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFormat {
    /// As results of all kinds are.
    Own(Format),
    /// fio's JSON.
    FioJson,
}

impl Default for RunFormat {
    fn default() -> RunFormat {
        RunFormat::Own(Format::Table)
    }
}

impl RunArgs {
    /// Returns the permissions of the jobs.
    pub fn permissions(&self) -> Permissions {
        Permissions {
            overwrite: self.overwrite,
            read_unwritten: self.read_unwritten,
            overlap: self.allow_overlap,
            extend: self.as_fio,
            ..Permissions::default()
        }
    }
}

/// The hidden argument that carries one option of a job, as `key` or `key=value`.
pub(super) const OPTION: &str = "job-option";

/// Replaces fio's options after `run` with options that clap knows. Options that `run` also has,
/// such as `--output` and `--section`, are left unchanged.
pub fn translated(arguments: &[OsString]) -> Vec<OsString> {
    let verb = arguments.iter().skip(1).position(|word| !is_option(word)).map(|at| at + 1);
    let Some(run) = verb.filter(|at| arguments[*at] == "run") else { return arguments.to_vec() };
    let (before, behind) = arguments.split_at(run + 1);
    let mut words = behind.iter().peekable();
    let mut translated = before.to_vec();
    let command = super::definition();
    let has_jobs = behind.iter().any(|word| is_option(word) && key_of(word).0 == "name");
    while let Some(word) = words.next() {
        if !is_option(word) {
            translated.push(word.clone());
            continue;
        }
        if word == "--" {
            translated.push(word.clone());
            break;
        }
        match meaning(word, &command, has_jobs) {
            Meaning::Own => translated.push(word.clone()),
            Meaning::Nothing => {}
            Meaning::Instead(other) => translated.push(other.into()),
            Meaning::Job(key) => {
                let option = with_value(&key, key_of(word).1, &mut words);
                translated.push(format!("--{OPTION}={option}").into());
            }
        }
    }
    translated.extend(words.cloned());
    translated
}

fn is_option(word: &OsString) -> bool {
    word.to_str().is_some_and(|text| text.starts_with('-') && text != "-")
}

/// Returns an option's key, and the value after `=`, if any. Like fio, accepts a single dash before
/// a long option.
pub fn key_of(option: &OsString) -> (String, Option<String>) {
    let text = option.to_string_lossy();
    let text = text.strip_prefix("--").unwrap_or(text.strip_prefix('-').unwrap_or(&text));
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    (key.to_owned(), value.map(str::to_owned))
}

/// Returns an option of a job as `key` or `key=value`. As with getopt_long(3), the value may be the
/// next word.
pub fn with_value<'a>(
    key: &str,
    value: Option<String>,
    words: &mut Peekable<impl Iterator<Item = &'a OsString>>,
) -> String {
    let is_switch = keys_of_fio::is_switch(key);
    let is_value =
        |next: &&OsString| !is_option(next) && (!is_switch || *next == "0" || *next == "1");
    let next = || words.next_if(is_value).map(|next| next.to_string_lossy().into_owned());
    value.or_else(next).map_or(key.to_owned(), |value| format!("{key}={value}"))
}

enum Meaning {
    /// An option of `wrote run`, or an option that clap refuses.
    Own,
    /// An option of fio that has no effect.
    Nothing,
    Instead(String),
    /// The key of a job.
    Job(String),
}

/// Returns the meaning of an option. `has_jobs` states whether the command line defines jobs.
fn meaning(word: &OsString, command: &clap::Command, has_jobs: bool) -> Meaning {
    let (is_long, (key, value)) = (word.to_string_lossy().starts_with("--"), key_of(word));
    let is_key = keys_of_fio::is_key(&key);
    // A switch that is given a value is fio's key of the same name, and jobs have their own
    // directories.
    let is_own = |of: &clap::Arg| {
        let is_jobs =
            !of.get_action().takes_values() && value.is_some() || has_jobs && key == "directory";
        of.get_long() == Some(&key) && !(is_key && is_jobs)
    };
    let run = command.find_subcommand("run").expect("it is there");
    let is_own = key == "version" || run.get_arguments().chain(command.get_arguments()).any(is_own);
    match (&*key, value.as_deref()) {
        _ if is_long && is_own || key.len() < 2 => Meaning::Own,
        ("output-format", Some("json")) => Meaning::Instead("--format=fio-json".into()),
        ("output-format", Some("normal")) => Meaning::Instead("--format=table".into()),
        ("output-format", Some(other)) => Meaning::Instead(format!("--format={other}")),
        ("parse-only", None) => Meaning::Instead("--check".into()),
        _ if keys_of_fio::has_no_effect(&key) => Meaning::Nothing,
        // An unknown key is most likely mistyped. The error for it then suggests a similar key.
        (_, value) if is_key || is_long && has_jobs && value.is_some() => Meaning::Job(key),
        _ => Meaning::Own,
    }
}

#[cfg(test)]
mod run_tests {
    use super::*;
    use crate::args::{Cli, Command};
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

#[cfg(test)]
mod fio_tests {
    use super::*;

    fn of(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let translated = translated(&words);
        let translated: Vec<_> = translated.iter().map(|word| word.to_string_lossy()).collect();
        translated.join(" ").replace("--job-option=", "+")
    }

    #[test]
    fn options_of_jobs_are_told_from_those_of_the_command() {
        for (line, wanted) in [
            ("wrote run --name=a --rw=write --size=1m", "wrote run +name=a +rw=write +size=1m"),
            ("wrote run -name=a -rw=write", "wrote run +name=a +rw=write"),
            ("wrote run --name a --rw write -o x", "wrote run +name=a +rw=write -o x"),
            ("wrote run --direct --name=a --time_based", "wrote run +direct +name=a +time_based"),
            ("wrote run --direct 0 --time_based a", "wrote run +direct=0 +time_based a"),
            ("wrote run --overwrite a.fio --bs=8k", "wrote run --overwrite a.fio +bs=8k"),
            ("wrote run --name=a --overwrite=1", "wrote run +name=a +overwrite=1"),
            ("wrote run --name=a --minimal --eta=never", "wrote run +name=a --minimal"),
            (
                "wrote run --output-format=json --output=o.json j.fio --section=a",
                "wrote run --format=fio-json --output=o.json j.fio --section=a",
            ),
            ("wrote run --directory /mnt a.fio", "wrote run --directory /mnt a.fio"),
            ("wrote run --directory=/mnt --name=a", "wrote run +directory=/mnt +name=a"),
            ("wrote run --name=a --iodepht=4", "wrote run +name=a +iodepht=4"),
            ("wrote run a.fio --overwite", "wrote run a.fio --overwite"),
            ("wrote run -h", "wrote run -h"),
            ("wrote run --readonly --name=a", "wrote run --readonly +name=a"),
            ("wrote run - -- --name=a", "wrote run - -- --name=a"),
            ("wrote bench --size=1m", "wrote bench --size=1m"),
            ("wrote", "wrote"),
        ] {
            assert_eq!(of(line), wanted);
        }
    }
}
