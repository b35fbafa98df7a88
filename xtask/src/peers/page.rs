//! The table's place in `docs/performance.md`.

use super::table::{HEAD, Line};
use super::wrote::Place;
use crate::failure::{Failure, Tried};
use std::path::Path;

const BEGIN: &str = "<!-- peers:begin -->";
const END: &str = "<!-- peers:end -->";

/// The table with where, when and how it was measured, in Markdown.
pub fn text(
    place: &Place,
    fio_version: &str,
    lines: &[Line],
    commands: &[String],
    pairs: u32,
) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let Place { kernel, cpus, filesystem, device } = place;
    let rows: Vec<String> = lines.iter().map(Line::row).collect();
    format!(
        "Measured on {date} with `cargo xtask peers --pairs {pairs}`: Linux {kernel}, {cpus}, \
{filesystem} on {device}, {fio_version}. Medians of {pairs} pairs, run in turn, the order swapped in \
every second pair.\n\n{HEAD}\n{}\n\n\
The peer's file has the blocks that wrote's own has when the clock starts: new, allocated, or \
written before. fio \
scrambles one random buffer; dd reads random data from a file in memory, a copy that its CPU time \
and its clock include.\n\n```sh\n{}\n```",
        rows.join("\n"),
        commands.join("\n")
    )
}

/// Fails unless the page has a place for the table.
pub fn check(page: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(page).tried(page.display())?;
    replaced(&text, "").map(|_| ()).ok_or_else(|| no_place(page))
}

/// Puts `table` into its place.
pub fn write(page: &Path, table: &str) -> Result<(), Failure> {
    let text = std::fs::read_to_string(page).tried(page.display())?;
    let text = replaced(&text, table).ok_or_else(|| no_place(page))?;
    std::fs::write(page, text).tried(page.display())
}

fn no_place(page: &Path) -> Failure {
    Failure::Failed(format!("{}: no lines {BEGIN} and {END}", page.display()))
}

fn replaced(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = format!("# Title\n{BEGIN}\nold\n{END}\nrest\n");
        let expected = format!("# Title\n{BEGIN}\nnew\n{END}\nrest\n");
        assert_eq!(replaced(&text, "new"), Some(expected));
    }

    #[test]
    fn a_page_without_both_markers_is_left_alone() {
        assert_eq!(replaced(&format!("# Title\n{BEGIN}\n"), "new"), None);
        assert_eq!(replaced(&format!("{END}\n{BEGIN}\n"), "new"), None);
    }

    #[test]
    fn the_text_says_where_when_and_how() {
        let place = Place {
            kernel: "6.18.0".into(),
            cpus: "2 x Some CPU".into(),
            filesystem: "ext4".into(),
            device: "vda1".into(),
        };
        let text = text(&place, "fio-3.33", &[], &["wrote bench DIR".into()], 7);
        assert!(text.contains("Linux 6.18.0, 2 x Some CPU, ext4 on vda1, fio-3.33."));
        assert!(text.contains("```sh\nwrote bench DIR\n```"));
    }
}
