//! The article about a traced program.

use super::article::{article as begun, moment};
use super::page::Article;
use crate::page::program;
use crate::trace::{sections, verdict};
use crate::tree::Role;
use wrote_result::trace::Trace;
use wrote_result::units;

/// Returns the article of a traced program: what would survive first.
pub fn article<'a>(trace: &'a Trace, name: &str) -> Article<'a> {
    let mut article = begun(trace, name, &trace.command);
    let command = trace.command.first().map_or("", String::as_str);
    article.kicker = "wrote trace".into();
    article.title = format!("What survives of what {command} wrote?");
    let (at, took) = (moment(&trace.started_at), units::seconds(trace.elapsed_s));
    article.ledes =
        vec![verdict(trace), format!("Run {at}, for {took}, under {}.", program(&trace.wrote))];
    article.sections = sections(trace, usize::MAX);
    article.sections.retain(|section| section.role != Role::Answer);
    article
}
