//! Compares the disk with a small file system that loses everything POSIX allows in a crash.

use super::*;
use crate::call::How;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of folders; files have higher numbers.
const FOLDERS: u64 = 2;
const NAMES: u64 = 3;

fn id(inode: u64) -> FileId {
    FileId { device: 1, inode }
}

fn name(folder: u64, number: u64) -> Name {
    Name { folder: id(folder), path: PathBuf::from(format!("/{folder}/{number}")) }
}

fn on(storage: Storage) -> Disk {
    let mut disk = Disk::default();
    see(&mut disk, Act::Storage { device: 1, storage });
    disk
}

fn ext4() -> Disk {
    on(Storage { writes_in_place: true, ..DISK })
}

fn see(disk: &mut Disk, act: Act) {
    disk.see(&Call::new(0, act));
}

fn write(file: u64, bytes: Range<u64>, how: How) -> Act {
    let asked_bytes = bytes.end - bytes.start;
    Act::Write { file: id(file), bytes, asked_bytes, how, is_race: false, is_zeros: false }
}

fn flush(file: u64) -> Act {
    Act::Flush { file: id(file), failed: None, is_data: false }
}

fn made(file: u64, at: Name) -> Act {
    Act::Made { file: id(file), name: Some(at) }
}

const CACHED: How = How { is_direct: false, is_durable: false, is_atomic: false };
const DIRECT: How = How { is_direct: true, is_durable: false, is_atomic: false };
const DURABLE: How = How { is_direct: false, is_durable: true, is_atomic: false };

fn levels(disk: &Disk, file: u64) -> (Survives, Survives) {
    (disk.survives(id(file), Promise::Seen), disk.survives(id(file), Promise::Posix))
}

#[test]
fn a_new_file_is_durable_with_its_folder_and_as_seen_without() {
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, write(9, 0..10, CACHED));
    assert_eq!(levels(&disk, 9), (Survives::ProcessCrash, Survives::ProcessCrash));
    see(&mut disk, flush(9));
    assert_eq!(levels(&disk, 9), (Survives::PowerLoss, Survives::ProcessCrash));
    see(&mut disk, flush(1));
    assert_eq!(levels(&disk, 9), (Survives::PowerLoss, Survives::PowerLoss));
}

#[test]
fn a_flush_of_the_folder_alone_saves_no_bytes() {
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, write(9, 0..10, CACHED));
    see(&mut disk, flush(1));
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
}

#[test]
fn the_name_that_a_rename_gave_needs_its_folder_flushed() {
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, write(9, 0..10, CACHED));
    see(&mut disk, flush(9));
    let (from, to) = (name(1, 1), name(1, 2));
    see(&mut disk, Act::Rename { file: id(9), from, to, replaced: None });
    see(&mut disk, flush(9));
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
    see(&mut disk, flush(1));
    assert_eq!(levels(&disk, 9).0, Survives::PowerLoss);
}

#[test]
fn a_direct_write_survives_an_os_crash_over_flushed_bytes_alone() {
    let mut disk = ext4();
    let found = Act::Found { file: id(9), name: Some(name(1, 1)), size_bytes: 8192 };
    see(&mut disk, found);
    see(&mut disk, write(9, 0..4096, DIRECT));
    assert_eq!(levels(&disk, 9).0, Survives::OsCrash);
    see(&mut disk, write(9, 8192..12288, DIRECT));
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
    see(&mut disk, flush(9));
    see(&mut disk, write(9, 8192..12288, DIRECT));
    assert_eq!(levels(&disk, 9).0, Survives::OsCrash);
}

#[test]
fn nothing_in_memory_survives_a_kernel() {
    let mut disk = on(Storage { is_in_memory: true, ..Storage::default() });
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, write(9, 0..10, DURABLE));
    see(&mut disk, Act::FlushAll { device: None });
    assert_eq!(levels(&disk, 9), (Survives::ProcessCrash, Survives::ProcessCrash));
}

