//! A file's metadata other than its length: permissions, owner, times, and extended attributes.

use crate::error::Tried;
use crate::{Action, Error};
use rustix::fs::{
    FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr,
    flistxattr, fremovexattr, fsetxattr, fstat, futimens, lgetxattr, llistxattr, lstat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The permissions of a file to which only its owner has access.
pub(crate) const MODE_PRIVATE: u32 = 0o600;

/// The maximum length of a list of names, and of a value, in bytes (`xattr(7)`).
const XATTR_BYTES_MAX: usize = 64 << 10;

/// The extended attribute that contains a file's access control list (`acl(5)`).
const ACCESS_LIST: &CStr = c"system.posix_acl_access";

#[derive(Debug)]
pub(crate) struct Metadata {
    stat: Stat,
    xattrs: Vec<(CString, Vec<u8>)>,
}

/// The parts to set in addition to permissions and extended attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataParts {
    /// Whether to set owner and group, as far as this process may.
    pub owner: bool,
    /// Whether to set the times of the last access and the last modification.
    pub times: bool,
}

/// The metadata that a new file gets from another file, and the parts to set.
pub(crate) type Inherited = (Metadata, MetadataParts);

/// Returns the permissions of a new file until it gets the permissions of `old`.
pub(crate) fn mode_at_first(old: Option<&Inherited>) -> Option<u32> {
    old.map(|(old, _)| old.mode_at_first())
}

impl Metadata {
    pub(crate) fn of(file: BorrowedFd, path: &Path) -> Result<Metadata, Error> {
        let get = |name: &CStr, value: &mut [u8]| fgetxattr(file, name, value);
        let stat = fstat(file).tried(path, Action::Examine)?;
        let xattrs = xattrs(|names| flistxattr(file, names), get).tried(path, Action::Examine)?;
        Ok(Metadata { stat, xattrs })
    }

    /// Reads the metadata of `path`, for which the file need not be readable. Does not follow a
    /// symbolic link.
    pub(crate) fn at(path: &Path) -> Result<Metadata, Error> {
        let get = |name: &CStr, value: &mut [u8]| lgetxattr(path, name, value);
        let stat = lstat(path).tried(path, Action::Examine)?;
        let xattrs = xattrs(|names| llistxattr(path, names), get).tried(path, Action::Examine)?;
        Ok(Metadata { stat, xattrs })
    }

    /// Returns the metadata that a new file gets from the one it will replace. `None` if that file
    /// has been removed, and on a simulated disk.
    pub(crate) fn of_replaced(path: &Path) -> Result<Option<Inherited>, Error> {
        match Metadata::at(path) {
            Err(error) if error.errno() == libc::ENOENT => Ok(None),
            metadata => Ok(Some((metadata?, MetadataParts { owner: true, times: false }))),
        }
    }

    /// Returns whether the file has no allocated blocks, so that its length may be wrong. The
    /// kernel generates files of `/proc` and `/sys` when they are read, and reports a length of 0
    /// or of a page (`proc(5)`).
    pub(crate) fn may_be_generated(&self) -> bool {
        self.stat.st_blocks == 0
    }

    pub(crate) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode).is_file()
    }

    /// Returns the permissions that the new file has until it is complete. These are the final
    /// permissions if they give no access to a user whom the old file refused; otherwise, only the
    /// owner has access. The new file may not have the old group yet, so the final permissions
    /// qualify only if they give the group no more access than others.
    fn mode_at_first(&self) -> u32 {
        let mode = self.stat.st_mode & 0o777;
        let group_as_others = mode >> 3 & !mode & 0o7 == 0;
        let is_owner = self.stat.st_uid == geteuid().as_raw();
        if is_owner && group_as_others && self.xattrs.is_empty() { mode } else { MODE_PRIVATE }
    }

    /// Returns this metadata with the times of another file.
    pub(crate) fn with_times_of(self, other: &Metadata) -> Metadata {
        let Metadata { mut stat, xattrs } = self;
        (stat.st_atime, stat.st_atime_nsec) = (other.stat.st_atime, other.stat.st_atime_nsec);
        (stat.st_mtime, stat.st_mtime_nsec) = (other.stat.st_mtime, other.stat.st_mtime_nsec);
        Metadata { stat, xattrs }
    }

    /// Replaces the permissions with `mode`, and removes the access control list.
    pub(crate) fn with_mode(mut self, mode: u32) -> Metadata {
        self.stat.st_mode = mode;
        self.xattrs.retain(|(name, _)| name.as_c_str() != ACCESS_LIST);
        self
    }

    /// Sets the permissions, extended attributes and `parts` of a file.
    ///
    /// Sets the owner and the group as far as this process is permitted to, and the group even if
    /// the owner can't be set. If either is not set, the file loses the setuid and setgid bits
    /// (`chmod(2)`). If the group is not set, the file's current group gets the permissions of
    /// others, because that group may have any members. Attributes that the file system does not
    /// support, or that this process may not set (`security.*`, `trusted.*`), are omitted, as in
    /// `cp(1)`. An access control list inherited from the folder is removed if the old file had
    /// none.
    pub(crate) fn give(
        &self,
        file: BorrowedFd,
        path: &Path,
        parts: MetadataParts,
    ) -> Result<(), Error> {
        let failed = |errno: Errno| Error::file(path, Action::SetMetadata, None, &errno.into());
        let new = fstat(file).map_err(failed)?;
        let (uid, gid) = (self.stat.st_uid, self.stat.st_gid);
        let mut same_owner = uid == new.st_uid;
        let mut same_group = gid == new.st_gid;
        if parts.owner && !(same_owner && same_group) {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            let both = fchown(file, Some(uid), Some(gid)).is_ok();
            same_owner |= both;
            same_group |= both || fchown(file, None, Some(gid)).is_ok();
        }
        let is_list = |(name, _): &(CString, _)| name.as_c_str() == ACCESS_LIST;
        // The list is looked up first because most files have none, and removing a missing list
        // costs part of a transaction.
        if !self.xattrs.iter().any(is_list) && fgetxattr(file, ACCESS_LIST, &mut [0_u8; 0]).is_ok()
        {
            fremovexattr(file, ACCESS_LIST).map_err(failed)?;
        }
        for (name, value) in &self.xattrs {
            match fsetxattr(file, name.as_c_str(), value, XattrFlags::empty()) {
                Ok(()) | Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::INVAL) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        let mut mode = Mode::from_raw_mode(self.stat.st_mode);
        if !(same_owner && same_group) {
            mode -= Mode::SUID | Mode::SGID;
        }
        if parts.owner && !same_group {
            mode = group_as_others(mode);
        }
        // Setting an unchanged mode would still cost part of a transaction.
        if mode != Mode::from_raw_mode(new.st_mode) {
            fchmod(file, mode).map_err(failed)?;
        }
        if parts.times {
            futimens(file, &times(&self.stat)).map_err(failed)?;
        }
        Ok(())
    }
}

