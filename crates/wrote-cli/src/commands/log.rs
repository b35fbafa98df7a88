//! `wrote log`: operations on a log, and reports about one.

mod append;
#[cfg(not(feature = "store"))]
mod no_store;
mod records;
mod source;
mod stat;
#[cfg(feature = "store")]
mod store;
mod verify;

use crate::args::{LogArgs, LogRepairArgs, LogVerb, LogVerifyArgs};
use crate::stdio::End;
use source::{Folder, Source, in_store};
use std::path::Path;
use wrote_result::{Error, Stop};

#[cfg(not(feature = "store"))]
use no_store as store;

pub(super) fn run(arguments: &LogArgs, stop: &Stop) -> Result<(), Error> {
    wrote::log::until(stop.flag(), || match &arguments.verb {
        LogVerb::Cat(arguments) => End::outcome(records::cat(arguments, stop)),
        LogVerb::Tail(arguments) => End::outcome(records::tail(arguments, stop)),
        LogVerb::Stat(arguments) => match in_store(&arguments.folder) {
            Some(url) => store::stat(url, arguments, stop),
            None => stat::run(arguments),
        },
        LogVerb::Verify(arguments) => verified(arguments, stop),
        LogVerb::Repair(LogRepairArgs { folder, dry_run: false }) => verify::run_repair(folder),
        LogVerb::Repair(LogRepairArgs { folder, .. }) => {
            let folder = folder.clone();
            verified(&LogVerifyArgs { folder, json: false, quiet: false }, stop)
        }
        LogVerb::Ship(arguments) => store::ship(arguments, stop),
        LogVerb::Append(arguments) => append::run(arguments, stop),
    })
}

fn verified(arguments: &LogVerifyArgs, stop: &Stop) -> Result<(), Error> {
    match in_store(&arguments.folder) {
        Some(url) => store::verify(url, arguments, stop),
        None => verify::run(arguments, stop),
    }
}

/// Returns the place that the user named.
fn source(named: &Path, stop: &Stop) -> Result<Box<dyn Source>, Error> {
    match in_store(named) {
        Some(url) => store::source(url, stop),
        None => Ok(Box::new(Folder(named.to_owned()))),
    }
}
