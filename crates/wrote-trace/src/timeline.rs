//! The calls on each file over time, in a bounded number of spans.

use crate::call::{Act, Call, FileId, Name};
use crate::disk::{Disk, Promise};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use wrote::Survives;
use wrote_result::trace::{CallKind, Calls, Lane, Timeline};

/// The maximum number of spans of each kind per file.
const SPANS_MAX: u64 = 128;
/// The maximum number of spans of all files together; a span takes 40 bytes. 1,365 files that are
/// continuously created, written and flushed reach it; with more files, spans become longer.
const SPANS_IN_ALL_MAX: usize = 1 << 19;
/// The number of spans per file that are allowed in any case, on average.
const SPANS_MEAN: usize = 16;
/// The maximum number of files in a timeline.
const FILES_MAX: usize = 16;
/// The maximum number of removed files whose calls are kept, because journals return under the same
/// names.
const REMOVED_MAX: usize = 256;
/// The binary logarithm of the shortest span, in nanoseconds.
const SHORTEST_SPAN: u32 = 10;

/// Collects the calls on each file. In a long run, calls that are close together share a span.
#[derive(Debug, Default)]
pub struct Timelines {
    clock: Clock,
    answers: Spans,
    files: HashMap<FileId, Spans>,
    removed: HashMap<PathBuf, Spans>,
    /// The number of removed files whose calls were not kept.
    forgotten: u64,
    /// The number of spans at the last count, plus those added since.
    spans: usize,
}

/// Divides the time after the first call into equal parts.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    first_ns: Option<u64>,
    /// The length of a part, as the number of times that the shortest length was doubled.
    doublings: u32,
}

/// The spans, ordered by part, and by kind within a part.
type Spans = Vec<Span>;

#[derive(Clone, Copy, Debug)]
struct Span {
    kind: CallKind,
    count: u64,
    bytes: u64,
    from_ns: u64,
    to_ns: u64,
}

impl Clock {
    fn part(self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.first_ns.unwrap_or(0)) >> (SHORTEST_SPAN + self.doublings)
    }

    /// Adds a span of one or more calls. Returns `false` if it was merged with an existing span.
    fn add(self, spans: &mut Spans, span: Span) -> bool {
        let key = |span: &Span| (self.part(span.from_ns), span.kind);
        let at = spans.partition_point(|other| key(other) < key(&span));
        match spans.get_mut(at) {
            Some(same) if key(same) == key(&span) => {
                same.count += span.count;
                same.bytes += span.bytes;
                same.from_ns = same.from_ns.min(span.from_ns);
                same.to_ns = same.to_ns.max(span.to_ns);
                false
            }
            _ => {
                // Most files have few spans, and there may be many files.
                spans.reserve_exact(usize::from(spans.len() < 4));
                spans.insert(at, span);
                true
            }
        }
    }

    fn merge(self, into: &mut Spans, from: Spans) {
        for span in from {
            self.add(into, span);
        }
    }
}

