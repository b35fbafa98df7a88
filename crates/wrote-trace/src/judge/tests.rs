//! Tests each finding with calls that cause it and calls that avoid it.

use super::*;
use crate::call::How;
use wrote_result::document::Severity;

/// A sequence of calls.
#[derive(Default)]
struct Script {
    disk: Disk,
    accounts: Accounts,
    judge: Judge,
    at_ns: u64,
}

const FOLDER: FileId = FileId { device: 1, inode: 1 };
const OLD: FileId = FileId { device: 1, inode: 10 };
const NEW: FileId = FileId { device: 1, inode: 11 };

fn name(path: &str) -> Name {
    Name { folder: FOLDER, path: path.into() }
}

fn found(file: FileId, path: &str) -> Act {
    Act::Found { file, name: Some(name(path)), size_bytes: 100 }
}

fn made(file: FileId, path: &str) -> Act {
    Act::Made { file, name: Some(name(path)) }
}

fn write(file: FileId, bytes: Range<u64>) -> Act {
    let asked_bytes = bytes.end - bytes.start;
    Act::Write { file, bytes, asked_bytes, how: How::default(), is_race: false, is_zeros: false }
}

fn flush(file: FileId) -> Act {
    Act::Flush { file, failed: None, is_data: false }
}

fn rename(file: FileId, from: &str, to: &str, replaced: Option<FileId>) -> Act {
    Act::Rename { file, from: name(from), to: name(to), replaced }
}

impl Script {
    fn of(acts: impl IntoIterator<Item = Act>) -> Script {
        let mut script = Script::default();
        for act in acts {
            script.at_ns += 1_000_000;
            script.see(&Call::new(script.at_ns, act));
        }
        script
    }

    fn see(&mut self, call: &Call) {
        self.accounts.see(&self.disk, call);
        self.judge.see(&self.disk, &self.accounts, call);
        self.disk.see(call);
        self.judge.after(&self.disk, call);
    }

    fn findings(self) -> Vec<Finding> {
        let nowhere = &mut |_| ("", None);
        let folder = Path::new("/data");
        let findings = self.judge.findings(&self.disk, &self.accounts, &|_| true, folder, nowhere);
        findings.into_iter().map(|(finding, _)| finding).collect()
    }
}

/// Returns the IDs of a program's findings.
fn ids(acts: impl IntoIterator<Item = Act>) -> Vec<String> {
    Script::of(acts).findings().into_iter().map(|finding| finding.id).collect()
}

/// Returns a correct replacement of a file.
fn replaced_well() -> Vec<Act> {
    vec![
        found(OLD, "/data/a"),
        made(NEW, "/data/a.tmp"),
        write(NEW, 0..10),
        flush(NEW),
        rename(NEW, "/data/a.tmp", "/data/a", Some(OLD)),
        flush(FOLDER),
    ]
}

#[test]
fn a_replacement_done_right_has_no_finding() {
    assert_eq!(ids(replaced_well()), [""; 0]);
}

#[test]
fn a_rename_before_the_flush_is_told_with_its_moments() {
    let mut acts = replaced_well();
    acts.remove(3);
    let findings = Script::of(acts).findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = &findings[0];
    assert_eq!((finding.id.as_str(), finding.severity), ("rename-before-flush", Severity::Warning));
    assert!(
        finding.text.starts_with("a (10 B of a.tmp not flushed): replaced by an unflushed"),
        "{finding:?}"
    );
    let calls = &finding.evidence["places"][0]["calls"];
    assert_eq!(calls[0], serde_json::json!({ "call": "write", "at_s": 0.003 }));
    assert_eq!(calls[1], serde_json::json!({ "call": "rename", "at_s": 0.004 }));
}

#[test]
fn a_rename_without_a_flush_of_the_folder_brings_the_old_content_back() {
    let mut acts = replaced_well();
    acts.pop();
    assert_eq!(ids(acts), ["folder-not-flushed"]);
}

#[test]
fn a_new_file_that_was_flushed_itself_lacks_only_what_posix_asks() {
    let acts = [made(NEW, "/data/a"), write(NEW, 0..10), flush(NEW)];
    let findings = Script::of(acts).findings();
    assert_eq!(findings[0].id, "name-not-flushed");
    assert_eq!(findings[0].severity, Severity::Info);
    let acts = [made(NEW, "/data/a"), write(NEW, 0..10), flush(NEW), flush(FOLDER)];
    assert_eq!(ids(acts), [""; 0]);
}

