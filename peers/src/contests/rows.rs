//! The rows of `peers/rows.toml`, and their contests.

use super::contender::contender;
use super::contest::{Comparison, Contest, Requirement};
use super::figures::Condition;
use super::job::Size;
use super::outcome::Unit;
use super::served::Server;
use super::site::{self, Site};
use lab::tools::failure::Failure;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Texts by name, which replace `{name}` in the lines of a row.
pub type Words = BTreeMap<String, String>;

/// The default length of the streams, in GiB.
const GIB: u64 = 4;

/// Something that a row requires in addition to the command and `trial`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// The program `rivals`.
    Rivals,
    /// The servers that are unpacked next to the build.
    Servers,
    /// Debian's versions of the programs that `wrote fit` supports.
    Programs,
}

/// A row of the measurements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The row's name.
    pub name: String,
    /// The row's line in `--help`.
    pub help: String,
    #[serde(default)]
    needs: Vec<Need>,
    gib: Option<u64>,
    /// The shell lines to run once before everything else.
    #[serde(default)]
    setup: Vec<String>,
    /// The shell line to run once after everything else, unless the setup was refused.
    #[serde(default)]
    pub cleanup: String,
    contests: Vec<Shape>,
}

/// A contest with placeholders for the parts that differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    what: String,
    unit: Unit,
    /// The entries for each of which the contest is run. An entry whose `disk` is not the site's is
    /// left out.
    #[serde(default)]
    each: Vec<Words>,
    /// Whether a single contest has the contenders of all entries of `each`.
    #[serde(default)]
    together: bool,
    run: Option<String>,
    prepare: Option<String>,
    contenders: Vec<Words>,
    #[serde(default)]
    asks: Vec<Ask>,
}

/// A condition on a comparison.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    #[serde(default)]
    of: Comparison,
    least: Option<Figure>,
    most: Option<Figure>,
    against: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Figure {
    Number(f64),
    Word(String),
}

#[derive(Deserialize)]
struct Book {
    row: Vec<Row>,
    words: Words,
    server: Vec<Server>,
}

static BOOK: LazyLock<Book> = LazyLock::new(|| {
    toml::from_str(include_str!("../../rows.toml")).expect("rows.toml, which a test reads")
});

/// Returns all rows in their order.
pub fn all() -> &'static [Row] {
    &BOOK.row
}

/// Returns the server with that name.
pub fn server(name: &str) -> Result<&'static Server, Failure> {
    let unknown = || Failure::Failed(format!("rows.toml has no server {name}"));
    BOOK.server.iter().find(|server| server.name == name).ok_or_else(unknown)
}

/// Replaces each name in braces with its text.
pub fn filled(text: &str, words: &Words) -> String {
    let put =
        |text: String, (name, word): (&String, &String)| text.replace(&format!("{{{name}}}"), word);
    words.iter().fold(text.to_owned(), put)
}

impl Row {
    /// Returns whether the row requires this.
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }

    /// Prepares the contests of the row.
    pub fn contests(&self, site: &Site) -> Result<Vec<Contest>, Failure> {
        let mut words = BOOK.words.clone();
        let gib = self.gib.unwrap_or(GIB);
        words.extend(site.words(site.size.clone().unwrap_or_else(|| Size::gib(gib))));
        self.needs.iter().try_for_each(|need| site::provide(*need))?;
        for line in &self.setup {
            // If a registry does not answer, the other rows can still be measured.
            site.run(&filled(line, &words)).map_err(|failure| match failure {
                Failure::Failed(because) => Failure::Skipped(because),
                other => other,
            })?;
        }
        let (here, mut contests) = (site.disk.to_string(), Vec::new());
        for shape in &self.contests {
            let once = [Words::new()];
            let all = if shape.each.is_empty() { &once } else { &shape.each[..] };
            let is_here = |each: &&Words| each.get("disk").is_none_or(|disk| *disk == here);
            let all: Vec<&Words> = all.iter().filter(is_here).collect();
            for each in all.chunks(if shape.together { all.len() } else { 1 }) {
                contests.push(shape.contest(each, &words, site)?);
            }
        }
        Ok(contests)
    }
}

