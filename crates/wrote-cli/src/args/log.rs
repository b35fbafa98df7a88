//! The arguments of `wrote log` and of what it can do.

use super::values::{number, words};
use clap::{Args, Subcommand, ValueHint};
use jiff::Timestamp;
use std::path::PathBuf;
use wrote::{Format, SyncPolicy};
use wrote_result::units;

pub(super) const LONG_ABOUT: &str = "Read, check and repair logs.\n\nA log is a folder that the \
        library's Log writes: records in a strict order, each with a sequence, in files called \
        segments. Reading takes no lock, and works while another process writes.";

pub(super) const EXAMPLES: &str = "Examples:\n  \
        wrote log cat events                      all records, a line each\n  \
        wrote log tail -f events                  the last ten, then new ones\n  \
        wrote log stat events                     segments, records, bytes, who writes\n  \
        wrote log verify events                   every byte read and checked\n  \
        wrote log repair events                   what is whole can be read again\n  \
        wrote log ship events s3://bucket/events  full segments into an object store\n  \
        journalctl -f | wrote log append events   each line as a record, durable as it comes";

/// The arguments of `wrote log`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true, arg_required_else_help = false)]
pub struct LogArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: LogVerb,
}

/// The subcommands of `wrote log`.
#[derive(Debug, Subcommand)]
pub enum LogVerb {
    /// Print records, from the first to the last
    #[command(long_about = CAT_LONG_ABOUT, after_help = CAT_EXAMPLES)]
    Cat(LogCatArgs),
    /// Print the last records; -f follows new ones
    #[command(long_about = TAIL_LONG_ABOUT, after_help = TAIL_EXAMPLES)]
    Tail(LogTailArgs),
    /// Say what a log consists of, and who writes it
    #[command(long_about = STAT_LONG_ABOUT, after_help = STAT_EXAMPLES)]
    Stat(LogStatArgs),
    /// Read every byte and report damage
    #[command(long_about = VERIFY_LONG_ABOUT, after_help = VERIFY_EXAMPLES)]
    Verify(LogVerifyArgs),
    /// Repair a damaged log
    #[command(long_about = REPAIR_LONG_ABOUT, after_help = REPAIR_EXAMPLES)]
    Repair(LogRepairArgs),
    /// Put the sealed segments into an object store
    #[command(long_about = SHIP_LONG_ABOUT, after_help = SHIP_EXAMPLES)]
    Ship(LogShipArgs),
    /// Append each line of standard input as a record
    #[command(long_about = APPEND_LONG_ABOUT, after_help = APPEND_EXAMPLES)]
    Append(LogAppendArgs),
}

const CAT_LONG_ABOUT: &str = "Print records, from the first to the last.\n\nEach record is \
        followed by a line feed. Records can hold any bytes, line feeds too: --json keeps them \
        apart whatever they hold, and --raw adds nothing to them. Before a record that follows a \
        gap, --json prints the first missing \"sequence\" and how many records are \"missing\". \
        Where the first records were removed, because they were too many or too old, it begins \
        with the first that is there.\n\nThe time of a record is that at which the log handed it \
        to the disk, by the writer's clock: \"written_at\" of --json, which is left out where it \
        is unknown. A TIME of --since and --until is a timestamp (2026-11-24T07:00Z), a date and \
        time of the local zone (2026-11-24T07:00), or an age (10m, 1h30m, 2d). Where the writer's \
        clock stepped back, --since may begin a little off, and --until ends at the first later \
        record. A log of lines has no times.";

const CAT_EXAMPLES: &str = "Examples:\n  \
        wrote log cat events                            all records, a line each\n  \
        wrote log cat --from 1000 --count 50 events     50 of them\n  \
        wrote log cat --since 10m events                those of the last ten minutes\n  \
        wrote log cat --since 2d s3://bucket/events     of two days, from the store\n  \
        wrote log cat --sequence events | grep error    with the sequence before each\n  \
        wrote log cat --json events | jq -r .text       as JSON, a line each\n  \
        wrote log cat --raw events > all                their bytes and nothing else";

const TAIL_LONG_ABOUT: &str = "Print the last records; -f follows new ones.\n\nWith --follow it \
        also prints each record that any process appends, until it is interrupted. Ctrl-C ends it \
        silently with the exit code 130, as it ends tail -f. A reader that goes away ends it too, \
        with 0. With --retry a log that is not there yet is waited for, and printed from its first \
        record on; so is the next one when its folder is removed or renamed.\n\nA TIME of \
        --since is a timestamp (2026-11-24T07:00Z), a date and time of the local zone \
        (2026-11-24T07:00), or an age (10m, 1h30m, 2d). The times of records are those of the \
        writer's clock. A log of lines has none.";

const TAIL_EXAMPLES: &str = "Examples:\n  \
        wrote log tail events                   the last ten records\n  \
        wrote log tail -n 100 events            the last hundred\n  \
        wrote log tail -f events                the last ten, then new ones\n  \
        wrote log tail -f -n 0 --json events    only what comes, as JSON\n  \
        wrote log tail -f --from 1000 events    from that record on\n  \
        wrote log tail -f --since 1h events     from the records of an hour ago on\n  \
        wrote log tail --since 1h s3://b/events --local events    from the store, then the \
        folder\n  \
        wrote log tail -F events                the same as -f, also before there is a log";

