//! The tables' place in `docs/performance.md`.

use super::append::{self, ALONE_HEAD, Alone, LATENCY_HEAD, LatencyLine};
use super::job::Job;
use super::size::Size;
use super::table::{COUNTED_HEAD, Counted, Line, Unit};
use super::ways::{self, MEMORY_HEAD};
use super::wrote::Place;
use crate::failure::{Failure, Tried};
use std::path::Path;

const BEGIN: &str = "<!-- peers:begin -->";
const END: &str = "<!-- peers:end -->";

const ABOUT_WAYS: &str = "\n\n\
The ways to write: both sides have the same random data, made before the clock starts, and each \
makes a new file, whose opening, last sync and sync of its folder are inside the clock (of the bytes \
one at a time: up to the closing). `wrote run` has its file allocated before its clock starts, which \
`Writer` has not. A copy is a process from its start to its end, with the `sync -d` that \
`cp` and `rsync` need; only `wrote copy` syncs the folder too. Of several peers, what is asked is \
asked against the one with the best median. CPU time is that of the process with the kernel's \
threads that work for its rings; memory is what was resident at the peak, less what was there before \
the clock started where that is the data to write; of a command and of `wrote run` it is the \
largest process's, whole.";

const ABOUT_APPENDS: &str = "\n\n\
The logs: every producer is a thread (of the strategies with tokio a task), the messages are slices of \
random bytes made before the clock starts, and what is written to is opened before it starts: the log \
too, with its first segments made ready. Where each message is durable, its producer hands over the \
next one only then. Rates are of messages, bytes those of the messages alone; a slow peer is given \
fewer of them, and as many producers. Gathered: a thread takes all messages that wait and makes them \
durable together, for peers that do not do so by themselves. Of several peers, what is asked is asked \
against the one with the best median. `wrote run` writes directly into a file that was allocated before \
its clock starts, and flushes it in the end. The cycles are CPU seconds, user and kernel, times the \
frequency that `/proc/cpuinfo` tells. What redis-server takes is counted from its start to its end.";

/// What was measured, and how.
#[derive(Debug, Default)]
pub struct Results {
    /// Lines of the tables of streams and of small reads.
    pub lines: Vec<Line>,
    /// Lines of the table of instructions.
    pub counted: Vec<Counted>,
    /// Lines of the ways to write.
    pub ways: Vec<ways::Line>,
    /// Lines of what they have in memory.
    pub memory: Vec<ways::MemoryLine>,
    /// Lines of many producers and one log.
    pub appends: Vec<ways::Line>,
    /// What of it is measured alone.
    pub alone: Vec<Alone>,
    /// How long its producers wait.
    pub latencies: Vec<LatencyLine>,
    /// The commands as one would type them.
    pub commands: Vec<String>,
    /// The job files that some of them run.
    pub jobs: Vec<Job>,
}

/// Where and with what it was measured.
#[derive(Debug)]
pub struct Circumstances {
    /// The machine.
    pub place: Place,
    /// Whether the device under the folder has poll queues.
    pub has_poll_queues: bool,
    /// `fio-3.33`.
    pub fio_version: String,
    /// How many pairs of runs.
    pub pairs: u32,
    /// How long the files of the streams are, where that was said.
    pub size: Option<Size>,
}

impl Results {
    /// Adds commands, each once.
    pub fn add_commands(&mut self, commands: impl IntoIterator<Item = String>) {
        for command in commands {
            if !self.commands.contains(&command) {
                self.commands.push(command);
            }
        }
    }

