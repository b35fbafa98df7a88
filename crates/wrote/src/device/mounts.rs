//! Finds the mount that holds a path, in `/proc/self/mountinfo` (proc(5)).

use super::block;
use crate::error::{Action, Error, Tried};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, major, minor};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path and its location as reported by `statx(2)`.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub path: PathBuf,
    /// The mount's ID in `/proc/self/mountinfo` (`STATX_MNT_ID`, Linux 5.8).
    pub mount_id: Option<u64>,
    /// The file's `st_dev`; the major number is 0 if the file system has no device.
    pub device: (u32, u32),
}

impl Location {
    pub fn of(path: &Path) -> io::Result<Location> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = rustix::fs::statx(CWD, path, AtFlags::empty(), wanted)?;
        let told = StatxFlags::from_bits_retain(found.stx_mask);
        Ok(Location {
            path: path.to_owned(),
            mount_id: told.contains(StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
            device: (found.stx_dev_major, found.stx_dev_minor),
        })
    }
}

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mount {
    /// The mount's ID, which is unique among the current mounts; the `stx_mnt_id` of its files.
    pub id: u64,
    /// The `st_dev` of the mount's files, except on file systems with a separate one for each
    /// subvolume.
    pub device: (u32, u32),
    pub point: PathBuf,
    pub filesystem: String,
    /// The source of the mount: `/dev/sda1`, `tmpfs`, `host:/export`.
    pub source: PathBuf,
    /// The options of this mount, still escaped.
    options: Vec<u8>,
    /// The options of the file system, still escaped.
    super_options: Vec<u8>,
}

impl Mount {
    /// Returns a placeholder for a mount that is missing from the list: it is outside a chroot, or
    /// has just been unmounted.
    pub fn unseen(place: &Location) -> Mount {
        Mount {
            id: place.mount_id.unwrap_or(0),
            device: place.device,
            point: "/".into(),
            filesystem: "unknown".into(),
            ..Mount::default()
        }
    }

    /// Returns the options of the mount and then the options of the file system, without
    /// duplicates. `rw` is included only if both are writable.
    pub fn all_options(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for option in split(&self.options).chain(split(&self.super_options)) {
            let option = String::from_utf8_lossy(&option).into_owned();
            if !all.contains(&option) {
                all.push(option);
            }
        }
        if all.iter().any(|option| option == "ro") {
            all.retain(|option| option != "rw");
        }
        all
    }

    pub fn upper_folder(&self) -> Option<PathBuf> {
        split(&self.super_options).find_map(|option| option.strip_prefix(b"upperdir=").map(path_of))
    }
}

pub(super) fn read() -> Result<Vec<Mount>, Error> {
    let path = Path::new("/proc/self/mountinfo");
    Ok(parse(&std::fs::read(path).tried(path, Action::Examine)?))
}

/// Parses the lines of a mountinfo, skipping malformed ones.
pub(super) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let _parent = fields.next()?;
    let device = block::device_number(fields.next()?)?;
    let _root = fields.next()?;
    let point = path_of(&unescape(fields.next()?));
    let options = fields.next()?.to_vec();
    // Any number of optional fields follow; a hyphen ends them.
    fields.by_ref().find(|&field| field == b"-")?;
    Some(Mount {
        id,
        device,
        point,
        options,
        filesystem: String::from_utf8_lossy(&unescape(fields.next()?)).into_owned(),
        source: path_of(&unescape(fields.next()?)),
        super_options: fields.next().unwrap_or_default().to_vec(),
    })
}

/// Finds the mount that contains a path.
///
/// Since Linux 5.8, the kernel reports the mount's ID, which is the only exact method if mounts
/// cover each other. With older kernels, the longest mount point above the path is used; mounts of
/// the same device take precedence.
pub(super) fn find<'a>(mounts: &'a [Mount], place: &Location) -> Option<&'a Mount> {
    let by_id = || mounts.iter().find(|mount| Some(mount.id) == place.mount_id);
    let same_device = || mounts.iter().filter(|mount| mount.device == place.device);
    by_id().or_else(|| longest(same_device(), &place.path)).or_else(|| longest(mounts, &place.path))
}

/// Finds the mount with the longest mount point above `path`; the last one if there are several.
pub(super) fn longest<'a>(
    mounts: impl IntoIterator<Item = &'a Mount>,
    path: &Path,
) -> Option<&'a Mount> {
    // `max_by_key` returns the last of equal elements, which is the topmost mount.
    mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// Returns the number of the block device that is a mount's source. Looks for its node in `/dev`
