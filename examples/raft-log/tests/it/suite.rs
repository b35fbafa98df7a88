//! openraft's own tests of a log store.

use crate::machine::{Machine, TypeConfig};
use openraft::StorageError;
use openraft::testing::{StoreBuilder, Suite};
use raft_log::LogStore;
use tempfile::TempDir;

/// Creates stores in new folders, each with a state machine for the suite.
struct Builder;

impl StoreBuilder<TypeConfig, LogStore<TypeConfig>, Machine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore<TypeConfig>, Machine), StorageError<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let store = LogStore::open(folder.path().join("raft")).await.unwrap();
        Ok((folder, store, Machine::default()))
    }
}

#[test]
fn the_suite_of_openraft_passes() {
    Suite::test_all(Builder).unwrap();
}
