//! The rows: their names, and the contests of each.

use super::contest::Contest;
use super::site::Site;
use super::{append, awaited, bench, copy, job_rows, ranks, read, serve, ways};
use clap::ValueEnum;
use lab::tools::failure::Failure;

/// A row of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Row {
    /// wrote bench against fio: stream, direct, 512 KiB x 64.
    Stream,
    /// wrote bench against dd: stream, direct, one at a time.
    StreamOne,
    /// wrote bench against fio: 4 KiB, O_DSYNC each.
    Dsync,
    /// wrote bench against dd and fio: stream, cached.
    Cached,
    /// One job file by both: streams into a new file.
    PeakWrite,
    /// One job file by both: streams from a file.
    PeakRead,
    /// One job file by both: peak-write with sqthread_poll.
    PeakWriteSqpoll,
    /// One job file by both: peak-read with sqthread_poll.
    PeakReadSqpoll,
    /// One job file by both: 4 KiB random reads of /dev/zram0 on one core.
    RandomRead,
    /// The job of random-read by wrote alone: with latencies against without (gtod_reduce).
    Instrument,
    /// Instructions in user space that each read of random-read takes.
    Instructions,
    /// wrote run against fio's t/io_uring: 4 KiB random reads of /dev/zram0 on one core.
    ReadLimit,
    /// Instructions in user space that each read of read-limit takes, also by an engine alone.
    ReadInstructions,
    /// Writer against direct writes by hand, BufWriter and File: 64 KiB pieces, then durable.
    WriterDurable,
    /// Writer against wrote run: a durable stream by direct transfers.
    WriterPeak,
    /// Writer against BufWriter and C's putc_unlocked: one byte at a time.
    WriterBytes,
    /// Reader against BufReader: a long file that is not in the page cache.
    ReaderCold,
    /// Reader against BufReader: bytes and lines of a file in the page cache.
    ReaderWarm,
    /// wrote copy against cp, dd and rsync, durable: from the page cache, and from the device.
    CopyDurable,
    /// Peak memory of wrote copy of a file and of one that is 16 times as long.
    CopyMemory,
    /// wrote copy -r against cp -r, durable: many files of 4 KiB onto a new file system.
    CopyTree,
    /// wrote::write against the same steps by hand.
    Save,
    /// Log against the usual strategies: 4 producers, one sync in the end.
    #[value(name = "append-no-4")]
    AppendNo4,
    /// Log against the usual strategies: 64 producers, one sync in the end.
    #[value(name = "append-no-64")]
    AppendNo64,
    /// Log against wrote run: direct writes of 1 MiB.
    AppendNoDevice,
    /// Log alone: messages of 64 bytes.
    AppendSmall,
    /// Log against one fdatasync at a time: 64 producers, each message durable.
    #[value(name = "append-durable-64")]
    AppendDurable64,
    /// Log against okaywal, fjall, SQLite and redis-server: 64 producers, each message durable.
    AppendDurablePeers,
    /// Log against write and fdatasync: one producer, each message durable.
    #[value(name = "append-durable-1")]
    AppendDurable1,
    /// Log against a thread that gathers, writes and flushes: tasks and threads, each message
    /// durable.
    AppendGathered,
    /// Log alone: the bytes that the device gets, each message durable.
    AppendDeviceBytes,
    /// DirectFile awaited by tasks of tokio against spawn_blocking and wrote run: random reads.
    AwaitedRead,
    /// Writers on one disk against Writers with a ring each: 8 files at once.
    ManyFiles,
    /// LogReader alone: a log in the page cache, against a copy and a checksum of its bytes.
    LogReadCached,
    /// LogReader against wrote run: a log that is not in memory.
    LogRead,
    /// Log alone: openings after a close and after a kill.
    LogOpen,
    /// LogReader alone: one record in the middle of a segment.
    LogFind,
    /// wrote serve against rsyslog and syslog-ng: lines on TCP, none synced.
    ServeLines,
    /// wrote serve against a reader that throws the lines away.
    ServeFloor,
    /// wrote serve against rsyslog: RELP, synced.
    ServeRelp,
    /// wrote serve by HTTP against nats-server by JetStream: each message durable.
    ServeHttp,
    /// wrote serve against redis-server: XADD by redis-benchmark, each message durable.
    ServeResp,
    /// wrote run of 1, 2 and 4 ranks against IOR: a file for each, then durable.
    RanksWrite,
    /// wrote bench of 1, 2 and 4 ranks against mdtest: files created in one folder.
    RanksMeta,
}