#[test]
fn the_reason_of_a_level_is_the_place_where_a_flush_would_not_change_it() {
    let made = |storage, acts: &[Act]| {
        let mut disk = on(storage);
        see(&mut disk, made(9, name(1, 1)));
        see(&mut disk, write(9, 0..10, CACHED));
        acts.iter().for_each(|act| see(&mut disk, act.clone()));
        let node = disk.file(id(9)).unwrap();
        let named = node.names[0].clone();
        (disk.survives_as(node, &named, Promise::Seen), disk.because(node, &named))
    };
    let because = |text: &str| Some(text.to_owned());
    let memory = || Storage { is_in_memory: true, because: because("tmpfs"), ..DISK };
    let cache = || Storage { flushes_reach_device: false, because: because("nobarrier"), ..DISK };
    let failed = Act::Flush { file: id(9), failed: Some(5), is_data: false };
    for (storage, acts, level, because) in [
        (DISK, &[][..], Survives::ProcessCrash, "not flushed"),
        (DISK, &[failed], Survives::ProcessCrash, "its flush failed"),
        (memory(), &[], Survives::ProcessCrash, "tmpfs"),
        (memory(), &[flush(9), flush(1)], Survives::ProcessCrash, "tmpfs"),
        (cache(), &[], Survives::ProcessCrash, "not flushed"),
        (cache(), &[flush(9), flush(1)], Survives::OsCrash, "nobarrier"),
        (
            DISK,
            &[
                Act::Rename { file: id(9), from: name(1, 1), to: name(1, 2), replaced: None },
                flush(9),
            ],
            Survives::ProcessCrash,
            "name not flushed",
        ),
    ] {
        assert_eq!(made(storage, acts), (level, because.to_owned()));
    }
}

#[test]
fn a_failed_flush_saves_nothing() {
    // W1, W2
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, write(9, 0..10, CACHED));
    see(&mut disk, Act::Flush { file: id(9), failed: Some(5), is_data: false });
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
}

#[test]
fn names_below_a_renamed_folder_follow_it() {
    let mut disk = ext4();
    see(&mut disk, Act::MadeFolder { file: id(5), name: name(1, 1) });
    let below = Name { folder: id(5), path: PathBuf::from("/1/1/file") };
    see(&mut disk, made(9, below));
    let (from, to) = (name(1, 1), name(1, 2));
    see(&mut disk, Act::Rename { file: id(5), from, to, replaced: None });
    assert_eq!(disk.path(id(9)), Path::new("/1/2/file"));
}

/// Returns the level of each name, by path.
fn by_name(disk: &Disk) -> Vec<(PathBuf, Survives)> {
    let named = disk.files().flat_map(|(_, known)| disk.names_of(known).map(move |of| (known, of)));
    let level = |(known, (path, named)): (&Node, (PathBuf, &Named))| {
        (path, disk.survives_as(known, named, Promise::Seen))
    };
    let mut levels: Vec<_> = named.map(level).collect();
    levels.sort();
    levels
}

#[test]
fn a_link_is_kept_by_a_flush_of_the_file_but_not_of_its_data_alone() {
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, flush(9));
    see(&mut disk, Act::Link { file: id(9), name: name(1, 2) });
    see(&mut disk, Act::Flush { file: id(9), failed: None, is_data: true });
    see(&mut disk, write(9, 0..10, DURABLE));
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
    see(&mut disk, flush(9));
    assert_eq!(levels(&disk, 9).0, Survives::PowerLoss);
}

