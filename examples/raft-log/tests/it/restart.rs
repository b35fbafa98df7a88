//! Stores that are closed and opened again.

use crate::machine::{TypeConfig, entry, id};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::{Entry, LogState, RaftLogReader, Vote};
use raft_log::{LogStore, Sizes};
use std::fs;
use std::path::Path;

/// Many segments for few entries.
const SMALL: Sizes = Sizes { segment_bytes: 16 << 10, buffer_bytes: 4 << 10 };

async fn open(folder: &Path) -> LogStore<TypeConfig> {
    LogStore::open_with(folder, SMALL).await.unwrap()
}

fn entries(indexes: std::ops::Range<u64>) -> Vec<Entry<TypeConfig>> {
    indexes.map(|index| entry(1, index, &format!("text {index}"))).collect()
}

async fn indexes(store: &mut LogStore<TypeConfig>) -> Vec<u64> {
    let read = store.try_get_log_entries(..).await.unwrap();
    for entry in &read {
        assert!(entry.to_string().contains(&format!("{}", entry.log_id.index)));
    }
    read.iter().map(|entry| entry.log_id.index).collect()
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    let vote = Vote::new_committed(7, 3);
    store.save_vote(&vote).await.unwrap();
    store.blocking_append(entries(0..9)).await.unwrap();
    store.save_committed(Some(id(1, 5))).await.unwrap();
    store.purge(id(1, 2)).await.unwrap();
    store.truncate(id(1, 7)).await.unwrap();
    let before = store.try_get_log_entries(..).await.unwrap();
    drop(store);

    let mut store = open(folder.path()).await;
    assert_eq!(store.read_vote().await.unwrap(), Some(vote));
    assert_eq!(store.read_committed().await.unwrap(), Some(id(1, 5)));
    let state = store.get_log_state().await.unwrap();
    let expected = LogState { last_purged_log_id: Some(id(1, 2)), last_log_id: Some(id(1, 6)) };
    assert_eq!(state, expected);
    assert_eq!(store.try_get_log_entries(..).await.unwrap(), before);
    assert_eq!(indexes(&mut store).await, [3, 4, 5, 6]);
}

#[tokio::test]
async fn a_log_continues_behind_an_installed_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    store.blocking_append(entries(0..5)).await.unwrap();
    store.purge(id(2, 100)).await.unwrap();
    assert_eq!(store.get_log_state().await.unwrap().last_log_id, Some(id(2, 100)));
    store.blocking_append(entries(101..105)).await.unwrap();
    drop(store);

    let mut store = open(folder.path()).await;
    store.blocking_append(entries(105..107)).await.unwrap();
    assert_eq!(indexes(&mut store).await, [101, 102, 103, 104, 105, 106]);
    store.truncate(id(1, 101)).await.unwrap();
    assert_eq!(store.get_log_state().await.unwrap().last_log_id, Some(id(2, 100)));
    store.blocking_append(entries(101..102)).await.unwrap();
    assert_eq!(indexes(&mut store).await, [101]);
}

#[tokio::test]
async fn a_batch_may_be_longer_than_a_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    store.blocking_append(entries(0..1_000)).await.unwrap();
    let all: Vec<u64> = (0..1_000).collect();
    assert_eq!(indexes(&mut store).await, all);
    drop(store);
    assert_eq!(indexes(&mut open(folder.path()).await).await, all);
}

#[tokio::test]
async fn an_entry_just_below_a_buffer_fits_and_a_longer_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    let fits = entry(1, 0, &"x".repeat(SMALL.buffer_bytes - 400));
    store.blocking_append([fits.clone()]).await.unwrap();
    let long = entry(1, 1, &"x".repeat(SMALL.buffer_bytes));
    store.blocking_append([long]).await.unwrap_err();
    assert_eq!(store.try_get_log_entries(..).await.unwrap(), [fits]);
}

#[tokio::test]
async fn a_limited_read_has_a_part_of_the_entries_and_never_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = LogStore::<TypeConfig>::open(folder.path()).await.unwrap();
    let text = "x".repeat(300_000);
    let written: Vec<_> = (0..9).map(|index| entry(1, index, &text)).collect();
    store.blocking_append(written.clone()).await.unwrap();
    let mut reader = store.get_log_reader().await;
    assert_eq!(reader.limited_get_log_entries(2, 9).await.unwrap(), written[2..6]);
    assert_eq!(reader.limited_get_log_entries(8, 9).await.unwrap(), written[8..]);
}

#[tokio::test]
async fn an_entry_that_goes_back_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    store.blocking_append(entries(0..5)).await.unwrap();
    let error = store.blocking_append(entries(4..5)).await.unwrap_err();
    assert!(error.to_string().contains("entry 4 is there"), "{error}");
    assert_eq!(indexes(&mut store).await, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_purge_frees_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    for begin in (0..1_000).step_by(20) {
        store.blocking_append(entries(begin..begin + 20)).await.unwrap();
    }
    let segments = || fs::read_dir(folder.path().join("log")).unwrap().count();
    let before = segments();
    store.purge(id(1, 996)).await.unwrap();
    assert!(segments() * 4 < before, "{} of {before} files are left", segments());
    drop(store);
    assert_eq!(indexes(&mut open(folder.path()).await).await, [997, 998, 999]);
}

#[tokio::test]
async fn the_first_entry_behind_a_purge_can_be_cut_off_wherever_its_segment_begins() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).await;
    store.blocking_append(entries(0..1)).await.unwrap();
    for index in 1..60 {
        store.blocking_append(entries(index..index + 1)).await.unwrap();
        store.purge(id(1, index - 1)).await.unwrap();
        if index % 3 == 0 {
            store.truncate(id(1, index)).await.unwrap();
            assert_eq!(store.get_log_state().await.unwrap().last_log_id, Some(id(1, index - 1)));
            store.blocking_append(entries(index..index + 1)).await.unwrap();
        }
        assert_eq!(indexes(&mut store).await, [index]);
    }
}

#[tokio::test]
async fn a_second_store_of_a_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert!(LogStore::<TypeConfig>::open(folder.path()).await.is_err());
    drop(store);
    open(folder.path()).await;
}
