//! `wrote copy`: files, folders, standard input and output.

mod plan;
mod told;

use super::{of_library, say};
use crate::args::CopyArgs;
use crate::progress::CopyReporter;
use plan::{Item, Kind};
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::Instant;
use told::Done;
use wrote::copy::{TreeCopied, copy_in, copy_out, copy_through, copy_tree, copy_tree_through};
use wrote::engine::Options;
use wrote::{Action, CopyOptions, CopyProgress, Engine, Ioengine};
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &CopyArgs, stop: &Stop) -> Result<(), Error> {
    let options = arguments.options().map_err(Error::Usage)?;
    let items = plan::items(arguments)?;
    let began = Instant::now();
    let mut reporter = CopyReporter::new(arguments.quiet);
    let mut watch = |progress: CopyProgress| {
        reporter.progress(progress);
        if stop.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut done = Done::default();
    let copied = copy_all(&items, &options, &mut watch, &mut done);
    // The bar is gone from the screen before anything else is said.
    drop(reporter);
    copied.map_err(|error| complaint(error, arguments))?;
    let elapsed = began.elapsed();
    for path in &done.left_out {
        let why = "not copied: only files, folders and links are";
        say(&format!("wrote: note: {}: {why}", path.display()));
    }
    if !arguments.quiet {
        say(&done.line(elapsed, told::survives(&arguments.to, &options, &done)));
    }
    check_all_copied(&done)
}

/// Copies one after the other, until one fails: those before it are done.
fn copy_all(
    items: &[Item],
    options: &CopyOptions,
    watch: &mut dyn FnMut(CopyProgress) -> ControlFlow<()>,
    done: &mut Done,
) -> Result<(), wrote::Error> {
    if let [Item { from, to, kind }] = items {
        match kind {
            Kind::File => done.add(&wrote::copy(from, to, options, watch)?),
            Kind::Folder => done.add_tree(copy_tree(from, to, options, watch)?),
            Kind::In => done.add(&copy_in(std::io::stdin().as_fd(), to, options, watch)?),
            Kind::Out => {
                done.add(&copy_out(from, std::io::stdout().as_fd(), options, watch)?);
                done.to_stdout = true;
            }
        }
        return Ok(());
    }
    // What it costs to make an engine is paid once.
    let engine_options = Options::new(Ioengine::IoUring, options.iodepth, options.bs_bytes);
    let mut engine = Engine::open(&engine_options)?;
    for Item { from, to, kind } in items {
        if *kind == Kind::Folder {
            done.add_tree(copy_tree_through(&mut engine, from, to, options, watch)?);
        } else {
            done.add(&copy_through(&mut engine, from, to, options, watch)?);
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
