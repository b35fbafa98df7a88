//! The catalogue of languages, both the embedded languages and the user's.

use super::manifest::{FILE_NAME, Manifest, Variant, is_id};
use super::toolchain::Tools;
use super::workload::Task;
use super::{Request, toolchain};
use crate::names;
use include_dir::{Dir, include_dir};
use itertools::Itertools;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::{fs, iter};
use wrote_jobs::machine::target::unexamined;
use wrote_result::document::{Language, State};
use wrote_result::{Error, Stop};

/// The repository's languages, each in a folder.
static EMBEDDED: Dir = include_dir!("$CARGO_MANIFEST_DIR/langs");

/// The last part of the names of the drive's rows. No language may have this name.
pub(super) const DRIVE: &str = "drive";

/// All languages, embedded or added.
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub(super) entries: Vec<Entry>,
}

/// A language: the name of its folder, its manifest and its source.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The name of the folder: `go`.
    pub id: String,
    pub manifest: Manifest,
    /// All files of the folder, including the manifest, sorted by relative path. Hidden files and
    /// Python's caches are left out.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// A requested program whose toolchain is installed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub entry: Entry,
    pub variant: Variant,
    pub tools: Tools,
}

/// Returns the embedded languages, sorted by folder name, followed by the languages in `add`.
///
/// # Errors
///
/// [`Error::Usage`], one line long, if a folder of `add` contains no language, or its ID is taken.
pub fn catalogue(add: &[PathBuf]) -> Result<Catalogue, Error> {
    let mut catalogue = Catalogue { entries: embedded()? };
    for folder in add {
        catalogue.add(read_added(folder)?, folder)?;
    }
    Ok(catalogue)
}

fn embedded() -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for folder in EMBEDDED.dirs() {
        let Some(id) = folder.path().to_str() else { continue };
        let mut files = Vec::new();
        collect(folder, folder.path(), &mut files);
        if files.iter().any(|(path, _)| path == Path::new(FILE_NAME)) {
            entries.push(Entry::new(id.into(), files, &format!("langs/{id}/{FILE_NAME}"))?);
        }
    }
    entries.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(entries)
}

/// Collects the files of an embedded folder, with their paths relative to `root`.
fn collect(folder: &Dir, root: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for file in folder.files().filter(|file| !is_left_out(file.path())) {
        let path = file.path().strip_prefix(root).expect("a file within");
        files.push((path.to_owned(), file.contents().to_owned()));
    }
    for below in folder.dirs().filter(|below| !is_left_out(below.path())) {
        collect(below, root, files);
    }
}

/// Returns whether a path does not belong to a program: a hidden file (`.git`) or a Python cache.
fn is_left_out(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name == "__pycache__"
}

impl Entry {
    /// Returns the language that consists of these files. Errors refer to the manifest as `origin`.
    fn new(id: String, mut files: Vec<(PathBuf, Vec<u8>)>, origin: &str) -> Result<Entry, Error> {
        files.sort();
        let manifest = files.iter().find(|(path, _)| path == Path::new(FILE_NAME));
        let text = manifest.map(|(_, text)| text.as_slice()).unwrap_or_default();
        let text = std::str::from_utf8(text)
            .map_err(|_| Error::Usage(format!("{origin}: is not UTF-8 text")))?;
        Ok(Entry { manifest: Manifest::parse(text, origin)?, id, files })
    }

    fn programs(&self) -> Vec<Variant> {
        self.manifest.programs(&self.id)
    }

    /// Returns the IDs of the language and its variants.
    fn names(&self) -> Vec<String> {
        let programs = self.programs().into_iter().map(|program| program.id);
        iter::once(self.id.clone()).chain(programs).unique().collect()
    }

    /// Returns whether `only` names this program or its language. An empty `only` selects every
    /// program.
    fn is_called_for(&self, program: &Variant, only: &[String]) -> bool {
        only.is_empty() || only.iter().any(|name| *name == program.id || *name == self.id)
    }
}

