//! The scenario `pages`: durable pages of a database at random offsets, written plainly, and by the
//! methods that protect them from being torn by a power loss.

#[cfg(test)]
mod tests;

use crate::plan::{Call, Plan, Prepared, RUNS, RowSpec, Turn, Within, Work};
use crate::progress::Ticker;
use crate::scenario::{Listed, Scenario};
use crate::site::Site;
use crate::transactions;
use itertools::Itertools;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;
use wrote::Survives;
use wrote::device::Target;
use wrote_jobs::clock::clocked;
use wrote_jobs::findings::Evidence;
use wrote_jobs::machine::target;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_jobs::steps::{Start, Step, Steps};
use wrote_result::document::{Answer, Cell, Row, Settings, Torn, fastest};
use wrote_result::{Error, units};

const NAME: &str = "pages";
const QUESTION: &str = "How fast are durable pages, and which method is never torn by a power \
                        loss?";
/// The sizes of a page, the most common one in databases first.
const SIZES_BYTES: [u64; 4] = [16 << 10, 4 << 10, 8 << 10, 64 << 10];
const CLIENTS: [u32; 2] = [1, 16];
/// The time of a run. With `--within`, a run gets this part of its share.
const TIME: Duration = Duration::from_millis(200);
const TIME_PART: f64 = 0.75;

/// The scenario `pages`. It has no settings.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Pages {}

/// A method of writing a page.
#[derive(Deserialize)]
struct Way {
    /// The beginning of the names of the method's rows: `pages/doublewrite`.
    name: String,
    /// The word for the method in tables.
    head: String,
    words: String,
    torn: Torn,
    /// The system calls for a page of any size.
    job: Steps,
}

static WAYS: LazyLock<Vec<Way>> = LazyLock::new(|| {
    let mut lists: BTreeMap<String, Vec<Way>> =
        toml::from_str(include_str!("pages/ways.toml")).expect("a test reads it");
    lists.remove("way").expect("a test reads it")
});

/// A row: a method, a page size and a number of clients.
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
        let listed = |way: &'static Way| Listed {
            scenario: NAME,
            row: &way.name,
            way: &way.words,
            survives,
        };
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
        if pages.is_empty() { Ok(Vec::new()) } else { Ok(vec![plan(&pages, call)?]) }
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        let of = |clients| SIZES_BYTES.iter().find_map(|bytes| answer(evidence, *bytes, clients));
        CLIENTS.into_iter().filter_map(of).collect()
    }
}

impl Page {
    /// Returns the name of the row, such as `pages/doublewrite-16k-16` for a page of 16 KiB and 16
    /// clients.
    fn name(&self) -> String {
        format!("{}-{}k-{}", self.way.name, self.bytes >> 10, self.clients)
    }

    /// Returns whether a requested `name` selects the row.
    fn is_called(&self, name: &str) -> bool {
        name == NAME || name == self.way.name || name == self.name()
    }

    /// Returns the calls of each client. The clients share no files.
    fn job(&self) -> Steps {
        let mut job = Steps { clients: self.clients, apart: true, ..self.way.job.clone() };
        for file in &mut job.files {
            (file.bytes, file.start) = (file.bytes / u64::from(self.clients), Start::Kept);
        }
        for step in &mut job.each {
            if let Step::Write { bytes, at: None, .. } = step {
                *bytes = self.bytes;
            }
        }
        job
    }

    /// Returns the row on this disk.
    fn composed(&self, target: &Target) -> Row {
        let (size, head) = (units::block_size(self.bytes), self.way.head.clone());
        let side = format!("{size} x {}", self.clients);
        let way = format!("{side}, {}", self.way.words);
        let cell = Some(Cell { title: "BS x CLIENTS".into(), side, head });
        let row = transactions::composed(&self.job(), Some(self.way.torn), target);
        let of_page = |of| Settings { rw: "randwrite".into(), bs_bytes: self.bytes, ..of };
        let settings = row.settings.clone().each(of_page);
        Row { name: self.name(), workload: NAME.into(), way, cell, settings, ..row }
    }
}

/// Returns the plan of these rows. Each row has separate files, which are written once, before any
/// run.
fn plan(pages: &[Page], call: &Call) -> Result<Plan<'static>, Error> {
    let jobs: Vec<Steps> = pages.iter().map(Page::job).collect();
    let sum = |bytes: fn(&Steps) -> u64| jobs.iter().map(bytes).sum::<u64>();
    let space_bytes = sum(Steps::space_bytes);
    // The requested size is 0, because no option sets the size of the files.
    target::check_room(space_bytes, 0, call.target)?;
    let runs = call.common.runs.unwrap_or(RUNS);
    let share = |within: Duration| within.mul_f64(TIME_PART) / (runs * pages.len() as u32);
    let time = call.common.time.or(call.within.map(share)).unwrap_or(TIME);
    let bytes_max = call.common.written_bytes_max(call.target);
    // Each row gets the same maximum number of transactions.
    let most = match bytes_max.saturating_sub(space_bytes) / u64::from(runs) {
        _ if bytes_max == u64::MAX => u64::MAX,
        round_bytes => round_bytes / sum(Steps::transaction_bytes),
    };
    let row = |(number, (page, job)): (usize, (&Page, &Steps))| RowSpec {
        row: page.composed(call.target),
        // All rows of a page size are measured before any row of the next size.
        importance: SIZES_BYTES.iter().position(|of| *of == page.bytes).unwrap_or(0) * pages.len()
            + number,
        time,
        bytes_max: most.saturating_mul(job.transaction_bytes()),
        ..RowSpec::default()
    };
    let rows = pages.iter().zip(&jobs).enumerate().map(row).collect();
    let within = call.within.map(|within| Within::new(within, Duration::ZERO, true));
    let plan = Plan::new(NAME, QUESTION, rows, Runs { jobs, time, most });
    Ok(Plan { runs, within, space_bytes, prepared_bytes: space_bytes, ..plan })
}