#[test]
fn emptying_the_only_copy_is_told_even_where_it_is_flushed_later() {
    let empty = Act::Empty { file: OLD, size_bytes: 100 };
    let acts = [found(OLD, "/data/a"), empty, write(OLD, 0..10), flush(OLD)];
    assert_eq!(ids(acts), ["only-copy-overwritten"]);
    // A file created in this run may be truncated as long as it is not durable.
    let empty = Act::Empty { file: NEW, size_bytes: 10 };
    let acts = [
        made(NEW, "/data/a"),
        write(NEW, 0..10),
        empty,
        write(NEW, 0..10),
        flush(NEW),
        flush(FOLDER),
    ];
    assert_eq!(ids(acts), [""; 0]);
}

#[test]
fn zeros_over_the_only_copy_are_judged_as_its_truncation() {
    let erase = |bytes, empties| Act::Erase { file: OLD, bytes, empties };
    let written = |erase| [found(OLD, "/data/a"), erase, write(OLD, 0..10), flush(OLD)];
    assert_eq!(ids(written(erase(0..100, true))), ["only-copy-overwritten"]);
    assert_eq!(ids(written(erase(50..100, false))), [""; 0]);
    // Without another write the old bytes may come back.
    assert_eq!(ids([found(OLD, "/data/a"), erase(50..100, false)]), ["cut-not-flushed"]);
    let flushed = [found(OLD, "/data/a"), erase(50..100, false), flush(OLD)];
    assert_eq!(ids(flushed), [""; 0]);
}

#[test]
fn removing_the_old_name_first_leaves_neither_for_a_moment() {
    let unlink = Act::Unlink { file: OLD, name: name("/data/a") };
    let mut acts = replaced_well();
    acts[4] = rename(NEW, "/data/a.tmp", "/data/a", None);
    acts.insert(4, unlink);
    assert_eq!(ids(acts), ["unlink-before-durable-name"]);
}

#[test]
fn a_file_that_is_removed_and_made_anew_has_no_copy_until_its_flush() {
    let unlink = || Act::Unlink { file: OLD, name: name("/data/a") };
    let flushes = || [flush(NEW), flush(FOLDER)];
    let anew = [found(OLD, "/data/a"), unlink(), made(NEW, "/data/a"), write(NEW, 0..10)];
    let found_first = Script::of(anew.into_iter().chain(flushes())).findings().remove(0);
    assert_eq!(found_first.id, "only-copy-overwritten");
    assert!(found_first.text.contains("replaced by a new file"), "{}", found_first.text);
    let to = "b".into();
    let symlink = Act::MadeLink { file: FileId { inode: 12, ..NEW }, name: name("/data/a"), to };
    let link = Act::Link { file: NEW, name: name("/data/a") };
    for (link, expected) in [(symlink, &["unlink-before-durable-name"][..]), (link, &[])] {
        let acts = [found(OLD, "/data/a"), found(NEW, "/data/b"), unlink(), link];
        assert_eq!(ids(acts.into_iter().chain(flushes())), expected);
    }
    // A link followed by the removal of the other name amounts to a rename.
    let link = Act::Link { file: NEW, name: name("/data/a") };
    let other = Act::Unlink { file: NEW, name: name("/data/b") };
    let acts = [found(OLD, "/data/a"), found(NEW, "/data/b"), unlink(), link, other];
    assert_eq!(ids(acts.into_iter().chain(flushes())), ["unlink-before-durable-name"]);
}

#[test]
fn zeros_alone_are_space_of_a_file_whether_it_is_new_or_not() {
    let zero = |at: u64| Act::Write {
        file: NEW,
        bytes: at..at + 1,
        asked_bytes: 1,
        how: How::default(),
        is_race: false,
        is_zeros: true,
    };
    let acts = [made(NEW, "/data/a"), zero(4095), zero(8191), zero(32767)];
    assert_eq!(ids(acts), ["size-not-flushed"]);
}

#[test]
fn a_name_that_was_never_durable_or_was_given_again_may_be_replaced() {
    let unlink = || Act::Unlink { file: OLD, name: name("/data/a") };
    let renamed = || [rename(NEW, "/data/b", "/data/a", None), flush(FOLDER)];
    for first in [
        [made(OLD, "/data/a"), found(NEW, "/data/b"), unlink(), Act::Tell],
        [found(OLD, "/data/a"), found(NEW, "/data/b"), unlink(), made(OLD, "/data/a")],
    ] {
        assert_eq!(ids(first.into_iter().chain(renamed())), [""; 0]);
    }
}

