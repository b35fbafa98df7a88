//! The guest's machine, which is qemu with NVMe disks.

use super::results::Results;
use super::{Disk, Guest};
use crate::process::Process;
use crate::tools::failure::{Failure, Tried};
use crate::tools::run::{check_interrupted, start};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(100);

/// The CPU is emulated, because KVM may be missing and Debian's kernel may not boot on the host's
/// CPU.
const MACHINE: &str = "-nodefaults -no-reboot -display none -monitor none \
    -accel tcg,thread=multi -cpu max -smp 2 -m 1G";
/// After a panic, the kernel reboots, which makes qemu exit because of `-no-reboot`.
const PARAMETERS: &str = "console=ttyS0 panic=-1";

/// Boots `kernel` with its initial file system in the folder `folder`, and repeatedly passes the
/// results to `said` until the guest shuts down. Creates `console.log` and `results.log` in `logs`.
///
/// Fails if the guest does not boot. A failed command is only part of the results.
pub fn run(
    guest: &Guest,
    kernel: &Path,
    initramfs: &Path,
    (folder, logs): (&Path, &Path),
    mut said: impl FnMut(&Results),
) -> Result<Results, Failure> {
    let mut command = Command::new("qemu-system-x86_64");
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
    let mut machine = start_machine(guest, command, folder, logs)?;
    let begin = Instant::now();
    loop {
        let ended = machine.has_ended();
        let results = Results::read(&text(&logs.join("results.log"))?);
        said(&results);
        let late = begin.elapsed() > guest.limit;
        if ended || late {
            machine.end();
            return judge(logs, results, late.then_some(guest.limit));
        }
        check_interrupted()?;
        thread::sleep(POLL);
    }
}

fn start_machine(
    guest: &Guest,
    mut command: Command,
    folder: &Path,
    logs: &Path,
) -> Result<Process, Failure> {
    // File names are relative, because a comma would end a name for qemu.
    command.current_dir(folder).args(MACHINE.split_whitespace());
    command.args(["-append", &format!("{PARAMETERS} {}", guest.parameters)]);
    for log in ["console.log", "results.log"] {
        let path = logs.join(log);
        File::create(&path).tried(path.display())?;
        let link = folder.join(log);
        std::os::unix::fs::symlink(&path, &link).tried(link.display())?;
        command.args(["-serial", &format!("file:{log}")]);
    }
    for Disk { serial, image } in guest.disks {
        let link = folder.join(format!("{serial}.disk"));
        std::os::unix::fs::symlink(image, &link).tried(link.display())?;
        // The guest's flushes only reach the host's page cache. This is enough, because images
        // outlive the guest.
        let drive = format!("if=none,id={serial},format=raw,cache=unsafe,file={serial}.disk");
        command.args(["-drive", &drive]);
        command.args(["-device", &format!("nvme,serial={serial},drive={serial}")]);
    }
    let errors = logs.join("qemu.log");
    let errors = File::create(&errors).tried(errors.display())?;
    start(command.stdout(Stdio::null()).stderr(errors))
}

fn judge(logs: &Path, results: Results, late: Option<Duration>) -> Result<Results, Failure> {
    if results.booted.is_some() {
        return Ok(results);
    }
    let how = match late {
        Some(limit) => format!("did not boot within {} s", limit.as_secs()),
        None => "ended before it had booted".to_owned(),
    };
    let errors = text(&logs.join("qemu.log"))?;
    let console = text(&logs.join("console.log"))?;
    let last = last_lines(&(console + &errors), 8);
    let logs = logs.display();
    Err(Failure::Failed(format!("the guest {how}; all it said is in {logs}; last:\n{last}")))
}

fn text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).tried(path.display())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the last `count` lines. Leaves out everything after the message of a kernel panic, such
/// as its call trace.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let end = panic.map_or(lines.len(), |line| line + 1);
    lines[end.saturating_sub(count)..end].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_without_empty_ones() {
        assert_eq!(last_lines("a\r\n\nb\nc\n\n", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
        assert_eq!(
            last_lines("a\nb\nKernel panic: no init\nCall Trace:\n", 2),
            "b\nKernel panic: no init"
        );
    }

    #[test]
    fn a_guest_that_did_not_boot_is_told_with_its_last_words() {
        let logs = tempfile::tempdir().expect("a temporary folder");
        for (log, text) in
            [("console.log", "BIOS\nmount: no such device\n"), ("qemu.log", "qemu: bye\n")]
        {
            std::fs::write(logs.path().join(log), text).expect("written");
        }
        let failure = judge(logs.path(), Results::default(), None).expect_err("not booted");
        let message = failure.to_string();
        assert!(message.starts_with("the guest ended before it had booted"), "{message}");
        assert!(message.ends_with("last:\nBIOS\nmount: no such device\nqemu: bye"), "{message}");
        assert!(message.contains(&logs.path().display().to_string()), "{message}");
    }
}
