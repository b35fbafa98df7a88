//! `Lines`: a plain line file under the user's own name, to which many threads append. A line is
//! acknowledged once it is safe.

mod end;
mod plain;
mod state;
mod turns;

use crate::log::Goal;
use crate::{Disk, Error, Survives, SyncPolicy, Ticket};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use turns::Shared;

/// A plain line file, to which any number of threads and tasks append, and which every tool can
/// read: a transcript, an audit trail, an access log.
///
/// The lines of several producers share a single `write` and a single `fdatasync`.
///
/// ```
/// use wrote::Lines;
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("session.jsonl");
/// let lines = Lines::open(&path)?;
/// lines.append(br#"{"role":"user"}"#)?.wait()?; // survives a power loss
/// lines.close()?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"{\"role\":\"user\"}\n");
/// # Ok(())
/// # }
/// ```
///
/// # Opening
///
/// A crash may leave half a line at the end of the file, or NULs instead of bytes that were never
/// flushed. Opening moves the bytes after the last line feed to a new file `NAME.torn-0` (or the
/// next free number), so that the next line is not joined to them. Complete lines are kept. If a
/// line in the file contains a NUL, either a crash tore it before its flush, so that it was never
/// acknowledged as durable, or another program wrote it. The file has only one writer at a time,
/// enforced by `flock(2)`: a second writer is refused or, with [`LinesOptions::waits`], waits.
///
/// # Other programs
///
/// Other programs may append to the file, and rotate it. Before it acknowledges lines, `Lines`
/// checks that the path still leads to the file, and that the file is at least as long as `Lines`
/// left it. If the file was renamed or removed, `Lines` reopens the path, and also writes the lines
/// that it has not acknowledged to the file that is there now. If the file was truncated, `Lines`
/// writes them again at the new end. So every acknowledged line was in the file at the path; a line
/// that was in flight during a rotation may be in both files. If another program cuts off lines
/// before they are flushed, the tickets that wait until they are durable report the loss; if there
/// are none, the next flush or the close reports it.
///
/// # Errors
///
/// When the disk is full, waits fail with [`Error::NotYet`]: the lines stay in memory, in order,
/// and each later call tries again. Once the buffer is full, appends fail. After any other failed
/// write, and after a failed flush, nothing more is acknowledged (W2): open the file again.
pub struct Lines {
    shared: Arc<Shared>,
}

/// Options of [`Lines`], which [`LinesOptions::open`] opens.
#[derive(Clone, Debug)]
pub struct LinesOptions {
    sync: SyncPolicy,
    buffer_bytes: usize,
    mode: Option<u32>,
    waits: bool,
    disk: Option<Disk>,
}

impl LinesOptions {
    /// Sets when lines become durable, and so how long a [`Ticket`] waits: with
    /// [`SyncPolicy::Always`] (the default) until its line survives a power loss, otherwise until
    /// it survives a crash of the process.
    pub fn sync(self, sync: SyncPolicy) -> LinesOptions {
        LinesOptions { sync, ..self }
    }

    /// Sets how many bytes of lines are collected while earlier lines are written or flushed: 1 MiB
    /// by default, at least 4 KiB. A line with its line feed must fit. At most twice this number of
    /// bytes is in memory, even when the disk is full.
    pub fn buffer_bytes(self, bytes: usize) -> LinesOptions {
        LinesOptions { buffer_bytes: bytes.clamp(4096, 64 << 20).next_multiple_of(4096), ..self }
    }

    /// Sets the permissions of a new file (`open(2)`), less the umask; 0o666 by default.
    pub fn mode(self, mode: u32) -> LinesOptions {
        LinesOptions { mode: Some(mode), ..self }
    }

    /// Sets whether opening waits until another writer has closed the file. By default, it fails if
    /// there is one.
    pub fn waits(self, waits: bool) -> LinesOptions {
        LinesOptions { waits, ..self }
    }

    /// Writes by the method of the disk's engine or, if the disk is simulated, to that disk. A
    /// simulated disk has no background thread: callers that wait do its work.
    pub fn on(self, disk: &Disk) -> LinesOptions {
        LinesOptions { disk: Some(disk.clone()), ..self }
    }

    /// Opens the file, creates it if it is missing, and repairs its end.
    ///
    /// Fails with [`Error::Refused`] if another writer has the file open, if it is not an ordinary
    /// file, or if its end must be moved but is longer than 256 MiB or the file begins like a
    /// database.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Lines, Error> {
        turns::open(self, path.as_ref()).map(|shared| Lines { shared })
    }
}