#[test]
fn a_new_file_inherits_nothing_from_the_one_that_had_its_number() {
    let short = Act::Write {
        file: OLD,
        bytes: 0..60,
        asked_bytes: 100,
        how: How::default(),
        is_race: false,
        is_zeros: false,
    };
    let again = [made(OLD, "/data/b"), write(OLD, 0..10), flush(OLD), flush(FOLDER)];
    assert_eq!(ids([found(OLD, "/data/a"), short].into_iter().chain(again)), [""; 0]);
}

#[test]
fn a_file_without_a_name_is_told_as_such() {
    let mut again = write(NEW, 0..10);
    if let Act::Write { is_race, .. } = &mut again {
        *is_race = true;
    }
    let acts = [Act::Made { file: NEW, name: None }, write(NEW, 0..10), again];
    let text = &Script::of(acts).findings()[0].text;
    assert!(text.starts_with("a file without a name (at byte 0): "), "{text}");
}

#[test]
fn a_removed_name_may_come_back_until_its_folder_is_flushed() {
    let unlink = || Act::Unlink { file: OLD, name: name("/data/a") };
    assert_eq!(ids([found(OLD, "/data/a"), unlink()]), ["unlink-not-flushed"]);
    assert_eq!(ids([found(OLD, "/data/a"), unlink(), flush(FOLDER)]), [""; 0]);
    let again = [made(NEW, "/data/a"), write(NEW, 0..1), flush(NEW), flush(FOLDER)];
    let removed = [found(OLD, "/data/a"), unlink(), flush(FOLDER)];
    assert_eq!(ids(removed.into_iter().chain(again)), [""; 0]);
}

#[test]
fn a_removed_name_comes_back_with_its_removed_folder_alone() {
    let below = FileId { device: 1, inode: 2 };
    let path = "/data/b/a";
    let in_it = Name { folder: below, path: path.into() };
    let found = Act::Found { file: OLD, name: Some(in_it.clone()), size_bytes: 100 };
    let removed = [
        found,
        Act::Unlink { file: OLD, name: in_it },
        Act::Unlink { file: below, name: name("/data/b") },
    ];
    let findings = Script::of(removed.clone()).findings();
    assert!(findings[0].text.starts_with("b: removed, "), "{findings:?}");
    assert_eq!(ids(removed.into_iter().chain([flush(FOLDER)])), [""; 0]);
}

#[test]
fn durable_bytes_that_were_cut_may_come_back_until_a_flush() {
    let resize = |to_bytes| Act::Resize { file: OLD, from_bytes: 100, to_bytes };
    assert_eq!(ids([found(OLD, "/data/a"), resize(10)]), ["cut-not-flushed"]);
    assert_eq!(ids([found(OLD, "/data/a"), resize(10), flush(OLD)]), [""; 0]);
    let cut = Act::Resize { file: NEW, from_bytes: 10, to_bytes: 0 };
    let acts = [made(NEW, "/data/b"), flush(FOLDER), write(NEW, 0..10), cut];
    assert_eq!(ids(acts), ["size-not-flushed"]);
}

#[test]
fn a_file_that_grew_after_its_flush_is_told_with_the_reason() {
    let resize = Act::Resize { file: OLD, from_bytes: 100, to_bytes: 200 };
    let findings = Script::of([found(OLD, "/data/a"), resize.clone()]).findings();
    assert_eq!((findings.len(), findings[0].severity), (1, Severity::Info));
    assert!(findings[0].text.starts_with("a: resized without data"), "{findings:?}");
    assert_eq!(ids([found(OLD, "/data/a"), resize, flush(OLD)]), [""; 0]);
}

#[test]
fn an_empty_file_and_a_lock_are_told_as_such() {
    let lock = [made(NEW, "/data/db.lock"), write(NEW, 0..5)];
    assert_eq!(ids(lock.clone()), ["lock-not-flushed"]);
    assert_eq!(ids([made(NEW, "/data/new")]), ["lock-not-flushed"]);
    assert_eq!(ids([made(NEW, "/data/new"), flush(NEW), flush(FOLDER)]), [""; 0]);
    let long = [made(NEW, "/data/Cargo.lock"), write(NEW, 0..LOCK_BYTES_MAX + 1)];
    assert_eq!(ids(long), ["never-flushed"]);
    for name in ["/data/lock.mdb", "/data/s.db-shm"] {
        assert_eq!(ids([made(NEW, name), write(NEW, 0..8192)]), ["lock-not-flushed"]);
    }
}

