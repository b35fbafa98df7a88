//! fio job files with their sizes, and contenders that run them.

use super::contest::Contender;
use super::figures::Figures;
use super::outcome::Outcome;
use super::site::Site;
use super::wrote;
use lab::tools::failure::Failure;
use std::str::FromStr;

/// The number of runs that measure the CPU time of starting up.
const START_UPS: usize = 5;

/// The unit of sizes, in bytes. A multiple of it is a whole number of a stream's operations.
const UNIT_BYTES: u64 = 512 << 10;

/// A size such as `2g`: a number and k, m or g (powers of 1024).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The text that the caller gave.
    pub text: String,
    /// The size in bytes.
    pub bytes: u64,
}

impl Size {
    /// Returns a size of `number` GiB, with a text such as "2g".
    pub fn gib(number: u64) -> Size {
        Size { text: format!("{number}g"), bytes: number << 30 }
    }
}

/// Parses a number of bytes such as "4k", "512K", "2g" or "4096".
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let bytes = bytes(text).ok_or("a number and k, m or g: 2g")?;
        if bytes == 0 || !bytes.is_multiple_of(UNIT_BYTES) {
            return Err("a multiple of 512k: 2g".into());
        }
        Ok(Size { text: text.to_owned(), bytes })
    }
}

/// A job file with a single job, which both sides run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The file's name without its suffix.
    pub name: String,
    /// Lines such as "bs=4k".
    keys: Vec<String>,
    filename: String,
}

/// A program that runs job files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// `wrote run`.
    Wrote,
    Fio,
}

impl Job {
    /// Creates a job with keys such as "bs=4k rw=read".
    pub fn new(name: &str, keys: &str, filename: &str) -> Job {
        let keys = keys.split_whitespace().map(str::to_owned).collect();
        Job { name: name.to_owned(), keys, filename: filename.to_owned() }
    }

    /// Returns this job under another name.
    pub fn named(&self, name: &str) -> Job {
        Job { name: name.to_owned(), ..self.clone() }
    }

    /// Returns this job with one more key.
    pub fn with(&self, key: &str) -> Job {
        let mut job = self.clone();
        job.keys.push(key.to_owned());
        job
    }

    /// Returns this job limited to `size_bytes` instead of a time.
    pub fn for_bytes(&self, size_bytes: u64) -> Job {
        let mut job = self.with(&format!("io_size={size_bytes}"));
        job.keys.retain(|key| !key.starts_with("time_based=") && !key.starts_with("runtime="));
        job
    }

    /// Returns the name of the job's file.
    pub fn file_name(&self) -> String {
        format!("{}.fio", self.name)
    }

    /// Returns the content of the job's file.
    pub fn text(&self) -> String {
        format!("[global]\n{}\n\n[job0]\nfilename={}\n", self.keys.join("\n"), self.filename)
    }

    fn operation_bytes(&self) -> u64 {
        self.key_bytes("bs=").unwrap_or_default()
    }

    /// Returns the total bytes of all operations; `None` if time limits the job.
    fn total_bytes(&self) -> Option<u64> {
        let is_timed = self.keys.iter().any(|key| key == "time_based=1");
        let bytes = self.key_bytes("io_size=").or_else(|| self.key_bytes("size="));
        bytes.filter(|_| !is_timed)
    }

    fn key_bytes(&self, key: &str) -> Option<u64> {
        self.keys.iter().find_map(|line| bytes(line.strip_prefix(key)?))
    }

    /// Parses the output of `runner` in fio's layout. Fails unless all bytes of the job were
    /// transferred, in operations of the job's size.
    pub fn outcome(&self, runner: Runner, stdout: &str) -> Result<Outcome, Failure> {
        let name = runner.name();
        let outcome = Outcome::of_fio(stdout, name)?;
        let Outcome { bytes, operations, .. } = outcome;
        let operation_bytes = self.operation_bytes();
        let expected = self.total_bytes().unwrap_or(operations.saturating_mul(operation_bytes));
        if bytes != expected {
            return Err(Failure::Failed(format!("{name}: {bytes} bytes, not {expected}")));
        }
        if operations != bytes.div_ceil(operation_bytes) {
            return Err(Failure::Failed(format!(
                "{name}: {operations} operations of {operation_bytes} bytes are not {bytes} bytes"
            )));
        }
        Ok(outcome)
    }
}

impl Runner {
    /// Returns the program's name.
    pub fn name(self) -> &'static str {
        if self == Runner::Wrote { "wrote" } else { "fio" }
    }

    /// Returns the shell line that runs `job`, prefixed with `under`. wrote is allowed to overwrite
    /// a file that a peer left.
    pub fn command(self, under: &str, job: &Job) -> String {
        let file = job.file_name();
        match self {
            Runner::Wrote => format!("{under}wrote run {file} --format fio-json --overwrite"),
            Runner::Fio => format!("{under}fio --output-format=json --eta=never {file}"),
        }
    }

    /// Creates a contender that runs `job`, prefixed with `under`, and runs `prepare` before each
    /// run. Its CPU time covers the process and the kernel's threads, without the time for starting
    /// up. fio itself counts only a single thread (`RUSAGE_THREAD`).
    pub fn contender(
        self,
        name: &str,
        under: &str,
        job: Job,
        prepare: &str,
        site: &Site,
    ) -> Result<Contender, Failure> {
        let prepared = |contender| Contender { prepare: prepare.to_owned(), ..contender };
        let single = job.for_bytes(job.operation_bytes()).named("start-up");
        site.run(prepare)?;
        if self == Runner::Wrote {
            check_fallbacks(under, &single, site)?;
        }
        site.write(&single)?;
        let run = move |site: &Site, line: &str| {
            let (finished, counted) = site.measure(line)?;
            Outcome::of_fio(&finished.stdout, self.name())?;
            Ok(counted)
        };
        let start_up = prepared(Contender::new(name, self.command(under, &single), run));
        let start_ups_s = (0..START_UPS).map(|_| Ok(start_up.run(site)?.cpu_s));
        let start_ups_s: Vec<f64> = start_ups_s.collect::<Result<_, Failure>>()?;
        let start_up_s = Figures::new(start_ups_s).median();
        site.write(&job)?;
        let (command, file) = (self.command(under, &job), job.clone());
        let run = move |site: &Site, line: &str| {
            let (finished, counted) = site.measure(line)?;
            let cpu_s = (counted.cpu_s - start_up_s).max(0.0);
            let memory_bytes = counted.memory_bytes;
            Ok(Outcome { cpu_s, memory_bytes, ..file.outcome(self, &finished.stdout)? })
        };
        Ok(prepared(Contender { job: Some(job), ..Contender::new(name, command, run) }))
    }
}

