//! `dd`, where it is installed: zeros from `/dev/zero` into a file.

use super::DD_BS_BYTES;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use wrote_machine::peak_memory;
use wrote_result::{Error, Stop};

/// How often it is looked whether a dd is over: its time is long by no more than this.
const TICK: Duration = Duration::from_millis(1);

/// Writes `size_bytes` by a dd of its own process, and gives the peak of its memory, where one look
/// at it at least came in time. When the run is to end early the dd is killed.
pub(super) fn write(
    output: &Path,
    size_bytes: u64,
    direct: bool,
    stop: &Stop,
) -> Result<Option<u64>, Error> {
    let failed = |error: io::Error| Error::Failed(format!("dd: {error}"));
    let mut child = Running(command(output, size_bytes, direct).spawn().map_err(failed)?);
    // Its peak only rises, so that the last look is the one that counts.
    let mut peak_bytes = None;
    loop {
        peak_bytes = peak_memory::bytes_of(child.0.id()).or(peak_bytes);
        if child.0.try_wait().map_err(failed)?.is_some() {
            break;
        }
        stop.check()?;
        std::thread::sleep(TICK);
    }
    match complaint(&child.output().map_err(failed)?) {
        None => Ok(peak_bytes),
        Some(because) => Err(Error::Failed(because)),
    }
}

/// Why dd can't write so; it writes one block to `output`, which must not exist.
pub(super) fn why_not(output: &Path, direct: bool) -> Option<String> {
    let result = command(output, DD_BS_BYTES, direct).output();
    let _ = std::fs::remove_file(output);
    match result {
        Ok(ended) => complaint(&ended),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("dd is not installed".into()),
        Err(error) => Some(format!("dd: {error}")),
    }
}

fn command(output: &Path, size_bytes: u64, direct: bool) -> Command {
    let mut of = std::ffi::OsString::from("of=");
    of.push(output);
    let mut command = Command::new("dd");
    command
        .args(["if=/dev/zero", &format!("bs={DD_BS_BYTES}")])
        .arg(format!("count={}", size_bytes / DD_BS_BYTES))
        .arg(if direct { "oflag=direct" } else { "conv=fdatasync" })
        .arg(of)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// The last line of a dd that failed.
fn complaint(ended: &Output) -> Option<String> {
    if ended.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    // The lines on what was copied end it also where it failed.
    let because = said.lines().find(|line| line.starts_with("dd: "));
    Some(because.map_or_else(|| format!("dd: {}", ended.status), str::to_owned))
}

/// A dd that does not outlive its run.
struct Running(Child);

impl Running {
    /// The output of a process that has ended.
    fn output(&mut self) -> io::Result<Output> {
        let mut stderr = Vec::new();
        if let Some(mut pipe) = self.0.stderr.take() {
            io::Read::read_to_end(&mut pipe, &mut stderr)?;
        }
        Ok(Output { status: self.0.wait()?, stdout: Vec::new(), stderr })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Of one that was waited for both do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn ended(code: i32, stderr: &str) -> Output {
        let status = ExitStatus::from_raw(code << 8);
        Output { status, stdout: Vec::new(), stderr: stderr.into() }
    }

    #[test]
    fn a_dd_that_failed_is_quoted_and_one_that_ended_well_is_not() {
        let said = "dd: failed to open 'x': Invalid argument\n0+0 records in\n";
        assert_eq!(
            complaint(&ended(1, said)).as_deref(),
            Some("dd: failed to open 'x': Invalid argument")
        );
        assert_eq!(complaint(&ended(0, "1+0 records in\n")), None);
        assert_eq!(complaint(&ended(2, "")).as_deref(), Some("dd: exit status: 2"));
    }

    #[test]
    fn a_dd_that_cannot_write_says_why_and_is_no_result() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/file");
        // Where it is not installed that is the reason.
        let because = why_not(&missing, false).unwrap();
        assert!(because.starts_with("dd"), "{because}");
        let error = write(&missing, DD_BS_BYTES, false, &Stop::new()).unwrap_err();
        assert!(matches!(error, Error::Failed(_)), "{error}");
    }

    #[test]
    fn a_dd_is_ended_when_the_run_is() {
        let folder = tempfile::tempdir().unwrap();
        if why_not(&folder.path().join("probe"), false).is_some() {
            return fixtures::skip("a_dd_is_ended_when_the_run_is", "dd is not installed");
        }
        let stop = Stop::new();
        stop.request();
        let output = folder.path().join("file");
        let ended = write(&output, 1 << 30, false, &stop);
        assert!(matches!(ended, Err(Error::Interrupted)));
        assert!(std::fs::metadata(&output).map_or(0, |file| file.len()) < 1 << 30);
    }
}