    fn tables(&self) -> String {
        let mut tables: Vec<String> = Vec::new();
        let (streams, reads): (Vec<&Line>, Vec<&Line>) =
            self.lines.iter().partition(|line| line.unit == Unit::Stream);
        for lines in [streams, reads] {
            if let Some(first) = lines.first() {
                let rows = lines.iter().map(|line| line.row()).collect();
                tables.extend(table(&first.unit.head(), rows));
            }
        }
        tables.extend(table(COUNTED_HEAD, self.counted.iter().map(Counted::row).collect()));
        let ways = self.ways.iter().map(ways::Line::row).collect();
        let memory = self.memory.iter().map(ways::MemoryLine::row).collect();
        tables.extend(table(ways::HEAD, ways));
        tables.extend(table(MEMORY_HEAD, memory));
        let appends = self.appends.iter().map(ways::Line::row).collect();
        tables.extend(table(append::HEAD, appends));
        tables.extend(table(ALONE_HEAD, self.alone.iter().map(Alone::row).collect()));
        let latencies = self.latencies.iter().map(LatencyLine::row).collect();
        tables.extend(table(LATENCY_HEAD, latencies));
        tables.join("\n\n")
    }

    /// What one has to know of the ways to write, where there are any.
    fn about_ways(&self) -> &'static str {
        if self.ways.is_empty() && self.memory.is_empty() { "" } else { ABOUT_WAYS }
    }

    /// The same of the logs.
    fn about_appends(&self) -> &'static str {
        if self.appends.is_empty() && self.alone.is_empty() { "" } else { ABOUT_APPENDS }
    }

    fn job_files(&self) -> String {
        let each = self.jobs.iter().map(|job| format!("# {}\n{}", job.file_name(), job.text()));
        let files: Vec<String> = each.collect();
        if files.is_empty() {
            return String::new();
        }
        format!(
            "\n\n<details><summary>The job files</summary>\n\n```ini\n{}```\n\n</details>",
            files.join("\n")
        )
    }
}

/// A table; `None` without rows.
fn table(head: &str, rows: Vec<String>) -> Option<String> {
    (!rows.is_empty()).then(|| format!("{head}\n{}", rows.join("\n")))
}

/// The tables with where, when and how it was measured, in Markdown.
pub fn text(circumstances: &Circumstances, results: &Results) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let Circumstances { place, has_poll_queues, fio_version, pairs, size } = circumstances;
    let Place { kernel, cpus, filesystem, device } = place;
    let size = size.as_ref().map(|size| format!(" --size {size}")).unwrap_or_default();
    let queues = if *has_poll_queues { "with" } else { "without" };
    format!(
        "Measured on {date} with `cargo xtask peers --pairs {pairs}{size}`: Linux {kernel}, {cpus}, \
{filesystem} on {device} ({queues} poll queues), {fio_version}. Medians of {pairs} pairs, run in turn, the \
order swapped in every second pair.\n\n{}\n\n\
The peer's file has the blocks that wrote's own has when the clock starts: new, allocated, or \
written before. fio \
scrambles one random buffer; dd reads random data from a file in memory, a copy that its CPU time \
and its clock include. With a job file, CPU time is that of the whole process with the kernel's \
threads, less what the same job takes with a single operation.{}{}\n\n```sh\n{}\n```{}",
        results.tables(),
        results.about_ways(),
        results.about_appends(),
        results.commands.join("\n"),
        results.job_files()
    )
}

/// Fails unless the page has a place for the table.
pub fn check(page: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(page).tried(page.display())?;
    replaced(&text, "").map(|_| ()).ok_or_else(|| no_place(page))
}

/// Puts `table` into its place.
pub fn write(page: &Path, table: &str) -> Result<(), Failure> {
    let text = std::fs::read_to_string(page).tried(page.display())?;
    let text = replaced(&text, table).ok_or_else(|| no_place(page))?;
    std::fs::write(page, text).tried(page.display())
}

fn no_place(page: &Path) -> Failure {
    Failure::Failed(format!("{}: no lines {BEGIN} and {END}", page.display()))
}

