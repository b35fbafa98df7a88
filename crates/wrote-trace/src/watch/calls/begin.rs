//! Determines the effect that a call will have from its arguments at its start.

use super::{At, Begin, Begun, DATA_BYTES_MAX, Reader, pages, resize, size};
use crate::call::{Act, FileId, How, Name};
use crate::wanted::Sign;
use crate::watch::descriptors::{self, Kind, name_of};
use crate::watch::filter::{SPACE_IOCTLS, newer};
use crate::watch::maps::{self, Tasks};
use crate::watch::memory;
use crate::watch::ptrace::Entry;
use libc::{c_long, pid_t};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Descriptors are recorded per process, so descriptor tables shared otherwise are not followed.
const TABLES: &str = "descriptors private to a thread, or shared by two processes (CLONE_FILES), \
                      are not followed";
const SPACE: &str = "holes and zeros made by ioctl(2) or MADV_REMOVE are not followed";

/// The minimum number of zeros in a write that may allocate space.
const SPACE_BYTES_MIN: u64 = 512;

impl Reader {
    /// Decodes a call at its start. A call that changes nothing or will fail is passed over.
    pub fn begin(&mut self, process: pid_t, task: pid_t, entry: Entry, tasks: Tasks) -> Begin {
        let (number, arguments) = newer(entry.number, entry.arguments);
        self.effect(process, task, number, arguments, tasks).unwrap_or(Begin::Pass)
    }

