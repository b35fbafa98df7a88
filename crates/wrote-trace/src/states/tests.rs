//! Checks states against the model and the findings: each loss warning is shown by some state, and
//! everything reported safe is in all states.

use super::*;
use crate::account::Accounts;
use crate::call::{How, Storage};
use crate::judge::Judge;
use crate::model::{Model, Promise};
use crate::record::Before;
use proptest::prelude::*;
use std::convert::Infallible;
use wrote::Survives;
use wrote_result::document::{Finding, Severity};

const ROOT: FileId = FileId { device: 1, inode: 1 };
/// Names for new files, and names to rename them to.
const NAMES: [&str; 4] = ["new", "other.new", "a", "b"];
const TARGETS: usize = 2;
const PAGE: u64 = PAGE_BYTES as u64;

fn name(number: usize) -> Name {
    Name { folder: ROOT, path: Path::new("/data").join(NAMES[number]) }
}

fn file(inode: u64) -> FileId {
    FileId { device: 1, inode }
}

/// A program, in terms of its names.
struct Script {
    calls: Vec<Call>,
    names: BTreeMap<usize, u64>,
    sizes: BTreeMap<u64, u64>,
    /// Files whose first page has zeros.
    erased: HashSet<u64>,
    inodes: u64,
    stamp: u8,
}

#[derive(Clone, Debug)]
enum Step {
    Make(usize),
    Append(usize),
    Change(usize),
    Rewrite(usize),
    Erase(usize),
    Collapse(usize),
    Flush(usize, bool),
    FlushFolder,
    Rename(usize, usize),
    Unlink(usize),
    Tell,
    FlushAll,
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..NAMES.len();
    prop_oneof![
        2 => any.clone().prop_map(Step::Make),
        2 => any.clone().prop_map(Step::Append),
        1 => any.clone().prop_map(Step::Change),
        1 => any.clone().prop_map(Step::Rewrite),
        1 => any.clone().prop_map(Step::Erase),
        1 => any.clone().prop_map(Step::Collapse),
        2 => (any.clone(), prop::bool::weighted(0.1)).prop_map(|(at, is)| Step::Flush(at, is)),
        1 => Just(Step::FlushFolder),
        2 => (0..TARGETS, TARGETS..NAMES.len()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => any.prop_map(Step::Unlink),
        1 => Just(Step::Tell),
        1 => Just(Step::FlushAll),
    ]
}

impl Script {
    fn new() -> Script {
        let names = BTreeMap::from([(2, 10), (3, 11)]);
        let sizes = BTreeMap::from([(10, 5000), (11, 5000)]);
        let (calls, erased) = (Vec::new(), HashSet::new());
        let mut script = Script { calls, names, sizes, erased, inodes: 11, stamp: 1 };
        let storage =
            Storage { is_in_memory: false, writes_in_place: true, flushes_reach_device: true };
        script.call(Act::Storage { device: 1, storage }, Vec::new());
        for number in [2, 3] {
            let (file, name) = (file(8 + number as u64), Some(name(number)));
            script.call(Act::Found { file, name, size_bytes: 5000 }, Vec::new());
        }
        script
    }

    fn call(&mut self, act: Act, data: Vec<u8>) {
        let at_ns = self.calls.len() as u64 * 1000;
        self.calls.push(Call { data, ..Call::new(at_ns, act) });
    }

    fn write(&mut self, inode: u64, from: u64) {
        let count = 5000;
        self.stamp += 1;
        let data = vec![self.stamp; count as usize];
        let size = self.sizes.entry(inode).or_default();
        *size = (*size).max(from + count);
        if from == 0 {
            self.erased.remove(&inode);
        }
        let (bytes, how) = (from..from + count, How::default());
        self.call(
            Act::Write { file: file(inode), bytes, asked_bytes: count, how, is_race: false },
            data,
        );
    }