impl Timelines {
    /// Adds a call. `disk` must not have processed it yet.
    pub fn see(&mut self, disk: &Disk, call: &Call) {
        match &call.act {
            Act::Made { file, name } => {
                let before = name.as_ref().and_then(|name| self.removed.remove(&name.path));
                self.files.insert(*file, before.unwrap_or_default());
                self.add(*file, call, CallKind::Make, 0);
            }
            // The inode may have belonged to a removed file.
            Act::MadeFolder { file, .. } | Act::MadeLink { file, .. } => {
                drop(self.files.remove(file))
            }
            Act::Write { file, bytes, how, .. } => {
                self.add(*file, call, CallKind::Write, bytes.end - bytes.start);
                if how.is_durable {
                    self.add(*file, call, CallKind::Flush, 0);
                }
            }
            Act::Empty { file, .. }
            | Act::Resize { file, .. }
            | Act::Erase { file, .. }
            | Act::Shift { file, .. } => {
                self.add(*file, call, CallKind::Resize, 0);
            }
            Act::Flush { file, failed: Some(_), .. } => {
                self.add(*file, call, CallKind::FailedFlush, 0);
            }
            Act::Flush { file, failed: None, .. } => {
                for named in disk.unflushed_names(*file) {
                    self.add(named, call, CallKind::FlushFolder, 0);
                }
                if self.files.contains_key(file) {
                    self.add(*file, call, CallKind::Flush, 0);
                }
            }
            Act::FlushAll { device } => {
                let is_meant = |file: &&FileId| device.is_none_or(|device| device == file.device);
                let meant: Vec<_> = self.files.keys().filter(is_meant).copied().collect();
                meant.into_iter().for_each(|file| self.add(file, call, CallKind::Flush, 0));
            }
            Act::Rename { file, to, replaced, .. } => {
                let replaced = replaced.filter(|replaced| replaced != file);
                let before = [
                    replaced.and_then(|replaced| self.files.remove(&replaced)),
                    self.removed.remove(&to.path),
                ];
                let spans = self.files.entry(*file).or_default();
                let before = before.into_iter().flatten();
                before.for_each(|before| self.clock.merge(spans, before));
                self.add(*file, call, CallKind::Rename, 0);
            }
            Act::Exchange { one: (one, _), other: (other, _) } => {
                self.add(*one, call, CallKind::Rename, 0);
                self.add(*other, call, CallKind::Rename, 0);
            }
            Act::Link { file, .. } => self.add(*file, call, CallKind::Link, 0),
            Act::Unlink { file, name } => self.unlink(disk, *file, name, call),
            Act::Tell => {
                let span = self.span(call, CallKind::Answer, 0);
                self.clock.add(&mut self.answers, span);
            }
            Act::FlushRange { file, .. } => self.add(*file, call, CallKind::Flush, 0),
            Act::Storage { .. }
            | Act::Found { .. }
            | Act::Map { .. }
            | Act::Before { .. }
            | Act::Cover { .. } => {}
        }
    }

    fn unlink(&mut self, disk: &Disk, file: FileId, name: &Name, call: &Call) {
        self.add(file, call, CallKind::Unlink, 0);
        if disk.is_last_name(file, name) {
            let spans = self.files.remove(&file).unwrap_or_default();
            match self.removed.len() {
                ..REMOVED_MAX => drop(self.removed.insert(name.path.clone(), spans)),
                _ => self.forgotten += 1,
            }
        }
    }

    fn add(&mut self, file: FileId, call: &Call, kind: CallKind, bytes: u64) {
        let span = self.span(call, kind, bytes);
        self.spans += usize::from(self.clock.add(self.files.entry(file).or_default(), span));
        let files = self.files.len() + self.removed.len();
        let most = SPANS_IN_ALL_MAX.max(SPANS_MEAN * files);
        if self.spans > most {
            self.count();
            // The spans are reduced to half the maximum, so that counting stays rare.
            while self.spans > most / 2 && self.clock.doublings < u64::BITS - SHORTEST_SPAN - 1 {
                self.clock.doublings += 1;
                self.merge_parts();
                self.count();
            }
        }
    }

    fn count(&mut self) {
        self.spans = self.files.values().chain(self.removed.values()).map(Vec::len).sum();
    }

    fn merge_parts(&mut self) {
        let lanes = self.files.values_mut().chain(self.removed.values_mut());
        for spans in lanes.chain([&mut self.answers]) {
            let before = std::mem::take(spans);
            self.clock.merge(spans, before);
        }
    }

    /// Forgets the calls on a removed file that were made after its removal.
    pub fn forget(&mut self, file: FileId) {
        self.files.remove(&file);
    }

