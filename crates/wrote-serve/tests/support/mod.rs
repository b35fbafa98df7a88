//! A server as the tests run it, and its log as they read it.

#![allow(dead_code, reason = "each program of tests uses a part of this")]

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wrote::LogReader;
use wrote_serve::{Config, Error, Figures, Handle, Server, Socket};

/// The longest wait. On any machine, no wait takes a tenth of it.
const LIMIT: Duration = Duration::from_secs(120);

/// A server on a thread, with one log in a folder of its own.
#[derive(Debug)]
pub struct Served {
    folder: TempDir,
    handle: Handle,
    sockets: Vec<Socket>,
    thread: JoinHandle<Result<(), Error>>,
}

impl Served {
    /// Starts a server with these listeners.
    pub fn start(urls: &[&str]) -> Served {
        Served::with(urls, |_| ())
    }

    /// Starts a server with these listeners; `change` changes its configuration.
    pub fn with(urls: &[&str], change: impl FnOnce(&mut Config)) -> Served {
        Served::start_in(fixtures::folder(), urls, change, |_, _| ())
    }

    /// Starts a server with these listeners, which serves once `before` has returned.
    pub fn after(urls: &[&str], before: impl FnOnce(&[Socket], &Handle)) -> Served {
        Served::start_in(fixtures::folder(), urls, |_| (), before)
    }

    fn start_in(
        folder: TempDir,
        urls: &[&str],
        change: impl FnOnce(&mut Config),
        before: impl FnOnce(&[Socket], &Handle),
    ) -> Served {
        let server = Server::start(config(folder.path(), urls, change)).expect("the server starts");
        let handle = server.handle();
        let sockets: Vec<_> = server.listeners().into_iter().map(|listen| listen.socket).collect();
        before(&sockets, &handle);
        let thread = thread::spawn(|| server.run());
        Served { folder, handle, sockets, thread }
    }

    /// Ends the server and starts it again, on the same port and log.
    pub fn restart(self, scheme: &str) -> Served {
        let url = format!("{scheme}://{}", self.address());
        let folder = self.end();
        Served::start_in(folder, &[&url], |_| (), |_, _| ())
    }

    /// Returns the address of the first listener.
    pub fn address(&self) -> &str {
        address(&self.sockets[0])
    }

    /// Returns the port of the first listener.
    pub fn port(&self) -> &str {
        self.address().rsplit_once(':').expect("an address has a port").1
    }

    pub fn figures(&self) -> Figures {
        self.handle.figures()
    }

    /// Waits until the figures are as `are` wants them.
    #[track_caller]
    pub fn until(&self, are: impl Fn(&Figures) -> bool) {
        let begun = Instant::now();
        while !are(&self.figures()) {
            assert!(begun.elapsed() < LIMIT, "waited in vain: {:?}", self.figures());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the log has what `has` wants.
    #[track_caller]
    pub fn until_log(&self, has: impl Fn(&[Vec<u8>]) -> bool) {
        let begun = Instant::now();
        while !has(&records(self.folder.path())) {
            assert!(begun.elapsed() < LIMIT, "waited in vain: {:?}", self.figures());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server as its operator would, and returns the messages in its log.
    pub fn stop(self) -> Vec<Vec<u8>> {
        let folder = self.end();
        records(folder.path())
    }

    fn end(self) -> TempDir {
        self.handle.stop();
        self.thread.join().expect("no panic").expect("the server ends well");
        self.folder
    }
}

/// Returns a host and port.
pub fn address(socket: &Socket) -> &str {
    match socket {
        Socket::Tcp(address) | Socket::Udp(address) => address,
        other => panic!("{other:?} has no address"),
    }
}

/// Returns the configuration of a server with one log below `folder`.
pub fn config(folder: &Path, urls: &[&str], change: impl FnOnce(&mut Config)) -> Config {
    let listeners = urls.iter().map(|url| url.parse().expect("a URL")).collect();
    let mut config = Config::of_log(&folder.join("log"), listeners);
    config.grace = LIMIT;
    change(&mut config);
    config
}

fn records(folder: &Path) -> Vec<Vec<u8>> {
    let mut reader = LogReader::open(folder.join("log"), 0).expect("the log opens");
    let mut records = Vec::new();
    loop {
        let mut bytes = Vec::new();
        match reader.read_into(&mut bytes).expect("the log is whole") {
            Some(_) => records.push(bytes),
            None => return records,
        }
    }
}

/// Returns a path for a socket, below 108 bytes wherever the build is.
pub fn socket_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    (folder, path)
}
