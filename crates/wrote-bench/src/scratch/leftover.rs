//! Folders that killed runs left behind.

use super::{Leftover, PREFIX, lock, remove, staged};
use lock::State;
use rustix::fs::fstat;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wrote_jobs::jobs::mark;
use wrote_result::Error;

/// The result of [`clean`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// The files and folders that were removed.
    pub removed: Vec<Leftover>,
    /// The files and folders of live runs, which are kept.
    pub alive: Vec<Leftover>,
    /// The files of killed runs that have names given by the user. They are kept, because the user
    /// may have written to them after the run was killed.
    pub found: Vec<Leftover>,
    /// One line for each folder that was kept for another reason.
    pub refused: Vec<String>,
}

/// An open folder that looks like the folder of a run.
struct Candidate {
    leftover: Leftover,
    folder: remove::Open,
    contents: remove::Contents,
    /// The state of the run. It holds the lock of a dead run, so that no other process removes the
    /// folder.
    state: State,
}

/// Returns the existing folders in `parent` that the current user's runs created, sorted by name.
///
/// The name of a run's folder is `.wrote-` and six letters or digits. The folder contains a lock
/// file with the first line of a run, or is empty if the run was killed while creating or removing
/// it. An unreadable `parent` has no such folders.
pub fn leftovers(parent: &Path) -> Vec<Leftover> {
    candidates(parent).into_iter().map(|candidate| candidate.leftover).collect()
}

/// Removes the folders in `parent` that the current user's runs left behind, and the files and
/// folders that killed copies and saves left behind. Also finds the files of killed runs of jobs.
///
/// A folder is kept if its run is alive, or if it contains anything that a run does not create.
/// With `dry_run`, everything is kept, and whatever would be removed is reported as removed.
/// [`Error::Usage`] if `parent` is not a folder.
pub fn clean(parent: &Path, dry_run: bool) -> Result<Cleaned, Error> {
    super::check_folder(parent)?;
    let mut cleaned = Cleaned::default();
    for candidate in candidates(parent) {
        let path = &candidate.leftover.path;
        if candidate.leftover.alive {
            cleaned.alive.push(candidate.leftover);
        } else if !candidate.contents.foreign.is_empty() {
            cleaned.refused.push(format!(
                "{}: not removed, because it holds files that no run makes: {}",
                path.display(),
                remove::listed(&candidate.contents.foreign)
            ));
        } else if dry_run {
            cleaned.removed.push(candidate.leftover);
        } else {
            match candidate.folder.remove(candidate.state) {
                Ok(()) => cleaned.removed.push(candidate.leftover),
                Err(error) => cleaned.refused.push(error.to_string()),
            }
        }
    }
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(alive) = mark::of(&path) else { continue };
        let size_bytes = entry.metadata().map_or(0, |metadata| metadata.blocks() * 512);
        let list = if alive { &mut cleaned.alive } else { &mut cleaned.found };
        list.push(Leftover { path, size_bytes, alive });
    }
    for candidate in staged::candidates(parent) {
        let path = &candidate.leftover.path;
        if candidate.leftover.alive {
            cleaned.alive.push(candidate.leftover);
        } else if !dry_run && let Err(error) = candidate.remove() {
            cleaned.refused.push(format!("{}: can't be removed: {error}", path.display()));
        } else {
            cleaned.removed.push(candidate.leftover);
        }
    }
    Ok(cleaned)
}

fn candidates(parent: &Path) -> Vec<Candidate> {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return Vec::new();
    };
    let named_so = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        random.is_some_and(|random| {
            random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    });
    let mut paths: Vec<PathBuf> = named_so.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().filter_map(candidate).collect()
}

