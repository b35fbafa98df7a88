//! The arguments of the command line, the check of their combinations, and the help texts from
//! `help/VERB.txt`, in which a paragraph may span several lines.

use crate::terminal::{self, Manner};
use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use include_dir::{Dir, include_dir};
use itertools::Itertools;
use std::error::Error as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use unicode_width::UnicodeWidthStr;
use wrote_report::wrapped;

mod bench;
mod copy;
mod fit;
mod langs;
mod log;
mod ranks;
mod reports;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod trace;
mod values;

pub use bench::BenchArgs;
pub use copy::CopyArgs;
pub use fit::FitArgs;
pub use langs::LangsArgs;
pub use log::{
    LogAppendArgs, LogArgs, LogCatArgs, LogRepairArgs, LogShape, LogShipArgs, LogStatArgs,
    LogTailArgs, LogVerb, LogVerifyArgs, RECORD_BYTES_MAX,
};
pub use ranks::{RankArgs, of_rank};
pub use reports::{CompareArgs, DoctorArgs, ReportArgs};
pub use run::{FioArgs, RunArgs, RunFormat, key_of, translated, with_value};
#[cfg(feature = "serve")]
pub use serve::ServeArgs;
pub use trace::{TraceArgs, TraceCrashArgs, TraceVerb};
pub use values::BlockSizes;

/// The arguments of `wrote`.
#[derive(Debug, Parser)]
#[command(
    name = "wrote",
    version = env!("WROTE_VERSION"),
    long_version = concat!(
        env!("WROTE_VERSION"), "\nfeatures: ", env!("WROTE_FEATURES"), "\ntarget: ",
        env!("WROTE_TARGET")
    ),
    about = "How fast can you write to this disk, and how should you?",
    disable_help_subcommand = true
)]
pub struct Cli {
    /// How every command prints.
    #[command(flatten)]
    pub manner: Manner,

    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `wrote`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how fast the disk under PATH takes data, and what each write survives
    Bench(Box<BenchArgs>),
    /// Run fio job files, and report what each write survives
    Run(RunArgs),
    /// Behave as fio does, for scripts that call it (also as a link named fio)
    Fio(FioArgs),
    /// Judge whether the disk under PATH is good enough for a program: etcd, PostgreSQL ..
    Fit(FitArgs),
    /// Run a program, and report which of its writes would survive a power loss
    Trace(Box<TraceArgs>),
    /// Measure what each programming language's own file I/O costs, in PATH
    Langs(LangsArgs),
    /// Compare two results: what changed, and how certain that is
    Compare(CompareArgs),
    /// Make one HTML page of results
    Report(ReportArgs),
    /// Find what slows the disk under PATH down or endangers data; write nothing
    Doctor(DoctorArgs),
    /// Copy files and streams: whole or not at all, durable, in constant memory
    Copy(CopyArgs),
    /// Read, check and repair logs
    Log(LogArgs),
    /// Serve a log: messages from many connections, answered when they are safe
    Serve(Box<ServeArgs>),
    /// List and remove what killed runs left under PATH
    Clean(CleanArgs),
    /// Print a shell's completion script
    Completions(CompletionsArgs),
    /// Print the manual page (roff)
    Man,
}

/// Where to write a result.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("files").args(["output", "html"]).multiple(true))]
pub struct OutputArgs {
    /// Write the result to FILE instead of standard output; FILE must not exist (but see --force)
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Also write the result as an HTML page; FILE must not exist (but see --force)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Replace the FILE of --output and of --html if it exists
    #[arg(long, requires = "files")]
    pub force: bool,
}

/// The arguments of `wrote clean`.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// The folder that was measured, or copied into
    #[arg(value_name = "PATH", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub path: PathBuf,

    /// Name what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The arguments of `wrote serve` in a program that was built without it, which has no use for
/// them.
#[cfg(not(feature = "serve"))]
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// The server's arguments
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// The arguments of `wrote completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// Returns the definition that parsing, the help texts and the manual page all use.
pub fn definition() -> clap::Command {
    defined(terminal::help_width())
}

