//! Logs in an object store, in a program without that feature: one line reports it.

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