/// Returns the number of a row's first set of files.
fn first(row: usize) -> u32 {
    row as u32 * CLIENTS[1]
}

/// The runs of the rows.
struct Runs {
    jobs: Vec<Steps>,
    time: Duration,
    /// The maximum number of transactions of a run.
    most: u64,
}

impl Work for Runs {
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        let left_out = transactions::not_atomic(self.jobs.iter(), site)?;
        let mut written_bytes = 0;
        for row in (0..self.jobs.len()).filter(|row| left_out.iter().all(|(of, _)| of != row)) {
            transactions::ready(&self.jobs[row], first(row), site)?;
            written_bytes += self.jobs[row].space_bytes();
        }
        Ok(Prepared { written_bytes, left_out })
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let job = &self.jobs[at.row];
        let most = (self.most / u64::from(job.clients)).max(1);
        let ready = transactions::ready(job, first(at.row), site)?;
        let work = || ready.run(self.time, most, site.stop);
        let timed = clocked(&site.timer()?, Usage::now, work)?;
        // A page is counted once, however often it is written, because rows are compared by their
        // pages.
        let bytes = timed.0.transactions * row.settings.asked.bs_bytes;
        Ok(transactions::row_of(row, timed, bytes))
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        let jobs = self.jobs.iter().enumerate();
        let files = jobs.flat_map(|(row, job)| transactions::files(job, first(row), site));
        site.clear_shared(&files.collect::<Vec<_>>())
    }
}

/// Returns the answer: the fastest method that is never torn, compared with a plain write. `None`
/// if no such method was measured.
fn answer(evidence: &Evidence, bytes: u64, clients: u32) -> Option<Answer> {
    let measured = |way: &'static Way| {
        let name = Page { way, bytes, clients }.name();
        Some((way, evidence.rows.iter().find(|row| row.name == name)?))
    };
    let rows: Vec<(&Way, &Row)> = WAYS.iter().filter_map(measured).collect();
    let of = |head: &str| rows.iter().find(|(way, _)| way.head == head).map(|(_, row)| *row);
    let safe = rows.iter().filter(|(_, row)| row.torn == Some(Torn::Never));
    let best = fastest(safe.clone().map(|(_, row)| *row))?;
    let is_best = |row: &Row| row.name == best.name || row.is_tied_with(best);
    // The methods are listed by their effort.
    let mut level = safe.filter(|(_, row)| is_best(row));
    let (way, row) = level.next()?;
    let others = level.map(|(way, _)| &way.words).join(", ");
    let tied = (!others.is_empty()).then(|| format!("no difference found from {others}"));
    let beside = |row: &Row, other: &Row| match row.is_tied_with(other) {
        true if row.is_rough() || other.is_rough() => {
            "the runs vary too much for a comparison with".into()
        }
        true => "no difference found from".into(),
        false => format!("{} times", row.times(other)),
    };
    let plain = of("plain").map(|plain| {
        let (figure, unit) = units::alike(&[plain.iops()], &units::COUNTS);
        let (beside, figure) = (beside(row, plain), &figure[0]);
        format!("{beside} a plain write ({figure} {unit}), which a power loss may tear")
    });
    // If both are as fast as the fastest method, the answer says so already.
    let both = of("RWF_ATOMIC").zip(of("doublewrite"));
    let atomic = both.filter(|(atomic, double)| !is_best(atomic) || !is_best(double));
    let atomic = atomic
        .map(|(atomic, double)| format!("RWF_ATOMIC: {} a double write", beside(atomic, double)));
    let is_why = |(row, because): &&(String, String)| {
        clients == CLIENTS[0] && row.starts_with("pages/atomic") && because.contains("atomic")
    };
    let because = evidence.left_out.iter().find(is_why).map(|(_, because)| because.clone());
    let note = [tied, plain, atomic, because].into_iter().flatten().join("; ");
    let clients = units::counted(clients.into(), "client");
    Some(Answer {
        question: format!("Never torn, {}, {clients}", units::block_size(bytes)),
        row: row.name.clone(),
        how: way.words.clone(),
        note: Some(note).filter(|note| !note.is_empty()),
        ..Answer::default()
    })
}
