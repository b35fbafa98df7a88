//! The arguments of the command line, and the check of their combinations.

mod bench;
mod compare;
mod copy;
mod doctor;
mod fio;
mod fit;
mod langs;
mod log;
#[cfg(not(feature = "serve"))]
mod no_serve;
mod ranks;
mod report;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod trace;
mod values;

pub use bench::BenchArgs;
pub use compare::CompareArgs;
pub use copy::CopyArgs;
pub use doctor::DoctorArgs;
pub use fio::translated;
pub use fit::FitArgs;
pub use langs::LangsArgs;
pub use log::{
    BehindStore, LogAppendArgs, LogArgs, LogCatArgs, LogRepairArgs, LogShape, LogShipArgs,
    LogStatArgs, LogTailArgs, LogVerb, LogVerifyArgs, RECORD_BYTES_MAX,
};
#[cfg(not(feature = "serve"))]
pub use no_serve::ServeArgs;
pub use ranks::{RankArgs, RankTimeout, of_rank};
pub use report::ReportArgs;
pub use run::{RunArgs, RunFormat};
#[cfg(feature = "serve")]
pub use serve::ServeArgs;
pub use trace::{TraceArgs, TraceCrashArgs, TraceVerb};
pub use values::BlockSizes;

#[cfg(not(feature = "serve"))]
use no_serve as serve;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::error::Error as _;
use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments of `wrote`.
#[derive(Debug, Parser)]
#[command(
    name = "wrote",
    version = env!("WROTE_VERSION"),
    about = "How fast can you write to this disk, and how should you?",
    long_about = "How fast can you write to this disk, and how should you?\n\nwrote bench measures \
        how fast a disk takes data at each level of safety and by each way of writing, says what \
        each number survives (a process crash, an OS crash, a power cut), and which way to use; \
        when asked, also its peak of sequential reads and writes, random ones, latency and load, \
        and how it is when it is written for long.\n\nwrote run runs fio's job files, and says the \
        same of what they write.\n\n\
        wrote fit judges whether a disk is good enough for a program, alone and beside other \
        work.\n\n\
        wrote trace runs a program, and says what of its writes would survive.\n\n\
        wrote langs measures what each programming language's own file I/O costs, beside the \
        drive's own rate.\n\n\
        wrote compare says what changed between two results, and how sure that is.\n\nwrote report \
        makes one HTML page of results, to look at and to send.\n\nwrote doctor says what holds a \
        disk back, and writes nothing.\n\nwrote copy copies files and folders at the disk's speed, \
        in constant memory, and durable when it says done.\n\nwrote log reads, checks and repairs \
        the append logs that the library writes.\n\nwrote serve takes messages from many \
        connections into a log, and answers when they are safe.",
    after_help = "Examples:\n  \
        wrote bench                   measure the disk that the current folder is on\n  \
        wrote bench /mnt/data         measure another\n  \
        wrote bench --only peak,rand  its best stream, and random reads and writes\n  \
        wrote run jobs.fio            run a job file of fio's\n  \
        wrote fit etcd /var/lib/etcd  is this disk good enough for etcd?\n  \
        wrote trace ./save-settings   what would survive of what a program saves?\n  \
        wrote langs --size 25MB       what each language's own I/O costs here\n  \
        wrote compare a.json b.json   what changed between two results, and how sure that is\n  \
        wrote report disk.json -o disk.html   a page to look at\n  \
        wrote doctor /mnt/data        what holds a disk back, and the command that changes it\n  \
        wrote copy a.img /mnt/data/   copy a file, durable when it says done\n  \
        wrote log tail -f events      the last records of a log; -f follows new ones\n  \
        wrote serve events --listen resp://127.0.0.1:6379   a log for Redis clients\n  \
        wrote clean /mnt/data         remove what a killed run left there",
    disable_help_subcommand = true,
    arg_required_else_help = false
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `wrote`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how fast the disk under PATH takes data, and what each number survives
    #[command(long_about = bench::LONG_ABOUT, after_help = bench::QUESTIONS,
        after_long_help = bench::EXAMPLES)]
    Bench(Box<BenchArgs>),
    /// Run fio job files, and report what each write survives
    #[command(long_about = run::LONG_ABOUT, after_help = run::EXAMPLES)]
    Run(RunArgs),
    /// Judge whether the disk under PATH is good enough for a program: etcd, PostgreSQL ..
    #[command(long_about = fit::LONG_ABOUT, after_help = fit::EXAMPLES)]
    Fit(FitArgs),
    /// Run a program, and report what of its writes would survive a power cut
    #[command(long_about = trace::LONG_ABOUT, after_help = trace::EXAMPLES)]
    Trace(TraceArgs),
    /// Measure what each programming language's own file I/O costs, in each PATH
    #[command(long_about = langs::LONG_ABOUT, after_help = langs::EXAMPLES)]
    Langs(LangsArgs),
    /// Compare two results: what changed, and how certain that is
    #[command(long_about = compare::LONG_ABOUT, after_help = compare::EXAMPLES)]
    Compare(CompareArgs),
    /// Make one HTML page of results, to look at and to send
    #[command(long_about = report::LONG_ABOUT, after_help = report::EXAMPLES)]
    Report(ReportArgs),
    /// Say what holds the disk under PATH back, and the command that changes it; write nothing
    #[command(long_about = doctor::LONG_ABOUT, after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
    /// Copy files and folders: whole or not at all, durable, in constant memory
    #[command(long_about = copy::LONG_ABOUT, after_help = copy::EXAMPLES)]
    Copy(CopyArgs),
    /// Read, check and repair logs
    #[command(long_about = log::LONG_ABOUT, after_help = log::EXAMPLES)]
    Log(LogArgs),
    /// Serve a log: messages from many connections, answered when they are safe
    #[command(long_about = serve::LONG_ABOUT, after_help = serve::EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// List and remove what killed runs left under PATH
    #[command(long_about = CLEAN_LONG_ABOUT, after_help = CLEAN_EXAMPLES)]
    Clean(CleanArgs),
    /// Print a shell's completion script
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the manual page (roff)
    Man,
}

