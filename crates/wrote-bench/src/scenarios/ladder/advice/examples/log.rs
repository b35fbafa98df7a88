//! Records in a log, each durable before it is acknowledged.

use wrote::{Error, Log, SyncPolicy};

pub fn append(folder: &str, records: &[&[u8]]) -> Result<(), Error> {
    // clone it into any thread
    let log = Log::options().sync(SyncPolicy::Always).open(folder)?;
    for record in records {
        // survives a power loss; threads that wait share a flush
        log.append(record)?.wait()?;
    }
    log.close()
}
