//! Starts, runs and stops the server.

use crate::acks::Acks;
use crate::channel::{Channel, Opener};
use crate::config::access;
use crate::config::settings::{self, Settings};
use crate::config::{Config, Listen, LogConfig, Socket, holds};
use crate::doors::READS_MAX;
use crate::listen::Bound;
use crate::metrics::{self, Figures, Metrics, Totals};
use crate::operators::{Operators, Shown};
use crate::port::Port;
use crate::refusals::Reason;
use crate::sockets::Inherited;
use crate::target::Level;
use crate::workers::Workers;
use crate::{Error, files};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The interval between checks for remaining connections while the server drains.
const DRAIN_PAUSE: Duration = Duration::from_millis(5);

/// A server with open logs and bound listeners.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    workers: Workers,
    /// The sockets of [`Handle::listeners`].
    bound: Vec<Bound>,
    operators: Option<Operators>,
    grace: Duration,
    handle: Handle,
}

/// Observes and stops a server from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    totals: Arc<Totals>,
    channels: Vec<Arc<Channel>>,
    stop: watch::Sender<bool>,
    settings: watch::Sender<Settings>,
    listeners: Arc<[Listener]>,
}

#[derive(Debug)]
struct Listener {
    /// The listener as configured.
    asked: Listen,
    /// The length of the buffers of its log.
    buffer_bytes: usize,
    port: Port,
}

impl Server {
    /// Opens the logs and binds the listeners. Clients can connect from then on, but are served
    /// only once the server runs.
    pub fn start(config: Config) -> Result<Server, Error> {
        Server::start_with(config, open)
    }

    /// Starts a server that uses the sockets bound by a service manager (sd_listen_fds(3)), and
    /// binds only the remaining ones. Clears the environment variables that name the sockets, so no
    /// other thread may use the environment during the call.
    pub fn start_activated(config: Config) -> Result<Server, Error> {
        let inherited =
            Inherited::from_env().map_err(|error| Error::Config(format!("LISTEN_FDS: {error}")))?;
        Server::start_in(config, Arc::new(open), inherited)
    }

    /// Starts a server that opens and reopens its logs with `open`, for tests on a simulated disk.
    pub fn start_with(
        config: Config,
        open: impl Fn(&LogConfig) -> Result<wrote::Log, wrote::Error> + Send + Sync + 'static,
    ) -> Result<Server, Error> {
        Server::start_in(config, Arc::new(open), Inherited::default())
    }

