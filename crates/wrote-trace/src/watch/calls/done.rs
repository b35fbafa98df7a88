//! Determines the effect that a call had from its result at its end.

use super::{At, Begun, Reader, pages, resize, size};
use crate::call::{Act, FileId, How, Stores};
use crate::watch::descriptors::{Descriptor, Kind, name_of};
use crate::watch::maps;
use libc::pid_t;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The modes of `fallocate(2)` that leave zeros, and the modes that move bytes.
const ERASES: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE | WRITE_ZEROES;
const SHIFTS: i32 = libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE;
/// From `linux/falloc.h`, Linux 6.17 and later.
const WRITE_ZEROES: i32 = 0x80;

impl Reader {
    /// Returns the effect of a call, given its result; `None` if it had none.
    pub fn act(
        &mut self,
        process: pid_t,
        task: pid_t,
        begun: Begun,
        result: Result<u64, i32>,
    ) -> Option<Act> {
        if self.is_made_already(process, &begun, result) {
            return None;
        }
        match (begun, result) {
            (
                Begun::Sure(Act::Flush { file, .. } | Act::FlushRange { file, .. })
                | Begun::Flush { act: Act::Flush { file, .. }, .. },
                Err(number),
            ) => Some(Act::Flush { file, failed: Some(number), is_data: false }),
            // The call consumes the file's error, so that a later flush would not report it.
            (
                Begun::WriteBack { file },
                Err(number @ (libc::EIO | libc::ENOSPC | libc::EDQUOT)),
            ) => Some(Act::Flush { file, failed: Some(number), is_data: false }),
            (_, Err(_)) => None,
            (begun, Ok(value)) => self.done(process, task, begun, value),
        }
    }

    fn done(&mut self, process: pid_t, task: pid_t, begun: Begun, value: u64) -> Option<Act> {
        Some(match begun {
            Begun::Open { path, size_before, empties } => {
                let descriptor = value as i32;
                self.descriptors.forget(process, descriptor);
                let opened = self.descriptors.get(process, descriptor)?;
                if opened.kind != Kind::Regular {
                    return None;
                }
                let (file, made_at) = (opened.file, opened.path.clone());
                match (size_before, made_at) {
                    (None, Some(path)) => {
                        self.meet_device(Some(&path), file.device);
                        self.met.insert(file);
                        Act::Made { file, name: name_of(&path) }
                    }
                    // Only `O_TMPFILE` opens a file without a name in a folder.
                    (_, None) if path.as_ref().is_none_or(|path| path.is_dir()) => {
                        self.meet_device(path.as_deref(), file.device);
                        self.met.insert(file);
                        Act::Made { file, name: None }
                    }
                    (Some(size_bytes @ 1..), _) if empties => Act::Empty { file, size_bytes },
                    _ => return None,
                }
            }
            // A copy that starts at the end of its source writes nothing.
            Begun::Write { .. } if value == 0 => return None,
            Begun::Write { descriptor, file, how, asked_bytes, at, is_zeros, .. } => {
                // A queue continues to write after a descriptor is closed, and its number may then
                // belong to another file.
                let open = self.descriptors.get(process, descriptor).filter(|of| of.file == file);
                let (start, appends) = match (open, at) {
                    (Some(open), at) => {
                        open.is_written = true;
                        (start(open, process, descriptor, at, value)?, open.appends)
                    }
                    (None, At::Byte(start)) => (start, false),
                    (None, _) => return None,
                };
                let bytes = start..start.saturating_add(value);
                let is_race = at == At::Position
                    && !appends
                    && self.descriptors.has_overwritten(process, descriptor, file, &bytes);
                Act::Write { file, bytes, asked_bytes, how, is_race, is_zeros }
            }
            Begun::Clone { descriptor } => {
                let size_bytes = size(process, descriptor)?;
                let file = self.descriptors.get(process, descriptor)?.file;
                let how = How::default();
                let bytes = 0..size_bytes;
                let asked_bytes = size_bytes;
                Act::Write { file, bytes, asked_bytes, how, is_race: false, is_zeros: false }
            }
            Begun::Allocate { descriptor, mode, bytes, from_bytes, is_new } => {
                let to_bytes = size(process, descriptor)?;
                let file = self.descriptors.get(process, descriptor)?.file;
                let bytes = bytes.start..bytes.end.min(to_bytes);
                match mode {
                    _ if mode & ERASES != 0 && !bytes.is_empty() => {
                        let empties = is_new && bytes.start == 0 && bytes.end >= from_bytes;
                        Act::Erase { file, bytes, empties: empties && from_bytes > 0 }
                    }
                    _ if mode & SHIFTS != 0 => {
                        Act::Shift { file, at_byte: bytes.start, from_bytes, to_bytes }
                    }
                    _ => resize(file, from_bytes, to_bytes, false)?,
                }
            }
            Begun::Map { file, descriptor, count, at_byte } => {
                let path = PathBuf::from(format!("/proc/{process}/fd/{descriptor}"));
                self.map((process, task), (pages(value, count), at_byte), file, &path)
            }
            Begun::Unmap { memory, last } => {
                self.areas.remove(process, &memory, last);
                return None;
            }
            // The part that is not moved remains followed, because other threads may store to it.
            Begun::Remap { memory, last, count } if value == memory.start => {
                let grown = memory.end.max(value)..pages(value, count).end;
                self.areas.remove(process, &(grown.end..memory.end), last);
                self.map_again(process, task, &grown);
                return None;
            }
            Begun::Remap { memory, last, count } => {
                self.areas.remove(process, &memory, last);
                self.map_again(process, task, &pages(value, count));
                return None;
            }
            Begun::Protect { memory } => {
                self.map_again(process, task, &memory);
                return None;
            }
            Begun::Flush { act, covers } => {
                let covers = covers.into_iter().filter(|file| self.mapped.cover(*file));
                self.news.extend(covers.map(|(file, _)| Act::Cover { file }));
                act
            }
            Begun::Sure(act) => act,
            Begun::MakeFolder { path } => {
                let file = FileId::of(&fs::metadata(&path).ok()?);
                Act::MadeFolder { file, name: name_of(&path)? }
            }
            Begun::MakeLink { path, to } => {
                let file = FileId::of(&path.symlink_metadata().ok()?);
                Act::MadeLink { file, name: name_of(&path)?, to }
            }
            // The bytes may still be in the device's cache, and their location not yet in the
            // journal.
            Begun::WriteBack { .. } | Begun::NewSession => return None,
            Begun::Ring(change) => {
                self.change_ring(process, change, value);
                return None;
            }
            Begun::Context(place) => {
                self.add_context(process, place);
                return None;
            }
        })
    }

