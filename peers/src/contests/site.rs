//! The folder, the programs and the settings that all rows use.

use super::job::{Job, Size};
use super::outcome::Outcome;
use super::rows::{Need, Row, Words};
use lab::tools::clients;
use lab::tools::disks::DiskKind;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::repository::{cargo, root, target};
use lab::tools::run::{Finished, HANG, Show, run};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20 * 60);
const MANIFEST: &str = "peers/Cargo.toml";
/// The folder, the programs and the settings of a row.
#[derive(Debug)]
pub struct Site {
    /// The folder to write in, in which every command runs.
    pub folder: PathBuf,
    /// The `PATH` of the commands.
    pub path: OsString,
    /// The number of rounds.
    pub rounds: u32,
    /// The length of the streams, if the caller chose one.
    pub size: Option<Size>,
    /// The kind of the disk that contains the folder.
    pub disk: DiskKind,
    /// Whether the device that contains the folder has poll queues.
    pub has_poll_queues: bool,
}

impl Site {
    /// Runs a shell line in the folder.
    pub fn run(&self, line: &str) -> Result<Finished, Failure> {
        self.command(&["sh", "-c", line])?.success(line)
    }

    /// Runs a shell line, and measures its time, CPU time and memory with `trial run`.
    pub fn measure(&self, line: &str) -> Result<(Finished, Outcome), Failure> {
        let mut finished = self.command(&["trial", "run", "--", "sh", "-c", line])?;
        // The command's own message explains a failure better than the line of `trial` that follows
        // it.
        if let Some((words, _)) = finished.stderr.split_once("trial: sh: ") {
            finished.stderr.truncate(words.len());
        }
        let finished = finished.success(line)?;
        let outcome = Outcome::of_line(&finished.stdout, line)?;
        Ok((finished, outcome))
    }

    /// Writes a job file into the folder.
    pub fn write(&self, job: &Job) -> Result<(), Failure> {
        let path = self.folder.join(job.file_name());
        std::fs::write(&path, job.text()).tried(path.display())
    }

    /// Returns the texts that every row may use, including the length of its streams.
    pub fn words(&self, size: Size) -> Words {
        let is_polled = self.has_poll_queues;
        let pin = pin().unwrap_or_default();
        let words = [
            ("bytes", size.bytes.to_string()),
            ("size", size.text),
            ("hipri", u8::from(is_polled).to_string()),
            ("polling", if is_polled { ", polled" } else { "" }.to_owned()),
            ("pin", pin),
            ("peers", root().join("peers").display().to_string()),
        ];
        words.map(|(name, word)| (name.to_owned(), word)).into()
    }

    fn command(&self, words: &[&str]) -> Result<Finished, Failure> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.folder);
        // The wording of dd's output depends on the locale.
        command.env("PATH", &self.path).env("LC_ALL", "C");
        run(&mut command, LIMIT, Show::Quiet)
    }
}

/// Returns the command prefix that pins a program to one processor.
pub fn pin() -> Result<String, Failure> {
    let allowed = sched_getaffinity(None).tried("sched_getaffinity")?;
    Ok(format!("taskset -c {} ", choice(&allowed)))
}

/// Returns the number of the first allowed processor except 0, which handles most interrupts; 0 if
/// no other is allowed.
fn choice(allowed: &CpuSet) -> usize {
    let all = || (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    all().find(|&cpu| cpu > 0).or_else(|| all().next()).unwrap_or(0)
}

/// Installs the packages that a row needs. Everything else is provided by [`build`] before the
/// first row.
pub fn provide(need: Need) -> Result<(), Failure> {
    match need {
        Need::Programs => packages::install(&["etcd", "mariadbd", "pgbench", "sysbench"]),
        Need::Rivals | Need::Servers => Ok(()),
    }
}

/// Builds the programs that `rows` need, and returns a `PATH` that finds them first.
pub fn build(rows: &[&Row]) -> Result<OsString, Failure> {
    let needed = |need| rows.iter().any(|row| row.needs(need));
    if needed(Need::Servers) {
        clients::servers()?;
    }
    release_wrote()?;
    build_own("trial")?;
    let own = own_target().join("release");
    if needed(Need::Rivals) {
        build_own("rivals")?;
    }
    let mut folders = Vec::new();
    for folder in [target().join("release"), own] {
        folders.push(std::path::absolute(&folder).tried(folder.display())?);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path))).tried("PATH")
}

