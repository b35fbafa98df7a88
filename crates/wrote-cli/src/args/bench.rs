//! The arguments of `wrote bench`, and their conversion into a request.

use super::values::{BlockSizes, block_sizes, formats, rate, words};
use super::{OutputArgs, RankArgs, of_rank, one_line};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueHint};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_bench::{Common, Request, Scenarios, Wear};
use wrote_jobs::peers::Peers;
use wrote_jobs::rate::{Amount, Rate};
use wrote_report::Format;
use wrote_result::document::Process;
use wrote_result::recipes::{LANGUAGES, RUST};
use wrote_result::units;

/// The arguments that the short help lists.
pub(super) const USUAL: [&str; 16] = [
    "path", "format", "json", "output", "html", "only", "size", "time", "runs", "wear", "bs",
    "iodepth", "within", "vs", "lang", "list",
];

const POISSON_HELP: &str = "At random intervals, as independent requests arrive";

/// The arguments of `wrote bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// The folder whose disk is measured
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::DirPath)]
    pub path: PathBuf,

    /// A second path, which is refused with a better answer than the parser's.
    #[arg(hide = true)]
    pub more: Vec<PathBuf>,

    /// How the result is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = formats(
        "For people: tables with bars, findings and advice",
        "The whole result, `wrote.result/1`",
        "One line for each run"
    ))]
    pub format: Format,

    /// Where the result goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Measure only these scenarios, workloads or rows (see --list) [default: ladder, read and 64
    /// writers of one log]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub only: Vec<String>,

    /// File bytes of one run: 512M, 2GB, 1GiB; of peak and rand, the size of the shared file; of
    /// ways, of a whole file
    ///
    /// With --numjobs it is shared between the threads. A stream of a size that was given is
    /// written whole, unless --time is given too; the other runs still end after their time.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size, allow_hyphen_values = true)]
    pub size: Option<u64>,

    /// How long one run may take, a last flush not counted: 500ms, 2s, 1m
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration,
        allow_hyphen_values = true)]
    pub time: Option<Duration>,

    /// How many runs of each row or cell, from 1 to 1000
    #[arg(long, value_name = "N", value_parser = units::parse_count::<{ Common::RUNS_MAX }>,
        allow_hyphen_values = true)]
    pub runs: Option<u32>,

    /// Limit on the bytes written: 10 GB, or 1 % of the drive where that is less (normal); a
    /// tenth of that (low) [default: normal; no limit with --size, --time, --runs or --rate]
    #[arg(long, value_name = "WEAR", conflicts_with = "size", value_parser = words([
        ("low", "1 GB, or 0.1 % of the drive", Wear::Low),
        ("normal", "10 GB, or 1 % of the drive", Wear::Normal)
    ]))]
    pub wear: Option<Wear>,

    /// Bytes of one read or write: STREAM, or STREAM,SMALL (256K,4K)
    ///
    /// STREAM is for stream and peak, SMALL for small and rand. One value alone is STREAM, or SMALL
    /// where --only names nothing but small and rand.
    #[arg(long, value_name = "SIZE[,SIZE]", value_parser = block_sizes, allow_hyphen_values = true)]
    pub bs: Option<BlockSizes>,

    /// Reads or writes in flight at once through io_uring, from 1 to 4096; of peak and rand, the
    /// only depth
    #[arg(long, value_name = "N", value_parser = units::parse_count::<{ Common::IODEPTH_MAX }>,
        allow_hyphen_values = true)]
    pub iodepth: Option<u32>,

    /// Threads, each with its own file, from 1 to 256
    #[arg(long, value_name = "N", value_parser = units::parse_count::<{ Common::NUMJOBS_MAX }>,
        allow_hyphen_values = true)]
    pub numjobs: Option<u32>,

    /// Hold every workload to a rate, and count latencies from when each operation was due: 5000 (a
    /// second), 20MB, 20MB/s
    ///
    /// All threads of a run share the rate. A run then takes 2 s unless --time says otherwise, and
    /// begins again in its file until that is over.
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true,
        group = "open_loop")]
    pub rate: Option<Amount>,

    /// When operations at a rate are due: at even distances (linear), or at random ones (poisson)
    /// [default: linear; poisson with --load-curve]
    #[arg(long, value_name = "PROCESS", requires = "open_loop", value_parser = words([
        ("linear", "At even intervals", Process::Linear),
        ("poisson", POISSON_HELP, Process::Poisson)
    ]))]
    pub rate_process: Option<Process>,

    /// The settings of each scenario.
    #[command(flatten)]
    pub scenarios: Scenarios,

    /// The settings of several ranks.
    #[command(flatten)]
    pub ranks: RankArgs,

    /// Measure the same again with ARGS over these arguments, in turn with it, and compare the two
    ///
    /// ARGS is one word for the shell: --vs '--iodepth 64'. It may name another PATH, too. The
    /// result is the comparison (see wrote compare), in JSON with both results in it.
    #[arg(long, value_name = "ARGS", conflicts_with_all = ["keep", "load_curve"],
        allow_hyphen_values = true)]
    pub vs: Option<String>,

    /// The language of the code in the advice
    #[arg(long, value_name = "LANG", default_value = RUST,
        value_parser = words(LANGUAGES.map(|(name, word)| (name, "", word))))]
    pub lang: &'static str,

    /// Leave the last test files where they are
    #[arg(long)]
    pub keep: bool,

    /// List what can be measured, all or what --only names, and measure nothing
    #[arg(long, conflicts_with_all = ["schema", "files"])]
    pub list: bool,

    /// Print the JSON Schema of the result, and measure nothing
    #[arg(long, conflicts_with = "files")]
    pub schema: bool,
}

