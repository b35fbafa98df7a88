//! The tables' place in `docs/performance.md`.

use super::job::Job;
use super::size::Size;
use super::table::{COUNTED_HEAD, Counted, Line, Unit};
use super::wrote::Place;
use crate::failure::{Failure, Tried};
use std::path::Path;

const BEGIN: &str = "<!-- peers:begin -->";
const END: &str = "<!-- peers:end -->";

/// What was measured, and how.
#[derive(Debug, Default)]
pub struct Results {
    /// Lines of all tables but the last.
    pub lines: Vec<Line>,
    /// Lines of the table of instructions.
    pub counted: Vec<Counted>,
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
    /// How long the file of the streaming job files is.
    pub size: Size,
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
                let rows: Vec<String> = lines.iter().map(|line| line.row()).collect();
                tables.push(format!("{}\n{}", first.unit.head(), rows.join("\n")));
            }
        }
        if !self.counted.is_empty() {
            let rows: Vec<String> = self.counted.iter().map(Counted::row).collect();
            tables.push(format!("{COUNTED_HEAD}\n{}", rows.join("\n")));
        }
        tables.join("\n\n")
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

/// The tables with where, when and how it was measured, in Markdown.
pub fn text(circumstances: &Circumstances, results: &Results) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let Circumstances { place, has_poll_queues, fio_version, pairs, size } = circumstances;
    let Place { kernel, cpus, filesystem, device } = place;
    let queues = if *has_poll_queues { "with" } else { "without" };
    format!(
        "Measured on {date} with `cargo xtask peers --pairs {pairs} --size {size}`: Linux {kernel}, {cpus}, \
{filesystem} on {device} ({queues} poll queues), {fio_version}. Medians of {pairs} pairs, run in turn, the \
order swapped in every second pair.\n\n{}\n\n\
The peer's file has the blocks that wrote's own has when the clock starts: new, allocated, or \
written before. fio \
scrambles one random buffer; dd reads random data from a file in memory, a copy that its CPU time \
and its clock include. With a job file, CPU time is that of the whole process with the kernel's \
threads, less what the same job takes with a single operation.\n\n```sh\n{}\n```{}",
        results.tables(),
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
            size: "2g".parse().expect("a size"),
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
    fn the_job_files_are_shown_whole() {
        let job = random_read("random-read", "/dev/zram0", "1g");
        let results = Results { jobs: vec![job.clone()], ..Results::default() };
        let text = text(&circumstances(), &results);
        assert!(text.contains(&format!("# random-read.fio\n{}```", job.text())), "{text}");
    }
}
