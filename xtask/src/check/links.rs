//! Checks that every relative link in the Markdown files of the repository leads to an existing
//! file or folder, and to an existing heading; and that the paths exist that
//! `docs/architecture.md` names.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{files, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Checks every Markdown file that git knows or would add.
pub fn check() -> Result<(), Failure> {
    let mut broken = Vec::new();
    for file in files(&["*.md"])? {
        let path = root().join(&file);
        // The links of a packaged document are valid at its original place.
        if path.is_symlink() {
            continue;
        }
        let text = std::fs::read_to_string(&path).tried(&file)?;
        broken.extend(broken_links(&path, &text).iter().map(|link| format!("{file}: {link}")));
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("broken links: {}", broken.join(", "))))
}

/// Returns the links and images in the Markdown `text`.
pub fn links(text: &str) -> Vec<String> {
    let links = events(text).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    });
    links.map(|link| link.to_string()).collect()
}

/// Returns the path in a link, without its `#fragment`; `None` where the link leads out of the
/// repository or stays in its file.
pub fn relative_path(link: &str) -> Option<&str> {
    let path = link.split('#').next().filter(|path| !path.is_empty())?;
    let has_scheme = path.split('/').next().is_some_and(|first| first.contains(':'));
    (!has_scheme).then_some(path)
}

/// Returns the path from the root that `link` in `file` leads to.
pub fn from_root(file: &str, link: &str) -> String {
    let mut path = PathBuf::from(file);
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}

/// Returns the events of the Markdown `text`.
pub fn events(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// Returns the broken relative links and images in `text`, the content of `file`.
fn broken_links(file: &Path, text: &str) -> Vec<String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let is_broken = |link: &String| {
        let part = link.split_once('#').map(|(_, part)| part);
        match relative_path(link).map(|path| folder.join(path)) {
            Some(path) if !path.exists() => true,
            Some(path) if path.extension().is_some_and(|extension| extension == "md") => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                part.is_some_and(|part| !has_heading(&text, part))
            }
            Some(_) => false,
            None => link.starts_with('#') && part.is_some_and(|part| !has_heading(text, part)),
        }
    };
    links(text).into_iter().filter(is_broken).collect()
}

/// Returns whether a heading of `text` has the anchor `part`, as viewers of Markdown and mdBook
/// make it: its text in lower case, with `-` for a space and without signs. A second heading of the
/// same text has `-1` at its end.
fn has_heading(text: &str, part: &str) -> bool {
    let mut seen = BTreeMap::<String, u32>::new();
    headings(text).iter().any(|heading| {
        let letters = heading.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        });
        let anchor = letters.collect::<String>().to_lowercase();
        let number = seen.entry(anchor.clone()).or_default();
        *number += 1;
        if *number == 1 { anchor == part } else { format!("{anchor}-{}", *number - 1) == part }
    })
}

fn headings(text: &str) -> Vec<String> {
    let mut headings = Vec::new();
    let mut heading = None;
    for event in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => headings.extend(heading.take()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    headings
}

const DOCUMENT: &str = "docs/architecture.md";

/// Fails on a path in backticks that leads to no file and no folder.
///
/// A path may begin at any parent folder, without `src`: `log/claim.rs`, `wrote-cli/args`. A path
/// that begins with a folder of the repository's root is complete.
pub fn check_paths() -> Result<(), Failure> {
    let text = std::fs::read_to_string(root().join(DOCUMENT)).tried(DOCUMENT)?;
    let places = Places::of(&files(&[])?);
    let gone = places.gone(&text);
    gone.iter().for_each(|(line, path)| println!("{DOCUMENT}:{line}: `{path}` is gone"));
    match gone.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("{count} paths in {DOCUMENT} are gone"))),
    }
}

/// The files and folders of the repository, to find paths in.
struct Places {
    /// Paths from the root.
    whole: BTreeSet<String>,
    /// The tails of those paths, from any folder on, with and without `src`.
    ends: BTreeSet<String>,
}

impl Places {
    fn of(files: &[String]) -> Places {
        let mut places = Places { whole: BTreeSet::new(), ends: BTreeSet::new() };
        for file in files {
            for (end, _) in file.match_indices('/').chain([(file.len(), "")]) {
                let path = &file[..end];
                places.whole.insert(path.to_owned());
                for path in [path.to_owned(), path.replacen("/src/", "/", 1)] {
                    let begins = path.match_indices('/').map(|(begin, _)| begin + 1);
                    places
                        .ends
                        .extend([0].into_iter().chain(begins).map(|at| path[at..].to_owned()));
                }
            }
        }
        places
    }

