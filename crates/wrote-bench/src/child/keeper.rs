//! A shell that ends a process group when this process dies, also by a SIGKILL.

use rustix::process::Pid;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Says that it is ready, learns the group, and reads on. Standard input ends when no process holds
/// its other end: then this process is gone.
const SCRIPT: &str = r#"echo; read -r group && { read -r _; kill -s KILL -- "-$group"; }"#;

/// A signal at the parent's death (`PR_SET_PDEATHSIG`) reaches a child alone, and not the processes
/// that the child started.
#[derive(Debug)]
pub(crate) struct Keeper {
    shell: Child,
}

impl Keeper {
    /// Starts the shell, and returns when it waits: it takes no time from what is measured.
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

    /// Tells it the group. A shell that has died keeps nothing.
    pub(super) fn keep(&mut self, group: Pid) {
        if let Some(input) = &mut self.shell.stdin {
            let _ = writeln!(input, "{group}");
        }
    }
}

impl Drop for Keeper {
    /// Ends the shell, and the group stays: its id may soon be that of another.
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
