//! `cargo xtask peers`: wrote against what does the same, in turn, on one folder.

mod append;
mod bench;
mod both;
mod cache;
mod cpu;
mod dd;
mod file;
mod fio;
mod fio_json;
mod instructions;
mod instrument;
mod job;
mod measured;
mod page;
mod peak;
mod poll;
mod programs;
mod random_read;
mod ratio;
mod rows;
mod size;
mod table;
mod trial;
mod turn;
mod ways;
mod wrote;

pub use ratio::Figures;

use crate::failure::{Failure, Tried};
use crate::packages::{self, PEERS};
use crate::repository::{release_wrote, root};
use crate::zram;
use append::{Appends, Rivals, is_append};
use bench::{Bench, COMPARISONS};
use clap::ValueEnum;
use instructions::Place;
use page::{Circumstances, Results};
use peak::peak_of;
use programs::{Programs, Setting, Side};
use rows::Row;
use size::Size;
use std::path::{Path, PathBuf};
use table::Line;
use trial::Trials;
use ways::Ways;
use wrote::Wrote;

/// How long the streams of the job files are, where nothing else is said.
const STREAM_GIB: u64 = 2;
/// And those of the ways to write.
const WAYS_GIB: u64 = 4;

/// Measure wrote against what does the same, in turn, on one folder.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder to write in; a folder below it is made and removed.
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// How many pairs of runs of each comparison.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// How long the files of the streams are, as fio writes it: 2g of the job files', and 4g of the
    /// ways to write; of less than a gigabyte the CPU time drowns in that of the programs' start.
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,
    /// Measure only these.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    only: Vec<Row>,
    /// Put the tables into docs/performance.md.
    #[arg(long, conflicts_with = "only")]
    write: bool,
}

/// Measures, prints the tables, and writes them where asked.
pub fn peers(arguments: &Arguments) -> Result<(), Failure> {
    let document = root().join("docs/performance.md");
    if arguments.write {
        page::check(&document)?;
    }
    packages::install(PEERS)?;
    let program = release_wrote()?;
    let program = std::path::absolute(&program).tried(program.display())?;
    let folder = tempfile::Builder::new()
        .prefix(".wrote-peers-")
        .tempdir_in(&arguments.path)
        .tried(arguments.path.display())?;
    let run = Run {
        arguments,
        wrote: Wrote { program: program.clone() },
        programs: Programs { wrote: program, fio: "fio".into() },
        folder: folder.path(),
        has_poll_queues: poll::has_poll_queues(folder.path()),
    };
    let circumstances = run.circumstances()?;
    let mut results = Results::default();
    run.bench(&mut results)?;
    run.peak(&mut results)?;
    run.small_reads(&mut results)?;
    run.ways(&mut results)?;
    run.appends(&mut results)?;
    let text = page::text(&circumstances, &results);
    println!("{text}");
    if arguments.write { page::write(&document, &text) } else { Ok(()) }
}

/// What all comparisons use.
struct Run<'a> {
    arguments: &'a Arguments,
    wrote: Wrote,
    programs: Programs,
    folder: &'a Path,
    has_poll_queues: bool,
}

