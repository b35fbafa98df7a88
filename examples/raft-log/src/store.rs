//! `LogStore`: stores openraft's writes, in their order.

use crate::places::Places;
use crate::reader::{LogStoreReader, Shared, State, bytes_at, entry_at};
use crate::record;
use crate::saved::{Saved, blocking};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{
    LogId, LogState, OptionalSend, RaftLogId, RaftLogReader, RaftTypeConfig, StorageError,
    StorageIOError, Vote,
};
use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wrote::{Log, SyncPolicy, Ticket};

/// Bytes of a buffer that a group of records leaves for the headers of a batch.
const BATCH_HEADERS_BYTES: usize = 256;
/// Bytes of the header of a record in the log.
const RECORD_HEADER_BYTES: usize = 8;

/// The sizes of a store's log.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The approximate length of a segment in bytes; at least two buffers. A purge frees whole
    /// segments.
    pub segment_bytes: u64,
    /// The bytes of each of eight buffers. An entry, with less than 300 bytes of headers, must fit
    /// into one.
    pub buffer_bytes: usize,
}

impl Default for Sizes {
    /// Returns segments of 64 MiB, and buffers of 4 MiB.
    fn default() -> Sizes {
        Sizes { segment_bytes: 64 << 20, buffer_bytes: 4 << 20 }
    }
}

/// Raft's log, vote, committed id and purged id in a folder.
///
/// | what | survives a power loss |
/// |---|---|
/// | entries | when the callback of `append` is called |
/// | vote, committed id | when the call returns |
/// | truncation | when the call returns |
/// | purge | when the call returns |
///
/// An earlier crash leaves the state before the call or after it. It may leave only the beginning
/// of a batch that is longer than a buffer.
///
/// A write of another kind waits until the entries before it are durable, as openraft asks for.
/// After a failed write or flush of the log, every later call fails. Open the store again then.
///
/// The folder contains a folder `log` and the files `vote`, `committed` and `purged`. Only one
/// store at a time can have it open. Dropping the store and its last reader closes it, which waits
/// for the disk.
pub struct LogStore<C: RaftTypeConfig> {
    shared: Arc<Shared<C>>,
    vote: Saved,
    committed: Saved,
    purged: Saved,
    sizes: Sizes,
    appended: UnboundedSender<Appended<C>>,
}

/// A batch whose durability is reported to openraft.
struct Appended<C: RaftTypeConfig> {
    /// The ticket of its last record, or of the last before it.
    ticket: Option<Ticket<'static>>,
    callback: LogFlushed<C>,
}

impl<C: RaftTypeConfig> LogStore<C> {
    /// Opens the store in `folder`, creating it if needed. Call this in a tokio runtime, which then
    /// runs the task for openraft's callbacks.
    ///
    /// Fails if another store has the folder open, or if durable entries cannot be read.
    pub async fn open(folder: impl AsRef<Path>) -> io::Result<LogStore<C>> {
        LogStore::open_with(folder, Sizes::default()).await
    }

    /// Opens the store as [`LogStore::open`] does, with a log of these sizes.
    pub async fn open_with(folder: impl AsRef<Path>, sizes: Sizes) -> io::Result<LogStore<C>> {
        let folder = folder.as_ref().to_owned();
        let [vote, committed, purged] =
            ["vote", "committed", "purged"].map(|name| Saved::new(&folder, name));
        let (shared, purged) =
            blocking(move || Ok((open(&folder, sizes, &purged)?, purged))).await?;
        let (appended, receiver) = unbounded_channel();
        tokio::spawn(call_back(receiver));
        Ok(LogStore { shared: Arc::new(shared), vote, committed, purged, sizes, appended })
    }

    /// Appends entries, and returns the ticket of the last record in the log, if there is one.
    async fn append_entries(
        &mut self,
        entries: impl Iterator<Item = C::Entry> + OptionalSend,
    ) -> io::Result<Option<Ticket<'static>>> {
        let mut group = Group::default();
        for entry in entries {
            let id = entry.get_log_id().clone();
            let last = group.ids.last().cloned().or_else(|| self.shared.state().last.clone());
            if let Some(last) = last.filter(|last| last.index >= id.index) {
                let what = format!("entry {} is there; {} cannot follow it", last.index, id.index);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            let record = record::encode(id.index, &entry)?;
            if group.bytes_with(&record) > self.sizes.buffer_bytes {
                self.append_group(std::mem::take(&mut group)).await?;
            }
            group.push(id, record);
        }
        self.append_group(group).await?;
        Ok(self.last_ticket())
    }

