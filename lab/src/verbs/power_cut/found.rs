//! The state of a subject's files after a power cut.

use std::io;
use std::path::Path;

/// The found files, compared with the promises.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// Each broken promise: the expected state, and the one that was found.
    pub faults: Vec<String>,
    /// The state of the write without a promise, in one word.
    pub in_flight: &'static str,
    /// Temporary files that were left.
    pub temporary_files: usize,
}

/// Reads a file; `None` if there is none. A file that cannot be read is a fault.
pub fn read(path: &Path, faults: &mut Vec<String>) -> Option<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            faults.push(format!("{}: {error}", path.display()));
            None
        }
    }
}

/// Compares `found` with the expected bytes: "812 bytes, where 900 belong; wrong from byte 512".
pub fn describe(found: &[u8], expected: &[u8]) -> String {
    let same = found.iter().zip(expected).take_while(|(one, other)| one == other).count();
    let wrong = if same < found.len().min(expected.len()) {
        let zeros = if found[same..].iter().all(|byte| *byte == 0) { ", all zeros" } else { "" };
        format!("; wrong from byte {same}{zeros}")
    } else {
        String::new()
    };
    format!("{} bytes, where {} belong{wrong}", found.len(), expected.len())
}

/// Returns the names in a folder without temporary files, and the number of these.
pub fn names(folder: &Path) -> io::Result<(Vec<String>, usize)> {
    let mut names = Vec::new();
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(named)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let all = names.len();
    names.retain(|name| !(name.starts_with('.') && name.contains(".wrote-")));
    let temporary = all - names.len();
    Ok((names, temporary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_by_length_and_first_wrong_byte() {
        assert_eq!(describe(b"abc", b"abcd"), "3 bytes, where 4 belong");
        assert_eq!(describe(b"abXd", b"abcd"), "4 bytes, where 4 belong; wrong from byte 2");
        assert_eq!(
            describe(b"a\0\0\0\0", b"abcd"),
            "5 bytes, where 4 belong; wrong from byte 1, all zeros"
        );
    }

    #[test]
    fn temporary_names_are_counted_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["file", ".file.wrote-12-0", ".file"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let (mut names, temporary) = names(folder.path()).expect("names");
        names.sort();
        assert_eq!((names, temporary), (vec![".file".to_owned(), "file".to_owned()], 1));
    }
}
