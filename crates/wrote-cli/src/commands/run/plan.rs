//! The plan of jobs, which is printed before they run, or with `--check`.

use crate::commands::shown;
use itertools::Itertools;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote_jobs::fio_report::block_sizes;
use wrote_jobs::report::of_spec;
use wrote_jobs::spec::JobSpec;
use wrote_report::plain;
use wrote_result::document::{Direction, Flush};
use wrote_result::units::{self, counted, some_of};

const FILES_NAMED_MAX: usize = 3;

/// Returns whether a group creates the file before the first group that reads it.
fn is_written_before(file: &PathBuf, jobs: &[JobSpec]) -> bool {
    let first = |uses: fn(&JobSpec) -> bool| {
        let users = jobs.iter().filter(|job| uses(job) && job.files.paths.contains(file));
        users.map(|job| job.group).min()
    };
    let (written, read) = (first(|job| job.order.rw.write), first(|job| job.order.rw.read));
    written.zip(read).is_some_and(|(written, read)| written < read)
}

/// Returns a line about how many bytes will be written, and to which files.
pub(super) fn announced(jobs: &[JobSpec]) -> String {
    let writes = jobs.iter().filter(|job| job.order.rw.write);
    let written: Vec<PathBuf> = files(writes.clone());
    let read: Vec<PathBuf> = files(jobs.iter().filter(|job| job.order.rw.read));
    let mut parts = Vec::new();
    if !written.is_empty() {
        let most = writes.map(bytes_max).sum::<Option<u64>>();
        let most = match most {
            Some(bytes) => format!("at most {}", units::bytes(bytes)),
            None => "as much as the time allows".into(),
        };
        parts.push(format!("writes {most} into {}", named(&written)));
    }
    if !read.is_empty() {
        let is_laid_out = |file: &&PathBuf| !file.exists() && !is_written_before(file, jobs);
        let laid_out: Vec<PathBuf> = read.iter().filter(is_laid_out).cloned().collect();
        parts.push(format!("reads {}", named(&read)));
        if !laid_out.is_empty() {
            parts.push(format!("first writes {} to read from", named(&laid_out)));
        }
    }
    let groups: BTreeSet<u32> = jobs.iter().map(|job| job.group).collect();
    parts.push(counted(jobs.len() as u64, "job"));
    parts.push(counted(groups.len() as u64, "group"));
    if let Some(time) = time_max(jobs) {
        parts.push(format!("at most {}", units::seconds(time.as_secs_f64())));
    }
    parts.join(", ")
}

/// Returns the files of these jobs, in order and without duplicates.
fn files<'a>(jobs: impl Iterator<Item = &'a JobSpec>) -> Vec<PathBuf> {
    jobs.flat_map(|job| &job.files.paths).unique().cloned().collect()
}

fn named(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|file| absolute(file)).collect();
    some_of(&names, FILES_NAMED_MAX)
}

fn absolute(file: &Path) -> String {
    shown(&std::path::absolute(file).unwrap_or_else(|_| file.to_owned()))
}

/// Returns the maximum number of bytes that a job transfers; `None` if it is unknown.
fn bytes_max(job: &JobSpec) -> Option<u64> {
    if job.pace.time_based {
        return None;
    }
    let of_file = |file: &PathBuf| match job.files.file_bytes {
        Some(bytes) => Some(bytes),
        None => Some(file.metadata().ok()?.len().saturating_sub(job.files.offset_bytes)),
    };
    let once = match job.pace.io_bytes {
        Some(bytes) => bytes,
        None => job.files.paths.iter().map(of_file).sum::<Option<u64>>()?,
    };
    once.min(job.number_ios_bytes().unwrap_or(u64::MAX)).checked_mul(job.pace.loops.into())
}

/// Returns the maximum time of all groups; `None` if a job has no time limit.
fn time_max(jobs: &[JobSpec]) -> Option<Duration> {
    let groups: BTreeSet<u32> = jobs.iter().map(|job| job.group).collect();
    // The latest end of a job, counted from the start of its group.
    let end = |job: &JobSpec| Some(job.pace.startdelay + job.pace.ramp_time + job.pace.runtime?);
    let of_group = |group: u32| {
        let times = jobs.iter().filter(|job| job.group == group).map(end);
        times.collect::<Option<Vec<Duration>>>()?.into_iter().max()
    };
    groups.into_iter().map(of_group).sum()
}

/// Writes the plan: a line for each job, below the line of its group.
pub(super) fn write(jobs: &[JobSpec], out: &mut dyn Write) -> io::Result<()> {
    let mut group = None;
    let mut left = jobs;
    while let Some((job, others)) = left.split_first() {
        let is_clone = |other: &&JobSpec| other.name == job.name && other.clone > job.clone;
        let clones = others.iter().take_while(is_clone).count();
        if group != Some(job.group) {
            writeln!(out, "group {}:", job.group)?;
            group = Some(job.group);
        }
        let times = if clones > 0 { format!(" ({} times)", clones + 1) } else { String::new() };
        writeln!(out, "  {}{times}: {}", plain(&job.name), told(job))?;
        for file in files(left[..=clones].iter()) {
            writeln!(out, "    {}", whereabouts(&file, job, jobs))?;
        }
        left = &others[clones..];
    }
    Ok(())
}

