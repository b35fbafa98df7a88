//! `--vs`: what the other side of a benchmark is asked, from what the command line says and what is
//! said otherwise.

use super::{BenchArgs, one_line};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The settings that both sides share, since there is one run and one comparison.
const OF_BOTH: [&str; 9] =
    ["format", "output", "force", "runs", "keep", "list", "schema", "vs", "load_curve"];

impl BenchArgs {
    /// These arguments with others over them: what `words` say, and the rest as it is.
    ///
    /// # Errors
    ///
    /// What is wrong with `words`, in one line.
    pub fn with(&self, words: &str) -> Result<BenchArgs, String> {
        let wrong = |what: &str| format!("--vs {words:?}: {what}");
        let split = shlex::split(words).ok_or_else(|| wrong("a quote is not closed"))?;
        if split.is_empty() {
            return Err(wrong("says nothing that differs; as in --vs '--iodepth 64'"));
        }
        let matches = definition().try_get_matches_from(split);
        let matches = matches.map_err(|error| wrong(&one_line(&error)))?;
        if let Some(argument) = OF_BOTH.iter().find(|argument| is_said(&matches, argument)) {
            let argument = argument.replace('_', "-");
            return Err(wrong(&format!("--{argument} can't differ between the two")));
        }
        let mut other = self.clone();
        other.update_from_arg_matches(&matches).map_err(|error| wrong(&one_line(&error)))?;
        // A switch that was not said is off for who reads these words alone.
        other.scenarios.load.load_curve = self.scenarios.load.load_curve;
        Ok(BenchArgs { to: self.to.clone(), keep: self.keep, ..other })
    }
}

/// The arguments of a benchmark without anything that holds where nothing is said.
fn definition() -> Command {
    let command = Command::new("--vs").no_binary_name(true).disable_help_flag(true);
    BenchArgs::augment_args_for_update(command)
        .mut_args(|argument| argument.default_value(None::<&str>))
}

fn is_said(matches: &ArgMatches, argument: &str) -> bool {
    matches.value_source(argument) == Some(ValueSource::CommandLine)
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;
    use std::path::PathBuf;

    fn arguments(line: &str) -> BenchArgs {
        let cli = Cli::try_parse_from(line.split(' ')).expect("a good command line");
        let Command::Bench(arguments) = cli.command else { panic!("not a benchmark: {line}") };
        arguments
    }

    #[test]
    fn what_is_said_replaces_and_the_rest_stays() {
        let one =
            arguments("wrote bench /data --only rand,peak --iodepth 4 --runs 3 --format json");
        let other = one.with("--iodepth 64 --numjobs 2").expect("they are good");
        assert_eq!((other.iodepth, other.numjobs, other.runs), (Some(64), Some(2), Some(3)));
        assert_eq!((other.path, other.only), (PathBuf::from("/data"), one.only.clone()));
        assert_eq!((other.format, one.iodepth), (one.format, Some(4)));
        assert_eq!(one.with("--only rand").expect("it is good").only, ["rand"]);
    }

    #[test]
    fn the_other_side_may_be_another_folder_whose_name_is_quoted() {
        let other = arguments("wrote bench /data").with("'/mnt/my disk'").expect("it is good");
        assert_eq!(other.path, PathBuf::from("/mnt/my disk"));
    }

    #[test]
    fn what_cannot_differ_or_makes_no_sense_is_refused_in_one_line() {
        for (words, told) in [
            ("", "says nothing that differs"),
            ("'", "a quote is not closed"),
            ("--runs 7", "--runs can't differ"),
            ("--format json", "--format can't differ"),
            ("-o x", "--output can't differ"),
            ("--vs x", "--vs can't differ"),
            ("--iodepth 0", "--iodepth \"0\": must be a whole number"),
            ("--nonsense", "unexpected argument '--nonsense'"),
        ] {
            let line = arguments("wrote bench").with(words).expect_err("must be refused");
            assert!(line.starts_with("--vs ") && line.contains(told), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }
}
