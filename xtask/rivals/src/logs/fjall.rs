//! fjall: a keyspace whose journal is flushed on request.

use crate::gather::{self, Commit};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use trial::Result;
use trial::append::{Crew, Messages, Timing, Work};
use trial::outcome::Outcome;
use trial::place::Folder;

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

    fn check(&self, messages: u64) -> Result<()> {
        let stored = self.keyspace.len()? as u64;
        if stored == messages { Ok(()) } else { Err(format!("fjall has {stored} messages").into()) }
    }
}

/// Inserts and flushes each message.
pub fn each(work: &Work, messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Folder::make(path)?;
    let store = Store::open(folder.path())?;
    let step = |message: &[u8]| {
        store.keyspace.insert(store.key(), message)?;
        Ok(store.database.persist(PersistMode::SyncData)?)
    };
    let crew = Crew { work, messages, timing: Timing::Each };
    let appended = crew.run(vec![step; work.producers as usize], || Ok(()))?;
    store.check(work.messages)?;
    Ok(appended)
}

/// Commits a batch of all waiting messages.
pub fn gathered(work: &Work, messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Folder::make(path)?;
    let store = Store::open(folder.path())?;
    let appended = gather::run(work, messages, &store)?;
    store.check(work.messages)?;
    Ok(appended)
}

impl Commit for &Store {
    fn commit(&mut self, messages: &[Vec<u8>]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for message in messages {
            batch.insert(&self.keyspace, self.key(), message.as_slice());
        }
        Ok(batch.commit()?)
    }
}
