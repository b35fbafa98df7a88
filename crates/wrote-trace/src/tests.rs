//! Programs with many files. Most files are folded.

use super::*;
use crate::call::{Act, Name, Storage};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use wrote_result::document::Severity;

const FOLDERS: u64 = 3;
/// The folder that contains the others.
const ABOVE: u64 = FOLDERS;
const NAMES: u64 = 40;
const SIZE_BYTES: u64 = 10;

fn id(inode: u64) -> FileId {
    FileId { device: 1, inode }
}

fn folder(number: u64) -> FileId {
    id(number + 1)
}

fn name(at: u64) -> Name {
    let number = at % FOLDERS;
    Name { folder: folder(number), path: format!("/d/{number}/{at}").into() }
}

#[derive(Clone, Debug)]
enum Step {
    Make(u64, bool),
    Write(u64),
    Cut(u64),
    Flush(u64),
    FlushFolder(u64),
    FlushAll,
    Rename(u64, u64),
    RenameFolder,
    Unlink(u64),
    Map(u64),
    Cover(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES;
    prop_oneof![
        12 => (name(), any::<bool>()).prop_map(|(at, writes)| Step::Make(at, writes)),
        4 => name().prop_map(Step::Write),
        1 => name().prop_map(Step::Cut),
        8 => name().prop_map(Step::Flush),
        1 => (0..=FOLDERS).prop_map(Step::FlushFolder),
        1 => Just(Step::FlushAll),
        4 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => Just(Step::RenameFolder),
        2 => name().prop_map(Step::Unlink),
        1 => name().prop_map(Step::Map),
        1 => name().prop_map(Step::Cover),
    ]
}

/// Plays a program's calls, and reports each file before its first call, as `watch` does.
struct Player {
    desk: Desk,
    met: HashSet<FileId>,
    /// The file of each name.
    names: Vec<Option<FileId>>,
    sizes: HashMap<FileId, u64>,
    next: u64,
    at_ns: u64,
}

impl Player {
    fn new(whole_max: usize) -> Player {
        let mut desk = Desk::default();
        desk.disk.keep_whole(whole_max);
        let names = vec![None; NAMES as usize];
        let (met, sizes) = (HashSet::new(), HashMap::new());
        let mut player = Player { desk, met, names, sizes, next: 100, at_ns: 0 };
        let storage = Storage { flushes_reach_device: true, ..Storage::default() };
        player.see(Act::Storage { device: 1, storage });
        for number in 0..FOLDERS {
            let name = Name { folder: folder(ABOVE), path: format!("/d/{number}").into() };
            player.see(Act::MadeFolder { file: folder(number), name });
        }
        player
    }

    fn see(&mut self, act: Act) {
        self.at_ns += 1000;
        for file in self.desk.see(&Call::new(self.at_ns, act)) {
            self.met.remove(&file);
        }
    }

    fn file(&mut self, at: u64) -> Option<FileId> {
        let file = self.names[at as usize]?;
        if self.met.insert(file) {
            let size_bytes = self.sizes.get(&file).copied().unwrap_or(0);
            self.see(Act::Found { file, name: Some(name(at)), size_bytes });
        }
        Some(file)
    }

    fn take(&mut self, step: &Step) -> Option<()> {
        let act = match *step {
            Step::Make(at, _) if self.names[at as usize].is_some() => return None,
            Step::Make(at, writes) => {
                self.next += 1;
                let file = id(self.next);
                self.names[at as usize] = Some(file);
                self.met.insert(file);
                self.see(Act::Made { file, name: Some(name(at)) });
                if !writes {
                    return None;
                }
                write(file)
            }
            Step::Write(at) => write(self.file(at)?),
            Step::Cut(at) => {
                let (file, from_bytes, to_bytes) = (self.file(at)?, SIZE_BYTES, SIZE_BYTES / 2);
                Act::Resize { file, from_bytes, to_bytes }
            }
            Step::Flush(at) => Act::Flush { file: self.file(at)?, failed: None, is_data: false },
            Step::FlushFolder(number) => {
                Act::Flush { file: folder(number), failed: None, is_data: false }
            }
            Step::FlushAll => Act::FlushAll { device: None },
            Step::Rename(from, to) if from == to => return None,
            Step::Rename(from, to) => {
                let file = self.file(from)?;
                let replaced = self.file(to);
                self.names[to as usize] = self.names[from as usize].take();
                Act::Rename { file, from: name(from), to: name(to), replaced }
            }
            // A rename to another name and back is a change, too.
            Step::RenameFolder => {
                let name = |path: &str| Name { folder: folder(ABOVE), path: path.into() };
                let (file, replaced) = (folder(0), None);
                self.see(Act::Rename { file, from: name("/d/0"), to: name("/d/x"), replaced });
                Act::Rename { file, from: name("/d/x"), to: name("/d/0"), replaced }
            }
            Step::Unlink(at) => {
                let file = self.file(at)?;
                self.names[at as usize] = None;
                Act::Unlink { file, name: name(at) }
            }
            Step::Map(at) => Act::Map { file: self.file(at)?, stores: call::Stores::Unseen },
            Step::Cover(at) => Act::Cover { file: self.file(at)? },
        };
        match act {
            Act::Write { file, .. } => drop(self.sizes.insert(file, SIZE_BYTES)),
            Act::Resize { file, to_bytes, .. } => drop(self.sizes.insert(file, to_bytes)),
            _ => {}
        }
        self.see(act);
        Some(())
    }