    /// Decodes a call of a process, or an operation on one of its files; `None` if it changes
    /// nothing or will fail.
    pub fn effect(
        &mut self,
        process: pid_t,
        task: pid_t,
        number: c_long,
        arguments: [u64; 6],
        tasks: Tasks,
    ) -> Option<Begin> {
        let [a, b, c, d, e, f] = arguments;
        let path = |folder: u64, address: u64| path(task, folder as i32, address);
        let begun = match number {
            libc::SYS_dup3 => return self.closed(process, b),
            libc::SYS_openat => self.open(path(a, b), c),
            libc::SYS_openat2 => self.open(path(a, b), memory::number(task, c)?),
            libc::SYS_close => return self.closed(process, a),
            libc::SYS_close_range => {
                self.descriptors.forget_range(process, a as u32, b as u32);
                let closed = a as u32..=b as u32;
                let flags = c as u32;
                if flags & libc::CLOSE_RANGE_UNSHARE != 0 && has_threads(process) {
                    return Some(Begin::Unseen(TABLES));
                }
                let is_now = flags & libc::CLOSE_RANGE_CLOEXEC == 0;
                self.close_rings(process, |file| is_now && closed.contains(&(file as u32)));
                return None;
            }
            // The call may change the descriptor's flags.
            libc::SYS_fcntl => {
                self.descriptors.forget(process, a as i32);
                return None;
            }
            libc::SYS_write | libc::SYS_writev => {
                let is_one = number == libc::SYS_write;
                let pieces = if is_one { vec![(b, c)] } else { memory::pieces(task, b, c)? };
                let told = self.tell(process, a, || memory::texts(task, &pieces));
                told.or_else(|| self.write_pieces(process, task, a, &pieces, At::Position, 0))?
            }
            libc::SYS_pwrite64 => self.write_pieces(process, task, a, &[(b, c)], At::Byte(d), 0)?,
            libc::SYS_pwritev | libc::SYS_pwritev2 => {
                let is_newer = number == libc::SYS_pwritev2;
                let at = if is_newer && d == u64::MAX { At::Position } else { At::Byte(d) };
                let flags = if is_newer { f as i32 } else { 0 };
                self.write_pieces(process, task, a, &memory::pieces(task, b, c)?, at, flags)?
            }
            libc::SYS_sendfile => self.write(process, a, d, At::Position, 0)?,
            libc::SYS_splice | libc::SYS_copy_file_range => {
                let at = match d {
                    0 => At::Position,
                    address => At::Byte(memory::number(task, address)?),
                };
                self.write(process, c, e, at, 0)?
            }
            libc::SYS_ioctl if SPACE_IOCTLS.contains(&(b as u32)) => {
                self.regular(process, a)?;
                return Some(Begin::Unseen(SPACE));
            }
            libc::SYS_madvise => return Some(Begin::Unseen(SPACE)),
            libc::SYS_unshare if has_threads(process) => return Some(Begin::Unseen(TABLES)),
            libc::SYS_clone | libc::SYS_clone3 => {
                let flags = if number == libc::SYS_clone { a } else { memory::number(task, a)? };
                let has = |flag: i32| flags & flag as u64 != 0;
                let is_usual = has(libc::CLONE_FILES) == has(libc::CLONE_THREAD);
                return (!is_usual).then_some(Begin::Unseen(TABLES));
            }
            libc::SYS_ioctl => {
                self.regular(process, a)?;
                Begun::Clone { descriptor: a as i32 }
            }
            libc::SYS_truncate => {
                let path = path(libc::AT_FDCWD as u64, a)?;
                let found = fs::metadata(&path).ok()?;
                let (file, from_bytes) = (FileId::of(&found), found.len());
                self.meet(Some(&path), file, from_bytes);
                self.look(|area| area.file() == file);
                Begun::Sure(resize(file, from_bytes, b, true)?)
            }
            libc::SYS_ftruncate | libc::SYS_fallocate => {
                let (file, descriptor) = (self.regular(process, a)?, a as i32);
                // Earlier stores are examined now: the call moves or cuts them, and they could not
                // be found after it.
                self.look(|area| area.file() == file);
                let from_bytes = size(process, descriptor)?;
                // If a descriptor that has not written empties the file, the call has the same
                // effect as an open with `O_TRUNC`. After the descriptor's own writes, it ends the
                // use of the file, as with a journal.
                let is_new = !self.descriptors.get(process, descriptor)?.is_written;
                let bytes = c..c.saturating_add(d);
                match number {
                    libc::SYS_ftruncate => Begun::Sure(resize(file, from_bytes, b, is_new)?),
                    _ => Begun::Allocate { descriptor, mode: b as i32, bytes, from_bytes, is_new },
                }
            }
            libc::SYS_fsync | libc::SYS_fdatasync => {
                let flushed = self.descriptors.get(process, a as i32)?;
                let file = match flushed.kind {
                    Kind::Folder => flushed.file,
                    _ => self.regular(process, a)?,
                };
                let is_data = number == libc::SYS_fdatasync;
                self.flush(Act::Flush { file, failed: None, is_data }, |of| of == file, tasks)
            }
            libc::SYS_sync_file_range => Begun::WriteBack { file: self.regular(process, a)? },
            libc::SYS_sync => self.flush(Act::FlushAll { device: None }, |_| true, tasks),
            libc::SYS_syncfs => {
                let device = self.descriptors.get(process, a as i32)?.file.device;
                let act = Act::FlushAll { device: Some(device) };
                self.flush(act, |of| of.device == device, tasks)
            }
            libc::SYS_msync if c as i32 & libc::MS_SYNC != 0 => {
                let memory = pages(a, b);
                self.look_within(process, &memory);
                let flushed = self.areas.flushed(process, &memory);
                let mappings = || maps::writable(task).0;
                let of_maps = || maps::flushed(&mappings().iter().collect::<Vec<_>>(), &memory);
                Begun::Sure(flushed.or_else(of_maps)?)
            }
            libc::SYS_mmap => {
                let is = |flag: i32| d as i32 & flag != 0;
                let over = is(libc::MAP_FIXED).then(|| self.unmap(process, pages(a, b)));
                let file = is(libc::MAP_SHARED).then(|| self.regular(process, e)).flatten();
                match file {
                    Some(file) if c as i32 & libc::PROT_WRITE != 0 => {
                        Begun::Map { file, descriptor: e as i32, count: b, at_byte: f }
                    }
                    _ => {
                        let of = file.and_then(|_| self.descriptors.get(process, e as i32));
                        self.mapped.may_protect |= of.is_some_and(|of| of.is_writable);
                        over.flatten()?
                    }
                }
            }
            libc::SYS_munmap => self.unmap(process, pages(a, b))?,
            libc::SYS_mremap => {
                let is = |flag: i32| d as i32 & flag != 0;
                let over = is(libc::MREMAP_FIXED).then(|| self.unmap(process, pages(e, c)));
                let moved_bytes = if is(libc::MREMAP_DONTUNMAP) { 0 } else { b };
                match self.unmap(process, pages(a, b.max(1))) {
                    Some(Begun::Unmap { last, .. }) => {
                        Begun::Remap { memory: pages(a, moved_bytes), last, count: c }
                    }
                    _ => over.flatten()?,
                }
            }
            libc::SYS_execve | libc::SYS_execveat => {
                self.end(process);
                return None;
            }
            libc::SYS_mprotect | libc::SYS_pkey_mprotect if self.mapped.may_protect => {
                let memory = pages(a, b);
                if self.areas.with(process, &memory).is_some() {
                    return None;
                }
                self.unmap(process, memory.clone());
                Begun::Protect { memory }
            }
            libc::SYS_renameat => self.rename(path(a, b)?, path(c, d)?, 0)?,
            libc::SYS_renameat2 => self.rename(path(a, b)?, path(c, d)?, e as u32)?,
            libc::SYS_linkat if e as i32 & libc::AT_EMPTY_PATH != 0 => {
                let file = self.descriptors.get(process, a as i32)?.file;
                Begun::Sure(Act::Link { file, name: name_of(&path(c, d)?)? })
            }
            libc::SYS_linkat => self.link(path(a, b)?, path(c, d)?)?,
            libc::SYS_unlinkat => self.unlink(path(a, b)?)?,
            libc::SYS_mkdirat => Begun::MakeFolder { path: path(a, b)? },
            libc::SYS_symlinkat => {
                Begun::MakeLink { path: path(b, c)?, to: memory::path(task, a)? }
            }
            libc::SYS_sendto => self.tell(process, a, || memory::text(task, b, c))?,
            // The header of the first of several messages has the same layout.
            libc::SYS_sendmsg | libc::SYS_sendmmsg => {
                self.tell(process, a, || memory::texts(task, &memory::pieces_of_message(task, b)?))?
            }
            libc::SYS_setsid => Begun::NewSession,
            libc::SYS_io_uring_setup => return self.begin_ring(process, task, b),
            libc::SYS_io_uring_register => return self.register(process, task, arguments),
            libc::SYS_io_uring_enter => return Some(self.enter(process, task, arguments, tasks)),
            libc::SYS_io_setup => Begun::Context(b),
            libc::SYS_io_submit => return Some(self.submit(process, task, arguments, tasks)),
            libc::SYS_io_destroy => {
                self.end_queues(process, |kernel| kernel.is_context(a));
                return None;
            }
            _ => return None,
        };
        Some(Begin::Await(begun))
    }

