//! The answers: the fastest way that is never torn, and what it costs.

use super::{
    ATOMIC, Atomic, CLIENTS, DoubleWrite, Image, Kind, NewPlace, Page, Plain, SIZES_BYTES, WAYS,
};
use crate::choice::per_s;
use itertools::Itertools;
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Answer, Row, Torn, fastest};
use wrote_result::units;

/// The ways that are never torn, by their effort: a flag, a second write, a log that is replayed, a
/// tree that points to places.
const SAFE: [Kind; 4] = [Atomic, DoubleWrite, Image, NewPlace];

/// Answers for each number of clients, for the most common of the sizes that were measured.
pub(super) fn answers(evidence: &Evidence) -> Vec<Answer> {
    let of = |clients| SIZES_BYTES.iter().find_map(|bytes| answer(evidence, *bytes, clients));
    let mut answers: Vec<Answer> = CLIENTS.into_iter().filter_map(of).collect();
    let is_atomic = |(row, _): &&(String, String)| row.starts_with(ATOMIC);
    let because = evidence.left_out.iter().find(is_atomic).map(|(_, because)| because);
    if let (Some(because), Some(first)) = (because, answers.first_mut()) {
        let sentence = format!("{}.", capital(because));
        first.note = Some(first.note.take().into_iter().chain([sentence]).join(" "));
    }
    answers
}

fn answer(evidence: &Evidence, bytes: u64, clients: u32) -> Option<Answer> {
    let row = |kind: Kind| {
        let way = WAYS.iter().find(|way| way.kind == kind)?;
        let name = Page { way, bytes, clients }.name();
        Some((way.head, evidence.rows.iter().find(|row| row.name == name)?))
    };
    let safe: Vec<(&str, &Row)> = SAFE.into_iter().filter_map(row).collect();
    let safe = safe.into_iter().filter(|(_, row)| row.torn == Some(Torn::Never));
    let best = fastest(safe.clone().map(|(_, row)| row))?;
    let is_best = |row: &Row| row.name == best.name || row.is_tied_with(best);
    let mut level = safe.filter(|(_, row)| is_best(row));
    let (how, chosen) = level.next()?;
    let others = level.map(|(head, _)| head).join(", ");
    let tied = (!others.is_empty()).then(|| format!("No difference found from {others}."));
    let plain = row(Plain).map(|(_, plain)| {
        let times = match chosen.is_tied_with(plain) {
            true => "No difference found from".to_owned(),
            false => format!("{} times", capital(&chosen.times(plain))),
        };
        format!("{times} a plain write ({} /s), which a power loss may tear.", per_s(plain))
    });
    let atomic = row(Atomic).zip(row(DoubleWrite)).map(|((_, atomic), (_, double))| {
        match atomic.is_tied_with(double) {
            true => "RWF_ATOMIC: no difference found from a double write.".to_owned(),
            false => format!("RWF_ATOMIC: {} times a double write.", atomic.times(double)),
        }
    });
    let sentences: Vec<String> = tied.into_iter().chain(plain).chain(atomic).collect();
    let clients = units::counted(clients.into(), "client");
    Some(Answer {
        question: format!("Never torn, {}, {clients}", units::block_size(bytes)),
        row: chosen.name.clone(),
        how: how.into(),
        note: (!sentences.is_empty()).then(|| sentences.join(" ")),
        ..Answer::default()
    })
}

/// Returns the text as the beginning of a sentence.
fn capital(text: &str) -> String {
    text[..1].to_ascii_uppercase() + &text[1..]
}