    fn step(&mut self, step: &Step) {
        let known = |number: &usize, names: &BTreeMap<usize, u64>| names.get(number).copied();
        match step {
            Step::Make(number) if !self.names.contains_key(number) => {
                self.inodes += 1;
                let inode = self.inodes;
                self.names.insert(*number, inode);
                self.call(Act::Made { file: file(inode), name: Some(name(*number)) }, Vec::new());
                self.write(inode, 0);
            }
            Step::Make(_) => {}
            Step::Append(number) => {
                let Some(inode) = known(number, &self.names) else { return };
                self.write(inode, self.sizes[&inode]);
            }
            Step::Change(number) => {
                let Some(inode) = known(number, &self.names) else { return };
                self.write(inode, 0);
            }
            Step::Rewrite(number) => {
                let Some(inode) = known(number, &self.names) else { return };
                let (file, size_bytes) = (file(inode), self.sizes[&inode]);
                let act = match inode % 2 {
                    0 => Act::Empty { file, size_bytes },
                    _ => Act::Erase { file, bytes: 0..size_bytes, empties: size_bytes > 0 },
                };
                if matches!(act, Act::Empty { .. }) {
                    self.sizes.insert(inode, 0);
                }
                self.call(act, Vec::new());
                self.write(inode, 0);
            }
            Step::Erase(number) => {
                let Some(inode) = known(number, &self.names) else { return };
                if self.sizes[&inode] > PAGE && self.erased.insert(inode) {
                    let (file, empties) = (file(inode), false);
                    self.call(Act::Erase { file, bytes: 0..PAGE, empties }, Vec::new());
                }
            }
            Step::Collapse(number) => {
                let Some(inode) = known(number, &self.names) else { return };
                let from_bytes = self.sizes[&inode];
                if from_bytes > PAGE {
                    let (file, to_bytes) = (file(inode), from_bytes - PAGE);
                    self.sizes.insert(inode, to_bytes);
                    self.erased.remove(&inode);
                    let act = Act::Shift { file, at_byte: 0, from_bytes, to_bytes };
                    self.call(act, Vec::new());
                }
            }
            Step::Flush(number, fails) => {
                let Some(inode) = known(number, &self.names) else { return };
                if *fails {
                    self.write(inode, 0);
                }
                let failed = fails.then_some(5);
                self.call(Act::Flush { file: file(inode), failed }, Vec::new());
            }
            Step::FlushFolder => self.call(Act::Flush { file: ROOT, failed: None }, Vec::new()),
            Step::FlushAll => self.call(Act::FlushAll { device: None }, Vec::new()),
            Step::Tell => self.call(Act::Tell, Vec::new()),
            Step::Rename(from, to) => {
                let Some(inode) = self.names.remove(from) else { return };
                let replaced = self.names.insert(*to, inode).map(file);
                let [from, to] = [name(*from), name(*to)];
                self.call(Act::Rename { file: file(inode), from, to, replaced }, Vec::new());
            }
            Step::Unlink(number) => {
                let Some(inode) = self.names.remove(number) else { return };
                self.call(Act::Unlink { file: file(inode), name: name(*number) }, Vec::new());
            }
        }
    }

    fn record(self) -> Record {
        let before = |number: usize| Before {
            name: name(number),
            mode: 0o644,
            what: What::File(file(8 + number as u64), vec![number as u8 + 200; 5000]),
        };
        Record {
            root: ROOT,
            path: "/data".into(),
            before: vec![before(2), before(3)],
            calls: self.calls,
        }
    }
}

/// Records some steps.
fn recorded(steps: &[Step]) -> Record {
    let mut script = Script::new();
    for step in steps {
        script.step(step);
    }
    script.record()
}

/// Returns the findings and the model of a record, as in a trace.
fn judged(record: &Record) -> (Model, Vec<Finding>) {
    let (mut model, mut accounts, mut judge) =
        (Model::default(), Accounts::default(), Judge::default());
    for call in &record.calls {
        accounts.see(&model, call);
        judge.see(&model, &accounts, call);
        model.see(call);
        judge.after(&model, call);
    }
    let findings = judge.findings(&model, &accounts, &|_| true, Path::new("/data"), &mut |_| None);
    (model, findings)
}

/// Returns the disk after a number of calls, and all states of a file that a power loss then may
/// leave.
fn after<'a>(record: &'a Record, count: usize) -> Disk<'a> {
    let mut disk = Disk::before(record);
    record.calls.iter().take(count).for_each(|call| disk.see(call));
    disk
}