impl Shape {
    fn contest(&self, all: &[&Words], words: &Words, site: &Site) -> Result<Contest, Failure> {
        let with = |text: &str, each: &Words| filled(&filled(text, each), words);
        let outer = |text: &str| with(text, all[0]);
        let mut contenders = Vec::new();
        for (each, entry) in
            all.iter().flat_map(|each| self.contenders.iter().map(move |entry| (each, entry)))
        {
            let mut entry = entry.clone();
            for (key, text) in [("run", &self.run), ("prepare", &self.prepare)] {
                if let (None, Some(text)) = (entry.get(key), text) {
                    entry.insert(key.to_owned(), text.clone());
                }
            }
            let own = |text: &String| with(&filled(text, &entry), each);
            let entry = entry.iter().map(|(key, text)| (key.clone(), own(text))).collect();
            contenders.push(contender(&entry, site)?);
        }
        Ok(Contest {
            what: outer(&self.what),
            unit: self.unit,
            contenders,
            requirements: self.asks.iter().map(|ask| ask.requirement(&outer)).collect(),
        })
    }
}

impl Ask {
    fn requirement(&self, outer: &impl Fn(&str) -> String) -> Requirement {
        let figure = |figure: &Figure| match figure {
            Figure::Number(number) => *number,
            Figure::Word(word) => outer(word).parse().unwrap_or(f64::NAN),
        };
        let asked = match (&self.least, &self.most) {
            (Some(least), _) => Condition::AtLeast(figure(least)),
            (None, most) => Condition::AtMost(most.as_ref().map_or(f64::NAN, figure)),
        };
        Requirement { of: self.of, asked, contender: self.against }
    }
}

