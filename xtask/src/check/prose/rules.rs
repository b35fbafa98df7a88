//! Checks that each rule (W1, M5) is defined in one place of the documents.

use crate::check::links::events;
use pulldown_cmark::{Event, Tag, TagEnd};
use std::collections::BTreeMap;

/// The places of each rule's definition, by its id.
#[derive(Default)]
pub struct Rules {
    defined: BTreeMap<String, Vec<String>>,
}

impl Rules {
    /// Adds the definitions in `text`, the content of the Markdown `file`.
    pub fn read(&mut self, file: &str, text: &str) {
        for id in beginnings(text).iter().filter_map(|text| defined(text)) {
            self.defined.entry(id.to_owned()).or_default().push(file.to_owned());
        }
    }

    /// Returns a fault for each rule that is defined more than once.
    pub fn faults(&self) -> Vec<String> {
        let twice = self.defined.iter().filter(|(_, files)| files.len() > 1);
        let fault = |(id, files): (&String, &Vec<String>)| {
            format!("{id} is defined more than once: {}", files.join(", "))
        };
        twice.map(fault).collect()
    }
}

/// Returns the rule that `text` defines, if it begins with a single rule's id.
fn defined(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let id = words.next().map(|word| word.trim_end_matches([':', '.'])).filter(|id| is_id(id))?;
    words.next().is_some_and(|next| !is_id(next)).then_some(id)
}

fn is_id(word: &str) -> bool {
    let number = word.strip_prefix(['W', 'M']);
    number.is_some_and(|number| number.parse::<u8>().is_ok())
}

/// Returns the text of each heading, list item and first cell of a row.
fn beginnings(text: &str) -> Vec<String> {
    let (mut texts, mut text_of) = (Vec::new(), None);
    for event in events(text) {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::Item | Tag::TableRow) => {
                text_of = Some(String::new());
            }
            Event::End(TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableCell) => {
                texts.extend(text_of.take());
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(text_of) = &mut text_of {
                    text_of.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(text_of) = &mut text_of {
                    text_of.push(' ');
                }
            }
            _ => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(pages: &[(&str, &str)]) -> Vec<String> {
        let mut rules = Rules::default();
        pages.iter().for_each(|(file, text)| rules.read(file, text));
        rules.faults()
    }

    #[test]
    fn a_rule_that_is_defined_twice_is_found_in_headings_items_and_first_cells() {
        let heading = ("a.md", "## M1: the flush is inside the clock\n");
        let item = ("b.md", "- **M1** The flush is\n  inside.\n");
        let cell = ("c.md", "| rule | kept by |\n|---|---|\n| M1 the flush | here |\n");
        assert_eq!(faults(&[heading]), [""; 0]);
        for other in [item, cell] {
            let expected = format!("M1 is defined more than once: a.md, {}", other.0);
            assert_eq!(faults(&[heading, other]), [expected]);
        }
    }

    #[test]
    fn a_rule_that_is_only_cited_is_not_defined() {
        let cited = "The flush is inside (M1).\n\n- It keeps M1.\n- M1\n\n\
                     | rules | M1 to M11 hold |\n|---|---|\n| M1 M5 clocks | M1 here |\n";
        assert_eq!(faults(&[("a.md", "- **M1** The flush.\n"), ("b.md", cited)]), [""; 0]);
    }
}
