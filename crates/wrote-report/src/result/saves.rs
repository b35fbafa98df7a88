//! Saves of several texts on a screen: the first text in full, and the medians of all other texts
//! in a second table. The module is separate because other formats have a table for each text.

use crate::figures::latency;
use crate::group::Group;
use crate::table::{Column, Keep, On, Table};
use crate::tree::{Block, Note, Style};
use itertools::Itertools;
use wrote_result::document::{Row, Scenario, View};

/// The minimum number of workloads of saves to shorten. Fewer workloads are shown in full.
const WORKLOADS_MIN: usize = 3;
/// A part of the name of the workload that is shown in full. Replacing an existing text is the
/// usual case.
const USUAL: &str = "/existing-";

/// Returns the row of a group with this name; `None` if there is none.
fn row<'a>(group: &Group<'a>, name: &str) -> Option<&'a Row> {
    group.rows.iter().copied().find(|row| group.name(row) == name)
}

/// Returns the groups of a scenario that a screen shows in full, and the table of the other groups
/// with its heading and notes; `None` if all groups are shown in full.
pub fn shortened(scenario: &Scenario) -> Option<(Vec<Group<'_>>, Vec<Block<'_>>)> {
    let groups = Group::all_of(scenario);
    let (mut saves, mut shown): (Vec<Group>, Vec<Group>) =
        groups.into_iter().partition(|group| group.view() == View::Saves);
    if saves.len() < WORKLOADS_MIN {
        return None;
    }
    let usual = saves.iter().position(|group| group.workload.contains(USUAL)).unwrap_or(0);
    let main = saves.remove(usual);
    let below = |group: &Group| match group.workload.split_once('/') {
        Some((_, text)) => text.to_owned(),
        None => group.workload.to_owned(),
    };
    let all = [&main].into_iter().chain(&saves);
    let all = all.flat_map(|of| of.rows.iter().map(move |row| of.name(row)));
    let names: Vec<&str> = all.unique().collect();
    let medians = saves.iter().enumerate().map(|(number, group)| {
        let p50 = |name: &&str| latency(row(group, name).and_then(Row::latency), |of| Some(of.p50));
        let keep = if number + 1 == saves.len() { Keep::Always } else { Keep::If(number as u8) };
        Column::figures(below(group), keep, &names, p50)
    });
    let first = Column::words("NAME", Keep::Always, &names, |name| *name);
    let columns = [first].into_iter().chain(medians).collect();
    let table = Table { on: On::Screen, ..Table::of("medians", columns) };
    // The event that a row survives may depend on whether the file exists.
    let weaker = names.iter().filter_map(|name| {
        let whole = row(&main, name)?.survives?;
        let is_less = |group: &&Group| row(group, name).is_some_and(|of| of.survives < Some(whole));
        let texts = saves.iter().filter(is_less).map(below).join(", ");
        (!texts.is_empty()).then(|| format!("{name} survives less than {whole} in {texts}"))
    });
    let all = format!("--format markdown shows every percentile of all {} texts", saves.len() + 1);
    let notes: Vec<Note> = weaker.chain([all]).map(Note::from).collect();
    let heading = format!("the median (P50) of a save; {} has all figures above", below(&main));
    let blocks = vec![
        Block::Heading("other texts".into(), heading),
        Block::Table(table),
        Block::notes(Style::Close, notes),
    ];
    shown.push(main);
    Some((shown, blocks))
}