#[test]
fn a_link_after_the_flush_is_kept_by_another_flush_and_the_first_name_does_not_need_it() {
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, write(9, 0..10, CACHED));
    see(&mut disk, flush(9));
    see(&mut disk, Act::Link { file: id(9), name: name(1, 2) });
    let [first, second] = ["/1/1", "/1/2"].map(PathBuf::from);
    let early = [(first, Survives::PowerLoss), (second, Survives::ProcessCrash)];
    assert_eq!(by_name(&disk), early);
    assert_eq!((disk.survives(id(9), Promise::Seen), disk.has_durable(id(9))), (early[1].1, true));
    assert!(disk.names_of(disk.file(id(9)).unwrap()).any(|(_, named)| disk.may_lose(named)));
    see(&mut disk, flush(9));
    assert!(by_name(&disk).iter().all(|(_, level)| *level == Survives::PowerLoss));
    assert!(!disk.names_of(disk.file(id(9)).unwrap()).any(|(_, named)| disk.may_lose(named)));
    assert!(!disk.is_last_name(id(9), &name(1, 1)));
    assert!(disk.file(id(9)).unwrap().has_other_names());
    see(&mut disk, Act::Unlink { file: id(9), name: name(1, 1) });
    assert_eq!(by_name(&disk).len(), 1);
    assert!(!disk.file(id(9)).unwrap().has_other_names());
    assert!(disk.is_last_name(id(9), &name(1, 2)));
}

#[test]
fn a_file_is_lost_with_the_name_of_a_renamed_folder_above_it() {
    let below = |path: &str| Name { folder: id(6), path: path.into() };
    let mut disk = ext4();
    // The program created neither folder, and renames the upper one.
    let found = Act::Found { file: id(9), name: Some(below("/1/e/f/a")), size_bytes: 10 };
    see(&mut disk, found);
    let [from, to] = ["/1/e", "/1/g"].map(|path| Name { folder: id(1), path: path.into() });
    see(&mut disk, Act::Rename { file: id(5), from, to, replaced: None });
    see(&mut disk, write(9, 0..10, CACHED));
    see(&mut disk, flush(9));
    assert_eq!(disk.path(id(9)), Path::new("/1/g/f/a"));
    assert_eq!(levels(&disk, 9), (Survives::ProcessCrash, Survives::ProcessCrash));
    see(&mut disk, flush(1));
    assert_eq!(levels(&disk, 9), (Survives::PowerLoss, Survives::PowerLoss));
}

#[test]
fn a_durable_write_makes_the_size_durable_too() {
    let mut disk = ext4();
    let found = Act::Found { file: id(9), name: Some(name(1, 1)), size_bytes: 100 };
    see(&mut disk, found);
    see(&mut disk, Act::Resize { file: id(9), from_bytes: 100, to_bytes: 50 });
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
    assert!(disk.file(id(9)).unwrap().content.is_cut());
    see(&mut disk, write(9, 0..10, DURABLE));
    assert_eq!(levels(&disk, 9).0, Survives::PowerLoss);
    assert!(!disk.file(id(9)).unwrap().content.is_cut());
}

#[test]
fn folders_that_threads_move_into_each_other_have_a_path_and_a_level() {
    let mut disk = ext4();
    for (folder, other) in [(5, 6), (6, 5)] {
        let name = Name { folder: id(other), path: format!("/{folder}").into() };
        see(&mut disk, Act::MadeFolder { file: id(folder), name });
        see(&mut disk, flush(other));
    }
    see(&mut disk, made(9, Name { folder: id(5), path: "/a".into() }));
    assert!(disk.path(id(9)).ends_with("5/a"));
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
}

#[test]
fn a_flush_of_one_file_system_keeps_nothing_on_another() {
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, write(9, 0..10, CACHED));
    see(&mut disk, Act::FlushAll { device: Some(2) });
    assert_eq!(levels(&disk, 9), (Survives::ProcessCrash, Survives::ProcessCrash));
    see(&mut disk, Act::FlushAll { device: Some(1) });
    assert_eq!(levels(&disk, 9), (Survives::PowerLoss, Survives::PowerLoss));
}

