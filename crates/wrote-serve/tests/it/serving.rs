//! A server on a thread of the test, its log, and clients for it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tempfile::TempDir;
use wrote::{Log, LogReader, Sync};
use wrote_serve::{Config, Error, Figures, Handle, Listen, Server, Socket};

/// A server that listens on one port of loopback, with its log in a folder of its own.
pub struct Serving {
    pub listen: Listen,
    pub folder: PathBuf,
    handle: Handle,
    thread: Option<JoinHandle<Result<(), Error>>>,
    _parent: TempDir,
}

impl Serving {
    /// Starts a server at `url`, with what `change` makes of the defaults. Its log has small
    /// buffers, so that they are often full.
    pub fn start(url: &str, change: impl FnOnce(&mut Config)) -> Serving {
        let parent = fixtures::folder();
        let folder = parent.path().join("log");
        let mut config = Config::of_log(&folder, vec![url.parse().unwrap()]);
        config.logs[0].options =
            Log::options().sync(Sync::No).buffers(3).buffer_bytes(16 << 10).segment_bytes(1 << 20);
        config.limits.message_bytes = 8 << 10;
        change(&mut config);
        let folder = config.logs[0].folder.clone();
        let server = Server::start(config).unwrap();
        let (listen, handle) = (server.listeners().remove(0), server.handle());
        let thread = Some(std::thread::spawn(|| server.run()));
        Serving { listen, folder, handle, thread, _parent: parent }
    }

    /// Connects to the server.
    pub fn connect(&self) -> TcpStream {
        let Socket::Tcp(address) = &self.listen.socket else { panic!("no TCP") };
        TcpStream::connect(address).unwrap()
    }

    pub fn figures(&self) -> Figures {
        self.handle.figures()
    }

    /// Waits until the server's figures are as wanted.
    pub fn wait_until(&self, wanted: impl Fn(&Figures) -> bool) {
        while !wanted(&self.figures()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Drains the server, and returns the records of its log.
    pub fn stop(mut self) -> Vec<Vec<u8>> {
        self.handle.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
        records(&self.folder)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // A failed test has its own message.
            let _ = thread.join();
        }
    }
}

/// Returns all records of a log.
fn records(folder: &Path) -> Vec<Vec<u8>> {
    LogReader::open(folder, 0).unwrap().map(|record| record.unwrap().bytes).collect()
}
