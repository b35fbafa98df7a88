//! Links in the pages of a book: each must lead to a file of the book, and to an existing heading.

use lab::tools::failure::{Failure, Tried};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns "page: link" for each link in the pages below `folder` that leads nowhere. Links to
/// other sites are not checked.
pub fn broken(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut pages = BTreeMap::new();
    read(folder, &mut pages)?;
    let mut broken = Vec::new();
    for (page, text) in &pages {
        for link in attributes(text, &[" href=\"", " src=\""]) {
            if !is_sound(&pages, page, &link) {
                let page = page.strip_prefix(folder).unwrap_or(page);
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok(broken)
}

/// Reads every page below `folder`.
fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder).tried(folder.display())? {
        let path = entry.tried(folder.display())?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let text = std::fs::read_to_string(&path).tried(path.display())?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

fn is_sound(pages: &BTreeMap<PathBuf, String>, page: &Path, link: &str) -> bool {
    if link.split('/').next().is_some_and(|first| first.contains(':')) {
        return true;
    }
    let (path, part) = link.split_once('#').unwrap_or((link, ""));
    let file = match path.split('?').next().unwrap_or(path) {
        "" => page.to_owned(),
        path => page.parent().unwrap_or(page).join(path),
    };
    // The path may have `..` in it.
    let Ok(file) = file.canonicalize() else { return false };
    let Some(text) =
        pages.iter().find(|(page, _)| page.canonicalize().is_ok_and(|page| page == file))
    else {
        return part.is_empty() && file.is_file();
    };
    part.is_empty() || attributes(text.1, &[" id=\""]).any(|id| id == part)
}

/// Returns the values of attributes, which begin with one of `starts`. mdBook writes each in double
/// quotes, and escapes these in text.
fn attributes<'a>(text: &'a str, starts: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    let of =
        move |start: &'a &str| text.split(*start).skip(1).filter_map(|rest| rest.split_once('"'));
    starts.iter().flat_map(of).map(|(value, _)| value.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_and_a_part_of_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("in")).expect("made");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write("a.css", "");
        write("a.html", "<h1 id=\"top\"></h1><a href=\"in/b.html#part\"></a><link href=\"a.css\">");
        write(
            "in/b.html",
            "<p id=\"part\"></p><a href=\"#gone\"></a><a href=\"../a.html#top\"></a>\
             <img src=\"gone.png\"><a href=\"../a.html#part\"></a><a href=\"https://a.b/c\"></a>",
        );
        let mut broken = broken(folder.path()).expect("pages");
        broken.sort();
        assert_eq!(
            broken,
            ["in/b.html: #gone", "in/b.html: ../a.html#part", "in/b.html: gone.png"]
        );
    }
}
