//! The result document of jobs that several ranks ran at once.

use super::merge::{Facts, merged};
use super::{About, Before, JobFile, Repeated, document, evidence, row};
use crate::findings::{self, Sharing, User, Whole};
use crate::jobs::{JobReport, span_s};
use crate::peers::Peers;
use wrote_result::Error;
use wrote_result::document::{Document, RankFiles, Row};

/// The settings of the ranks.
#[derive(Clone, Copy, Debug)]
pub struct RankFacts {
    /// Their files.
    pub files: RankFiles,
    /// By how many ranks reads are shifted.
    pub reorder: Option<u32>,
    /// Each rank was given its own path.
    pub own_paths: bool,
}

/// Returns the document of all ranks on rank 0, and a document of the rank's own jobs elsewhere.
///
/// # Errors
///
/// As [`Peers::meet`], and [`Error::Failed`] where the ranks ran different jobs.
pub fn document_of_ranks(
    files: &[JobFile],
    before: &Before,
    about: &About,
    peers: &dyn Peers,
    ranks: &RankFacts,
) -> Result<Document, Error> {
    let own = document(files, before, about);
    let ahead_s = peers.places().offset_s(peers.rank());
    let device = before.device().map(str::to_owned);
    let rows = own.scenarios.iter().flat_map(|scenario| &scenario.rows);
    let jobs = files.iter().flat_map(|file| file.groups).flat_map(row::jobs_of_rows);
    let facts = |((jobs, _), row): ((&[JobReport], _), &Row)| {
        let (began_s, ended_s) = span_s(jobs);
        Facts {
            run: Repeated::of_row(row.clone(), jobs).without_texts(),
            parts: vec![(began_s - ahead_s, ended_s - ahead_s)],
            device: device.clone().unwrap_or_default(),
        }
    };
    let facts: Vec<Facts> = jobs.zip(rows).map(facts).collect();
    let user = User { path: own.target.path.clone(), device: device.clone() };
    let users = peers.gather("the devices", user)?;
    let all = peers.gather("the rows", facts)?;
    let mut found = peers.gather("the findings", own.findings.clone())?;
    if !peers.is_first() {
        return Ok(own);
    }
    let mut together = own;
    merge_rows(&mut together, all, peers)?;
    let shown = peers.places().shown(ranks.files, ranks.reorder);
    together.ranks = Some(shown.clone());
    let rows: Vec<Row> = together.scenarios.iter().flat_map(|of| of.rows.clone()).collect();
    // Rank 0's findings are of all rows, as the device's counters are.
    let mut evidence = evidence::Rows::default();
    let mut left = rows.iter().cloned();
    for group in files.iter().flat_map(|file| file.groups) {
        evidence.add(group, left.by_ref().take(row::jobs_of_rows(group).len()).collect());
    }
    let (target, host) = (&together.target, &together.host);
    found[0] = evidence.findings(target, before, before.watched(), host);
    let in_memory = before.target.in_memory;
    let sharing = &Sharing { ranks: shown, users, own_paths: ranks.own_paths };
    together.findings =
        findings::together(found, &Whole { target, rows: &rows, in_memory, sharing });
    Ok(together)
}

/// Puts the rows of all ranks in place of rank 0's.
fn merge_rows(
    document: &mut Document,
    all: Vec<Vec<Facts>>,
    peers: &dyn Peers,
) -> Result<(), Error> {
    let count = all.first().map_or(0, Vec::len);
    if let Some(rank) = all.iter().position(|theirs| theirs.len() != count) {
        return Err(Error::Failed(format!("rank {rank} ran other jobs than rank 0")));
    }
    let mut all: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
    for row in document.scenarios.iter_mut().flat_map(|scenario| &mut scenario.rows) {
        let of_row = all.iter_mut().filter_map(Iterator::next).collect();
        *row = merged(of_row, peers.places())?.rows().remove(0);
    }
    Ok(())
}