/// Builds the command with its server as a release, and returns its path.
pub fn release_wrote() -> Result<PathBuf, Failure> {
    let mut command = cargo(&["build", "--release", "-p", "wrote-cli", "--features", "serve"]);
    // This is cargo's default for `lto`, which applies to programs that use the library.
    command.args(["--config", "profile.release.lto=false"]);
    run(&mut command, HANG, Show::Live)?.success("the build of the release")?;
    Ok(target().join("release/wrote"))
}

/// Returns this workspace's target folder, even if the caller chose another one for everything
/// else.
fn own_target() -> PathBuf {
    root().join("peers/target")
}

/// Builds a package of this workspace as a release.
fn build_own(package: &str) -> Result<(), Failure> {
    let words = ["build", "--release", "--locked", "--manifest-path", MANIFEST, "-p", package];
    let mut command = cargo(&words);
    command.env("CARGO_TARGET_DIR", own_target());
    let what = format!("the build of {package}");
    run(&mut command, HANG, Show::Live)?.success(&what).map(drop)
}

/// Returns whether reads and writes in `folder` can be polled: the `queue/io_poll` of its device is
/// 1 (`Documentation/ABI/stable/sysfs-block`). A file system without its own device can't be
/// polled.
pub fn has_poll_queues(folder: &Path) -> bool {
    let Ok(metadata) = folder.metadata() else { return false };
    let device = metadata.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    polls(&Path::new("/sys/dev/block").join(number))
}

/// Returns the setting of an entry of `/sys/dev/block` or, for a partition, of the whole device.
fn polls(device: &Path) -> bool {
    let read = |queue| std::fs::read_to_string(device.join(queue).join("io_poll"));
    read("queue").or_else(|_| read("../queue")).is_ok_and(|text| text.trim() == "1")
}

