//! Checks the file that a program has left.

use super::workload::{Content, PIECE_BYTES};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use wrote_result::{Error, Stop};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    /// The initial text is missing or has changed.
    Head,
    Byte {
        at: u64,
        found: u8,
        expected: u8,
    },
    Length {
        found: u64,
        expected: u64,
    },
}

/// Compares every byte of the file at `path` with `expected`. `Ok(Err(..))` is the first error, in
/// one line. `said_whole` states whether the program reported that it wrote the complete file.
///
/// # Errors
///
/// [`Error::Interrupted`] if `stop` is raised; [`Error::Failed`] if the file exists and can't be
/// read.
pub(super) fn check(
    path: &Path,
    expected: &Content,
    said_whole: bool,
    stop: &Stop,
) -> Result<Result<(), String>, Error> {
    let failed = Error::at(path, "read");
    let mut file = match open_regular(path).map_err(failed)? {
        Ok(file) => file,
        Err(because) => return Ok(Err(because.into())),
    };
    let length = file.metadata().map_err(failed)?.len();
    let wrong = compare(&mut file, length, expected, PIECE_BYTES, stop, &failed)?;
    Ok(wrong.map_or(Ok(()), |wrong| Err(told(&wrong, said_whole))))
}

/// Compares a file of this length with its expected content, piece by piece, in constant memory.
/// Returns the first error.
fn compare(
    file: &mut dyn Read,
    length: u64,
    expected: &Content,
    piece_bytes: usize,
    stop: &Stop,
    failed: &dyn Fn(io::Error) -> Error,
) -> Result<Option<Fault>, Error> {
    let (mut whole, head) = (expected.reader(), expected.head.len() as u64);
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    let mut at = 0;
    // Excess bytes are reported as a wrong length, after this loop.
    while at < expected.len() {
        stop.check()?;
        wanted.clear();
        whole.by_ref().take(piece_bytes as u64).read_to_end(&mut wanted).map_err(failed)?;
        found.clear();
        (&mut *file).take(wanted.len() as u64).read_to_end(&mut found).map_err(failed)?;
        if found != wanted[..found.len()] {
            let place = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
            let place = place.expect("they differ");
            let (at, found, expected) = (at + place as u64, found[place], wanted[place]);
            let wrong = Fault::Byte { at, found, expected };
            return Ok(Some(if at < head { Fault::Head } else { wrong }));
        }
        if found.is_empty() {
            break;
        }
        at += found.len() as u64;
    }
    let wrong = Fault::Length { found: length, expected: expected.len() };
    let wrong = if length < head { Fault::Head } else { wrong };
    Ok((length != expected.len()).then_some(wrong))
}

/// Opens a regular file at `path` without following symbolic links, and without blocking on a FIFO.
/// `Ok(Err(..))` explains why there is no such file.
fn open_regular(path: &Path) -> io::Result<Result<File, &'static str>> {
    const ELSE: &str = "left something other than a file";
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(Err(match open(path, flags, Mode::empty()).map(File::from) {
        Ok(file) => match file.metadata()?.file_type() {
            kind if kind.is_file() => return Ok(Ok(file)),
            kind if kind.is_dir() => "left a folder in place of the file",
            _ => ELSE,
        },
        Err(Errno::NOENT) => "there is no file",
        Err(Errno::LOOP) => "left a symbolic link in place of the file",
        // The path is a socket, or a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => ELSE,
        // The file was readable when it was created, so the program has removed the permission.
        Err(Errno::ACCESS) => "left a file that may not be read",
        Err(errno) => return Err(errno.into()),
    }))
}

