//! The common parts of these tests: the languages of a test, `wrote langs` with a home and a cache
//! of the test, and the result.

use crate::support::{printed, wrote};
use fixtures::{HONEST_LANGUAGE, finish, folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wrote_result::document::Document;

/// A file system in memory that exists on every Linux (shm_overview(7)).
const MEMORY: &str = "/dev/shm";
/// The environment variable that marks every process of a test. Child processes inherit it, even if
/// they leave their parents.
const MARK: &str = "WROTE_TEST_SCENE";
/// The maximum time that the kernel takes to remove a killed process.
const LIMIT: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(10);

/// A folder to write in, languages, and their user's home. All of them are removed when the scene
/// is dropped.
pub struct Scene {
    folder: TempDir,
    /// The folder in which languages write.
    target: TempDir,
}

impl Scene {
    /// Creates a scene that writes in memory if possible. In memory, faults show as on a drive, and
    /// these tests measure no drive.
    pub fn new() -> Scene {
        let target = TempDir::with_prefix_in("wrote-test-", MEMORY);
        Scene::writing_in(target.unwrap_or_else(|_| folder()))
    }

    fn writing_in(target: TempDir) -> Scene {
        let scene = Scene { folder: folder(), target };
        for part in [scene.home(), scene.languages()] {
            fs::create_dir(part).expect("a folder");
        }
        scene
    }

    /// Returns the folder in which the languages write.
    pub fn target(&self) -> PathBuf {
        self.target.path().to_owned()
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns a path next to the target folder, for files of the test.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn languages(&self) -> PathBuf {
        self.folder.path().join("languages")
    }

    /// Returns the folder of the language with this id, for `--add`.
    pub fn language(&self, id: &str) -> PathBuf {
        self.languages().join(id)
    }

    /// Adds a language with this manifest, the text of the honest program, and these files.
    pub fn add(&self, id: &str, manifest: &str, files: &[(&str, &str)]) -> PathBuf {
        let language = self.language(id);
        // A test that changes a language adds it a second time.
        fs::create_dir_all(&language).expect("a folder");
        fs::write(language.join("manifest.toml"), manifest).expect("a manifest");
        fs::write(language.join("honest.sh"), HONEST_LANGUAGE).expect("a program");
        for (name, text) in files {
            fs::write(language.join(name), text).expect("a file of the program");
        }
        language
    }

    /// Adds the honest language.
    pub fn honest(&self) {
        self.add("honest", &manifest("honest", "", ""), &[("program.sh", &program(""))]);
    }

    /// Adds a rogue: a language that performs only these tasks, with the honest program in which
    /// `otherwise` replaces functions.
    pub fn rogue(&self, id: &str, otherwise: &str, tasks: &str) {
        self.add(id, &manifest(id, "", tasks), &[("program.sh", &program(otherwise))]);
    }

    /// Returns the command `wrote langs` for these languages alone. Each word of `more` is a
    /// further argument.
    pub fn langs(&self, ids: &[&str], more: &str) -> Command {
        self.langs_in(&self.target(), ids, more)
    }

    /// Like [`Scene::langs`], for another folder: with this scene's home, and with the mark that
    /// identifies its processes.
    pub fn langs_in(&self, path: &Path, ids: &[&str], more: &str) -> Command {
        let mut command = wrote(&["langs", "--only", &ids.join(",")]);
        command.arg(path);
        for id in ids {
            command.arg("--add").arg(self.language(id));
        }
        command.args(more.split_whitespace());
        command.env("HOME", self.home()).env("XDG_CACHE_HOME", self.cache());
        command.env(MARK, self.folder.path());
        command
    }

    /// Returns the result of `wrote langs` for these languages.
    pub fn document(&self, ids: &[&str], more: &str) -> Document {
        printed(&finish(&mut self.langs(ids, &format!("{more} --format json"))))
    }

    /// Returns the folder in which programs are built.
    pub fn cache(&self) -> PathBuf {
        self.home().join("cache")
    }

    /// Returns the command lines of the processes that this scene's commands started and that are
    /// still alive.
    ///
    /// Waits for killed processes to disappear, because the kernel ends them only a moment after
    /// the signal.
    pub fn processes(&self) -> Vec<String> {
        let deadline = Instant::now() + LIMIT;
        while !self.living().is_empty() && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        self.living().into_iter().map(|(_, name)| name).collect()
    }

    fn living(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.folder.path().display()).into_bytes();
        let mut living = Vec::new();
        for entry in fs::read_dir("/proc").expect("there is /proc").flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that waits to be reaped has an empty environment (proc(5)).
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                living.push((id, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        living
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Processes that a failed test leaves behind would sleep forever.
        for (id, _) in self.living() {
            if let Some(process) = rustix::process::Pid::from_raw(id) {
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Returns the manifest of a language in sh, with these lines for its toolchain. Each word of
/// `tasks` is a task; no words mean all tasks.
pub fn manifest(id: &str, toolchain: &str, tasks: &str) -> String {
    let tasks: Vec<&str> = tasks.split_whitespace().collect();
    format!(
        "name = 'The {id} one'
         way = 'printf, {id}'
         install = 'write {id} anew'
         [[toolchain]]
         version = ['sh', '-c', 'echo 1.0 of {id}']
         run = ['sh', '{{source}}/program.sh']
         {toolchain}
         [[variant]]
         id = '{id}'
         name = 'The {id} one'
         way = 'printf, {id}'
         tasks = {tasks:?}
        "
    )
}

/// Returns the honest program with these functions replaced.
pub fn program(otherwise: &str) -> String {
    format!(". \"${{0%/*}}/honest.sh\"\n{otherwise}\nmain \"$@\"\n")
}

/// Returns a path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}
