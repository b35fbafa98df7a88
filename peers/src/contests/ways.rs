//! The ways to write a file: those of wrote in turn with the other ways of a program.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::copy::{drop_cache, fill_cache, make};
use super::figures::Condition;
use super::job::{Job, Runner, Size, durable_write};
use super::outcome::Unit;
use super::site::Site;
use super::wrote;
use lab::tools::failure::Failure;

/// The length of the long files by default.
pub const WAYS_GIB: u64 = 4;
/// The length of the file that readers read.
const READ_GIB: u64 = 3;
const SOURCE: &str = "source";
const DROP_CACHES: &str = "trial drop-caches";
const BYTES: u64 = 256_000_000;
const SAVES: u64 = 500;
/// 512 KiB x 64 with buffers and file registered: where a fast device usually is at its best.
const USUAL_CELL: &str = "512k-64-registered";
const CELLS: &str = "peak/write/";

/// Compares `Writer` with direct writes by hand, `BufWriter` and `File`: a long file in pieces of
/// 64 KiB, then durable.
///
/// Before each run everything is flushed, and the page cache is dropped. What it held before
/// decides on the rate of cached writes: where it is full, each write waits until the kernel has
/// freed a page. At 64 KiB `BufWriter` and `File` make the same calls.
pub fn durable(site: &Site) -> Contest {
    let size = site.size(WAYS_GIB);
    let by = |by, name| Contender { prepare: DROP_CACHES.to_owned(), ..stream(by, name, &size) };
    Contest::new(
        format!("{} in pieces of 64 KiB, durable; caches dropped before each", size.text),
        Unit::Stream,
        vec![
            by("writer", "`Writer`"),
            by("direct", "by hand: direct, 3 threads of 2 MiB"),
            by("buf-writer", "`BufWriter`"),
            by("buf-writer-mib", "`BufWriter`, 1 MiB"),
            by("file", "`File`"),
        ],
        Requirement::of_best(Condition::AtLeast(1.2)),
    )
}

/// Compares `Reader` with `BufReader`: a long file of which nothing is in the page cache.
pub fn cold(site: &Site) -> Result<Contest, Failure> {
    let size = site.size(READ_GIB);
    make(site, SOURCE, size.bytes)?;
    Ok(Contest::new(
        format!("{} read, not in the page cache", size.text),
        Unit::Stream,
        readers("buffers", &drop_cache(SOURCE)),
        Requirement::of_best(Condition::AtLeast(1.3)),
    ))
}

/// Compares `Reader` with `BufReader`: single bytes and lines of a file in the page cache.
pub fn warm(site: &Site) -> Result<Vec<Contest>, Failure> {
    make(site, SOURCE, BYTES)?;
    let contest = |(takes, words)| {
        Contest::new(
            format!("256,000,000 bytes in the page cache, {words}"),
            Unit::Stream,
            readers(takes, &fill_cache(SOURCE)),
            Requirement::of_best(Condition::AtLeast(1.0)),
        )
    };
    Ok([("bytes", "one at a time"), ("lines", "by `read_until`")].map(contest).into())
}

fn readers(takes: &str, prepare: &str) -> Vec<Contender> {
    let by = |(by, name): (&str, &str)| {
        let line = format!("trial read --by {by} --takes {takes} {SOURCE}");
        Contender { prepare: prepare.to_owned(), ..Contender::timed(name, line) }
    };
    [
        ("reader", "`Reader`"),
        ("buf-reader", "`BufReader`"),
        ("buf-reader-128k", "`BufReader`, 128 KiB"),
        ("buf-reader-mib", "`BufReader`, 1 MiB"),
    ]
    .map(by)
    .into()
}

fn stream(by: &str, name: &str, size: &Size) -> Contender {
    Contender::timed(name, format!("trial stream --by {by} --bytes {} file", size.bytes))
}