fn told(wrong: &Fault, said_whole: bool) -> String {
    match wrong {
        Fault::Head => "the line that was in the file before is gone".into(),
        Fault::Byte { at, found, expected } => {
            format!("the file's byte {at} is {found}, not {expected}")
        }
        Fault::Length { found, expected } => {
            let said = if said_whole { " as the program says" } else { "" };
            format!("the file has {found} bytes, not {expected}{said}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::langs::workload::{Table, Task};
    use proptest::prelude::*;
    use std::fs;

    fn content(task: Task, size: u64, count: u64) -> Content {
        Table { task, size, count, cold: false, in_time: false }.content()
    }

    fn bytes_of(content: &Content) -> Vec<u8> {
        let body = content.pattern.iter().copied().cycle().take(content.body_bytes as usize);
        content.head.iter().copied().chain(body).collect()
    }

    fn compared(content: &Content, bytes: &[u8], piece_bytes: usize) -> Result<(), Fault> {
        let (length, stop) = (bytes.len() as u64, Stop::new());
        let failed = |error| panic!("{error}");
        let wrong = compare(&mut &bytes[..], length, content, piece_bytes, &stop, &failed);
        wrong.unwrap().map_or(Ok(()), Err)
    }

    fn any_content() -> impl Strategy<Value = Content> {
        let pattern = prop::collection::vec(any::<u8>(), 1..70);
        let head = prop::collection::vec(any::<u8>(), 0..40);
        (head, pattern, 0..500_u64).prop_map(|(head, pattern, body_bytes)| Content {
            head,
            pattern,
            body_bytes,
        })
    }

    proptest! {
        #[test]
        fn right_content_is_found_right_in_pieces_of_any_length(
            content in any_content(),
            piece_bytes in 1..100_usize,
        ) {
            prop_assert_eq!(compared(&content, &bytes_of(&content), piece_bytes), Ok(()));
        }

        #[test]
        fn any_one_wrong_byte_is_found_and_named(
            content in any_content(),
            piece_bytes in 1..100_usize,
            place in any::<prop::sample::Index>(),
            change in 1..=255_u8,
        ) {
            let mut bytes = bytes_of(&content);
            if bytes.is_empty() {
                return Ok(());
            }
            let at = place.index(bytes.len());
            let expected = bytes[at];
            bytes[at] ^= change;
            let found = bytes[at];
            let wrong = match at < content.head.len() {
                true => Fault::Head,
                false => Fault::Byte { at: at as u64, found, expected },
            };
            prop_assert_eq!(compared(&content, &bytes, piece_bytes), Err(wrong));
        }

        #[test]
        fn any_other_length_is_found(
            content in any_content(),
            piece_bytes in 1..100_usize,
            length in 0..700_usize,
        ) {
            let mut bytes = bytes_of(&content);
            let expected = bytes.len() as u64;
            if length as u64 == expected {
                return Ok(());
            }
            bytes.resize(length, 7);
            let wrong = match length < content.head.len() {
                true => Fault::Head,
                false => Fault::Length { found: length as u64, expected },
            };
            prop_assert_eq!(compared(&content, &bytes, piece_bytes), Err(wrong));
        }
    }

    /// Returns the first error in the file that `make` creates; `None` if the file is right.
    fn left(content: &Content, make: impl FnOnce(&Path)) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        make(&path);
        check(&path, content, true, &Stop::new()).unwrap().err()
    }

    #[test]
    fn a_file_longer_than_a_piece_is_compared_to_its_end() {
        let content = content(Task::Lines, 64, 3 * PIECE_BYTES as u64 / 64);
        let mut bytes = bytes_of(&content);
        assert_eq!(left(&content, |path| fs::write(path, &bytes).unwrap()), None);
        let last = bytes.len() - 1;
        bytes[last] = b'x';
        assert_eq!(
            left(&content, |path| fs::write(path, &bytes).unwrap()).unwrap(),
            format!("the file's byte {last} is 120, not 10")
        );
    }

    #[test]
    fn a_fault_is_named_in_one_line() {
        let bytes = content(Task::BytesWrite, 1000, 1);
        let short = left(&bytes, |path| fs::write(path, &bytes_of(&bytes)[..100]).unwrap());
        assert_eq!(short.unwrap(), "the file has 100 bytes, not 1000 as the program says");
        let lines = content(Task::Lines, 64, 2);
        let replaced = left(&lines, |path| {
            fs::write(path, &bytes_of(&lines)[lines.head.len()..]).unwrap();
        });
        assert!(replaced.unwrap().contains("was in the file before"));
        let emptied = left(&lines, |path| fs::write(path, "").unwrap());
        assert!(emptied.unwrap().contains("was in the file before"));
    }

    #[test]
    fn a_link_or_pipe_is_not_followed_nor_waited_for() {
        // W7
        let bytes = content(Task::BytesWrite, 3, 1);
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        fs::write(elsewhere.path(), [0, 1, 2]).unwrap();
        let link = left(&bytes, |path| {
            std::os::unix::fs::symlink(elsewhere.path(), path).unwrap();
        });
        assert_eq!(link.unwrap(), "left a symbolic link in place of the file");
        let fifo = left(&bytes, |path| {
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        });
        assert_eq!(fifo.unwrap(), "left something other than a file");
        let folder = left(&bytes, |path| fs::create_dir(path).unwrap());
        assert_eq!(folder.unwrap(), "left a folder in place of the file");
        let socket = left(&bytes, |path| {
            std::os::unix::net::UnixListener::bind(path).unwrap();
        });
        assert_eq!(socket.unwrap(), "left something other than a file");
        assert_eq!(left(&bytes, |_| ()).unwrap(), "there is no file");
    }

    #[test]
    fn a_stop_is_heard_while_a_file_is_looked_at() {
        let (folder, stop) = (tempfile::tempdir().unwrap(), Stop::new());
        let (path, bytes) = (folder.path().join("file"), content(Task::BytesWrite, 1000, 1));
        fs::write(&path, bytes_of(&bytes)).unwrap();
        stop.request();
        assert!(matches!(check(&path, &bytes, true, &stop), Err(Error::Interrupted)));
    }
}
