//! `wrote log ship`: sealed segments into the store, with a line for each problem.

use super::of_store;
use crate::args::LogShipArgs;
use crate::library::of_library;
use crate::progress::CopyReporter;
use crate::stderr::{complain, say};
use std::time::Duration;
use wrote::Progress;
use wrote_report::plain;
use wrote_result::units::counted;
use wrote_result::{Error, Stop, units};
use wrote_store::{SegmentStore, ShipProgress, Shipped, Shipper, StoreError, runtime, until};

/// The interval between two checks of the folder.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after a failure; each is twice the one before.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);

pub(in super::super) fn ship(arguments: &LogShipArgs, stop: &Stop) -> Result<(), Error> {
    let LogShipArgs { folder, url, follow, quiet } = arguments;
    // A mistyped folder must not create a folder in the store.
    wrote::log::SealedSegments::open(folder).map_err(|error| of_library(&error))?;
    let store = SegmentStore::open_or_make(url).map_err(of_store)?;
    let mut shipper = Shipper::new(store, folder).map_err(of_store)?;
    let runtime = runtime().map_err(of_store)?;
    let shipped = match follow {
        true => runtime.block_on(follow_log(&mut shipper, *quiet, stop)),
        false => runtime.block_on(pass(&mut shipper, *quiet, stop)),
    };
    // A request without an answer is dropped; the next run finds out whether it succeeded.
    runtime.shutdown_background();
    match shipped {
        Err(StoreError::Interrupted) if *follow => {}
        shipped => shipped.map_err(of_store)?,
    }
    if !quiet {
        say(&done(&shipper.shipped(), url));
    }
    Ok(())
}

/// Ships the sealed segments, with a bar that is gone when this returns.
async fn pass(shipper: &mut Shipper, quiet: bool, stop: &Stop) -> Result<(), StoreError> {
    let mut reporter = CopyReporter::new(quiet);
    let mut show = |progress: ShipProgress| {
        let ShipProgress { bytes_done, bytes_total, .. } = progress;
        reporter.progress(Progress::new(bytes_done, Some(bytes_total)));
    };
    until(stop.flag(), shipper.pass(0, &mut show)).await
}

/// Ships sealed segments repeatedly. Of temporary failures it reports the first one and the
/// recovery, since their texts differ from try to try (a name, a number).
async fn follow_log(shipper: &mut Shipper, quiet: bool, stop: &Stop) -> Result<(), StoreError> {
    let (mut is_failing, mut pause) = (false, LOOK_PAUSE);
    loop {
        match pass(shipper, quiet, stop).await {
            Ok(()) => {
                if std::mem::take(&mut is_failing) {
                    say("wrote: ships again");
                }
                pause = LOOK_PAUSE;
            }
            Err(error) if error.is_passing() => {
                if !std::mem::replace(&mut is_failing, true) {
                    complain(&format!("{error}; trying again"));
                }
                pause = (pause * 2).min(FAILURE_PAUSE_MAX);
            }
            Err(error) => return Err(error),
        }
        let sleep = async {
            tokio::time::sleep(pause).await;
            Ok(())
        };
        until(stop.flag(), sleep).await?;
    }
}

/// `shipped 3 segments, 192 MB; records before 12345 are in s3://bucket/events`.
fn done(shipped: &Shipped, url: &str) -> String {
    let Shipped { segments, bytes, end_sequence, .. } = *shipped;
    let url = plain(url);
    let shipped = match segments {
        0 => "shipped nothing new".to_owned(),
        _ => format!("shipped {}, {}", counted(segments, "segment"), units::bytes(bytes)),
    };
    match end_sequence {
        0 => format!("{shipped}; no segment is sealed yet"),
        _ => format!("{shipped}; the records before {end_sequence} are in {url}"),
    }
}
