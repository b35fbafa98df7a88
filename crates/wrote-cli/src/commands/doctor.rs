//! `wrote doctor`: what holds the disk back.

use crate::args::DoctorArgs;
use wrote_bench::Error;

pub(super) fn run(arguments: &DoctorArgs) -> Result<(), Error> {
    let _ = arguments;
    todo!()
}