/// Returns the calls of an SQLite commit in its default mode.
fn committed() -> Vec<Act> {
    vec![
        found(OLD, "/data/s.db"),
        made(NEW, "/data/s.db-journal"),
        write(NEW, 0..100),
        flush(NEW),
        flush(FOLDER),
        write(OLD, 0..100),
        flush(OLD),
        Act::Unlink { file: NEW, name: name("/data/s.db-journal") },
    ]
}

#[test]
fn a_rollback_journal_that_may_return_undoes_the_commit() {
    let findings = Script::of(committed()).findings();
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding.id, "journal-may-return");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(ids(committed().into_iter().chain([flush(FOLDER)])), [""; 0]);
}

#[test]
fn a_rollback_journal_that_may_return_is_judged_at_each_answer() {
    let told = committed().into_iter().chain([Act::Tell]);
    let findings = Script::of(told.chain([flush(FOLDER)])).findings();
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding.id, "journal-may-return");
    let calls = &finding.evidence["places"][0]["calls"];
    assert_eq!((&calls[0]["call"], &calls[1]["call"]), (&"commit".into(), &"answer".into()));
    let flushed = committed().into_iter().chain([flush(FOLDER), Act::Tell]);
    assert_eq!(ids(flushed), [""; 0]);
}

#[test]
fn a_rollback_journal_that_was_cut_may_return_as_one_that_was_removed() {
    let mut cut = committed();
    *cut.last_mut().unwrap() = Act::Resize { file: NEW, from_bytes: 100, to_bytes: 0 };
    for told in [vec![], vec![Act::Tell]] {
        let findings = Script::of(cut.clone().into_iter().chain(told)).findings();
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(finding.id, "journal-may-return");
    }
    assert_eq!(ids(cut.into_iter().chain([flush(NEW), Act::Tell])), [""; 0]);
}

#[test]
fn a_removed_file_beside_an_unchanged_one_is_no_rollback_journal() {
    let unchanged = committed()
        .into_iter()
        .filter(|act| !matches!(act, Act::Write { file: OLD, .. } | Act::Flush { file: OLD, .. }));
    assert_eq!(ids(unchanged), ["unlink-not-flushed"]);
    let mut other = committed();
    other[0] = found(OLD, "/data/other");
    assert_eq!(ids(other), ["unlink-not-flushed"]);
}

#[test]
fn a_new_name_is_told_with_exactly_the_folders_to_be_flushed() {
    let [base, buffer] = [2, 3].map(|inode| FileId { device: 1, inode });
    let below = |folder, path: &str| Name { folder, path: path.into() };
    let acts = || {
        [
            Act::MadeFolder { file: base, name: name("/data/base") },
            Act::MadeFolder { file: buffer, name: below(base, "/data/base/buffer") },
            Act::Made { file: NEW, name: Some(below(buffer, "/data/base/buffer/f")) },
            write(NEW, 0..10),
            flush(NEW),
        ]
    };
    let text = |flushed: &[FileId]| {
        let acts = acts().into_iter().chain(flushed.iter().map(|folder| flush(*folder)));
        let findings = Script::of(acts).findings();
        findings.first().map_or(String::new(), |finding| finding.text.clone())
    };
    let begins = |text: String, with: &str| assert!(text.starts_with(with), "{text}");
    begins(text(&[]), "base/buffer/f (flush `.`, `base`, `base/buffer`): new");
    begins(text(&[FOLDER]), "base/buffer/f (flush `base`, `base/buffer`): new");
    begins(text(&[FOLDER, buffer]), "base/buffer/f (flush `base`): new");
    assert_eq!(text(&[FOLDER, base, buffer]), "");
}

#[test]
fn a_flushed_folder_is_not_asked_for_where_flushes_do_not_reach_the_device() {
    let storage = crate::call::Storage::default();
    let storage = Act::Storage { device: 1, storage };
    let acts = [storage, made(NEW, "/data/a"), write(NEW, 0..10), flush(NEW), flush(FOLDER)];
    assert_eq!(ids(acts), [""; 0]);
}