/// Returns the row with that name.
#[cfg(test)]
pub fn named(name: &str) -> &'static Row {
    all().iter().find(|row| row.name == name).expect("a row")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contests::site::fake;
    use lab::tools::disks::DiskKind;

    /// Measures the contests of a row with fake programs. Returns the tables and the calls.
    fn measured(name: &str) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 8, 512 << 10);
        let contests = named(name).contests(&site).expect("scripts");
        let table = |contest: &Contest| contest.measure(&site).expect("scripts").table;
        (contests.iter().map(table).collect(), fake::calls(&site))
    }

    #[test]
    fn no_word_of_a_row_is_left_without_its_meaning() {
        for row in all() {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let site = fake::site(folder.path(), 8, 512 << 10);
            let mut words = BOOK.words.clone();
            words.extend(site.words(Size::gib(1)));
            for shape in &row.contests {
                for (number, entry) in shape.contenders.iter().enumerate() {
                    let mut known = words.clone();
                    known.extend(shape.each.first().cloned().unwrap_or_default());
                    let run = entry.get("run").or(shape.run.as_ref()).expect("work to do");
                    for text in entry.values().chain([run, &shape.what]) {
                        let text = filled(&filled(&filled(text, entry), &known), &known);
                        let rest = text.split('{').skip(1).filter(|rest| {
                            rest.split_once('}').is_some_and(|(word, _)| {
                                word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                            })
                        });
                        let rest: Vec<&str> = rest.collect();
                        assert!(rest.is_empty(), "{} {number}: {rest:?}", row.name);
                    }
                    let server = entry.get("server");
                    assert!(server.is_none_or(|name| super::server(name).is_ok()), "{server:?}");
                }
                for ask in &shape.asks {
                    let figures = [&ask.least, &ask.most];
                    let count = figures.iter().filter(|figure| figure.is_some()).count();
                    assert_eq!(count, 1, "{}", row.name);
                    assert!(ask.against.is_none_or(|number| number < shape.contenders.len()));
                }
            }
        }
    }

    #[test]
    fn each_contest_of_a_row_has_its_own_words_and_conditions() {
        let (tables, calls) = measured("append-gathered");
        assert!(calls[0].starts_with("trial append --by log-tasks --messages 200000"));
        assert!(tables[0].contains("| ≥ 1.00, met; P99 ≤ 1.00, met |"), "{}", tables[0]);
        assert!(calls[3].contains("--by gathered-tasks --messages 3000 --producers 1 "));
        assert!(tables[1].contains("| ≥ 1.00, met; P99 ≤ 1.00, met |"), "{}", tables[1]);
        let (tables, calls) = measured("append-device-bytes");
        assert!(calls[0].contains("--by log-recycled --messages 50000 --producers 64 "));
        assert!(tables[0].contains("| device bytes ≤ 1.20, met |"), "{}", tables[0]);
        assert!(tables[1].contains("| device bytes ≤ 5.00, met |"), "{}", tables[1]);
    }

    #[test]
    fn a_contest_of_another_disk_is_left_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut site = fake::site(folder.path(), 8, 512 << 10);
        for (disk, messages) in [(DiskKind::Own, "150000"), (DiskKind::HardDisk, "10000")] {
            site.disk = disk;
            let contests = named("append-durable-logs").contests(&site).expect("scripts");
            assert_eq!(contests.len(), 3);
            contests[2].measure(&site).expect("scripts");
            let ours = format!("--by log-durable --messages {messages} --producers 64 ");
            assert!(fake::calls(&site).iter().any(|call| call.contains(&ours)), "{ours}");
        }
    }

    #[test]
    fn a_condition_may_be_on_wrote_alone() {
        let (tables, calls) = measured("append-small");
        assert_eq!((calls.len(), tables[0].lines().count()), (1, 3));
        assert!(tables[0].ends_with("| k/s ≥ 5000.00, not met |"), "{tables:?}");
    }

    #[test]
    fn a_size_that_grows_is_measured_at_all_its_points_in_one_contest() {
        let (tables, calls) = measured("growth-record-bytes");
        assert_eq!(tables.iter().map(|table| table.lines().count()).collect::<Vec<_>>(), [9, 9]);
        assert!(calls[1].ends_with("--producers 4 --shortest 64 --longest 64 appended"));
        assert!(tables[1].contains("\n| 65536 B | "), "{}", tables[1]);
    }

    #[test]
    fn every_contender_is_given_the_same_work_after_the_same_preparation() {
        let (tables, calls) = measured("writer-durable");
        let ways = ["writer", "buf-writer", "buf-writer-mib", "file"];
        let lines = ways.map(|way| format!("trial stream --by {way} --bytes 4194304 file"));
        let drop = "sysctl -q vm.drop_caches=1";
        let expected = lines.iter().flat_map(|line| [drop, line.as_str()]);
        assert_eq!(calls, expected.collect::<Vec<_>>());
        let head = "| 4m in pieces of 64 KiB, durable; caches dropped before each | MB/s |";
        assert!(tables[0].starts_with(head), "{tables:?}");
    }

    #[test]
    fn copies_are_made_from_the_page_cache_and_from_the_device() {
        let (tables, calls) = measured("copy-durable");
        assert!(tables[0].starts_with("| copy of 4m, durable, source in the page cache | MB/s |"));
        assert!(tables[0].contains("\n| `cp`, `sync -d` | 4.19 (4.19–4.19) | "), "{}", tables[0]);
        assert!(tables[1].contains("durable, source not in the page cache"), "{}", tables[1]);
        for call in [
            "trial run -- sh -c wrote copy source copy",
            "rsync source copy",
            "dd if=source iflag=nocache count=0 status=none",
        ] {
            assert!(calls.iter().any(|line| line == call), "{call}: {calls:?}");
        }
    }

    #[test]
    fn both_run_one_job_file_and_completions_are_polled_for_where_there_are_queues() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut site = fake::site(folder.path(), 8, 512 << 10);
        for (polls, line) in [(false, "\nhipri=0\n"), (true, "\nhipri=1\n")] {
            site.has_poll_queues = polls;
            let contests = named("peak-write").contests(&site).expect("scripts");
            let jobs = contests[0].contenders.iter().filter_map(|one| one.job.as_ref());
            let texts: Vec<String> = jobs.map(|job| job.text()).collect();
            assert_eq!((texts.len(), &texts[0]), (2, &texts[1]));
            assert!(texts[0].contains(line), "{texts:?}");
        }
        let table = named("peak-write").contests(&site).expect("scripts")[0].measure(&site);
        let table = table.expect("scripts").table;
        assert!(table.contains("fixedbufs, polled; blocks allocated | MB/s |"), "{table}");
        assert!(table.contains("| ≥ 1.00, met; CPU ≤ 0.70, "), "{table}");
    }
}
