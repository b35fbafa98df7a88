//! Compares the model with a small file system that loses everything POSIX allows in a crash.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The number of folders; files have larger numbers.
const FOLDERS: u64 = 2;
const NAMES: u64 = 3;

fn id(inode: u64) -> FileId {
    FileId { device: 1, inode }
}

fn name(folder: u64, number: u64) -> Name {
    Name { folder: id(folder), path: PathBuf::from(format!("/{folder}/{number}")) }
}

fn disk(storage: Storage) -> Model {
    let mut model = Model::default();
    see(&mut model, Act::Storage { device: 1, storage });
    model
}

fn ext4() -> Model {
    disk(Storage { writes_in_place: true, flushes_reach_device: true, is_in_memory: false })
}

fn see(model: &mut Model, act: Act) {
    model.see(&Call::new(0, act));
}

fn write(file: u64, bytes: Range<u64>, how: How) -> Act {
    let asked_bytes = bytes.end - bytes.start;
    Act::Write { file: id(file), bytes, asked_bytes, how, is_race: false }
}

fn flush(file: u64) -> Act {
    Act::Flush { file: id(file), failed: None }
}

fn made(file: u64, at: Name) -> Act {
    Act::Made { file: id(file), name: Some(at) }
}

const CACHED: How = How { is_direct: false, is_durable: false };
const DIRECT: How = How { is_direct: true, is_durable: false };
const DURABLE: How = How { is_direct: false, is_durable: true };

fn levels(model: &Model, file: u64) -> (Survives, Survives) {
    (model.survives(id(file), Promise::Seen), model.survives(id(file), Promise::Posix))
}

#[test]
fn a_new_file_is_durable_with_its_folder_and_as_seen_without() {
    let mut model = ext4();
    see(&mut model, made(9, name(1, 1)));
    see(&mut model, write(9, 0..10, CACHED));
    assert_eq!(levels(&model, 9), (Survives::ProcessCrash, Survives::ProcessCrash));
    see(&mut model, flush(9));
    assert_eq!(levels(&model, 9), (Survives::PowerLoss, Survives::ProcessCrash));
    see(&mut model, flush(1));
    assert_eq!(levels(&model, 9), (Survives::PowerLoss, Survives::PowerLoss));
}

#[test]
fn a_flush_of_the_folder_alone_saves_no_bytes() {
    let mut model = ext4();
    see(&mut model, made(9, name(1, 1)));
    see(&mut model, write(9, 0..10, CACHED));
    see(&mut model, flush(1));
    assert_eq!(levels(&model, 9).0, Survives::ProcessCrash);
}

#[test]
fn the_name_that_a_rename_gave_needs_its_folder_flushed() {
    let mut model = ext4();
    see(&mut model, made(9, name(1, 1)));
    see(&mut model, write(9, 0..10, CACHED));
    see(&mut model, flush(9));
    let (from, to) = (name(1, 1), name(1, 2));
    see(&mut model, Act::Rename { file: id(9), from, to, replaced: None });
    see(&mut model, flush(9));
    assert_eq!(levels(&model, 9).0, Survives::ProcessCrash);
    see(&mut model, flush(1));
    assert_eq!(levels(&model, 9).0, Survives::PowerLoss);
}

#[test]
fn a_direct_write_survives_an_os_crash_over_flushed_bytes_alone() {
    let mut model = ext4();
    let found = Act::Found { file: id(9), name: Some(name(1, 1)), size_bytes: 8192 };
    see(&mut model, found);
    see(&mut model, write(9, 0..4096, DIRECT));
    assert_eq!(levels(&model, 9).0, Survives::OsCrash);
    see(&mut model, write(9, 8192..12288, DIRECT));
    assert_eq!(levels(&model, 9).0, Survives::ProcessCrash);
    see(&mut model, flush(9));
    see(&mut model, write(9, 8192..12288, DIRECT));
    assert_eq!(levels(&model, 9).0, Survives::OsCrash);
}

#[test]
fn nothing_in_memory_survives_a_kernel() {
    let mut model = disk(Storage { is_in_memory: true, ..Storage::default() });
    see(&mut model, made(9, name(1, 1)));
    see(&mut model, write(9, 0..10, DURABLE));
    see(&mut model, Act::FlushAll { device: None });
    assert_eq!(levels(&model, 9), (Survives::ProcessCrash, Survives::ProcessCrash));
}

#[test]
fn a_failed_flush_saves_nothing() {
    // W1, W2
    let mut model = ext4();
    see(&mut model, made(9, name(1, 1)));
    see(&mut model, write(9, 0..10, CACHED));
    see(&mut model, Act::Flush { file: id(9), failed: Some(5) });
    assert_eq!(levels(&model, 9).0, Survives::ProcessCrash);
}

#[test]
fn names_below_a_renamed_folder_follow_it() {
    let mut model = ext4();
    see(&mut model, Act::MadeFolder { file: id(5), name: name(1, 1) });
    let below = Name { folder: id(5), path: PathBuf::from("/1/1/file") };
    see(&mut model, made(9, below));
    let (from, to) = (name(1, 1), name(1, 2));
    see(&mut model, Act::Rename { file: id(5), from, to, replaced: None });
    assert_eq!(model.file(id(9)).unwrap().path(), Path::new("/1/2/file"));
}

