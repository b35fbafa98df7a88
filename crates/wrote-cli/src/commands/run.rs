//! `wrote run`: runs fio job files, and writes the result.

mod load;
mod plan;

use crate::args::{RunArgs, RunFormat};
use crate::output::{self, ResultFiles};
use crate::progress::JobReporter;
use load::JobFile;
use std::path::Path;
use std::time::Instant;
use wrote_jobs::fio_report;
use wrote_jobs::jobs::{self, GroupReport, Made, Permissions, Watcher};
use wrote_jobs::peers::Peers;
use wrote_jobs::report::{self, About, Before};
use wrote_jobs::spec::JobSpec;
use wrote_report::Content;
use wrote_result::{Error, Stop};

pub(super) fn run(
    arguments: &RunArgs,
    peers: Peers,
    stop: &Stop,
    command: Vec<String>,
) -> Result<(), Error> {
    // The files are checked before the measurement, so that a minute's work does not end with
    // "exists already".
    let to = &arguments.to;
    arguments.ranks.check(peers)?;
    let own = match arguments.format {
        RunFormat::Own(format) => Some(format),
        RunFormat::FioJson => None,
    };
    if peers.are_many() && own.is_none() {
        let text = "fio has no result of several ranks; --format json has one";
        return Err(Error::Usage(format!("--format fio-json: {text}")));
    }
    let output = ResultFiles::of_first(to, peers)?;
    let plan = plan(arguments, peers, stop)?;
    let Plan { files, specs } = &plan;
    let permissions = arguments.permissions();
    let mut reporter = JobReporter::new(specs);
    if arguments.check {
        Before::examine(specs, permissions)?;
        tell_notes(files, &mut reporter);
        jobs::check(specs, permissions, &mut reporter)?;
        return output::to_stdout(|out| plan::write(specs, out));
    }
    if peers.is_first() {
        tell_notes(files, &mut reporter);
    }
    let each = match peers.are_many() {
        true => format!("each of {} ranks: ", peers.ranks()),
        false => String::new(),
    };
    reporter.announce(each + &plan::announced(specs));
    let done = measure(arguments, &plan, permissions, peers, stop, command, &mut reporter)?;
    drop(reporter);
    stop.check()?;
    let ranks = peers.shown(arguments.ranks.files());
    let of_files = with_groups(files, &done.groups);
    let document = report::document(&of_files, &done.before, &done.about, peers, ranks)?;
    let content = Content::Result(Box::new(document));
    let Some(output) = output else { return Ok(()) };
    output.deliver_as("run.json", content, |content, screen, out| match arguments.format {
        RunFormat::Own(format) => content.write(format, screen, out),
        RunFormat::FioJson => {
            let fios = done.fios(files, fio_report::About::default());
            fios.write(&[fio_report::Form::Json], out)
        }
    })
}

/// The jobs of all files.
pub(super) struct Plan {
    pub files: Vec<JobFile>,
    pub specs: Vec<JobSpec>,
}

/// Reads the jobs, and refuses jobs that the command line does not allow.
pub(super) fn plan(arguments: &RunArgs, peers: Peers, stop: &Stop) -> Result<Plan, Error> {
    let to = &arguments.to;
    let files = load::files(arguments, peers, stop)?;
    let mut specs: Vec<JobSpec> = files.iter().flat_map(|file| file.parsed.jobs.clone()).collect();
    jobs::resolve(&mut specs)?;
    if let Some(writes) = specs.iter().find(|spec| arguments.readonly && spec.order.rw.write) {
        return Err(Error::Usage(format!("--readonly: job {} writes", writes.name)));
    }
    check_output("--output", to.output.as_deref(), &specs)?;
    check_output("--html", to.html.as_deref(), &specs)?;
    Ok(Plan { files, specs })
}

/// Refuses a result file that is also a file of a job, because the result would replace it.
fn check_output(argument: &str, output: Option<&Path>, specs: &[JobSpec]) -> Result<(), Error> {
    let Some(output) = output else { return Ok(()) };
    let key = jobs::file_key(output);
    let taken = |spec: &&JobSpec| spec.files.paths.iter().any(|file| jobs::file_key(file) == key);
    match specs.iter().find(taken) {
        Some(spec) => {
            let (shown, name) = (output.display(), &spec.name);
            Err(Error::Usage(format!("{argument} {shown}: job {name} uses this file")))
        }
        None => Ok(()),
    }
}

/// The finished jobs, and what else their report requires.
pub(super) struct Done {
    pub groups: Vec<GroupReport>,
    pub before: Before,
    pub about: About,
    ended_at: jiff::Timestamp,
}

/// Runs the jobs. On the first rank, `reporter` receives their progress.
pub(super) fn measure(
    arguments: &RunArgs,
    Plan { specs, .. }: &Plan,
    permissions: Permissions,
    peers: Peers,
    stop: &Stop,
    command: Vec<String>,
    reporter: &mut dyn Watcher,
) -> Result<Done, Error> {
    let (started_at, began) = (jiff::Timestamp::now(), Instant::now());
    let (jobs, permissions, shared) = match arguments.ranks.shared_file {
        true => jobs::share(specs, permissions, peers, stop)?,
        false => (jobs::on_own_files(specs, peers), permissions, Made::default()),
    };
    let before = Before::examine(&jobs, permissions)?;
    let mut nobody = ();
    let watcher = if peers.is_first() { reporter } else { &mut nobody };
    let groups = jobs::run(&jobs, permissions, stop, watcher, peers)?;
    shared.keep();
    let (commit, elapsed) = (crate::commit(), began.elapsed());
    let read_unwritten = arguments.read_unwritten;
    let about = About { command, commit, started_at, elapsed, read_unwritten };
    Ok(Done { groups, before, about, ended_at: jiff::Timestamp::now() })
}

/// Returns each job file with the groups that have run.
pub(super) fn with_groups<'a>(
    files: &'a [JobFile],
    mut groups: &'a [GroupReport],
) -> Vec<(&'a str, &'a [GroupReport])> {
    let file = |file: &'a JobFile| {
        let (of_file, others) = groups.split_at(file.groups().min(groups.len()));
        groups = others;
        (&*file.name, of_file)
    };
    files.iter().map(file).collect()
}

fn tell_notes(files: &[JobFile], reporter: &mut JobReporter) {
    for file in files {
        file.parsed.notes.iter().for_each(|note| reporter.tell(&format!("{}: {note}", file.name)));
    }
}

impl Done {
    /// Returns fio's document. `about` supplies what this run does not know.
    pub(super) fn fios(&self, files: &[JobFile], about: fio_report::About) -> fio_report::Document {
        let global: Vec<_> =
            files.iter().flat_map(|file| file.parsed.global.iter().cloned()).collect();
        let (ended_at, device) = (self.ended_at, self.before.device());
        let about = fio_report::About { ended_at, global: &global, device, ..about };
        fio_report::document(&self.groups, &about)
    }
}