    /// Appends records. After a crash either all of them exist or none.
    async fn append_group(&mut self, group: Group<C>) -> io::Result<()> {
        if group.ids.is_empty() {
            return Ok(());
        }
        let log = &self.shared.log;
        let end = loop {
            match log.try_append(&group.records)? {
                Some(ticket) => break ticket.sequence() + 1,
                None => log.room().await?,
            }
        };
        let mut state = self.shared.state();
        assert_eq!(end - group.records.len() as u64, state.places.next(), "one store appends to its log");
        for id in &group.ids {
            state.places.push(id.index);
        }
        state.last = group.ids.last().cloned();
        Ok(())
    }

    /// Returns the ticket of the last record in the log.
    fn last_ticket(&self) -> Option<Ticket<'static>> {
        let last = self.shared.state().places.next().checked_sub(1)?;
        Some(self.shared.log.ticket(last).until_durable().into_owned())
    }

    /// Waits until all appended entries are durable.
    async fn settle(&self) -> io::Result<()> {
        match self.last_ticket() {
            Some(ticket) => Ok(ticket.await?),
            None => Ok(()),
        }
    }

    async fn save<T: serde::Serialize>(&self, file: &Saved, value: &T) -> io::Result<()> {
        self.settle().await?;
        file.save(value).await
    }

    async fn cut(&mut self, index: u64) -> io::Result<()> {
        let sequence = {
            let mut state = self.shared.state();
            let sequence = state.places.sequence(index);
            if sequence == state.places.next() {
                return Ok(());
            }
            // From now on no reader searches for these entries.
            state.places.cut(sequence);
            sequence
        };
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            shared.log.truncate_from(sequence)?;
            // A purge keeps the last purged record, so the one before the cut exists.
            let last = match sequence.checked_sub(1) {
                Some(before) => Some(shared.entry_at(before)?.get_log_id().clone()),
                None => None,
            };
            shared.state().last = last;
            Ok(())
        })
        .await
    }

    async fn drop_up_to(&mut self, id: LogId<C::NodeId>) -> io::Result<()> {
        if self.shared.state().purged.as_ref().is_some_and(|purged| purged.index >= id.index) {
            return Ok(());
        }
        // Made durable before entries are removed. Otherwise a crash could leave a log without a
        // beginning.
        self.save(&self.purged, &id).await?;
        let shared = Arc::clone(&self.shared);
        let kept = {
            let mut state = shared.state();
            // The record before the first entry stays, for a cut at that entry.
            let kept = state.places.sequence(id.index + 1).saturating_sub(1);
            state.places.forget_before(kept);
            state.purged = Some(id);
            kept
        };
        blocking(move || Ok(shared.log.trim_before(kept)?)).await?;
        Ok(())
    }
}

/// Opens the log and examines its content.
fn open<C: RaftTypeConfig>(folder: &Path, sizes: Sizes, purged: &Saved) -> io::Result<Shared<C>> {
    if !folder.is_dir() {
        fs::create_dir_all(folder)?;
        if let Some(parent) = folder.parent().filter(|parent| *parent != Path::new("")) {
            File::open(parent)?.sync_all()?;
        }
    }
    let log = Log::options()
        .sync(SyncPolicy::Always)
        .segment_bytes(sizes.segment_bytes)
        .buffer_bytes(sizes.buffer_bytes)
        .open(folder.join("log"))?;
    let mut reader = log.reader(0)?;
    let next = log.written_sequence();
    let first = reader.next_lent()?.map_or(next, |record| record.sequence);
    let places = Places::survey(first..next, |at| record::index(bytes_at(&mut reader, at)?))?;
    let last = match first < next {
        true => Some(entry_at::<C>(&mut reader, next - 1)?.get_log_id().clone()),
        false => None,
    };
    let state = State { places, last, purged: purged.load()? };
    Ok(Shared::new(log, state, reader))
}

