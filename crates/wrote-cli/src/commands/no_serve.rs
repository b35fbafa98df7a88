//! `wrote serve` in a program without that feature: one line reports it.

use crate::args::ServeArgs;
use wrote_result::Error;

pub(super) fn run(_: &ServeArgs) -> Result<(), Error> {
    Err(Error::Usage(
        "this program was built without the server; build it with the feature serve: \
         cargo run --release --features serve -- serve .."
            .into(),
    ))
}
