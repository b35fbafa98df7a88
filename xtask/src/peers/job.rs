//! fio job files: the same text for both sides.

use std::fmt::Write as _;

/// A job file with one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The file's name, without its ending.
    name: &'static str,
    keys: Vec<(&'static str, String)>,
    filename: String,
}

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file.
    Read,
    /// Into the file.
    Write,
}

/// What the kernel polls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Completions (IORING_SETUP_IOPOLL), where the device has poll queues.
    pub hipri: bool,
    /// Submissions (IORING_SETUP_SQPOLL).
    pub sqthread: bool,
}

/// Bytes of one read or write of [`peak`].
pub const PEAK_BYTES: u64 = 512 << 10;
/// Bytes of one read of [`random_read`].
pub const RANDOM_BYTES: u64 = 4096;

/// Streams of 512 KiB x 64 in fixed buffers: the job file of "Hitting Peak File IO Performance with
/// Zig" (Ozgur Akkurt, 2025), with the size, the direction and the polling to choose.
pub fn peak(name: &'static str, direction: Direction, poll: Poll, size: &str) -> Job {
    let rw = match direction {
        Direction::Read => "read",
        Direction::Write => "write",
    };
    let bit = |is_on| if is_on { "1" } else { "0" };
    let keys = [
        ("direct", "1"),
        ("bs", "512K"),
        ("rw", rw),
        ("ioengine", "io_uring"),
        ("iodepth", "64"),
        ("size", size),
        ("hipri", bit(poll.hipri)),
        ("fixedbufs", "1"),
        ("registerfiles", "0"),
        ("sqthread_poll", bit(poll.sqthread)),
        ("numjobs", "1"),
    ];
    Job::new(name, &keys, "testfile")
}

/// Random reads of 4 KiB x 64 with all that fio can register, anywhere in the first `size` of
/// `filename`.
pub fn random_read(name: &'static str, filename: &str, size: &str) -> Job {
    let keys = [
        ("direct", "1"),
        ("bs", "4k"),
        ("rw", "randread"),
        ("ioengine", "io_uring"),
        ("iodepth", "64"),
        ("fixedbufs", "1"),
        ("registerfiles", "1"),
        ("nonvectored", "1"),
        ("size", size),
    ];
    Job::new(name, &keys, filename)
}

/// A new file of `size`, written by direct transfers and durable within the clock: `keys` say in
/// which pieces, how many at once, and with what registered.
pub fn durable_write(name: &'static str, keys: &[(&'static str, &str)], size: &str) -> Job {
    let common = [
        ("direct", "1"),
        ("rw", "write"),
        ("ioengine", "io_uring"),
        ("size", size),
        ("fallocate", "native"),
        ("end_fsync", "1"),
    ];
    Job::new(name, &[&common, keys].concat(), "testfile")
}

impl Job {
    fn new(name: &'static str, keys: &[(&'static str, &str)], filename: &str) -> Job {
        let keys = keys.iter().map(|&(key, value)| (key, value.to_owned())).collect();
        Job { name, keys, filename: filename.to_owned() }
    }

    /// The same by another name.
    pub fn named(&self, name: &'static str) -> Job {
        Job { name, ..self.clone() }
    }

    /// The same with one more key.
    pub fn with(&self, key: &'static str, value: &str) -> Job {
        let mut job = self.clone();
        job.keys.push((key, value.to_owned()));
        job
    }

    /// The same for `runtime_s` seconds, however much that is.
    pub fn for_seconds(&self, runtime_s: u32) -> Job {
        self.with("time_based", "1").with("runtime", &runtime_s.to_string())
    }

    /// The same until `size_bytes` are read or written, however long that takes.
    pub fn for_bytes(&self, size_bytes: u64) -> Job {
        let mut job = self.with("io_size", &size_bytes.to_string());
        job.keys.retain(|(key, _)| !matches!(*key, "time_based" | "runtime"));
        job
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("{}.fio", self.name)
    }

    /// What is in its file.
    pub fn text(&self) -> String {
        let mut text = "[global]\n".to_owned();
        for (key, value) in &self.keys {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{key}={value}");
        }
        let _ = write!(text, "\n[job0]\nfilename={}\n", self.filename);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: Poll = Poll { hipri: false, sqthread: false };

    #[test]
    fn the_job_of_streams_is_the_known_one() {
        let polled = Poll { hipri: true, sqthread: true };
        let job = peak("peak-write", Direction::Write, polled, "16g");
        assert_eq!(job.file_name(), "peak-write.fio");
        assert_eq!(
            job.text(),
            "[global]\ndirect=1\nbs=512K\nrw=write\nioengine=io_uring\niodepth=64\nsize=16g\n\
             hipri=1\nfixedbufs=1\nregisterfiles=0\nsqthread_poll=1\nnumjobs=1\n\n\
             [job0]\nfilename=testfile\n"
        );
    }

    #[test]
    fn polling_is_off_where_it_is_not_asked_for() {
        let text = peak("peak-read", Direction::Read, OFF, "2g").text();
        assert!(text.contains("\nrw=read\n") && text.contains("\nhipri=0\n"));
        assert!(text.contains("\nsqthread_poll=0\n"));
    }

    #[test]
    fn a_durable_stream_is_flushed_within_the_clock() {
        let text = durable_write("writer-peak", &[("bs", "512k"), ("iodepth", "64")], "4g").text();
        assert!(text.contains("\nend_fsync=1\nbs=512k\niodepth=64\n"), "{text}");
        assert!(text.contains("\nsize=4g\nfallocate=native\n"), "{text}");
    }

    #[test]
    fn a_job_is_bound_by_time_or_by_bytes_and_never_by_both() {
        let timed = random_read("random-read", "/dev/zram0", "1g").for_seconds(3);
        assert!(timed.text().contains("\ntime_based=1\nruntime=3\n"));
        let text = timed.for_bytes(8192).text();
        assert!(text.contains("\nio_size=8192\n"));
        assert!(!text.contains("time_based") && !text.contains("runtime"));
    }
}