fn cuts(disk: &Disk, path: &Path) -> Vec<Option<Vec<u8>>> {
    // All numbers of surviving names too, because a seed may miss one.
    let untils = disk.changes.iter().map(|change| change.at);
    let names = untils.map(|until| Cut { until, bytes: Left::All });
    let rounds = (0..Cut::FIRST.len() as u64 + MIXED_ROUNDS).map(|round| Cut::of(round, 1, disk));
    let below = |cut| disk.tree(cut).file(path).map(<[u8]>::to_vec);
    names.chain(rounds).map(below).collect()
}

/// Returns whether some state after the calls of a finding's place shows the loss.
fn is_shown(record: &Record, finding: &Finding, place: &serde_json::Value) -> bool {
    let path = Path::new(place["path"].as_str().unwrap());
    let path = path.strip_prefix("/data").unwrap();
    let last = place["calls"].as_array().and_then(|calls| calls.last());
    let at_ns = last.map(|call| (call["at_s"].as_f64().unwrap() * 1e9).round() as u64);
    let number = at_ns.map_or(record.calls.len(), |at_ns| at_ns as usize / 1000 + 1);
    let seen = |count: usize| after(record, count).tree(Cut::NO).file(path).map(<[u8]>::to_vec);
    let found = cuts(&after(record, number), path);
    match finding.id.as_str() {
        // Neither the old content nor the new.
        "rename-before-flush" | "only-copy-overwritten" => {
            let views: HashSet<_> = (0..=record.calls.len()).filter_map(seen).collect();
            found.iter().any(|left| match left {
                Some(left) => left.iter().all(|byte| *byte == 0) || !views.contains(left),
                None => true,
            })
        }
        "unlink-before-durable-name" => found.iter().any(Option::is_none),
        // The program communicates in the first of its calls.
        "acknowledged-early" => {
            let first = place["calls"][0]["at_s"].as_f64().unwrap();
            let number = (first * 1e9).round() as usize / 1000 + 1;
            // Its name may have been different then.
            let disk = after(record, number);
            let told = disk.tree(Cut::NO);
            (0..Cut::FIRST.len()).any(|round| disk.tree(Cut::FIRST[round]) != told)
        }
        "flush-error-ignored" | "flush-retried" => {
            let views: Vec<_> = (number..=record.calls.len()).collect();
            views.iter().any(|count| {
                let told = seen(*count);
                cuts(&after(record, *count), path).iter().any(|left| *left != told)
            })
        }
        "never-flushed" | "direct-taken-for-durable" | "folder-not-flushed" => {
            let end = record.calls.len();
            let told = seen(end);
            cuts(&after(record, end), path).iter().any(|left| *left != told)
        }
        other => panic!("{other}: no state can show it"),
    }
}

proptest! {
    #[test]
    fn a_warning_has_a_state_that_shows_it(steps in prop::collection::vec(step(), 1..25)) {
        let record = recorded(&steps);
        for finding in judged(&record).1 {
            if finding.severity < Severity::Warning {
                continue;
            }
            for place in finding.evidence["places"].as_array().unwrap() {
                prop_assert!(is_shown(&record, &finding, place), "{finding:?}");
            }
        }
    }

    #[test]
    fn a_file_survives_exactly_where_every_state_has_it_whole(
        steps in prop::collection::vec(step(), 1..25)
    ) {
        let record = recorded(&steps);
        let (model, _) = judged(&record);
        let disk = after(&record, record.calls.len());
        let whole = disk.tree(Cut::NO);
        for (id, known) in model.files().filter(|(id, known)| *id != ROOT && !known.is_removed) {
            let path = known.path().strip_prefix("/data").unwrap();
            let told = whole.file(path).map(<[u8]>::to_vec);
            let is_safe = model.survives(id, Promise::Seen) == Survives::PowerLoss;
            let is_whole = cuts(&disk, path).iter().all(|left| *left == told);
            prop_assert_eq!(is_safe, is_whole, "{}", path.display());
        }
    }
}

