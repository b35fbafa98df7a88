//! The destinations of text: standard output, or a file that appears either whole or not at all.

use crate::args::OutputArgs;
use crate::stdio::{self, STDOUT, of_library};
use crate::terminal::{file_screen, stderr_screen, stdout_screen};
use clap::builder::StyledStr;
use rustix::fs::{Access, access};
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use wrote_jobs::peers::Peers;
use wrote_report::{Content, Format, Named, Screen, write_html};
use wrote_result::Error;

/// Writes clap's text to standard output, with its styles if the screen supports colours.
///
/// # Errors
///
/// The errors of [`to_stdout`].
pub fn styled_to_stdout(text: &StyledStr) -> Result<(), Error> {
    to_stdout(|out| match stdout_screen().colour {
        true => write!(out, "{}", text.ansi()),
        false => write!(out, "{text}"),
    })
}

/// Writes clap's help, which is shown if the subcommand is missing, followed by a last line.
pub fn help_to_stderr(help: &StyledStr, last: &str) {
    // If standard error is closed, no message about it could be read.
    let _ = to_stderr(|out| match stderr_screen().colour {
        true => write!(out, "{}{last}", help.ansi()),
        false => write!(out, "{help}{last}"),
    });
}

/// Writes to standard output. If the reader has gone (`wrote ... | head -1`), the rest is silently
/// dropped.
///
/// # Errors
///
/// [`Error::Failed`] if standard output is closed, or fails for another reason (a full disk).
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let failed = |error| Error::Failed(format!("standard output: {error}"));
    let mut out = BufWriter::new(Unforgiving(io::stdout()));
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) => {
            // Dropping the buffer would write its rest again.
            drop(out.into_parts());
            if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(failed(error)) }
        }
        Ok(()) => Ok(()),
    }
}

/// Writes to standard error. If the reader has gone, the text is dropped.
fn to_stderr(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut text = Vec::new();
    let written = write(&mut text).and_then(|()| io::stderr().write_all(&text));
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("standard error: {error}")))
        }
        _ => Ok(()),
    }
}

/// Standard output that reports a closed stream, which the standard library's `Stdout` ignores.
struct Unforgiving(io::Stdout);

