//! Records a traced program: the folder's initial content, then each call with its data.
//!
//! A file of `wrote.record/1` begins with that line, followed by pieces. Each piece consists of the
//! lengths of its JSON part and of its data, their CRC-32C, and both parts. The last piece contains
//! the number of calls, so that truncation is detected.

use crate::RecordRequest;
use crate::call::{Act, Call, FileId, How, Name, PlaceId};
use crate::disk::Disk;
use crate::tree::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wrote::Writer;
use wrote_result::units;

const BEGINS: &[u8] = b"wrote.record/1\n";
/// Two lengths and a checksum, of four bytes each.
const HEAD_BYTES: usize = 12;
/// The maximum length of a JSON part: a call has at most two paths of 4 KiB.
const JSON_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Serialize, Deserialize)]
enum Piece {
    Root {
        file: FileId,
        path: PathBuf,
    },
    /// An entry below the root, as it was initially; a file's content is the piece's data.
    Before(Before),
    /// A call; the data of a write is the piece's data.
    Call(Call),
    /// The file and line of a location in the source.
    Place {
        id: PlaceId,
        text: String,
    },
    /// The end of the program.
    End {
        calls: u64,
    },
}

/// A recorded program.
#[derive(Debug)]
pub struct Record {
    /// The recorded folder.
    pub root: FileId,
    /// The folder's path at the time of recording.
    pub path: PathBuf,
    /// The folder's initial content; each folder precedes its entries.
    pub before: Vec<Before>,
    /// The calls, in the order in which they returned.
    pub calls: Vec<Call>,
    /// The file and line of each known location.
    pub places: HashMap<PlaceId, String>,
}

/// A file, folder or link that existed before the program ran.
#[derive(Debug, Serialize, Deserialize)]
pub struct Before {
    pub name: Name,
    pub mode: u32,
    pub what: What,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum What {
    Folder(FileId),
    Link(PathBuf),
    File {
        file: FileId,
        #[serde(skip)]
        bytes: Bytes,
    },
}

/// Writes a record while a program runs. An error ends the recording, but not the program.
pub struct Recorder {
    out: Writer,
    request: RecordRequest,
    problem: Option<String>,
    bytes: u64,
    calls: u64,
    /// Files that have never had a name below the root.
    outside: HashSet<FileId>,
    /// The source locations of the recorded calls.
    places: BTreeSet<PlaceId>,
}

impl Recorder {
    /// Starts a record with a copy of the requested folder.
    ///
    /// # Errors
    ///
    /// Why there can be no record, in one line.
    pub fn begin(request: RecordRequest) -> Result<Recorder, String> {
        // The record gets its name only when it is complete. It may contain data that only its
        // owner may read.
        let options = Writer::options().abandon_on_drop(true).mode(0o600);
        let options = options.replace(true).create_new(!request.replaces);
        let out = options.open(&request.path).map_err(|error| error.to_string())?;
        let (problem, outside, places) = (None, HashSet::new(), BTreeSet::new());
        let mut recorder = Recorder { out, request, problem, bytes: 0, calls: 0, outside, places };
        let copied = recorder.copy();
        copied.map_err(|error| recorder.words(&error))?;
        match recorder.problem.take() {
            Some(problem) => Err(problem),
            None => Ok(recorder),
        }
    }

    /// Returns how many more bytes the record can hold.
    pub fn room_bytes(&self) -> u64 {
        self.request.max_bytes.saturating_sub(self.bytes)
    }

    /// Explains in one line why there is no record.
    fn words(&self, error: &dyn Display) -> String {
        format!("--record {}: {error}", self.request.path.display())
    }