/// Where to write a result.
#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("files").args(["output", "html"]).multiple(true))]
pub struct OutputArgs {
    /// Write the result to FILE instead of standard output; FILE must not exist
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write the result as a page for a browser, too; FILE must not exist
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Replace the FILE of --output and of --html if it exists
    #[arg(long, requires = "files")]
    pub force: bool,
}

const CLEAN_LONG_ABOUT: &str = "List and remove what killed runs left under PATH.\n\nA run keeps \
        its files in one folder, PATH/.wrote-XXXX, and removes it when it ends, is interrupted or \
        fails. A copy is PATH/.NAME.wrote-PROCESS-NUMBER until it is whole. Only kill -9 or a \
        crash leaves one. What belongs to runs that are still alive is kept.";

const CLEAN_EXAMPLES: &str = "Examples:\n  wrote clean\n  wrote clean /mnt/data";

/// The arguments of `wrote clean`.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// The folder that was measured, or copied into
    #[arg(value_name = "PATH", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub path: PathBuf,
}

const COMPLETIONS_EXAMPLES: &str = "Examples:\n  \
    wrote completions bash > ~/.local/share/bash-completion/completions/wrote\n  \
    wrote completions fish > ~/.config/fish/completions/wrote.fish\n  \
    wrote completions zsh > ~/.zfunc/_wrote    (with ~/.zfunc in $fpath)";

/// The arguments of `wrote completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// The definition from which parsing, help, completions and the manual page all follow.
pub fn definition() -> clap::Command {
    let usual = |argument: Arg| {
        let is_usual = bench::USUAL.contains(&argument.get_id().as_str());
        argument.hide_short_help(!is_usual)
    };
    let but_seldom = |argument: Arg| {
        let is_seldom = SELDOM.contains(&argument.get_id().as_str());
        argument.hide_short_help(is_seldom)
    };
    let command = Cli::command()
        .mut_subcommand("bench", |bench| bench.mut_args(usual))
        .mut_subcommand("langs", |langs| langs.mut_args(but_seldom))
        .mut_subcommand("serve", |serve| serve.mut_args(but_seldom));
    with_help(command)
}

/// Arguments of commands other than `bench` that the short help leaves to `--help-all`.
const SELDOM: [&str; 3] = ["rank_timeout", "max_connections", "max_message_bytes"];

/// Gives a command and all below it a help of one screen, and one of everything.
fn with_help(command: clap::Command) -> clap::Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = command
        .disable_help_flag(true)
        .arg(help.help("Print the usual options"))
        .arg(all.help("Print every option, at length"));
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_help))
}

/// Parses a command line.
///
/// # Errors
///
/// What is wrong with it, or the help that it asks for.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = definition().try_get_matches_from(arguments)?;
    Cli::from_arg_matches(&matches)
}

/// The fault of the command line, in one line: the argument and what is wrong with its value,
/// or else clap's message and its tips, without its usage text.
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
    if let (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && missing.iter().any(|argument| argument == "<SRC>...")
    {
        return "missing destination: wrote copy SRC... DST".into();
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    // Usage and the pointer to --help always end the message.
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let told: Vec<&str> = told.filter(|line| !line.is_empty()).collect();
    let told = told.join(" ");
    let told = told.strip_prefix("error: ").unwrap_or(&told);
    told.replace(" tip: ", "; tip: ")
}

#[cfg(test)]
mod tests {
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
            let help = command.clone().term_width(80).render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= 60, "{name} has {lines} lines:\n{help}");
            let all = command.clone().term_width(80).render_long_help().to_string();
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let flag = argument.get_long().unwrap_or_default();
                assert!(all.contains(flag), "{name}: {flag} is not in --help-all");
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut whole = definition();
        whole.build();
        check(&mut whole);
    }

    #[test]
    fn an_unknown_flag_is_answered_with_the_near_one() {
        let line = refused("wrote bench --siez 1G");
        assert!(line.starts_with("unexpected argument '--siez' found; tip:"), "{line}");
        assert!(line.contains("'--size'"), "{line}");
    }

    #[test]
    fn a_value_that_makes_no_sense_is_named_with_its_argument() {
        let line = refused("wrote bench --runs 0");
        assert_eq!(line, "--runs \"0\": must be a whole number from 1 to 1000");
        assert!(refused("wrote bench --size -5").starts_with("--size \"-5\": can't be negative"));
    }

    #[test]
    fn a_copy_without_a_destination_is_answered_with_how_to_give_one() {
        assert_eq!(refused("wrote copy a"), "missing destination: wrote copy SRC... DST");
    }

    #[test]
    fn an_unknown_value_is_answered_with_those_there_are() {
        let line = refused("wrote bench --format yaml");
        assert!(line.contains("[possible values: table, json, csv, markdown]"), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