const STAT_LONG_ABOUT: &str = "Say what a log consists of, and who writes it.\n\nIts segments with \
        their records and bytes, its format, whether it was closed after its last record, and \
        which process has it open for writing. Records are not read: verify does that.\n\nRECORDS \
        counts sequences, those too that a repair left empty, which a line names; USED counts \
        bytes up to the end of the last record, FILE the length of the file, with what is only \
        prepared for records to come.\n\nThe URL of a store says up to which record the store has \
        the log. With --local it also counts the sealed segments of the folder that wait to be \
        shipped.";

const STAT_EXAMPLES: &str = "Examples:\n  \
        wrote log stat events                               segments, records, bytes\n  \
        wrote log stat --json events | jq .records          as JSON\n  \
        wrote log stat s3://bucket/events --local events    what is shipped, and what waits";

const VERIFY_LONG_ABOUT: &str = "Read every byte and report damage.\n\nA log is damaged \
        where records that were durable can't be read any more: the disk lost them, or something \
        else wrote there. A line reports each place, and the exit code is 1. Bytes behind a \
        segment's last record that nothing appended are garbage: no record is lost, and with \
        garbage alone the exit code is 3. The end of a write that a crash interrupted is not \
        damage: the next open for writing sets it aside. Nothing is changed. In lines nothing \
        checks the bytes: only what can't be a line is found.";

const VERIFY_EXAMPLES: &str =
    "Examples:\n  wrote log verify events\n  wrote log verify --json events | jq .damage";

const REPAIR_LONG_ABOUT: &str = "Repair a damaged log.\n\n\
        Every record that is whole stays, with its sequence; what is lost leaves a gap in the \
        sequences, or empty lines in a log of lines. The damaged files are kept beside the log as \
        they were, and named. A log that is open for writing is refused. A log that is whole is \
        left as it is.";

const REPAIR_EXAMPLES: &str = "Examples:\n  \
        wrote log repair --dry-run events    what is damaged, and touch nothing\n  \
        wrote log repair events";

const SHIP_LONG_ABOUT: &str = "Put the sealed segments into an object store.\n\nA segment is \
        sealed once it is full, and durable with a record of the next one. Each becomes one \
        object, which is created and never replaced. The command may run beside the writer and \
        takes no lock; killed at any moment, it continues where it was. cat, tail, stat and verify \
        read the URL as they read a folder.\n\nA line reports a store that is away or refuses. \
        Without --follow the command then ends with the exit code 1; with it it tries again, for \
        as long as it takes. Ctrl-C ends it.\n\nS3 takes its keys and settings from the \
        environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL for \
        other servers than Amazon's.";

const SHIP_EXAMPLES: &str = "Examples:\n  \
        wrote log ship events s3://bucket/events              what is sealed now\n  \
        wrote log ship --follow events s3://bucket/events     and what will be\n  \
        wrote log ship events file:///mnt/nas/events          into a folder\n  \
        wrote log cat s3://bucket/events --local events       all of it, from both";

const APPEND_LONG_ABOUT: &str = "Append each line of standard input as a record.\n\nThe log is \
        made where there is none. All lines survive a power loss when the command says done. \
        Before it waits for more input, what came is as safe as --sync says. What was appended \
        stays, also when it is interrupted.\n\nA log has one writer: one that is open for writing \
        is refused.";

const APPEND_EXAMPLES: &str = "Examples:\n  \
        echo hello | wrote log append events              one record\n  \
        journalctl -f | wrote log append events           each line durable as it comes\n  \
        wrote log append --sync no events < lines         as fast as the disk, durable at the \
        end\n  \
        wrote log append --format lines events < lines    a log that grep reads";

/// How records are printed.
#[derive(Clone, Copy, Debug, Args)]
pub struct LogShape {
    /// Print the sequence and a tab before each record
    #[arg(short, long)]
    pub sequence: bool,

    /// Print the bytes of the records, and nothing between them
    #[arg(long, conflicts_with = "sequence")]
    pub raw: bool,

    /// Print a JSON object a line: "sequence", "written_at", and "text", or "bytes_base64" where
    /// the record is not UTF-8
    #[arg(long, conflicts_with_all = ["sequence", "raw"])]
    pub json: bool,
}

/// The log that continues where a store ends.
#[derive(Clone, Debug, Args)]
pub struct BehindStore {
    /// The folder in which the log of a URL continues where the store ends
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub local: Option<PathBuf>,
}

/// The arguments of `wrote log cat`.
#[derive(Debug, Args)]
pub struct LogCatArgs {
    /// The log's folder, or the URL of its store: s3://bucket/prefix, file:///path
    #[arg(value_name = "DIR|URL", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Where it continues when the store ends.
    #[command(flatten)]
    pub behind: BehindStore,

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
    /// The log's folder, or the URL of its store: s3://bucket/prefix, file:///path
    #[arg(value_name = "DIR|URL", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Where it continues when the store ends.
    #[command(flatten)]
    pub behind: BehindStore,

