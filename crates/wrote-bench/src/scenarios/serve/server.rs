//! The server under load: a child of this program, or an external one.

use crate::child::{Group, Keeper};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use wrote_result::Error;

/// The time for a server to start listening, or to make everything durable and stop.
const START: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(5);

/// A server started by this run, killed on drop.
pub(super) struct Server {
    group: Group,
    address: SocketAddr,
}

impl Server {
    /// Starts `program serve FOLDER --listen URL` and returns when it listens.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] with the server's last output.
    pub(super) fn start(program: &Path, folder: &Path, listen: &str) -> Result<Server, Error> {
        let mut command = Command::new(program);
        command.arg("serve").arg(folder).args(["--listen", listen]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut group = Group::start(&mut command, Keeper::start().ok())
            .map_err(|error| Error::Failed(format!("{}: {error}", program.display())))?;
        let stderr = group.child().stderr.take().expect("it is a pipe");
        let (sender, receiver) = flume::bounded(1);
        thread::spawn(move || {
            // Keeps reading, because a full pipe would block the server.
            let mut stderr = BufReader::new(stderr);
            let _ = sender.send(listening(&mut stderr));
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
        let said =
            receiver.recv_timeout(START).unwrap_or_else(|_| Err("it says no address".into()));
        let address = said.map_err(|said| Error::Failed(format!("the server: {said}")))?;
        Ok(Server { group, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn pid(&self) -> u32 {
        self.group.id()
    }

    /// Stops the server, which first makes everything that arrived durable.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if it fails or does not end.
    pub(super) fn stop(mut self) -> Result<(), Error> {
        let failed = |what: String| Error::Failed(format!("the server: {what}"));
        self.group.ask_to_end().map_err(|error| failed(format!("kill: {error}")))?;
        let asked = Instant::now();
        while !self.group.leader_ended().map_err(|error| failed(format!("wait: {error}")))? {
            if asked.elapsed() > END {
                return Err(failed(format!("has not ended {} s after SIGTERM", END.as_secs())));
            }
            thread::sleep(LOOK);
        }
        match self.group.end().map_err(|error| failed(format!("wait: {error}")))? {
            status if status.success() => Ok(()),
            status => Err(failed(format!("ended: {status}"))),
        }
    }
}

/// Returns the address in the first line that ends with a URL; else the last line as the error.
fn listening(stderr: &mut BufReader<ChildStderr>) -> Result<SocketAddr, String> {
    let mut last = "it ended without printing an address".to_owned();
    for line in stderr.lines() {
        let Ok(line) = line else { break };
        if let Some(address) = address_of(&line) {
            return Ok(address);
        }
        last = line;
    }
    Err(last)
}

fn address_of(line: &str) -> Option<SocketAddr> {
    let (_, behind) = line.split_ascii_whitespace().last()?.split_once("://")?;
    behind.split(['?', '/']).next()?.parse().ok()
}

/// Resolves `HOST:PORT`.
pub(super) fn resolve(host: &str) -> Result<SocketAddr, Error> {
    let found = host.to_socket_addrs().map_err(|error| error.to_string());
    let first = found.and_then(|mut all| all.next().ok_or_else(|| "no such address".into()));
    first.map_err(|error| Error::Failed(format!("--server-url: {host}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_ends_with_a_url_has_the_address() {
        let of = |line| address_of(line).map(|address| address.to_string());
        assert_eq!(
            of("wrote: lines, no answers: tcp://127.0.0.1:41?frame=nul").unwrap(),
            "127.0.0.1:41"
        );
        assert_eq!(of("x http://[::1]:8080/").unwrap(), "[::1]:8080");
        assert_eq!(of("error: tcp://127.0.0.1:1 is taken"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_server_that_does_not_start_is_told_in_its_last_words() {
        let folder = fixtures::folder();
        let start = |program: &str| {
            let started = Server::start(Path::new(program), folder.path(), "tcp://127.0.0.1:0");
            started.err().expect("it can't start").to_string()
        };
        assert!(start("/no/such/program").starts_with("/no/such/program: "));
        assert_eq!(start("/bin/false"), "the server: it ended without printing an address");
        assert!(start("/bin/cat").contains("serve"), "{}", start("/bin/cat"));
    }
}