#[test]
fn content_that_never_was_durable_is_not_lost_by_a_rename() {
    let replaces = rename(NEW, "/data/a.tmp", "/data/a", Some(OLD));
    let new = [made(OLD, "/data/a"), write(OLD, 0..9)];
    let again = [made(NEW, "/data/a.tmp"), write(NEW, 0..10), replaces];
    let acts = new.into_iter().chain(again);
    assert_eq!(ids(acts.clone()), ["never-flushed"]);
    assert_eq!(ids(acts.chain([Act::FlushAll { device: None }])), [""; 0]);
}

#[test]
fn files_beyond_those_kept_are_counted_once_they_are_others() {
    let file = |number| FileId { device: 1, inode: 100 + number };
    let of = |number: u64| {
        let tmp = [made(file(number), "/data/tmp"), write(file(number), 0..3)];
        let replaced = Some(if number == 0 { OLD } else { file(number - 1) });
        tmp.into_iter().chain([rename(file(number), "/data/tmp", "/data/x", replaced)])
    };
    let acts = std::iter::once(found(OLD, "/data/x")).chain((0..40).flat_map(of));
    let findings = Script::of(acts).findings();
    assert!(findings[0].text.starts_with("x (3 B of tmp not flushed): replaced"), "{findings:?}");
    assert_eq!(findings[0].evidence["count"], 40);
}

#[test]
fn an_answer_is_not_of_locks_and_files_that_the_program_never_flushes_beside_others() {
    let [lock, text] = [20, 21].map(|inode| FileId { device: 1, inode });
    let begin = [
        made(lock, "/data/server.pid"),
        write(lock, 0..6),
        found(text, "/data/server.log"),
        write(text, 100..200),
        found(OLD, "/data/wal"),
    ];
    let each = |at: u64| [write(OLD, at..at + 100), flush(OLD), Act::Tell];
    let acts = || begin.clone().into_iter().chain((0..3).flat_map(|at| each(at * 100)));
    assert_eq!(ids(acts()), ["never-flushed", "lock-not-flushed"]);
    // The program does intend the text file to be safe: it flushes the file later.
    let late = acts().chain([flush(text)]);
    assert_eq!(ids(late), ["acknowledged-early", "lock-not-flushed"]);
    let nothing_saved = begin.clone().into_iter().chain([Act::Tell]);
    assert_eq!(ids(nothing_saved), ["acknowledged-early", "never-flushed", "lock-not-flushed"]);
    let grown = Act::Resize { file: OLD, from_bytes: 100, to_bytes: 200 };
    assert_eq!(ids([found(OLD, "/data/wal"), grown, Act::Tell, flush(OLD)]), [""; 0]);
}

#[test]
fn a_flush_that_failed_is_neither_repeated_nor_ignored() {
    // W2
    let failed = || Act::Flush { file: OLD, failed: Some(libc::EIO), is_data: false };
    let begin = || [found(OLD, "/data/a"), write(OLD, 0..10), failed()];
    let retried = begin().into_iter().chain([flush(OLD)]);
    assert!(ids(retried).contains(&"flush-retried".into()));
    let ignored = begin().into_iter().chain([write(OLD, 10..20)]);
    assert!(ids(ignored).contains(&"flush-error-ignored".into()));
    let repeated = begin().into_iter().chain([write(OLD, 0..10), flush(OLD)]);
    assert_eq!(ids(repeated), [""; 0]);
}

#[test]
fn the_rest_of_a_short_write_is_to_be_written() {
    let short = |bytes| Act::Write {
        file: OLD,
        bytes,
        asked_bytes: 100,
        how: How::default(),
        is_race: false,
        is_zeros: false,
    };
    let continued = [found(OLD, "/data/a"), short(0..60), write(OLD, 60..100), flush(OLD)];
    assert_eq!(ids(continued), [""; 0]);
    let left = [found(OLD, "/data/a"), short(100..160), write(OLD, 200..300), flush(OLD)];
    assert_eq!(ids(left), ["short-write-ignored"]);
}

