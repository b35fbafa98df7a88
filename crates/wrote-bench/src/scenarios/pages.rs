//! The scenario `pages`: durable pages of a database at random places, plain and by the ways that a
//! power loss never tears.

mod answers;
#[cfg(test)]
mod tests;

use crate::plan::{Call, Plan, Prepared, RUNS, RowSpec, Turn, Within, Work};
use crate::progress::Ticker;
use crate::scenario::{Listed, Scenario};
use crate::site::Site;
use crate::transactions;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Survives;
use wrote::device::Target;
use wrote_jobs::data::seed;
use wrote_jobs::findings::Evidence;
use wrote_jobs::report::Repeated;
use wrote_jobs::steps::{Every, FileSpec, Running, Start, Step, Steps};
use wrote_result::document::{Answer, Cell, Row, Settings, SettingsPair, Torn, View};
use wrote_result::{Error, units};

const NAME: &str = "pages";
const QUESTION: &str = "How fast are durable pages, and which way is never torn by a power loss?";
/// The sizes of a page, the most common one of databases first.
const SIZES_BYTES: [u64; 4] = [16 << 10, 4 << 10, 8 << 10, 64 << 10];
const CLIENTS: [u32; 2] = [1, 16];
/// The time of a run. With `--within`, it is this part of a run's share.
const TIME: Duration = Duration::from_millis(200);
const TIME_PART: f64 = 0.75;
const TIME_MIN: Duration = Duration::from_millis(20);
/// The bytes of all clients' tables, and of their journals or logs.
const TABLE_BYTES: u64 = 16 << 20;
const LOG_BYTES: u64 = 4 << 20;
const POINTER_BYTES: u64 = 4 << 10;
/// The pages after which a database that logs their images flushes the table.
const CHECKPOINT: u64 = 64;

/// The scenario `pages`. It has no settings.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Pages {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One write and one flush.
    Plain,
    /// To a journal of pages, then to its place, as InnoDB does.
    DoubleWrite,
    /// Its image to a log; to its place with a flush after many pages, as PostgreSQL does.
    Image,
    /// To a free place, then a pointer to it, as LMDB does.
    NewPlace,
    /// One write by `RWF_ATOMIC`, and one flush.
    Atomic,
}

use Kind::{Atomic, DoubleWrite, Image, NewPlace, Plain};

/// A way of writing a page.
struct Way {
    kind: Kind,
    /// `pages/doublewrite`: the beginning of its rows' names.
    name: &'static str,
    /// The word in tables.
    head: &'static str,
    words: &'static str,
}

const fn way(kind: Kind, name: &'static str, head: &'static str, words: &'static str) -> Way {
    Way { kind, name, head, words }
}

const WAYS: [Way; 5] = [
    way(Plain, "pages/plain", "plain", "plain write"),
    way(DoubleWrite, "pages/doublewrite", "doublewrite", "double write"),
    way(Image, "pages/log-image", "log image", "image in a log"),
    way(NewPlace, "pages/new-place", "new place", "new place and pointer"),
    way(Atomic, "pages/atomic", "RWF_ATOMIC", "RWF_ATOMIC"),
];

/// A row.
#[derive(Clone, Copy)]
struct Page {
    way: &'static Way,
    bytes: u64,
    clients: u32,
}

/// Returns all rows, in the order of the table.
fn pages() -> impl Iterator<Item = Page> {
    let mut sizes_bytes = SIZES_BYTES;
    sizes_bytes.sort_unstable();
    let of_size = move |clients| sizes_bytes.map(|bytes| (clients, bytes));
    let of_way = |(clients, bytes)| WAYS.iter().map(move |way| Page { way, bytes, clients });
    CLIENTS.into_iter().flat_map(of_size).flat_map(of_way)
}

