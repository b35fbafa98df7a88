//! The tree of a report: sections of blocks, written as a screen, Markdown or HTML; findings among
//! them.

use crate::chart::Picture;
use crate::evidence;
use crate::paint::{Mark, Tone};
use crate::table::Table;
use wrote_result::doctor::State;
use wrote_result::document::{Finding, Sample, Severity};
use wrote_result::finding::IDS;

pub use crate::table::On;

/// A section of a report.
#[derive(Default)]
pub struct Section<'a> {
    pub role: Role,
    pub title: String,
    /// The sentence below the title.
    pub lede: String,
    pub blocks: Vec<Block<'a>>,
    /// Whether a page shows only its title until a reader opens it.
    pub is_folded: bool,
    /// The id that the contents of a page link to; given to all sections at the end.
    pub id: String,
}

/// The subject of a section. Each format has its own order of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The answer in one sentence.
    Headline,
    /// The path and the machine: a screen and Markdown need no title.
    Facts,
    /// The answers.
    Answer,
    /// A scenario. Its question is clearer than its name.
    Scenario,
    /// A section with a title.
    #[default]
    Part,
    Findings,
    Advice,
    /// A section that only a page shows.
    Page,
    /// The end of a text.
    Foot,
}

/// A piece of a section.
pub enum Block<'a> {
    /// Labels with their facts.
    Facts(Vec<(String, Vec<String>)>),
    /// A heading within the section, and words after it.
    Heading(String, String),
    /// The place at the left of a line, and the work done there at its right.
    Banner(String, String),
    Table(Table),
    /// Charts, for a page.
    Figures(Figures<'a>),
    /// The course of a long run, for a screen.
    Drawing(&'a [Sample]),
    Notes(Notes),
    Remarks(Remarks),
    /// The answers, side by side.
    Cards(Vec<Card>),
    /// A chapter of the documents: a title, its id, and its HTML, which is our own.
    Chapter(String, String, String),
}

/// Sentences.
pub struct Notes {
    pub notes: Vec<Note>,
    pub style: Style,
}

/// How sentences appear on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// In front of everything, with a gap below.
    Lead,
    /// Below a table.
    Close,
    /// Below a gap.
    Apart,
    /// Below a title.
    List,
    /// Faint, at the end.
    Foot,
}

/// A sentence.
#[derive(Debug, Default)]
pub struct Note {
    pub text: String,
    /// The mark that the note explains.
    pub mark: Option<Mark>,
    /// The colour of the mark, or of all.
    pub tone: Tone,
    pub on: On,
}

/// Findings, or checks of the doctor.
pub struct Remarks {
    pub remarks: Vec<Remark>,
    /// Whether a text has only the names of the checks.
    pub is_brief: bool,
}

/// A finding, or a check.
#[derive(Debug)]
pub struct Remark {
    pub weight: Weight,
    /// Its id: `ram-not-disk`.
    pub id: String,
    /// The id of the chapter that explains it; empty if there is none.
    pub chapter: String,
    pub text: String,
    /// Labels, each with the fact that follows it.
    pub facts: Vec<(String, String)>,
    /// Labels and facts to know before a command is run: its risk.
    pub before: Vec<(String, String)>,
    /// Commands that change the setting.
    pub commands: Vec<String>,
    /// Labels and facts about the commands.
    pub after: Vec<(String, String)>,
}

/// The weight of a finding, or the state of a check.
#[derive(Clone, Copy, Debug)]
pub enum Weight {
    Finding(Severity),
    Check(State),
}

/// An answer.
#[derive(Debug, Default)]
pub struct Card {
    /// The purpose: `streaming`.
    pub purpose: String,
    /// The way in words.
    pub way: String,
    /// Its figure; empty if no row is known.
    pub figure: String,
    /// The ends of its interval: `2.28-2.59`.
    pub spread: String,
    /// The ends of its interval, and further figures.
    pub more: String,
    /// The class and the words of the level that it survives; empty if unknown.
    pub survives: String,
    /// The advised action.
    pub action: String,
    /// The measured reason.
    pub because: String,
    pub codes: Vec<Code>,
}

/// Lines of code.
#[derive(Debug)]
pub struct Code {
    pub title: &'static str,
    /// The title in the margin of a screen.
    pub label: &'static str,
    /// The language, in the word that a fence of Markdown uses.
    pub language: String,
    pub text: String,
}