/// Scripts that replace all programs, for tests of the rows.
#[cfg(test)]
pub mod fake {
    use super::{DiskKind, Site};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Creates a site with fake programs. Each script appends its name and arguments to the file
    /// `calls`. wrote takes half a second, and a peer one second. A job has `operations` operations
    /// of `operation_bytes` each. `wrote copy` and its peers leave a file `copy`.
    pub fn site(folder: &Path, operations: u64, operation_bytes: u64) -> Site {
        let bytes = operations * operation_bytes;
        let job = |runtime_ms: u32| {
            format!(
                "cat <<END\n{{\"jobs\": [{{\"error\": 0, \"job_runtime\": {runtime_ms}, \
                 \"usr_cpu\": 1.0, \"sys_cpu\": 1.0, \"write\": {{\"io_bytes\": {bytes}, \
                 \"runtime\": {runtime_ms}, \"total_ios\": {operations}}}}}]}}\nEND\n"
            )
        };
        let copy = format!("truncate -s {bytes} copy\n");
        let outcome = format!(
            "elapsed_s=1.0\ncase \"$*\" in *' writer '*|*' wrote '*|*'wrote copy'*|*'--by log'*) \
             elapsed_s=0.5;; esac\ncase \"$*\" in *appended*) waits=',\"latency_ns\":\
             {{\"p50\":1000000,\"p99\":3000000}}';; esac\n\
             echo '{{\"bytes\":{bytes},\"operations\":1000,\"elapsed_s\":'$elapsed_s',\
             \"cpu_s\":0.5,\"memory_bytes\":2097152,\"device_bytes\":{bytes}'$waits'}}'\n"
        );
        let trial = format!("case $1 in run) shift 2; \"$@\";; esac\n{outcome}");
        let own = "*'--format json'*) echo '{\"scenarios\": [{\"rows\": [{\"settings\": \
                   {\"fallbacks\": []}}]}]}';;";
        let wrote = format!("case \"$*\" in copy*) {copy};; {own} *)\n{};; esac\n", job(500));
        for (name, script) in [
            ("trial", trial.as_str()),
            ("rivals", &outcome),
            ("putc", &outcome),
            ("sysctl", ""),
            ("wrote", &wrote),
            ("fio", &job(1000)),
            ("cp", &copy),
            ("rsync", &copy),
            ("dd", &format!("case \"$*\" in *of=copy*) {copy};; *) exec /bin/dd \"$@\";; esac\n")),
            ("taskset", "shift 2\n\"$@\"\n"),
        ] {
            let path = folder.join(name);
            let text = format!("#!/bin/sh\necho \"{name} $*\" >> calls\n{script}");
            std::fs::write(&path, text).expect("room");
            let permissions = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, permissions).expect("our own file");
        }
        let path = std::env::var("PATH").expect("a PATH");
        Site {
            folder: folder.to_owned(),
            path: format!("{}:{path}", folder.display()).into(),
            rounds: 1,
            size: Some("4m".parse().expect("a size")),
            disk: DiskKind::Own,
            has_poll_queues: false,
        }
    }

    /// Returns the command lines that called the scripts.
    pub fn calls(site: &Site) -> Vec<String> {
        let calls = std::fs::read_to_string(site.folder.join("calls")).expect("called");
        calls.lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn a_program_may_be_run_by_another() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        let (finished, outcome) = site.measure("env -u HOME fio job.fio").expect("scripts");
        assert!(finished.stdout.contains("\"total_ios\": 1"), "{}", finished.stdout);
        assert_eq!(outcome.cpu_s, 0.5);
        assert_eq!(fake::calls(&site)[1], "fio job.fio");
    }

    #[test]
    fn a_command_that_fails_is_told_by_its_own_words() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        std::fs::write(
            folder.path().join("trial"),
            "#!/bin/sh\nshift 2\n\"$@\"\necho 'trial: sh: exit status: 3' >&2\nexit 1\n",
        )
        .expect("room");
        let failed = site.measure("echo no room >&2; exit 3").expect_err("failed");
        assert_eq!(failed.to_string(), "echo no room >&2; exit 3: exit code 1: no room");
    }

    #[test]
    fn the_c_program_writes_every_byte_and_removes_its_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        let source = root().join("peers/trial/putc.c");
        site.run(&format!("cc -Wall -Wextra -Werror -o putc {}", source.display())).expect("cc");
        let finished = site.run("putc file 100000").expect("room");
        let outcome = Outcome::of_line(&finished.stdout, "putc").expect("a line");
        assert_eq!(outcome.bytes, 100_000);
        assert!(!folder.path().join("file").exists());
        let missing = site.run("putc no/file 1").expect_err("no folder").to_string();
        let expected = "putc no/file 1: exit code 1: putc: no/file: No such file or directory";
        assert_eq!(missing, expected);
    }

    #[test]
    fn a_partition_polls_where_its_device_does() {
        let sys = tempfile::tempdir().expect("a temporary folder");
        let disk = sys.path().join("nvme0n1");
        create_dir_all(disk.join("nvme0n1p1")).expect("room");
        create_dir_all(disk.join("queue")).expect("room");
        assert!(!polls(&disk), "nothing is said");
        for (text, expected) in [("1\n", true), ("0\n", false)] {
            write(disk.join("queue/io_poll"), text).expect("room");
            assert_eq!(polls(&disk), expected);
            assert_eq!(polls(&disk.join("nvme0n1p1")), expected);
        }
    }

    #[test]
    fn the_first_processor_is_taken_only_where_it_is_the_only_one() {
        let choice = |cpus: &[usize]| {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|&cpu| set.set(cpu));
            super::choice(&set)
        };
        assert_eq!(choice(&[0, 1, 2]), 1);
        assert_eq!(choice(&[0, 5]), 5);
        assert_eq!(choice(&[0]), 0);
    }

    #[test]
    fn a_place_without_a_device_cannot_be_polled() {
        assert!(!has_poll_queues(Path::new("/proc")));
    }
}
