//! Records in a log, each durable before it is acknowledged.

use wrote::{Error, Log, SyncPolicy};

pub fn append(folder: &str, records: &[&[u8]]) -> Result<(), Error> {
    let log = Log::options().sync(SyncPolicy::Always).open(folder)?; // clone it into any thread
    for record in records {
        log.append(record)?.wait()?; // survives a power loss; threads that wait share a flush
    }
    log.close()
}
