//! Copies of folders with their contents.

mod folder;
mod small;
mod walk;
mod workers;

use super::copied::Copied;
use super::file;
use super::options::{CopyOptions, CopySettings, Method, Reflink, engine_options, open_engine};
use super::source::SMALL_BYTES_MAX;
use crate::engine::Found;
use crate::engine::folder_of;
use crate::error::Tried;
use crate::metadata::{Inherited, Metadata, MetadataParts, times};
use crate::progress::{Progress, Watch, report};
use crate::staged::beside;
use crate::{Action, Effective, Engine, Error, Fallback};
use folder::StagedFolder;
use rustix::fs::{AtFlags, CWD, lstat, utimensat};
use rustix::io::Errno;
use small::{SmallCopied, SmallCopier, SmallJob};
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;
use walk::{EntryKind, TreeStep, TreeWalk};
use workers::Workers;

const NAMED_MAX: usize = 100;

/// The most folders waiting for small files (W8). A thread may take long for one file while the
/// walk continues.
const ENDS_MAX: usize = 64;

/// The mode of a folder while it is filled, so that no other user adds anything.
const MODE_PRIVATE: u32 = 0o700;

/// Copies the folder `from` with its contents to `to`, which appears once complete.
///
/// Files are copied as by [`super::copy`]. Folders also keep their permissions, times and extended
/// attributes. Symbolic links are copied as links; only `from` itself is followed. A file with
/// several names becomes several files. Pipes, sockets and devices are skipped and reported.
///
/// A new folder is built beside its place, as `.NAME.wrote-PROCESS-NUMBER`, and renamed in one
/// step. If `to` exists, [`CopyOptions::replace`] merges the two: entries that exist only in `to`
/// stay, a file or link of the same name is replaced atomically, and a new subfolder appears once
/// complete. After an error the completed parts stay. [`CopyOptions::merge`] merges without
/// replacing anything.
///
/// With [`CopyOptions::durable`], a new folder is made durable by one `syncfs(2)` before it is
/// renamed, which also waits for other programs' writes to that file system. If that call is not
/// known to reach the device, or files are replaced, each file is flushed separately.
///
/// Files in a new folder of at most 128 KiB without holes are copied by as many threads as there
/// are processors, at most four. [`CopyOptions::verify`] and
/// [`Reflink::Always`](super::Reflink::Always) copy one file after another.
///
/// Memory does not grow with the number of files; folders may be nested up to [`FOLDERS_DEEP_MAX`]
/// deep. The tree is walked twice: the first walk counts bytes and detects conflicts.
///
/// # Errors
///
/// The kernel's errors, also if a file vanishes or can't be read, unless
/// [`CopyOptions::keep_going`] is set; `EEXIST` for an existing folder without `replace` or
/// `merge`, and for an existing file without `replace`. [`Error::Refused`], before anything is
/// written, if `to` exists and is not a folder, or is inside `from`, or if a file on one side is a
/// folder on the other. [`Error::Interrupted`] if the watcher of [`CopyOptions::watch`] asks to
/// stop.
pub fn copy_tree(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied, Error> {
    CopyOptions::new().copy_tree(from, to)
}

impl CopyOptions<'_> {
    /// Copies a folder with its contents, like the function [`copy_tree`].
    pub fn copy_tree(self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied, Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.run(|settings, watch| {
            // The engine gets all buffers, as for long files. They are registered for the first
            // file that is not small.
            let options = engine_options(u64::MAX, settings).registered_buffers(false);
            if settings.is_simulated() {
                let because = "a folder is copied on a real disk only, and this one is simulated";
                return Err(Error::refused(to, because));
            }
            let mut engine = open_engine(&options, settings)?;
            let engine = TreeEngine { engine: &mut engine, registers: settings.disk.is_none() };
            copy_through(engine, from, to, settings, watch)
        })
    }
}

/// The engine of a copy of a folder.
struct TreeEngine<'a> {
    engine: &'a mut Engine,
    /// Whether its buffers are registered before the first file that uses them.
    registers: bool,
}