    /// Begin with the last N records
    #[arg(short = 'n', long, value_name = "N", default_value = "10", value_parser = number,
        allow_hyphen_values = true)]
    pub count: u64,

    /// Begin with the record of this sequence instead
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "count", value_parser = number,
        allow_hyphen_values = true)]
    pub from: Option<u64>,

    /// Begin with the first record that was written at this time or later instead
    #[arg(long, value_name = "TIME", conflicts_with_all = ["count", "from"],
        value_parser = units::parse_moment, allow_hyphen_values = true)]
    pub since: Option<Timestamp>,

    /// Also print what is appended, until interrupted
    #[arg(short, long)]
    pub follow: bool,

    /// Follow, and wait for a log that is not there yet, or not any more
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

    /// Where it continues when the store ends.
    #[command(flatten)]
    pub behind: BehindStore,

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

    /// Where it continues when the store ends.
    #[command(flatten)]
    pub behind: BehindStore,

    /// Print it as JSON
    #[arg(long)]
    pub json: bool,

    /// Say nothing but what is damaged
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// The arguments of `wrote log repair`.
#[derive(Debug, Args)]
pub struct LogRepairArgs {
    /// The log's folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Say what is damaged, as verify does, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The arguments of `wrote log ship`.
#[derive(Debug, Args)]
pub struct LogShipArgs {
    /// The log's folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// The store: s3://bucket/prefix, or file:///path of a folder, which is made
    #[arg(value_name = "URL")]
    pub url: String,

    /// Continue with each segment that is sealed, until interrupted
    #[arg(short, long)]
    pub follow: bool,

    /// Say nothing but what goes wrong
    #[arg(short, long)]
    pub quiet: bool,
}

/// The arguments of `wrote log append`.
#[derive(Debug, Args)]
pub struct LogAppendArgs {
    /// The log's folder; it is made where it is not there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// When records are made durable on the way; at the end they all are
    #[arg(long, value_name = "WHEN", default_value = "always", value_parser = words([
        ("always", "As they come", SyncPolicy::Always),
        ("everysec", "About once a second", SyncPolicy::EverySec),
        ("no", "At the end", SyncPolicy::No)
    ]))]
    pub sync: SyncPolicy,

    /// How a new log stores its records (framed); one that is there keeps its own way
    #[arg(long, value_name = "FORMAT", value_parser = words([
        ("framed", "With checksums, any bytes", Format::Framed),
        ("lines", "As text, a line each", Format::Lines)
    ]))]
    pub format: Option<Format>,

    /// The longest line that is taken (1 MiB); memory is about ten times that
    #[arg(long, value_name = "SIZE", default_value = "1MiB", hide_default_value = true,
        value_parser = record_max, allow_hyphen_values = true)]
    pub record_max: usize,

    /// Say nothing but what goes wrong
    #[arg(short, long)]
    pub quiet: bool,
}

/// The most that `--record-max` takes, in bytes: with its headers it fits into a log's largest
/// buffer.
pub const RECORD_BYTES_MAX: usize = 63 << 20;

pub(super) fn record_max(text: &str) -> Result<usize, String> {
    let bytes = units::parse_block_size(text)?;
    let fits = usize::try_from(bytes).ok().filter(|bytes| *bytes <= RECORD_BYTES_MAX);
    fits.ok_or_else(|| {
        let most = units::block_size(RECORD_BYTES_MAX as u64);
        format!("{text:?}: is more than {most}, the longest record of a log")
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command, one_line};
    use super::*;
    use clap::Parser;

    fn parsed(line: &str) -> Result<LogVerb, String> {
        match Cli::try_parse_from(line.split(' ')) {
            Ok(Cli { command: Command::Log(arguments) }) => Ok(arguments.verb),
            Ok(_) => panic!("not a log: {line}"),
            Err(error) => Err(one_line(&error)),
        }
    }

    #[test]
    fn by_default_cat_prints_all_and_tail_the_last_ten() {
        let Ok(LogVerb::Cat(cat)) = parsed("wrote log cat events") else { panic!("a cat") };
        assert_eq!((cat.from, cat.to, cat.count), (0, None, None));
        let Ok(LogVerb::Tail(tail)) = parsed("wrote log tail events") else { panic!("a tail") };
        assert_eq!((tail.count, tail.from, tail.follow), (10, None, false));
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
    fn a_time_that_is_none_is_told() {
        let refused = parsed("wrote log cat --since yesterday events").unwrap_err();
        let because = "must be a time, as 2026-11-24T07:00Z or 2026-11-24T07:00, or an age, as 10m";
        assert_eq!(refused, format!("--since \"yesterday\": {because}"));
    }

    #[test]
    fn a_sequence_that_is_none_is_told() {
        let refused = parsed("wrote log cat --from -1 events").unwrap_err();
        assert_eq!(refused, "--from \"-1\": must be a whole number, 0 or more");
    }
}
