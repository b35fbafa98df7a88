//! The files that calls find: samples of each kind, intact or damaged, and files that must not
//! change.

use super::draw::{Call, INPUTS};
use lab::verbs::Trouble;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A job file that takes only a moment to run.
const JOB: &str = "[global]\nsize=64k\nbs=4k\ndirect=1\nioengine=io_uring\niodepth=4\n\n\
                   [first]\nfilename=job-file\nrw=write\n\n[second]\nstonewall\nfilename=job-file\n\
                   rw=randread\nruntime=100ms\nverify=crc32c\n";

/// Words that are inserted into a damaged text.
const TOKENS: [&str; 12] = [
    "18446744073709551616",
    "-1",
    "1e999",
    "\u{0}",
    "\u{1b}[31m",
    "\n",
    "[x]\n",
    "size=1E\n",
    "filename=data\n",
    "null",
    "{",
    "\"\\ud800\"",
];

/// The contents below a path: the bytes of files, and the targets of links.
type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// A folder for the files of one thread's calls.
pub struct World {
    made: TempDir,
    samples: Contents,
    /// The files when the call started.
    before: Contents,
}

impl World {
    /// Creates the samples with the command itself.
    pub fn new(program: &Path, folder: &Path) -> Result<World, Trouble> {
        let made = tempfile::tempdir_in(folder)?;
        let at = |name: &str| made.path().join(name);
        fs::write(at("data"), vec![b'd'; 100_000])?;
        fs::write(at("empty"), "")?;
        fs::create_dir(at("folder"))?;
        fs::write(at("folder/inner"), "inner")?;
        fs::write(at("job.fio"), JOB)?;
        let lines: Vec<u8> =
            (0..300).flat_map(|line| format!("record {line}\n").into_bytes()).collect();
        sample(program, made.path(), &["log", "append", "--quiet", "log"], &lines)?;
        let bench =
            ["bench", "--only", "small", "--size", "64K", "--runs", "1", "--format", "json"];
        for name in ["old.json", "new.json"] {
            fs::write(at(name), sample(program, made.path(), &bench, b"")?)?;
        }
        let samples = contents(made.path())?;
        Ok(World { made, samples, before: Contents::new() })
    }

    /// Returns the working folder of calls. Its parent also belongs to the world.
    pub fn folder(&self) -> PathBuf {
        self.made.path().join("calls")
    }

    fn is_changed(&self) -> Result<bool, Trouble> {
        Ok(self.before.is_empty() || contents(self.made.path())? != self.before)
    }

    /// Restores the samples, and applies the call's damage to one of them.
    pub fn refresh(&mut self, call: &Call) -> Result<(), Trouble> {
        let above = self.made.path();
        let folder = &self.folder();
        if call.may_change_files() || self.is_changed()? {
            for entry in fs::read_dir(above)? {
                let path = entry?.path();
                if path.is_dir() && !path.is_symlink() {
                    fs::remove_dir_all(path)?;
                } else {
                    fs::remove_file(path)?;
                }
            }
            for (path, bytes) in &self.samples {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().expect("below the folder"))?;
                fs::write(path, bytes)?;
            }
            symlink("data", folder.join("link"))?;
            symlink("nowhere", folder.join("dangling"))?;
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let fifo = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, folder.join("fifo"), fifo, mode, 0)?;
        }
        for (path, bytes) in &self.samples {
            let input = INPUTS.iter().position(|input| path.starts_with(input));
            if let Some(input) = input {
                let damaged = call.damage.filter(|damage| damage.1 == input);
                let bytes = damaged.map_or_else(|| bytes.clone(), |(seed, _)| damage(bytes, seed));
                fs::write(folder.join(path), bytes)?;
            }
        }
        self.before = contents(above)?;
        Ok(())
    }

    /// Fails if a file was changed, or if a new name remains that only a running command uses.
    pub fn changed(&self, may_change_files: bool) -> Result<(), String> {
        let now = contents(self.made.path()).map_err(|error| error.to_string())?;
        for (path, bytes) in &self.before {
            if !may_change_files && now.get(path) != Some(bytes) {
                return Err(format!("{} is not as it was", path.display()));
            }
        }
        let is_left = |path: &&PathBuf| {
            path.components().any(|name| name.as_os_str().to_string_lossy().contains(".wrote-"))
        };
        match now.keys().find(is_left) {
            Some(left) => Err(format!("{} is left", left.display())),
            None => Ok(()),
        }
    }
}

/// Runs the command to create a sample, and returns its output.
fn sample(
    program: &Path,
    folder: &Path,
    arguments: &[&str],
    input: &[u8],
) -> Result<Vec<u8>, Trouble> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    child.stdin.take().expect("piped").write_all(input)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(output.stdout)
}

fn contents(folder: &Path) -> Result<Contents, Trouble> {
    let mut found = Contents::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below)? {
            let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type()))?;
            let kind = kind?;
            let bytes = if kind.is_dir() {
                folders.push(path);
                continue;
            } else if kind.is_symlink() {
                fs::read_link(&path)?.into_os_string().into_encoded_bytes()
            } else if kind.is_file() {
                fs::read(&path)?
            } else {
                Vec::new()
            };
            found.insert(path.strip_prefix(folder)?.to_owned(), bytes);
        }
    }
    Ok(found)
}

/// Changes, moves, removes and duplicates some bytes.
fn damage(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..=bytes.len());
        let len = random.random_range(0..=64.min(bytes.len() - at));
        match random.random_range(0..7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + len)),
            2 => random.fill(&mut bytes[at..at + len]),
            3 => bytes[at..at + len].fill(0),
            4 => {
                let doubled = bytes[at..at + len].to_vec();
                bytes.splice(at..at, doubled);
            }
            5 => {
                let token = TOKENS[random.random_range(0..TOKENS.len())].bytes();
                bytes.splice(at..at, token);
            }
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| {
                *byte ^= 1 << random.random_range(0..8);
            }),
        }
    }
    bytes
}