impl Scenario for Pages {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let survives = Some(Survives::PowerLoss);
        let listed = |way: &Way| Listed { scenario: NAME, row: way.name, way: way.words, survives };
        WAYS.iter().map(listed).collect()
    }

    fn knows(&self, name: &str) -> bool {
        pages().any(|page| page.is_called(name))
    }

    fn takes_rate(&self) -> bool {
        false
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        let is_called = |page: &Page| call.only.iter().any(|name| page.is_called(name));
        let pages: Vec<Page> = pages().filter(is_called).collect();
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        let runs = Runs::new(pages, call);
        transactions::check_space(&call.target.path, space_bytes(&runs.pages), call.target)?;
        Ok(vec![runs.plan(call)])
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        answers::answers(evidence)
    }
}

impl Page {
    /// Returns the name: `pages/doublewrite-16k-16`, a page of 16 KiB by 16 clients.
    fn name(&self) -> String {
        format!("{}-{}k-{}", self.way.name, self.bytes >> 10, self.clients)
    }

    /// Returns whether a request that names this asks for the row.
    fn is_called(&self, name: &str) -> bool {
        name == NAME || name == self.way.name || name == self.name()
    }

    /// Returns the path of a client's file. Rows share their files, but for atomic writes, which may
    /// move a file's blocks about.
    fn path(&self, file: &str, client: u32, site: &Site) -> PathBuf {
        let (is_atomic, are_many) = (self.way.kind == Atomic, self.clients > 1);
        let part = format!("{file}{}", if are_many { "-of_many" } else { "" });
        // A file of a run is named by words and one number.
        let size = (self.bytes >> 12) as u32;
        match is_atomic {
            true => site.file(&format!("atomic-{part}"), size * CLIENTS[1] + client),
            false => site.file(&part, client),
        }
    }

    /// Returns the calls of each client.
    fn job(&self) -> Steps {
        let file = |name: &str, bytes: u64| FileSpec {
            name: name.into(),
            bytes,
            start: Start::Kept,
            direct: true,
            atomic: self.way.kind == Atomic,
            ..FileSpec::default()
        };
        let write = |file: &str, bytes: u64| Step::Write {
            file: file.into(),
            bytes,
            at: None,
            random: file == "table",
            page: None,
            times: None,
            split: None,
        };
        let flush = |file: &str| Step::Fdatasync { file: file.into() };
        let durable = |file: &str, bytes: u64| [write(file, bytes), flush(file)];
        let clients = u64::from(self.clients);
        let log = |name: &str| file(name, LOG_BYTES / clients);
        let table = durable("table", self.bytes);
        let mut job = Steps {
            clients: self.clients,
            apart: true,
            files: vec![file("table", TABLE_BYTES / clients)],
            ..Steps::default()
        };
        match self.way.kind {
            Plain | Atomic => job.each.extend(table),
            DoubleWrite => {
                job.files.push(log("journal"));
                job.each.extend(durable("journal", self.bytes).into_iter().chain(table));
            }
            Image => {
                job.files.push(log("log"));
                job.each.extend(durable("log", self.bytes));
                job.each.push(write("table", self.bytes));
                let transactions = Some(CHECKPOINT);
                let steps = vec![flush("table")];
                job.every.push(Every { transactions, interval_s: None, steps: steps.clone() });
                job.end = steps;
            }
            NewPlace => {
                job.files.push(file("pointer", POINTER_BYTES));
                job.each.extend(table.into_iter().chain(durable("pointer", POINTER_BYTES)));
            }
        }
        job
    }

    /// Composes the row on this disk.
    fn composed(&self, target: &Target) -> Row {
        let survives = target.survives(Survives::PowerLoss);
        let torn = if self.way.kind == Plain { Torn::Possible } else { Torn::Never };
        let settings = Settings {
            rw: "randwrite".into(),
            bs_bytes: self.bytes,
            ..transactions::settings(&self.job())
        };
        let (size, clients) = (units::block_size(self.bytes), self.clients);
        let side = format!("{size} x {clients}");
        Row {
            name: self.name(),
            workload: NAME.into(),
            way: format!("{side}, {}", self.way.words),
            view: Some(View::Operations),
            cell: Some(Cell { title: "BS x CLIENTS".into(), side, head: self.way.head.into() }),
            survives: Some(survives),
            torn: Some(transactions::torn(torn, survives)),
            settings: SettingsPair {
                asked: settings.clone(),
                effective: settings,
                fallbacks: Vec::new(),
            },
            ..Row::default()
        }
    }
}

