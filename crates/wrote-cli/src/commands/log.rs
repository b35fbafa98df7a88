//! `wrote log`: operations on a log, and reports about a log.

mod append;
mod plain;
mod records;
mod source;
mod stat;
#[cfg(feature = "store")]
mod store;
mod verify;

use crate::args::{LogArgs, LogRepairArgs, LogVerb, LogVerifyArgs};
use crate::stdio::End;
use plain::{PlainLines, check_folder, is_plain};
use source::{Folder, Source, in_store};
use std::path::Path;
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &LogArgs, stop: &Stop) -> Result<(), Error> {
    let must_exist = arguments.verb.read().filter(|path| in_store(path).is_none());
    if let Some(path) = must_exist.filter(|path| matches!(path.try_exists(), Ok(false))) {
        return Err(Error::Usage(format!(
            "{name}: there is no log here; 'wrote log append {name}' creates one, and 'wrote log \
             tail -F {name}' waits for one",
            name = path.display()
        )));
    }
    wrote::log::until(stop.flag(), || match &arguments.verb {
        LogVerb::Cat(arguments) => End::outcome(records::cat(arguments, stop)),
        LogVerb::Tail(arguments) => End::outcome(records::tail(arguments, stop)),
        LogVerb::Stat(arguments) => match in_store(&arguments.folder) {
            Some(url) => store::stat(url, arguments, stop),
            None => check_folder(&arguments.folder).and_then(|()| stat::run(arguments)),
        },
        LogVerb::Verify(arguments) => verified(arguments, stop),
        LogVerb::Repair(LogRepairArgs { folder, dry_run: false }) => {
            check_folder(folder).and_then(|()| verify::run_repair(folder))
        }
        LogVerb::Repair(LogRepairArgs { folder, .. }) => {
            let folder = folder.clone();
            verified(&LogVerifyArgs { folder, json: false }, stop)
        }
        LogVerb::Ship(arguments) => store::ship(arguments, stop),
        LogVerb::Append(arguments) => append::run(arguments, stop),
    })
}

fn verified(arguments: &LogVerifyArgs, stop: &Stop) -> Result<(), Error> {
    match in_store(&arguments.folder) {
        Some(url) => store::verify(url, arguments, stop),
        None => check_folder(&arguments.folder).and_then(|()| verify::run(arguments, stop)),
    }
}

/// Returns the source of records that the user named.
fn source(named: &Path, stop: &Stop) -> Result<Box<dyn Source>, Error> {
    match in_store(named) {
        Some(url) => store::source(url, stop),
        None if is_plain(named) && named.exists() => Ok(Box::new(PlainLines(named.to_owned()))),
        None => Ok(Box::new(Folder(named.to_owned()))),
    }
}

/// The commands for logs in an object store, in a program built without that feature. They only
/// report that, on one line.
#[cfg(not(feature = "store"))]
mod store {
    use super::source::Source;
    use crate::args::{LogShipArgs, LogStatArgs, LogVerifyArgs};
    use wrote_result::{Error, Stop};

    pub(super) fn ship(arguments: &LogShipArgs, _: &Stop) -> Result<(), Error> {
        Err(lacks(&arguments.url))
    }

    pub(super) fn source(url: &str, _: &Stop) -> Result<Box<dyn Source>, Error> {
        Err(lacks(url))
    }

    pub(super) fn stat(url: &str, _: &LogStatArgs, _: &Stop) -> Result<(), Error> {
        Err(lacks(url))
    }

    pub(super) fn verify(url: &str, _: &LogVerifyArgs, _: &Stop) -> Result<(), Error> {
        Err(lacks(url))
    }

    fn lacks(url: &str) -> Error {
        Error::Usage(format!(
            "{url}: this program was built without object stores; build it with the feature store: \
             cargo build --release --features store"
        ))
    }
}
