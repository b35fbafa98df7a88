//! The progress of jobs: one line at the start, a bar for each group on a terminal, and notes.

use super::Reporter;
use std::time::{Duration, Instant};
use wrote_jobs::jobs::Watcher;
use wrote_jobs::spec::JobSpec;
use wrote_report::per_second;
use wrote_result::units;

/// The length of the bar. The finished part of a group is measured in thousandths.
const PARTS: u64 = 1000;

/// The progress of jobs on standard error.
///
/// The announcement and the notes are always printed, unless the user wants quiet. The bar is shown
/// only on a terminal that can draw one; otherwise, lines are printed instead.
#[derive(Debug)]
pub struct JobReporter {
    bar: Reporter,
    /// The size of each operation in the current group; `None` if sizes differ.
    bs_bytes: Option<u64>,
    groups: usize,
    /// A description of the current group: `group 1 of 3: reader, mix`.
    group: String,
    groups_begun: usize,
    /// The text to print when the first group begins.
    announcement: Option<String>,
    began: Instant,
    last: Seen,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    read_bytes: u64,
    written_bytes: u64,
}

impl JobReporter {
    /// Returns a reporter for these jobs.
    pub fn new(jobs: &[JobSpec]) -> JobReporter {
        let mut groups: Vec<u32> = jobs.iter().map(|job| job.group).collect();
        groups.dedup();
        let now = Instant::now();
        JobReporter {
            bar: Reporter::default(),
            bs_bytes: None,
            groups: groups.len(),
            group: String::new(),
            groups_begun: 0,
            announcement: None,
            began: now,
            last: Seen { at: now, read_bytes: 0, written_bytes: 0 },
        }
    }

    /// Keeps the announcement until the first group begins, because refused jobs are not announced.
    pub fn announce(&mut self, line: String) {
        self.announcement = Some(line);
    }

    /// Prints a remark that is not part of the result.
    pub fn tell(&mut self, text: &str) {
        self.bar.say(&format!("wrote: note: {text}"));
    }
}

impl Watcher for JobReporter {
    fn group(&mut self, _group: u32, jobs: &[&JobSpec], laid_out_bytes: u64) {
        if let Some(line) = self.announcement.take() {
            self.bar.say(&line);
        }
        self.groups_begun += 1;
        self.bs_bytes = jobs[0].one_size();
        if jobs.iter().any(|job| job.one_size() != self.bs_bytes) {
            self.bs_bytes = None;
        }
        self.group = group(self.groups_begun, self.groups, jobs);
        self.began = Instant::now();
        self.last = Seen { at: self.began, read_bytes: 0, written_bytes: 0 };
        let first = match laid_out_bytes {
            0 => String::new(),
            bytes => format!("  first writing {} to read from", units::bytes(bytes)),
        };
        self.bar.show(0, PARTS, None, &format!("{}{first}", self.group));
    }

    fn progress(&mut self, read_bytes: u64, written_bytes: u64, fraction: f64) {
        let now = Seen { at: Instant::now(), read_bytes, written_bytes };
        let left = left(now.at - self.began, fraction);
        let message = format!("{}  {}", self.group, rates(&self.last, &now, self.bs_bytes));
        self.last = now;
        self.bar.show((fraction.clamp(0.0, 1.0) * PARTS as f64) as u64, PARTS, left, &message);
    }

    fn note(&mut self, text: &str) {
        self.tell(text);
    }
}

/// Returns the number of the group and the names of its jobs, without repetitions.
fn group(number: usize, groups: usize, jobs: &[&JobSpec]) -> String {
    let mut names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    names.dedup();
    let names = names.join(", ");
    if groups == 1 { names } else { format!("group {number} of {groups}: {names}") }
}

/// Returns text such as `1.20 GB/s read, 293 k/s, 300 MB/s written, 73.2 k/s`, for the time since
/// `before`. Leaves out directions without I/O, and the rate of operations if their sizes differ.
fn rates(before: &Seen, now: &Seen, bs_bytes: Option<u64>) -> String {
    let elapsed_s = (now.at - before.at).as_secs_f64().max(1e-9);
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / elapsed_s;
    let told = |bytes: u64, before: u64, what: &str| {
        let rate = rate(bytes, before);
        let operations = bs_bytes.map(|bs| format!(", {}", per_second(rate / bs as f64)));
        let operations = operations.unwrap_or_default();
        (bytes > 0).then(|| format!("{} {what}{operations}", units::rate(rate)))
    };
    let read = told(now.read_bytes, before.read_bytes, "read");
    let written = told(now.written_bytes, before.written_bytes, "written");
    [read, written].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the time left, estimated from the elapsed time and the fraction done; `None` before the
/// first byte.
fn left(elapsed: Duration, fraction: f64) -> Option<Duration> {
    let whole_s = elapsed.as_secs_f64() / fraction.clamp(0.0, 1.0);
    Duration::try_from_secs_f64(whole_s).ok().map(|whole| whole.saturating_sub(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::samples::reports::spec;

    #[test]
    fn the_time_left_follows_from_the_part_that_is_done() {
        assert_eq!(left(Duration::from_secs(3), 0.25), Some(Duration::from_secs(9)));
        assert_eq!(left(Duration::from_secs(3), 1.5), Some(Duration::ZERO));
        assert_eq!(left(Duration::from_secs(3), 0.0), None);
        assert_eq!(left(Duration::ZERO, 0.0), None);
        assert_eq!(left(Duration::from_secs(3), f64::NAN), None);
    }

    #[test]
    fn rates_are_those_since_the_time_before() {
        let at = Instant::now();
        let before = Seen { at, read_bytes: 1_000_000, written_bytes: 0 };
        let now =
            Seen { at: at + Duration::from_millis(500), read_bytes: 3_000_000, written_bytes: 0 };
        assert_eq!(rates(&before, &now, None), "4.00 MB/s read");
        assert_eq!(rates(&before, &now, Some(4000)), "4.00 MB/s read, 1.00 k/s");
        assert_eq!(rates(&now, &Seen { written_bytes: 1, ..now }, None).matches(',').count(), 1);
    }

    #[test]
    fn a_group_is_told_by_its_jobs_and_its_number_where_there_are_several() {
        let jobs = ["a", "a", "b"].map(|name| spec(name, "write", 4096, 4096));
        assert_eq!(group(1, 1, &jobs.each_ref()), "a, b");
        assert_eq!(group(2, 3, &jobs.each_ref()), "group 2 of 3: a, b");
    }
}