pub use walk::FOLDERS_DEEP_MAX;

fn copy_through(
    TreeEngine { engine, registers }: TreeEngine,
    from: &Path,
    to: &Path,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let place = engine.locate(to)?;
    match place.found {
        Found::Nothing => {}
        Found::Folder if settings.replace || settings.merge => {}
        Found::Folder => return Err(Errno::EXIST).tried(to, Action::Open),
        Found::File | Found::Other => return Err(Error::refused(to, "exists and is not a folder")),
    }
    refuse_inside(from, &place.path)?;
    let merges = place.found == Found::Folder;
    let bytes = measure(from, merges.then_some(&place.path), settings, watch)?;
    let effective = engine.effective().clone();
    let copied = Copied { verified: settings.verify, effective, ..Copied::default() };
    let total = if settings.verify { bytes.saturating_mul(2) } else { bytes };
    let (from, to) = (from.to_owned(), place.path);
    let (workers, staged, ends) = (workers_for(settings), None, VecDeque::new());
    let mut tree = Tree {
        engine,
        registers,
        settings,
        watch,
        from,
        to,
        total,
        done: 0,
        copied,
        staged,
        workers,
        ends,
    };
    // Even a panic in the program's watcher must not leave a folder behind.
    let result = catch_unwind(AssertUnwindSafe(|| tree.run()));
    let result = result.map(|result| result.map_err(|error| tree.told(error)));
    let Tree { mut copied, staged, workers, .. } = tree;
    // Workers are stopped before the folder is removed.
    drop(workers);
    if let (Err(_) | Ok(Err(_)), Some(staged)) = (&result, staged) {
        staged.abandon();
    }
    result.unwrap_or_else(|panic| resume_unwind(panic))?;
    copied.elapsed = began.elapsed();
    let fallbacks = std::mem::take(&mut copied.effective.fallbacks);
    copied.effective = Effective { fallbacks, ..engine.effective().clone() };
    Ok(copied)
}

/// Refuses a copy into its own source, which would never end.
fn refuse_inside(from: &Path, to: &Path) -> Result<(), Error> {
    let identity = |path: &Path| {
        let metadata = fs::metadata(path).tried(path, Action::Examine)?;
        Ok::<_, Error>((metadata.dev(), metadata.ino()))
    };
    let source = identity(from)?;
    if identity(to).is_ok_and(|there| there == source) {
        return Err(Error::refused(to, "is the folder that is to be copied"));
    }
    let parent = folder_of(to);
    let parent = parent.canonicalize().tried(parent, Action::Examine)?;
    for folder in parent.ancestors() {
        if identity(folder)? == source {
            return Err(Error::refused(to, "is inside the folder that is to be copied"));
        }
    }
    Ok(())
}

/// Counts the bytes to copy without changing anything. With an existing folder `onto`, also detects
/// conflicts.
fn measure(
    from: &Path,
    onto: Option<&PathBuf>,
    settings: &CopySettings,
    watch: Watch,
) -> Result<u64, Error> {
    let mut bytes = 0_u64;
    let mut walk = TreeWalk::of(from)?.measuring();
    loop {
        let step = match walk.next() {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(bytes),
            // The copy will encounter it again, or it is readable by then.
            Err(error) if settings.keep_going && !is_about(&error, from) => continue,
            Err(error) => return Err(error),
        };
        if let Some(onto) = onto {
            refuse_conflict(&moved(&step.path, from, onto), step.kind, settings.replace)?;
        }
        bytes = bytes.saturating_add(step.len);
        report(watch, Progress { bytes_done: 0, bytes_total: None })?;
    }
}

fn is_about(error: &Error, path: &Path) -> bool {
    error.path() == Some(path)
}