/// Returns the folder at `path` if it belongs to one of the current user's runs.
fn candidate(path: PathBuf) -> Option<Candidate> {
    let open = remove::Open::at(&path).ok()?;
    let folder = &open.folder;
    if fstat(folder).ok()?.st_uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    let contents = remove::contents(folder).ok()?;
    let state = match lock::state(folder) {
        Some(state) => state,
        None if contents.ours.is_empty() && contents.foreign.is_empty() => State::Dead(None),
        None => return None,
    };
    let alive = match state {
        State::Foreign => return None,
        State::Alive => true,
        State::Dead(_) => false,
    };
    let size_bytes = contents.size_bytes;
    let leftover = Leftover { path, size_bytes, alive };
    Some(Candidate { leftover, folder: open, contents, state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;
    use tempfile::TempDir;

    /// Creates a folder like the ones that killed runs leave behind.
    fn dead(parent: &Path, name: &str) -> PathBuf {
        let path = parent.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("lock"), "wrote scratch folder 1\npid 4294967295\n").unwrap();
        fs::write(path.join("job-0.data"), vec![7; 8192]).unwrap();
        path
    }

    #[test]
    fn a_dead_runs_folder_is_found_with_its_size_and_cleaned() {
        let parent = TempDir::new().unwrap();
        let path = dead(parent.path(), ".wrote-abc123");
        let found = leftovers(parent.path());
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].path, found[0].alive), (&path, false));
        assert!(found[0].size_bytes >= 8192, "{found:?}");
        assert_eq!(clean(parent.path(), true).unwrap().removed, found);
        assert!(path.exists());
        let cleaned = clean(parent.path(), false).unwrap();
        assert_eq!(cleaned.removed, found);
        assert!(cleaned.alive.is_empty() && cleaned.refused.is_empty());
        assert!(!path.exists());
    }

    #[test]
    fn a_living_runs_folder_is_left_alone() {
        let parent = TempDir::new().unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        fs::write(scratch.file("ways", "output", 0), "x").unwrap();
        assert!(leftovers(parent.path())[0].alive);
        let cleaned = clean(parent.path(), false).unwrap();
        assert_eq!(cleaned.alive[0].path, scratch.path());
        assert!(cleaned.removed.is_empty() && scratch.file("ways", "output", 0).exists());
    }

    #[test]
    fn foreign_contents_stop_the_cleaning_of_their_folder_alone() {
        let parent = TempDir::new().unwrap();
        let foreign = dead(parent.path(), ".wrote-aaaaaa");
        fs::write(foreign.join("thesis.txt"), "theirs").unwrap();
        let plain = dead(parent.path(), ".wrote-bbbbbb");
        let cleaned = clean(parent.path(), false).unwrap();
        assert_eq!(cleaned.removed.len(), 1);
        assert!(!plain.exists());
        assert!(cleaned.refused[0].contains("thesis.txt"), "{cleaned:?}");
        for name in ["lock", "job-0.data", "thesis.txt"] {
            assert!(foreign.join(name).exists(), "{name}");
        }
    }

    #[test]
    fn a_folder_that_only_looks_like_a_runs_is_not_one() {
        let parent = TempDir::new().unwrap();
        let folder = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        fs::write(folder(".wrote-nolock").join("job-0.data"), "theirs").unwrap();
        fs::write(folder(".wrote-badlok").join("lock"), "theirs").unwrap();
        dead(parent.path(), ".wrote-toolong");
        dead(parent.path(), "wrote-abc123");
        fs::write(parent.path().join(".wrote-afile0"), "theirs").unwrap();
        let target = dead(parent.path(), "elsewhere");
        std::os::unix::fs::symlink(&target, parent.path().join(".wrote-alink0")).unwrap();
        assert_eq!(leftovers(parent.path()), []);
        assert_eq!(clean(parent.path(), false).unwrap(), Cleaned::default());
        assert!(target.join("job-0.data").exists());
    }

    #[test]
    fn a_run_killed_while_it_made_or_removed_its_folder_is_found() {
        let parent = TempDir::new().unwrap();
        fs::create_dir(parent.path().join(".wrote-empty0")).unwrap();
        let begun = parent.path().join(".wrote-begun0");
        fs::create_dir(&begun).unwrap();
        fs::write(begun.join("lock"), "").unwrap();
        assert_eq!(leftovers(parent.path()).len(), 2);
        assert_eq!(clean(parent.path(), false).unwrap().removed.len(), 2);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_parent_that_is_no_folder_has_no_leftovers_and_cannot_be_cleaned() {
        let missing = Path::new("/nonexistent/wrote");
        assert_eq!(leftovers(missing), []);
        assert!(matches!(clean(missing, false), Err(Error::Usage(_))));
    }
}