#[test]
fn a_device_that_no_flush_reaches_keeps_nothing_at_a_power_loss() {
    let mut disk = on(Storage::default());
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, Act::FlushAll { device: None });
    assert_eq!(levels(&disk, 9), (Survives::OsCrash, Survives::OsCrash));
}

#[test]
fn a_rename_into_another_folder_is_kept_by_a_flush_of_that_one_alone() {
    let mut disk = ext4();
    see(&mut disk, Act::Found { file: id(9), name: Some(name(1, 1)), size_bytes: 10 });
    let [from, to] = [name(1, 1), name(2, 1)];
    see(&mut disk, Act::Rename { file: id(9), from, to, replaced: None });
    assert_eq!(disk.unflushed_names(id(2)).collect::<Vec<_>>(), [id(9)]);
    see(&mut disk, flush(1));
    assert_eq!(levels(&disk, 9).0, Survives::ProcessCrash);
    see(&mut disk, flush(2));
    assert_eq!(levels(&disk, 9).0, Survives::PowerLoss);
    assert_eq!(disk.unflushed_names(id(2)).count(), 0);
}

#[test]
fn a_name_that_was_never_durable_does_not_come_back_after_others_used_it() {
    let mut disk = ext4();
    see(&mut disk, made(9, name(1, 1)));
    see(&mut disk, Act::Unlink { file: id(9), name: name(1, 1) });
    // Another process has created a file of that name.
    see(&mut disk, Act::Unlink { file: id(8), name: name(1, 1) });
    assert_eq!(disk.removals().count(), 0);
}

#[test]
fn superseded_changes_of_names_are_forgotten_where_there_are_many_and_levels_stay() {
    const MANY: u64 = 1 << 15;
    let mut disk = ext4();
    let found = Act::Found { file: id(7), name: Some(name(1, 0)), size_bytes: 10 };
    see(&mut disk, found);
    see(&mut disk, Act::Unlink { file: id(7), name: name(1, 0) });
    see(&mut disk, made(6, name(1, 3)));
    see(&mut disk, made(8, name(1, 1)));
    for number in 0..MANY {
        // Each save uses a new temporary name.
        let [from, to] = [name(1, 10 + number), name(1, 2)];
        let (file, replaced) = (1000 + number, (number > 0).then(|| id(999 + number)));
        see(&mut disk, made(file, from.clone()));
        see(&mut disk, write(file, 0..10, CACHED));
        see(&mut disk, flush(file));
        see(&mut disk, Act::Rename { file: id(file), from, to, replaced });
        disk.forget();
        assert!(disk.names.open_calls().len() <= 1 << 15, "{}", disk.names.open_calls().len());
    }
    let removed: Vec<_> = disk.removals().map(|(path, _)| path).collect();
    assert!(removed.contains(&PathBuf::from("/1/0")), "{removed:?}");
    let last = 999 + MANY;
    assert_eq!(levels(&disk, last), (Survives::ProcessCrash, Survives::ProcessCrash));
    assert_eq!(levels(&disk, 8).0, Survives::ProcessCrash);
    see(&mut disk, flush(6));
    assert_eq!(levels(&disk, 6).0, Survives::PowerLoss);
    assert_eq!(disk.unsafe_files().collect::<Vec<_>>(), [id(8), id(last)]);
    see(&mut disk, flush(1));
    assert_eq!(
        (levels(&disk, last).0, levels(&disk, 8).0),
        (Survives::PowerLoss, Survives::PowerLoss)
    );
    assert_eq!((disk.removals().count(), disk.names.open_calls().len()), (0, 0));
}

#[test]
fn names_that_came_and_went_are_forgotten_all() {
    let mut disk = ext4();
    for number in 0..1 << 14 {
        see(&mut disk, made(10 + number, name(1, number)));
        see(&mut disk, Act::Unlink { file: id(10 + number), name: name(1, number) });
    }
    for _ in 0..2 {
        disk.forget();
        assert_eq!((disk.names.open_calls().len(), disk.made.len()), (0, 0));
    }
    see(&mut disk, made(7, name(1, 0)));
    disk.forget();
    assert_eq!(levels(&disk, 7).0, Survives::ProcessCrash);
}

