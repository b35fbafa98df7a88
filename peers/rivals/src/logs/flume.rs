//! A channel to a thread with a `BufWriter`, and an `fdatasync` each second. It is a separate file,
//! as each peer is.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use trial::Result;
use trial::append::Messages;
use trial::append::crew::{self, Timing};
use trial::outcome::Outcome;
use trial::place::Place;

const SYNC_EACH: Duration = Duration::from_secs(1);

/// Sends each message, and waits for none.
pub fn every_sec(messages: &Messages, path: &Path) -> Result<Outcome> {
    let place = Place::take(path)?;
    let mut file = BufWriter::new(File::create_new(path)?);
    let (to, from) = flume::unbounded::<Vec<u8>>();
    let writer = thread::spawn(move || -> Result<()> {
        let mut synced = Instant::now();
        for message in from {
            file.write_all(&message)?;
            if synced.elapsed() >= SYNC_EACH {
                file.flush()?;
                file.get_ref().sync_data()?;
                synced = Instant::now();
            }
        }
        Ok(file.into_inner()?.sync_data()?)
    });
    let step = |to: flume::Sender<Vec<u8>>| move |message: &[u8]| Ok(to.send(message.to_vec())?);
    let steps = (0..messages.work.producers).map(|_| step(to.clone())).collect();
    drop(to);
    let finish = || writer.join().map_err(|_| "the writer panicked")?;
    let appended = crew::append(messages, steps, Timing::None, finish)?;
    place.check_length(appended.bytes)?;
    Ok(appended)
}
