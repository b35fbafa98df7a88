//! Checks that the paths that `docs/architecture.md` names exist.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{files, root};
use pulldown_cmark::{Event, Parser};
use std::collections::BTreeSet;

const DOCUMENT: &str = "docs/architecture.md";

/// Fails on a path in backticks that leads to no file and no folder.
///
/// A path may begin at any parent folder, without `src`: `log/claim.rs`, `wrote-cli/args`. A path
/// that begins with a folder of the repository's root is complete.
pub fn check() -> Result<(), Failure> {
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
            let paths = expanded(&code).into_iter().filter(|path| self.is_path(path));
            gone.extend(paths.filter(|path| !self.has(path)).map(|path| (line, path)));
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

/// Returns the paths that `a/{b,c}` stands for.
fn expanded(code: &str) -> Vec<String> {
    let braces = code.split_once('{').and_then(|(before, rest)| {
        let (choices, after) = rest.split_once('}')?;
        Some((before, choices, after))
    });
    let Some((before, choices, after)) = braces else { return vec![code.to_owned()] };
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(text: &str) -> Vec<(usize, String)> {
        let files = ["crates/wrote/src/log.rs", "crates/wrote/src/log/claim.rs", "lab/kill/run.sh"];
        Places::of(&files.map(str::to_owned)).gone(text)
    }

    #[test]
    fn a_path_that_is_there_may_begin_anywhere_and_leave_out_src() {
        let text = "`crates/wrote/src/log/claim.rs`, `wrote/src/log.rs`, `wrote/log`, `log/`,\n\
                    `claim.rs`, `log/claim.rs`, `lab/{kill,kill/run.sh}`, `../log/`\n";
        assert_eq!(gone(text), []);
    }

    #[test]
    fn a_path_that_is_gone_is_named_with_its_line() {
        let text =
            "One:\n`log/gone.rs`, `lab/{kill,soak}`,\n`wrote/gone` and `lab/run.sh`, `gone/`\n";
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
