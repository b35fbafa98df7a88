//! `wrote copy`: copies files, standard input and standard output.

mod plan;
mod told;

use crate::args::CopyArgs;
use crate::progress::CopyReporter;
use crate::stdio::{self, STDIN, STDOUT, of_library};
use crate::terminal::{complain, say};
use plan::{Item, Kind};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;
use told::Done;
use wrote::Action;
use wrote_result::units::counted;
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &CopyArgs, stop: &Stop) -> Result<(), Error> {
    arguments.check_memory().map_err(Error::Usage)?;
    let items = plan::items(arguments)?;
    let began = Instant::now();
    let mut reporter = CopyReporter::default();
    let mut watch = |done, total| reporter.progress_until(stop, done, total);
    let mut done = Done::default();
    let copied = copy_all(&items, arguments, &mut watch, &mut done);
    // The bar must be removed from the screen before anything else is printed.
    drop(reporter);
    done.failed.iter().for_each(|error| complain(error));
    copied?;
    let elapsed = began.elapsed();
    if done.files > 0 {
        say(&done.line(elapsed, told::survives(&arguments.to, !arguments.no_sync)));
    }
    match done.failed.len() as u64 {
        0 => Ok(()),
        failed => Err(Error::Failed(format!("not copied: {}", counted(failed, "error")))),
    }
}

/// Copies the files one after another. If one fails, the remaining files are still copied, except
/// with `--strict`.
fn copy_all(
    items: &[Item],
    arguments: &CopyArgs,
    watch: &mut dyn FnMut(u64, Option<u64>) -> ControlFlow<()>,
    done: &mut Done,
) -> Result<(), Error> {
    if let [Item { from, to, kind }] = items {
        let options = arguments.options().watch(watch);
        let copied = match kind {
            Kind::File => options.copy(from, to),
            Kind::In => options.copy_in(input(from)?, to),
            Kind::Out => {
                done.to_stdout = true;
                options.copy_out(from, output(to)?)
            }
        };
        return copied.map(|copied| done.add(copied)).map_err(|error| complaint(error, arguments));
    }
    for Item { from, to, .. } in items {
        let copied = arguments.options().watch(watch).copy(from, to);
        match copied.map(|copied| done.add(copied)).map_err(|error| complaint(error, arguments)) {
            Err(error) if !arguments.strict && !matches!(error, Error::Interrupted) => {
                done.failed.push(error.to_string());
            }
            copied => copied?,
        }
    }
    Ok(())
}

/// Returns standard input, or the stream that a path such as `/dev/fd/63` leads to.
fn input(from: &Path) -> Result<Box<dyn AsFd>, Error> {
    match stdio::descriptor(from) {
        None | Some(STDIN) => Ok(Box::new(std::io::stdin())),
        Some(_) => opened(from, File::options().read(true)),
    }
}

/// Returns standard output, or the stream that a path such as `/dev/fd/63` leads to.
fn output(to: &Path) -> Result<Box<dyn AsFd>, Error> {
    match stdio::descriptor(to) {
        None | Some(STDOUT) => Ok(Box::new(std::io::stdout())),
        Some(_) => opened(to, File::options().write(true)),
    }
}

fn opened(path: &Path, options: &OpenOptions) -> Result<Box<dyn AsFd>, Error> {
    let opened = options.open(path);
    let file = opened.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
    Ok(Box::new(file))
}

fn complaint(error: wrote::Error, arguments: &CopyArgs) -> Error {
    match &error {
        wrote::Error::File { path, action: Action::Open, errno, .. }
            if *errno == Errno::EXIST.raw_os_error() && !arguments.force =>
        {
            Error::Usage(format!("{}: already exists; --force replaces it", path.display()))
        }
        _ => of_library(&error),
    }
}
