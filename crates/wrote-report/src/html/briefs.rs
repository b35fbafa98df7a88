//! The articles about a comparison of two results, and an examination of the doctor.

use super::{Article, begun, moment};
use crate::comparison::WARNINGS;
use crate::tree::remarks;
use crate::tree::{Block, Remarks, Role, Section};
use crate::{comparison, doctor};
use wrote_result::compare::{Comparison, Verdict};
use wrote_result::doctor::Examination;

/// Returns the article of a comparison.
pub fn comparison<'a>(comparison: &'a Comparison, name: &str) -> Article<'a> {
    let command = &comparison.new.command;
    let both = comparison.results.len() == 2;
    let mut article = begun(comparison, name, if both { command } else { &[] });
    article.kicker = if both { "wrote bench --vs" } else { "wrote compare" }.into();
    article.title =
        format!("What changed from {} to {}?", comparison.old.name, comparison.new.name);
    article.ledes = vec![answer(comparison)];
    article.sections = comparison::sections(comparison);
    // A page has the warnings of each side with their evidence.
    article.sections.retain(|section| section.title != WARNINGS);
    // The rows come first.
    article.sections.swap(0, 1);
    article.sections[0].lede =
        "The ratio of the medians, NEW over OLD, with its 95 % interval.".into();
    for (title, of) in [("Warnings of OLD", &comparison.old), ("Warnings of NEW", &comparison.new)]
    {
        if !of.warnings.is_empty() {
            let remarks = Remarks { remarks: remarks(&of.warnings), is_brief: false };
            let blocks = vec![Block::Remarks(remarks)];
            article.sections.push(Section::new(Role::Page, title, "", blocks));
        }
    }
    article
}

/// The number of rows by verdict: `2 rows are slower, 1 is faster, ..`.
fn answer(comparison: &Comparison) -> String {
    let count = |of: Verdict| comparison.rows.iter().filter(|row| row.verdict == of).count();
    let told = [
        (count(Verdict::Slower), "slower"),
        (count(Verdict::Faster), "faster"),
        (count(Verdict::NoDetectableDifference), "without a detectable difference"),
        (count(Verdict::OneRun), "of one run, which tells nothing"),
    ];
    let told = told.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, words)| format!("{count} {words}")).collect();
    format!("Of {} rows: {}.", comparison.rows.len(), told.join(", "))
}

/// Returns the article of an examination: the risks first.
pub fn examination<'a>(examination: &'a Examination, name: &str) -> Article<'a> {
    let mut article = begun(examination, name, &[]);
    article.kicker = "wrote doctor".into();
    article.title = format!("What holds {} back?", examination.target.path);
    article.ledes = vec![
        format!("{}.", doctor::summary(examination)),
        format!("Examined {}.", moment(&examination.examined_at)),
    ];
    article.sections = doctor::sections(examination, true);
    article.sections.retain(|section| ![Role::Page, Role::Answer].contains(&section.role));
    article.sections.rotate_left(1);
    article
}
