//! The article about an examination of the doctor.

use super::article::{article as begun, facts_section, moment, section};
use super::page::{Article, Block, Remark};
use crate::doctor::{CHAPTERS, facts, facts_after, of, summary, title};
use crate::target;
use wrote_result::doctor::{Check, Examination, State};

/// Returns the article of an examination: the risks first.
pub fn article(examination: &Examination, name: &str) -> Article {
    let mut article = begun(examination, name, &[]);
    article.kicker = "wrote doctor".into();
    article.title = format!("What holds {} back?", examination.target.path);
    article.ledes = vec![
        format!("{}.", summary(examination)),
        format!("Examined {}.", moment(&examination.examined_at)),
    ];
    for (state, chapter) in CHAPTERS {
        let remarks: Vec<Remark> = of(examination, state).into_iter().map(remark).collect();
        if !remarks.is_empty() {
            article.sections.push(section(chapter, "", vec![Block::Findings(remarks)]));
        }
    }
    let facts = target::facts(&examination.target, &examination.host);
    article.sections.push(facts_section("Disk and machine", facts));
    article
}

fn remark(check: &Check) -> Remark {
    let weight = match check.state {
        State::Risk => "risk",
        State::Advice => "advice",
        State::Unknown => "unknown",
        State::Fine => "fine",
    };
    let after = check.change.iter().flat_map(facts_after);
    let facts = facts(check).into_iter().chain(after);
    Remark {
        weight: weight.into(),
        id: title(check),
        chapter: String::new(),
        text: check.text.clone(),
        facts: facts.map(|(label, text)| (label.into(), text)).collect(),
        commands: check.change.iter().flat_map(|change| change.commands.clone()).collect(),
    }
}
