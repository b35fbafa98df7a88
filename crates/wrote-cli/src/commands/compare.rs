//! `wrote compare`: a result held against an older one.

use crate::args::CompareArgs;
use wrote_bench::Error;

pub(super) fn run(arguments: &CompareArgs) -> Result<(), Error> {
    let _ = arguments;
    todo!()
}
