//! Advice on saving a small file.

#[cfg(test)]
mod examples;

use crate::choice::body_of;
use crate::scenarios::latency::{Kind, State, way_of};
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Advice, Answer, CrashLeaves, Row, fastest};
use wrote_result::recipes;
use wrote_result::units::{block_size, nanoseconds, significant};

const EXAMPLES: &str = include_str!("advice/examples.rs");
/// The chapter with the code in all languages.
const RECIPE: &str = "Replacing a file";

/// A method that never loses a text.
struct Advised {
    kind: Kind,
    action: &'static str,
    /// A short description of the method.
    how: &'static str,
}

const WAYS: [Advised; 2] = [
    Advised { kind: Kind::WroteWrite, action: "Save it by wrote::write", how: "wrote::write" },
    Advised {
        kind: Kind::RenameFsync,
        action: "Write a file beside it, fsync that, rename it over the old one, fsync the folder",
        how: "fsync, rename, fsync",
    },
];

/// Recommends the cheapest method that survives a power loss and leaves either the old or the new
/// text, and names what cheaper methods may leave. Uses the first workload that has such a method;
/// existing files come before new ones. `None` if no workload has one.
pub(crate) fn advise(evidence: &Evidence) -> Option<Advice> {
    let workload = workloads(evidence).into_iter().find(|rows| choose(rows).is_some())?;
    let row = choose(&workload)?;
    let Advised { action, kind, .. } = advised(row)?;
    let mut because = format!("{}: {}", row.name, told(row));
    let next = workload.iter().filter(|other| other.name != row.name && is_safe(other));
    if let Some(next) = fastest(next.copied()) {
        because += &match row.is_tied_with(next) {
            true => format!(", with no difference found from {} ({})", next.name, told(next)),
            false => format!("; {}: {}", next.name, told(next)),
        };
    }
    if let Some(cheaper) = cheaper(&workload, row) {
        because += &format!(
            ". {} takes {} and survives a power loss once it is done, but a crash in the middle \
             may {}",
            cheaper.name,
            p50(cheaper),
            may_leave(cheaper),
        );
    }
    if let Some(unsynced) = workload.iter().find(|row| is_of(row, Kind::FsWrite)) {
        because += &format!(
            ". {} takes {} ({}), but does not survive a power loss",
            unsynced.name,
            p50(unsynced),
            faster(unsynced, row),
        );
    }
    Some(Advice {
        purpose: "saving a small file".into(),
        action: (*action).into(),
        because,
        with_wrote: (*kind == Kind::WroteWrite).then(|| body_of(EXAMPLES, "wrote_write")),
        code: recipes::code(RECIPE, "rust"),
        recipe: Some(RECIPE.into()),
        ..Advice::default()
    })
}

/// Answers how long three kinds of save take: the recommended one, a durable append, and a save
/// that may be lost.
pub(crate) fn answers(evidence: &Evidence) -> Vec<Answer> {
    let workloads = workloads(evidence);
    let Some(rows) = workloads.iter().find(|rows| choose(rows).is_some()).or(workloads.first())
    else {
        return Vec::new();
    };
    let of = |kind| rows.iter().copied().find(|row| is_of(row, kind));
    let advised = choose(rows).and_then(|row| Some(("Durable save", row, advised(row)?.how)));
    let append = of(Kind::AppendFdatasync).filter(|row| row.is_durable());
    let append = append.map(|row| ("Durable append", row, "write, fdatasync"));
    let lost = of(Kind::FsWrite).map(|row| ("Save, may be lost", row, "fs::write"));
    let answer = |(question, row, how): (&str, &Row, &str)| Answer {
        question: format!("{question}, {}", block_size(row.settings.effective.bs_bytes)),
        row: row.name.clone(),
        how: how.into(),
        ..Answer::default()
    };
    advised.into_iter().chain(append).chain(lost).map(answer).collect()
}

/// Returns the rows of each workload of saves, those with an existing file first.
fn workloads<'a>(evidence: &Evidence<'a>) -> Vec<Vec<&'a Row>> {
    let mut workloads: Vec<(State, Vec<&Row>)> = Vec::new();
    for row in evidence.rows {
        let Some((state, _)) = way_of(row) else { continue };
        match workloads.iter_mut().find(|(_, rows)| rows[0].workload == row.workload) {
            Some((_, rows)) => rows.push(row),
            None => workloads.push((state, vec![row])),
        }
    }
    workloads.sort_by_key(|(state, _)| *state == State::New);
    workloads.into_iter().map(|(_, rows)| rows).collect()
}

/// Returns the row of the cheapest safe method; `None` if there is none. `wrote::write` is
/// preferred if it shows no measurable difference from that method: it is a single call that also
/// keeps permissions and owner.
fn choose<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let safe = || rows.iter().copied().filter(|row| is_safe(row));
    let fastest = fastest(safe())?;
    let ours = safe().find(|row| is_of(row, Kind::WroteWrite));
    Some(ours.filter(|ours| ours.is_tied_with(fastest)).unwrap_or(fastest))
}