/// W7: a folder merges only with a folder; with `replace`, a file replaces a file, and a link
/// replaces a link or a file.
fn refuse_conflict(there: &Path, kind: EntryKind, replace: bool) -> Result<(), Error> {
    let found = match fs::symlink_metadata(there) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).tried(there, Action::Examine),
    };
    let what = match kind {
        EntryKind::Folder if !found.is_dir() => "folder",
        EntryKind::File if !found.is_file() => "ordinary file",
        EntryKind::Link if !(found.is_file() || found.is_symlink()) => "symbolic link",
        EntryKind::File | EntryKind::Link if !replace => {
            return Err(Errno::EXIST).tried(there, Action::Open);
        }
        _ => return Ok(()),
    };
    let because = format!("exists and is not a {what}, as the source is");
    Err(Error::refused(there, because))
}

struct Tree<'a, 'w> {
    engine: &'a mut Engine,
    registers: bool,
    settings: &'a CopySettings,
    watch: Watch<'w>,
    from: PathBuf,
    to: PathBuf,
    /// Total bytes. With `verify` each counts twice.
    total: u64,
    done: u64,
    copied: Copied,
    /// The new folder being built, if any.
    staged: Option<StagedFolder>,
    /// The threads for small files in a new folder; `None` if all files are copied in the general
    /// way.
    workers: Option<Workers>,
    /// Folders in it that wait for small files, inner ones first.
    ends: VecDeque<FolderEnd>,
}

/// The end of a folder: no more of its files follow.
struct FolderEnd {
    path: PathBuf,
    /// The number of small files before it; when these are copied, it is complete.
    after: u64,
}

/// Returns the metadata that a copy gets besides permissions and attributes.
fn parts(settings: &CopySettings) -> MetadataParts {
    MetadataParts { owner: settings.preserve, times: true }
}

/// Returns the threads for small files. Files that are read back or must share blocks are copied in
/// the general way.
fn workers_for(settings: &CopySettings) -> Option<Workers> {
    if settings.verify || settings.reflink == Reflink::Always {
        return None;
    }
    Some(Workers::new(SmallCopier {
        bytes_max: settings.bs_bytes.min(SMALL_BYTES_MAX as usize),
        parts: parts(settings),
        shares_blocks: settings.reflink == Reflink::Auto,
        no_reflink_of: OnceLock::new(),
    }))
}

impl Tree<'_, '_> {
    fn run(&mut self) -> Result<(), Error> {
        let mut walk = TreeWalk::of(&self.from)?;
        loop {
            match walk.next() {
                Ok(None) => return Ok(()),
                Ok(Some(step)) => self.step(step)?,
                Err(error) if is_about(&error, &self.from) => return Err(error),
                Err(error) => self.pass_over(error)?,
            }
        }
    }

    fn step(&mut self, TreeStep { path, kind, .. }: TreeStep) -> Result<(), Error> {
        self.report()?;
        match kind {
            EntryKind::Folder => self.enter(&path),
            EntryKind::File => self.file(path),
            EntryKind::Link => {
                let linked = self.link(&path);
                self.or_pass_over(&path, linked)
            }
            EntryKind::Other => {
                self.leave_out(path);
                Ok(())
            }
            EntryKind::End => self.leave(path),
        }
    }

    /// Records an error about a source entry if the copy continues without it.
    fn pass_over(&mut self, error: Error) -> Result<(), Error> {
        if !self.settings.keep_going {
            return Err(error);
        }
        self.copied.failed_count += 1;
        if self.copied.failed.len() < NAMED_MAX {
            self.copied.failed.push(error);
        }
        Ok(())
    }

