//! The answers: the fastest way that is never torn, and what it costs.

use super::{Atomic, CLIENTS, DoubleWrite, Image, Kind, NewPlace, Page, Plain, SIZES_BYTES, WAYS};
use itertools::Itertools;
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Answer, Row, Torn, fastest};
use wrote_result::units;

/// The ways that are never torn, by their effort: a flag, a second write, a log that is replayed, a
/// tree that points to places.
const SAFE: [Kind; 4] = [Atomic, DoubleWrite, Image, NewPlace];

/// Answers for each number of clients, for the most common of the sizes that were measured.
pub(super) fn answers(evidence: &Evidence) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    for clients in CLIENTS {
        let is_first = answers.is_empty();
        let of = |bytes: &u64| answer(evidence, *bytes, clients, is_first);
        answers.extend(SIZES_BYTES.iter().find_map(of));
    }
    answers
}

/// Returns the answer for pages of a size. The first one says why there are no atomic writes.
fn answer(evidence: &Evidence, bytes: u64, clients: u32, is_first: bool) -> Option<Answer> {
    let row = |kind: Kind| {
        let way = WAYS.iter().find(|way| way.kind == kind)?;
        let name = Page { way, bytes, clients }.name();
        Some((way.words, evidence.rows.iter().find(|row| row.name == name)?))
    };
    let safe: Vec<(&str, &Row)> = SAFE.into_iter().filter_map(row).collect();
    let safe = safe.into_iter().filter(|(_, row)| row.torn == Some(Torn::Never));
    let best = fastest(safe.clone().map(|(_, row)| row))?;
    let is_best = |row: &Row| row.name == best.name || row.is_tied_with(best);
    let mut level = safe.filter(|(_, row)| is_best(row));
    let (how, chosen) = level.next()?;
    let others = level.map(|(words, _)| words).join(", ");
    let tied = (!others.is_empty()).then(|| format!("no difference found from {others}"));
    let beside = |words: &str, row: &Row, other: &Row| match row.is_tied_with(other) {
        true => format!("{words}no difference found from"),
        false => format!("{words}{} times", row.times(other)),
    };
    let plain = row(Plain).map(|(_, plain)| {
        let (figure, unit) = units::alike(&[plain.iops()], &units::COUNTS);
        let (beside, figure) = (beside("", chosen, plain), &figure[0]);
        format!("{beside} a plain write ({figure} {unit}), which a power loss may tear")
    });
    let atomic = row(Atomic).zip(row(DoubleWrite));
    // Where both are as fast as the fastest, the first sentence says so.
    let atomic = atomic.filter(|((_, atomic), (_, double))| !is_best(atomic) || !is_best(double));
    let atomic = atomic.map(|((words, atomic), (_, double))| {
        format!("{} a double write", beside(&format!("{words}: "), atomic, double))
    });
    let way = WAYS.iter().find(|way| way.kind == Atomic)?;
    let name = Page { way, bytes, clients }.name();
    let is_why = |(row, because): &&(String, String)| *row == name && because.contains("atomic");
    let because = evidence.left_out.iter().filter(|_| is_first).find(is_why);
    let because = because.map(|(_, because)| because.clone());
    let all = tied.into_iter().chain(plain).chain(atomic).chain(because);
    let note = sentences(all).map(|note| note + ".");
    let clients = units::counted(clients.into(), "client");
    Some(Answer {
        question: format!("Never torn, {}, {clients}", units::block_size(bytes)),
        row: chosen.name.clone(),
        how: how.into(),
        note,
        ..Answer::default()
    })
}

/// Joins sentences, which begin small; `None` without one.
fn sentences(all: impl Iterator<Item = String>) -> Option<String> {
    let capital = |text: String| text[..1].to_ascii_uppercase() + &text[1..];
    all.reduce(|text, next| format!("{text}. {}", capital(next)))
}