/// A file system by POSIX: names and data are lost unless flushed.
#[derive(Clone, Debug, Default)]
struct Fs {
    /// Each file's bytes: current, and after a crash.
    bytes: BTreeMap<u64, [BTreeMap<u64, u64>; 2]>,
    /// Each name's file: current, and after a crash.
    names: [BTreeMap<(u64, u64), u64>; 2],
    /// Names changed since their folder was flushed; a crash keeps any of the changes.
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

    /// Performs a step, and returns it as a call.
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
                write(file, at..at + 1, How { is_direct: false, is_durable })
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
        let (mut fs, mut model) = (Fs::default(), ext4());
        for step in &steps {
            if let Some(act) = fs.step(step) {
                see(&mut model, act);
            }
            for (at, file) in &fs.names[0] {
                let is_safe = model.survives(id(*file), Promise::Posix) == Survives::PowerLoss;
                prop_assert_eq!(is_safe, fs.survives(*at, *file), "{:?} after {:?}", at, step);
                // Guarantees beyond POSIX never make a file less safe.
                let seen = model.survives(id(*file), Promise::Seen);
                prop_assert!(seen >= model.survives(id(*file), Promise::Posix));
                let is_listed = model.unsafe_files().any(|listed| listed == id(*file));
                prop_assert_eq!(is_listed, seen < Survives::PowerLoss);
            }
        }
    }
}

#[test]
fn a_flushed_file_keeps_its_new_folders_as_seen_and_not_by_posix() {
    let mut model = ext4();
    see(&mut model, Act::MadeFolder { file: id(5), name: name(1, 1) });
    see(&mut model, made(9, Name { folder: id(5), path: PathBuf::from("/1/1/file") }));
    see(&mut model, write(9, 0..10, CACHED));
    assert_eq!(model.unsafe_files().count(), 2);
    see(&mut model, flush(9));
    assert_eq!(model.unsafe_files().count(), 0);
    assert_eq!(levels(&model, 9), (Survives::PowerLoss, Survives::ProcessCrash));
    see(&mut model, flush(5));
    assert_eq!(levels(&model, 9).1, Survives::ProcessCrash);
    see(&mut model, flush(1));
    assert_eq!(levels(&model, 9).1, Survives::PowerLoss);
}

#[test]
fn bytes_that_a_range_before_them_moves_stay_dirty() {
    let mut model = ext4();
    let found = Act::Found { file: id(9), name: Some(name(1, 1)), size_bytes: 100 };
    see(&mut model, found);
    see(&mut model, write(9, 50..60, CACHED));
    let shift =
        |from_bytes, to_bytes| Act::Shift { file: id(9), at_byte: 10, from_bytes, to_bytes };
    let dirty = |model: &Model, byte: u64| {
        model.file(id(9)).unwrap().is_dirty_in(&(byte..byte + 10))
            && model.file(id(9)).unwrap().dirty_bytes() == 10
    };
    see(&mut model, shift(100, 80));
    assert!(dirty(&model, 30) && model.file(id(9)).unwrap().is_cut());
    see(&mut model, shift(80, 100));
    assert!(dirty(&model, 50));
    // One that is cut through.
    see(&mut model, Act::Shift { file: id(9), at_byte: 40, from_bytes: 100, to_bytes: 85 });
    assert_eq!(model.file(id(9)).unwrap().dirty_bytes(), 5);
    assert!(model.file(id(9)).unwrap().is_dirty_in(&(40..45)));
    see(&mut model, flush(9));
    assert_eq!(levels(&model, 9).0, Survives::PowerLoss);
}

#[test]
fn removed_files_are_forgotten_where_there_are_many_and_stay_removed() {
    const FILES: u64 = 10 * REMOVED_MIN as u64;
    let mut model = ext4();
    let gone = 100;
    let of = |file: u64| name(1, file);
    let mut forgotten = Vec::new();
    for file in gone..gone + FILES {
        see(&mut model, made(file, of(file)));
        see(&mut model, write(file, 0..10, CACHED));
        see(&mut model, Act::Unlink { file: id(file), name: of(file) });
        // One comes back under its inode.
        if file == gone + 1 {
            see(&mut model, made(file, of(file)));
            see(&mut model, write(file, 0..10, CACHED));
        }
        forgotten.extend(model.forget_removed());
    }
    assert!(model.files().count() <= 2 * REMOVED_MIN, "{}", model.files().count());
    assert!(forgotten.contains(&id(gone)) && !forgotten.contains(&id(gone + 1)));
    assert_eq!(model.unsafe_files().collect::<Vec<_>>(), [id(gone + 1)]);
    // A forgotten one that is still open.
    see(&mut model, write(gone, 10..20, CACHED));
    assert!(model.file(id(gone)).unwrap().is_removed);
    assert_eq!(model.unsafe_files().count(), 1);
}