    /// Records an error about the source `path`. An error about its copy, such as a full disk, ends
    /// everything.
    fn or_pass_over(&mut self, path: &Path, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error) if is_about(&error, path) => self.pass_over(error),
            result => result,
        }
    }

    fn report(&mut self) -> Result<(), Error> {
        let progress = Progress { bytes_done: self.done, bytes_total: Some(self.total) };
        report(self.watch, progress)
    }

    /// Returns where the copy of `path` is created.
    fn target(&self, path: &Path) -> PathBuf {
        match &self.staged {
            Some(staged) => moved(path, &staged.from, &staged.temporary),
            None => moved(path, &self.from, &self.to),
        }
    }

    fn enter(&mut self, path: &Path) -> Result<(), Error> {
        let target = self.target(path);
        if self.staged.is_some() {
            let made = DirBuilder::new().mode(MODE_PRIVATE).create(&target);
            made.tried(&target, Action::Open)?;
        } else if fs::symlink_metadata(&target).is_ok_and(|there| there.is_dir()) {
            return Ok(());
        } else {
            self.staged = Some(StagedFolder::new(path, target, self.settings.durable)?);
        }
        self.copied.folders += 1;
        Ok(())
    }

    /// Marks a folder as complete once its small files are copied. A folder being built then takes
    /// its place.
    fn leave(&mut self, path: PathBuf) -> Result<(), Error> {
        let Some(staged) = &self.staged else {
            return if self.settings.preserve { self.preserve_folder(&path) } else { Ok(()) };
        };
        let is_whole = staged.from == path;
        let after = self.workers.as_ref().map_or(0, Workers::taken);
        self.ends.push_back(FolderEnd { path, after });
        if let Some(workers) = &mut self.workers
            && (is_whole || self.ends.len() > ENDS_MAX)
        {
            workers.finish();
        }
        self.collect()
    }

    /// Gives a merged folder the metadata of its source.
    fn preserve_folder(&mut self, path: &Path) -> Result<(), Error> {
        let target = self.target(path);
        if let Some((metadata, parts)) = self.of_folder(path)? {
            let folder = File::open(&target).tried(&target, Action::Open)?;
            metadata.give(folder.as_fd(), &target, parts)?;
            if self.settings.durable {
                self.engine.sync_folder(&target)?;
            }
        }
        Ok(())
    }

    /// Returns the metadata for a folder's copy; `None` if the folder is skipped.
    fn of_folder(&mut self, path: &Path) -> Result<Option<Inherited>, Error> {
        let folder = File::open(path).tried(path, Action::Open);
        match folder.and_then(|folder| Metadata::of(folder.as_fd(), path)) {
            Ok(metadata) => Ok(Some((metadata, parts(self.settings)))),
            Err(error) => self.pass_over(error).map(|()| None),
        }
    }

    /// Gives a complete folder its metadata; a folder that was built takes its place.
    fn end(&mut self, path: &Path) -> Result<(), Error> {
        let target = self.target(path);
        let inherited = self.of_folder(path)?;
        let Some(staged) = &self.staged else { return Ok(()) };
        let is_whole = staged.from == path;
        if !is_whole && let Some((metadata, parts)) = &inherited {
            let folder = File::open(&target).tried(&target, Action::Open)?;
            metadata.give(folder.as_fd(), &target, *parts)?;
        }
        if staged.syncs_each {
            self.engine.sync_folder(&target)?;
        }
        if is_whole {
            staged.put(self.engine, inherited, self.settings.durable)?;
            self.staged = None;
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf) -> Result<(), Error> {
        let target = self.target(&path);
        match (&self.staged, &mut self.workers) {
            (Some(staged), Some(workers)) => {
                let is_synced = staged.syncs_each;
                workers.take(SmallJob { from: path, to: target, is_synced });
                self.collect()
            }
            _ => {
                let copied = self.copy_file(&path, &target);
                self.or_pass_over(&path, copied)
            }
        }
    }

    /// Counts copied small files, copies files that were not small, and ends complete folders.
    fn collect(&mut self) -> Result<(), Error> {
        let (results, finished) = match &self.workers {
            Some(workers) => workers.results(),
            None => (Vec::new(), 0),
        };
        let is_progress = !results.is_empty();
        for (SmallJob { from, to, .. }, result) in results {
            let copied = match result {
                Ok(Some(SmallCopied { bytes, method, fallback })) => {
                    self.count(bytes, &[method], fallback);
                    Ok(())
                }
                Ok(None) => self.copy_file(&from, &to),
                Err(error) => Err(error),
            };
            self.or_pass_over(&from, copied)?;
        }
        if is_progress {
            self.report()?;
        }
        while self.ends.front().is_some_and(|end| end.after <= finished) {
            let end = self.ends.pop_front().expect("it was there");
            self.end(&end.path)?;
        }
        Ok(())
    }

    /// Copies any file, under a temporary name until it is complete.
    fn copy_file(&mut self, path: &Path, target: &Path) -> Result<(), Error> {
        let durable = match &self.staged {
            Some(staged) => staged.syncs_each,
            None => self.settings.durable,
        };
        if self.registers {
            self.engine.register_buffers();
        }
        let settings = CopySettings { durable, ..self.settings.clone() };
        let (done, total) = (self.done, self.total);
        let watch = &mut *self.watch;
        let copied = file::copy_through(self.engine, path, target, &settings, &mut |progress| {
            let bytes_done = done.saturating_add(progress.bytes_done).min(total);
            watch(Progress { bytes_done, bytes_total: Some(total) })
        })?;
        self.count(copied.bytes, &copied.methods, copied.effective.fallbacks);
        Ok(())
    }

    fn count(
        &mut self,
        bytes: u64,
        methods: &[Method],
        fallbacks: impl IntoIterator<Item = Fallback>,
    ) {
        let copied = &mut self.copied;
        for fallback in fallbacks {
            if !copied.effective.fallbacks.contains(&fallback) {
                copied.effective.fallbacks.push(fallback);
            }
        }
        for method in methods {
            if !copied.methods.contains(method) {
                copied.methods.push(*method);
            }
        }
        copied.files += 1;
        copied.bytes += bytes;
        let times = if self.settings.verify { 2 } else { 1 };
        self.done = self.done.saturating_add(bytes.saturating_mul(times)).min(self.total);
    }

    /// Creates the link with its times. A replacement is created beside the old one and renamed.
    fn link(&mut self, path: &Path) -> Result<(), Error> {
        let target = self.target(path);
        let leads_to = fs::read_link(path).tried(path, Action::Read)?;
        let stat = lstat(path).tried(path, Action::Examine)?;
        let make = |name: &Path| {
            symlink(&leads_to, name).tried(name, Action::Open)?;
            if self.settings.preserve {
                // As far as this process may.
                let _ = lchown(name, Some(stat.st_uid), Some(stat.st_gid));
            }
            utimensat(CWD, name, &times(&stat), AtFlags::SYMLINK_NOFOLLOW).tried(name, Action::Open)
        };
        if self.staged.is_some() || fs::symlink_metadata(&target).is_err() {
            make(&target)?;
        } else {
            let (temporary, ()) = beside(&target, make)?;
            self.engine.rename(&temporary, &target, true).inspect_err(|_| {
                // Report the first error.
                let _ = fs::remove_file(&temporary);
            })?;
        }
        if self.staged.is_none() && self.settings.durable {
            self.engine.sync_folder(folder_of(&target))?;
        }
        self.copied.links += 1;
        Ok(())
    }

    fn leave_out(&mut self, path: PathBuf) {
        self.copied.left_out_count += 1;
        if self.copied.left_out.len() < NAMED_MAX {
            self.copied.left_out.push(path);
        }
    }

    /// Replaces the temporary path in an error by the final one.
    fn told(&self, mut error: Error) -> Error {
        if let Some((path, staged)) = error.path_mut().zip(self.staged.as_ref())
            && let Some(place) = staged.told(path)
        {
            *path = place;
        }
        error
    }
}

/// Maps a path in the folder `from` to the folder `to`.
fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    let within = path.strip_prefix(from).expect("a walk stays within its folder");
    // Joining an empty path would add a trailing slash, which makes a link be followed.
    if within == Path::new("") { to.to_owned() } else { to.join(within) }
}
