//! A part of a document between two marks; a command writes its sections. It is a separate file
//! because it knows nothing of what they contain.

use lab::tools::failure::{Failure, Tried};
use std::collections::BTreeMap;
use std::path::Path;

/// The start of a section, before its name.
pub const HEADING: &str = "### `";

/// The marks around the sections.
const BEGIN: &str = "<!-- peers:begin -->";
const END: &str = "<!-- peers:end -->";

/// The part of a document between the marks.
#[derive(Debug)]
pub struct Sections {
    /// The names of the sections, in order.
    pub names: Vec<String>,
}

impl Sections {
    /// Fails unless the document has a place for the sections.
    pub fn check(&self, document: &Path) -> Result<(), Failure> {
        let text = std::fs::read_to_string(document).tried(document.display())?;
        self.parts(&text).map(|_| ()).ok_or_else(|| self.no_place(document))
    }

    /// Replaces one section, or adds it; the others stay.
    pub fn write(&self, document: &Path, section: &str) -> Result<(), Failure> {
        let text = std::fs::read_to_string(document).tried(document.display())?;
        let text = self.replaced(&text, section).ok_or_else(|| self.no_place(document))?;
        std::fs::write(document, text).tried(document.display())
    }

    fn no_place(&self, document: &Path) -> Failure {
        Failure::Failed(format!("{}: no lines {BEGIN} and {END}", document.display()))
    }

    /// Splits the text into what is before the sections, the sections, and what is after them.
    fn parts<'a>(&self, text: &'a str) -> Option<[&'a str; 3]> {
        let (before, rest) = text.split_once(BEGIN)?;
        let (sections, after) = rest.split_once(END)?;
        Some([before, sections, after])
    }

    fn replaced(&self, text: &str, section: &str) -> Option<String> {
        let [before, old, after] = self.parts(text)?;
        let place = |section: &str| {
            let name = section.split('`').next().unwrap_or_default().to_owned();
            let order = self.names.iter().position(|known| *known == name);
            // An unknown section stays, after the others.
            (order.unwrap_or(usize::MAX), name)
        };
        let (sections, heading) = ([old, "\n", section].concat(), format!("\n{HEADING}"));
        let sections = sections.split(&heading).skip(1).map(|one| (place(one), one.trim_end()));
        let sections: BTreeMap<_, _> = sections.collect();
        let sections = sections.into_values().map(|one| format!("{HEADING}{one}\n\n"));
        Some(format!("{before}{BEGIN}\n\n{}{END}{after}", sections.collect::<String>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Sections {
        Sections { names: ["dsync", "save"].map(str::to_owned).into() }
    }

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = format!("# Title\n{BEGIN}\n\n### `save`\n\nold\n\n{END}\nrest\n");
        let expected = format!("# Title\n{BEGIN}\n\n### `save`\n\nnew\n\n{END}\nrest\n");
        assert_eq!(known().replaced(&text, "### `save`\n\nnew"), Some(expected));
    }

    #[test]
    fn a_row_that_was_not_measured_stays_as_it_is() {
        let page = |sections: &str| format!("{BEGIN}\n\n{sections}{END}\n");
        let save = "### `save`\n\n| 1 |\n\n";
        let other = "### `once-there`\n\n| 2 |\n\n";
        let two = page(&format!("{save}{other}"));
        let dsync = known().replaced(&two, "### `dsync`\n\n| 3 |").expect("markers");
        assert_eq!(dsync, page(&format!("### `dsync`\n\n| 3 |\n\n{save}{other}")));
        let again = known().replaced(&dsync, "### `dsync`\n\n| 4 |").expect("markers");
        assert_eq!(again, page(&format!("### `dsync`\n\n| 4 |\n\n{save}{other}")));
        assert_eq!(known().replaced(&page(""), save), Some(page(save)));
    }

    #[test]
    fn a_page_without_both_markers_is_left_alone() {
        assert_eq!(known().replaced(&format!("# Title\n{BEGIN}\n"), "### `save`"), None);
        assert_eq!(known().replaced(&format!("{END}\n{BEGIN}\n"), "### `save`"), None);
    }
}