    fn start_in(config: Config, opener: Opener, mut inherited: Inherited) -> Result<Server, Error> {
        let (settings, warnings) = settings::load(&config).map_err(settings::error)?;
        warnings.iter().for_each(|warning| log::warn!("{warning}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("wrote-serve")
            .enable_all()
            .build()
            .map_err(Error::Runtime)?;
        let workers = Workers::start(config.workers)?;
        let (stop, draining) = watch::channel(false);
        let totals = Arc::new(Totals::default());
        let Settings { limits, access, tls, .. } = settings.clone();
        let readers_max = limits.readers;
        let settings = watch::Sender::new(settings);
        let readers = Arc::new(Semaphore::new(readers_max));
        let descriptors_left = Arc::new(AtomicUsize::new(0));
        let (mut channels, mut bound, mut bound_as) = (Vec::new(), Vec::new(), Vec::new());
        for mut log in config.logs {
            files::make_parents(&log.folder).map_err(|error| {
                Error::Config(format!("{}: its parents: {error}", log.folder.display()))
            })?;
            let buffer_bytes = log.buffer_bytes(&limits);
            log.buffer_bytes = Some(buffer_bytes);
            log.options = log.options(&limits);
            let channel = Arc::new(Channel::open(log, opener.clone(), limits.free_bytes)?);
            channels.push(channel.clone());
            for listen in &channel.config.listeners {
                let sockets = runtime
                    .block_on(Bound::bind_all(listen, &mut inherited))
                    .map_err(|source| Error::Listen { url: listen.to_string(), source })?;
                let host: Arc<str> = match &listen.socket {
                    Socket::Tcp(address) => access::host(address).into(),
                    _ => Arc::default(),
                };
                for socket in sockets {
                    let actual = Arc::new(socket.listen(listen));
                    // A name may resolve differently than it did during the check of the
                    // configuration.
                    let checked = settings.borrow().check(&actual);
                    checked.map_err(Error::Config)?;
                    let acks = |_: &_| Arc::new(Acks::new(actual.ack));
                    let acks = workers.all.iter().map(acks).collect();
                    let port = Port {
                        tls: tls.clone().filter(|_| actual.is_tls),
                        listen: actual,
                        host: host.clone(),
                        channel: channel.clone(),
                        limits: limits.clone(),
                        access: access.clone(),
                        settings: settings.subscribe(),
                        descriptors: descriptors_left.clone(),
                        readers: readers.clone(),
                        metrics: Arc::default(),
                        totals: totals.clone(),
                        workers: workers.all.clone(),
                        acks,
                        draining: draining.clone(),
                        refusals: Arc::default(),
                    };
                    bound.push(socket);
                    bound_as.push(Listener { asked: listen.clone(), buffer_bytes, port });
                }
            }
        }
        for name in inherited.rest() {
            log::warn!("no listener uses the socket '{name}' that was passed in");
        }
        let operators = match &config.metrics {
            Some(address) => Some(runtime.block_on(Operators::bind(address, &config.access))?),
            None => None,
        };
        for channel in &channels {
            runtime.spawn(channel.clone().watch(settings.subscribe()));
            #[cfg(feature = "store")]
            runtime.spawn(crate::channel::shipping::run(channel.clone()));
        }
        let left = files::connections_max(channels.len(), readers_max + READS_MAX)?;
        descriptors_left.store(left, Ordering::Relaxed);
        let listeners = bound_as.into();
        let handle = Handle { totals, channels, stop, settings, listeners };
        Ok(Server { runtime, workers, bound, operators, grace: config.grace, handle })
    }

    /// Returns the listeners with the ports that the kernel chose.
    pub fn listeners(&self) -> Vec<Listen> {
        self.handle.listeners.iter().map(|listener| (*listener.port.listen).clone()).collect()
    }

    /// Returns the address of the operators' listener with the port that the kernel chose; `None`
    /// without such a listener.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.operators.as_ref().and_then(Operators::address)
    }

    /// Returns a handle to observe and stop the server.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until [`Handle::stop`] is called, and then drains: stops accepting connections,
    /// processes what has arrived, makes it durable, sends answers and goodbyes, and closes the
    /// logs.
    pub fn run(self) -> Result<(), Error> {
        let Server { runtime, workers, bound, operators, grace, handle } = self;
        let ports: Vec<Port> =
            handle.listeners.iter().map(|listener| listener.port.clone()).collect();
        if let Some(operators) = operators {
            let (totals, channels) = (handle.totals.clone(), handle.channels.clone());
            let (settings, draining) = (handle.settings.subscribe(), handle.stop.subscribe());
            let ports = ports.clone();
            runtime.spawn(operators.serve(Shown { totals, ports, channels, settings, draining }));
        }
        runtime.block_on(async {
            let mut listeners = JoinSet::new();
            for (socket, port) in bound.into_iter().zip(ports) {
                listeners.spawn(socket.accept(port));
            }
            let mut stopped = handle.stop.subscribe();
            // The sender is part of the handle, so it still exists.
            let _ = stopped.wait_for(|&stopped| stopped).await;
            let drained = async {
                // Once the listeners have stopped, every connection made before the stop has been
                // counted.
                while listeners.join_next().await.is_some() {}
                while handle.totals.connections.load(Ordering::Relaxed) > 0 {
                    sleep(DRAIN_PAUSE).await;
                }
            };
            // Remaining connections are cut after the grace period.
            let _ = timeout(grace, drained).await;
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(workers);
        let closed: Vec<_> = handle.channels.iter().map(|channel| channel.close()).collect();
        closed.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(())
    }
}

impl Handle {
    /// Reopens the paths of line files, reads the files named in `config` again, and applies its
    /// limits, tokens and certificates. If anything fails, the old settings stay in force. Open
    /// connections get the new limits. Listeners that are missing from `config` keep their settings
    /// until a restart. Returns warnings, one per line.
    pub fn reload(&self, config: &Config) -> Result<Vec<String>, Error> {
        self.channels.iter().for_each(|channel| channel.reopen());
        let reloaded = self.try_reload(config);
        self.totals.note_reload(reloaded.is_ok());
        reloaded
    }

    /// Records in the metrics that a new configuration could not be read.
    pub fn reload_failed(&self) {
        self.totals.note_reload(false);
    }

    fn try_reload(&self, config: &Config) -> Result<Vec<String>, Error> {
        let (mut new, mut warnings) = settings::load(config).map_err(settings::error)?;
        for Listener { asked, buffer_bytes, port } in &*self.listeners {
            if !config.listeners().any(|listen| listen == asked) {
                warnings.push(format!("{asked}: removed only at a restart"));
                continue;
            }
            new.check(&port.listen).map_err(Error::Config)?;
            let record = asked.record_bytes_max(new.limits.message_bytes);
            if !holds(*buffer_bytes, record) {
                let because = "does not fit into the buffers of its log: restart the server";
                let text = format!("{asked}: a record of {record} bytes {because}");
                return Err(Error::Config(text));
            }
        }
        let is_new = |listen: &&Listen| self.listeners.iter().all(|known| known.asked != **listen);
        let begin = config.listeners().filter(is_new);
        warnings.extend(begin.map(|listen| format!("{listen}: starts only at a restart")));
        if new.tls.is_none() {
            // An encrypted listener that is missing from the new configuration keeps its
            // certificate until the restart.
            let Settings { tls, expires_s, .. } = self.settings.borrow().clone();
            (new.tls, new.expires_s) = (tls, expires_s);
        }
        self.settings.send_replace(new);
        Ok(warnings)
    }

    /// Makes the server drain and then shut down.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Returns the current figures.
    pub fn figures(&self) -> Figures {
        metrics::figures(&self.totals, self.metrics())
    }

    fn metrics(&self) -> impl Iterator<Item = &Metrics> + Clone {
        self.listeners.iter().map(|listener| &*listener.port.metrics)
    }

    /// Returns the number of refused connections and messages for each reason, leaving out zeros.
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        let count = |reason: Reason| {
            let all = self.metrics().flat_map(|of| [&of.refused, &of.rejected]);
            all.map(|counts| metrics::read(&counts[reason as usize])).sum()
        };
        let counted = |reason: Reason| (reason.as_str(), count(reason));
        Reason::ALL.into_iter().map(counted).filter(|(_, count)| *count > 0).collect()
    }

    /// Returns the name of each log that currently accepts no messages, and the reason.
    pub fn troubles(&self) -> Vec<(String, String)> {
        let trouble = |channel: &Arc<Channel>| {
            channel.trouble().map(|trouble| (channel.config.name.clone(), trouble))
        };
        self.channels.iter().filter_map(trouble).collect()
    }

    /// Returns each log's name, and the sequences before which its records are written and durable.
    pub fn logs(&self) -> Vec<(String, u64, u64)> {
        let state = |channel: &Arc<Channel>| {
            let target = channel.target();
            let reached = |level| target.as_ref().map_or(0, |target| target.reached(level));
            let name = channel.config.name.clone();
            (name, reached(Level::Written), reached(Level::Durable))
        };
        self.channels.iter().map(state).collect()
    }
}

fn open(log: &LogConfig) -> Result<wrote::Log, wrote::Error> {
    log.options.open(&log.folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Connection;
    use crate::doors::Resp;
    use crate::memory::Pool;
    use crate::port::Admission;
    use crate::stream::Stream;
    use std::io::{self, ErrorKind, Read, Write};
    use std::net::TcpStream;
    use std::pin::{Pin, pin};
    use std::sync::atomic::AtomicBool;
    use std::task::{Context, Poll, Waker};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    /// Sends a request, waits until `waiters` connections are paused, and returns the client.
    fn waiting(handle: &Handle, listener: usize, request: &[u8], waiters: u64) -> TcpStream {
        let url = handle.listeners[listener].port.listen.to_string();
        let mut client = TcpStream::connect(url.split("//").nth(1).unwrap()).unwrap();
        client.write_all(request).unwrap();
        let paused = |metrics: &Metrics| metrics.paused_connections.load(Ordering::Relaxed);
        while handle.metrics().map(paused).sum::<u64>() < waiters {
            std::thread::yield_now();
        }
        client
    }

    /// A client that has sent requests, but reads no answers or has disconnected.
    struct Deaf {
        requests: Vec<u8>,
        is_gone: Arc<AtomicBool>,
    }

    impl AsyncRead for Deaf {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.requests.is_empty() {
                return Poll::Pending;
            }
            buffer.put_slice(&std::mem::take(&mut self.requests));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Deaf {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            match self.is_gone.load(Ordering::Relaxed) {
                true => Poll::Ready(Err(ErrorKind::BrokenPipe.into())),
                false => Poll::Pending,
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Stream for Deaf {
        fn socket(&self) -> std::os::fd::BorrowedFd<'_> {
            unreachable!("it has none")
        }

        fn has_unread(&mut self) -> bool {
            false
        }

        fn has_hung_up(&self) -> bool {
            false
        }
    }

    // W8
    #[test]
    fn an_answer_behind_unsent_ones_is_counted_and_none_is_awaited_for_a_client_that_is_gone() {
        const RECORD_BYTES: usize = 1 << 20;
        let folder = tempfile::tempdir().unwrap();
        let listeners = vec!["resp://127.0.0.1:0".parse().unwrap()];
        let server = Server::start(Config::of_log(&folder.path().join("log"), listeners)).unwrap();
        let port = server.handle.listeners[0].port.clone();
        let target = port.channel.target().unwrap();
        let log = target.clone().log().unwrap();
        log.append(&vec![b'x'; RECORD_BYTES]).unwrap().wait().unwrap();
        let _entered = server.runtime.enter();
        let context = &mut Context::from_waker(Waker::noop());
        let unsent = "HELLO\r\n".repeat(10_000);
        for later in ["XRANGE log - +\r\n", "XREAD BLOCK 0 STREAMS log $\r\n"] {
            let is_gone = Arc::new(AtomicBool::new(false));
            let requests = (unsent.clone() + later).into_bytes();
            let deaf = Deaf { requests, is_gone: is_gone.clone() };
            let log_of = Some((port.channel.clone(), port.listen.ack));
            let resp = Resp::new(log_of, Arc::default());
            let admission = Admission::of(&port, None).unwrap();
            let mut connection =
                Box::pin(Connection::new(deaf, resp, admission, port.clone(), target.clone()));
            assert!(connection.as_mut().poll(context).is_pending());
            let held = || port.totals.memory.held(Pool::Answers);
            let before = held();
            assert!(before > 1_000_000, "{before}");
            while later.starts_with("XRANGE") && held() < before + (RECORD_BYTES / 2) as u64 {
                assert!(connection.as_mut().poll(context).is_pending());
                std::thread::yield_now();
            }
            is_gone.store(true, Ordering::Relaxed);
            assert!(connection.as_mut().poll(context).is_ready());
            drop(connection);
            assert_eq!(held(), 0);
        }
    }

    #[test]
    fn every_door_waits_behind_a_sender_that_has_the_turn_and_is_served_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let urls = ["resp://127.0.0.1:0", "http://127.0.0.1:0", "relp://127.0.0.1:0"];
        let listeners = [&urls[..], &["udp://127.0.0.1:0"]].concat();
        let listeners = listeners.into_iter().map(|url| url.parse().unwrap()).collect();
        let server = Server::start(Config::of_log(&folder.path().join("log"), listeners)).unwrap();
        let handle = server.handle();
        let running = std::thread::spawn(move || server.run());
        let context = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(turn) = pin!(handle.channels[0].turns.next()).poll(context) else {
            panic!("it was free")
        };
        let xadd = b"*5\r\n$4\r\nXADD\r\n$3\r\nlog\r\n$1\r\n*\r\n$1\r\nm\r\n$5\r\nhello\r\n";
        let post = b"POST /append HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nhello";
        let relp = b"1 open 14 relp_version=0\n2 syslog 5 hello\n";
        let requests: [&[u8]; 3] = [xadd, post, relp];
        let mut clients: Vec<TcpStream> = (0..)
            .zip(requests)
            .map(|(number, request)| waiting(&handle, number, request, number as u64 + 1))
            .collect();
        let url = handle.listeners[3].port.listen.to_string();
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.send_to(b"hello", url.split("//").nth(1).unwrap()).unwrap();
        let paused = &handle.listeners[3].port.metrics.paused_connections;
        while paused.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(handle.figures().messages, 0);
        drop(turn);
        for (client, expected) in clients.iter_mut().zip(["$", "HTTP/1.1 200", "1 rsp"]) {
            let mut answer = vec![0; expected.len()];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, expected.as_bytes());
        }
        while handle.figures().messages < 4 {
            std::thread::yield_now();
        }
        drop(clients);
        handle.stop();
        running.join().unwrap().unwrap();
    }
}