/// Returns a description of a job: `randread of 4k, io_uring, iodepth 64, direct, 1.07 GB, for 30
/// s`.
fn told(job: &JobSpec) -> String {
    let sync = of_spec(job, Direction::Write).sync;
    let mut parts = vec![format!("{} of {}", job.order.rw.as_str(), block_sizes(job))];
    parts.push(job.io.ioengine.as_str().into());
    if job.io.iodepth > 1 {
        parts.push(format!("iodepth {}", job.io.iodepth));
    }
    parts.push(match job.io.direct {
        true => "direct".into(),
        false => "through the page cache".into(),
    });
    if job.order.rw.write && sync != Flush::None {
        parts.push(sync.to_string().replace('-', " "));
    }
    parts.extend(bytes_max(job).map(units::bytes));
    if let Some(runtime) = job.pace.runtime {
        let bound = if job.pace.time_based { "for" } else { "at most" };
        parts.push(format!("{bound} {}", units::seconds(runtime.as_secs_f64())));
    }
    if job.pace.ramp_time > Duration::ZERO {
        let ramp = units::seconds(job.pace.ramp_time.as_secs_f64());
        parts.push(format!("after {ramp} not counted"));
    }
    if let Some(think) = job.pace.think {
        let time = units::seconds(think.time.as_secs_f64());
        parts.push(format!(
            "pauses of {time} after every {}",
            counted(think.blocks.into(), "operation")
        ));
    }
    if job.writes.verify.is_some() {
        parts.push("verified by crc32c".into());
    }
    parts.join(", ")
}

/// Returns text about a file, and about what the permitted job will do with it, depending on
/// whether it exists.
fn whereabouts(file: &PathBuf, job: &JobSpec, jobs: &[JobSpec]) -> String {
    let what = match (file.exists(), job.order.rw.write) {
        (true, true) => "exists, and is overwritten",
        (true, false) => "exists",
        (false, _) if job.files.unlink => "is created, and removed after the group",
        (false, false) if is_written_before(file, jobs) => "is created by an earlier group",
        (false, true) if job.files.overwrite => "is created, and written, then overwritten",
        (false, true) => "is created",
        (false, false) => "is created, and written before it is read",
    };
    format!("{} {what}", absolute(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::samples::reports::spec;
    use wrote_jobs::spec::Think;

    fn checked(jobs: &[JobSpec]) -> String {
        let mut text = Vec::new();
        write(jobs, &mut text).expect("memory takes everything");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn a_file_that_an_earlier_group_writes_is_not_said_to_be_made_for_reading() {
        let mut jobs = vec![spec("a", "write", 4096, 1 << 20), spec("b", "read", 4096, 1 << 20)];
        jobs[1].files.paths = jobs[0].files.paths.clone();
        jobs[1].group = 1;
        assert!(!announced(&jobs).contains("first writes"), "{}", announced(&jobs));
        assert!(
            checked(&jobs).ends_with("/a.0 is created by an earlier group\n"),
            "{}",
            checked(&jobs)
        );
        jobs[1].group = 0;
        assert!(announced(&jobs).contains("first writes"), "{}", announced(&jobs));
    }

    #[test]
    fn the_announcement_is_one_line() {
        let mut jobs =
            vec![spec("a", "write", 4096, 1 << 30), spec("b", "randread", 4096, 1 << 20)];
        jobs[1].group = 1;
        assert_eq!(
            announced(&jobs),
            "writes at most 1.07 GB into /mnt/data/a.0, reads /mnt/data/b.0, first writes \
             /mnt/data/b.0 to read from, 2 jobs, 2 groups"
        );
        for job in &mut jobs {
            (job.pace.time_based, job.pace.runtime) = (true, Some(Duration::from_secs(30)));
        }
        let line = announced(&jobs);
        assert!(line.starts_with("writes as much as the time allows into"), "{line}");
        assert!(line.ends_with("2 jobs, 2 groups, at most 1 min 00 s"), "{line}");
    }

    #[test]
    fn a_check_tells_each_job_with_its_files() {
        let mut jobs = vec![spec("a", "write", 512 << 10, 1 << 30)];
        jobs[0].writes.fdatasync = Some(8);
        jobs.push(spec("b", "randread", 4096, 1 << 20).with(|job| job.group = 1));
        jobs.push(jobs[1].clone().with(|job| job.clone = 1));
        assert_eq!(
            checked(&jobs),
            "group 0:\n\x20 a: write of 512k, io_uring, iodepth 64, direct, fdatasync every 8, \
             1.07 GB\n\x20   /mnt/data/a.0 is created\ngroup 1:\n\x20 b (2 times): randread of 4k, \
             io_uring, iodepth 64, direct, 1.05 MB\n\x20   /mnt/data/b.0 is created, and written \
             before it is read\n"
        );
    }

    #[test]
    fn a_check_reports_pauses_and_files_that_are_removed() {
        let (time, spin) = (Duration::from_millis(2), Duration::ZERO);
        let mut jobs = vec![spec("a", "write", 4096, 1 << 20), spec("b", "write", 4096, 1 << 20)];
        (jobs[0].files.unlink, jobs[0].pace.runtime) = (true, Some(Duration::from_secs(5)));
        jobs[1].pace.runtime = jobs[0].pace.runtime;
        jobs[1].io.ioengine = wrote::Ioengine::Psync;
        jobs[1].pace.think = Some(Think { time, spin, blocks: 4 });
        let told = checked(&jobs);
        for words in [
            "/mnt/data/a.0 is created, and removed after the group",
            "b: write of 4k, psync",
            "pauses of 2.00 ms after every 4 operations",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        let line = announced(&jobs);
        assert!(line.starts_with("writes at most 2.10 MB into /mnt/data/a.0"), "{line}");
        assert!(line.ends_with("at most 5.00 s"), "{line}");
    }

    #[test]
    fn a_file_that_exists_is_named_as_such() {
        // W7
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut job = spec("a", "write", 4096, 1 << 20);
        job.files.paths = vec![file.path().to_owned()];
        assert!(checked(&[job]).contains("exists, and is overwritten"));
    }
}
