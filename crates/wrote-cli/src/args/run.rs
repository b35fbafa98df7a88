//! The arguments of `wrote run`; also fio's command line, as people paste it:
//! `wrote run --name=a --rw=write --bs=4k`.

use super::values::words;
use super::{OutputArgs, RankArgs};
use clap::{Args, ValueHint};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use wrote_jobs::fio as keys_of_fio;
use wrote_jobs::jobs::Permissions;
use wrote_report::Format;

/// The arguments of `wrote run`.
#[derive(Debug, Default, Args)]
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

    /// Read blocks that were never written, which a disk answers without reading
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

    /// The program was called as fio.
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
    /// The permissions of the jobs.
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

/// fio's options about its own screen and limits, which have no counterpart here.
const WITHOUT_EFFECT: [&str; 6] =
    ["eta", "eta-interval", "eta-newline", "status-interval", "warnings-fatal", "max-jobs"];

/// Replaces fio's options after `run` by options that clap knows. Options that `run` has itself
/// stay as they are, `--output` and `--section` among them.
pub fn translated(arguments: &[OsString]) -> Vec<OsString> {
    let Some(run) = arguments.iter().skip(1).position(|word| !is_option(word)).map(|at| at + 1)
    else {
        return arguments.to_vec();
    };
    if arguments[run] != "run" {
        return arguments.to_vec();
    }
    let (before, behind) = arguments.split_at(run + 1);
    let mut words = behind.iter().peekable();
    let mut translated = before.to_vec();
    let own = Own::of(behind);
    while let Some(word) = words.next() {
        let Some(option) = word.to_str().filter(|text| text.starts_with('-') && *text != "-")
        else {
            translated.push(word.clone());
            continue;
        };
        if option == "--" {
            translated.push(word.clone());
            break;
        }
        match own.meaning(option) {
            Meaning::Own => translated.push(word.clone()),
            Meaning::Nothing => {}
            Meaning::Instead(others) => translated.extend(others.into_iter().map(OsString::from)),
            Meaning::Job(mut text) => {
                // As by getopt_long(3): the value may be the next word.
                let is_switch = keys_of_fio::is_switch(&text);
                let is_value = |next: &&OsString| {
                    let is_flag = *next == "0" || *next == "1";
                    !is_option(next) && (!is_switch || is_flag)
                };
                if !text.contains('=')
                    && let Some(value) = words.next_if(is_value)
                {
                    text = format!("{text}={}", value.to_string_lossy());
                }
                translated.push(format!("--{OPTION}={text}").into());
            }
        }
    }
    translated.extend(words.cloned());
    translated
}

fn is_option(word: &OsString) -> bool {
    word.to_str().is_some_and(|text| text.starts_with('-') && text != "-")
}

enum Meaning {
    /// An option of `wrote run`, or one that clap refuses.
    Own,
    /// fio's, without an effect.
    Nothing,
    Instead(Vec<String>),
    /// An option of a job: `key` or `key=value`.
    Job(String),
}

/// The options that `wrote run` has itself.
struct Own {
    longs: HashSet<String>,
    /// The ones that take no value and are keys of jobs, too.
    switches: HashSet<String>,
    /// Whether jobs are on the command line.
    has_jobs: bool,
}

impl Own {
    fn of(arguments: &[OsString]) -> Own {
        let command = super::definition();
        let run = command.find_subcommand("run").expect("it is there");
        let known = |command: &clap::Command| -> Vec<String> {
            let longs = command.get_arguments().filter_map(clap::Arg::get_long);
            longs.map(str::to_owned).collect()
        };
        let mut longs: HashSet<String> = known(run).into_iter().chain(known(&command)).collect();
        let is_switch = |of: &&clap::Arg| !of.get_action().takes_values();
        let switches = run.get_arguments().filter(is_switch).filter_map(clap::Arg::get_long);
        let switches = switches.filter(|key| keys_of_fio::is_key(key));
        let switches = switches.map(str::to_owned).collect();
        longs.insert("version".to_owned());
        let is_name = |word: &OsString| {
            let text = word.to_str().unwrap_or_default().trim_start_matches('-');
            is_option(word) && text.split('=').next() == Some("name")
        };
        let has_jobs = arguments.iter().any(is_name);
        if has_jobs {
            // Each job has its own.
            longs.remove("directory");
        }
        Own { longs, switches, has_jobs }
    }

    fn meaning(&self, option: &str) -> Meaning {
        let (text, is_long) = match option.strip_prefix("--") {
            Some(text) => (text, true),
            // fio takes long options behind one dash, too.
            None => (&option[1..], false),
        };
        let (key, value) = text.split_once('=').map_or((text, None), |(k, v)| (k, Some(v)));
        // A switch with a value is fio's key of that name.
        let is_switched = value.is_some() && self.switches.contains(key);
        if is_long && self.longs.contains(key) && !is_switched || key.len() < 2 {
            return Meaning::Own;
        }
        let format = |format: &str| Meaning::Instead(vec![format!("--format={format}")]);
        match (key, value) {
            ("output-format", Some("json")) => format("fio-json"),
            ("output-format", Some("normal")) => format("table"),
            ("output-format", Some(other)) => format(other),
            ("parse-only", None) => Meaning::Instead(vec!["--check".into()]),
            _ if WITHOUT_EFFECT.contains(&key) => Meaning::Nothing,
            _ if keys_of_fio::is_key(key) => Meaning::Job(text.into()),
            // Most likely a job's, mistyped: the error names a similar key.
            _ if is_long && self.has_jobs && value.is_some() => Meaning::Job(text.into()),
            _ => Meaning::Own,
        }
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