#[test]
fn zeros_that_prepare_space_behind_records_are_not_of_the_answer() {
    let put = |bytes: Range<u64>, is_zeros: bool| {
        let asked_bytes = bytes.end - bytes.start;
        let how = How { is_durable: !is_zeros, ..How::default() };
        Act::Write { file: OLD, bytes, asked_bytes, how, is_race: false, is_zeros }
    };
    let begin = [found(OLD, "/data/wal"), put(100..5000, true)];
    let record = |at: u64| [put(at..at + 100, false), Act::Tell];
    let records = |count: u64| (1..=count).flat_map(move |at| record(at * 100));
    assert_eq!(ids(begin.clone().into_iter().chain(records(49))), [""; 0]);
    let left = begin.into_iter().chain(records(9));
    assert_eq!(ids(left), ["size-not-flushed"]);
}

#[test]
fn a_short_write_may_be_begun_anew_or_given_up() {
    let short = Act::Write {
        file: OLD,
        bytes: 100..160,
        asked_bytes: 100,
        how: How::default(),
        is_race: false,
        is_zeros: false,
    };
    let after = |acts: &[Act]| {
        let begin = [found(OLD, "/data/a"), short.clone()];
        ids(begin.into_iter().chain(acts.to_vec()).chain([flush(OLD)]))
    };
    assert_eq!(after(&[write(OLD, 100..200)]), [""; 0]);
    let cut = |to_bytes| Act::Resize { file: OLD, from_bytes: 160, to_bytes };
    assert_eq!(after(&[cut(100), write(OLD, 300..400)]), [""; 0]);
    assert_eq!(after(&[write(OLD, 0..50), write(OLD, 100..200)]), [""; 0]);
    assert_eq!(after(&[write(OLD, 0..50), write(OLD, 300..400)]), ["short-write-ignored"]);
    assert_eq!(after(&[cut(300), write(OLD, 300..400)]), ["short-write-ignored"]);
    assert_eq!(after(&[]), [""; 0]);
}

#[test]
fn direct_writes_are_not_taken_for_durable() {
    let direct = How { is_direct: true, is_durable: false, is_atomic: false };
    let write = |how| Act::Write {
        file: NEW,
        bytes: 0..4096,
        asked_bytes: 4096,
        how,
        is_race: false,
        is_zeros: false,
    };
    assert_eq!(ids([made(NEW, "/data/a"), write(direct)]), ["direct-taken-for-durable"]);
    let durable = How { is_durable: true, ..direct };
    assert_eq!(ids([made(NEW, "/data/a"), write(durable), flush(FOLDER)]), [""; 0]);
}

#[test]
fn an_answer_before_the_flush_is_told_with_how_long_it_was_early() {
    let acts = [found(OLD, "/data/a"), write(OLD, 0..10), Act::Tell, flush(OLD)];
    let findings = Script::of(acts).findings();
    assert_eq!(findings[0].id, "acknowledged-early");
    assert!(
        findings[0].text.starts_with("a (durable only 1.00 ms after the answer): "),
        "{findings:?}"
    );
    let how = How { is_direct: false, is_durable: true, is_atomic: false };
    let durable = Act::Write {
        file: OLD,
        bytes: 0..10,
        asked_bytes: 10,
        how,
        is_race: false,
        is_zeros: false,
    };
    let findings = Script::of([found(OLD, "/data/a"), write(OLD, 0..10), Act::Tell, durable]);
    let findings = findings.findings();
    assert!(
        findings[0].text.starts_with("a (durable only 1.00 ms after the answer): "),
        "{findings:?}"
    );
    let acts = [found(OLD, "/data/a"), write(OLD, 0..10), flush(OLD), Act::Tell];
    assert_eq!(ids(acts), [""; 0]);
}

#[test]
fn a_forgotten_file_is_no_part_of_the_next_one_with_its_number() {
    let mut script = Script::of([found(OLD, "/data/a"), write(OLD, 0..10), Act::Tell]);
    script.judge.forget(OLD);
    let is_early = |finding: &Finding| finding.id == "acknowledged-early";
    assert!(!script.findings().iter().any(is_early));
}

#[test]
fn the_line_of_the_last_call_that_has_one_is_told() {
    let mut script = Script::of([found(OLD, "/data/a"), write(OLD, 0..10)]);
    script.see(&Call { place: Some(7), ..Call::new(3_000_000, Act::Tell) });
    let source = &mut |place| ("rust", Some(format!("main.rs:{place}")));
    let Script { disk, accounts, judge, .. } = script;
    let findings = judge.findings(&disk, &accounts, &|_| true, Path::new("/data"), source);
    let (finding, languages) = &findings[0];
    assert!(finding.text.starts_with("a (never durable, main.rs:7): "), "{findings:?}");
    assert_eq!(finding.evidence["places"][0]["calls"][0]["place"], "main.rs:7");
    assert!(languages.iter().eq(&["rust"]), "{findings:?}");
}