impl BenchArgs {
    /// Returns the request to run the benchmark on these ranks. `command` is the command line as
    /// given.
    pub fn request(&self, command: Vec<String>, peers: Peers) -> Request {
        let (stream_bs_bytes, small_bs_bytes) = match self.bs {
            None => (None, None),
            Some(BlockSizes { first, second: Some(small) }) => (Some(first), Some(small)),
            Some(BlockSizes { first, second: None }) if self.asks_only_for(&["small", "rand"]) => {
                (None, Some(first))
            }
            Some(BlockSizes { first, second: None }) => (Some(first), None),
        };
        let mut scenarios = self.scenarios.clone();
        scenarios.load.process = self.rate_process;
        Request {
            path: of_rank(&self.path, peers),
            rank_files: self.ranks.files(),
            only: self.only.clone(),
            keep: self.keep,
            began: Some(Instant::now()),
            common: Common {
                size_bytes: self.size,
                time: self.time,
                runs: self.runs,
                stream_bs_bytes,
                small_bs_bytes,
                iodepth: self.iodepth,
                numjobs: self.numjobs,
                rate: self
                    .rate
                    .map(|amount| Rate { amount, process: self.rate_process.unwrap_or_default() }),
                wear: self.wear,
                wear_parts: 0,
            },
            scenarios,
            command,
            commit: crate::commit(),
        }
    }

    /// Returns whether `--only` names only these scenarios and their rows.
    fn asks_only_for(&self, these: &[&str]) -> bool {
        let is_of_these =
            |name: &String| name.split('/').next().is_some_and(|of| these.contains(&of));
        !self.only.is_empty() && self.only.iter().all(is_of_these)
    }
}

/// The settings that must be the same on both sides of `--vs`, because both are measured in one run
/// with one result.
const OF_BOTH: [&str; 11] = [
    "format",
    "output",
    "html",
    "force",
    "runs",
    "keep",
    "list",
    "schema",
    "vs",
    "load_curve",
    "rank_timeout",
];

impl BenchArgs {
    /// Returns these arguments, except where `words` give other values.
    ///
    /// # Errors
    ///
    /// A one-line description of what is wrong with `words`.
    pub fn with(&self, words: &str) -> Result<BenchArgs, String> {
        let wrong = |what: &str| format!("--vs {words:?}: {what}");
        let split = shlex::split(words).ok_or_else(|| wrong("a quote is not closed"))?;
        if split.is_empty() {
            return Err(wrong("changes nothing; for example: --vs '--iodepth 64'"));
        }
        let matches = definition().try_get_matches_from(split);
        let matches = matches.map_err(|error| wrong(&one_line(&error)))?;
        if let Some(argument) = OF_BOTH.iter().find(|argument| is_said(&matches, argument)) {
            let argument = argument.replace('_', "-");
            return Err(wrong(&format!("--{argument} must be the same on both sides")));
        }
        let mut other = self.clone();
        other.update_from_arg_matches(&matches).map_err(|error| wrong(&one_line(&error)))?;
        // Otherwise, a switch that is absent from these words would be turned off.
        other.scenarios.load.load_curve = self.scenarios.load.load_curve;
        Ok(BenchArgs { to: self.to.clone(), keep: self.keep, ..other })
    }
}

