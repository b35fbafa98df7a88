//! The verb `power-cut`: a subject that writes, its promises, and the check of its files.

use crate::process::Process;
use crate::tools::failure::{Failure, Tried};
use crate::tools::run::{Show, run, start, trouble, until};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A time limit that only a hang exceeds, both before a subject is ready and after the power loss.
const LIMIT: Duration = Duration::from_secs(5 * 60);
const POLL: Duration = Duration::from_millis(1);

/// The result of one subject.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// The number of promises in total.
    pub promises: usize,
    /// The number of promises made after the power loss.
    pub late: usize,
    /// The first refused action, and the kernel's error number.
    pub refused: (String, i32),
    /// The number of times that files were reopened before a second power loss.
    pub reopened: usize,
    /// The broken promises.
    pub faults: Vec<String>,
}

/// Returns the complete lines in the first `going` bytes, except for the first line, `ready`.
fn sure_lines(said: &str, going: usize) -> &str {
    let end = said[..going].rfind('\n').map_or(0, |newline| newline + 1);
    said[..end].split_once('\n').map_or("", |(_, after)| after)
}

/// Inserts two lines: `power-going` before the first line that is not complete in the first `going`
/// bytes, and `power-gone` before the first line that begins after `gone` bytes.
fn marked(said: &str, going: usize, gone: usize) -> String {
    let going = said[..going].rfind('\n').map_or(0, |newline| newline + 1);
    let gone = match said[..gone].ends_with('\n') {
        true => gone,
        false => said[gone..].find('\n').map_or(said.len(), |newline| gone + newline + 1),
    };
    let (sure, unsure, late) = (&said[..going], &said[going..gone], &said[gone..]);
    format!("{sure}power-going\n{unsure}power-gone\n{late}")
}

/// Compares the files in `folder` with the promises in `said`, and returns the result of each
/// subject.
pub fn check(
    program: &Path,
    names: &[&str],
    folder: &Path,
    said: &Path,
) -> Result<Vec<Seen>, Failure> {
    let mut check = Command::new(program);
    let found = run(check.args(["power-cut", "check"]).args([folder, said]), LIMIT, Show::Quiet)?
        .success("power-cut check")?;
    let mut seen: BTreeMap<String, Seen> =
        serde_json::from_str(&found.stdout).tried("power-cut check")?;
    Ok(names.iter().map(|name| seen.remove(*name).unwrap_or_default()).collect())
}

/// A running subject.
pub struct Subject<'a> {
    /// The name of the subject, as the program knows it.
    pub name: &'a str,
    process: Process,
    said: PathBuf,
    errors: PathBuf,
}