/// Charts, which are drawn only for a page.
pub struct Figures<'a>(Box<dyn Fn() -> Vec<Figure> + 'a>);

/// A chart with its question.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The question that the chart answers.
    pub question: String,
    /// The chart.
    pub picture: Picture,
    /// The classes of the chart and their meanings.
    pub legend: Vec<(String, String)>,
    /// How to read the chart.
    pub note: String,
}

impl<'a> Section<'a> {
    /// Makes a section.
    pub fn new(role: Role, title: &str, lede: &str, blocks: Vec<Block<'a>>) -> Section<'a> {
        Section { role, title: title.into(), lede: lede.into(), blocks, ..Section::default() }
    }

    /// Makes a section with a list under its title; `None` if the list is empty.
    pub fn list(title: &str, lines: Vec<String>) -> Option<Section<'a>> {
        let blocks = vec![Block::notes(Style::List, lines)];
        (!blocks[0].is_empty()).then(|| Section::new(Role::Part, title, "", blocks))
    }

    /// Makes the section of labels and facts.
    pub fn facts(
        title: &str,
        facts: impl IntoIterator<Item = (impl Into<String>, Vec<String>)>,
    ) -> Section<'a> {
        let facts = facts.into_iter().map(|(label, facts)| (label.into(), facts)).collect();
        Section::new(Role::Facts, title, "", vec![Block::Facts(facts)])
    }
}

impl<'a> Block<'a> {
    /// Makes a block of sentences.
    pub fn notes(style: Style, notes: impl IntoIterator<Item = impl Into<Note>>) -> Block<'a> {
        Block::Notes(Notes { notes: notes.into_iter().map(Into::into).collect(), style })
    }

    /// Makes a block of charts.
    pub fn figures(draw: impl Fn() -> Vec<Figure> + 'a) -> Block<'a> {
        Block::Figures(Figures(Box::new(draw)))
    }

    /// Returns whether it is a block of no sentence.
    pub fn is_empty(&self) -> bool {
        matches!(self, Block::Notes(notes) if notes.notes.is_empty())
    }
}

impl Figures<'_> {
    /// Draws the charts.
    pub fn draw(&self) -> Vec<Figure> {
        (self.0)()
    }
}

impl Note {
    /// Returns a note that explains a mark of a table on a screen.
    pub fn of_mark(mark: Mark, text: &str) -> Note {
        Note { mark: Some(mark), on: On::Screen, ..text.into() }
    }
}

impl<T: Into<String>> From<T> for Note {
    fn from(text: T) -> Note {
        Note { text: text.into(), ..Note::default() }
    }
}

impl Weight {
    /// Returns the word for it, which is its class in HTML.
    pub fn word(self) -> String {
        match self {
            Weight::Finding(severity) => severity.to_string(),
            Weight::Check(state) => state.to_string(),
        }
    }
}

impl Card {
    /// Returns the purpose with a capital letter.
    pub fn title(&self) -> String {
        let mut title = self.purpose.clone();
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        title
    }
}

/// Tells how many rows a chart leaves to the table beneath it; empty if it shows all.
pub fn rest(shown: usize, all: usize) -> String {
    match all - shown {
        0 => String::new(),
        more => format!("The first {shown} rows; the table has the other {more}."),
    }
}

/// Returns the id of the chapter that explains a finding; empty if there is none.
pub fn id_of(finding: &str) -> String {
    if IDS.contains(&finding) { format!("meaning-{finding}") } else { String::new() }
}

/// Returns findings for the page, each with its evidence and its chapter.
pub fn remarks<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Remark> {
    let with_facts = |finding: &Finding| {
        let shown = |(key, value): (&String, _)| (evidence::label(key), evidence::told(key, value));
        Remark { facts: finding.evidence.iter().map(shown).collect(), ..remark(finding) }
    };
    findings.into_iter().map(with_facts).collect()
}

/// Returns a finding with its chapter, without its evidence.
pub fn remark(finding: &Finding) -> Remark {
    Remark {
        weight: Weight::Finding(finding.severity),
        id: finding.id.clone(),
        chapter: id_of(&finding.id),
        text: finding.text.clone(),
        facts: Vec::new(),
        before: Vec::new(),
        commands: Vec::new(),
        after: Vec::new(),
    }
}
