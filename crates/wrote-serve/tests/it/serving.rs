//! A server on a thread of the test, with its log and its clients.

#![allow(dead_code, reason = "each program of tests uses a part of this")]

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wrote::{Log, LogReader, SyncPolicy};
use wrote_serve::{Config, Error, Figures, Handle, Listen, LogConfig, Server, Socket};

/// The time limit for anything that a test waits for.
const HANG: Duration = Duration::from_secs(120);

/// A server that listens on one socket, with its log in a temporary folder.
pub struct Serving {
    pub listen: Listen,
    /// The server's other listeners.
    pub others: Vec<Listen>,
    pub folder: PathBuf,
    metrics: Option<SocketAddr>,
    pub config: Config,
    handle: Handle,
    thread: Option<JoinHandle<Result<(), Error>>>,
    parent: Arc<TempDir>,
}

impl Serving {
    /// Starts a server at `url` with default settings that `change` may modify. Its log has small
    /// buffers, so that they are often full.
    pub fn start(url: &str, change: impl FnOnce(&mut Config)) -> Serving {
        Serving::start_after(url, change, |_, _| ())
    }

    /// Starts an HTTP server with these settings.
    pub fn http() -> Serving {
        Serving::start("http://127.0.0.1:0", |_| ())
    }

    /// Starts a server that opens and reopens its log with `open`.
    pub fn start_with(
        url: &str,
        change: impl FnOnce(&mut Config),
        open: impl Fn(&LogConfig) -> Result<Log, wrote::Error> + Send + Sync + 'static,
    ) -> Serving {
        let (config, parent) = Serving::configure(url, change);
        let server = Server::start_with(config.clone(), open).unwrap();
        Serving::run(server, config, parent, |_, _| ())
    }

    /// Starts a server that already listens while `before` runs, but serves clients only
    /// afterwards.
    pub fn start_after(
        url: &str,
        change: impl FnOnce(&mut Config),
        before: impl FnOnce(&Listen, &Handle),
    ) -> Serving {
        let (config, parent) = Serving::configure(url, change);
        Serving::run(Server::start(config.clone()).unwrap(), config, parent, before)
    }

    fn configure(url: &str, change: impl FnOnce(&mut Config)) -> (Config, Arc<TempDir>) {
        let parent = Arc::new(fixtures::folder());
        let folder = parent.path().join("log");
        let mut config = Config::of_log(&folder, vec![url.parse().unwrap()]);
        config.logs[0].options =
            Log::options().sync(SyncPolicy::No).buffers(3).segment_bytes(1 << 20);
        config.logs[0].buffer_bytes = Some(16 << 10);
        config.limits.message_bytes = 8 << 10;
        change(&mut config);
        (config, parent)
    }

    fn run(
        server: Server,
        config: Config,
        parent: Arc<TempDir>,
        before: impl FnOnce(&Listen, &Handle),
    ) -> Serving {
        let folder = config.logs[0].folder.clone();
        let (mut others, handle) = (server.listeners(), server.handle());
        let listen = others.remove(0);
        let metrics = server.metrics_address();
        before(&listen, &handle);
        let thread = Some(std::thread::spawn(|| server.run()));
        Serving { listen, others, folder, metrics, config, handle, thread, parent }
    }

    /// Drains the server, and starts it again on the same port and log.
    pub fn restart(self) -> Serving {
        let (mut config, parent) = (self.config.clone(), self.parent.clone());
        config.logs[0].listeners = vec![self.listen.clone()];
        self.stop();
        Serving::run(Server::start(config.clone()).unwrap(), config, parent, |_, _| ())
    }

    /// Returns the server's host and port.
    pub fn address(&self) -> &str {
        address(&self.listen)
    }

    /// Returns the server's port.
    pub fn port(&self) -> &str {
        self.address().rsplit_once(':').unwrap().1
    }

    /// Returns the address of the operators' listener.
    pub fn metrics_address(&self) -> String {
        self.metrics.expect("it is configured").to_string()
    }

    /// Connects to the server. Reads have a time limit.
    pub fn connect(&self) -> TcpStream {
        connect(&self.listen)
    }

    pub fn figures(&self) -> Figures {
        self.handle.figures()
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns the number of refusals for each reason.
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        self.handle.refused()
    }

    /// Returns each log's name, and its written and durable sequences.
    pub fn logs(&self) -> Vec<(String, u64, u64)> {
        self.handle.logs()
    }

    /// Makes the server read its files again.
    pub fn reload(&self) -> Result<Vec<String>, Error> {
        self.handle.reload(&self.config)
    }

    /// Waits until the server's figures satisfy `wanted`.
    pub fn wait_until(&self, wanted: impl Fn(&Figures) -> bool) {
        let began = Instant::now();
        while !wanted(&self.figures()) {
            assert!(began.elapsed() < HANG, "it stays at {:?}", self.figures());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the written records of the log.
    pub fn records(&self) -> Vec<Vec<u8>> {
        records(&self.folder)
    }

    /// Drains the server, shuts it down, and returns the records of its log.
    pub fn stop(mut self) -> Vec<Vec<u8>> {
        self.end().unwrap();
        records(&self.folder)
    }

    /// Drains the server, then shuts it down.
    pub fn end(&mut self) -> Result<(), Error> {
        self.handle.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // If the test has failed, its own message is enough.
            let _ = thread.join();
        }
    }
}

/// Connects to a listener. Reads have a time limit.
pub fn connect(listen: &Listen) -> TcpStream {
    let stream = TcpStream::connect(address(listen)).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream
}

/// Connects a client that never reads and has a small receive buffer.
pub fn deaf(serving: &Serving) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let server: SocketAddr = serving.address().parse().unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

pub fn address(listen: &Listen) -> &str {
    match &listen.socket {
        Socket::Tcp(address) | Socket::Udp(address) => address,
        other => panic!("{other:?} has no address"),
    }
}

/// Writes a file with tokens. Returns its folder and its path.
pub fn tokens(text: &str) -> (TempDir, PathBuf) {
    let folder = fixtures::folder();
    let path = folder.path().join("tokens");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// Returns a short path for a socket, because the kernel's limit is 107 bytes and the build folder
/// may have a longer path.
pub fn socket_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    (folder, path)
}

fn records(folder: &Path) -> Vec<Vec<u8>> {
    LogReader::open(folder, 0).unwrap().map(|record| record.unwrap().bytes).collect()
}