    /// Follows a mapping that a process has created.
    fn map(
        &mut self,
        of: (pid_t, pid_t),
        place: (Range<u64>, u64),
        file: FileId,
        path: &Path,
    ) -> Act {
        self.areas.remove(of.0, &place.0, self.areas.last);
        let stores = self.areas.add(of, place, file, path);
        if stores != Stores::Seen {
            self.mapped.loosen(file);
        }
        Act::Map { file, stores }
    }

    /// Follows the writable mappings in this memory again, as `/proc` lists them.
    fn map_again(&mut self, process: pid_t, task: pid_t, memory: &Range<u64>) {
        for mapping in maps::writable(process).0 {
            let start = mapping.memory.start.max(memory.start);
            let part = start..mapping.memory.end.min(memory.end);
            if part.is_empty() {
                continue;
            }
            let at_byte = mapping.bytes(&part).start;
            let act = self.map((process, task), (part, at_byte), mapping.file, &mapping.path);
            self.news.push(act);
        }
    }
}

/// Returns the offset at which a call that has moved `value` bytes started; `None` if it is
/// unknown.
fn start(of: &Descriptor, process: pid_t, descriptor: i32, at: At, value: u64) -> Option<u64> {
    match at {
        At::Byte(start) => Some(start),
        At::End => Some(size(process, descriptor)?.saturating_sub(value)),
        At::Position => Some(of.position(process, descriptor).ok()?.saturating_sub(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wanted::{Sign, Wanted};

    #[test]
    fn a_failed_write_back_is_a_failed_flush_and_one_that_was_refused_is_not() {
        let wanted = Wanted {
            ack: Sign::Exit,
            io_uring: false,
            data: false,
            daemons: false,
            on_disk: false,
        };
        let own = std::process::id() as pid_t;
        let mut reader = Reader::new(wanted, own, 0);
        let file = FileId { device: 1, inode: 1 };
        let mut failed = |number| match reader.act(own, own, Begun::WriteBack { file }, Err(number))
        {
            Some(Act::Flush { file: of, failed, .. }) if of == file => failed,
            act => {
                assert!(act.is_none(), "{act:?}");
                None
            }
        };
        assert_eq!(failed(libc::EIO), Some(libc::EIO));
        assert_eq!(failed(libc::EINVAL), None);
        assert!(reader.act(own, own, Begun::WriteBack { file }, Ok(0)).is_none());
    }
}
