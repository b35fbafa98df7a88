//! The page: its parts in the order in which they stand, and the template that lays them out.

use super::chart::Picture;
use crate::table::Table;
use askama::Template;
use std::io::{self, Write};

/// The page's style.
const STYLE: &str = include_str!("../../templates/style.css");
/// The page's script: it copies, and shows the values under a pointer.
const SCRIPT: &str = include_str!("../../templates/script.js");
/// The SHA-256 of [`SCRIPT`] in Base64: the browser runs this script and no other.
const SCRIPT_SHA256: &str = "e5VvhmUIQEmth4lFSM42874NbAYhGQOtnwt9lbGu0fs=";

/// A page.
#[derive(Template)]
#[template(path = "page.html")]
pub struct Page {
    /// The title of the window.
    pub title: String,
    /// One for each document, or the comparison of all.
    pub articles: Vec<Article>,
    /// The version of the program that made the page.
    pub version: &'static str,
}

/// The part of a page about one document.
#[derive(Debug, Default)]
pub struct Article {
    /// The line above the title: `wrote bench`.
    pub kicker: String,
    /// Its title.
    pub title: String,
    /// Sentences below the title.
    pub ledes: Vec<String>,
    /// The command that made the document; empty where unknown.
    pub command: String,
    /// The document, to be saved.
    pub saved: Option<Saved>,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// A document inside the page.
#[derive(Debug)]
pub struct Saved {
    /// The name of its file.
    pub name: String,
    /// Its size in words.
    pub size: String,
    /// The document as a `data:` address.
    pub address: String,
}

/// A section of an article.
#[derive(Debug, Default)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// The sentence below the title.
    pub lede: String,
    /// Its content.
    pub blocks: Vec<Block>,
    /// Whether only its title is seen until a reader opens it.
    pub is_folded: bool,
    /// The id by which the contents link to it; given to all sections at the end.
    pub id: String,
}

/// A piece of a section.
#[derive(Debug)]
pub enum Block {
    /// The answers, side by side.
    Cards(Vec<Card>),
    /// Labels with their facts.
    Facts(Vec<(String, Vec<String>)>),
    /// Findings, or the checks of the doctor.
    Findings(Vec<Remark>),
    /// A heading within the section, and words behind it.
    Heading(String, String),
    /// A chart.
    Figure(Figure),
    /// A table.
    Table(Table),
    /// Sentences.
    Notes(Vec<String>),
    /// A chapter of the documents: a title, its id, and its HTML, which is our own.
    Chapter(String, String, String),
}

/// An answer.
#[derive(Debug, Default)]
pub struct Card {
    /// The purpose: `streaming`.
    pub purpose: String,
    /// The way in words.
    pub way: String,
    /// Its figure; empty where no row is known.
    pub figure: String,
    /// The reach of its interval: `±6%`.
    pub spread: String,
    /// The ends of its interval, and further figures.
    pub more: String,
    /// The class and the words of the level that it survives; empty where unknown.
    pub survives: String,
    /// The advised action.
    pub action: String,
    /// The measured reason.
    pub because: String,
    /// Headings, each with its code.
    pub codes: Vec<(String, String)>,
}

/// A finding, or a check.
#[derive(Debug, Default)]
pub struct Remark {
    /// `warning`, `info`, or the state of a check.
    pub weight: String,
    /// Its id: `ram-not-disk`.
    pub id: String,
    /// The id of the chapter that explains it; empty where there is none.
    pub chapter: String,
    /// Its text.
    pub text: String,
    /// Labels and the facts behind them.
    pub facts: Vec<(String, String)>,
    /// Commands that change it.
    pub commands: Vec<String>,
}

/// A chart with its question.
#[derive(Debug, Default)]
pub struct Figure {
    /// The question that it answers.
    pub question: String,
    /// The chart.
    pub picture: Picture,
    /// The classes of the chart and their meanings.
    pub legend: Vec<(String, String)>,
    /// How to read it.
    pub note: String,
}

impl Page {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_into(&mut &mut *out)
    }
}
