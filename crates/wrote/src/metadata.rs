//! What a file has besides its bytes: permissions, owner, times, extended attributes.

use crate::{Action, Error};
use rustix::fs::{
    Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr,
    fsetxattr, fstat, futimens,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The most bytes of a list of names, and of one value (`xattr(7)`).
const XATTR_BYTES_MAX: usize = 64 << 10;

/// What one file has besides its bytes, to be given to another.
pub(crate) struct Metadata {
    stat: Stat,
    xattrs: Vec<(CString, Vec<u8>)>,
}

/// What of it is given.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    /// Owner and group, where this process may give them away.
    pub owner: bool,
    /// When it was last read and changed.
    pub times: bool,
}

impl Metadata {
    /// Reads it of an open file.
    pub(crate) fn of(file: BorrowedFd, path: &Path) -> Result<Metadata, Error> {
        let failed = |errno: Errno| Error::file(path, Action::Examine, None, &errno.into());
        let stat = fstat(file).map_err(failed)?;
        Ok(Metadata { stat, xattrs: xattrs(file).map_err(failed)? })
    }

    /// Gives it to a file: permissions and extended attributes, and what else is asked.
    ///
    /// The owner is given where that is permitted; where not, the bits that let a program run as its
    /// owner or group are not given either (`chmod(2)`). Attributes that this file system does not
    /// have, or this process may not set (`security.*`, `trusted.*`), are left out, as `cp(1)` does.
    pub(crate) fn give(&self, file: BorrowedFd, path: &Path, parts: Parts) -> Result<(), Error> {
        let failed = |errno: Errno| Error::file(path, Action::SetMetadata, None, &errno.into());
        let new = fstat(file).map_err(failed)?;
        let mut is_owner = (new.st_uid, new.st_gid) == (self.stat.st_uid, self.stat.st_gid);
        if parts.owner && !is_owner {
            let (uid, gid) = (self.stat.st_uid, self.stat.st_gid);
            is_owner = fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).is_ok();
        }
        for (name, value) in &self.xattrs {
            match fsetxattr(file, name.as_c_str(), value, XattrFlags::empty()) {
                Ok(()) | Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::INVAL) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        let mut mode = Mode::from_raw_mode(self.stat.st_mode);
        if !is_owner {
            mode -= Mode::SUID | Mode::SGID;
        }
        fchmod(file, mode).map_err(failed)?;
        if parts.times {
            futimens(file, &self.times()).map_err(failed)?;
        }
        Ok(())
    }

    fn times(&self) -> Timestamps {
        let time = |seconds: i64, nanoseconds: u64| Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds as _,
        };
        Timestamps {
            last_access: time(self.stat.st_atime, self.stat.st_atime_nsec),
            last_modification: time(self.stat.st_mtime, self.stat.st_mtime_nsec),
        }
    }
}

/// All attributes that this process may see; none where the file system has none.
fn xattrs(file: BorrowedFd) -> Result<Vec<(CString, Vec<u8>)>, Errno> {
    let mut names = vec![0; XATTR_BYTES_MAX];
    let len = match flistxattr(file, &mut names[..]) {
        Ok(len) => len,
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    };
    let mut value = vec![0; XATTR_BYTES_MAX];
    let mut found = Vec::new();
    for name in names[..len].split_inclusive(|&byte| byte == 0) {
        let name = CStr::from_bytes_with_nul(name).expect("the list is of such names");
        // One that went meanwhile, or that only others may read, is not there for us.
        if let Ok(len) = fgetxattr(file, name, &mut value[..]) {
            found.push((name.to_owned(), value[..len].to_vec()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn permissions_times_and_attributes_are_given_to_the_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let old_file = File::create(&old).unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o751)).unwrap();
        let attribute = fsetxattr(&old_file, c"user.colour", b"red", XattrFlags::empty());
        let time = Timespec { tv_sec: 1_000_000_000, tv_nsec: 5 };
        futimens(&old_file, &Timestamps { last_access: time, last_modification: time }).unwrap();
        let new_file = File::create(&new).unwrap();
        let metadata = Metadata::of(old_file.as_fd(), &old).unwrap();
        metadata.give(new_file.as_fd(), &new, Parts { owner: true, times: true }).unwrap();
        let given = fs::metadata(&new).unwrap();
        assert_eq!(given.mode() & 0o7777, 0o751);
        assert_eq!((given.mtime(), given.mtime_nsec()), (1_000_000_000, 5));
        if attribute.is_ok() {
            let mut value = [0; 8];
            let len = fgetxattr(&new_file, c"user.colour", &mut value[..]).unwrap();
            assert_eq!(&value[..len], b"red");
        }
    }
}
