//! Jobs that several ranks run at once, and the one result of all.

use super::load::JobFile;
use super::{about, plan, tell_notes, with_groups};
use crate::args::RunArgs;
use crate::progress::JobReporter;
use std::path::PathBuf;
use std::time::Instant;
use wrote_jobs::jobs::{self, Made, Permissions, Regions, Watcher, file_of_rank};
use wrote_jobs::peers::Peers;
use wrote_jobs::report::{self, Before};
use wrote_jobs::spec::JobSpec;
use wrote_result::document::{Document, RankFiles};
use wrote_result::{Error, Stop};

/// Runs the jobs as one of the ranks. Rank 0 has the document of all.
pub(super) fn measure(
    arguments: &RunArgs,
    files: &[JobFile],
    specs: &[JobSpec],
    peers: &dyn Peers,
    stop: &Stop,
    command: Vec<String>,
) -> Result<Document, Error> {
    let (started_at, began) = (jiff::Timestamp::now(), Instant::now());
    let settings = arguments.ranks.settings(arguments.directory.iter().map(PathBuf::as_path));
    let shift = if settings.reorder { peers.shift() } else { 0 };
    let regions = Regions { peers, files: settings.files, shift };
    // Writing to an existing file is refused here, before any rank creates one.
    let permissions = arguments.permissions();
    let own = Regions { shift: 0, ..regions }.place(specs, file_of_rank)?;
    let check = |specs: &[JobSpec]| jobs::check(specs, permissions, &mut ());
    if settings.files == RankFiles::PerRank { check(&own) } else { check(specs) }?;
    peers.barrier("the checks")?;
    // Dropping either removes the files of a run that failed, here or on another rank.
    let (prepared, mut made) = (regions.prepare(specs, file_of_rank, stop)?, Made::default());
    let placed = regions.place(specs, file_of_rank)?;
    let overwrite = permissions.overwrite || settings.files != RankFiles::PerRank;
    let permissions = Permissions { overwrite, ..permissions };
    let before = Before::examine(&placed, permissions)?;
    let mut reporter = JobReporter::new(specs);
    if peers.is_first() {
        tell_notes(files, &mut reporter);
        let ranks = peers.ranks();
        reporter.announce(format!("each of {ranks} ranks: {}", plan::announced(&placed)));
    }
    let mut watcher = InStep { reporter: &mut reporter, peers };
    let groups = jobs::run_with(&placed, permissions, stop, &mut watcher, &mut made)?;
    peers.barrier("the end")?;
    prepared.keep();
    made.keep();
    let (about, files) =
        (about(arguments, command, started_at, began), with_groups(files, &groups));
    let ranks = report::RankFacts {
        files: settings.files,
        reorder: settings.reorder.then_some(shift),
        own_paths: settings.own_paths,
    };
    report::document_of_ranks(&files, &before, &about, peers, &ranks)
}

/// Makes the groups of all ranks begin together. Rank 0 reports to the user.
struct InStep<'a> {
    reporter: &'a mut JobReporter,
    peers: &'a dyn Peers,
}

impl Watcher for InStep<'_> {
    fn before(&mut self) -> Result<(), Error> {
        self.peers.barrier("before a group")
    }

    fn group(&mut self, group: u32, jobs: &[JobSpec], laid_out_bytes: u64) {
        if self.peers.is_first() {
            self.reporter.group(group, jobs, laid_out_bytes);
        }
    }

    fn progress(&mut self, read_bytes: u64, written_bytes: u64, fraction: f64) {
        if self.peers.is_first() {
            self.reporter.progress(read_bytes, written_bytes, fraction);
        }
    }

    fn ready(&mut self) -> Result<(), Error> {
        self.peers.barrier("the start of a group")
    }

    fn note(&mut self, text: &str) {
        if self.peers.is_first() {
            self.reporter.note(text);
        }
    }
}
