//! A shell that kills a process group when this process dies, even by SIGKILL.

use rustix::process::Pid;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Reports that it is ready, reads the group, and waits for the end of its input, which comes when
/// this process has ended.
const SCRIPT: &str = r#"echo; read -r group && { read -r _; kill -s KILL -- "-$group"; }"#;

/// The parent-death signal (`PR_SET_PDEATHSIG`) would reach only the child, not its descendants.
#[derive(Debug)]
pub(crate) struct Keeper {
    shell: Child,
}

impl Keeper {
    /// Starts the shell and waits until it is ready, so that its start is not part of what is
    /// measured.
    pub(crate) fn start() -> io::Result<Keeper> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = Keeper { shell: command.spawn()? };
        if let Some(mut ready) = keeper.shell.stdout.take() {
            ready.read_exact(&mut [0])?;
        }
        Ok(keeper)
    }

    /// Sends it the group. A shell that has died does nothing.
    pub(super) fn keep(&mut self, group: Pid) {
        if let Some(input) = &mut self.shell.stdin {
            let _ = writeln!(input, "{group}");
        }
    }
}

impl Drop for Keeper {
    /// Ends the shell without killing the group, whose ID may soon be reused.
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
