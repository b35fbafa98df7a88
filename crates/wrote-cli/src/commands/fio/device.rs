//! The block devices that jobs may write to. The user must name them, and they must be empty.

use rustix::fs::{Mode, OFlags, open};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use wrote_jobs::spec::JobSpec;
use wrote_result::Error;

/// The exit code of blkid(8) if it finds no file system, partition table or other content.
const NOTHING_FOUND: i32 = 2;

/// Checks the devices that jobs write to, and returns whether there are any. Refuses a device that
/// is not in `allowed` or not empty.
pub(super) fn check(specs: &[JobSpec], allowed: &[PathBuf]) -> Result<bool, Error> {
    let writes = specs.iter().filter(|spec| spec.order.rw.write);
    let mut any = false;
    for path in writes.flat_map(|spec| &spec.files.paths) {
        let kind = std::fs::metadata(path).map(|found| found.file_type());
        if !kind.is_ok_and(|kind| kind.is_block_device()) {
            continue;
        }
        let shown = path.display();
        let refuse = |what: &str| Err(Error::Usage(format!("{shown}: {what}")));
        if !allowed.contains(path) {
            return refuse(&format!(
                "is a block device; --allow-device={shown} lets jobs write to it if it holds nothing"
            ));
        }
        if let Some(what) = content(path) {
            return refuse(&what);
        }
        any = true;
    }
    Ok(any)
}

/// Returns why a device must not be written to; `None` if it may be written to.
fn content(path: &Path) -> Option<String> {
    // The kernel refuses an exclusive open if the device is mounted, held by another device, or
    // used for swap.
    if let Err(errno) = open(path, OFlags::RDONLY | OFlags::EXCL, Mode::empty()) {
        return Some(format!("is in use: {}", std::io::Error::from(errno)));
    }
    let found = Command::new("blkid").args(["-p", "-o", "export"]).arg(path).output();
    match found {
        Ok(output) if output.status.code() == Some(NOTHING_FOUND) => None,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let kinds = ["TYPE=", "PTTYPE="];
            let kind =
                kinds.iter().find_map(|key| text.lines().find_map(|line| line.strip_prefix(key)));
            Some(format!("holds data ({}); wipefs -a removes that", kind.unwrap_or("unknown")))
        }
        Err(error) => {
            Some(format!("may hold data: blkid, which would tell, does not run: {error}"))
        }
    }
}