impl<'a> Subject<'a> {
    /// Starts a subject that writes in `folder`. It reports to a new file with its name in `said`,
    /// and in `marks`.
    pub fn write(
        program: &Path,
        name: &'a str,
        (folder, said): (&Path, &Path),
        seed: u64,
        marks: Option<&Path>,
    ) -> Result<Subject<'a>, Failure> {
        let mut command = Command::new(program);
        command.args(["power-cut", "write", name]).arg(folder).args(["--seed", &seed.to_string()]);
        command.args(marks.map(|_| "--marks")).args(marks);
        Subject::start(name, command, said.join(name))
    }

    /// Starts a subject that opens its files again.
    pub fn reopen(
        program: &Path,
        name: &'a str,
        (folder, said): (&Path, &Path),
    ) -> Result<Subject<'a>, Failure> {
        let mut command = Command::new(program);
        command.args(["power-cut", "reopen", name]).arg(folder);
        Subject::start(name, command, said.join(format!("{name}.again")))
    }

    /// Starts a subject whose output goes to the new file `said`.
    fn start(name: &'a str, mut command: Command, said: PathBuf) -> Result<Subject<'a>, Failure> {
        let errors = PathBuf::from(format!("{}.errors", said.display()));
        let file = |path: &Path| File::create_new(path).tried(path.display()).map(Stdio::from);
        command.stdout(file(&said)?).stderr(file(&errors)?);
        Ok(Subject { name, process: start(&mut command)?, said, errors })
    }

    /// Waits for the subject's first line.
    pub fn wait_until_ready(&mut self) -> Result<(), Failure> {
        self.wait("began to write", |subject| {
            subject.must_be_running()?;
            Ok(subject.said_bytes()? > 0)
        })
    }

    /// Returns the length of the subject's output so far.
    pub fn said_bytes(&self) -> Result<usize, Failure> {
        let said = self.said.metadata().tried(self.said.display())?;
        usize::try_from(said.len()).tried(self.said.display())
    }

    /// Marks where in the subject's output the power loss began and where it was complete.
    pub fn mark(&self, (going, gone): (usize, usize)) -> Result<(), Failure> {
        let said = std::fs::read_to_string(&self.said).tried(self.said.display())?;
        std::fs::write(&self.said, marked(&said, going, gone)).tried(self.said.display())
    }

    /// Inserts the subject's lines from before the power loss at the beginning of the file `path`,
    /// because those promises must hold, too.
    pub fn add_to(&self, path: &Path, going: usize) -> Result<(), Failure> {
        let said = std::fs::read_to_string(&self.said).tried(self.said.display())?;
        let before = std::fs::read_to_string(path).tried(path.display())?;
        let all = format!("{}{before}", sure_lines(&said, going));
        std::fs::write(path, all).tried(path.display())
    }

    /// Fails if the subject has exited while the power is still on.
    pub fn must_be_running(&mut self) -> Result<(), Failure> {
        match self.process.status().tried(self.name)? {
            None => Ok(()),
            Some(_) => Err(self.failure("ended before the cut")),
        }
    }

    /// Kills the subject and its children, and removes an incomplete last line from its output.
    pub fn kill(mut self) -> Result<(), Failure> {
        self.wait("ended by SIGKILL", |subject| Ok(subject.process.kill().is_some()))?;
        let said = std::fs::read_to_string(&self.said).tried(self.said.display())?;
        let whole = said.rfind('\n').map_or(0, |newline| newline + 1);
        std::fs::write(&self.said, &said[..whole]).tried(self.said.display())
    }

    /// Waits until the power loss has ended the subject.
    pub fn wait_until_refused(&mut self) -> Result<(), Failure> {
        self.wait("noticed the cut", |subject| {
            let status = subject.process.status().tried(subject.name)?;
            let trouble = status.and_then(trouble);
            trouble.map_or(Ok(status.is_some()), |how| Err(subject.failure(&how)))
        })
    }

    fn wait(
        &mut self,
        what: &str,
        is_over: impl Fn(&mut Self) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let over = until(LIMIT, POLL, || Ok(is_over(self)?.then_some(())))?;
        over.ok_or_else(|| self.failure(&format!("not {what} within {} s", LIMIT.as_secs())))
    }

    /// Returns a failure with the text "name: `what`: stderr".
    fn failure(&self, what: &str) -> Failure {
        let errors = std::fs::read_to_string(&self.errors).unwrap_or_default();
        Failure::Failed(format!("{}: {what}: {}", self.name, errors.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_half_printed_at_the_power_loss_is_neither_sure_nor_late() {
        let said = "ready\nsaved 1\nsaved 2\nsaved 3\n";
        let marked_1 = "ready\nsaved 1\npower-going\nsaved 2\npower-gone\nsaved 3\n";
        assert_eq!(marked(said, 14, 22), marked_1);
        assert_eq!(marked(said, 16, 17), marked_1);
        let nothing_meanwhile = "ready\nsaved 1\npower-going\npower-gone\nsaved 2\nsaved 3\n";
        assert_eq!(marked(said, 14, 14), nothing_meanwhile);
    }

    #[test]
    fn a_second_time_is_sure_of_its_whole_lines() {
        let said = "ready\nreopened 7\nreopened 9\nrefused open 5\n";
        assert_eq!(sure_lines(said, said.len()), "reopened 7\nreopened 9\nrefused open 5\n");
        assert_eq!(sure_lines(said, 20), "reopened 7\n");
        assert_eq!(sure_lines(said, 6), "");
        assert_eq!(sure_lines(said, 0), "");
    }
}
