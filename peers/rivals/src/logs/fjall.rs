//! fjall: a keyspace whose journal is flushed on request. It is a separate file, as each peer is.

use super::check;
use fjall::{CompressionType, Database, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use trial::Result;
use trial::append::{Messages, gathered};
use trial::outcome::Outcome;
use trial::place::Place;

/// Commits a batch of all waiting messages.
pub fn gathered(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    // Random bytes cannot be compressed.
    let builder = Database::builder(folder.path()).journal_compression(CompressionType::None);
    let database = builder.open()?;
    let keyspace = database.keyspace("messages", KeyspaceCreateOptions::default)?;
    let mut keys = 0_u64..;
    let commit = |messages: &[Vec<u8>]| {
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        for (message, key) in messages.iter().zip(&mut keys) {
            batch.insert(&keyspace, key.to_be_bytes(), message.as_slice());
        }
        Ok(batch.commit()?)
    };
    let appended = gathered::by_threads(messages, commit)?;
    check("fjall", keyspace.len()? as u64, appended)
}
