//! The article about an examination of the doctor.

use super::article::{article as begun, moment};
use super::page::Article;
use crate::doctor::{sections, summary};
use crate::tree::Role;
use wrote_result::doctor::Examination;

/// Returns the article of an examination: the risks first.
pub fn article<'a>(examination: &'a Examination, name: &str) -> Article<'a> {
    let mut article = begun(examination, name, &[]);
    article.kicker = "wrote doctor".into();
    article.title = format!("What holds {} back?", examination.target.path);
    article.ledes = vec![
        format!("{}.", summary(examination)),
        format!("Examined {}.", moment(&examination.examined_at)),
    ];
    article.sections = sections(examination, true);
    article.sections.retain(|section| ![Role::Page, Role::Answer].contains(&section.role));
    article.sections.rotate_left(1);
    article
}