    fn copy(&mut self) -> io::Result<()> {
        self.write_all(BEGINS)?;
        let path = self.request.folder.clone();
        let file = FileId::of(&fs::metadata(&path)?);
        self.add(&Piece::Root { file, path: path.clone() }, &[])?;
        let mut folders = vec![(path, file)];
        while let Some((path, folder)) = folders.pop() {
            let entries = fs::read_dir(&path)?.collect::<io::Result<Vec<_>>>()?;
            for entry in entries {
                if self.problem.is_some() {
                    return Ok(());
                }
                if !self.is_own(&entry.path()) {
                    self.copy_entry(&entry.path(), folder, &mut folders)?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether a file is the record or its temporary file.
    fn is_own(&self, path: &Path) -> bool {
        let [own, other] =
            [&self.request.path, path].map(|path| path.file_name().unwrap_or_default());
        let [own, other] = [own, other].map(|name| name.to_string_lossy());
        own == other || other.starts_with(&format!(".{own}.wrote-"))
    }

    fn copy_entry(
        &mut self,
        path: &Path,
        folder: FileId,
        folders: &mut Vec<(PathBuf, FileId)>,
    ) -> io::Result<()> {
        let found = match path.symlink_metadata() {
            // Another program may remove its files at any time.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        let (file, name) = (FileId::of(&found), Name { folder, path: path.to_owned() });
        let mode = found.mode() & 0o7777;
        let mut data = Vec::new();
        let what = if found.is_dir() {
            folders.push((path.to_owned(), file));
            What::Folder(file)
        } else if found.is_symlink() {
            What::Link(fs::read_link(path)?)
        } else if found.is_file() && found.len() > self.room_bytes() {
            self.overflow();
            return Ok(());
        } else if found.is_file() {
            let named = |error| io::Error::other(format!("{}: {error}", path.display()));
            data = fs::read(path).map_err(named)?;
            What::File { file, bytes: Bytes::default() }
        } else {
            return Ok(());
        };
        self.add(&Piece::Before(Before { name, mode, what }), &data)
    }

    /// Records a call. `disk` must not have processed it yet.
    pub fn see(&mut self, disk: &Disk, call: &Call) {
        if self.problem.is_some() {
            return;
        }
        if let Err(error) = self.keep(disk, call) {
            self.problem = Some(self.words(&error));
        }
    }

    fn keep(&mut self, disk: &Disk, call: &Call) -> io::Result<()> {
        match &call.act {
            Act::Found { file, name: Some(name), .. } | Act::Made { file, name: Some(name) } => {
                if name.path.starts_with(&self.request.folder) {
                    self.outside.remove(file);
                } else {
                    self.outside.insert(*file);
                }
            }
            Act::Rename { file, to: name, .. } | Act::Link { file, name }
                if name.path.starts_with(&self.request.folder) && self.outside.remove(file) =>
            {
                self.come_in(disk, *file, &name.path, call.at_ns)?;
            }
            // The data stored through a mapping is known once a flush covers it.
            Act::Cover { file }
                if !self.outside.contains(file)
                    && disk.file(*file).is_some_and(|known| !known.is_removed) =>
            {
                self.come_in(disk, *file, &disk.path(*file), call.at_ns)?;
            }
            Act::Write { file, .. }
            | Act::Empty { file, .. }
            | Act::Resize { file, .. }
            | Act::Erase { file, .. }
            | Act::Shift { file, .. }
                if self.outside.contains(file) =>
            {
                return Ok(());
            }
            Act::Write { bytes, .. } if call.data.len() as u64 != bytes.end - bytes.start => {
                if bytes.end - bytes.start > self.room_bytes() {
                    self.overflow();
                    return Ok(());
                }
                return Err(io::Error::other("a write could not be read"));
            }
            _ => {}
        }
        self.calls += 1;
        self.places.extend(call.place);
        let Call { at_ns, took_ns, place, ref after, ref act, .. } = *call;
        let bare = Call { took_ns, place, after: after.clone(), ..Call::new(at_ns, act.clone()) };
        self.add(&Piece::Call(bare), &call.data)
    }

    /// Records the content of a file that was moved into the folder, or whose changes were not
    /// observed.
    fn come_in(&mut self, disk: &Disk, file: FileId, path: &Path, at_ns: u64) -> io::Result<()> {
        let data = fs::read(path)?;
        let is_durable = disk.file(file).is_some_and(|known| !known.content.is_dirty());
        let how = How { is_direct: false, is_durable, is_atomic: false };
        let asked_bytes = data.len() as u64;
        let act = Act::Write {
            file,
            bytes: 0..asked_bytes,
            asked_bytes,
            how,
            is_race: false,
            is_zeros: false,
        };
        self.calls += 1;
        self.add(&Piece::Call(Call::new(at_ns, act)), &data)
    }

    /// Forgets a file, which is reported again before its next call.
    pub fn forget(&mut self, file: FileId) {
        self.outside.remove(&file);
    }

    fn overflow(&mut self) {
        let because = format!(
            "the folder and what is written exceed {}; record less with --under FOLDER, or raise \
             --record-max",
            units::bytes(self.request.max_bytes)
        );
        self.problem = Some(self.words(&because));
    }

    fn add(&mut self, piece: &Piece, data: &[u8]) -> io::Result<()> {
        let json = serde_json::to_vec(piece)?;
        if (HEAD_BYTES + json.len() + data.len()) as u64 > self.room_bytes() {
            self.overflow();
            return Ok(());
        }
        let sum = crc32c::crc32c_append(crc32c::crc32c(&json), data);
        let head = [json.len() as u32, data.len() as u32, sum];
        self.write_all(head.map(u32::to_le_bytes).as_flattened())?;
        self.write_all(&json)?;
        self.write_all(data)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Finishes the record after the program has ended, adding the file and line that `source`
    /// returns for each location. On success, the record is complete and durable; otherwise it does
    /// not exist.
    ///
    /// # Errors
    ///
    /// Why there is no record, in one line.
    pub fn end(mut self, mut source: impl FnMut(PlaceId) -> Option<String>) -> Result<(), String> {
        let places = std::mem::take(&mut self.places).into_iter();
        let places = places.filter_map(|id| Some(Piece::Place { id, text: source(id)? }));
        for piece in places.chain([Piece::End { calls: self.calls }]) {
            if self.problem.is_none()
                && let Err(error) = self.add(&piece, &[])
            {
                self.problem = Some(error.to_string());
            }
        }
        match self.problem {
            Some(problem) => Err(problem),
            None => self.out.finish().map(drop).map_err(|error| error.to_string()),
        }
    }
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// If the record is missing, truncated or damaged: one line, without the file's name.
    pub fn read(path: &Path) -> Result<Record, String> {
        let mut from = BufReader::new(File::open(path).map_err(|error| error.to_string())?);
        let mut begins = [0; BEGINS.len()];
        let is_record = from.read_exact(&mut begins).is_ok() && begins == BEGINS;
        if !is_record {
            return Err("not a record: `wrote trace --record FILE` makes one".into());
        }
        let mut root = None;
        let (mut before, mut calls, mut places) = (Vec::new(), Vec::new(), HashMap::new());
        loop {
            let Some((piece, data)) = next(&mut from)? else {
                return Err("the record is truncated: its end is missing".into());
            };
            match piece {
                Piece::Root { file, path } => root = Some((file, path)),
                Piece::Before(mut entry) => {
                    if let What::File { bytes, .. } = &mut entry.what {
                        *bytes = data.into();
                    }
                    before.push(entry);
                }
                Piece::Call(call) => calls.push(Call { data, ..call }),
                Piece::Place { id, text } => drop(places.insert(id, text)),
                Piece::End { calls: count } if count == calls.len() as u64 => break,
                Piece::End { .. } => return Err("the record lacks calls".into()),
            }
        }
        let (root, path) = root.ok_or("the record has no folder")?;
        Ok(Record { root, path, before, calls, places })
    }
}

/// Reads a piece; `None` at the end of the file.
fn next(from: &mut impl BufRead) -> Result<Option<(Piece, Vec<u8>)>, String> {
    if from.fill_buf().map_err(|error| error.to_string())?.is_empty() {
        return Ok(None);
    }
    let mut head = [[0; 4]; HEAD_BYTES / 4];
    let cut = |_| "the record is truncated within a part".to_owned();
    from.read_exact(head.as_flattened_mut()).map_err(cut)?;
    let [json_bytes, data_bytes, sum] = head.map(u32::from_le_bytes);
    let [json_bytes, data_bytes] = [json_bytes, data_bytes].map(|bytes| bytes as usize);
    if json_bytes > JSON_BYTES_MAX {
        return Err("the record is damaged".into());
    }
    let mut bytes = Vec::new();
    // The buffer is not allocated in advance, because the length may be damaged.
    let read = from.take((json_bytes + data_bytes) as u64).read_to_end(&mut bytes);
    if read.map_err(|error| error.to_string())? != json_bytes + data_bytes {
        return Err("the record is truncated within a part".into());
    }
    if crc32c::crc32c(&bytes) != sum {
        return Err("the record is damaged".into());
    }
    let data = bytes.split_off(json_bytes);
    let piece = serde_json::from_slice(&bytes).map_err(|error| format!("the record: {error}"))?;
    Ok(Some((piece, data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records a folder with one file and one write, and returns the record's path.
    fn made(place: &Path, max_bytes: u64) -> Result<PathBuf, String> {
        let folder = place.join("data");
        fs::create_dir_all(folder.join("below")).unwrap();
        fs::write(folder.join("below/a"), "old").unwrap();
        let path = place.join("record");
        let request =
            RecordRequest { path: path.clone(), replaces: true, folder: folder.clone(), max_bytes };
        let mut recorder = Recorder::begin(request)?;
        let file = FileId::of(&fs::metadata(folder.join("below/a")).unwrap());
        let (bytes, asked_bytes, how) = (3..6, 3, How::default());
        let act = Act::Write { file, bytes, asked_bytes, how, is_race: false, is_zeros: false };
        recorder.see(
            &Disk::default(),
            &Call { data: b"new".into(), place: Some(3), ..Call::new(7, act) },
        );
        recorder.end(|_| Some("a.py:1".into())).map(|()| path)
    }

    #[test]
    fn a_record_is_read_as_it_was_made() {
        let place = tempfile::tempdir().unwrap();
        let record = Record::read(&made(place.path(), 1 << 20).unwrap()).unwrap();
        assert_eq!(record.path, place.path().join("data"));
        let names: Vec<_> =
            record.before.iter().filter_map(|of| of.name.path.file_name()).collect();
        assert_eq!(names, ["below", "a"]);
        assert!(matches!(&record.before[1].what, What::File { bytes, .. } if **bytes == *b"old"));
        assert_eq!((record.calls.len(), record.calls[0].data.as_slice()), (1, &b"new"[..]));
        assert_eq!(record.places[&record.calls[0].place.unwrap()], "a.py:1");
    }

    #[test]
    fn a_cut_a_damaged_and_a_foreign_file_are_one_line() {
        let place = tempfile::tempdir().unwrap();
        let path = made(place.path(), 1 << 20).unwrap();
        let whole = fs::read(&path).unwrap();
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            Record::read(&path).map(drop).unwrap_err()
        };
        for length in 0..whole.len() {
            let line = read(&whole[..length]);
            assert!(!line.contains('\n') && line.contains("record"), "{line}");
        }
        for at in BEGINS.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let line = read(&damaged);
            assert!(line.contains("damaged") || line.contains("truncated"), "byte {at}: {line}");
        }
        assert!(read(b"#!/bin/sh\n").starts_with("not a record"));
    }

    #[test]
    fn more_than_the_bound_is_one_line_and_no_file() {
        let place = tempfile::tempdir().unwrap();
        let whole = fs::metadata(made(place.path(), 1 << 20).unwrap()).unwrap().len();
        fs::remove_file(place.path().join("record")).unwrap();
        for max_bytes in [100, whole / 2, whole - 1] {
            let line = made(place.path(), max_bytes).unwrap_err();
            assert!(line.contains("--record-max"), "{line}");
        }
        let names: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}
