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

use crate::args::{LogArgs, LogVerb};
use crate::stdio::End;
use wrote_result::{Error, Stop};

#[cfg(not(feature = "store"))]
use no_store as store;

pub(super) fn run(arguments: &LogArgs, stop: &Stop) -> Result<(), Error> {
    wrote::log::until(stop.flag(), || match &arguments.verb {
        LogVerb::Cat(arguments) => End::outcome(records::cat(arguments, stop)),
        LogVerb::Tail(arguments) => End::outcome(records::tail(arguments, stop)),
        LogVerb::Stat(arguments) => stat::run(arguments, stop),
        LogVerb::Verify(arguments) => verify::run(arguments, stop),
        LogVerb::Repair(arguments) => verify::run_repair(arguments, stop),
        LogVerb::Ship(arguments) => store::ship(arguments, stop),
        LogVerb::Append(arguments) => append::run(arguments, stop),
    })
}
