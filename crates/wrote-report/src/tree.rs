//! The tree of a report: sections that consist of blocks. They are written to a screen, as Markdown
//! or as HTML.

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
    /// Whether an HTML page shows only the title until the reader opens the section.
    pub is_folded: bool,
    /// The id to which the contents of a page link. All sections get their ids at the end.
    pub id: String,
}

/// The subject of a section. Each format orders the subjects differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The answer in one sentence.
    Headline,
    /// The path and the machine. A screen and Markdown need no title for them.
    Facts,
    /// The answers.
    Answer,
    /// A scenario. It is titled by its question, which is clearer than its name.
    Scenario,
    /// A section with a title.
    #[default]
    Part,
    Findings,
    Advice,
    /// A section that only an HTML page shows.
    Page,
    /// The end of a text.
    Foot,
}

/// A piece of a section.
pub enum Block<'a> {
    /// Labels with their facts.
    Facts(Vec<(String, Vec<String>)>),
    /// A heading within the section, and the words that follow it.
    Heading(String, String),
    /// The path at the left of a line, and the work done on it at the right.
    Banner(String, String),
    Table(Table),
    /// Charts, for an HTML page.
    Figures(Figures<'a>),
    /// The course of a long run, for a screen.
    Drawing(&'a [Sample]),
    Notes(Notes),
    Remarks(Remarks),
    /// The answers, side by side.
    Cards(Vec<Card>),
    /// A chapter of the documentation: its title, its id, and its HTML, which comes from this
    /// program.
    Chapter(String, String, String),
}

/// Sentences in a common style.
pub struct Notes {
    pub notes: Vec<Note>,
    pub style: Style,
}

/// How sentences appear on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Before everything else, with a gap below.
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
    /// The colour of the mark, or of the whole note.
    pub tone: Tone,
    pub on: On,
}

/// Findings, or checks of `wrote doctor`.
pub struct Remarks {
    pub remarks: Vec<Remark>,
    /// Whether texts show only the names of the checks.
    pub is_brief: bool,
}

/// A finding, or a check.
#[derive(Debug)]
pub struct Remark {
    pub weight: Weight,
    /// The id of the finding or check: `ram-not-disk`.
    pub id: String,
    /// The id of the chapter that explains the remark; empty if there is none.
    pub chapter: String,
    pub text: String,
    /// Labels, each with its fact.
    pub facts: Vec<(String, String)>,
    /// Labels and facts that a reader should know before running a command, such as its risk.
    pub before: Vec<(String, String)>,
    /// The commands that change the setting.
    pub commands: Vec<String>,
    /// Labels and facts that follow the commands.
    pub after: Vec<(String, String)>,
}

/// The severity of a finding, or the state of a check.
#[derive(Clone, Copy, Debug)]
pub enum Weight {
    Finding(Severity),
    Check(State),
}

/// An answer on a card.
#[derive(Debug, Default)]
pub struct Card {
    /// The purpose: `streaming`.
    pub purpose: String,
    /// The method in words.
    pub way: String,
    /// The figure of the row; empty if no row is known.
    pub figure: String,
    /// The ends of the figure's interval: `2.28-2.59`.
    pub spread: String,
    /// The ends of the figure's interval, and further figures.
    pub more: String,
    /// The class of the level that the method survives, which is also its name; empty if it is
    /// unknown.
    pub survives: String,
    /// The recommended action.
    pub action: String,
    /// The measured reason.
    pub because: String,
    pub codes: Vec<Code>,
}

/// Lines of code, with their titles.
#[derive(Debug)]
pub struct Code {
    pub title: &'static str,
    /// The title in the margin of a screen.
    pub label: &'static str,
    /// The language, as named by the info string of a Markdown code fence.
    pub language: String,
    pub text: String,
}

/// Charts, which are drawn only for an HTML page.
pub struct Figures<'a>(Box<dyn Fn() -> Vec<Figure> + 'a>);

/// A chart with its question.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The question that the chart answers.
    pub question: String,
    /// The chart.
    pub picture: Picture,
    /// The classes in the chart, each with its meaning.
    pub legend: Vec<(String, String)>,
    /// A hint for reading the chart.
    pub note: String,
}

impl<'a> Section<'a> {
    /// Returns a new section.
    pub fn new(role: Role, title: &str, lede: &str, blocks: Vec<Block<'a>>) -> Section<'a> {
        Section { role, title: title.into(), lede: lede.into(), blocks, ..Section::default() }
    }

    /// Returns a section with a list below its title; `None` if the list is empty.
    pub fn list(title: &str, lines: Vec<String>) -> Option<Section<'a>> {
        let blocks = vec![Block::notes(Style::List, lines)];
        (!blocks[0].is_empty()).then(|| Section::new(Role::Part, title, "", blocks))
    }

    /// Returns the section of labels and facts.
    pub fn facts(
        title: &str,
        facts: impl IntoIterator<Item = (impl Into<String>, Vec<String>)>,
    ) -> Section<'a> {
        let facts = facts.into_iter().map(|(label, facts)| (label.into(), facts)).collect();
        Section::new(Role::Facts, title, "", vec![Block::Facts(facts)])
    }
}

impl<'a> Block<'a> {
    /// Returns a block of sentences.
    pub fn notes(style: Style, notes: impl IntoIterator<Item = impl Into<Note>>) -> Block<'a> {
        Block::Notes(Notes { notes: notes.into_iter().map(Into::into).collect(), style })
    }

    /// Returns a block of charts.
    pub fn figures(draw: impl Fn() -> Vec<Figure> + 'a) -> Block<'a> {
        Block::Figures(Figures(Box::new(draw)))
    }

    /// Returns whether the block is one of sentences, but contains none.
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
    /// Returns a note that explains a mark in a table on a screen.
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
    /// Returns the word for the weight, which is also its class in HTML.
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

/// Returns a note on the number of rows that only the table below a chart contains; empty if the
/// chart shows all rows.
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

/// Returns findings for an HTML page, each with its evidence and its chapter.
pub fn remarks<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Remark> {
    let with_facts = |finding: &Finding| {
        let shown = |(key, value): (&String, _)| (evidence::label(key), evidence::told(key, value));
        Remark { facts: finding.evidence.iter().map(shown).collect(), ..remark(finding) }
    };
    findings.into_iter().map(with_facts).collect()
}

/// Returns a finding with its chapter, but without its evidence.
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
