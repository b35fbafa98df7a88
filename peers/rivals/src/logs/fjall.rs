//! fjall: a keyspace whose journal is flushed on request.

use super::{append_gathered, check};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use trial::Result;
use trial::append::Messages;
use trial::outcome::Outcome;
use trial::place::Place;

/// A database with one keyspace, whose keys are numbers.
struct Store {
    database: Database,
    keyspace: Keyspace,
    next: AtomicU64,
}

impl Store {
    fn open(path: &Path) -> Result<Store> {
        // Random bytes cannot be compressed.
        let builder = Database::builder(path).journal_compression(CompressionType::None);
        let database = builder.open()?;
        let keyspace = database.keyspace("messages", KeyspaceCreateOptions::default)?;
        Ok(Store { database, keyspace, next: AtomicU64::new(0) })
    }

    fn key(&self) -> [u8; 8] {
        self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }

    fn check(&self, appended: Outcome) -> Result<Outcome> {
        check("fjall", self.keyspace.len()? as u64, appended)
    }
}

/// Inserts and flushes each message.
pub fn each(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let store = Store::open(folder.path())?;
    let step = |message: &[u8]| {
        store.keyspace.insert(store.key(), message)?;
        Ok(store.database.persist(PersistMode::SyncData)?)
    };
    store.check(messages.append_each(step)?)
}

/// Commits a batch of all waiting messages.
pub fn gathered(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let store = Store::open(folder.path())?;
    let commit = |messages: &[Vec<u8>]| {
        let mut batch = store.database.batch().durability(Some(PersistMode::SyncData));
        for message in messages {
            batch.insert(&store.keyspace, store.key(), message.as_slice());
        }
        Ok(batch.commit()?)
    };
    store.check(append_gathered(messages, commit)?)
}