/// Fails if wrote falls back from the settings of `job`, because it would then do different work
/// than fio. fio's layout has no field for fallbacks, so they are read from wrote's own format.
fn check_fallbacks(under: &str, job: &Job, site: &Site) -> Result<(), Failure> {
    site.write(job)?;
    let file = job.file_name();
    let finished = site.run(&format!("{under}wrote run {file} --format json --overwrite"))?;
    wrote::check_fallbacks(&finished.stdout, &file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contests::site::fake;

    #[test]
    fn a_job_is_bound_by_time_or_by_bytes_and_never_by_both() {
        let keys = "bs=4k size=1073741824 time_based=1 runtime=3";
        let timed = Job::new("random-read", keys, "/dev/zram0");
        assert!(timed.text().contains("\ntime_based=1\nruntime=3\n"));
        assert_eq!((timed.operation_bytes(), timed.total_bytes()), (4096, None));
        let job = timed.for_bytes(8192);
        let text = job.text();
        assert!(text.contains("\nio_size=8192\n"));
        assert!(!text.contains("time_based") && !text.contains("runtime"));
        assert_eq!(job.total_bytes(), Some(8192));
    }

    #[test]
    fn both_run_the_same_file_and_are_read_alike() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 10, 4096);
        let job = Job::new("random-read", "bs=4k size=40960", "testfile");
        site.write(&job).expect("room");
        for (runner, elapsed_s) in [(Runner::Wrote, 0.5), (Runner::Fio, 1.0)] {
            let finished = site.run(&runner.command("", &job)).expect("a script");
            let outcome = job.outcome(runner, &finished.stdout).expect("ten of them");
            assert_eq!((outcome.bytes, outcome.elapsed_s), (40_960, elapsed_s));
            let small = Job::new("small", "bs=512 size=40960", "testfile");
            let message = small.outcome(runner, &finished.stdout).expect_err("too few").to_string();
            assert!(message.ends_with("10 operations of 512 bytes are not 40960 bytes"));
        }
        let expected = [
            "wrote run random-read.fio --format fio-json --overwrite",
            "fio --output-format=json --eta=never random-read.fio",
        ];
        assert_eq!(fake::calls(&site), expected);
        let written = std::fs::read_to_string(folder.path().join("random-read.fio"));
        assert_eq!(written.expect("the job file"), job.text());
    }

    #[test]
    fn wrotes_own_result_says_whether_it_did_what_the_job_says() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        let job = Job::new("random-read", "bs=4k size=1m time_based=1", "testfile");
        check_fallbacks("", &job, &site).expect("no fallback");
        let expected = ["wrote run random-read.fio --format json --overwrite"];
        assert_eq!(fake::calls(&site), expected);
        let written = std::fs::read_to_string(folder.path().join("random-read.fio"));
        assert_eq!(written.expect("the job file"), job.text());
    }

    #[test]
    fn the_start_up_does_not_count_as_work() {
        // The script reports half a second of CPU time both for starting up and for the work.
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 8, 512 << 10);
        let job = Job::new("peak-write", "bs=512K rw=write size=4m", "testfile");
        let fio = Runner::Fio.contender("fio", "", job, "", &site).expect("scripts");
        let outcome = fio.run(&site).expect("a script");
        assert_eq!((outcome.cpu_s, outcome.elapsed_s), (0.0, 1.0));
        assert_eq!(fake::calls(&site).iter().filter(|call| call.contains("start-up")).count(), 10);
    }

    #[test]
    fn a_size_is_a_number_and_a_letter() {
        let bytes = |text: &str| text.parse::<Size>().expect("a size").bytes;
        assert_eq!(bytes("2g"), 2 << 30);
        assert_eq!("2g".parse(), Ok(Size::gib(2)));
        assert_eq!(bytes("64M"), 64 << 20);
        assert_eq!(bytes("512k"), 512 << 10);
        assert_eq!(bytes("1048576"), 1 << 20);
    }

    #[test]
    fn a_wrong_size_or_number_of_writes_is_refused() {
        let message = |text: &str| text.parse::<Size>().expect_err("refused");
        for text in ["", "g", "2x", "2gb", "-1g", "99999999999g", "1.5g"] {
            assert_eq!(message(text), "a number and k, m or g: 2g");
        }
        for text in ["0", "4k", "513k"] {
            assert_eq!(message(text), "a multiple of 512k: 2g");
        }
    }
}