/// Compares `Writer` with `BufWriter` and C's `putc_unlocked`: one byte at a time.
///
/// A virtual machine gives idle memory back to its host, and fetches each page anew. Each run gets
/// the pages of a file that was written and removed right before it, as much as it writes.
pub fn bytes() -> Contest {
    let contender = |name, line| {
        let prepare = format!("head -c {BYTES} /dev/zero > memory && rm memory");
        Contender { prepare, ..Contender::timed(name, line) }
    };
    let by = |by, name| contender(name, format!("trial bytes --by {by} --bytes {BYTES} file"));
    Contest::new(
        "256,000,000 bytes one at a time, cached, no sync, memory in use before",
        Unit::Stream,
        vec![
            by("writer", "`Writer`, not direct"),
            by("buf-writer", "`BufWriter`, 64 KiB"),
            contender("C, `putc_unlocked`", format!("putc file {BYTES}")),
        ],
        Requirement::of_each(Comparison::Rate, &[1.3, 1.0].map(Condition::AtLeast)),
    )
}

/// Compares `wrote::write` with its steps by hand: a small file replaced, durable each time.
pub fn save() -> Contest {
    let by =
        |by, name| Contender::timed(name, format!("trial save --by {by} --saves {SAVES} file"));
    Contest::new(
        format!("1000 bytes replaced {SAVES} times, atomic and durable"),
        Unit::Saves,
        vec![
            by("wrote", "`wrote::write`"),
            by("hand", "write, `sync_all`, rename, sync of the folder"),
        ],
        Requirement::of_best(Condition::AtLeast(1.0)),
    )
}

/// Compares `Writer` with the best direct writes of `wrote run`: the cost of a drop-in.
pub fn peak(site: &Site) -> Result<Contest, Failure> {
    let result = site.run("wrote bench . --only peak/write --format json")?.stdout;
    let best = best_cell(&result)?;
    eprintln!("peak writes best with {}", cell_words(&best));
    peak_against(&best, site)
}

fn peak_against(best: &str, site: &Site) -> Result<Contest, Failure> {
    let size = site.size(WAYS_GIB);
    let mut contenders = vec![
        stream("writer", "`Writer`", &size),
        cell_contender("writer-peak", USUAL_CELL, &size.text, site)?,
    ];
    if best != USUAL_CELL {
        contenders.push(cell_contender("writer-peak-best", best, &size.text, site)?);
    }
    Ok(Contest::new(
        format!("{} in pieces of 64 KiB, durable", size.text),
        Unit::Stream,
        contenders,
        Requirement::of_best(Condition::Level),
    ))
}

/// Makes a contender of `wrote run` that writes as a cell of the grid `peak` does. The cell
/// "512k-64-registered" has the block size, the depth, and the way of io_uring.
pub fn cell_contender(
    name: &str,
    cell: &str,
    size: &str,
    site: &Site,
) -> Result<Contender, Failure> {
    let title = format!("`wrote run`, {}", cell_words(cell));
    Runner::Wrote.contender(&title, "", cell_job(name, cell, size), "rm -f testfile", site)
}

fn cell_job(name: &str, cell: &str, size: &str) -> Job {
    let [bs, iodepth, way] = parts(cell);
    let (registered, polls) = (u8::from(way != "plain"), |polled| u8::from(way == polled));
    let keys = format!(
        "bs={bs} iodepth={iodepth} fixedbufs={registered} registerfiles={registered} \
         sqthread_poll={} hipri={}",
        polls("sqpoll"),
        polls("polled")
    );
    durable_write(name, &keys, size)
}

/// Writes "512k x 64, registered".
fn cell_words(cell: &str) -> String {
    let [bs, iodepth, way] = parts(cell);
    format!("{bs} x {iodepth}, {way}")
}

fn parts(cell: &str) -> [&str; 3] {
    let mut parts = cell.split('-');
    [(); 3].map(|()| parts.next().unwrap_or_default())
}

