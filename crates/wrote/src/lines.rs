//! `Lines`: a plain file of lines under the user's own name, appended by many threads, where each
//! line is acknowledged once it is safe.

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

/// A plain file of lines, appended from any number of threads and tasks, and readable by every
/// tool: a transcript, an audit trail, an access log.
///
/// Lines of several producers are written by one `write`, and made durable by one `fdatasync`.
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
/// # The opening
///
/// A crash may leave half a line at the end of the file, or NULs in place of bytes that were never
/// flushed. The opening moves what is behind the last line feed to a new file `NAME.torn-0` (or the
/// next free number), so the next line is not joined to it. Whole lines stay where they are. A line
/// in the file that has a NUL in it was torn by a crash before its flush, or is another program's:
/// it was never acknowledged as durable. The file has one writer, by `flock(2)`: a second one is
/// refused, or waits with [`LinesOptions::waits`].
///
/// # Other programs
///
/// Other programs may append to the file, and rotate it. Before lines are acknowledged, `Lines`
/// checks that its path still leads to the file, and that the file is as long as it left it. If it
/// was renamed or removed, `Lines` opens the path anew, and writes the lines that it has not
/// acknowledged there too. If it was shortened, it writes them again at the new end. So an
/// acknowledged line was in the file at its path; a line in flight at that moment may be in both
/// files. Lines that were written without a flush, and cut off before their flush, are reported by
/// the tickets that wait until they are durable, else by the next flush or by the closing.
///
/// # Errors
///
/// A full disk fails the waits with [`Error::NotYet`]: the lines stay in memory, in order, and each
/// later call tries again. Once the buffer is full, an append fails. After any other failed write,
/// and after a failed flush, nothing more is acknowledged (W2): open the file again.
pub struct Lines {
    shared: Arc<Shared>,
}

/// Options of [`Lines`]; [`LinesOptions::open`] opens them.
#[derive(Clone, Debug)]
pub struct LinesOptions {
    sync: SyncPolicy,
    buffer_bytes: usize,
    mode: Option<u32>,
    waits: bool,
    disk: Option<Disk>,
}

impl LinesOptions {
    /// Sets when lines become durable, and so what a [`Ticket`] waits for: with
    /// [`SyncPolicy::Always`] (the default) it waits until its line survives a power loss, else
    /// until it survives a crash of the process.
    pub fn sync(self, sync: SyncPolicy) -> LinesOptions {
        LinesOptions { sync, ..self }
    }

    /// Sets how many bytes of lines are collected while others are written or flushed: 1 MiB by
    /// default, at least 4 KiB. A line with its line feed must fit. At most twice as many are in
    /// memory, also on a full disk.
    pub fn buffer_bytes(self, bytes: usize) -> LinesOptions {
        LinesOptions { buffer_bytes: bytes.clamp(4096, 64 << 20).next_multiple_of(4096), ..self }
    }

    /// Sets the permissions of a new file (`open(2)`), minus the umask; 0o666 by default.
    pub fn mode(self, mode: u32) -> LinesOptions {
        LinesOptions { mode: Some(mode), ..self }
    }

    /// Makes the opening wait until another writer has closed the file. By default it is refused.
    pub fn waits(self, waits: bool) -> LinesOptions {
        LinesOptions { waits, ..self }
    }

    /// Writes to a simulated disk, or by a disk's method. A simulated disk has no background
    /// thread: waiting callers do that work.
    pub fn on(self, disk: &Disk) -> LinesOptions {
        LinesOptions { disk: Some(disk.clone()), ..self }
    }

    /// Opens the file, which is created if missing, and repairs its end.
    ///
    /// Fails with [`Error::Refused`] if another writer has it open, if it is not an ordinary file,
    /// and if its end must be moved, but has more than 256 MiB or the file begins like a database.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Lines, Error> {
        turns::open(self, path.as_ref()).map(|shared| Lines { shared })
    }
}

impl Lines {
    /// Opens the file with the defaults of [`Lines::options`]. Fails like [`LinesOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Lines, Error> {
        Lines::options().open(path)
    }

    /// Returns the options of a file of lines, as a builder.
    pub fn options() -> LinesOptions {
        let (sync, buffer_bytes) = (SyncPolicy::Always, 1 << 20);
        LinesOptions { sync, buffer_bytes, mode: None, waits: false, disk: None }
    }

    /// Appends a line: copies its bytes, and a line feed after them. It is not written yet. Waits
    /// while the buffer is full.
    ///
    /// Fails with [`Error::TooLong`] for a line that does not fit into the buffer, and with
    /// [`Error::Refused`] for bytes with a line feed or a NUL, and after [`Lines::close`].
    pub fn append(&self, line: &[u8]) -> Result<Ticket<'_>, Error> {
        self.append_all(&[line])
    }

    /// Appends consecutive lines, and returns one ticket for all. They are not atomic: after a
    /// crash the first of them may exist alone. Waits while the buffer is full. Fails like
    /// [`Lines::append`].
    pub fn append_all(&self, lines: &[impl AsRef<[u8]>]) -> Result<Ticket<'_>, Error> {
        let end = self.shared.append(lines, true)?;
        Ok(self.ticket_of(end.expect("an append that waits ends with room")))
    }

    /// Like [`Lines::append_all`] without waiting: returns `None` while the buffer has no room, and
    /// appends nothing then.
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

    /// Makes every line appended so far durable, with any [`SyncPolicy`]. Fails once for lines that
    /// another program cut off before their flush, unless a ticket has told of them.
    pub fn flush(&self) -> Result<(), Error> {
        self.shared.flush()
    }

    /// Opens the path anew, after another program has renamed the file. All earlier lines are
    /// written and flushed before.
    pub fn reopen(&self) -> Result<(), Error> {
        self.shared.reopen()
    }

    /// Writes all lines, makes them durable, and releases the file. Later appends are refused.
    pub fn close(&self) -> Result<(), Error> {
        self.shared.close(false)
    }

    /// Returns the number of lines appended since the opening; 0 in a child process.
    pub fn appended(&self) -> u64 {
        self.shared.look(|state| state.appended)
    }

    /// Returns the number of lines that were written, from the first one on; 0 in a child process.
    pub fn written(&self) -> u64 {
        self.shared.look(|state| state.written)
    }

    /// Returns the number of lines that survive a power loss, from the first one on, as far as this
    /// knows; 0 in a child process.
    pub fn durable(&self) -> u64 {
        self.shared.look(|state| state.durable)
    }

    /// Fails with the error of a file that accepts no more lines, and with [`Error::NotYet`] while
    /// the disk is full.
    pub fn check(&self) -> Result<(), Error> {
        self.shared.process.check()?;
        self.shared.look(|state| state.check(&self.shared.path)).map_or(Ok(()), Err)
    }

    /// Returns the file in which the last opening that found a torn end kept it. The path may have
    /// been opened anew since [`Lines::open`].
    pub fn torn(&self) -> Option<PathBuf> {
        self.shared.look(|state| state.torn.clone())
    }

    /// Returns what a line survives once its ticket was waited for.
    pub fn survives(&self) -> Survives {
        self.shared.promise(self.shared.sync == SyncPolicy::Always)
    }
}

impl Drop for Lines {
    /// Does the same as [`Lines::close`], but can only log an error (crate `log`, level error).
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
