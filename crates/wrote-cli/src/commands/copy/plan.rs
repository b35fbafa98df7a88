//! The copies to make, according to the paths of the command line.

use crate::args::CopyArgs;
use crate::stdio::{self, STDIN, STDOUT};
use std::collections::HashSet;
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
    File,
    /// Copies standard input, or another stream, to a file.
    In,
    /// Copies a file to standard output, or to another stream.
    Out,
}

/// Returns the copies to make, in order.
///
/// # Errors
///
/// [`Error::Usage`], whose message shows the correct command line.
pub(super) fn items(arguments: &CopyArgs) -> Result<Vec<Item>, Error> {
    let (sources, to) = (&arguments.from, &arguments.to);
    if let Some(from) = sources.iter().find(|from| arguments.recursive || from.is_dir()) {
        return usage(from, &instead_of_a_folder(from, to));
    }
    if let [from] = &sources[..]
        && (is_stream(from, STDIN)? || is_stream(to, STDOUT)?)
    {
        return Ok(vec![stream(from, to, arguments.verify)?]);
    }
    if is_stream(to, STDOUT)? {
        return usage(to, "standard output takes one file; cat joins several");
    }
    for from in sources {
        if is_stream(from, STDIN)? {
            return usage(from, "standard input has no name to use in a folder: copy it alone");
        }
    }
    let into = to.is_dir();
    if sources.len() > 1 && !into {
        return usage(to, "is not a folder, so it can't take several copies");
    }
    let items: Vec<Item> =
        sources.iter().map(|from| item(from, to, into)).collect::<Result<_, Error>>()?;
    let mut taken = HashSet::new();
    match items.iter().find(|item| !taken.insert(&item.to)) {
        Some(item) => usage(&item.from, "another source has the same name"),
        None => Ok(items),
    }
}

fn stream(from: &Path, to: &Path, verify: bool) -> Result<Item, Error> {
    let kind = match (is_stream(from, STDIN)?, is_stream(to, STDOUT)?) {
        (true, true) => {
            return usage(from, "to copy standard input to standard output, use cat");
        }
        (true, false) if to.is_dir() => {
            return usage(to, "is a folder; standard input needs the name of a file");
        }
        (true, false) => Kind::In,
        (false, _) if verify => {
            return usage(to, "standard output can't be read back: leave out --verify");
        }
        (false, _) => Kind::Out,
    };
    Ok(Item { from: from.to_owned(), to: to.to_owned(), kind })
}

/// Returns the copy of one file. With `into`, `to` is an existing folder, and the copy in it has
/// the name of `from`.
fn item(from: &Path, to: &Path, into: bool) -> Result<Item, Error> {
    let to = match from.file_name() {
        Some(name) if into => to.join(name),
        None if into => {
            return usage(from, "has no name to use in a folder: give the name of the copy");
        }
        _ => to.to_owned(),
    };
    Ok(Item { from: from.to_owned(), to, kind: Kind::File })
}

/// Returns a message that names other commands that copy a folder, because this command does not.
fn instead_of_a_folder(from: &Path, to: &Path) -> String {
    if to == Path::new("-") {
        return "only files are copied; for a folder use tar".to_owned();
    }
    let (from, to) = (from.display(), to.display());
    format!("only files are copied; for a folder: cp -a {from} {to} && sync -f {to}")
}

/// Returns whether the path refers to standard input or output (`dash` is the descriptor that `-`
/// means), or to another open file that is read or written sequentially, such as the `/dev/fd/63`
/// of `<(command)`.
fn is_stream(path: &Path, dash: u32) -> Result<bool, Error> {
    let Some(descriptor) = stdio::descriptor(path) else { return Ok(path == Path::new("-")) };
    let is_file = path.is_file();
    if is_file && descriptor != dash && dash == STDOUT {
        return usage(path, "leads to an open file: name that file itself");
    }
    Ok(descriptor == dash || !is_file)
}

fn usage<T>(path: &Path, because: &str) -> Result<T, Error> {
    Err(Error::Usage(format!("{}: {because}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    /// Returns the plan for a command line. Each `@` becomes a folder that contains a file `file`
    /// and a folder `folder`.
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
    }

    #[test]
    fn a_folder_as_source_is_refused_with_the_commands_that_copy_it() {
        let instead =
            "@/folder: only files are copied; for a folder: cp -a @/folder @/new && sync -f @/new";
        for line in ["@/folder @/new", "-r @/folder @/new", "@/file @/folder @/new"] {
            assert_eq!(plan(line), Err(instead.into()), "{line}");
        }
        assert!(plan("@/folder -").unwrap_err().contains("tar"));
    }

    #[test]
    fn several_files_need_a_folder_and_names_of_their_own() {
        assert_eq!(plan("@/file @/new @").map(|items| items.len()), Ok(2));
        assert!(plan("@/file @/other @/new").unwrap_err().starts_with("@/new: is not a folder"));
        let same = plan("@/file @/folder/../file @/folder").unwrap_err();
        assert!(same.ends_with("has the same name"), "{same}");
    }
}
