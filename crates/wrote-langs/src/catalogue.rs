//! The catalogue of languages: embedded ones, and those that the user adds.

mod added;

use super::Request;
use super::manifest::{FILE_NAME, Manifest, Variant};
use super::toolchain::{self, Tools};
use super::workload::Task;
use include_dir::{Dir, include_dir};
use itertools::Itertools;
use std::iter;
use std::path::{Path, PathBuf};
use wrote_result::langs::{Language, State};
use wrote_result::{Error, Stop};

/// The repository's folder of languages, one folder each. All of them are in the catalogue.
static EMBEDDED: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../langs");

/// Two names this similar (1 is equal) are suggested for each other.
const SIMILARITY_MIN: f64 = 0.6;

/// Every language, embedded or added.
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub(super) entries: Vec<Entry>,
}

/// One language: its folder's name, its manifest, its program's text.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The folder's name: `go`.
    pub id: String,
    pub manifest: Manifest,
    /// All files of the folder with the manifest, sorted by their paths within it, without hidden
    /// files and Python's caches.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// A requested program whose toolchain is installed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub entry: Entry,
    pub variant: Variant,
    pub tools: Tools,
}

/// Returns the embedded languages, sorted by their folders' names, and then those of `add`.
///
/// # Errors
///
/// [`Error::Usage`], one line, where a folder of `add` holds no language, or one whose id is taken.
pub fn catalogue(add: &[PathBuf]) -> Result<Catalogue, Error> {
    let mut catalogue = Catalogue { entries: embedded()? };
    for folder in add {
        catalogue.add(added::read(folder)?, folder)?;
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

/// Collects the files of an embedded folder, by their paths within `root`.
fn collect(folder: &Dir, root: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for file in folder.files().filter(|file| !is_left_out(file.path())) {
        let path = file.path().strip_prefix(root).expect("a file within");
        files.push((path.to_owned(), file.contents().to_owned()));
    }
    for below in folder.dirs().filter(|below| !is_left_out(below.path())) {
        collect(below, root, files);
    }
}

/// Returns whether a path is no part of a program: hidden (`.git`), or a cache of Python.
fn is_left_out(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name == "__pycache__"
}

impl Entry {
    /// Reads the language in a folder of these files; errors name `origin` as the manifest.
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

    /// Returns the names of the language: its own id and those of its variants.
    fn names(&self) -> Vec<String> {
        let programs = self.programs().into_iter().map(|program| program.id);
        iter::once(self.id.clone()).chain(programs).unique().collect()
    }

    /// Returns whether `only` names this program or its whole language; an empty `only` names all.
    fn is_called_for(&self, program: &Variant, only: &[String]) -> bool {
        only.is_empty() || only.iter().any(|name| *name == program.id || *name == self.id)
    }
}

impl Catalogue {
    /// Returns the ids of all languages and variants, in the order of the catalogue.
    pub fn ids(&self) -> Vec<String> {
        self.entries.iter().flat_map(Entry::programs).map(|program| program.id).collect()
    }

    /// Looks for each language's toolchain, without a build. Without `wrote`, the program itself,
    /// its own rows are left out.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] when `stop` is raised: a toolchain may take up to 20 s to print its
    /// version.
    pub fn find(&self, wrote: Option<&Path>, stop: &Stop) -> Result<Vec<Language>, Error> {
        let (_, languages) = self.look(&[], wrote, stop)?;
        Ok(languages)
    }

    /// Returns the requested programs whose toolchains are installed, and the report on all
    /// requested ones, in the order of the catalogue.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where a name of `only` is no id, with the known ids; [`Error::Interrupted`]
    /// when `stop` is raised.
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
            // Only a user who named it would miss it.
            let is_out = only.is_empty() && wrote.is_none() && toolchain::is_wrote(&entry.manifest);
            if !programs.is_empty() && !is_out {
                asked.push((entry, programs));
            }
        }
        let entries: Vec<&Entry> = asked.iter().map(|(entry, _)| *entry).collect();
        let found = look_for_all(&entries, wrote, stop)?;
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
        let taken: Vec<String> = self.names();
        if let Some(name) = entry.names().into_iter().find(|name| taken.contains(name)) {
            let folder = folder.display();
            let because = format!("there is a language {name:?} already");
            return Err(Error::Usage(format!("{folder}: {because}: give it another id")));
        }
        self.entries.push(entry);
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.entries.iter().flat_map(Entry::names).collect()
    }

    /// Refuses an unknown name, and suggests the most similar known one.
    fn check_names(&self, only: &[String]) -> Result<(), Error> {
        let known = self.names();
        let Some(name) = only.iter().find(|name| !known.contains(name)) else {
            return Ok(());
        };
        let hint = nearest(name, &known).map(|near| format!("; did you mean '{near}'?"));
        let (known, hint) = (known.join(", "), hint.unwrap_or_default());
        Err(Error::Usage(format!("--only {name:?}: there is no such language among {known}{hint}")))
    }
}

/// Looks for the toolchains in parallel: some take seconds to print their version.
fn look_for_all(
    entries: &[&Entry],
    wrote: Option<&Path>,
    stop: &Stop,
) -> Result<Vec<Result<Tools, String>>, Error> {
    std::thread::scope(|scope| {
        let look = |entry: &Entry| toolchain::find(&entry.manifest, wrote, stop);
        let looking: Vec<_> =
            entries.iter().map(|entry| scope.spawn(move || look(entry))).collect();
        let found = looking.into_iter().map(|looking| match looking.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        found.collect()
    })
}

fn language(entry: &Entry, variant: &Variant, found: &Result<Tools, String>) -> Language {
    let install = found.is_err().then(|| entry.manifest.install.clone());
    Language {
        id: variant.id.clone(),
        name: variant.name.clone(),
        way: variant.way.clone(),
        reads: Some(variant.reads.clone()).filter(|reads| !reads.is_empty()),
        lines: Some(variant.lines.clone()).filter(|lines| !lines.is_empty()),
        state: if found.is_ok() { State::Ready } else { State::Missing },
        version: found.as_ref().ok().map(|tools| tools.version.clone()),
        because: found.as_ref().err().cloned(),
        install,
    }
}

/// Returns the known name that `name` most likely misspells.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a String> {
    let alike = |other: &String| strsim::normalized_damerau_levenshtein(name, other);
    let near = known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(near) >= SIMILARITY_MIN).then_some(near)
}

impl Candidate {
    pub(super) fn does(&self, task: Task) -> bool {
        let tasks = &self.variant.tasks;
        tasks.is_empty() || tasks.iter().any(|does| does == task.as_str())
    }
}

#[cfg(test)]
mod tests;
