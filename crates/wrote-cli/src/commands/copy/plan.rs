//! The copies to make, from the paths of the command line.

use crate::args::CopyArgs;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use wrote_result::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub from: PathBuf,
    pub to: PathBuf,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file to a file.
    File,
    /// A folder to a folder.
    Folder,
    /// Standard input to a file.
    In,
    /// A file to standard output.
    Out,
}

/// The copies to make, in turn.
///
/// # Errors
///
/// [`Error::Usage`] with what would be right.
pub(super) fn items(arguments: &CopyArgs) -> Result<Vec<Item>, Error> {
    let (sources, to) = (&arguments.from, &arguments.to);
    if let [from] = &sources[..]
        && (is_dash(from) || is_dash(to))
    {
        return Ok(vec![stream(from, to, arguments.verify)?]);
    }
    if is_dash(to) {
        return usage(to, "standard output takes one file: cat puts several together");
    }
    if let Some(dash) = sources.iter().find(|from| is_dash(from)) {
        return usage(dash, "standard input has no name to get in a folder: copy it alone");
    }
    let into = to.is_dir();
    if sources.len() > 1 && !into {
        return usage(to, "is not a folder, and there is more than one thing to copy into it");
    }
    let items: Vec<Item> = sources
        .iter()
        .map(|from| item(from, to, into, arguments.recursive))
        .collect::<Result<_, Error>>()?;
    let mut taken = HashSet::new();
    match items.iter().find(|item| !taken.insert(&item.to)) {
        Some(item) => usage(&item.from, "another thing to copy has the same name"),
        None => Ok(items),
    }
}

fn stream(from: &Path, to: &Path, verify: bool) -> Result<Item, Error> {
    let kind = match (is_dash(from), is_dash(to)) {
        (true, true) => {
            return usage(from, "from standard input to standard output is what cat is for");
        }
        (true, false) if to.is_dir() => {
            return usage(to, "is a folder; standard input needs the name of a file");
        }
        (true, false) => Kind::In,
        (false, _) if verify => {
            return usage(to, "standard output can't be read back; leave --verify out");
        }
        (false, _) if from.is_dir() => {
            return usage(
                from,
                "is a folder, and standard output takes a file; tar makes one of it",
            );
        }
        (false, _) => Kind::Out,
    };
    Ok(Item { from: from.to_owned(), to: to.to_owned(), kind })
}

/// `into`: whether `to` is a folder that is there, and gets the copy under its own name.
fn item(from: &Path, to: &Path, into: bool, recursive: bool) -> Result<Item, Error> {
    let kind = match from.is_dir() {
        true if !recursive => return usage(from, "is a folder; -r copies folders"),
        true => Kind::Folder,
        false => Kind::File,
    };
    let to = if into { to.join(name_of(from)?) } else { to.to_owned() };
    Ok(Item { from: from.to_owned(), to, kind })
}

/// The name under which something goes into a folder; `.` has one too.
fn name_of(from: &Path) -> Result<OsString, Error> {
    if let Some(name) = from.file_name() {
        return Ok(name.to_owned());
    }
    let real = from
        .canonicalize()
        .map_err(|error| Error::Failed(format!("{}: {error}", from.display())))?;
    match real.file_name() {
        Some(name) => Ok(name.to_owned()),
        None => usage(from, "has no name to get in a folder: give the name of the copy"),
    }
}

fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

fn usage<T>(path: &Path, because: &str) -> Result<T, Error> {
    Err(Error::Usage(format!("{}: {because}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    /// The plan of a command line, each `@` of which is a folder with the file `file` and the
    /// folder `folder`.
    fn plan(line: &str) -> Result<Vec<(String, String, Kind)>, String> {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), b"x").unwrap();
        std::fs::create_dir(place.path().join("folder")).unwrap();
        let root = place.path().to_str().unwrap();
        let words = line.split(' ').map(|word| word.replace('@', root));
        let cli =
            Cli::try_parse_from(["wrote".to_owned(), "copy".to_owned()].into_iter().chain(words));
        let Command::Copy(arguments) = cli.expect("a good command line").command else {
            panic!("not a copy")
        };
        let shown = |path: &Path| path.to_str().unwrap().replace(root, "@");
        match items(&arguments) {
            Ok(items) => Ok(items
                .iter()
                .map(|item| (shown(&item.from), shown(&item.to), item.kind))
                .collect()),
            Err(error) => Err(shown(Path::new(&error.to_string()))),
        }
    }

    fn one(from: &str, to: &str, kind: Kind) -> Result<Vec<(String, String, Kind)>, String> {
        Ok(vec![(from.to_owned(), to.to_owned(), kind)])
    }

    #[test]
    fn a_folder_that_is_there_gets_the_copy_under_its_own_name() {
        assert_eq!(plan("@/file @/new"), one("@/file", "@/new", Kind::File));
        assert_eq!(plan("@/file @/folder"), one("@/file", "@/folder/file", Kind::File));
        assert_eq!(plan("-r @/folder @/new"), one("@/folder", "@/new", Kind::Folder));
        assert_eq!(plan("-r @/folder @/folder/"), one("@/folder", "@/folder/folder", Kind::Folder));
        assert_eq!(plan("-r @/folder/. @"), one("@/folder/.", "@/folder", Kind::Folder));
    }

    #[test]
    fn a_dash_is_a_stream_when_it_is_alone() {
        assert_eq!(plan("- @/new"), one("-", "@/new", Kind::In));
        assert_eq!(plan("@/file -"), one("@/file", "-", Kind::Out));
        assert!(plan("- -").unwrap_err().contains("cat"));
        assert!(plan("@/file @/file -").unwrap_err().starts_with("-: "));
        assert!(plan("- @/file @/folder").unwrap_err().starts_with("-: "));
        assert!(plan("- @/folder").unwrap_err().starts_with("@/folder: is a folder"));
        assert!(plan("--verify @/file -").unwrap_err().contains("--verify"));
        assert!(plan("-r @/folder -").unwrap_err().contains("tar"));
    }

    #[test]
    fn a_folder_is_copied_only_with_r() {
        assert_eq!(plan("@/folder @/new"), Err("@/folder: is a folder; -r copies folders".into()));
    }

    #[test]
    fn several_things_need_a_folder_and_names_of_their_own() {
        assert_eq!(plan("-r @/file @/folder @").map(|items| items.len()), Ok(2));
        assert!(plan("@/file @/other @/new").unwrap_err().starts_with("@/new: is not a folder"));
        let same = plan("@/file @/folder/../file @/folder").unwrap_err();
        assert!(same.ends_with("has the same name"), "{same}");
    }
}
