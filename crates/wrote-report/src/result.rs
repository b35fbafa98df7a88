//! The report of a result of benchmarks or jobs.

mod answers;
mod charts;
mod grid;
mod latencies;
mod saves;

pub use charts::{overview, scale};
pub use latencies::LINES_MAX;

use crate::figures::is_reached;
use crate::group::{Group, OPEN_LOOP_LEGEND};
use crate::paint::{Mark, Tone};
use crate::text::made;
use crate::tree::{Block, Note, On, Remarks, Role, Section, Style, remarks};
use crate::{columns, fit, languages, summary, sustained, target};
use answers::cards;
use grid::Grid;
use itertools::Itertools;
use wrote_result::document::{Document, Row, Source, Survives, View};

const CRASH_LEAVES_LEGEND: &str = "CRASH LEAVES is what a crash in the middle of a save, or before \
    it is flushed, may leave of the file. old-or-new: all of the one or all of the other. torn: \
    some of both. empty: nothing, or a part of the new. old-and-part: all of the old, and a part \
    of the new behind it. A method whose words end in folder also flushes the folder, which holds \
    the file's name.";

const OTHER_LANGUAGES: &str = "Code in other languages: --lang python, node, go, java or c; with \
    and without the library: docs/safe-writes.md";

const TORN_LEGEND: &str = "TORN is whether a power loss in the middle of a page's write may leave \
    some of the old page and some of the new one.";

/// Returns the command that created the result: `wrote bench /mnt/data`,
/// `wrote fit etcd /mnt/data`, `wrote run jobs.fio`.
pub fn title(document: &Document) -> String {
    let path = &document.target.path;
    match document.source {
        Some(Source::Run) => format!("wrote run {}", files(document)),
        Some(Source::Langs) => format!("wrote langs {path}"),
        Some(Source::Fit) => format!("wrote fit {} {path}", fit::programs(document)),
        Some(Source::Bench | Source::Fio) | None => format!("wrote bench {path}"),
    }
}

/// Returns the names of the job files of a result.
pub fn files(document: &Document) -> String {
    document.scenarios.iter().map(|scenario| &scenario.name).join(" ")
}

/// Returns the sections of a result.
pub fn sections(document: &Document) -> Vec<Section<'_>> {
    let mut sections = vec![Section::facts("Disk and machine", target::facts_of(document))];
    sections.extend(summary::head(document));
    sections.extend(summary::section(document));
    sections.extend(fit::section(document));
    sections.extend(document.scenarios.iter().map(|scenario| {
        let blocks = Group::all_of(scenario).into_iter().flat_map(blocks).collect();
        Section::new(Role::Scenario, &scenario.name, &scenario.question, blocks)
    }));
    sections.extend(languages::sections(document));
    if !document.findings.is_empty() {
        let remarks = Remarks { remarks: remarks(&document.findings), is_brief: false };
        let blocks = vec![Block::Remarks(remarks)];
        sections.push(Section::new(Role::Findings, "Findings", "", blocks));
    }
    if !document.advice.is_empty() {
        let others = document.advice.iter().any(|advice| advice.recipe.is_some());
        let others = others.then(|| Note { on: On::Screen, ..OTHER_LANGUAGES.into() });
        let blocks = vec![Block::Cards(cards(document)), Block::notes(Style::Apart, others)];
        sections.push(Section::new(Role::Advice, "Advice", "", blocks));
    }
    let foot = Block::notes(Style::Foot, foot(document));
    sections.push(Section::new(Role::Foot, "", "", vec![foot]));
    sections
}

/// Returns the sections for a screen. The saves of many texts are shown in two tables.
pub fn on_screen(document: &Document) -> Vec<Section<'_>> {
    let mut all = sections(document);
    let scenarios = all.iter_mut().filter(|section| section.role == Role::Scenario);
    for (section, scenario) in scenarios.zip(&document.scenarios) {
        if let Some((shown, others)) = saves::shortened(scenario) {
            section.blocks = shown.into_iter().flat_map(blocks).chain(others).collect();
        }
    }
    all
}

