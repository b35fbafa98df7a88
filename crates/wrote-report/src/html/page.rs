//! The page: its parts in order, and the template that lays them out.

use crate::tree::{Block, Section};
use askama::Template;
use std::io::{self, Write};

const STYLE: &str = include_str!("../../templates/style.css");
/// The page's script: it copies, and shows the values under a pointer.
const SCRIPT: &str = include_str!("../../templates/script.js");
/// The SHA-256 of [`SCRIPT`] in Base64: the browser runs this script and no other.
const SCRIPT_SHA256: &str = "e5VvhmUIQEmth4lFSM42874NbAYhGQOtnwt9lbGu0fs=";

/// An article has charts for at most this many workloads.
const FIGURES_MAX: usize = 60;

/// A page.
#[derive(Template)]
#[template(path = "page.html")]
pub struct Page<'a> {
    /// The title of the window.
    pub title: String,
    /// One for each document, or the comparison of all.
    pub articles: Vec<Article<'a>>,
    /// The version of the program that made the page.
    pub version: &'static str,
}

/// The part of a page about one document.
#[derive(Default)]
pub struct Article<'a> {
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
    pub sections: Vec<Section<'a>>,
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

impl Article<'_> {
    /// Gives the article only the charts of its first workloads.
    pub fn limit_charts(&mut self) {
        let sections = self.sections.iter_mut().map(|section| &mut section.blocks);
        let mut left = FIGURES_MAX;
        for blocks in sections {
            blocks.retain(|block| match block {
                Block::Figures(_) => {
                    let has = left > 0;
                    left = left.saturating_sub(1);
                    has
                }
                _ => true,
            });
        }
    }
}

impl Page<'_> {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_into(&mut &mut *out)
    }
}
