//! Reads entries by their indexes, for any number of tasks.

use crate::places::Places;
use crate::record;
use crate::saved::blocking;
use openraft::{
    LogId, LogState, OptionalSend, RaftLogReader, RaftTypeConfig, StorageError, StorageIOError,
};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wrote::{Log, LogReader};

/// A limited read ends after this many bytes of entries.
const LIMIT_BYTES: usize = 1 << 20;

/// The part of a store that its readers share.
pub struct Shared<C: RaftTypeConfig> {
    pub log: Log,
    pub state: Mutex<State<C>>,
    reader: Mutex<LogReader>,
}

/// Facts about the log that need no read.
pub struct State<C: RaftTypeConfig> {
    pub places: Places,
    /// The id of the last record, purged or not.
    pub last: Option<LogId<C::NodeId>>,
    pub purged: Option<LogId<C::NodeId>>,
}

impl<C: RaftTypeConfig> State<C> {
    /// Returns the ids that openraft asks for.
    pub fn log_state(&self) -> LogState<C> {
        let purged = self.purged.clone();
        let is_left = |last: &LogId<C::NodeId>| last.index >= self.first_index();
        let last = self.last.clone().filter(is_left).or_else(|| purged.clone());
        LogState { last_purged_log_id: purged, last_log_id: last }
    }

    /// Returns the first index that may be read.
    fn first_index(&self) -> u64 {
        self.purged.as_ref().map_or(0, |purged| purged.index + 1)
    }
}

impl<C: RaftTypeConfig> Shared<C> {
    pub fn new(log: Log, state: State<C>, reader: LogReader) -> Shared<C> {
        Shared { log, state: Mutex::new(state), reader: Mutex::new(reader) }
    }

    pub fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the entry at `sequence`. Waits for the disk.
    pub fn entry_at(&self, sequence: u64) -> io::Result<C::Entry> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        entry_at::<C>(&mut reader, sequence)
    }

    /// Reads the entries `start..end`, and ends early after `limit_bytes`.
    async fn read(
        self: &Arc<Self>,
        start: u64,
        end: u64,
        limit_bytes: usize,
    ) -> io::Result<Vec<C::Entry>> {
        let (sequences, ticket) = {
            let state = self.state();
            let start = start.max(state.first_index());
            let sequences = state.places.sequence(start)..state.places.sequence(end);
            if sequences.is_empty() {
                return Ok(Vec::new());
            }
            // Created under the lock, and so before any later cut; its wait ends even then.
            let ticket = self.log.ticket(sequences.end - 1).until_written().into_owned();
            (sequences, ticket)
        };
        ticket.await?;
        let shared = Arc::clone(self);
        blocking(move || {
            let mut reader = shared.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.seek(sequences.start)?;
            let (mut entries, mut bytes) = (Vec::new(), 0);
            while bytes < limit_bytes
                && sequences.start + (entries.len() as u64) < sequences.end
                && let Some(record) = reader.next_lent()?
            {
                entries.push(record::decode(record.bytes)?);
                bytes += record.bytes.len();
            }
            Ok(entries)
        })
        .await
    }
}

/// Reads the entry at `sequence`.
pub fn entry_at<C: RaftTypeConfig>(reader: &mut LogReader, sequence: u64) -> io::Result<C::Entry> {
    record::decode(bytes_at(reader, sequence)?)
}

/// Reads the record `sequence`.
pub fn bytes_at(reader: &mut LogReader, sequence: u64) -> io::Result<&[u8]> {
    reader.seek(sequence)?;
    match reader.next_lent()? {
        Some(record) if record.sequence == sequence => Ok(record.bytes),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("record {sequence} is missing"))),
    }
}

/// A reader of a [`LogStore`](crate::LogStore)'s entries. It keeps the store's log open.
pub struct LogStoreReader<C: RaftTypeConfig>(pub(crate) Arc<Shared<C>>);

impl<C: RaftTypeConfig> RaftLogReader<C> for LogStoreReader<C> {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<C::Entry>, StorageError<C::NodeId>> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let read = self.0.read(start, end, usize::MAX).await;
        read.map_err(|error| StorageIOError::read_logs(&error).into())
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<C::Entry>, StorageError<C::NodeId>> {
        let read = self.0.read(start, end, LIMIT_BYTES).await;
        read.map_err(|error| StorageIOError::read_logs(&error).into())
    }
}