impl Catalogue {
    /// Returns the IDs of all languages and variants, in catalogue order.
    pub fn ids(&self) -> Vec<String> {
        self.entries.iter().flat_map(Entry::programs).map(|program| program.id).collect()
    }

    /// Finds the toolchain of each language that `only` names, or of every language, without
    /// building. If `wrote` is `None`, the rows of `wrote` itself are omitted.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for an unknown ID in `only`; [`Error::Interrupted`] if `stop` is raised. A
    /// toolchain may take up to 20 s to print its version.
    pub fn find(
        &self,
        only: &[String],
        wrote: Option<&Path>,
        stop: &Stop,
    ) -> Result<Vec<Language>, Error> {
        self.check_names(only)?;
        let (_, languages) = self.look(only, wrote, stop)?;
        Ok(languages)
    }

    /// Returns the requested programs whose toolchains are installed, and a report on all requested
    /// programs, in catalogue order.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for an unknown ID in `only`, with the list of known IDs;
    /// [`Error::Interrupted`] if `stop` is raised.
    pub(super) fn choose(
        &self,
        request: &Request,
        stop: &Stop,
    ) -> Result<(Vec<Candidate>, Vec<Language>), Error> {
        self.check_names(&request.only)?;
        self.look(&request.only, request.wrote.as_deref(), stop)
    }

    fn look(
        &self,
        only: &[String],
        wrote: Option<&Path>,
        stop: &Stop,
    ) -> Result<(Vec<Candidate>, Vec<Language>), Error> {
        let mut asked: Vec<(&Entry, Vec<Variant>)> = Vec::new();
        for entry in &self.entries {
            let mut programs = entry.programs();
            programs.retain(|program| entry.is_called_for(program, only));
            // `wrote` is reported as missing only if the user requested it by name.
            let is_out = only.is_empty() && wrote.is_none() && toolchain::is_wrote(&entry.manifest);
            if !programs.is_empty() && !is_out {
                asked.push((entry, programs));
            }
        }
        // The searches run in parallel, because some toolchains take seconds to print their
        // version.
        let found = std::thread::scope(|scope| {
            let look = |entry: &Entry| toolchain::find(&entry.manifest, wrote, stop);
            let looking: Vec<_> =
                asked.iter().map(|(entry, _)| scope.spawn(move || look(entry))).collect();
            let found = looking.into_iter().map(|of| of.join().expect("a search does not panic"));
            found.collect::<Result<Vec<_>, Error>>()
        })?;
        let (mut chosen, mut languages) = (Vec::new(), Vec::new());
        for ((entry, programs), found) in asked.into_iter().zip(found) {
            for variant in programs {
                languages.push(language(entry, &variant, &found));
                if let Ok(tools) = &found {
                    let (entry, tools) = (entry.clone(), tools.clone());
                    chosen.push(Candidate { entry, variant, tools });
                }
            }
        }
        Ok((chosen, languages))
    }

    fn add(&mut self, entry: Entry, folder: &Path) -> Result<(), Error> {
        let mut taken = self.names();
        taken.push(DRIVE.into());
        if let Some(name) = entry.names().into_iter().find(|name| taken.contains(name)) {
            let folder = folder.display();
            let what = if name == DRIVE { "row" } else { "language" };
            let because = format!("{what} {name:?} exists already");
            return Err(Error::Usage(format!("{folder}: {because}: give it another id")));
        }
        self.entries.push(entry);
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.entries.iter().flat_map(Entry::names).collect()
    }