/// Returns the definition with the names that a shell can complete: the programs of `fit`, and the
/// values of `--only`. Parsing does not use these names, because the library's error for an unknown
/// name is better than the parser's.
pub fn completed() -> clap::Command {
    let one_of = |argument: Arg, names: Vec<String>| {
        // clap keeps the names for the lifetime of the process.
        let names = names.into_iter().unique().map(|name| &*name.leak());
        argument.value_parser(PossibleValuesParser::new(names))
    };
    let rows = wrote_bench::catalogue();
    let rows = rows.iter().flat_map(|of| [of.scenario, of.row]).map(str::to_owned).collect();
    let programs = wrote_bench::fit::all().into_iter().map(|program| program.name).collect();
    let languages = wrote_bench::langs::catalogue(&[]).map(|all| all.ids()).unwrap_or_default();
    definition()
        .mut_subcommand("bench", |bench| bench.mut_arg("only", |only| one_of(only, rows)))
        .mut_subcommand("fit", |fit| fit.mut_arg("program", |program| one_of(program, programs)))
        .mut_subcommand("langs", |langs| langs.mut_arg("only", |only| one_of(only, languages)))
}

/// Returns the definition, with help texts of this width.
pub fn defined(width: usize) -> clap::Command {
    let usual = |argument: Arg| {
        let is_usual = bench::USUAL.contains(&argument.get_id().as_str());
        argument.hide_short_help(!is_usual)
    };
    let but_seldom = |argument: Arg| {
        let is_seldom = SELDOM.contains(&argument.get_id().as_str());
        let is_hidden = argument.is_hide_short_help_set();
        argument.hide_short_help(is_seldom || is_hidden)
    };
    let command = Cli::command()
        .term_width(width)
        .mut_subcommands(with_json)
        .mut_subcommand("bench", |bench| bench.mut_args(usual))
        .mut_subcommand("langs", |langs| langs.mut_args(but_seldom))
        .mut_subcommand("trace", |trace| trace.mut_args(but_seldom))
        .mut_subcommand("serve", |serve| serve.mut_args(but_seldom));
    with_help(command, "wrote", width)
}

/// The arguments of commands other than `bench` that appear only with `--help-all`.
const SELDOM: [&str; 6] =
    ["rank_timeout", "max_connections", "max_message_bytes", "record_max", "schema", "daemons"];

/// Makes `--json` an abbreviation of `--format json`.
fn with_json(command: clap::Command) -> clap::Command {
    if !command.get_arguments().any(|argument| argument.get_id() == "format") {
        return command;
    }
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).conflicts_with("format");
    command
        .arg(json.help("The same as --format json"))
        .mut_arg("format", |format| format.default_value_if("json", "true", "json"))
}

/// Gives a command and all its subcommands two help texts, one that fits on a screen and one that
/// is complete, with the texts of `file`.
fn with_help(command: clap::Command, file: &str, width: usize) -> clap::Command {
    let file = if file == "serve" && cfg!(not(feature = "serve")) { "serve-absent" } else { file };
    let usual = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = with_texts(command, file, width)
        .disable_help_flag(true)
        .arg(usual.help("Print the usual options"))
        .arg(all.help("Print every option, at length"));
    names.into_iter().fold(command, |command, name| {
        let below = if file == "wrote" { name.clone() } else { format!("{file}-{name}") };
        command.mut_subcommand(name, |command| with_help(command, &below, width))
    })
}

/// Parses a command line.
///
/// # Errors
///
/// A description of what is wrong with the command line, or the help or version that it requests.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = definition().try_get_matches_from(translated(&asked(arguments)))?;
    Cli::from_arg_matches(&matches)
}

/// Converts the words of a call through a link named `fio` into words for `wrote fio`. All words
/// are then fio's.
pub fn of_link(arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    let is_link = name.is_some_and(|name| name == "fio");
    let is_fio = is_link || arguments.get(1).is_some_and(|word| word == "fio");
    let asks_for_help = !is_link && arguments.get(2).is_some_and(|word| word == "--help");
    if !is_fio || asks_for_help {
        return arguments;
    }
    let words = arguments.into_iter().skip(if is_link { 1 } else { 2 });
    ["wrote", "fio", "--"].into_iter().map(OsString::from).chain(words).collect()
}

/// Replaces `help TOPIC`, `log help` and `version`, which people try, with the corresponding
/// options.
fn asked(arguments: &[OsString]) -> Vec<OsString> {
    let is = |at: usize, word: &str| arguments.get(at).is_some_and(|found| found == word);
    let mut words = arguments.to_vec();
    if is(1, "version") {
        words[1] = "--version".into();
    } else if is(1, "help") || is(1, "log") && is(2, "help") {
        words.remove(if is(1, "help") { 1 } else { 2 });
        words.push("--help".into());
    }
    words
}