impl Run<'_> {
    fn wants(&self, row: Row) -> bool {
        self.arguments.only.is_empty() || self.arguments.only.contains(&row)
    }

    fn circumstances(&self) -> Result<Circumstances, Failure> {
        Ok(Circumstances {
            place: self.wrote.place(self.folder)?,
            has_poll_queues: self.has_poll_queues,
            fio_version: fio::version()?,
            pairs: self.arguments.pairs,
            size: self.arguments.size.clone(),
        })
    }

    /// The rows of `wrote bench`.
    fn bench(&self, results: &mut Results) -> Result<(), Failure> {
        let mut wanted = COMPARISONS.iter().filter(|comparison| self.wants(comparison.row));
        let Some(first) = wanted.next() else { return Ok(()) };
        let source = dd::Source::new()?;
        let bench = Bench { wrote: &self.wrote, folder: self.folder, source };
        for comparison in std::iter::once(first).chain(wanted) {
            for compared in bench.measure(comparison, self.arguments.pairs)? {
                add(results, compared.line);
                results.add_commands(compared.commands);
            }
        }
        Ok(())
    }

    /// Streams by job files.
    fn peak(&self, results: &mut Results) -> Result<(), Failure> {
        let size = &self.size(STREAM_GIB);
        let pairs = self.arguments.pairs;
        let setting = Setting { folder: self.folder, under: &[] };
        for &row in Row::value_variants().iter().filter(|&&row| self.wants(row)) {
            let Some(peak) = peak_of(row, self.has_poll_queues, size) else { continue };
            add(results, peak.measure(&self.programs, setting, size, pairs)?);
            results.add_commands([Side::Wrote, Side::Fio].map(|s| s.describe(&peak.job, &[])));
            results.jobs.push(peak.job);
        }
        Ok(())
    }

    /// The ways to write.
    fn ways(&self, results: &mut Results) -> Result<(), Failure> {
        let all = Row::value_variants().iter().copied();
        let mut wanted = all.filter(|&row| ways::is_way(row) && self.wants(row)).peekable();
        if wanted.peek().is_none() {
            return Ok(());
        }
        let (trials, size) = (Trials::build()?, self.size(WAYS_GIB));
        let ways = Ways {
            trials: &trials,
            programs: &self.programs,
            folder: self.folder,
            size: &size,
            rounds: self.arguments.pairs,
        };
        for row in wanted {
            let measured = ways.measure(row)?;
            measured.lines.iter().for_each(|line| eprintln!("{}", line.row()));
            results.ways.extend(measured.lines);
            results.memory.extend(measured.memory);
            results.add_commands(measured.commands);
            results.jobs.extend(measured.jobs);
        }
        Ok(())
    }

    /// Many producers and one log.
    fn appends(&self, results: &mut Results) -> Result<(), Failure> {
        let all = Row::value_variants().iter().copied();
        let mut wanted = all.filter(|&row| is_append(row) && self.wants(row)).peekable();
        if wanted.peek().is_none() {
            return Ok(());
        }
        let appends = Appends {
            trials: &Trials::build()?,
            rivals: &Rivals::build()?,
            programs: &self.programs,
            folder: self.folder,
            rounds: self.arguments.pairs,
        };
        for row in wanted {
            let measured = appends.measure(row)?;
            measured.lines.iter().for_each(|line| eprintln!("{}", line.row()));
            measured.alone.iter().for_each(|line| eprintln!("{}", line.row()));
            measured.latencies.iter().for_each(|line| eprintln!("{}", line.row()));
            results.appends.extend(measured.lines);
            results.alone.extend(measured.alone);
            results.latencies.extend(measured.latencies);
            results.add_commands(measured.commands);
            results.jobs.extend(measured.jobs);
        }
        Ok(())
    }

    /// How long the streams are: as was said, or so many GiB.
    fn size(&self, default_gib: u64) -> Size {
        self.arguments.size.clone().unwrap_or_else(|| Size::gib(default_gib))
    }

    /// Small reads by job files, of the device in memory.
    fn small_reads(&self, results: &mut Results) -> Result<(), Failure> {
        let rows = [Row::RandomRead, Row::Instrument, Row::Instructions];
        if !rows.iter().any(|row| self.wants(*row)) {
            return Ok(());
        }
        let pairs = self.arguments.pairs;
        let zram = zram::take()?;
        if self.wants(Row::RandomRead) {
            match &zram {
                Err(because) => add(results, random_read::missing(because.clone())),
                Ok(_) => {
                    add(results, random_read::measure(&self.programs, self.folder, pairs)?);
                    let (job, pin) = (random_read::job(), random_read::pin()?);
                    results.add_commands([Side::Wrote, Side::Fio].map(|s| s.describe(&job, &pin)));
                    results.jobs.push(job);
                }
            }
        }
        if self.wants(Row::Instrument) {
            match &zram {
                Err(because) => add(results, instrument::missing(because.clone())),
                Ok(_) => {
                    add(results, instrument::measure(&self.programs, self.folder, pairs)?);
                    let (jobs, pin) = (instrument::jobs(), random_read::pin()?);
                    results
                        .add_commands(jobs.each_ref().map(|job| Side::Wrote.describe(job, &pin)));
                    results.jobs.extend(jobs);
                }
            }
        }
        if self.wants(Row::Instructions) {
            let place = if zram.is_ok() { Place::Zram } else { Place::File };
            let counted = instructions::count(&self.programs, place, self.folder, pairs)?;
            eprintln!("{}", counted.row());
            results.counted.push(counted);
            results.add_commands(instructions::describe(place)?);
            results.jobs.push(instructions::describe_job(place));
        }
        Ok(())
    }
}

fn add(results: &mut Results, line: Line) {
    eprintln!("{}", line.row());
    results.lines.push(line);
}