/// Makes the runs.
struct Runs {
    pages: Vec<Page>,
    runs: u32,
    /// The time of a run.
    time: Duration,
    /// The maximum number of transactions of a run.
    most: u64,
}

impl Runs {
    fn new(pages: Vec<Page>, call: &Call) -> Runs {
        let runs = call.common.runs.unwrap_or(RUNS);
        let share = |within: Duration| within.mul_f64(TIME_PART) / (runs * pages.len() as u32);
        let time = call.common.time.or(call.within.map(|within| share(within).max(TIME_MIN)));
        let mut of = Runs { pages, runs, time: time.unwrap_or(TIME), most: u64::MAX };
        let bytes_max = call.common.written_bytes_max(call.target);
        if bytes_max < u64::MAX {
            let round: u64 = of.pages.iter().map(|page| page.job().transaction_bytes()).sum();
            of.most = bytes_max.saturating_sub(space_bytes(&of.pages)) / (round * u64::from(runs));
        }
        of
    }

    /// Returns the maximum number of transactions on each set of files of a row.
    fn most_of(&self, page: &Page) -> u64 {
        (self.most / u64::from(page.clients)).max(1)
    }

    fn plan(self, call: &Call) -> Plan<'static> {
        let rows = self.pages.iter().enumerate().map(|(number, page)| {
            let size = SIZES_BYTES.iter().position(|bytes| *bytes == page.bytes).unwrap_or(0);
            let most = self.most_of(page).saturating_mul(page.clients.into());
            RowSpec {
                row: page.composed(call.target),
                importance: size * self.pages.len() + number,
                time: self.time,
                bytes_max: most.saturating_mul(page.job().transaction_bytes()),
                ..RowSpec::default()
            }
        });
        let (rows, runs, space_bytes) = (rows.collect(), self.runs, space_bytes(&self.pages));
        Plan {
            runs,
            within: call.within.map(|within| Within::new(within, Duration::ZERO, true)),
            space_bytes,
            prepared_bytes: space_bytes,
            ..Plan::new(NAME, QUESTION, rows, self)
        }
    }
}

/// Returns the bytes of all files of these rows: of atomic writes each size has its own.
fn space_bytes<'a>(pages: impl IntoIterator<Item = &'a Page>) -> u64 {
    let mut files = BTreeMap::new();
    for page in pages {
        let job = page.job();
        let own_bytes = if page.way.kind == Atomic { page.bytes } else { 0 };
        for file in &job.files {
            let key = (file.name.clone(), page.clients, own_bytes);
            files.insert(key, file.bytes * u64::from(job.sets()));
        }
    }
    files.values().sum()
}

impl Work for Runs {
    /// Writes the files that rows share.
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        let jobs: Vec<Steps> = self.pages.iter().map(Page::job).collect();
        let left_out = transactions::not_atomic(jobs.iter(), site)?;
        let is_measured = |number: &usize| left_out.iter().all(|(of, _)| of != number);
        let measured: Vec<usize> = (0..jobs.len()).filter(is_measured).collect();
        for number in &measured {
            let page = &self.pages[*number];
            Running::new(&jobs[*number], &|name, set| page.path(name, set, site), seed())?;
        }
        let written_bytes = space_bytes(measured.iter().map(|number| &self.pages[*number]));
        Ok(Prepared { written_bytes, left_out })
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let page = self.pages[at.row];
        let job = page.job();
        let running = Running::new(&job, &|name, set| page.path(name, set, site), seed())?;
        let timed = transactions::timed(running, self.time, self.most_of(&page), site)?;
        // A page counts once, however often it is written: rows are compared by their pages.
        let bytes = timed.0.transactions * page.bytes;
        Ok(transactions::row_of(row, timed, bytes))
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        let of_page = |page: &Page| -> Vec<PathBuf> {
            let (job, page) = (page.job(), *page);
            let files = |client| job.files.iter().map(move |of| page.path(&of.name, client, site));
            (0..job.sets()).flat_map(files).collect()
        };
        site.clear_shared(&self.pages.iter().flat_map(of_page).collect::<Vec<_>>())
    }
}