/// Removed options that users may still have in scripts, each with its replacement.
const GONE: [(&str, &str); 2] = [
    (
        "--local",
        "read the URL, then the folder from the record before which the store ends; \
         wrote log stat URL prints it",
    ),
    ("--minimal", "--format fio-json has the same figures by name"),
];

/// Returns the error on one line: the argument and what is wrong with its value, or else clap's
/// message and its tips, without its usage text.
pub fn one_line(error: &clap::Error) -> String {
    let argument = error.get(ContextKind::InvalidArg).and_then(|argument| match argument {
        ContextValue::String(argument) => argument.split([' ', '=']).next(),
        _ => None,
    });
    if let (ErrorKind::ValueValidation, Some(argument), Some(problem)) =
        (error.kind(), argument, error.source())
    {
        return format!("{argument} {problem}");
    }
    if let (ErrorKind::UnknownArgument, Some(argument)) = (error.kind(), argument)
        && let Some((_, instead)) = GONE.iter().find(|(gone, _)| *gone == argument)
    {
        return format!("{argument} no longer exists: {instead}");
    }
    if let (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    {
        if missing.iter().any(|argument| argument == "<SRC>...") {
            return "missing destination: wrote copy SRC... DST".into();
        }
        let what = match missing.join(" ") {
            program if program == "<PROGRAM>" => {
                let all = wrote_bench::fit::all();
                format!("a program: {}", all.iter().map(|program| &program.name).join(", "))
            }
            what => what,
        };
        let example = example(error, missing).map(|example| format!("; for example: {example}"));
        return format!("missing: {what}{}", example.unwrap_or_default());
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    // The message always ends with the usage and a pointer to --help.
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // An option is hardly ever meant to be a value.
    let told = told.filter(|line| !line.is_empty() && !line.starts_with("tip: to pass '-"));
    let told = told.collect_vec().join(" ");
    let told = told.strip_prefix("error: ").unwrap_or(&told).replace(" tip: ", "; tip: ");
    let is_unknown =
        matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && Path::new(word).exists()
    {
        return format!("{word} is not a command; to measure it: wrote bench {word}");
    }
    match is_unknown && !told.contains("; tip: ") {
        true => format!("{told}; {} --help lists what there is", command_of(error).join(" ")),
        false => told,
    }
}

/// Returns the words of the command that an error is about: `wrote log cat`.
fn command_of(error: &clap::Error) -> Vec<String> {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let words = usage.split_whitespace().skip(1).map(str::to_owned);
    words.take_while(|word| word.chars().all(|letter| letter.is_ascii_lowercase())).collect()
}

/// Returns the first example in the command's help that contains the missing options.
fn example(error: &clap::Error, missing: &[String]) -> Option<String> {
    let text = HELP.get_file(format!("{}.txt", command_of(error).get(1..)?.join("-")))?;
    let (_, examples) = text.contents_utf8()?.split_once("Examples:\n")?;
    let option = |argument: &String| argument.split(' ').next().unwrap_or_default().to_owned();
    let options = missing.iter().map(option).filter(|option| option.contains("--")).collect_vec();
    let has_all = |line: &&str| options.iter().all(|option| line.contains(option));
    let line = examples.lines().map(str::trim).find(has_all)?;
    line.split("  ").next().map(str::to_owned)
}

static HELP: Dir = include_dir!("$CARGO_MANIFEST_DIR/src/args/help");

/// Gives a command the texts of `help/{file}.txt`, if there is such a file. A list follows the
/// options: the first list in the short help, and the last in the long help. In both, exit codes
/// and the like follow the list.
fn with_texts(command: clap::Command, file: &str, width: usize) -> clap::Command {
    let Some(text) = HELP.get_file(format!("{file}.txt")) else { return command };
    let text = text.contents_utf8().expect("a help is UTF-8").trim_end();
    let is_list = |block: &&str| block.contains(":\n  ");
    let (lists, paragraphs): (Vec<&str>, Vec<&str>) = text.split("\n\n").partition(is_list);
    let is_foot =
        |block: &&str| !block.starts_with("Examples:") && !block.starts_with("Questions:");
    let (feet, lists): (Vec<&str>, Vec<&str>) = lists.into_iter().partition(is_foot);
    let after = |list: &str| {
        [list].into_iter().chain(feet.iter().copied()).map(|of| folded(of, width)).join("\n\n")
    };
    let about: Vec<String> = paragraphs.iter().map(|lines| lines.replace('\n', " ")).collect();
    let command = match about[..] {
        [] => command,
        _ => command.long_about(about.join("\n\n")),
    };
    match lists[..] {
        [] => command,
        [one] => command.after_help(after(one)),
        [short, .., long] => command.after_help(after(short)).after_long_help(after(long)),
    }
}

/// The minimum width of an explanation to the right of its command.
const EXPLANATION_WIDTH: usize = 24;

/// Lays out a list for a screen. An explanation that does not fit on its line continues on the next
/// line in the same column. If there is too little room for that, the explanation is placed below
/// its command.
fn folded(list: &str, width: usize) -> String {
    let line = |line: &str| {
        // An explanation follows two spaces, or is alone on a line with the same indentation.
        let indent = line.width() - line.trim_start().width();
        let Some((command, why)) = line[indent..].split_once("  ") else {
            let further = if indent > 2 { 6 } else { 4 };
            return match line.width() <= width || indent == 0 {
                true => line.to_owned(),
                false => format!("  {}", wrapped(&line[indent..], width, further)),
            };
        };
        let column = line.width() - why.trim_start().width();
        let (command, why) = (wrapped(command, width, 6), why.trim());
        match line.width() <= width {
            true => line.to_owned(),
            false if column + EXPLANATION_WIDTH <= width => {
                format!("{:column$}{}", format!("  {command}"), wrapped(why, width, column))
            }
            false => format!("  {command}\n      {}", wrapped(why, width, 6)),
        }
    };
    list.lines().map(line).join("\n")
}

#[cfg(test)]
mod args_tests {
    use super::*;

    fn refused(line: &str) -> String {
        let error = Cli::try_parse_from(line.split(' ')).expect_err("must be refused");
        one_line(&error)
    }

    #[test]
    fn the_definition_holds_together() {
        definition().debug_assert();
    }

    #[test]
    fn the_help_of_every_command_fits_on_a_screen_of_60_lines() {
        fn check(command: &mut clap::Command) {
            let name = command.get_name().to_owned();
            let help = command.render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= 60, "{name} has {lines} lines:\n{help}");
            let all = command.render_long_help().to_string();
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let flag = argument.get_long().unwrap_or_default();
                assert!(all.contains(flag), "{name}: {flag} is not in --help-all");
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut whole = defined(80);
        whole.build();
        check(&mut whole);
    }

    #[test]
    fn an_option_that_went_is_answered_with_what_to_do_without_it() {
        for (option, instead) in GONE {
            let line = refused(&format!("wrote log cat {option}"));
            assert_eq!(line, format!("{option} no longer exists: {instead}"));
        }
    }

    #[test]
    fn a_value_that_makes_no_sense_is_named_with_its_argument() {
        let line = refused("wrote bench --runs 0");
        assert_eq!(line, "--runs \"0\": must be a whole number from 1 to 1000");
        assert!(refused("wrote bench --size -5").starts_with("--size \"-5\": can't be negative"));
    }
}

#[cfg(test)]
mod help_tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_list_of_a_narrow_help_begins_at_the_edge_or_is_cut() {
        fn check(command: &clap::Command, width: usize) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            let texts = texts.into_iter().flatten().map(ToString::to_string);
            for line in texts.collect_vec().iter().flat_map(|text| text.lines()) {
                let is_title = line.is_empty() || line.ends_with(':');
                assert!(is_title || line.starts_with("  "), "{width}: {line}");
                assert!(line.width() <= width, "{width}: {line}");
            }
            command.get_subcommands().for_each(|command| check(command, width));
        }
        [60, 80, 100].into_iter().for_each(|width| check(&defined(width), width));
    }

    #[test]
    fn every_help_is_of_a_command_and_every_command_but_one_has_a_help() {
        let command = super::definition();
        let mut names = BTreeSet::from(["wrote".to_owned(), "serve-absent".to_owned()]);
        for verb in command.get_subcommands() {
            names.insert(verb.get_name().to_owned());
            let inner = verb.get_subcommands().map(|inner| inner.get_name());
            names.extend(inner.map(|inner| format!("{}-{inner}", verb.get_name())));
        }
        assert!(names.remove("man"));
        let stem = |file: &include_dir::File| file.path().file_stem()?.to_str().map(str::to_owned);
        assert_eq!(HELP.files().filter_map(stem).collect::<BTreeSet<_>>(), names);
    }
}