/// Returns the definition of a benchmark's arguments, without any defaults.
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
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use wrote_bench::MessageSizes;

    fn request(line: &str) -> Request {
        let cli = Cli::try_parse_from(line.split(' ')).expect("a good command line");
        let Command::Bench(arguments) = cli.command else { panic!("not a benchmark: {line}") };
        arguments.request(vec!["wrote".into()], Peers::ALONE)
    }

    #[test]
    fn every_set_option_reaches_the_benchmark() {
        let request = request(
            "wrote bench /data --only stream,small/dsync --size 1GiB --time 2s --runs 5 \
             --iodepth 32 --numjobs 4 --keep",
        );
        assert_eq!(request.path, PathBuf::from("/data"));
        assert_eq!(request.only, ["stream", "small/dsync"]);
        assert_eq!(request.common.size_bytes, Some(1 << 30));
        assert_eq!(request.common.time, Some(Duration::from_secs(2)));
        assert_eq!(
            (request.common.runs, request.common.iodepth, request.common.numjobs),
            (Some(5), Some(32), Some(4))
        );
        assert!(request.keep);
    }

    #[test]
    fn options_of_messages_reach_the_benchmark() {
        let usual = request("wrote bench --only append");
        let usual = usual.scenarios.append;
        assert!(usual.messages.is_none() && usual.message_size.is_none());
        assert!(usual.producers.is_empty());
        let asked = request(
            "wrote bench --only append --messages 1000000 --message-size 64..128 --producers 1,16",
        );
        let asked = asked.scenarios.append;
        let sizes = MessageSizes { min_bytes: 64, max_bytes: 128 };
        assert_eq!((asked.messages, asked.message_size), (Some(1_000_000), Some(sizes)));
        assert_eq!(asked.producers, [1, 16]);
    }

    #[test]
    fn a_rate_is_linear_and_a_curve_is_not_unless_it_is_said_otherwise() {
        let linear = request("wrote bench --rate 5k").common.rate.unwrap();
        assert_eq!(linear, Rate { amount: Amount::OperationsPerS(5000), process: Process::Linear });
        let poisson =
            request("wrote bench --rate 20MB --rate-process poisson").common.rate.unwrap();
        let expected = Rate { amount: Amount::BytesPerS(20_000_000), process: Process::Poisson };
        assert_eq!(poisson, expected);
        let curve = request("wrote bench --load-curve");
        assert!(curve.scenarios.load.load_curve && curve.common.rate.is_none());
        assert_eq!(curve.scenarios.load.process, None);
        let curve = request("wrote bench --load-curve --rate-process linear");
        assert_eq!(curve.scenarios.load.process, Some(Process::Linear));
        for refused in ["--rate-process poisson", "--rate 5k --load-curve"] {
            let line = format!("wrote bench {refused}");
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{refused}");
        }
    }

    #[test]
    fn one_block_size_is_the_streams_unless_only_small_blocks_are_measured() {
        let sizes = |line| {
            let request = request(line);
            (request.common.stream_bs_bytes, request.common.small_bs_bytes)
        };
        assert_eq!(sizes("wrote bench --bs 256K"), (Some(256 << 10), None));
        assert_eq!(sizes("wrote bench --bs 256K,8K"), (Some(256 << 10), Some(8 << 10)));
        assert_eq!(sizes("wrote bench --bs 8K --only small"), (None, Some(8 << 10)));
        assert_eq!(
            sizes("wrote bench --bs 8K --only small/cached,rand/mix"),
            (None, Some(8 << 10))
        );
        assert_eq!(sizes("wrote bench --bs 8K --only small,stream"), (Some(8 << 10), None));
        assert_eq!(sizes("wrote bench --bs 8K --only rand,peak"), (Some(8 << 10), None));
    }

    fn arguments(line: &str) -> BenchArgs {
        let cli = Cli::try_parse_from(line.split(' ')).expect("a good command line");
        let Command::Bench(arguments) = cli.command else { panic!("not a benchmark: {line}") };
        *arguments
    }

    #[test]
    fn second_options_replace_the_first_and_the_rest_stays() {
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
    fn options_that_cannot_differ_or_make_no_sense_are_refused_in_one_line() {
        for (words, told) in [
            ("", "changes nothing"),
            ("'", "a quote is not closed"),
            ("--runs 7", "--runs must be the same"),
            ("--format json", "--format must be the same"),
            ("-o x", "--output must be the same"),
            ("--vs x", "--vs must be the same"),
            ("--iodepth 0", "--iodepth \"0\": must be a whole number"),
            ("--nonsense", "unexpected argument '--nonsense'"),
        ] {
            let line = arguments("wrote bench").with(words).expect_err("must be refused");
            assert!(line.starts_with("--vs ") && line.contains(told), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }
}