/// Calls openraft back for each batch, in order, once it is durable.
async fn call_back<C: RaftTypeConfig>(mut appended: UnboundedReceiver<Appended<C>>) {
    while let Some(Appended { ticket, callback }) = appended.recv().await {
        let result = match ticket {
            Some(ticket) => ticket.await,
            None => Ok(()),
        };
        callback.log_io_completed(result.map_err(io::Error::from));
    }
}

/// Records that fit into one buffer of the log.
struct Group<C: RaftTypeConfig> {
    ids: Vec<LogId<C::NodeId>>,
    records: Vec<Vec<u8>>,
    bytes: usize,
}

impl<C: RaftTypeConfig> Default for Group<C> {
    fn default() -> Group<C> {
        Group { ids: Vec::new(), records: Vec::new(), bytes: BATCH_HEADERS_BYTES }
    }
}

impl<C: RaftTypeConfig> Group<C> {
    /// Returns the bytes that the group needs in a buffer, including this record.
    fn bytes_with(&self, record: &[u8]) -> usize {
        self.bytes + RECORD_HEADER_BYTES + record.len()
    }

    fn push(&mut self, id: LogId<C::NodeId>, record: Vec<u8>) {
        self.bytes = self.bytes_with(&record);
        self.ids.push(id);
        self.records.push(record);
    }
}

impl<C: RaftTypeConfig> RaftLogStorage<C> for LogStore<C> {
    type LogReader = LogStoreReader<C>;

    async fn get_log_state(&mut self) -> Result<LogState<C>, StorageError<C::NodeId>> {
        Ok(self.shared.state().log_state())
    }

    async fn get_log_reader(&mut self) -> LogStoreReader<C> {
        LogStoreReader(Arc::clone(&self.shared))
    }

    async fn save_vote(&mut self, vote: &Vote<C::NodeId>) -> Result<(), StorageError<C::NodeId>> {
        let saved = self.save(&self.vote, vote).await;
        saved.map_err(|error| StorageIOError::write_vote(&error).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<C::NodeId>>, StorageError<C::NodeId>> {
        self.vote.load().map_err(|error| StorageIOError::read_vote(&error).into())
    }

    async fn save_committed(
        &mut self,
        committed: Option<LogId<C::NodeId>>,
    ) -> Result<(), StorageError<C::NodeId>> {
        let saved = self.save(&self.committed, &committed).await;
        saved.map_err(|error| StorageIOError::write(&error).into())
    }

    async fn read_committed(
        &mut self,
    ) -> Result<Option<LogId<C::NodeId>>, StorageError<C::NodeId>> {
        let loaded = self.committed.load::<Option<LogId<C::NodeId>>>();
        loaded.map(Option::flatten).map_err(|error| StorageIOError::read(&error).into())
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<C>,
    ) -> Result<(), StorageError<C::NodeId>>
    where
        I: IntoIterator<Item = C::Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let appended = self.append_entries(entries.into_iter()).await;
        let ticket = appended.map_err(|error| StorageIOError::write_logs(&error))?;
        let sent = self.appended.send(Appended { ticket, callback });
        let ended = |_| StorageIOError::write_logs(&io::Error::other("the runtime has ended"));
        Ok(sent.map_err(ended)?)
    }

    async fn truncate(&mut self, id: LogId<C::NodeId>) -> Result<(), StorageError<C::NodeId>> {
        let cut = self.cut(id.index).await;
        cut.map_err(|error| StorageIOError::write_logs(&error).into())
    }

    async fn purge(&mut self, id: LogId<C::NodeId>) -> Result<(), StorageError<C::NodeId>> {
        let dropped = self.drop_up_to(id).await;
        dropped.map_err(|error| StorageIOError::write_logs(&error).into())
    }
}

impl<C: RaftTypeConfig> RaftLogReader<C> for LogStore<C> {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<C::Entry>, StorageError<C::NodeId>> {
        self.get_log_reader().await.try_get_log_entries(range).await
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<C::Entry>, StorageError<C::NodeId>> {
        self.get_log_reader().await.limited_get_log_entries(start, end).await
    }
}
