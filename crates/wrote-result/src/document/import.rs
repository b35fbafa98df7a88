//! Guesses the keys that results of older versions and of other tools lack.

use super::{Cell, Document, Row, Source, View};

/// The operations of [`View::Metadata`], as `rw` has them beside fio's words.
const METADATA: [&str; 6] = ["create", "stat", "open", "read", "rename", "unlink"];
/// Workloads whose rows form a grid: the beginning of their names, and the title over the sides.
const GRIDS: [(&str, &str); 2] = [("peak/", "BS x IODEPTH"), ("ways/chunk", "CHUNK")];

/// Completes a document that was read: its source, and the view and cell of each row without one.
pub fn complete(document: &mut Document) {
    document.source = document.source.or_else(|| Some(source(document)));
    for row in document.scenarios.iter_mut().flat_map(|scenario| &mut scenario.rows) {
        if row.view.is_none() {
            (row.view, row.cell) = (Some(view(row)), cell(row));
        }
    }
}

/// The version of other tools, and of `wrote run --format fio-json`, begins with a word.
fn source(document: &Document) -> Source {
    let is_ours = document.wrote.version.starts_with(|first: char| first.is_ascii_digit());
    match document.command.get(1).map(String::as_str) {
        _ if !is_ours => Source::Fio,
        Some("run") => Source::Run,
        _ => Source::Bench,
    }
}

fn view(row: &Row) -> View {
    let asked = &row.settings.asked;
    let is_of_names = METADATA.contains(&asked.rw.as_str()) && asked.nrfiles.is_some();
    if row.crash_leaves.is_some() {
        View::Saves
    } else if asked.messages.is_some() {
        View::Messages
    } else if asked.load_share.is_some() {
        View::Curve
    } else if is_of_names && row.workload.starts_with("meta/") {
        View::Metadata
    } else if row.sustained.is_some() {
        View::Long
    } else if row.latency_ns.is_none() && row.settings.effective.untimed != Some(true) {
        View::Files
    } else {
        View::Operations
    }
}

fn cell(row: &Row) -> Option<Cell> {
    let (_, title) = GRIDS.iter().find(|(begin, _)| row.workload.starts_with(begin))?;
    let (side, head) = row.way.rsplit_once(", ")?;
    Some(Cell { title: (*title).into(), side: side.into(), head: head.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{CrashLeaves, Latency, Sustained};
    use crate::sample;

    /// The rows of a document from before the keys, completed.
    fn completed(row: Row) -> Document {
        let mut document = sample::document(vec![Row { view: None, cell: None, ..row }]);
        document.source = None;
        complete(&mut document);
        document
    }

    fn older(name: &str, change: impl FnOnce(&mut Row)) -> Option<View> {
        let mut row = sample::row(name, "power-loss", &[1e9]);
        change(&mut row);
        completed(row).scenarios[0].rows[0].view
    }

    #[test]
    fn rows_of_an_older_result_get_the_view_that_their_keys_show() {
        for (expected, found) in [
            (View::Operations, older("small/cached", |_| {})),
            (
                View::Operations,
                older("group 0/a", |row| {
                    (row.latency_ns, row.settings.effective.untimed) = (None, Some(true));
                }),
            ),
            (View::Files, older("ways/file", |row| row.latency_ns = None)),
            (View::Messages, older("append/loop", |row| row.settings.asked.messages = Some(9))),
            (View::Saves, older("latency/new", |row| row.crash_leaves = Some(CrashLeaves::Torn))),
            (View::Curve, older("load/a", |row| row.settings.asked.load_share = Some(0.7))),
            (
                View::Long,
                older("sustained/write", |row| row.sustained = Some(Sustained::default())),
            ),
            (
                View::Metadata,
                older("meta/own", |row| {
                    row.workload = "meta/own".into();
                    row.latency_ns = Some(Latency::default());
                    (row.settings.asked.rw, row.settings.asked.nrfiles) = ("stat".into(), Some(50));
                }),
            ),
        ] {
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn a_cell_of_an_older_result_is_what_its_words_show_and_a_stated_view_stays() {
        let mut row = sample::row("peak/read", "power-loss", &[1e9]);
        (row.workload, row.way) = ("peak/read".into(), "2 MiB x 8, plain".into());
        let document = completed(row.clone());
        let cell = document.scenarios[0].rows[0].cell.as_ref().unwrap();
        assert_eq!(
            (&*cell.title, &*cell.side, &*cell.head),
            ("BS x IODEPTH", "2 MiB x 8", "plain")
        );
        let mut document = sample::document(vec![Row { view: Some(View::Long), ..row }]);
        complete(&mut document);
        let stated = &document.scenarios[0].rows[0];
        assert_eq!((stated.view, &stated.cell), (Some(View::Long), &None));
    }

    #[test]
    fn an_older_result_is_of_the_command_that_it_names_or_of_fio() {
        for (version, verb, expected) in [
            ("0.1.0", "bench", Source::Bench),
            ("0.1.0", "run", Source::Run),
            ("fio-3.33", "run", Source::Fio),
            ("wrote-0.1.0", "run", Source::Fio),
        ] {
            let mut document = sample::document(Vec::new());
            (document.source, document.wrote.version) = (None, version.into());
            document.command = vec!["wrote".into(), verb.into()];
            complete(&mut document);
            assert_eq!(document.source, Some(expected), "{version} {verb}");
        }
    }
}
