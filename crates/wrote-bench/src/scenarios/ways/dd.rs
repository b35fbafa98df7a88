//! Runs `dd`, if it is installed: it copies zeros from `/dev/zero` into a file. The module is
//! separate because no other method uses another program.

use super::DD_BS_BYTES;
use crate::child::{Limits, supervise};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wrote_jobs::machine::usage;
use wrote_result::{Error, Stop};

/// The maximum number of bytes of dd's messages to keep.
const MESSAGES_BYTES: usize = 16 << 10;

/// Writes `size_bytes` with dd, and returns dd's peak memory if it was read in time. If a stop is
/// requested, dd is killed.
pub(super) fn write(
    output: &Path,
    size_bytes: u64,
    direct: bool,
    stop: &Stop,
) -> Result<Option<u64>, Error> {
    let limits = Limits {
        timeout: Duration::MAX,
        stdout_bytes_max: 0,
        stderr_bytes_max: MESSAGES_BYTES,
        // The start of the keeper's shell would be part of the measured time.
        is_kept: false,
    };
    // The peak never falls, so the last reading is the highest.
    let mut peak_bytes = None;
    let ended = supervise(&mut command(output, size_bytes, direct), limits, stop, &mut |pid| {
        peak_bytes = usage::peak_memory_bytes_of(pid).or(peak_bytes);
    })?;
    match ended.status.failure().map(|failure| complaint(&failure, &ended.stderr)) {
        None => Ok(peak_bytes),
        Some(because) => Err(Error::Failed(because)),
    }
}

/// Returns the reason why dd can't write with these options; `None` if it can. It writes one block
/// to `output`, which must not exist, and removes it.
pub(super) fn why_not(output: &Path, direct: bool) -> Option<String> {
    let result = command(output, DD_BS_BYTES, direct).output();
    let _ = std::fs::remove_file(output);
    match result {
        Ok(ended) if ended.status.success() => None,
        Ok(ended) => Some(complaint(&format!("failed: {}", ended.status), &ended.stderr)),
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
        .stdin(Stdio::null());
    command
}

/// Returns the message of a dd that failed, or `failure` if it printed none.
fn complaint(failure: &str, stderr: &[u8]) -> String {
    let said = String::from_utf8_lossy(stderr);
    // Statistics on the copy follow even after a failure.
    let because = said.lines().find(|line| line.starts_with("dd: "));
    because.map_or_else(|| format!("dd {failure}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dd_that_failed_is_quoted_where_it_says_why() {
        let said = b"dd: failed to open 'x': Invalid argument\n0+0 records in\n";
        let quoted = complaint("ended with exit code 1", said);
        assert_eq!(quoted, "dd: failed to open 'x': Invalid argument");
        assert_eq!(complaint("ended with exit code 2", b""), "dd ended with exit code 2");
    }

    #[test]
    fn a_dd_that_cannot_write_says_why_and_is_no_result() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/file");
        // If dd is not installed, the message says so.
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