/// A file system that guarantees only what POSIX does: names and data are lost unless flushed.
#[derive(Clone, Debug, Default)]
struct Fs {
    /// Each file's bytes, currently and after a crash.
    bytes: BTreeMap<u64, [BTreeMap<u64, u64>; 2]>,
    /// Each name's file, currently and after a crash.
    names: [BTreeMap<(u64, u64), u64>; 2],
    /// The names changed since their folder's last flush; a crash keeps any of the changes.
    changed: BTreeSet<(u64, u64)>,
    files: u64,
    stamp: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Make(u64, u64),
    Write(u64, u64, bool),
    Flush(u64),
    FlushFolder(u64),
    Rename(u64, u64, u64),
    Unlink(u64, u64),
    FlushAll,
}

impl Fs {
    fn file(&self, number: u64) -> Option<u64> {
        let named: Vec<u64> = self.names[0].values().copied().collect();
        (!named.is_empty()).then(|| named[number as usize % named.len()])
    }

    /// Performs a step, and returns it as a call; `None` if it is impossible.
    fn step(&mut self, step: &Step) -> Option<Act> {
        Some(match *step {
            Step::Make(folder, at) if !self.names[0].contains_key(&(folder, at)) => {
                self.files += 1;
                let file = FOLDERS + self.files;
                self.changed.insert((folder, at));
                self.names[0].insert((folder, at), file);
                self.bytes.insert(file, Default::default());
                made(file, name(folder, at))
            }
            Step::Make(..) => return None,
            Step::Write(number, at, is_durable) => {
                let file = self.file(number)?;
                self.stamp += 1;
                let [seen, kept] = self.bytes.get_mut(&file)?;
                seen.insert(at, self.stamp);
                if is_durable {
                    kept.insert(at, self.stamp);
                }
                write(file, at..at + 1, How { is_direct: false, is_durable, is_atomic: false })
            }
            Step::Flush(number) => {
                let file = self.file(number)?;
                let [seen, kept] = self.bytes.get_mut(&file)?;
                kept.clone_from(seen);
                flush(file)
            }
            Step::FlushFolder(folder) => {
                let [seen, kept] = &mut self.names;
                kept.retain(|(of, _), _| *of != folder);
                kept.extend(seen.iter().filter(|((of, _), _)| *of == folder));
                self.changed.retain(|(of, _)| *of != folder);
                flush(folder)
            }
            Step::Rename(folder, from, to) => {
                let file = self.names[0].remove(&(folder, from))?;
                self.changed.extend([(folder, from), (folder, to)]);
                let replaced = self.names[0].insert((folder, to), file).map(id);
                let [from, to] = [from, to].map(|at| name(folder, at));
                Act::Rename { file: id(file), from, to, replaced }
            }
            Step::Unlink(folder, at) => {
                let file = self.names[0].remove(&(folder, at))?;
                self.changed.insert((folder, at));
                Act::Unlink { file: id(file), name: name(folder, at) }
            }
            Step::FlushAll => {
                self.names[1] = self.names[0].clone();
                self.changed.clear();
                for [seen, kept] in self.bytes.values_mut() {
                    kept.clone_from(seen);
                }
                Act::FlushAll { device: None }
            }
        })
    }

    /// Returns whether a file is complete after the worst crash.
    fn survives(&self, at: (u64, u64), file: u64) -> bool {
        let [seen, kept] = &self.bytes[&file];
        let has_name = self.names[1].get(&at) == Some(&file) && !self.changed.contains(&at);
        has_name && seen == kept
    }
}

