//! Checks that every relative link in the Markdown files of the repository leads to an existing
//! file or folder, and to an existing heading.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{files, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::path::Path;

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

/// Whether a heading of `text` has the anchor `part`, as viewers of Markdown and mdBook make it:
/// its text in lower case, with `-` for a space and without signs. A second heading of the same
/// text has `-1` at its end.
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
}