    /// Returns the span of one call. If the call lies beyond the last part, makes all parts longer.
    fn span(&mut self, call: &Call, kind: CallKind, bytes: u64) -> Span {
        self.clock.first_ns.get_or_insert(call.at_ns);
        let doublings = self.clock.doublings;
        while self.clock.part(call.at_ns) >= SPANS_MAX {
            self.clock.doublings += 1;
        }
        if self.clock.doublings > doublings {
            self.merge_parts();
        }
        Span { kind, count: 1, bytes, from_ns: call.at_ns, to_ns: call.at_ns + call.took_ns }
    }

    /// Returns the timeline of the files for which `is_meant` holds. The least safe existing files
    /// with the most calls are preferred, then removed files.
    pub fn document(self, disk: &Disk, is_meant: &dyn Fn(&Path) -> bool) -> Timeline {
        let there = self.files.into_iter().filter_map(|(file, spans)| {
            let known = disk.file(file)?;
            let survives = disk.survives(file, Promise::Seen);
            Some((known.is_removed, survives, disk.path(file), spans))
        });
        let removed = self.removed.into_iter();
        let removed = removed.map(|(path, spans)| (true, Survives::PowerLoss, path, spans));
        let mut lanes: Vec<_> = there.chain(removed).filter(|lane| is_meant(&lane.2)).collect();
        let calls_of = |spans: &Spans| spans.iter().map(|span| span.count).sum::<u64>();
        let by_use = |spans: &Spans, others: &Spans| calls_of(others).cmp(&calls_of(spans));
        lanes.sort_by(|one, other| {
            let by_safety = (one.0, one.1).cmp(&(other.0, other.1));
            by_safety.then_with(|| by_use(&one.3, &other.3)).then_with(|| one.2.cmp(&other.2))
        });
        let more_files = self.forgotten + lanes.len().saturating_sub(FILES_MAX) as u64;
        lanes.truncate(FILES_MAX);
        lanes.sort_by_key(|(.., spans)| spans.first().map(|span| span.from_ns));
        let lane = |(is_removed, _, path, spans): (bool, _, PathBuf, Spans)| Lane {
            path: path.to_string_lossy().into_owned(),
            is_removed,
            calls: calls(spans),
        };
        Timeline {
            answers: calls(self.answers),
            files: lanes.into_iter().map(lane).collect(),
            more_files,
        }
    }
}