impl Write for Unforgiving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a result to the file, or to standard output if there is none. `write` is passed the
/// screen for which the text is formatted.
///
/// # Errors
///
/// The errors of [`ResultFile::write`] and [`to_stdout`].
pub fn deliver(
    file: Option<ResultFile>,
    write: impl FnOnce(Screen, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    match file {
        Some(file) => file.write(|out| write(file_screen(), out)),
        None => to_stdout(|out| write(stdout_screen(), out)),
    }
}

/// The files to which a result is written.
#[derive(Debug)]
pub struct ResultFiles {
    text: Option<ResultFile>,
    /// The file named by `--html`.
    page: Option<ResultFile>,
    /// Whether text goes to standard error, because standard output belongs to another program.
    is_beside_output: bool,
}

impl ResultFiles {
    /// Checks the files named on the command line.
    ///
    /// # Errors
    ///
    /// The errors of [`ResultFile::new`], and [`Error::Usage`] if both are the same file.
    pub fn of(to: &OutputArgs) -> Result<ResultFiles, Error> {
        let text = ResultFile::of("--output", to.output.as_deref(), to.force)?;
        let page = ResultFile::of("--html", to.html.as_deref(), to.force)?;
        if let (Some(text), Some(page)) = (&text, &page)
            && wrote_jobs::jobs::file_key(&text.path) == wrote_jobs::jobs::file_key(&page.path)
        {
            let shown = page.path.display();
            return Err(Error::Usage(format!("--html {shown}: is the file of --output")));
        }
        Ok(ResultFiles { text, page, is_beside_output: false })
    }

    /// Checks the files on rank 0, which is the only rank that writes a result. Returns `None` on
    /// other ranks.
    ///
    /// # Errors
    ///
    /// The errors of [`ResultFiles::of`].
    pub fn of_first(to: &OutputArgs, peers: Peers) -> Result<Option<ResultFiles>, Error> {
        peers.is_first().then(|| ResultFiles::of(to)).transpose()
    }

    /// Makes text without a file go to standard error, because standard output belongs to another
    /// program.
    pub fn beside_output(self) -> ResultFiles {
        ResultFiles { is_beside_output: true, ..self }
    }

    /// Writes a document as text, and as a page if that was requested. `name` is the file name
    /// under which the page offers the document for saving.
    ///
    /// # Errors
    ///
    /// The errors of [`deliver`] and [`ResultFile::write`].
    pub fn deliver(self, name: &str, content: Content, format: Format) -> Result<(), Error> {
        self.deliver_as(name, content, |content, screen, out| content.write(format, screen, out))
    }

    /// Writes the text with `write`, and the page if that was requested.
    ///
    /// # Errors
    ///
    /// The errors of [`deliver`] and [`ResultFile::write`].
    pub fn deliver_as(
        self,
        name: &str,
        content: Content,
        write: impl FnOnce(&Content, Screen, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let text = |screen, out: &mut dyn Write| write(&content, screen, out);
        match (self.text, self.is_beside_output) {
            (None, true) => to_stderr(|out| text(stderr_screen(), out))?,
            (file, _) => deliver(file, text)?,
        }
        match self.page {
            Some(page) => {
                page.write(|out| write_html(&[Named { name: name.into(), content }], out))
            }
            None => Ok(()),
        }
    }
}

/// A file for a result. `-` and `/dev/stdout` mean standard output.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    replace: bool,
    is_stdout: bool,
}

impl ResultFile {
    /// Checks the file of a command-line argument; `None` if the argument is not given.
    ///
    /// # Errors
    ///
    /// The errors of [`ResultFile::new`].
    pub fn of(
        argument: &str,
        path: Option<&Path>,
        replace: bool,
    ) -> Result<Option<ResultFile>, Error> {
        path.map(|path| ResultFile::new(argument, path, replace)).transpose()
    }

    /// Checks, before any measurement, that the file can be written. Errors name `argument`, such
    /// as `--output`. The file must not exist or, with `replace`, must be a regular file.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] if the file exists, if it is not a regular file, or if its folder does not
    /// exist or cannot be written to.
    pub fn new(argument: &str, path: &Path, replace: bool) -> Result<ResultFile, Error> {
        let refused = |because: &dyn Display| {
            Error::Usage(format!("{argument} {}: {because}", path.display()))
        };
        let path = path.to_owned();
        let descriptor = stdio::descriptor(&path);
        if path == Path::new("-") || descriptor == Some(STDOUT) {
            return Ok(ResultFile { path, replace, is_stdout: true });
        }
        if descriptor.is_some() && path.is_file() {
            return Err(refused(&"leads to an open file: name that file itself"));
        }
        let place = match path.metadata() {
            Ok(found) if !found.is_file() => return Err(refused(&"is not an ordinary file")),
            Ok(_) if !replace => return Err(refused(&"already exists; --force replaces it")),
            // The file is replaced in its real folder, after following all symbolic links.
            Ok(_) => path.canonicalize(),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.clone()),
            Err(error) => Err(error),
        };
        let place = place.map_err(|error| refused(&error))?;
        if place.file_name().is_none() {
            return Err(refused(&"is not the name of a file"));
        }
        let folder = place.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
            let error = io::Error::from(errno);
            Error::Usage(format!("{argument} {}: {error}", folder.display()))
        })?;
        Ok(ResultFile { path, replace, is_stdout: false })
    }

    /// Writes the file. When this returns, the file is complete and on stable storage, or it was
    /// not written at all.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the file cannot be written, or if another process has created it since
    /// it was checked.
    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        if self.is_stdout {
            return to_stdout(write);
        }
        let mut bytes = Vec::new();
        write(&mut bytes)
            .map_err(|error| Error::Failed(format!("{}: {error}", self.path.display())))?;
        let written = match self.replace {
            true => wrote::write(&self.path, bytes),
            false => wrote::write_new(&self.path, bytes),
        };
        written.map_err(|error| of_library(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_by_force() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        assert!(matches!(ResultFile::new("--output", &path, false), Err(Error::Usage(_))));
        let file = ResultFile::new("--output", &path, true).unwrap();
        file.write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_file_that_somebody_made_meanwhile_is_not_replaced() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let file = ResultFile::new("--output", &path, false).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(file.write(|out| out.write_all(b"ours")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_write_that_fails_half_way_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = ResultFile::new("--output", &folder.path().join("result.json"), false).unwrap();
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
        assert!(matches!(ResultFile::new("--output", folder.path(), true), Err(Error::Usage(_))));
        assert!(matches!(
            ResultFile::new("--output", Path::new("/dev/null"), true),
            Err(Error::Usage(_))
        ));
    }

    #[test]
    fn names_of_open_files_lead_to_standard_output_or_are_refused() {
        for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
            assert!(
                ResultFile::new("--output", Path::new(name), true).unwrap().is_stdout,
                "{name}"
            );
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = format!("/dev/fd/{}", file.as_raw_fd());
        let refused = ResultFile::new("--output", Path::new(&name), true).unwrap_err().to_string();
        assert!(refused.ends_with("leads to an open file: name that file itself"), "{refused}");
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        ResultFile::new("--output", &link, true)
            .unwrap()
            .write(|out| out.write_all(b"new"))
            .unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