    /// Returns the paths in `text` that do not exist, with their lines.
    fn gone(&self, text: &str) -> Vec<(usize, String)> {
        let mut gone = Vec::new();
        for (event, range) in Parser::new(text).into_offset_iter() {
            let Event::Code(code) = event else { continue };
            let line = text[..range.start].matches('\n').count() + 1;
            if self.is_path(&code) && !self.has(&code) {
                gone.push((line, code.to_string()));
            }
        }
        gone
    }

    /// Returns whether it is a path rather than the name of a row, a schema or a function: it ends
    /// in `/` or as files do, or begins with a folder of the root or a crate.
    fn is_path(&self, code: &str) -> bool {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
        let extension = code.rsplit_once('.').map_or("", |(_, extension)| extension);
        let begin = code.split('/').next().unwrap_or_default();
        let is_folder = |name: &str| {
            let beside = |folder: &str| self.whole.contains(&format!("{folder}{name}"));
            beside("") || beside("crates/")
        };
        code.chars().all(is_letter)
            && (code.ends_with('/')
                || ["md", "rs", "sh", "toml"].contains(&extension)
                || code.contains('/') && is_folder(begin))
    }

    fn has(&self, path: &str) -> bool {
        let path = path.trim_start_matches("../").trim_end_matches('/');
        let is_whole = path.split_once('/').is_some_and(|(begin, _)| self.whole.contains(begin));
        if is_whole { self.whole.contains(path) } else { self.ends.contains(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let there = "# A `part` of it\n\n## Part\n\n## Part\n";
        std::fs::write(folder.path().join("there.md"), there).expect("written");
        std::fs::create_dir(folder.path().join("docs")).expect("made");
        broken_links(&folder.path().join("README.md"), text)
    }

    #[test]
    fn links_to_files_and_folders_that_are_there_are_sound() {
        assert!(broken("[a](there.md) [b](docs) [c](./docs/../there.md#part)").is_empty());
    }

    #[test]
    fn a_link_or_an_image_that_leads_nowhere_is_found() {
        let text = "[a](gone.md#part) ![b](docs/gone.png) [c]\n\n[c]: gone/too.md\n";
        assert_eq!(broken(text), ["gone.md#part", "docs/gone.png", "gone/too.md"]);
    }

    #[test]
    fn a_link_to_a_heading_that_is_not_there_is_found() {
        let text = "# Here\n[a](#here) [b](#gone) [c](there.md#a-part-of-it) [d](there.md#part-1)\n\
                    [e](there.md#part-2) [f](there.md#Part)\n";
        assert_eq!(broken(text), ["#gone", "there.md#part-2", "there.md#Part"]);
    }

    #[test]
    fn links_out_of_the_repository_and_code_are_left_alone() {
        assert!(broken("<https://example.org> [m](mailto:a@b.c) `[x](gone.md)`").is_empty());
        assert!(broken("```\n[x](gone.md)\n```\n").is_empty());
    }

    fn gone(text: &str) -> Vec<(usize, String)> {
        let files = ["crates/wrote/src/log.rs", "crates/wrote/src/log/claim.rs", "lab/kill/run.sh"];
        Places::of(&files.map(str::to_owned)).gone(text)
    }

    #[test]
    fn a_path_that_is_there_may_begin_anywhere_and_leave_out_src() {
        let text = "`crates/wrote/src/log/claim.rs`, `wrote/src/log.rs`, `wrote/log`, `log/`,\n\
                    `claim.rs`, `log/claim.rs`, `lab/kill`, `lab/kill/run.sh`, `../log/`\n";
        assert_eq!(gone(text), []);
    }

    #[test]
    fn a_path_that_is_gone_is_named_with_its_line() {
        let text = "One:\n`log/gone.rs`, `lab/soak`,\n`wrote/gone` and `lab/run.sh`, `gone/`\n";
        let expected = [
            (2, "log/gone.rs"),
            (2, "lab/soak"),
            (3, "wrote/gone"),
            (3, "lab/run.sh"),
            (3, "gone/"),
        ];
        assert_eq!(gone(text), expected.map(|(line, path)| (line, path.to_owned())));
    }

    #[test]
    fn names_and_blocks_of_code_are_no_paths() {
        let text = "`stream/direct`, `wrote.result/1`, `fs::write`, `cargo run gone/`,\n\
                    gone/x.rs\n\n```\n`gone.rs`\n```\n";
        assert_eq!(gone(text), []);
    }
}
