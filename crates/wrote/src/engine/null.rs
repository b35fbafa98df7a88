//! No I/O: every request completes when submitted, and its bytes are discarded.

use super::backend::{Backend, FileAccess};
use super::names::{Located, NameChange};
use super::request::Reply;
use super::slots::Requests;
use super::{Effective, Fallback, FileOptions};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Opens any path without checking it. It supports no names, so that nothing can mistake it for a
/// disk.
#[derive(Default)]
pub(super) struct Null {
    done: Vec<Reply>,
}

fn not_supported<T>() -> io::Result<T> {
    Err(Errno::OPNOTSUPP.into())
}

impl Backend for Null {
    fn open(
        &mut self,
        _slot: u32,
        _path: &Path,
        options: &FileOptions,
        _effective: &mut Effective,
    ) -> io::Result<FileAccess> {
        Ok(FileAccess { direct: options.direct, refused: None, align_bytes: 1 })
    }

    fn has_folders(&self) -> bool {
        false
    }

    fn is_named(&self, _slot: u32, _path: &Path) -> io::Result<bool> {
        not_supported()
    }

    fn set_direct(&mut self, _slot: u32, _direct: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _slot: u32) {}

    fn len(&self, _slot: u32) -> io::Result<u64> {
        not_supported()
    }

    fn truncate(&mut self, _slot: u32, _len_bytes: u64) -> io::Result<()> {
        not_supported()
    }

    fn drop_clean_pages(&mut self, _slot: u32) {}

    fn is_shared(&self, _slot: u32) -> io::Result<bool> {
        not_supported()
    }

    fn descriptor(&self, _slot: u32) -> Option<BorrowedFd<'_>> {
        None
    }

    fn locate(&mut self, _path: &Path) -> io::Result<Located> {
        not_supported()
    }

    fn make_folder(&mut self, _folder: &Path) -> io::Result<()> {
        not_supported()
    }

    fn list(&mut self, _folder: &Path) -> io::Result<Vec<PathBuf>> {
        not_supported()
    }

    fn change_name(&mut self, _change: NameChange) -> io::Result<Option<Fallback>> {
        not_supported()
    }

    fn push(&mut self, requests: Requests) {
        self.done.extend(
            requests.map(|request| Reply { token: request.token, result: request.len as i64 }),
        );
    }

    fn wait(&mut self, _min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        done.append(&mut self.done);
        Ok(())
    }
}