    /// Handles a call that removes or replaces mappings; `None` if none of them is followed.
    fn unmap(&mut self, process: pid_t, memory: Range<u64>) -> Option<Begun> {
        if !self.areas.overlaps(process, &memory) {
            return None;
        }
        self.look_within(process, &memory);
        Some(Begun::Unmap { memory, last: self.areas.last })
    }

    /// Returns a flush of all bytes of the files for which `is_meant` holds.
    fn flush(&mut self, act: Act, is_meant: impl Fn(FileId) -> bool, tasks: Tasks) -> Begun {
        self.look(|area| is_meant(area.file()));
        Begun::Flush { act, covers: self.mapped.covered(is_meant, tasks) }
    }

    fn closed(&mut self, process: pid_t, descriptor: u64) -> Option<Begin> {
        self.close_rings(process, |file| file == descriptor as i32);
        self.descriptors.forget(process, descriptor as i32);
        None
    }

    /// Returns the regular file of a descriptor; `None` for other files.
    pub fn regular(&mut self, process: pid_t, descriptor: u64) -> Option<FileId> {
        let found = self.descriptors.get(process, descriptor as i32)?;
        if found.kind != Kind::Regular {
            return None;
        }
        let file = found.file;
        if !self.met.contains(&file) {
            let path = descriptors::path(process, descriptor as i32);
            self.meet(path.as_deref(), file, size(process, descriptor as i32)?);
        }
        Some(file)
    }

    fn open(&mut self, path: Option<PathBuf>, flags: u64) -> Begun {
        let found = path.as_ref().and_then(|path| Some((path, fs::metadata(path).ok()?)));
        if let Some((path, found)) = found.as_ref().filter(|(_, found)| found.is_file()) {
            // A symbolic link, such as `/proc/self/fd/N`, has a different name than its file.
            let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
            let own = if is_link { fs::canonicalize(path).ok() } else { Some(path.to_path_buf()) };
            self.meet(own.as_deref(), FileId::of(found), found.len());
        }
        let size_before = found.map(|(_, found)| found.len());
        if let Some(path) = path.as_ref().filter(|_| size_before.is_none()) {
            let (calls, made) = self.making.entry(path.clone()).or_default();
            // No file is there now, so an earlier one is gone.
            (*calls, *made) = (*calls + 1, None);
        }
        Begun::Open { path, size_before, empties: flags as i32 & libc::O_TRUNC != 0 }
    }

    fn rename(&mut self, from: PathBuf, to: PathBuf, flags: u32) -> Option<Begun> {
        let [(from, file), (to, replaced)] = [self.place(&from)?, self.place(&to)?];
        let file = file?;
        self.look(|area| area.file() == file);
        Some(Begun::Sure(match flags & libc::RENAME_EXCHANGE {
            0 => Act::Rename { file, from, to, replaced },
            _ => Act::Exchange { one: (file, from), other: (replaced?, to) },
        }))
    }

    fn link(&mut self, from: PathBuf, to: PathBuf) -> Option<Begun> {
        // A file without a name is linked through `/proc/self/fd/N`, which must be followed.
        let file = match from.starts_with("/proc") {
            true => FileId::of(&fs::metadata(&from).ok()?),
            false => self.place(&from)?.1?,
        };
        Some(Begun::Sure(Act::Link { file, name: name_of(&to)? }))
    }

