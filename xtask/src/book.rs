//! `cargo xtask book`: the documents as a book of HTML pages, built by mdBook. Each linked file has
//! the same path in the book as in the repository, so `cargo xtask check`, which checks the links
//! of the documents, covers the book's links, too.

use crate::check::links::{from_root, links, relative_path};
use crate::tools::{self, MDBOOK};
use lab::tools::failure::{Failure, Tried};
use lab::tools::report::Report;
use lab::tools::repository::{copy, fresh, root, target};
use lab::tools::run::{HANG, Show, run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The list of pages in order, with links relative to the list's folder.
const SUMMARY: &str = "docs/SUMMARY.md";
const CONFIG: &str = "docs/book.toml";

/// Make a book of the documents, in `target/book/html`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install no mdBook; fail if it is missing
    #[arg(long)]
    no_install: bool,
}

/// Builds the book, and prints the path of its first page.
pub fn book(arguments: &Arguments) -> Result<(), Failure> {
    let html = make(!arguments.no_install)?;
    println!("{}", html.join("index.html").display());
    Ok(())
}

/// Runs the campaign: builds the book.
pub fn check(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("book", || make(install).map(drop))
}

fn make(install: bool) -> Result<PathBuf, Failure> {
    let mdbook = tools::provide(&MDBOOK, install)?;
    let folder = fresh(target().join("book"))?;
    lay_out(&folder)?;
    let html = folder.join("html");
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&folder).arg("--dest-dir").arg(&html);
    let made = run(&mut command, HANG, Show::Errors)?.success("mdbook build")?;
    // mdBook succeeds despite warnings and errors.
    if let Some(line) =
        made.stderr.lines().find(|line| ["WARN", "ERROR"].iter().any(|word| line.contains(word)))
    {
        return Err(Failure::Failed(format!("mdbook build: {}", line.trim())));
    }
    Ok(html)
}

/// Lays out the pages in `folder/src` as in the repository, with every linked file, so that links
/// work there, too.
fn lay_out(folder: &Path) -> Result<(), Failure> {
    let source = folder.join("src");
    let pages = pages()?;
    let mut files: BTreeSet<String> = pages.iter().cloned().collect();
    for page in &pages {
        let text = read(page)?;
        let paths = links(&text);
        for path in paths.iter().filter_map(|link| relative_path(link)) {
            let linked = from_root(page, path);
            if root().join(&linked).is_dir()
                || (linked.ends_with(".md") && !pages.contains(&linked))
            {
                return Err(Failure::Failed(format!("{page}: {path} is no page of {SUMMARY}")));
            }
            files.insert(linked);
        }
    }
    for file in files {
        copy(&root().join(&file), &source.join(&file))?;
    }
    copy(&root().join(CONFIG), &folder.join("book.toml"))?;
    std::fs::write(source.join("SUMMARY.md"), moved(&read(SUMMARY)?)).tried(SUMMARY)
}

/// Returns the paths of the pages that the summary lists, relative to the repository's root.
fn pages() -> Result<Vec<String>, Failure> {
    let text = read(SUMMARY)?;
    let paths = links(&text);
    Ok(paths.iter().map(|link| from_root(SUMMARY, link)).collect())
}

/// Returns the `summary` with its links, which are relative to `docs`, rewritten relative to the
/// root. Each line must have at most one link.
fn moved(summary: &str) -> String {
    let line = |line: &str| match line.split_once("](") {
        None => format!("{line}\n"),
        Some((title, link)) => format!("{title}]({}\n", from_root(SUMMARY, link)),
    };
    summary.lines().map(line).collect()
}

fn read(file: &str) -> Result<String, Failure> {
    std::fs::read_to_string(root().join(file)).tried(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::tools::repository::files;

    #[test]
    fn every_document_is_a_page_of_the_book() {
        let pages = pages().expect("a summary");
        for file in files(&["docs/*.md"]).expect("documents") {
            assert!(file == SUMMARY || pages.contains(&file), "{SUMMARY} has no line of {file}");
        }
    }

    #[test]
    fn every_linked_document_is_a_page_of_the_book() {
        let folder = tempfile::tempdir().expect("a folder");
        lay_out(folder.path()).expect("each link leads to a file or a page");
    }

    #[test]
    fn a_link_leads_to_the_same_file_from_the_root() {
        assert_eq!(from_root("docs/a.md", "b.md"), "docs/b.md");
        assert_eq!(from_root("docs/a.md", "../langs/./README.md"), "langs/README.md");
        assert_eq!(from_root("README.md", "docs/b.md"), "docs/b.md");
        assert_eq!(
            moved("# A\n\n- [b](b.md)\n  - [c](../c.md)\n"),
            "# A\n\n- [b](docs/b.md)\n  - [c](c.md)\n"
        );
    }
}