fn calls(spans: Spans) -> Vec<Calls> {
    let shown = |Span { kind, count, bytes, from_ns, to_ns }| Calls {
        kind,
        count,
        bytes,
        from_s: from_ns as f64 / 1e9,
        to_s: to_ns as f64 / 1e9,
    };
    spans.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::How;

    const FOLDER: FileId = FileId { device: 1, inode: 1 };

    fn file(inode: u64) -> FileId {
        FileId { device: 1, inode }
    }

    fn name(path: &str) -> Name {
        Name { folder: FOLDER, path: path.into() }
    }

    fn write(inode: u64) -> Act {
        let (bytes, how) = (0..10, How::default());
        Act::Write {
            file: file(inode),
            bytes,
            asked_bytes: 10,
            how,
            is_race: false,
            is_zeros: false,
        }
    }

    fn made(inode: u64, path: &str) -> Act {
        Act::Made { file: file(inode), name: Some(name(path)) }
    }

    /// Returns the timeline of calls, each with its time in microseconds.
    fn timeline(acts: impl IntoIterator<Item = (u64, Act)>) -> Timeline {
        let (mut disk, mut timelines) = (Disk::default(), Timelines::default());
        for (at_us, act) in acts {
            let call = Call::new(at_us * 1000, act);
            timelines.see(&disk, &call);
            disk.see(&call);
        }
        timelines.document(&disk, &|_| true)
    }

    fn kinds(lane: &Lane) -> Vec<(CallKind, u64)> {
        lane.calls.iter().map(|calls| (calls.kind, calls.count)).collect()
    }

    #[test]
    fn saves_of_one_file_by_rename_are_one_lane_with_the_flushes_of_its_folder() {
        let save = |at: u64, inode: u64, replaced: Option<u64>| {
            let rename = Act::Rename {
                file: file(inode),
                from: name("/t"),
                to: name("/a"),
                replaced: replaced.map(file),
            };
            let flush = |file: FileId| Act::Flush { file, failed: None, is_data: false };
            [
                (at, made(inode, "/t")),
                (at + 20, write(inode)),
                (at + 40, flush(file(inode))),
                (at + 60, rename),
                (at + 80, flush(FOLDER)),
            ]
        };
        let one = timeline(save(10, 2, None).into_iter().chain(save(110, 3, Some(2))));
        let [lane] = one.files.as_slice() else { panic!("{one:?}") };
        assert_eq!(lane.path, "/a");
        use CallKind::{Flush, FlushFolder, Make, Rename, Write};
        let save = [(Make, 1), (Write, 1), (Flush, 1), (Rename, 1), (FlushFolder, 1)];
        assert_eq!(kinds(lane), save.repeat(2));
    }

    #[test]
    fn a_long_run_has_a_bounded_number_of_spans_and_loses_no_call() {
        const CALLS: u64 = 20_000;
        let writes = (0..CALLS).map(|number| (number * 37, write(2)));
        let journal = (0..CALLS).flat_map(|number| {
            let unlink = Act::Unlink { file: file(3), name: name("/j") };
            [(number * 37 + 1, made(3, "/j")), (number * 37 + 2, unlink)]
        });
        let mut acts: Vec<_> = [(0, made(2, "/a"))].into_iter().chain(writes).collect();
        acts.extend(journal);
        acts.sort_by_key(|(at, _)| *at);
        let timeline = timeline(acts);
        let [file, journal] = timeline.files.as_slice() else { panic!("{timeline:?}") };
        assert!(file.calls.len() <= SPANS_MAX as usize + 1, "{}", file.calls.len());
        assert!(file.calls.len() >= SPANS_MAX as usize / 2, "{}", file.calls.len());
        let all = |kind: CallKind, lane: &Lane| {
            let of = lane.calls.iter().filter(|calls| calls.kind == kind);
            of.fold((0, 0), |all, of| (all.0 + of.count, all.1 + of.bytes))
        };
        assert_eq!(all(CallKind::Write, file), (CALLS, 10 * CALLS));
        assert_eq!(all(CallKind::Unlink, journal), (CALLS, 0));
        assert!(journal.is_removed && !file.is_removed);
    }

    #[test]
    fn the_spans_of_all_files_are_bounded_and_lose_no_call() {
        const FILES: u64 = 10_000;
        const ROUNDS: u64 = 100;
        let (disk, mut timelines) = (Disk::default(), Timelines::default());
        for round in 0..ROUNDS {
            for number in 0..FILES {
                let at_ns = (round * FILES + number) * 1000;
                timelines.see(&disk, &Call::new(at_ns, write(number)));
            }
        }
        timelines.count();
        assert!(timelines.spans <= SPANS_IN_ALL_MAX, "{}", timelines.spans);
        for spans in timelines.files.values() {
            assert_eq!(spans.iter().map(|span| span.count).sum::<u64>(), ROUNDS);
            assert!(spans.len() >= 16, "{}", spans.len());
            assert!(spans.capacity() <= 2 * spans.len(), "{}", spans.capacity());
        }
    }

    #[test]
    fn files_beyond_the_most_are_counted() {
        let acts = (0..1000).flat_map(|number| {
            let path = format!("/{number}");
            let unlink = Act::Unlink { file: file(number), name: name(&path) };
            [(number * 10, made(number, &path)), (number * 10 + 5, unlink)]
        });
        let timeline = timeline(acts);
        assert_eq!(timeline.files.len() as u64 + timeline.more_files, 1000);
        assert_eq!(timeline.files.len(), FILES_MAX);
    }
}
