//! Removes a run's folder, and nothing that the run did not create.

use super::OF_RANK;
use super::lock;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, openat, seek, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use wrote::save::on_its_way;
use wrote_result::Error;

/// The flags for opening a folder without following symbolic links.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The run's files, except for the lock file.
    pub(super) ours: Vec<OsString>,
    /// The run's log folders (which contain only files of a log), and its folders of files.
    pub(super) logs: Vec<OsString>,
    pub(super) lock: bool,
    /// Everything else.
    pub(super) foreign: Vec<OsString>,
    /// The space that the run's files occupy, in bytes.
    pub(super) size_bytes: u64,
}

/// A run's folder and its parent, both open, so that both are found even if they, or a folder above
/// them, are moved.
#[derive(Debug)]
pub(super) struct Open {
    path: PathBuf,
    parent: OwnedFd,
    pub(super) folder: OwnedFd,
}

impl Open {
    /// Opens a folder. The path must not be a symbolic link.
    pub(super) fn at(path: &Path) -> io::Result<Open> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = openat(
            CWD,
            parent.unwrap_or(Path::new(".")),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let name = path.file_name().unwrap_or_default();
        let folder = openat(&parent, name, FOLDER, Mode::empty())?;
        Ok(Open { path: path.to_owned(), parent, folder })
    }

