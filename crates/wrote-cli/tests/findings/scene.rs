//! The common parts of the tests of findings: a disk for the test, jobs on it, and their findings.

use crate::support::{document, wrote};
use fixtures::{Mounted, Setting, finish};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use wrote_result::document::{Document, Finding};

pub const MIB: u64 = 1 << 20;

/// The maximum number of attempts at a test that depends on time.
const TRIES: u32 = 5;

/// Runs a test of findings that depend on time, while no other such test runs. Another program may
/// disturb one attempt, but is unlikely to disturb all of them.
pub fn alone(test: impl Fn()) {
    static ALONE: Mutex<()> = Mutex::new(());
    // A failed test leaves no state behind that affects the next one.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for number in 1..=TRIES {
        match catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(panic) if number == TRIES => resume_unwind(panic),
            Err(_) => {}
        }
    }
}

/// An ext4 file system on a loop device that the test has created, so that the device counts only
/// bytes of the test.
#[derive(Debug)]
pub struct Disk {
    /// The settings, which are restored before the device is removed.
    settings: Vec<Setting>,
    mounted: Mounted,
}

impl Disk {
    pub fn ext4(size_bytes: u64) -> Result<Disk, String> {
        // Without this option, the kernel would initialise the file system during the measurement
        // (ext4(5)).
        let mounted = Mounted::image_with("ext4", size_bytes, "noinit_itable")?;
        Ok(Disk { settings: Vec::new(), mounted })
    }

    /// Changes `queue/SETTING` of the device until the disk is dropped.
    pub fn with(mut self, setting: &str, value: &str) -> Result<Disk, String> {
        let path = Path::new("/sys/dev/block").join(self.number()).join("queue").join(setting);
        self.settings.push(Setting::set(path, value)?);
        Ok(self)
    }

    /// Makes the loop device bypass the image's page cache, like a real disk (`--direct-io` in
    /// losetup(8)).
    pub fn without_cache(self) -> Result<Disk, String> {
        let node = Path::new("/dev").join(self.name());
        fixtures::run("losetup", &["--direct-io=on".as_ref(), node.as_os_str()])?;
        Ok(self)
    }

    /// Makes the kernel believe that the device's cache requires no flushes.
    pub fn without_flushes(self) -> Result<Disk, String> {
        self.with("write_cache", "write through")
    }

    /// Returns the kernel's name for the device.
    pub fn name(&self) -> String {
        let folder = Path::new("/sys/dev/block").join(self.number());
        let folder = folder.canonicalize().expect("the kernel has a folder of each device");
        folder.file_name().expect("a device has a name").to_string_lossy().into_owned()
    }

    pub fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// Returns the device number in the form that cgroups use, `MAJOR:MINOR`.
    pub fn number(&self) -> String {
        let device = fs::metadata(self.path()).expect("it is mounted").dev();
        format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
    }
}

/// Returns the command `wrote run` for jobs with files in the folder. Each word of `more` is a
/// further argument.
pub fn jobs(folder: &Path, text: &str, more: &str) -> Command {
    let path = folder.join("jobs.fio");
    fs::write(&path, text).expect("a job file");
    let mut command = wrote(&["run"]);
    command.arg(path).arg("--directory").arg(folder).args(["--format", "json"]);
    command.args(more.split_whitespace());
    command
}

/// Returns the result of `wrote bench` in the folder. Each word of `more` is a further argument.
pub fn bench(folder: &Path, more: &str) -> Document {
    document(&finish(crate::support::bench(folder, more).args(["--format", "json"])))
}

/// Returns the result of the command that [`jobs`] returns.
pub fn run(folder: &Path, text: &str, more: &str) -> Document {
    document(&finish(&mut jobs(folder, text, more)))
}

/// Returns the first finding with this id; `None` if there is none.
pub fn found<'a>(document: &'a Document, id: &str) -> Option<&'a Finding> {
    document.findings.iter().find(|finding| finding.id == id)
}

/// Returns the finding with this id, after asserting that it names exactly these rows.
pub fn said<'a>(document: &'a Document, id: &str, rows: &[&str]) -> &'a Finding {
    let finding = of(document, id);
    assert_eq!(finding.evidence["rows"], serde_json::json!(rows), "{finding:?}");
    finding
}

/// Returns the finding with this id, which must exist.
pub fn of<'a>(document: &'a Document, id: &str) -> &'a Finding {
    found(document, id)
        .unwrap_or_else(|| panic!("no {id}: {:?} of {:?}", document.findings, document.scenarios))
}

/// Asserts that there is no finding with this id.
pub fn silent(document: &Document, id: &str) {
    assert!(found(document, id).is_none(), "{:?}", found(document, id));
}