impl Row {
    /// Prepares the contests of the row.
    pub fn contests(self, site: &Site) -> Result<Vec<Contest>, Failure> {
        Ok(match self {
            Row::Stream | Row::StreamOne | Row::Dsync | Row::Cached => {
                vec![bench::contest(self, site)?]
            }
            Row::PeakWrite | Row::PeakRead | Row::PeakWriteSqpoll | Row::PeakReadSqpoll => {
                vec![job_rows::streams(self, site)?]
            }
            Row::RandomRead => vec![job_rows::random_read(site)?],
            Row::Instrument => vec![job_rows::instrument(site)?],
            Row::Instructions => vec![job_rows::instructions(site)?],
            Row::ReadLimit => vec![job_rows::read_limit(site)?],
            Row::ReadInstructions => job_rows::read_instructions(site)?,
            Row::WriterDurable => vec![ways::durable(site)],
            Row::WriterPeak => vec![ways::peak(site)?],
            Row::WriterBytes => vec![ways::bytes()],
            Row::ReaderCold => vec![ways::cold(site)?],
            Row::ReaderWarm => ways::warm(site)?,
            Row::CopyDurable => copy::durable(site)?,
            Row::CopyMemory => vec![copy::memory(site)?],
            Row::CopyTree => copy::trees(site)?,
            Row::Save => vec![ways::save()],
            Row::AppendNo4 => vec![append::strategies(4)],
            Row::AppendNo64 => vec![append::strategies(64)],
            Row::AppendNoDevice => append::device(site)?,
            Row::AppendSmall => vec![append::small()?],
            Row::AppendDurable64 => vec![append::one_flush_at_a_time()],
            Row::AppendDurablePeers => append::logs(),
            Row::AppendDurable1 => vec![append::one_producer()],
            Row::AppendGathered => append::gathered(),
            Row::AppendDeviceBytes => append::device_bytes(),
            Row::AwaitedRead => awaited::reads(site)?,
            Row::ManyFiles => vec![awaited::many_files(site)],
            Row::LogReadCached => read::cached(),
            Row::LogRead => vec![read::uncached(site)?],
            Row::LogOpen => read::openings(),
            Row::LogFind => read::searches(),
            Row::ServeLines => serve::lines(),
            Row::ServeFloor => serve::floor(),
            Row::ServeRelp => serve::relp(),
            Row::ServeHttp => serve::http(),
            Row::ServeResp => serve::resp(),
            Row::RanksWrite => ranks::write()?,
            Row::RanksMeta => ranks::meta()?,
        })
    }

    /// Whether the row reads the device in memory.
    pub fn reads_zram(self) -> bool {
        matches!(
            self,
            Row::RandomRead
                | Row::Instrument
                | Row::Instructions
                | Row::ReadLimit
                | Row::ReadInstructions
        )
    }

    /// Whether the row runs servers that are unpacked beside the build.
    pub fn needs_servers(self) -> bool {
        matches!(self, Row::ServeLines | Row::ServeRelp)
    }

    /// Whether the row runs the program `rivals`.
    pub fn needs_rivals(self) -> bool {
        matches!(self, Row::AppendNo4 | Row::AppendNo64 | Row::AppendDurablePeers | Row::ServeFloor)
    }

    /// Returns the name and the description of `--help`.
    pub fn words(self) -> [String; 2] {
        let value = self.to_possible_value().expect("no row is hidden");
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        [value.get_name().to_owned(), help]
    }
}