fn step() -> impl Strategy<Value = Step> {
    let (folder, at) = (1..=FOLDERS, 0..NAMES);
    prop_oneof![
        (folder.clone(), at.clone()).prop_map(|(folder, at)| Step::Make(folder, at)),
        (0..9_u64, 0..4_u64, any::<bool>()).prop_map(|(file, at, is)| Step::Write(file, at, is)),
        (0..9_u64).prop_map(Step::Flush),
        folder.clone().prop_map(Step::FlushFolder),
        (folder.clone(), at.clone(), at.clone())
            .prop_filter("another name", |(_, from, to)| from != to)
            .prop_map(|(folder, from, to)| Step::Rename(folder, from, to)),
        (folder, at).prop_map(|(folder, at)| Step::Unlink(folder, at)),
        Just(Step::FlushAll),
    ]
}

proptest! {
    #[test]
    fn power_loss_is_said_of_exactly_what_the_worst_crash_leaves(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let (mut fs, mut disk) = (Fs::default(), ext4());
        for step in &steps {
            if let Some(act) = fs.step(step) {
                see(&mut disk, act);
            }
            for (at, file) in &fs.names[0] {
                let is_safe = disk.survives(id(*file), Promise::Posix) == Survives::PowerLoss;
                prop_assert_eq!(is_safe, fs.survives(*at, *file), "{:?} after {:?}", at, step);
                // Guarantees that exceed POSIX never make a file less safe.
                let seen = disk.survives(id(*file), Promise::Seen);
                prop_assert!(seen >= disk.survives(id(*file), Promise::Posix));
                let is_listed = disk.unsafe_files().any(|listed| listed == id(*file));
                prop_assert_eq!(is_listed, seen < Survives::PowerLoss);
            }
        }
    }
}

#[test]
fn a_flushed_file_keeps_its_new_folders_as_seen_and_not_by_posix() {
    let mut disk = ext4();
    see(&mut disk, Act::MadeFolder { file: id(5), name: name(1, 1) });
    see(&mut disk, made(9, Name { folder: id(5), path: PathBuf::from("/1/1/file") }));
    see(&mut disk, write(9, 0..10, CACHED));
    assert_eq!(disk.unsafe_files().count(), 2);
    see(&mut disk, flush(9));
    assert_eq!(disk.unsafe_files().count(), 0);
    assert_eq!(levels(&disk, 9), (Survives::PowerLoss, Survives::ProcessCrash));
    see(&mut disk, flush(5));
    assert_eq!(levels(&disk, 9).1, Survives::ProcessCrash);
    see(&mut disk, flush(1));
    assert_eq!(levels(&disk, 9).1, Survives::PowerLoss);
}

#[test]
fn bytes_that_a_range_before_them_moves_stay_dirty() {
    let mut disk = ext4();
    let found = Act::Found { file: id(9), name: Some(name(1, 1)), size_bytes: 100 };
    see(&mut disk, found);
    see(&mut disk, write(9, 50..60, CACHED));
    let shift =
        |from_bytes, to_bytes| Act::Shift { file: id(9), at_byte: 10, from_bytes, to_bytes };
    let dirty = |disk: &Disk, byte: u64| {
        disk.file(id(9)).unwrap().content.is_dirty_in(&(byte..byte + 10))
            && disk.file(id(9)).unwrap().content.dirty_bytes() == 10
    };
    see(&mut disk, shift(100, 80));
    assert!(dirty(&disk, 30) && disk.file(id(9)).unwrap().content.is_cut());
    see(&mut disk, shift(80, 100));
    assert!(dirty(&disk, 50));
    // The cut splits this write.
    see(&mut disk, Act::Shift { file: id(9), at_byte: 40, from_bytes: 100, to_bytes: 85 });
    assert_eq!(disk.file(id(9)).unwrap().content.dirty_bytes(), 5);
    assert!(disk.file(id(9)).unwrap().content.is_dirty_in(&(40..45)));
    see(&mut disk, flush(9));
    assert_eq!(levels(&disk, 9).0, Survives::PowerLoss);
}

