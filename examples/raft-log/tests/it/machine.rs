//! A state machine in memory, and the types of the tests' Raft.

use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{
    CommittedLeaderId, Entry, EntryPayload, LogId, OptionalSend, RaftSnapshotBuilder,
    RaftTypeConfig, SnapshotMeta, StorageError, StorageIOError, StoredMembership,
};
use serde::{Deserialize, Serialize};
use std::io::Cursor;
use std::sync::{Arc, Mutex};

openraft::declare_raft_types!(
    /// Raft whose commands are texts.
    pub TypeConfig: D = String, R = (), Node = ()
);

/// Returns the id of an entry of node 0.
pub fn id(term: u64, index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(term, 0), index)
}

/// Returns an entry with a text.
pub fn entry(term: u64, index: u64, text: &str) -> Entry<TypeConfig> {
    Entry { log_id: id(term, index), payload: EntryPayload::Normal(text.to_owned()) }
}

/// All clones share one state.
#[derive(Clone, Default)]
pub struct Machine(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    applied: Applied,
    snapshot: Option<(SnapshotMeta<u64, ()>, Vec<u8>)>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Applied {
    last: Option<LogId<u64>>,
    membership: StoredMembership<u64, ()>,
    texts: Vec<String>,
}

impl Machine {
    /// Returns the texts of all applied entries.
    pub fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap().applied.texts.clone()
    }
}

impl RaftSnapshotBuilder<TypeConfig> for Machine {
    async fn build_snapshot(&mut self) -> Result<Snapshot<TypeConfig>, StorageError<u64>> {
        let mut inner = self.0.lock().unwrap();
        let applied = &inner.applied;
        let bytes = serde_json::to_vec(applied)
            .map_err(|error| StorageIOError::write_snapshot(None, &error))?;
        let meta = SnapshotMeta {
            last_log_id: applied.last,
            last_membership: applied.membership.clone(),
            snapshot_id: format!("{:?}", applied.last),
        };
        inner.snapshot = Some((meta.clone(), bytes.clone()));
        Ok(Snapshot { meta, snapshot: Box::new(Cursor::new(bytes)) })
    }
}

impl RaftStateMachine<TypeConfig> for Machine {
    type SnapshotBuilder = Machine;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId<u64>>, StoredMembership<u64, ()>), StorageError<u64>> {
        let applied = &self.0.lock().unwrap().applied;
        Ok((applied.last, applied.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, StorageError<u64>>
    where
        I: IntoIterator<Item = Entry<TypeConfig>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let applied = &mut self.0.lock().unwrap().applied;
        let mut results = Vec::new();
        for entry in entries {
            applied.last = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(text) => applied.texts.push(text),
                EntryPayload::Membership(membership) => {
                    applied.membership = StoredMembership::new(Some(entry.log_id), membership);
                }
            }
            results.push(());
        }
        Ok(results)
    }

    async fn get_snapshot_builder(&mut self) -> Machine {
        self.clone()
    }

    async fn begin_receiving_snapshot(
        &mut self,
    ) -> Result<Box<<TypeConfig as RaftTypeConfig>::SnapshotData>, StorageError<u64>> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, ()>,
        snapshot: Box<<TypeConfig as RaftTypeConfig>::SnapshotData>,
    ) -> Result<(), StorageError<u64>> {
        let bytes = snapshot.into_inner();
        let applied = serde_json::from_slice(&bytes)
            .map_err(|error| StorageIOError::read_snapshot(Some(meta.signature()), &error))?;
        *self.0.lock().unwrap() = Inner { applied, snapshot: Some((meta.clone(), bytes)) };
        Ok(())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<Snapshot<TypeConfig>>, StorageError<u64>> {
        let snapshot = &self.0.lock().unwrap().snapshot;
        Ok(snapshot.as_ref().map(|(meta, bytes)| {
            let snapshot = Box::new(Cursor::new(bytes.clone()));
            Snapshot { meta: meta.clone(), snapshot }
        }))
    }
}