    /// Refuses an unknown name, suggesting the most similar one.
    fn check_names(&self, only: &[String]) -> Result<(), Error> {
        let known = self.names();
        let Some(name) = only.iter().find(|name| !known.contains(name)) else {
            return Ok(());
        };
        let near = names::nearest(name, known.iter().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean '{near}'?"));
        let (known, hint) = (known.join(", "), hint.unwrap_or_default());
        Err(Error::Usage(format!("--only {name:?}: no such language among {known}{hint}")))
    }
}

fn language(entry: &Entry, variant: &Variant, found: &Result<Tools, String>) -> Language {
    let install = found.is_err().then(|| entry.manifest.install.clone());
    Language {
        id: variant.id.clone(),
        name: variant.name.clone(),
        way: variant.way.clone(),
        state: if found.is_ok() { State::Ready } else { State::Missing },
        version: found.as_ref().ok().map(|tools| tools.version.clone()),
        because: found.as_ref().err().cloned(),
        install,
        failures: BTreeMap::new(),
    }
}

impl Candidate {
    pub(super) fn does(&self, task: Task) -> bool {
        let tasks = &self.variant.tasks;
        let is_named = tasks.iter().any(|does| does == task.as_str());
        is_named || (tasks.is_empty() && task != Task::Log)
    }

    /// Returns the words for the language's method of doing a task.
    pub(super) fn way_of(&self, task: Task) -> &str {
        let own = match task {
            Task::BytesRead => &self.variant.reads,
            Task::Lines => &self.variant.lines,
            _ => &self.variant.way,
        };
        if own.is_empty() { &self.variant.way } else { own }
    }
}

/// The maximum size of a language's folder. A larger folder was probably specified by mistake.
const SIZE_BYTES_MAX: u64 = 4 << 20;

/// Reads the language in `folder`. The folder's name is the language's ID.
///
/// # Errors
///
/// [`Error::Usage`], one line long, if `folder` contains no language or an unsuitable file;
/// [`Error::Failed`] if it can't be read.
fn read_added(folder: &Path) -> Result<Entry, Error> {
    let real = folder.canonicalize().map_err(|error| unexamined(folder, &error))?;
    if !real.is_dir() {
        return Err(refused(folder, "is not a folder: name the folder of a language"));
    }
    let manifest = folder.join(FILE_NAME);
    match fs::symlink_metadata(&manifest) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(refused(folder, "holds no manifest.toml, which a language needs"));
        }
        Err(error) => return Err(unexamined(&manifest, &error)),
    }
    let id = real.file_name().and_then(|name| name.to_str()).filter(|name| is_id(name));
    let Some(id) = id else {
        let because = "its name must be the language's id: small letters, digits and hyphens";
        return Err(refused(folder, because));
    };
    let mut files = Vec::new();
    collect_added(folder, Path::new(""), &mut files)?;
    Entry::new(id.to_owned(), files, &manifest.display().to_string())
}

/// Collects the files of a user's folder, with their paths relative to `root`.
fn collect_added(
    root: &Path,
    within: &Path,
    files: &mut Vec<(PathBuf, Vec<u8>)>,
) -> Result<(), Error> {
    let failed = |error| unexamined(&root.join(within), &error);
    for entry in fs::read_dir(root.join(within)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, shown) = (within.join(entry.file_name()), entry.path());
        let failed = |error| unexamined(&shown, &error);
        let kind = entry.file_type().map_err(failed)?;
        if is_left_out(&path) {
            continue;
        }
        if kind.is_dir() {
            collect_added(root, &path, files)?;
            continue;
        }
        if !kind.is_file() {
            // A symbolic link may lead outside the folder that is copied.
            let because = "is not a regular file, and a language's folder may hold no others";
            return Err(refused(&shown, because));
        }
        let left = SIZE_BYTES_MAX - files.iter().map(|(_, text)| text.len() as u64).sum::<u64>();
        let (file, mut text) = (File::open(&shown).map_err(failed)?, Vec::new());
        file.take(left + 1).read_to_end(&mut text).map_err(failed)?;
        let is_too_long = text.len() as u64 > left;
        files.push((path, text));
        if is_too_long {
            let because = "holds more than 4 MiB: is it the folder of a language?";
            return Err(refused(root, because));
        }
    }
    Ok(())
}

fn refused(path: &Path, because: &str) -> Error {
    Error::Usage(format!("{}: {because}", path.display()))
}

#[cfg(test)]
mod tests;
