//! The names of what can be measured.

/// What can be measured.
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
    /// The same as peak-write with sqthread_poll.
    PeakWriteSqpoll,
    /// The same as peak-read with sqthread_poll.
    PeakReadSqpoll,
    /// One job file by both: 4 KiB random reads of /dev/zram0 on one core.
    RandomRead,
    /// The same job by wrote alone: with latencies against without (gtod_reduce).
    Instrument,
    /// Instructions in user space that each such read takes.
    Instructions,
    /// Writer against BufWriter and File: 64 KiB pieces, then durable.
    WriterDurable,
    /// Writer against wrote run: a durable stream by direct transfers.
    WriterPeak,
    /// Writer against BufWriter and C's putc_unlocked: one byte at a time.
    WriterBytes,
    /// wrote copy against cp, dd and rsync, durable: from the page cache, and from the device.
    CopyDurable,
    /// Peak memory of wrote copy of a file and of one that is 16 times as long.
    CopyMemory,
    /// wrote::write against the same steps by hand.
    Save,
    /// Log against the usual strategies: 4 producers, one sync in the end.
    #[value(name = "append-no-4")]
    AppendNo4,
    /// The same with 64 producers.
    #[value(name = "append-no-64")]
    AppendNo64,
    /// Log against wrote run: direct writes of 1 MiB.
    AppendNoDevice,
    /// Log alone: messages of 64 bytes.
    AppendSmall,
    /// Log against one fdatasync at a time: 64 producers, each message durable.
    #[value(name = "append-durable-64")]
    AppendDurable64,
    /// Log against okaywal, fjall, SQLite and redis-server: the same.
    AppendDurablePeers,
    /// Log against write and fdatasync: one producer, each message durable.
    #[value(name = "append-durable-1")]
    AppendDurable1,
}