pub(crate) fn times(stat: &Stat) -> Timestamps {
    // The type of the nanoseconds depends on rustix's backend.
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ },
    }
}

fn group_as_others(mode: Mode) -> Mode {
    let others = (mode & Mode::RWXO).as_raw_mode();
    (mode - Mode::RWXG) | Mode::from_raw_mode(others << 3)
}

/// Returns all attributes that this process may see, read by a pair of calls (`listxattr(2)` and
/// `getxattr(2)`, or their variants). Returns none if the file system does not support them.
fn xattrs(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&CStr, &mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<(CString, Vec<u8>)>, Errno> {
    // Most files have no attributes, which a small buffer suffices to find out.
    match list(&mut [0; 256]) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Ok(_) | Err(Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    let mut names = vec![0; XATTR_BYTES_MAX];
    let len = list(&mut names)?;
    let mut value = vec![0; XATTR_BYTES_MAX];
    let mut found = Vec::new();
    for name in names[..len].split_inclusive(|&byte| byte == 0) {
        let name = CStr::from_bytes_with_nul(name).expect("the list is of such names");
        // An attribute that has been removed in the meantime, or is readable only by other users,
        // is omitted.
        if let Ok(len) = get(name, &mut value) {
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
    fn an_unfinished_file_opens_to_nobody_to_whom_the_old_one_did_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, at_first) in [
            (0o644, 0o644),
            (0o600, 0o600),
            (0o755, 0o755),
            (0o400, 0o400),
            // The new file may have a different group from the old file.
            (0o664, 0o600),
            (0o640, 0o600),
            (0o4711, 0o711),
        ] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            let metadata = Metadata::of(file.as_file().as_fd(), file.path()).unwrap();
            assert_eq!(metadata.mode_at_first(), at_first, "{mode:o}");
        }
    }

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
        metadata.give(new_file.as_fd(), &new, MetadataParts { owner: true, times: true }).unwrap();
        let given = fs::metadata(&new).unwrap();
        assert_eq!(given.mode() & 0o7777, 0o751);
        assert_eq!((given.mtime(), given.mtime_nsec()), (1_000_000_000, 5));
        if attribute.is_ok() {
            let mut value = [0; 8];
            let len = fgetxattr(&new_file, c"user.colour", &mut value[..]).unwrap();
            assert_eq!(&value[..len], b"red");
        }
    }

    #[test]
    fn a_group_that_was_not_given_may_do_no_more_than_others() {
        for (old, new) in [(0o640, 0o600), (0o664, 0o644), (0o757, 0o777), (0o600, 0o600)] {
            assert_eq!(group_as_others(Mode::from_raw_mode(old)), Mode::from_raw_mode(new));
        }
    }

    #[test]
    fn an_access_list_of_the_folders_goes_where_the_old_file_had_none() {
        let test = "an_access_list_of_the_folders_goes_where_the_old_file_had_none";
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let old_file = File::create(&old).unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
        let list = access_list();
        let default = c"system.posix_acl_default";
        let opened = File::open(folder.path()).unwrap();
        if let Err(errno) = fsetxattr(&opened, default, &list, XattrFlags::empty()) {
            return fixtures::skip(test, &format!("no access control lists: {errno}"));
        }
        let new_file = File::create(&new).unwrap();
        let has_list = || fgetxattr(&new_file, ACCESS_LIST, &mut [0_u8; 128][..]).is_ok();
        assert!(has_list());
        let parts = MetadataParts { owner: true, times: false };
        Metadata::of(old_file.as_fd(), &old).unwrap().give(new_file.as_fd(), &new, parts).unwrap();
        assert!(!has_list());
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o640);
        // An access control list of the old file is copied.
        fsetxattr(&old_file, ACCESS_LIST, &list, XattrFlags::empty()).unwrap();
        Metadata::of(old_file.as_fd(), &old).unwrap().give(new_file.as_fd(), &new, parts).unwrap();
        assert!(has_list());
    }

    /// Returns a list that lets user 12345 read and write, in addition to the owner, group and
    /// others: version 2 of `linux/posix_acl_xattr.h`, with entries of tag, permissions and id.
    fn access_list() -> Vec<u8> {
        let entries: [(u16, u16, u32); 5] = [
            (1, 6, u32::MAX),
            (2, 6, 12345),
            (4, 4, u32::MAX),
            (16, 6, u32::MAX),
            (32, 0, u32::MAX),
        ];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            list.extend(tag.to_le_bytes());
            list.extend(permissions.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        list
    }
}