fn replaced(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::super::job::random_read;
    use super::super::table::Subject;
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = format!("# Title\n{BEGIN}\nold\n{END}\nrest\n");
        let expected = format!("# Title\n{BEGIN}\nnew\n{END}\nrest\n");
        assert_eq!(replaced(&text, "new"), Some(expected));
    }

    #[test]
    fn a_page_without_both_markers_is_left_alone() {
        assert_eq!(replaced(&format!("# Title\n{BEGIN}\n"), "new"), None);
        assert_eq!(replaced(&format!("{END}\n{BEGIN}\n"), "new"), None);
    }

    fn circumstances() -> Circumstances {
        let place = Place {
            kernel: "6.18.0".into(),
            cpus: "2 x Some CPU".into(),
            filesystem: "ext4".into(),
            device: "vda1".into(),
        };
        let fio_version = "fio-3.33".into();
        Circumstances {
            place,
            has_poll_queues: false,
            fio_version,
            pairs: 7,
            size: Some("2g".parse().expect("a size")),
        }
    }

    fn subject() -> Subject {
        let (blocks, peer) = ("new", "fio");
        Subject { what: "job".into(), blocks, peer, throughput: None, cpu: None }
    }

    #[test]
    fn the_text_says_where_when_and_how() {
        let mut results = Results::default();
        results.add_commands(["wrote bench DIR".to_owned(), "wrote bench DIR".to_owned()]);
        let text = text(&circumstances(), &results);
        let place = "Linux 6.18.0, 2 x Some CPU, ext4 on vda1 (without poll queues), fio-3.33.";
        assert!(text.contains(place), "{text}");
        assert!(text.ends_with("```sh\nwrote bench DIR\n```"), "{text}");
    }

    #[test]
    fn each_unit_has_a_table_of_its_own() {
        let stream = Line::missing(Unit::Stream, subject(), "no room".into());
        let reads = Line::missing(Unit::Reads(4096), subject(), "not root".into());
        let lines = vec![reads, stream];
        let tables = Results { lines, ..Results::default() }.tables();
        let (first, second) = tables.split_once("\n\n").expect("two tables");
        assert!(first.contains("MB/s") && first.contains("no room"), "{first}");
        assert!(second.contains("kIOPS") && second.contains("not root"), "{second}");
        assert!(!second.contains("\n\n"), "{second}");
    }

    #[test]
    fn the_command_is_the_one_that_was_given() {
        let with = text(&circumstances(), &Results::default());
        assert!(with.contains("`cargo xtask peers --pairs 7 --size 2g`"), "{with}");
        let default = Circumstances { size: None, ..circumstances() };
        let without = text(&default, &Results::default());
        assert!(without.contains("`cargo xtask peers --pairs 7`"), "{without}");
    }

    #[test]
    fn the_ways_to_write_have_tables_of_their_own_and_are_explained() {
        let line = ways::Line {
            what: "work".into(),
            unit: ways::Unit::Stream,
            ours: "`Writer`".into(),
            peer: "`File`".into(),
            pairs: vec![],
            asked: None,
        };
        let results = Results { ways: vec![line], ..Results::default() };
        let with = text(&circumstances(), &results);
        assert!(with.contains(&format!("{}\n| work | `Writer` | `File` |", ways::HEAD)), "{with}");
        assert!(with.contains("The ways to write: both sides"), "{with}");
        assert!(!with.contains(MEMORY_HEAD), "{with}");
        let without = text(&circumstances(), &Results::default());
        assert!(!without.contains("The ways to write"), "{without}");
    }

    #[test]
    fn the_logs_have_a_table_of_their_own_and_are_explained() {
        let line = ways::Line {
            what: "work".into(),
            unit: ways::Unit::Messages,
            ours: "`Log`".into(),
            peer: "`File`".into(),
            pairs: vec![],
            asked: None,
        };
        let results = Results { appends: vec![line], ..Results::default() };
        let with = text(&circumstances(), &results);
        assert!(with.contains(&format!("{}\n| work | `Log` | `File` |", append::HEAD)), "{with}");
        assert!(with.contains("The logs: every producer"), "{with}");
        assert!(!with.contains(ALONE_HEAD) && !with.contains(LATENCY_HEAD), "{with}");
    }

    #[test]
    fn the_job_files_are_shown_whole() {
        let job = random_read("random-read", "/dev/zram0", "1g");
        let results = Results { jobs: vec![job.clone()], ..Results::default() };
        let text = text(&circumstances(), &results);
        assert!(text.contains(&format!("# random-read.fio\n{}```", job.text())), "{text}");
    }
}
