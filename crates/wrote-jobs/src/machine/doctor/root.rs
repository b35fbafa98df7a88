//! The files that the checks read, below a root; tests make their own.

use std::fs;
use std::path::{Path, PathBuf};
use wrote_result::doctor::Evidence;

/// The folder of `proc`, `sys` and `etc`.
#[derive(Clone, Debug)]
pub(super) struct Root(PathBuf);

impl Root {
    pub fn new(folder: impl Into<PathBuf>) -> Root {
        Root(folder.into())
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Returns a file's trimmed text; `None` where it is missing, empty or unreadable.
    pub fn text(&self, file: &str) -> Option<String> {
        let bytes = fs::read(self.path(file)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Returns a file's text as evidence.
    pub fn see(&self, file: &str) -> Option<Evidence> {
        Some(Evidence::new(format!("/{file}"), self.text(file)?))
    }

    pub fn number(&self, file: &str) -> Option<i64> {
        self.see(file)?.number()
    }

    /// Returns the sorted names in a folder; none without such a folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Returns the value of a line `name: value` or `name value` of a file in `/proc`.
    pub fn line(&self, file: &str, name: &str) -> Option<Evidence> {
        let text = self.text(file)?;
        let of_line = |line: &str| Some(line.strip_prefix(name)?.trim().to_owned());
        // Columns are separated by one space.
        let value = text.lines().find_map(of_line)?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Evidence::new(format!("/{file}, {}", name.trim_end_matches(':')), value))
    }
}
