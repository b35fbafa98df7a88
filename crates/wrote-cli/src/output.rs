//! Where text goes: standard output, or a file that is whole or not there.

use crate::terminal::{file_screen, stdout_screen};
use rustix::fs::{Access, access};
use std::fs::Permissions;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wrote_report::Screen;
use wrote_result::Error;

/// Writes to standard output. When its reader has gone (`wrote ... | head -1`), the rest is left
/// out quietly: the reader has what it wanted.
///
/// # Errors
///
/// [`Error::Failed`] where standard output takes no more for another reason (a full disk).
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // What the buffer still holds must not be tried again when it is dropped.
            drop(out.into_parts());
            Ok(())
        }
        Err(error) => Err(Error::Failed(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Writes a result to the file, or to standard output where there is none. `write` is told where
/// the text will be read.
///
/// # Errors
///
/// Those of [`ResultFile::write`] and [`to_stdout`].
pub fn deliver(
    file: Option<ResultFile>,
    write: impl FnOnce(Screen, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    match file {
        Some(file) => file.write(|out| write(file_screen(), out)),
        None => to_stdout(|out| write(stdout_screen(), out)),
    }
}

/// A file that will hold a result: written beside its place under another name and then renamed, so
/// that it is never there in part.
#[derive(Debug)]
pub struct ResultFile {
    /// Its place, symbolic links followed.
    path: PathBuf,
    /// Whether a file that is there already is replaced.
    replace: bool,
}

impl ResultFile {
    /// Checks, before anything is measured, that `path` can be written and is not there yet. With
    /// `replace` an ordinary file may be there.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where the file is there, is no ordinary file, or its folder does not exist
    /// or cannot be written.
    pub fn new(path: &Path, replace: bool) -> Result<ResultFile, Error> {
        let shown = path.display();
        match path.metadata() {
            Ok(there) if !there.is_file() => {
                return Err(Error::Usage(format!("--output {shown}: is not an ordinary file")));
            }
            Ok(_) if !replace => {
                return Err(Error::Usage(format!(
                    "--output {shown}: exists already; --force replaces it"
                )));
            }
            // Renaming over a symbolic link would replace the link, not what it leads to.
            Ok(_) => {
                let path = path.canonicalize().map_err(|error| refused(path, &error))?;
                return ResultFile { path, replace }.in_writable_folder();
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(refused(path, &error)),
        }
        if path.file_name().is_none() {
            return Err(Error::Usage(format!("--output {shown}: is not the name of a file")));
        }
        ResultFile { path: path.to_owned(), replace }.in_writable_folder()
    }

    fn in_writable_folder(self) -> Result<ResultFile, Error> {
        let folder = self.folder();
        access(folder, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|errno| refused(folder, &errno.into()))?;
        Ok(self)
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        }
    }

    /// Writes the file: whole and on stable storage when this returns, or not there.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] where the kernel refuses, or where another process has made the file
    /// meanwhile.
    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        self.try_write(write)
            .map_err(|error| Error::Failed(format!("{}: {error}", self.path.display())))
    }

    fn try_write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mut file = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".tmp")
            // As for any new file; the umask takes away from it what it must.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(self.folder())?;
        let mut out = BufWriter::new(file.as_file_mut());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        if self.replace {
            file.persist(&self.path)?;
        } else {
            file.persist_noclobber(&self.path)?;
        }
        // The name is durable only when its folder is (fsync(2)).
        std::fs::File::open(self.folder())?.sync_all()
    }
}

fn refused(path: &Path, error: &io::Error) -> Error {
    Error::Usage(format!("--output {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::names;
    use std::fs;

    #[test]
    fn a_file_that_is_there_is_replaced_only_by_force() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        assert!(matches!(ResultFile::new(&path, false), Err(Error::Usage(_))));
        let file = ResultFile::new(&path, true).unwrap();
        file.write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_file_that_somebody_made_meanwhile_is_not_replaced() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let file = ResultFile::new(&path, false).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(file.write(|out| out.write_all(b"ours")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_write_that_fails_half_way_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = ResultFile::new(&folder.path().join("result.json"), false).unwrap();
        let half = file.write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert!(half.is_err());
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn force_replaces_nothing_but_an_ordinary_file() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(ResultFile::new(folder.path(), true), Err(Error::Usage(_))));
        assert!(matches!(ResultFile::new(Path::new("/dev/null"), true), Err(Error::Usage(_))));
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        ResultFile::new(&link, true).unwrap().write(|out| out.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
