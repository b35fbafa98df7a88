//! Tests of files after a power loss, each of which copies the image of a file system at some
//! moment, and mounts the copy.

use super::*;
use crate::scenarios::latency::rounds::sync_folder;
use fixtures::{Loop, Mounted, or_skip};
use std::fs::File;

const IMAGE_BYTES: u64 = 32 << 20;
const OLD: &[u8] = &[b'o'; 5000];
const NEW: &[u8] = &[b'n'; 5000];

/// An ext4 file system whose old text has reached the device.
struct Disk {
    image: PathBuf,
    mounted: Mounted,
}

impl Disk {
    fn make(state: State) -> Result<Disk, String> {
        let disk = Loop::attach(IMAGE_BYTES)?;
        let image = disk.image().to_owned();
        let disk = Disk { image, mounted: Mounted::disks("ext4", vec![disk])? };
        if state == State::Existing {
            fs::write(disk.path(), OLD).unwrap();
        }
        fs::write(disk.mounted.path().join("other"), "").unwrap();
        rustix::fs::syncfs(File::open(disk.mounted.path()).unwrap()).unwrap();
        Ok(disk)
    }

    fn path(&self) -> PathBuf {
        self.mounted.path().join("file")
    }

    fn save(&self, kind: Kind, state: State) {
        let (path, temporary) = (self.path(), self.mounted.path().join("temporary"));
        let place = Place { path: &path, folder: self.mounted.path(), temporary: &temporary };
        save(kind, state, place, NEW).unwrap();
    }

    /// Flushes another file. This commits the journal, including its records of our file.
    fn commit(&self) {
        fs::write(self.mounted.path().join("other"), "theirs").unwrap();
        File::open(self.mounted.path().join("other")).unwrap().sync_all().unwrap();
    }

    /// Returns the file as a power loss at this moment would leave it; `None` if it does not exist.
    fn cut(&self) -> Result<Option<Vec<u8>>, String> {
        let after = Mounted::found("ext4", Loop::copy(&self.image)?)?;
        Ok(fs::read(after.path().join("file")).ok())
    }
}

/// Cuts the power after `work`, up to ten times, until `is_shown` accepts the file that is left.
/// Returns whether it did.
fn is_seen(
    state: State,
    work: impl Fn(&Disk),
    is_shown: impl Fn(Option<&[u8]>) -> bool,
) -> Result<bool, String> {
    for _ in 0..10 {
        let disk = Disk::make(state)?;
        work(&disk);
        if is_shown(disk.cut()?.as_deref()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn a_text_saved_for_a_power_loss_is_there_after_one() {
    // M3
    for (kind, promises) in PROMISES {
        for (state, (survives, _)) in State::ALL.into_iter().zip(promises) {
            if survives != Survives::PowerLoss {
                continue;
            }
            let found = Disk::make(state).and_then(|disk| {
                disk.save(kind, state);
                disk.cut()
            });
            let found = or_skip!(found).unwrap_or_default();
            let new = if kind.grows(state) { [OLD, NEW].concat() } else { NEW.to_vec() };
            assert!(found == new, "{kind:?} {state:?}: {} bytes", found.len());
        }
    }
}

#[test]
fn fs_write_can_leave_an_empty_file_where_there_was_a_text_and_a_rename_can_not() {
    let is_empty = |found: Option<&[u8]>| found == Some(b"");
    // `std::fs::write` truncates the file first. Another flush occurs before the text is written.
    let cut_first = |disk: &Disk| {
        let _file = File::create(disk.path()).unwrap();
        disk.commit();
    };
    // During a save by rename, the new text is still in the temporary file.
    let dance = |disk: &Disk| {
        let _file = File::create(disk.mounted.path().join("temporary")).unwrap();
        disk.commit();
    };
    let seen = is_seen(State::Existing, cut_first, is_empty)
        .and_then(|seen| Ok((seen, is_seen(State::Existing, dance, |found| found != Some(OLD))?)));
    let (empty, not_old) = or_skip!(seen);
    assert!(empty && !not_old, "{empty} {not_old}");
}

#[test]
fn the_name_of_a_new_file_can_outlive_a_text_that_was_not_flushed() {
    let is_name_alone = |found: Option<&[u8]>| found.is_some_and(|found| found != NEW);
    for kind in [FsWrite, Append] {
        let unsynced = |disk: &Disk| {
            disk.save(kind, State::New);
            sync_folder(disk.mounted.path()).unwrap();
        };
        assert!(or_skip!(is_seen(State::New, unsynced, is_name_alone)), "{kind:?}");
    }
}
