//! `wrote copy`: files, folders, standard input and output.

mod plan;
mod told;

use crate::args::CopyArgs;
use crate::library::of_library;
use crate::progress::CopyReporter;
use crate::stderr::say;
use plan::{Item, Kind};
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::time::Instant;
use told::Done;
use wrote::copy::{TreeCopied, Watch};
use wrote::{Action, CopyProgress, Engine};
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &CopyArgs, stop: &Stop) -> Result<(), Error> {
    arguments.check_memory().map_err(Error::Usage)?;
    let items = plan::items(arguments)?;
    let began = Instant::now();
    let mut reporter = CopyReporter::new(arguments.quiet);
    let mut watch = |progress: CopyProgress| {
        reporter.progress(progress);
        if stop.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut done = Done::default();
    let copied = copy_all(&items, arguments, &mut watch, &mut done);
    // The bar is gone from the screen before anything else is said.
    drop(reporter);
    copied.map_err(|error| complaint(error, arguments))?;
    let elapsed = began.elapsed();
    for path in &done.left_out {
        let why = "not copied: only files, folders and links are";
        say(&format!("wrote: note: {}: {why}", path.display()));
    }
    if !arguments.quiet {
        say(&done.line(elapsed, told::survives(&arguments.to, !arguments.no_sync, &done)));
    }
    check_all_copied(&done)
}

/// Copies one after the other, until one fails: those before it are done.
fn copy_all(
    items: &[Item],
    arguments: &CopyArgs,
    watch: Watch,
    done: &mut Done,
) -> Result<(), wrote::Error> {
    if let [Item { from, to, kind }] = items {
        let options = arguments.options().watch(watch);
        match kind {
            Kind::File => done.add(&options.copy(from, to)?),
            Kind::Folder => done.add_tree(options.copy_tree(from, to)?),
            Kind::In => done.add(&options.copy_in(std::io::stdin(), to)?),
            Kind::Out => {
                done.add(&options.copy_out(from, std::io::stdout())?);
                done.to_stdout = true;
            }
        }
        return Ok(());
    }
    // What it costs to make an engine is paid once.
    let mut engine = Engine::open(&arguments.engine_options())?;
    for Item { from, to, kind } in items {
        let options = arguments.options().watch(watch);
        if *kind == Kind::Folder {
            done.add_tree(options.copy_tree_through(&mut engine, from, to)?);
        } else {
            done.add(&options.copy_through(&mut engine, from, to)?);
        }
    }
    Ok(())
}

fn complaint(error: wrote::Error, arguments: &CopyArgs) -> Error {
    match &error {
        wrote::Error::File { path, action: Action::Open, errno, .. }
            if *errno == Errno::EXIST.raw_os_error() && !arguments.force =>
        {
            let what = if path.is_dir() { "replaces what is in it" } else { "replaces it" };
            Error::Usage(format!("{}: exists already; --force {what}", path.display()))
        }
        _ => of_library(&error),
    }
}

/// The command fails by the files that it left out, although all others are copied.
fn check_all_copied(done: &Done) -> Result<(), Error> {
    match done.left_out_count {
        0 => Ok(()),
        1 => Err(Error::Failed("not copied: a pipe, a socket or a device".into())),
        count => Err(Error::Failed(format!("not copied: {count} pipes, sockets or devices"))),
    }
}
