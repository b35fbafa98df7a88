//! The arguments of `wrote log` and of its subcommands.

use super::values::{number, words};
use clap::{Args, Subcommand, ValueHint};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use wrote::SyncPolicy;
use wrote_result::units;

/// The arguments of `wrote log`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct LogArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: LogVerb,
}

/// The subcommands of `wrote log`.
#[derive(Debug, Subcommand)]
pub enum LogVerb {
    /// Print records, from the first to the last
    Cat(LogCatArgs),
    /// Print the last records; -f follows new ones
    Tail(LogTailArgs),
    /// Show the segments of a log, and which process writes it
    Stat(LogStatArgs),
    /// Read every byte and report damage
    Verify(LogVerifyArgs),
    /// Repair a damaged log
    Repair(LogRepairArgs),
    /// Copy sealed segments to an object store
    Ship(LogShipArgs),
    /// Append each line of standard input as a record
    Append(LogAppendArgs),
}

impl LogVerb {
    /// Returns the log that the command only reads, which must exist; `None` for other commands.
    pub fn read(&self) -> Option<&Path> {
        match self {
            LogVerb::Cat(LogCatArgs { folder, .. })
            | LogVerb::Tail(LogTailArgs { folder, retry: false, .. })
            | LogVerb::Stat(LogStatArgs { folder, .. })
            | LogVerb::Verify(LogVerifyArgs { folder, .. })
            | LogVerb::Repair(LogRepairArgs { folder, .. }) => Some(folder),
            // A program built without the feature `store` reports that before anything else.
            LogVerb::Ship(ship) => cfg!(feature = "store").then_some(&ship.folder),
            LogVerb::Tail(_) | LogVerb::Append(_) => None,
        }
    }
}

/// How records are printed.
#[derive(Clone, Copy, Debug, Args)]
pub struct LogShape {
    /// Print the sequence and a tab before each record
    #[arg(short, long)]
    pub sequence: bool,

    /// Print the bytes of the records, and nothing between them
    #[arg(long, conflicts_with = "sequence")]
    pub raw: bool,

    /// Print one JSON object per line: "sequence", "written_at", and "text", or "bytes_base64" if
    /// the record is not UTF-8
    #[arg(long, conflicts_with_all = ["sequence", "raw"])]
    pub json: bool,
}

/// The arguments of `wrote log cat`.
#[derive(Debug, Args)]
pub struct LogCatArgs {
    /// The log's folder, a plain file, or the URL of a store: s3://bucket/prefix, file:///path
    #[arg(value_name = "DIR|FILE|URL", value_hint = ValueHint::AnyPath)]
    pub folder: PathBuf,

    /// Begin with the record of this sequence
    #[arg(long, value_name = "SEQUENCE", default_value = "0", hide_default_value = true,
        value_parser = number, allow_hyphen_values = true)]
    pub from: u64,

    /// End with the record of this sequence
    #[arg(long, value_name = "SEQUENCE", value_parser = number, allow_hyphen_values = true)]
    pub to: Option<u64>,

    /// Begin with the first record that was written at this time or later
    #[arg(long, value_name = "TIME", conflicts_with = "from", value_parser = units::parse_moment,
        allow_hyphen_values = true)]
    pub since: Option<Timestamp>,

    /// End before the first record that was written after this time
    #[arg(long, value_name = "TIME", value_parser = units::parse_moment,
        allow_hyphen_values = true)]
    pub until: Option<Timestamp>,

    /// Print at most N records
    #[arg(short = 'n', long, value_name = "N", value_parser = number, allow_hyphen_values = true)]
    pub count: Option<u64>,

    /// How records are printed.
    #[command(flatten)]
    pub shape: LogShape,
}

/// The arguments of `wrote log tail`.
#[derive(Debug, Args)]
pub struct LogTailArgs {
    /// The log's folder, a plain file, or the URL of a store: s3://bucket/prefix, file:///path
    #[arg(value_name = "DIR|FILE|URL", value_hint = ValueHint::AnyPath)]
    pub folder: PathBuf,

    /// Begin with the last N records
    #[arg(short = 'n', long, value_name = "N", default_value = "10", value_parser = number,
        allow_hyphen_values = true)]
    pub count: u64,

    /// Begin with the record of this sequence, instead of the last N
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "count", value_parser = number,
        allow_hyphen_values = true)]
    pub from: Option<u64>,

    /// Begin with the first record that was written at this time or later, instead of the last N
    #[arg(long, value_name = "TIME", conflicts_with_all = ["count", "from"],
        value_parser = units::parse_moment, allow_hyphen_values = true)]
    pub since: Option<Timestamp>,

    /// Also print what is appended, until interrupted
    #[arg(short, long)]
    pub follow: bool,

    /// Follow, and wait for a log that does not exist yet or was removed
    #[arg(short = 'F', long)]
    pub retry: bool,

    /// How records are printed.
    #[command(flatten)]
    pub shape: LogShape,
}