/// or, if that is missing (in a container), for its name in `/sys`.
pub(super) fn source_device(mount: &Mount, sys: &Path) -> Option<(u32, u32)> {
    let name = mount.source.strip_prefix("/dev").ok()?;
    let node = rustix::fs::stat(&mount.source).ok();
    let node = node.filter(|node| FileType::from_raw_mode(node.st_mode) == FileType::BlockDevice);
    node.map(|node| (major(node.st_rdev), minor(node.st_rdev)))
        .or_else(|| block::by_name(sys, name))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Splits at commas and then unescapes each option. A comma inside a value is escaped.
fn split(options: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    options.split(|&byte| byte == b',').filter(|option| !option.is_empty()).map(unescape)
}

/// Decodes the kernel's escapes: a backslash and three octal digits for one byte.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'\\').then(|| after.first_chunk().and_then(octal)).flatten();
        plain.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    plain
}

fn octal(digits: &[u8; 3]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u8::from_str_radix(text, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"22 27 0:21 / /proc rw,relatime - proc proc rw\n\
27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro\n\
30 27 8:17 / /mnt/two\\040words\\134here rw,noatime master:2 propagate_from:1 - xfs /dev/sdb1 \
rw,attr2\n\
31 27 0:40 /@data /data rw,relatime shared:9 - btrfs /dev/sdc rw,subvol=/@data\n\
33 27 254:1 /srv/export /data/bound ro,relatime - ext4 /dev/root rw\n\
34 27 0:44 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/u\\054pper\\040one,workdir=/w\n\
35 31 0:45 / /data rw - tmpfs none rw,size=64k\n\
this is no line of a mountinfo\n\
36 27 0:46 / /strange rw,nosuid - fuse.strange strange rw,user_id=0\n\
    ";

    fn place(path: &str, mount_id: Option<u64>, device: (u32, u32)) -> Location {
        Location { path: path.into(), mount_id, device }
    }

    #[test]
    fn every_well_formed_line_is_read_with_its_escapes_undone() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts.len(), 8);
        let xfs = &mounts[2];
        assert_eq!((xfs.id, xfs.device), (30, (8, 17)));
        assert_eq!(xfs.point, Path::new("/mnt/two words\\here"));
        assert_eq!(
            (xfs.filesystem.as_str(), xfs.source.as_path()),
            ("xfs", Path::new("/dev/sdb1"))
        );
        assert_eq!(mounts[7].filesystem, "fuse.strange");
    }

    #[test]
    fn options_are_those_of_the_mount_and_of_the_file_system_each_once() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts[1].all_options(), ["rw", "relatime", "errors=remount-ro"]);
        assert_eq!(mounts[4].all_options(), ["ro", "relatime"], "a read-only bind mount");
    }

    #[test]
    fn a_comma_inside_the_upper_folders_name_does_not_end_it() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts[5].upper_folder(), Some(PathBuf::from("/u,pper one")));
        assert_eq!(mounts[0].upper_folder(), None);
    }

    #[test]
    fn the_mounts_number_is_believed_before_its_place() {
        let mounts = parse(SAMPLE);
        let covered = place("/data/x", Some(31), (0, 51));
        assert_eq!(find(&mounts, &covered).unwrap().filesystem, "btrfs");
    }

    #[test]
    fn without_a_number_the_longest_mount_point_of_the_device_holds_the_path() {
        let mounts = parse(SAMPLE);
        let found = |path, device| find(&mounts, &place(path, None, device)).unwrap().id;
        assert_eq!(found("/data/bound/x", (254, 1)), 33);
        assert_eq!(found("/data/bounds", (254, 1)), 27, "a prefix of a name is no mount point");
        assert_eq!(found("/data/x", (0, 40)), 31);
        assert_eq!(found("/data/x", (0, 99)), 35, "an unknown device: the mount on top");
    }

    #[test]
    fn a_backslash_that_begins_no_escape_stays() {
        assert_eq!(unescape(b"a\\040b\\011\\012\\134\\043"), b"a b\t\n\\#");
        assert_eq!(unescape(b"\\9x \\04"), b"\\9x \\04");
        assert_eq!(unescape(b"\\777\\+12"), b"\\777\\+12");
    }
}