/// Finds the cell with the best median in a result of `wrote bench`.
fn best_cell(stdout: &str) -> Result<String, Failure> {
    let document = wrote::parse(stdout)?;
    let cells = wrote::rows(&document).filter_map(|row| {
        let median = row["throughput_bytes_per_s"]["median"].as_f64()?;
        Some((median, row["name"].as_str()?.strip_prefix(CELLS)?.to_owned()))
    });
    let best = cells.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map(|(_, cell)| cell)
        .ok_or_else(|| Failure::Failed(format!("the result of wrote bench has no {CELLS}…")))
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn every_contender_of_a_row_is_given_the_same_work() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        for (contest, expected) in [
            (
                durable(&site),
                "trial drop-caches\ntrial stream --by writer --bytes 4194304 file\n\
                 trial drop-caches\ntrial stream --by direct --bytes 4194304 file\n\
                 trial drop-caches\ntrial stream --by buf-writer --bytes 4194304 file\n\
                 trial drop-caches\ntrial stream --by buf-writer-mib --bytes 4194304 file\n\
                 trial drop-caches\ntrial stream --by file --bytes 4194304 file\n",
            ),
            (
                bytes(),
                "trial bytes --by writer --bytes 256000000 file\n\
                 trial bytes --by buf-writer --bytes 256000000 file\n\
                 putc file 256000000\n",
            ),
            (
                save(),
                "trial save --by wrote --saves 500 file\ntrial save --by hand --saves 500 file\n",
            ),
        ] {
            contest.measure(&site).expect("scripts");
            let calls = folder.path().join("calls");
            assert_eq!(std::fs::read_to_string(&calls).expect("called"), expected);
            std::fs::remove_file(&calls).expect("there");
        }
    }

    #[test]
    fn the_best_is_the_one_with_the_best_median() {
        let row = |name: &str, median: u64| {
            format!(r#"{{"name": "{name}", "throughput_bytes_per_s": {{"median": {median}}}}}"#)
        };
        let rows = [
            row("peak/write/128k-8-plain", 100),
            row("peak/write/2m-64-sqpoll", 300),
            row("peak/write/512k-8-registered", 200),
            row("peak/read/512k-8-registered", 900),
        ];
        let result = format!(r#"{{"scenarios": [{{"rows": [{}]}}]}}"#, rows.join(","));
        assert_eq!(best_cell(&result).expect("a best"), "2m-64-sqpoll");
        let message = best_cell("{}").expect_err("no rows").to_string();
        assert_eq!(message, "the result of wrote bench has no peak/write/…");
    }

    #[test]
    fn the_job_does_what_the_cell_did() {
        let text = cell_job("writer-peak-best", "2m-8-sqpoll", "4g").text();
        assert!(text.contains("\nbs=2m\niodepth=8\nfixedbufs=1\nregisterfiles=1\n"), "{text}");
        assert!(text.contains("\nsqthread_poll=1\nhipri=0\n"), "{text}");
        let text = cell_job("writer-peak-best", "128k-8-plain", "4g").text();
        assert!(text.contains("\nfixedbufs=0\nregisterfiles=0\nsqthread_poll=0\nhipri=0\n"));
        assert_eq!(cell_words(USUAL_CELL), "512k x 64, registered");
    }

    #[test]
    fn the_usual_cell_and_the_best_are_both_run_and_the_better_counts() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 8, 512 << 10);
        let contest = peak_against(USUAL_CELL, &site).expect("scripts");
        let measured = contest.measure(&site).expect("scripts");
        assert_eq!((contest.contenders.len(), measured.jobs.len()), (2, 1));
        let table = measured.table;
        assert!(table.starts_with("| 4m in pieces of 64 KiB, durable | MB/s |"), "{table}");
        assert!(table.contains("\n| `wrote run`, 512k x 64, registered | 8.39 (8.39–8.39) | "));
        assert!(table.contains("| **1.00** (1.00–1.00) | "), "{table}");
        assert!(table.ends_with("| ≥ 0.95 and some ≥ 1.00, met |"), "{table}");

        let contest = peak_against("2m-8-plain", &site).expect("scripts");
        let best = &contest.contenders[2];
        assert_eq!(best.name, "`wrote run`, 2m x 8, plain");
        let job = best.job.as_ref().expect("a job file");
        assert_eq!(job.file_name(), "writer-peak-best.fio");
    }

    #[test]
    fn a_job_that_writes_too_little_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 4, 512 << 10);
        let contest = peak_against(USUAL_CELL, &site).expect("scripts");
        let failed = contest.measure(&site).expect_err("half of it");
        assert_eq!(failed.to_string(), "wrote: 2097152 bytes, not 4194304");
    }
}
