//! The article about a comparison of languages.

use super::article::{article as begun, moment};
use super::page::Article;
use crate::langs::{legend, sections};
use crate::page::program;
use itertools::Itertools;
use wrote_result::langs::Document;
use wrote_result::units;

/// Returns the article of a comparison of languages.
pub fn article<'a>(document: &'a Document, name: &str) -> Article<'a> {
    let mut article = begun(document, name, &document.command);
    let places = document.places.iter().map(|place| place.target.path.as_str()).join(", ");
    article.kicker = "wrote langs".into();
    article.title = format!("What does each language's own I/O cost in {places}?");
    let (at, took) = (moment(&document.started_at), units::seconds(document.elapsed_s));
    article.ledes = vec![
        format!("Measured {at}, in {took}, by {}.", program(&document.wrote)),
        legend(document),
    ];
    article.sections = sections(document);
    article
}