/// Returns the fastest method that is durable but not crash-safe, if it is clearly faster than
/// `row`.
fn cheaper<'a>(rows: &[&'a Row], row: &Row) -> Option<&'a Row> {
    let unsafe_ones = rows.iter().copied().filter(|other| other.is_durable() && !is_safe(other));
    // An append adds to the content, so it is not an alternative.
    let same = unsafe_ones.filter(|other| !is_of(other, Kind::AppendFdatasync));
    fastest(same).filter(|other| latency_p50(other) < latency_p50(row) && !other.is_tied_with(row))
}

fn is_of(row: &Row, kind: Kind) -> bool {
    way_of(row).is_some_and(|(_, way)| way.kind == kind)
}

/// Returns whether the row survives a power loss, and a crash during a save leaves the old or the
/// new text.
fn is_safe(row: &Row) -> bool {
    let whole = row.crash_leaves == Some(CrashLeaves::OldOrNew);
    whole && row.is_durable() && advised(row).is_some()
}

fn advised(row: &Row) -> Option<&'static Advised> {
    WAYS.iter().find(|way| is_of(row, way.kind))
}

fn may_leave(row: &Row) -> &'static str {
    match row.crash_leaves {
        Some(CrashLeaves::Torn) => "leave some of both texts",
        _ => "leave an empty file",
    }
}

fn latency_p50(row: &Row) -> u64 {
    row.latency_ns.map_or(0, |of| of.p50)
}

fn p50(row: &Row) -> String {
    nanoseconds(latency_p50(row))
}

/// Returns text such as `P50 1.20 ms, P99 3.40 ms`, without the P99 if there were too few saves for
/// one.
fn told(row: &Row) -> String {
    match row.latency_ns.and_then(|of| of.known_p99()) {
        Some(p99) => format!("P50 {}, P99 {}", p50(row), nanoseconds(p99)),
        None => format!("P50 {}", p50(row)),
    }
}

/// Returns text such as `4.3 times faster`, based on the median latencies.
fn faster(row: &Row, than: &Row) -> String {
    let times = latency_p50(than) as f64 / (latency_p50(row) as f64).max(1.0);
    format!("{} times faster", significant(times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{evidence, saved, target};
    use std::fs;
    use wrote_result::document::Survives;

    fn advice(rows: &[Row]) -> Option<Advice> {
        advise(&evidence(&target(), rows))
    }

    fn unsynced(name: &str, p50_ns: u64) -> Row {
        Row { survives: Some(Survives::ProcessCrash), ..saved(name, p50_ns) }
    }

    #[test]
    fn the_cheapest_that_survives_and_is_whole_is_advised_with_what_the_cheaper_ones_leave() {
        let rows = [
            saved("latency/new-500/wrote-write", 9_000_000),
            unsynced("latency/existing-500/fs-write", 20_000),
            saved("latency/existing-500/fs-write-fsync", 900_000),
            saved("latency/existing-500/append-fdatasync", 100_000),
            saved("latency/existing-500/wrote-write", 1_000_000),
            saved("latency/existing-500/rename-fsync", 2_000_000),
        ];
        let advice = advice(&rows).unwrap();
        assert_eq!(
            advice.because,
            "latency/existing-500/wrote-write: P50 1.00 ms, P99 2.00 ms; \
             latency/existing-500/rename-fsync: P50 2.00 ms, P99 4.00 ms. \
             latency/existing-500/fs-write-fsync takes 900 us and survives a power loss once it is \
             done, but a crash in the middle may leave an empty file. \
             latency/existing-500/fs-write takes 20.0 us (50.0 times faster), but does not survive \
             a power loss"
        );
        assert!(advice.with_wrote.unwrap().ends_with("wrote::write(path, text)?;"));
        assert!(advice.code.contains("std::fs::rename(&next, path)"));
        let answer = answers(&evidence(&target(), &rows)).remove(0);
        assert_eq!((&*answer.row, &*answer.how), (&*rows[4].name, "wrote::write"));
    }

    #[test]
    fn a_way_of_ours_that_does_not_win_is_not_advised_unless_it_is_tied() {
        // M8
        let of = |rename_ns| {
            advice(&[
                saved("latency/existing-500/wrote-write", 2_000_000),
                saved("latency/existing-500/rename-fsync", rename_ns),
            ])
            .unwrap()
        };
        assert!(of(1_000_000).action.starts_with("Write a file beside it"));
        let tied = of(1_990_000);
        assert!(tied.action.ends_with("wrote::write"), "{tied:?}");
        assert!(tied.because.contains("no difference found"), "{tied:?}");
    }

    #[test]
    fn a_save_that_loses_a_text_is_never_advised() {
        let rows = [
            saved("latency/existing-500/fs-write-fsync", 900_000),
            saved("latency/existing-500/o_dsync", 800_000),
            unsynced("latency/existing-500/rename", 20_000),
        ];
        assert!(advice(&rows).is_none());
        // If no flush reaches the device, not even `wrote::write` survives a power loss.
        assert!(advice(&[unsynced("latency/new-500/wrote-write", 1)]).is_none());
    }

    #[test]
    fn the_lines_that_are_shown_save_the_text() {
        let folder = fixtures::folder();
        let path = folder.path().join("file");
        examples::wrote_write(&path, "one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert!(body_of(EXAMPLES, "wrote_write").contains("?;"));
    }
}
