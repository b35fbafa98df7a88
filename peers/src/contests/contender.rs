//! The kinds of contenders, and how to read a run's figures.

use super::bench;
use super::contest::Contender;
use super::count::{self, counted, difference};
use super::job::{Job, Runner};
use super::outcome::Outcome;
use super::rows::{Words, filled, server};
use super::served::{self, Load};
use super::site::Site;
use super::wrote;
use lab::tools::failure::{Failure, Tried};

const COPY: &str = "copy";
const T_READ_BYTES: u64 = 4096;

/// Makes the contenders of one contest in their order.
pub struct Maker<'a> {
    site: &'a Site,
    /// Words that a contender has set.
    pub learned: Words,
    /// The jobs of the cells so far.
    cells: Vec<String>,
}

impl<'a> Maker<'a> {
    /// Begins a contest.
    pub fn new(site: &'a Site) -> Maker<'a> {
        Maker { site, learned: Words::new(), cells: Vec::new() }
    }

    /// Makes a contender from its words; `None` for an existing cell.
    pub fn contender(&mut self, entry: Words, words: &Words) -> Result<Option<Contender>, Failure> {
        let site = self.site;
        let word = |key: &str| entry.get(key).map(String::as_str).unwrap_or_default();
        let (name, line, prepare) = (word("name"), word("run").to_owned(), word("prepare"));
        let operations = word("operations").parse().ok();
        let (under, file) = (word("under"), entry.get("file").map_or("testfile", String::as_str));
        let runner = if name == "fio" { Runner::Fio } else { Runner::Wrote };
        let made = match word("by") {
            "copy" => {
                let source = word("source").to_owned();
                Contender::new(name, line, move |site, line| copy(site, line, &source))
            }
            "result" => Contender::new(name, line, |site, line| {
                wrote::only_row(&site.run(line)?.stdout, line)
            }),
            "within" => Contender::new(name, line, within),
            "iops" => Contender::new(name, line, iops),
            "job" => {
                let job = Job::new(word("job"), &line, file);
                return runner.contender(name, under, job, prepare, site).map(Some);
            }
            "cell" => {
                if self.cells.contains(&line) {
                    return Ok(None);
                }
                let size = entry.get("size").or(words.get("size"));
                let job = cell_job(word("job"), &line, size.map_or("", String::as_str));
                let cell = Words::from([("cell".to_owned(), cell_words(&line))]);
                self.cells.push(line);
                return runner.contender(&filled(name, &cell), "", job, prepare, site).map(Some);
            }
            "counted-job" => {
                counted(name, runner, &Job::new(word("job"), &line, file), under, site)?
            }
            "counted" => {
                let reads = |reads: u64| line.replace("{reads}", &reads.to_string());
                let (short, long) = (reads(count::READS), reads(3 * count::READS));
                Contender::new(name, short, move |site, short| {
                    let count = |line: &str| {
                        let finished = site.run(line)?;
                        let outcome = Outcome::of_line(&finished.stdout, line)?;
                        count::add(outcome, &finished.stderr)
                    };
                    difference("trial", count(short)?, count(&long)?)
                })
            }
            "bench" => {
                let (made, learned) = bench::own(name, &line, site)?;
                self.learned = learned;
                return Ok(Some(made));
            }
            "fio" => return bench::fio(&line, &self.learned, site).map(Some),
            by @ ("served" | "served-line" | "served-redis") => {
                let load = match by {
                    "served" => Load::Filed,
                    "served-line" => Load::Line,
                    _ => Load::Redis(operations.unwrap_or_default()),
                };
                let in_memory = !word("on_tmpfs").is_empty();
                served::contender(name, server(word("server"))?, line, load, in_memory)
            }
            _ => Contender::new(name, line, move |site, line| {
                let outcome = timed(site, line)?;
                Ok(Outcome { operations: operations.unwrap_or(outcome.operations), ..outcome })
            }),
        };
        Ok(Some(Contender { prepare: prepare.to_owned(), ..made }))
    }
}

/// Runs a program that prints its own outcome: `trial`, `putc` or `rivals`.
fn timed(site: &Site, line: &str) -> Result<Outcome, Failure> {
    Outcome::of_line(&site.run(line)?.stdout, line)
}

/// Runs a program that prints its outcome. CPU time covers the whole, with the starter's.
fn within(site: &Site, line: &str) -> Result<Outcome, Failure> {
    let (finished, whole) = site.measure(line)?;
    // The last line is `trial`'s, and the one before it the program's.
    let own = finished.stdout.trim_end().lines().rev().nth(1).unwrap_or_default();
    let outcome = Outcome::of_line(own, line)?;
    Ok(Outcome { cpu_s: whole.cpu_s, memory_bytes: whole.memory_bytes, ..outcome })
}

/// Copies the file `source` by `line`.
fn copy(site: &Site, line: &str, source: &str) -> Result<Outcome, Failure> {
    let length = |name: &str| {
        let path = site.folder.join(name);
        path.metadata().map(|metadata| metadata.len()).tried(path.display())
    };
    let bytes = length(if source.is_empty() { "source" } else { source })?;
    let (_, outcome) = site.measure(line)?;
    let copied = length(COPY)?;
    std::fs::remove_file(site.folder.join(COPY)).tried(COPY)?;
    if copied == bytes {
        return Ok(Outcome { bytes, ..outcome });
    }
    Err(Failure::Failed(format!("{line}: {copied} bytes, not {bytes}")))
}

/// Runs `t/io_uring`. Its CPU time covers the whole run, so its reads must too.
fn iops(site: &Site, line: &str) -> Result<Outcome, Failure> {
    let (finished, counted) = site.measure(line)?;
    let rates = rates(&finished.stdout);
    if rates.is_empty() {
        return Err(Failure::Failed("t/io_uring read nothing".to_owned()));
    }
    let per_s = rates.iter().sum::<f64>() / rates.len() as f64;
    let operations = (per_s * counted.elapsed_s) as u64;
    Ok(Outcome { bytes: operations * T_READ_BYTES, operations, ..counted })
}

/// Reads "IOPS=397.12K, BW=…" of each second.
fn rates(stdout: &str) -> Vec<f64> {
    let rate = |line: &str| {
        let figure = line.strip_prefix("IOPS=")?.split(',').next()?;
        let digits = figure.trim_end_matches(['K', 'M']);
        let factor = match &figure[digits.len()..] {
            "K" => 1e3,
            "M" => 1e6,
            _ => 1.0,
        };
        Some(digits.parse::<f64>().ok()? * factor)
    };
    stdout.lines().filter_map(rate).collect()
}

/// Makes the job that writes a new file of `size` as a cell of the grid `peak` does, durable within
/// the clock. "512k-64-registered" has the block size, the depth, and the way of io_uring.
fn cell_job(name: &str, cell: &str, size: &str) -> Job {
    let [bs, iodepth, way] = parts(cell);
    let (registered, polls) = (u8::from(way != "plain"), |polled| u8::from(way == polled));
    let keys = format!(
        "direct=1 rw=write ioengine=io_uring fallocate=native end_fsync=1 size={size} bs={bs} \
         iodepth={iodepth} fixedbufs={registered} registerfiles={registered} sqthread_poll={} \
         hipri={}",
        polls("sqpoll"),
        polls("polled")
    );
    Job::new(name, &keys, "testfile")
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

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn the_job_does_what_the_cell_did() {
        let text = cell_job("writer-peak-best", "2m-8-sqpoll", "4g").text();
        assert!(text.contains("\nsize=4g\nbs=2m\niodepth=8\nfixedbufs=1\nregisterfiles=1\n"));
        assert!(text.contains("\nsqthread_poll=1\nhipri=0\n"), "{text}");
        let text = cell_job("writer-peak-best", "128k-8-plain", "4g").text();
        assert!(text.contains("\nfixedbufs=0\nregisterfiles=0\nsqthread_poll=0\nhipri=0\n"));
        assert_eq!(cell_words("512k-64-registered"), "512k x 64, registered");
    }

    #[test]
    fn a_copy_that_is_too_short_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 1000);
        std::fs::write(folder.path().join("source"), [0; 1001]).expect("room");
        let failed = copy(&site, "wrote copy source copy", "").expect_err("too short");
        assert_eq!(failed.to_string(), "wrote copy source copy: 1000 bytes, not 1001");
    }

    #[test]
    fn the_rate_of_each_second_is_read() {
        let stdout =
            "submitter=0\nIOPS=397.12K, BW=1.5GiB/s\nIOPS=1.2M, BW=\nIOPS=950, BW=\nExit\n";
        assert_eq!(rates(stdout), [397_120.0, 1_200_000.0, 950.0]);
    }
}