fn all(record: &Record, most: u64) -> Vec<State> {
    let mut all = Vec::new();
    let take = &mut |state| {
        all.push(state);
        Ok::<_, Infallible>(true)
    };
    let Ok(count) = states(record, most, take);
    assert_eq!(count, all.len() as u64);
    all
}

#[test]
fn the_worst_state_of_a_rename_without_a_flush_is_an_empty_file() {
    let record = recorded(&[Step::Make(0), Step::Rename(0, 2), Step::FlushFolder]);
    let states = all(&record, 100);
    let empty = |state: &&State| state.losses == ["a is empty"];
    let losses: Vec<_> = states.iter().map(|state| (&state.moment, &state.losses)).collect();
    let first = states.iter().find(empty).unwrap_or_else(|| panic!("{losses:?}"));
    assert!(first.moment.starts_with("after the rename to a at "), "{}", first.moment);
    assert!(first.moment.ends_with(": all names changed, no unflushed bytes"), "{}", first.moment);
    assert!(first.number < 10, "{}", first.number);
    let flushed = recorded(&[Step::Make(0), Step::Flush(0, false), Step::Rename(0, 2)]);
    let states = all(&flushed, 100);
    for state in &states {
        assert!(state.tree.file(Path::new("a")).is_some_and(|bytes| bytes.len() == 5000));
    }
}

#[test]
fn zeros_and_shifts_have_the_content_that_the_kernel_makes() {
    let at = |what, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        Change { at: 1, what, is_durable: false, is_lost: false }.apply(&mut bytes);
        bytes
    };
    assert_eq!(at(Bytes::Erase(1, 3), b"abcd"), b"a\0\0d");
    assert_eq!(at(Bytes::Erase(3, 5), b"abcd"), b"abc\0\0");
    assert_eq!(at(Bytes::Shift { at: 1, from: 4, to: 2 }, b"abcd"), b"ad");
    assert_eq!(at(Bytes::Shift { at: 1, from: 4, to: 6 }, b"abcd"), b"a\0\0bcd");
}

#[test]
fn states_have_the_same_numbers_each_time_and_differ() {
    let steps = [Step::Make(0), Step::Append(2), Step::Flush(0, false), Step::Rename(0, 3)];
    let record = recorded(&steps);
    let (one, other) = (all(&record, 60), all(&record, 60));
    assert!(one.len() > 10, "{}", one.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!((&one.tree, &one.moment), (&other.tree, &other.moment));
    }
    for (number, state) in one.iter().enumerate() {
        let again = one[..number].iter().find(|other| other.tree == state.tree);
        assert!(again.is_none_or(|other| other.told != state.told), "{}", state.number);
    }
    assert!(one.last().is_some_and(|state| state.number <= 60));
}

#[test]
fn a_state_is_made_in_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let tree = Tree(BTreeMap::from([
        ("in".into(), (Entry::Folder, Some(0o500))),
        ("in/file".into(), (Entry::File(b"x".into()), Some(0o640))),
        ("link".into(), (Entry::Link("in/file".into()), None)),
    ]));
    tree.make(place.path()).unwrap();
    assert_eq!(fs::read(place.path().join("link")).unwrap(), b"x");
    let mode = |path| fs::metadata(place.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("in"), mode("in/file")), (0o500, 0o640));
    fs::set_permissions(place.path().join("in"), Permissions::from_mode(0o700)).unwrap();
}