    /// Returns the number of files by verdict, the number of listed files, the number of files that
    /// were created or written and then removed, and whether there is a warning.
    fn end(self) -> (MoreFiles, usize, u64, bool) {
        let Desk { disk, accounts, judge, .. } = self.desk;
        let (listed, mut files) = super::files(&disk, &accounts, &|_| true, None);
        listed.iter().for_each(|file| files.add(file.verdict, 1));
        let found =
            judge.findings(&disk, &accounts, &|_| true, Path::new(""), &mut |_| Default::default());
        let warns = found.iter().any(|of| of.0.severity == Severity::Warning);
        (files, listed.len(), accounts.removed, warns)
    }
}

fn write(file: FileId) -> Act {
    let (bytes, asked_bytes, how) = (0..SIZE_BYTES, SIZE_BYTES, call::How::default());
    Act::Write { file, bytes, asked_bytes, how, is_race: false, is_zeros: false }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_verdict_is_the_same_where_most_files_are_only_counted(
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let [all, few] = [usize::MAX / 8, 16].map(|whole_max| {
            let mut player = Player::new(whole_max);
            for step in &steps {
                let _ = player.take(step);
            }
            player.end()
        });
        prop_assert_eq!(few.0, all.0);
        prop_assert_eq!(few.2, all.2);
        prop_assert!(few.3 >= all.3);
    }
}

#[test]
fn a_file_of_many_costs_a_few_bytes_and_keeps_its_verdict() {
    const FILES: u64 = 5000;
    for (flushes, verdict) in [(true, Verdict::Survives), (false, Verdict::Lost)] {
        let mut player = Player::new(64);
        for number in 0..FILES {
            let file = id(1000 + number);
            let name = Name { folder: folder(0), path: format!("/d/0/{number}").into() };
            player.see(Act::Made { file, name: Some(name) });
            player.see(write(file));
            if flushes {
                player.see(Act::Flush { file, failed: None, is_data: false });
            }
            assert!(player.desk.disk.files().count() <= 64 + 4, "{number}");
        }
        let (files, listed, ..) = player.end();
        assert_eq!((files.count(), files.verdict()), (FILES, verdict));
        assert!(listed >= 32, "{listed}");
    }
}

#[test]
fn new_folders_that_are_too_many_to_follow_are_unknown_until_all_is_flushed() {
    const FOLDERS: u64 = 2000;
    for (flushes, syncs, verdict) in [
        (true, false, Verdict::Survives),
        (false, false, Verdict::Lost),
        (false, true, Verdict::Survives),
    ] {
        let mut player = Player::new(64);
        for number in 0..FOLDERS {
            let [own, file] = [id(10_000 + number), id(20_000 + number)];
            let path = PathBuf::from(format!("/d/0/{number}"));
            let name = Name { folder: folder(0), path: path.clone() };
            player.see(Act::MadeFolder { file: own, name });
            let name = Name { folder: own, path: path.join("file") };
            player.see(Act::Made { file, name: Some(name) });
            player.see(write(file));
            if flushes {
                player.see(Act::Flush { file, failed: None, is_data: false });
            }
            assert!(player.desk.disk.files().count() <= 64 + 2 * 64 + 64, "{number}");
        }
        if syncs {
            player.see(Act::FlushAll { device: None });
        }
        let (files, ..) = player.end();
        assert_eq!((files.count(), files.verdict()), (FOLDERS, verdict));
    }
}
