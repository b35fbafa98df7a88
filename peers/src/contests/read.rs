//! Logs that are read, opened and searched: `wrote::LogReader` and `wrote::Log` against the files.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::figures::Condition;
use super::job::{self, Runner};
use super::outcome::Unit;
use super::site::Site;
use lab::tools::failure::Failure;

/// Records of a log of a gigabyte, and their bytes.
const RECORDS: u64 = 1_000_000;
const RECORD_BYTES: u32 = 1000;
const SMALL_RECORDS: u64 = 10_000_000;
const SMALL_BYTES: u32 = 64;
/// The first segment of a log, which holds all of it.
const SEGMENT: &str = "log/00000000000000000001.segment";
/// The part of it that is read by hand: whole operations.
const SEGMENT_BYTES: u64 = 1900 * (512 << 10);
const OPENINGS: u32 = 20;
const SEARCHES: u32 = 200;
const RANGES: u32 = 2000;

/// Returns the line that makes a log.
fn make(records: u64, bytes: u32, options: &str) -> String {
    let shape = format!("--records {records} --record-bytes {bytes}");
    format!("rm -rf log && trial log-make {shape}{options} log")
}

fn reading(by: &str, name: &str, prepare: &str) -> Contender {
    let contender = Contender::timed(name, format!("trial log-read --by {by} log"));
    Contender { prepare: prepare.to_owned(), ..contender }
}

fn own(asked: Condition, contender: usize) -> Requirement {
    Requirement { of: Comparison::Own, asked, contender: Some(contender) }
}

/// Compares the readers of a log in the page cache with a copy and a checksum of its bytes.
pub fn cached() -> Vec<Contest> {
    let prepare = make(RECORDS, RECORD_BYTES, " --cached");
    let long = Contest::new(
        "1 M records of 1000 bytes, in the page cache",
        Unit::Stream,
        vec![
            reading("lent", "`LogReader::next_lent`", &prepare),
            reading("owned", "`LogReader`, a vector each", &prepare),
            reading("pieces", "`read` of 128 KiB and CRC-32C", &prepare),
        ],
        vec![own(Condition::AtLeast(2500.0), 0), own(Condition::AtLeast(1500.0), 1)],
    );
    let prepare = make(SMALL_RECORDS, SMALL_BYTES, " --cached");
    let small = Contest::new(
        "10 M records of 64 bytes, in the page cache",
        Unit::Messages,
        vec![
            reading("lent", "`LogReader::next_lent`", &prepare),
            reading("owned", "`LogReader`, a vector each", &prepare),
        ],
        vec![own(Condition::AtLeast(10_000.0), 0)],
    );
    vec![long, small]
}

/// Compares the reader of a log that is not in memory with `wrote run`'s sequential reads.
pub fn uncached(site: &Site) -> Result<Contest, Failure> {
    let prepare = make(RECORDS, RECORD_BYTES, "");
    site.run(&prepare)?;
    let job = job::sequential_read("log-read", SEGMENT, SEGMENT_BYTES);
    let by_hand = Runner::Wrote.contender("`wrote run`, 512k x 8", "", job, &prepare, site)?;
    Ok(Contest::new(
        "1 M records of 1000 bytes, not in memory",
        Unit::Stream,
        vec![reading("lent", "`LogReader::next_lent`", &prepare), by_hand],
        Requirement::of_best(Condition::AtLeast(0.95)),
    ))
}

/// Measures openings of logs that were closed, and of one that was killed.
pub fn openings() -> Vec<Contest> {
    let opening = |what: &str, times: u32, prepare: String, most_ms: f64| {
        let line = format!("trial log-open --times {times} log");
        let contender = Contender { prepare, ..Contender::timed("`Log`", line) };
        let requirements = vec![own(Condition::AtMost(most_ms), 0)];
        Contest::new(what, Unit::Time, vec![contender], requirements)
    };
    let gigabyte = |options| make(RECORDS, RECORD_BYTES, options);
    let small = " --segment-bytes 8192 --buffer-bytes 4096";
    vec![
        opening("a log that was closed, a segment of 1 GB", OPENINGS, gigabyte(""), 10.0),
        opening("a log after a kill, a segment of 1 GB", 1, gigabyte(" --killed"), 500.0),
        opening(
            "a log that was closed, about 480 segments",
            OPENINGS,
            gigabyte(" --segment-bytes 2200000"),
            10.0,
        ),
        opening(
            "a log that was closed, about 10,000 segments",
            OPENINGS,
            make(10_000 * 7, RECORD_BYTES, small),
            50.0,
        ),
    ]
}

/// Measures the search for one record in a segment of a gigabyte.
pub fn searches() -> Vec<Contest> {
    let search = |what: &str, by: &str, reads: u32, most_ms: f64| {
        let line = format!("trial log-find --by {by} --reads {reads} log");
        let prepare = make(RECORDS, RECORD_BYTES, "");
        let contender = Contender { prepare, ..Contender::timed("`LogReader`", line) };
        let requirements = vec![own(Condition::AtMost(most_ms), 0)];
        Contest::new(what, Unit::Time, vec![contender], requirements)
    };
    vec![
        search("a new reader from a record on, in 1 GB", "reader", SEARCHES, 5.0),
        search("a record by its sequence, read before, in 1 GB", "range", RANGES, 0.1),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn each_contender_has_a_log_of_its_own_and_the_requirements_are_its_own_figures() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1000, 1000);
        for (contest, contenders) in cached().iter().zip([3, 2]) {
            let table = contest.measure(&site).expect("scripts").table;
            assert_eq!(table.lines().count(), 2 + contenders, "{table}");
        }
        let calls = fake::calls(&site);
        let made = "trial log-make --records 1000000 --record-bytes 1000 --cached log";
        assert_eq!(calls[..2], [made, "trial log-read --by lent log"]);
        for contest in openings().iter().chain(&searches()) {
            let table = contest.measure(&site).expect("scripts").table;
            assert!(table.contains("| ms | ") && table.contains("| ms ≤ "), "{table}");
        }
    }
}