    fn unlink(&mut self, path: PathBuf) -> Option<Begun> {
        let (name, file) = self.place(&path)?;
        Some(Begun::Sure(Act::Unlink { file: file?, name }))
    }

    fn place(&mut self, path: &Path) -> Option<(Name, Option<FileId>)> {
        let found = path.symlink_metadata().ok();
        if let Some(found) = found.as_ref().filter(|found| found.is_file()) {
            self.meet(Some(path), FileId::of(found), found.len());
        }
        Some((name_of(path)?, found.as_ref().map(FileId::of)))
    }

    pub fn write(
        &mut self,
        process: pid_t,
        descriptor: u64,
        asked_bytes: u64,
        at: At,
        flags: i32,
    ) -> Option<Begun> {
        let descriptor = descriptor as i32;
        let Some(file) = self.regular(process, descriptor as u64) else {
            self.descriptors.note_output(process, descriptor);
            return None;
        };
        let open = self.descriptors.get(process, descriptor)?;
        let at = match at {
            // With `O_APPEND`, Linux appends regardless of the offset (BUGS of `pwrite(2)`).
            At::Byte(_) if open.appends || flags & libc::RWF_APPEND != 0 => At::End,
            at => at,
        };
        let is_durable = open.how.is_durable || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
        let how = How { is_durable, is_atomic: flags & libc::RWF_ATOMIC != 0, ..open.how };
        let (is_zeros, data) = (false, Vec::new());
        Some(Begun::Write { descriptor, file, how, asked_bytes, at, is_zeros, data })
    }

    /// Decodes a write of several pieces of memory; `None` if it changes no followed file.
    pub fn write_pieces(
        &mut self,
        process: pid_t,
        task: pid_t,
        descriptor: u64,
        pieces: &[(u64, u64)],
        at: At,
        flags: i32,
    ) -> Option<Begun> {
        let bytes = pieces.iter().map(|(_, count)| count).sum();
        let mut begun = self.write(process, descriptor, bytes, at, flags)?;
        if let Begun::Write { is_zeros, data, .. } = &mut begun {
            let are_zeros = |of: &(u64, u64)| memory::is_zeros(task, of.0, of.1);
            // Space may also be allocated by writing the last byte of each block.
            let ends_block = matches!(at, At::Byte(from) if (from + bytes) % SPACE_BYTES_MIN == 0);
            let may_prepare = bytes >= SPACE_BYTES_MIN || ends_block;
            *is_zeros = may_prepare && pieces.iter().all(are_zeros);
            if self.wanted.data && bytes <= DATA_BYTES_MAX {
                *data = memory::all(task, pieces).unwrap_or_default();
            }
        }
        Some(begun)
    }

    /// Returns [`Act::Tell`] as the effect of a write that is the sign of an acknowledgement;
    /// `None` for other writes.
    pub fn tell(
        &mut self,
        process: pid_t,
        descriptor: u64,
        text: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Begun> {
        let descriptor = descriptor as i32;
        if matches!(self.wanted.ack, Sign::Exit) {
            return None;
        }
        let kind = self.descriptors.get(process, descriptor)?.kind;
        let tells = match &self.wanted.ack {
            Sign::Exit => false,
            Sign::Stdout => descriptor == 1 && kind == Kind::Stream,
            Sign::Socket => kind == Kind::Socket,
            Sign::Text(sign) => {
                let is_outside = matches!(kind, Kind::Stream | Kind::Socket);
                is_outside && text().is_some_and(|text| sign.is_match(&text))
            }
        };
        if tells {
            self.look(|_| true);
            self.descriptors.note_output(process, descriptor);
        }
        tells.then_some(Begun::Sure(Act::Tell))
    }
}

/// Returns whether a process has several threads, which share its descriptors.
fn has_threads(process: pid_t) -> bool {
    fs::read_dir(format!("/proc/{process}/task")).is_ok_and(|tasks| tasks.count() > 1)
}

/// Returns a path as the task resolves it, with symbolic links in its folder resolved; `None` if it
/// can't be read or resolved.
fn path(task: pid_t, folder: i32, address: u64) -> Option<PathBuf> {
    let given = memory::path(task, address)?;
    let whole = match (given.strip_prefix("/proc/self"), folder) {
        (Ok(below), _) => Path::new(&format!("/proc/{task}")).join(below),
        _ if given.is_absolute() => match fs::read_link(format!("/proc/{task}/root")) {
            Ok(root) if root != Path::new("/") => root.join(given.strip_prefix("/").ok()?),
            _ => given,
        },
        (_, libc::AT_FDCWD) => fs::read_link(format!("/proc/{task}/cwd")).ok()?.join(given),
        _ => fs::read_link(format!("/proc/{task}/fd/{folder}")).ok()?.join(given),
    };
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => Some(parent.canonicalize().ok()?.join(name)),
        _ => whole.canonicalize().ok(),
    }
}