/// The arguments of `wrote log stat`.
#[derive(Debug, Args)]
pub struct LogStatArgs {
    /// The log's folder, or the URL of its store: s3://bucket/prefix, file:///path
    #[arg(value_name = "DIR|URL", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `wrote log verify`.
#[derive(Debug, Args)]
pub struct LogVerifyArgs {
    /// The log's folder, or the URL of its store: s3://bucket/prefix, file:///path
    #[arg(value_name = "DIR|URL", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `wrote log repair`.
#[derive(Debug, Args)]
pub struct LogRepairArgs {
    /// The log's folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Report the damage, as verify does, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The arguments of `wrote log ship`.
#[derive(Debug, Args)]
pub struct LogShipArgs {
    /// The log's folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The store: s3://bucket/prefix, or file:///path of a folder, which is created
    #[arg(value_name = "URL")]
    pub url: String,

    /// Continue with each segment that is sealed, until interrupted
    #[arg(short, long)]
    pub follow: bool,
}

/// The arguments of `wrote log append`.
#[derive(Debug, Args)]
pub struct LogAppendArgs {
    /// The log's folder, or a plain file; a new name with an extension makes a file
    #[arg(value_name = "DIR|FILE", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,

    /// When records are made durable while it runs; at the end all are durable
    #[arg(long, value_name = "WHEN", default_value = "always", value_parser = words([
        ("always", "As they come", SyncPolicy::Always),
        ("everysec", "About once a second", SyncPolicy::EverySec),
        ("no", "At the end", SyncPolicy::No)
    ]))]
    pub sync: SyncPolicy,

    /// Limit on the length of a line (1 MiB); memory is about ten times that
    #[arg(long, value_name = "SIZE", default_value = "1MiB", hide_default_value = true,
        value_parser = record_max, allow_hyphen_values = true)]
    pub record_max: usize,
}

/// The maximum value of `--record-max`, in bytes. Such a record and its headers fit into a log's
/// largest buffer.
pub const RECORD_BYTES_MAX: usize = 63 << 20;

pub(super) fn record_max(text: &str) -> Result<usize, String> {
    let bytes = units::parse_block_size(text)?;
    let fits = usize::try_from(bytes).ok().filter(|bytes| *bytes <= RECORD_BYTES_MAX);
    fits.ok_or_else(|| {
        let most = units::block_size(RECORD_BYTES_MAX as u64);
        format!("{text:?}: is more than {most}, the longest possible record")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, one_line};
    use clap::Parser;

    fn parsed(line: &str) -> Result<LogVerb, String> {
        match Cli::try_parse_from(line.split(' ')) {
            Ok(Cli { command: Command::Log(arguments), .. }) => Ok(arguments.verb),
            Ok(_) => panic!("not a log: {line}"),
            Err(error) => Err(one_line(&error)),
        }
    }

    #[test]
    fn records_are_printed_in_one_way() {
        for both in ["--raw --json", "--raw --sequence", "--sequence --json"] {
            let refused = parsed(&format!("wrote log cat {both} events")).unwrap_err();
            assert!(refused.contains("cannot be used with"), "{refused}");
        }
        assert!(parsed("wrote log tail -n 3 --from 4 events").is_err());
        assert!(parsed("wrote log tail -n 3 --since 1h events").is_err());
        assert!(parsed("wrote log tail --from 4 --since 1h events").is_err());
        assert!(parsed("wrote log cat --from 4 --since 1h events").is_err());
    }

    #[test]
    fn a_word_in_place_of_a_time_is_refused_with_the_right_forms() {
        let refused = parsed("wrote log cat --since yesterday events").unwrap_err();
        let because = "must be a time, as 2026-11-24T07:00Z or 2026-11-24T07:00, or an age, as 10m";
        assert_eq!(refused, format!("--since \"yesterday\": {because}"));
    }

    #[test]
    fn a_negative_sequence_is_refused() {
        let refused = parsed("wrote log cat --from -1 events").unwrap_err();
        assert_eq!(refused, "--from \"-1\": must be a whole number, 0 or more");
    }
}