impl Lines {
    /// Opens the file with the defaults of [`Lines::options`]. Fails like [`LinesOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Lines, Error> {
        Lines::options().open(path)
    }

    /// Returns the options of a line file, as a builder.
    pub fn options() -> LinesOptions {
        let (sync, buffer_bytes) = (SyncPolicy::Always, 1 << 20);
        LinesOptions { sync, buffer_bytes, mode: None, waits: false, disk: None }
    }

    /// Appends a line: copies its bytes and a line feed into the buffer, to be written later. Waits
    /// while the buffer is full.
    ///
    /// Fails with [`Error::TooLong`] for a line that does not fit into the buffer, and with
    /// [`Error::Refused`] for bytes with a line feed or a NUL and after [`Lines::close`].
    pub fn append(&self, line: &[u8]) -> Result<Ticket<'_>, Error> {
        self.append_all(&[line])
    }

    /// Appends consecutive lines, and returns one ticket for all of them. They are not atomic:
    /// after a crash, the file may contain only some of them, from the first on. Waits while the
    /// buffer is full. Fails like [`Lines::append`].
    pub fn append_all(&self, lines: &[impl AsRef<[u8]>]) -> Result<Ticket<'_>, Error> {
        let end = self.shared.append(lines, true)?;
        Ok(self.ticket_of(end.expect("an append that waits ends with room")))
    }

    /// Like [`Lines::append_all`], but does not wait. If the buffer has no room, returns `None` and
    /// appends nothing.
    pub fn try_append(&self, lines: &[impl AsRef<[u8]>]) -> Result<Option<Ticket<'_>>, Error> {
        Ok(self.shared.append(lines, false)?.map(|end| self.ticket_of(end)))
    }

    /// Returns a ticket for all lines appended so far, by any caller.
    pub fn ticket(&self) -> Ticket<'_> {
        self.ticket_of(self.appended())
    }

    fn ticket_of(&self, end: u64) -> Ticket<'_> {
        let is_durable = self.shared.sync == SyncPolicy::Always;
        let goal = if is_durable { Goal::Durable } else { Goal::Written };
        Ticket::of_line(&self.shared, goal, end)
    }

    /// Makes every line appended so far durable, whatever the [`SyncPolicy`]. If another program
    /// has cut off lines before they were flushed, fails once, unless a ticket has already reported
    /// the loss.
    pub fn flush(&self) -> Result<(), Error> {
        self.shared.flush()
    }

    /// Reopens the path; to be called after another program has renamed the file. All earlier lines
    /// are written and flushed first.
    pub fn reopen(&self) -> Result<(), Error> {
        self.shared.reopen()
    }

    /// Writes all lines, makes them durable, and closes the file. Later appends are refused.
    pub fn close(&self) -> Result<(), Error> {
        self.shared.close(false)
    }

    /// Returns the number of lines appended since the file was opened; 0 in a child process.
    pub fn appended(&self) -> u64 {
        self.shared.look(|state| state.appended)
    }

    /// Returns how many of the lines appended since the file was opened have been written; 0 in a
    /// child process.
    pub fn written(&self) -> u64 {
        self.shared.look(|state| state.written)
    }

    /// Returns how many of the lines appended since the file was opened are known to survive a
    /// power loss; 0 in a child process.
    pub fn durable(&self) -> u64 {
        self.shared.look(|state| state.durable)
    }

    /// Fails if the file does not accept lines any more, and with [`Error::NotYet`] while the disk
    /// is full.
    pub fn check(&self) -> Result<(), Error> {
        self.shared.process.check()?;
        self.shared.look(|state| state.check(&self.shared.path)).map_or(Ok(()), Err)
    }

    /// Returns the file to which the most recently found torn end was moved; `None` if none has
    /// been found. It may have been found by [`Lines::open`], or later, when the path was reopened.
    pub fn torn(&self) -> Option<PathBuf> {
        self.shared.look(|state| state.torn.clone())
    }

    /// Returns the worst event that a line survives once a wait for its ticket has succeeded.
    pub fn survives(&self) -> Survives {
        self.shared.promise(self.shared.sync == SyncPolicy::Always)
    }
}

impl Drop for Lines {
    /// Acts like [`Lines::close`], but can only log an error (crate `log`, level error).
    fn drop(&mut self) {
        if self.shared.process.is_this()
            && let Err(error) = self.shared.close(true)
        {
            log::error!("closing a file of lines: {error}");
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("path", &self.shared.path).finish_non_exhaustive()
    }
}
