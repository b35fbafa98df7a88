//! Checks that every relative link in the repository's Markdown files leads to a file or folder.

use crate::failure::{Failure, Tried};
use crate::repository::{files, root};
use pulldown_cmark::{Event, Parser, Tag};
use std::path::Path;

/// Checks every Markdown file that git knows or would add.
pub fn check() -> Result<(), Failure> {
    let mut broken = Vec::new();
    for file in files(&["*.md"])? {
        let path = root().join(&file);
        let text = std::fs::read_to_string(&path).tried(&file)?;
        broken.extend(broken_links(&path, &text).iter().map(|link| format!("{file}: {link}")));
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("broken links: {}", broken.join(", "))))
}

/// Returns the broken relative links and images in `text`, the content of `file`.
fn broken_links(file: &Path, text: &str) -> Vec<String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let links = Parser::new(text).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    });
    let leads_nowhere =
        |link: &str| relative_path(link).is_some_and(|path| !folder.join(path).exists());
    links.filter(|link| leads_nowhere(link)).map(|link| link.to_string()).collect()
}

/// Returns the path in a link, without its `#fragment`; `None` where the link leads out of the
/// repository or stays in its file.
fn relative_path(link: &str) -> Option<&str> {
    let path = link.split('#').next().filter(|path| !path.is_empty())?;
    let has_scheme = path.split('/').next().is_some_and(|first| first.contains(':'));
    (!has_scheme).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("there.md"), "").expect("written");
        std::fs::create_dir(folder.path().join("docs")).expect("made");
        broken_links(&folder.path().join("README.md"), text)
    }

    #[test]
    fn links_to_files_and_folders_that_are_there_are_sound() {
        assert!(
            broken("[a](there.md) [b](docs) [c](./docs/../there.md#part) [d](#here)").is_empty()
        );
    }

    #[test]
    fn a_link_or_an_image_that_leads_nowhere_is_found() {
        let text = "[a](gone.md#part) ![b](docs/gone.png) [c]\n\n[c]: gone/too.md\n";
        assert_eq!(broken(text), ["gone.md#part", "docs/gone.png", "gone/too.md"]);
    }

    #[test]
    fn links_out_of_the_repository_and_code_are_left_alone() {
        assert!(broken("<https://example.org> [m](mailto:a@b.c) `[x](gone.md)`").is_empty());
        assert!(broken("```\n[x](gone.md)\n```\n").is_empty());
    }
}
