//! `redis-server` with `appendfsync always`, over a Unix socket. A list is the cheapest structure.

use super::{append_gathered, check};
use redis::{Client, Connection, ConnectionAddr, IntoConnectionInfo};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use trial::Result;
use trial::append::{Messages, Timing};
use trial::clock::Clock;
use trial::outcome::Outcome;
use trial::place::Place;

const PROGRAM: &str = "redis-server";
const SOCKET: &str = "socket";
const LIST: &str = "messages";
const START_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// The server listens on a Unix socket only, keeps its files in its folder, and never rewrites its
/// log, which would be more work.
const SETTINGS: [[&str; 2]; 7] = [
    ["--port", "0"],
    ["--unixsocket", SOCKET],
    ["--dir", "."],
    ["--save", ""],
    ["--appendonly", "yes"],
    ["--appendfsync", "always"],
    ["--auto-aof-rewrite-percentage", "0"],
];

/// A server that this program started; it ends when dropped.
struct Server {
    process: Child,
    client: Client,
    clock: Clock,
}

impl Server {
    fn start(folder: &Place) -> Result<Server> {
        let clock = Clock::of_children()?;
        let socket = std::path::absolute(folder.path().join(SOCKET))?;
        let info = ConnectionAddr::Unix(socket).into_connection_info()?;
        let client = Client::open(info)?;
        let mut command = Command::new(PROGRAM);
        command.args(SETTINGS.as_flattened()).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| format!("{PROGRAM}: {error}"))?;
        let mut server = Server { process, client, clock };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let end = Instant::now() + START_LIMIT;
        loop {
            let Err(error) = self.client.get_connection() else { return Ok(()) };
            if let Some(status) = self.process.try_wait()? {
                return Err(format!("{PROGRAM} ended: {status}").into());
            }
            if Instant::now() > end {
                return Err(format!("{PROGRAM} does not answer: {error}").into());
            }
            thread::sleep(POLL);
        }
    }

    fn connection(&self) -> Result<Connection> {
        Ok(self.client.get_connection()?)
    }

    /// Ends the server, and adds its CPU time and memory from its start on to `appended`.
    fn end(self, appended: Outcome) -> Result<Outcome> {
        let stored = redis::cmd("LLEN").arg(LIST).query(&mut self.connection()?)?;
        let mut appended = check(PROGRAM, stored, appended)?;
        let clock = self.clock;
        drop(self);
        let server = clock.stop(0, 0)?;
        appended.cpu_s += server.cpu_s;
        appended.memory_bytes += server.memory_bytes;
        Ok(appended)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether the server is installed.
#[cfg(test)]
pub fn is_installed() -> bool {
    let mut command = Command::new(PROGRAM);
    command.arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// Opens a connection for each producer, and sends a command for each message.
pub fn each(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let server = Server::start(&folder)?;
    let step = |mut connection: Connection| {
        move |message: &[u8]| {
            Ok(redis::cmd("RPUSH").arg(LIST).arg(message).exec(&mut connection)?)
        }
    };
    let steps = (0..messages.work.producers).map(|_| server.connection().map(step));
    let steps = steps.collect::<Result<Vec<_>>>()?;
    server.end(messages.append(steps, Timing::Each, || Ok(()))?)
}

/// Sends a pipeline of all waiting messages.
pub fn gathered(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let server = Server::start(&folder)?;
    let mut connection = server.connection()?;
    let commit = move |messages: &[Vec<u8>]| {
        let mut pipeline = redis::pipe();
        for message in messages {
            pipeline.cmd("RPUSH").arg(LIST).arg(message.as_slice()).ignore();
        }
        Ok(pipeline.exec(&mut connection)?)
    };
    server.end(append_gathered(messages, commit)?)
}