    /// Removes the run's files in the folder, and then the folder. If the folder contains anything
    /// else, the folder and these contents are kept, and the error names them. `lock` keeps other
    /// processes from removing the folder concurrently.
    pub(super) fn remove(&self, lock: impl Sized) -> Result<(), Error> {
        let failed = |error: io::Error| {
            Error::Failed(format!("{}: can't be removed: {error}", self.path.display()))
        };
        let contents = match contents(&self.folder) {
            // Another rank has removed the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed)?,
        };
        for name in &contents.ours {
            unlink(&self.folder, name).map_err(failed)?;
        }
        for name in &contents.logs {
            remove_log(&self.folder, name).map_err(failed)?;
        }
        // The lock file is removed last, so that a run that is killed before this point leaves a
        // recognizable folder.
        if contents.lock {
            unlink(&self.folder, lock::NAME.as_ref()).map_err(failed)?;
        }
        if !contents.foreign.is_empty() {
            return Err(Error::Failed(format!(
                "{}: not removed, because it holds files that this run did not make: {}",
                self.path.display(),
                listed(&contents.foreign)
            )));
        }
        // The lock is released first: NFS keeps a name for a removed file that is still open.
        // Without its lock file, other processes don't take the folder for a run's folder.
        drop(lock);
        let name = self.path.file_name().unwrap_or_default();
        match unlinkat(&self.parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

pub(super) fn contents(folder: impl AsFd) -> io::Result<Contents> {
    let mut contents = Contents::default();
    for (name, file_bytes) in entries(&folder)? {
        if file_bytes.is_some() && name == lock::NAME {
            contents.lock = true;
        } else if let Some(bytes) = file_bytes.filter(|_| is_a_runs(&name)) {
            contents.size_bytes += bytes;
            contents.ours.push(name);
        } else if let Some(log) = log_in(folder.as_fd(), &name)? {
            contents.size_bytes += log.size_bytes;
            contents.logs.push(name);
        } else {
            contents.foreign.push(name);
        }
    }
    contents.foreign.sort();
    Ok(contents)
}

/// Returns the names in an open folder, with the space that each regular file occupies. Opens no
/// descriptor, because the process may have none left.
fn entries(folder: impl AsFd) -> io::Result<Vec<(OsString, Option<u64>)>> {
    let mut entries = Vec::new();
    seek(&folder, SeekFrom::Start(0))?;
    let mut buffer = [MaybeUninit::uninit(); 8 << 10];
    let mut names = RawDir::new(&folder, &mut buffer);
    while let Some(entry) = names.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // The space is the allocated one, in units of 512 bytes (stat(3type)), and not the length.
        let bytes = is_file.then(|| u64::try_from(stat.st_blocks).unwrap_or(0) * 512);
        entries.push((OsString::from_vec(name.to_bytes().to_vec()), bytes));
    }
    Ok(entries)
}

/// Returns the files in a log folder or a file folder of a run; `None` if the folder contains
/// anything else.
fn log_in(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<LogFiles>> {
    let is_known = match (is_a_runs_log(name), is_a_runs_tree(name)) {
        (true, _) => |name: &OsString| is_a_logs(name),
        (_, true) => is_a_runs,
        _ => return Ok(None),
    };
    let folder = match openat(parent, name, FOLDER, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => return Ok(None),
        other => other?,
    };
    let mut files = LogFiles { names: Vec::new(), size_bytes: 0, folder };
    for (name, file_bytes) in entries(&files.folder)? {
        let Some(bytes) = file_bytes.filter(|_| is_known(&name)) else { return Ok(None) };
        files.size_bytes += bytes;
        files.names.push(name);
    }
    Ok(Some(files))
}

struct LogFiles {
    folder: OwnedFd,
    names: Vec<OsString>,
    size_bytes: u64,
}

/// Returns whether a name has the form of a run's log folder: `append-log-0.data`.
fn is_a_runs_log(name: &OsStr) -> bool {
    last_word(name) == Some("log")
}

/// Returns whether a name has the form of a run's file folder: `meta-tree-0.data`.
fn is_a_runs_tree(name: &OsStr) -> bool {
    last_word(name) == Some("tree")
}

fn last_word(name: &OsStr) -> Option<&str> {
    name.to_str().and_then(words_of)?.rsplit('-').next()
}

/// Returns whether a name has the form of a log's file: the lock, or a segment's number of 20
/// digits and a kind.
fn is_a_logs(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let segment = name.split_once('.').is_some_and(|(number, rest)| {
        let known = ["segment", "log"].iter().any(|kind| {
            rest.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        number.len() == 20 && is_number(number) && known
    });
    name == lock::NAME || segment
}

/// Removes the folder of a log, if there is one. Foreign entries are kept, and the error names
/// them.
pub(super) fn remove_log(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    if let Err(Errno::NOENT) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        return Ok(());
    }
    let Some(log) = log_in(parent.as_fd(), name)? else {
        return Err(io::Error::other(format!("{name:?} holds files that this run did not make")));
    };
    for file in &log.names {
        unlink(&log.folder, file)?;
    }
    unlink_as(parent, name, AtFlags::REMOVEDIR)
}

/// Returns whether `name` is one that a run gives its files: lower-case words and a number, joined
/// by hyphens, with the extension `.data`. The name of such a file's temporary copy,
/// `.NAME.wrote-PROCESS-NUMBER`, also qualifies.
fn is_a_runs(name: &OsString) -> bool {
    match on_its_way(name) {
        Some((place, _)) => words_of(&place).is_some(),
        None => name.to_str().and_then(words_of).is_some(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the words before the rank and the number in the name of a run's file; `None` for any
/// other name.
fn words_of(name: &str) -> Option<&str> {
    let (words, number) = name.strip_suffix(".data")?.rsplit_once('-')?;
    let words = match words.rsplit_once(OF_RANK) {
        Some((words, rank)) if is_number(rank) => words,
        _ => words,
    };
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    (words.split('-').all(is_word) && is_number(number)).then_some(words)
}

/// Lists names on one line: the first five, and the number of the others.
pub(super) fn listed(names: &[OsString]) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|name| format!("{name:?}")).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn unlink(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    unlink_as(folder, name, AtFlags::empty())
}

fn unlink_as(folder: &OwnedFd, name: &OsStr, flags: AtFlags) -> io::Result<()> {
    match unlinkat(folder, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote::save::temporary_name;

    #[test]
    fn only_names_that_a_run_gives_are_a_runs() {
        for name in [
            "job-0.data",
            "job-17.data",
            "ladder-stream_written-3.data",
            "ways-output-0.data",
            "ladder-new-rank12-0.data",
            "pages-table-639.data",
        ] {
            let temporary = temporary_name(name.as_ref(), 123, 4);
            assert!(is_a_runs(&temporary), "{temporary:?}");
            assert!(is_a_runs(&name.into()), "{name}");
        }
        for name in [
            "job-.data",
            "job-0",
            "job-0.data.bak",
            "Job-0.data",
            "-0.data",
            "job-0x.data",
            "job--0.data",
            "job/a-0.data",
            "job-rank-0.data-0",
            "-rank1-0.data",
        ] {
            assert!(!is_a_runs(&name.into()), "{name}");
        }
        for name in [".job-0.data", ".job-0.data.wrote-1", ".job-0.data.wrote-1-2"] {
            assert!(!is_a_runs(&name.into()), "{name}");
        }
        assert!(!is_a_runs(&temporary_name("x".as_ref(), 1, 2)));
        assert!(!is_a_runs(&OsString::from_vec(b"job-\xff.data".to_vec())));
    }

    #[test]
    fn only_names_of_a_log_are_a_logs() {
        let segment = "00000000000000000001.segment";
        for name in ["lock", segment, &format!("{segment}.torn-2"), "00000000000000000007.log"] {
            assert!(is_a_logs(name.as_ref()), "{name}");
        }
        for name in
            ["1.segment", "00000000000000000001.segments", "0000000000000000000x.log", "log"]
        {
            assert!(!is_a_logs(name.as_ref()), "{name}");
        }
        assert!(is_a_runs_log("append-log-5001.data".as_ref()));
        for name in ["append-log-.data", "langs-data-0.data", "job-1.data"] {
            assert!(!is_a_runs_log(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn a_log_is_removed_with_its_folder_and_nothing_else() {
        // W7
        let parent = tempfile::tempdir().unwrap();
        let log = parent.path().join("log-1.data");
        let make = |file: &str| {
            std::fs::create_dir_all(&log).unwrap();
            std::fs::write(log.join(file), vec![1; 5000]).unwrap();
        };
        make("lock");
        make("00000000000000000001.segment");
        let folder = Open::at(parent.path()).unwrap().folder;
        let found = contents(&folder).unwrap();
        assert_eq!((found.logs.len(), found.foreign.len()), (1, 0));
        assert!(found.size_bytes >= 5000);
        remove_log(&folder, "log-1.data".as_ref()).unwrap();
        assert!(!log.exists());
        remove_log(&folder, "log-1.data".as_ref()).unwrap();
        make("precious");
        assert_eq!(contents(&folder).unwrap().foreign, ["log-1.data"]);
        let error = remove_log(&folder, "log-1.data".as_ref()).unwrap_err();
        assert!(error.to_string().contains("did not make") && log.join("precious").exists());
        std::fs::remove_dir_all(&log).unwrap();
        std::os::unix::fs::symlink("/", &log).unwrap();
        assert_eq!(contents(&folder).unwrap().foreign, ["log-1.data"]);
    }

    #[test]
    fn a_long_list_of_names_is_cut() {
        let names: Vec<OsString> = (0..7).map(|n| n.to_string().into()).collect();
        assert_eq!(listed(&names), "\"0\", \"1\", \"2\", \"3\", \"4\" and 2 more");
        assert_eq!(listed(&names[..1]), "\"0\"");
    }
}