#[test]
fn each_finding_has_its_code_in_each_language_once() {
    let languages = BTreeSet::from(["c", "go", "java", "js", "python", "rust", "sh"]);
    for kind in kinds::KINDS {
        let finding = Finding::new(kind.id, kind.severity, "");
        let unknown = kinds::advice(&[(finding.clone(), BTreeSet::from([""]))]);
        assert!(unknown.is_empty(), "{unknown:?}");
        let advice = kinds::advice(&[(finding, languages.clone())]);
        let found: BTreeSet<_> = advice.iter().map(|of| of.language.as_str()).collect();
        assert_eq!((&found, advice.len()), (&languages, languages.len()), "{}", kind.id);
        // A screen has 80 columns, and code is not wrapped.
        let is_narrow = |line: &str| line.len() <= 68;
        assert!(advice.iter().all(|of| of.code.lines().all(is_narrow)), "{advice:?}");
    }
}

#[test]
fn many_small_calls_are_told_as_what_they_cost() {
    let small = (0..1000).map(|at| write(OLD, at..at + 1));
    let acts = std::iter::once(found(OLD, "/data/a")).chain(small).chain([flush(OLD)]);
    assert_eq!(ids(acts), ["unbuffered"]);
    let flushed = (0..100).flat_map(|at| [write(OLD, at * 600..at * 600 + 600), flush(OLD)]);
    let acts = std::iter::once(found(OLD, "/data/a")).chain(flushed);
    assert_eq!(ids(acts), ["flush-each-small"]);
}

#[test]
fn calls_that_are_few_or_large_are_no_cost() {
    let of = |count: u64, bytes: u64| {
        let writes = (0..count).map(move |at| write(OLD, at * bytes..(at + 1) * bytes));
        std::iter::once(found(OLD, "/data/a")).chain(writes).chain([flush(OLD)])
    };
    assert_eq!(ids(of(MANY_WRITES, SMALL_WRITE_BYTES - 1)), ["unbuffered"]);
    assert_eq!(ids(of(MANY_WRITES - 1, 1)), [""; 0]);
    assert_eq!(ids(of(MANY_WRITES, SMALL_WRITE_BYTES)), [""; 0]);
    let flushed = |count: u64, bytes: u64| {
        let each = move |at| [write(OLD, at * bytes..(at + 1) * bytes), flush(OLD)];
        std::iter::once(found(OLD, "/data/a")).chain((0..count).flat_map(each))
    };
    assert_eq!(ids(flushed(MANY_FLUSHES, SMALL_FLUSH_BYTES - 1)), ["flush-each-small"]);
    assert_eq!(ids(flushed(MANY_FLUSHES - 1, 600)), [""; 0]);
    assert_eq!(ids(flushed(MANY_FLUSHES, SMALL_FLUSH_BYTES)), [""; 0]);
    assert_eq!(
        ids(std::iter::once(found(OLD, "/data/a")).chain((0..100).map(|_| flush(OLD)))),
        [""; 0]
    );
}

#[test]
fn places_beyond_the_most_are_counted_and_the_last_of_a_file_stands_for_it() {
    let file = |number| FileId { device: 1, inode: 100 + number };
    let of = |number: u64| {
        let path = format!("/data/{number:02}");
        [made(file(number), &path), write(file(number), 0..10)]
    };
    let findings = Script::of((0..25).flat_map(of)).findings();
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding.evidence["count"], 25);
    assert_eq!(finding.evidence["places"].as_array().unwrap().len(), EVIDENCE_MAX);
    let begins = "00 (10 B), 01 (10 B), 02 (10 B) and 22 more: never flushed";
    assert!(finding.text.replace(", and", " and").starts_with(begins), "{}", finding.text);
    let again = [write(OLD, 0..5), Act::Empty { file: OLD, size_bytes: 70 }, write(OLD, 0..7)];
    let empty = Act::Empty { file: OLD, size_bytes: 100 };
    let first = [found(OLD, "/data/a"), empty, write(OLD, 0..9), flush(OLD)];
    let twice = Script::of(first.into_iter().chain(again[1..].to_vec()).chain([flush(OLD)]));
    let findings = twice.findings();
    assert!(findings[0].text.starts_with("a (70 B before): "), "{findings:?}");
    assert_eq!(findings[0].evidence["count"], 2);
}