/// Returns the heading, the charts, the table and the notes of a group.
fn blocks(group: Group<'_>) -> Vec<Block<'_>> {
    let mut blocks = vec![Block::Heading(group.workload.into(), group.summary())];
    let drawn = group.clone();
    blocks.push(Block::figures(move || charts::figures(&drawn)));
    let mut table = columns::table(&group);
    let mut notes = fastest(&group);
    match Grid::of(&group).filter(|_| group.view() != View::Curve) {
        Some(grid) => {
            table.on = On::Pages;
            blocks.push(Block::Table(grid.table()));
            // A grid has a line about its best cell.
            notes.iter_mut().for_each(|note| note.on = On::Pages);
            notes.extend(grid.notes());
        }
        None => notes.extend(marks(&group)),
    }
    blocks.push(Block::Table(table));
    notes.extend(statements(&group));
    blocks.push(Block::notes(Style::Close, notes));
    for sustained in group.rows.iter().filter_map(|row| row.sustained.as_ref()) {
        blocks.push(Block::notes(Style::Apart, sustained::notes(sustained)));
        blocks.push(Block::Drawing(&sustained.samples));
    }
    blocks
}

/// Explains the marks of a group's table on a screen.
fn marks(group: &Group) -> Vec<Note> {
    let missed = "this rate was not reached: the queue, and latency with it, grows as long as the \
                  run lasts";
    let is_missed = group.view() == View::Curve && !group.rows.iter().all(|row| is_reached(row));
    let missed = is_missed.then(|| Note::of_mark(Mark::Missed, missed));
    let best = group.best();
    let best = best.map_or_else(
        || group.fell_back().into_iter().collect(),
        |best| group.marks(best, |row: &Row| row.is_durable() && row.is_tied_with(best)),
    );
    missed.into_iter().chain(best).collect()
}

/// Returns the explanation of the mark of the best row in a group's table.
fn fastest(group: &Group) -> Vec<Note> {
    let best = group.best().map(|best| {
        let text = format!("the fastest that survives a power loss: {}", group.name(best));
        Note { mark: Some(Mark::Best), ..text.into() }
    });
    let knee = (group.view() == View::Curve).then(|| {
        let mark = group.knee.map(|_| Mark::Best);
        Note { mark, tone: Tone::Strong, ..group.knee_line().into() }
    });
    best.into_iter().chain(knee).collect()
}

/// Returns the statements about a group.
fn statements(group: &Group) -> impl Iterator<Item = Note> {
    let costs = if group.view() == View::Saves { group.sync_costs() } else { Vec::new() };
    let mixed = group.mixes_loops().then(|| OPEN_LOOP_LEGEND.to_owned());
    let flushes = group.flushes().into_iter().chain(group.spread());
    mixed.into_iter().chain(costs).chain(flushes).map(Note::from)
}

/// Returns explanations of the words in the tables, and the time that the measurement took.
fn foot(document: &Document) -> Vec<Note> {
    let in_process = document.rows().any(|row| row.survives == Some(Survives::Nothing));
    let nothing = if in_process { "nothing: it is in the program's memory. " } else { "" };
    let survives = format!(
        "SURVIVES is the worst event after which an acknowledged write is still there. {nothing}\
         process-crash: it is in the kernel's memory. os-crash: it is in the device. \
         power-loss: it is on stable storage. Bars compare the rows of one level."
    );
    let survives = document.rows().any(|row| row.survives.is_some()).then_some(survives);
    let has_leaves = document.rows().any(|row| row.crash_leaves.is_some());
    let leaves = has_leaves.then(|| CRASH_LEAVES_LEGEND.to_owned());
    let torn = document.rows().any(|row| row.torn.is_some()).then(|| TORN_LEGEND.to_owned());
    let made = made(&document.wrote, &document.started_at, document.elapsed_s);
    let foot = survives.into_iter().chain(leaves).chain(torn).chain([made]);
    foot.map(|text| Note { on: On::Screen, ..text.into() }).collect()
}