#[test]
fn removed_files_are_forgotten_where_there_are_many_and_stay_removed() {
    const FILES: u64 = 3 * REMOVED_MIN as u64;
    let mut disk = ext4();
    let gone = 100;
    let of = |file: u64| name(1, file);
    let mut forgotten = Vec::new();
    for file in gone..gone + FILES {
        see(&mut disk, made(file, of(file)));
        see(&mut disk, write(file, 0..10, CACHED));
        see(&mut disk, Act::Unlink { file: id(file), name: of(file) });
        // A new file reuses the inode.
        if file == gone + 1 {
            see(&mut disk, made(file, of(file)));
            see(&mut disk, write(file, 0..10, CACHED));
        }
        forgotten.extend(disk.forget());
        let known = (file - gone + 1) as usize - forgotten.len();
        assert!(forgotten.is_empty() || known >= REMOVED_MIN, "{known}");
    }
    assert!(disk.files().count() <= 2 * REMOVED_MIN + 2, "{}", disk.files().count());
    assert!(forgotten.contains(&id(gone)) && !forgotten.contains(&id(gone + 1)));
    assert_eq!(disk.unsafe_files().collect::<Vec<_>>(), [id(gone + 1)]);
    // This forgotten file is still open.
    see(&mut disk, write(gone, 10..20, CACHED));
    assert!(disk.file(id(gone)).unwrap().is_removed);
    assert_eq!(disk.unsafe_files().count(), 1);
}

/// Processes a call that began and ended at these times.
fn during(disk: &mut Disk, times_ns: Range<u64>, act: Act) {
    let took_ns = times_ns.end - times_ns.start;
    disk.see(&Call { took_ns, ..Call::new(times_ns.start, act) });
}

#[test]
fn a_flush_covers_only_what_had_ended_before_it_began() {
    let rename = |from: Name, to: Name| Act::Rename { file: id(9), from, to, replaced: None };
    let resize = Act::Resize { file: id(9), from_bytes: 10, to_bytes: 5 };
    let late = [
        (write(9, 10..20, CACHED), 9, Survives::ProcessCrash),
        (resize, 9, Survives::ProcessCrash),
        (rename(name(1, 1), name(1, 2)), 1, Survives::ProcessCrash),
    ];
    for (act, flushed, expected) in late {
        for is_all in [false, true] {
            let flush = if is_all { Act::FlushAll { device: None } } else { flush(flushed) };
            let mut disk = ext4();
            during(&mut disk, 0..1, made(9, name(1, 1)));
            during(&mut disk, 1..2, write(9, 0..10, CACHED));
            [9, 1].into_iter().for_each(|file| during(&mut disk, 2..3, self::flush(file)));
            during(&mut disk, 5..7, act.clone());
            during(&mut disk, 6..9, flush.clone());
            assert_eq!(levels(&disk, 9).0, expected, "{act:?}");
            during(&mut disk, 9..10, Act::FlushAll { device: None });
            assert_eq!(levels(&disk, 9).0, Survives::PowerLoss, "{act:?}");
        }
    }
}

#[test]
fn of_many_writes_during_a_flush_the_earlier_ones_are_joined() {
    let mut disk = ext4();
    during(&mut disk, 0..1, made(9, name(1, 1)));
    during(&mut disk, 1..2, write(9, 0..10, CACHED));
    let dirty = |disk: &Disk| disk.file(id(9)).unwrap().content.dirty_bytes();
    for at in 0..100 {
        during(&mut disk, 10 + at..11 + at, write(9, 10 * at..10 * at + 10, CACHED));
    }
    during(&mut disk, 100..200, flush(9));
    assert_eq!(dirty(&disk), 100, "the writes that ended after 100 ns");
    during(&mut disk, 5..300, flush(9));
    assert_eq!(dirty(&disk), 100);
    during(&mut disk, 300..301, flush(9));
    assert_eq!(dirty(&disk), 0);
}