#[test]
fn a_link_after_the_flush_needs_its_folder_flushed() {
    let link = Act::Link { file: NEW, name: name("/data/b") };
    let acts = [made(NEW, "/data/a"), write(NEW, 0..10), flush(NEW), link, Act::Tell];
    let findings = Script::of(acts.clone()).findings();
    let ids_of: Vec<_> = findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids_of, ["acknowledged-early", "folder-not-flushed"]);
    assert!(findings[1].text.starts_with("b: renamed or linked"), "{findings:?}");
    let kept = acts.into_iter().filter(|act| !matches!(act, Act::Tell)).chain([flush(FOLDER)]);
    assert_eq!(ids(kept), [""; 0]);
}

#[test]
fn space_that_is_prepared_beside_a_durable_record_is_not_accused_and_zeros_that_are_all_are() {
    let zeros = |file, bytes: Range<u64>, is_direct| {
        let how = How { is_direct, is_durable: false, is_atomic: false };
        let asked_bytes = bytes.end - bytes.start;
        Act::Write { file, bytes, asked_bytes, how, is_race: false, is_zeros: true }
    };
    let record = |bytes: Range<u64>| {
        let how = How { is_direct: true, is_durable: true, is_atomic: false };
        let asked_bytes = bytes.end - bytes.start;
        Act::Write { file: OLD, bytes, asked_bytes, how, is_race: false, is_zeros: false }
    };
    for is_direct in [true, false] {
        // The next segment is created, filled and flushed while records of this one are
        // acknowledged.
        let log = [
            made(OLD, "/data/1"),
            record(0..4096),
            flush(FOLDER),
            zeros(OLD, 4096..65536, is_direct),
            Act::Tell,
            record(4096..8192),
            Act::Tell,
            made(NEW, "/data/2"),
            zeros(NEW, 0..65536, is_direct),
            Act::Tell,
            record(8192..12288),
            Act::Tell,
            flush(NEW),
            flush(FOLDER),
            flush(OLD),
        ];
        assert_eq!(ids(log), [""; 0], "{is_direct}");
        let file = [made(NEW, "/data/2"), zeros(NEW, 0..65536, is_direct), Act::Tell, flush(NEW)];
        assert_eq!(ids(file.into_iter().chain([flush(FOLDER)])), ["acknowledged-early"]);
    }
}

#[test]
fn the_record_that_another_thread_writes_next_is_no_part_of_an_answer() {
    let ids = |acts: Vec<(u32, Act)>| {
        let mut script = Script::default();
        for (task, act) in acts {
            script.at_ns += 1_000_000;
            script.see(&Call { task, ..Call::new(script.at_ns, act) });
        }
        script.findings().into_iter().map(|finding| finding.id).collect::<Vec<_>>()
    };
    let begun = || vec![(1, made(OLD, "/data/a")), (1, write(OLD, 0..10))];
    let flushed = || [(1, flush(OLD)), (1, flush(FOLDER))];
    let answered = |by: u32| {
        let next = [(1, write(OLD, 10..20)), (by, Act::Tell), (1, flush(OLD))];
        ids(begun().into_iter().chain(flushed()).chain(next).collect())
    };
    assert_eq!(answered(2), [""; 0]);
    assert_eq!(answered(1), ["acknowledged-early"]);
    // The answer cannot refer to any other file.
    let first = begun().into_iter().chain([(2, Act::Tell)]).chain(flushed());
    assert_eq!(ids(first.collect()), ["acknowledged-early"]);
}

#[test]
fn files_in_memory_are_not_judged() {
    let storage = crate::call::Storage { is_in_memory: true, ..Default::default() };
    let mut acts = replaced_well();
    acts.remove(3);
    acts.insert(0, Act::Storage { device: 1, storage });
    assert_eq!(ids(acts), [""; 0]);
}

#[test]
fn the_kinds_are_sorted_by_their_weight() {
    assert!(kinds::KINDS.is_sorted_by_key(|kind| std::cmp::Reverse(kind.severity)));
}

#[test]
fn the_page_has_a_section_of_each_kind_in_their_order() {
    let page = include_str!("../../../../docs/trace-findings.md");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let ids: Vec<&str> = kinds::KINDS.iter().map(|kind| kind.id).collect();
    assert_eq!(sections, ids);
}
