//! Tests of `wrote serve`: its configuration file, its signals, and a service manager that the test
//! imitates.

use crate::support::wrote;
use fixtures::{Running, finish, folder, names};
use rustix::process::Signal;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use tempfile::TempDir;
use wrote::LogReader;

/// A service manager that has bound the server's socket, and receives its notifications.
struct Manager {
    listener: TcpListener,
    notified: UnixDatagram,
    /// A separate folder, because a socket's path has at most 107 bytes, and the build's path may
    /// be longer.
    folder: TempDir,
}

impl Manager {
    fn new() -> Manager {
        let folder = tempfile::tempdir().unwrap();
        let notified = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        notified.set_nonblocking(true).unwrap();
        Manager { listener: TcpListener::bind("127.0.0.1:0").unwrap(), notified, folder }
    }

    fn address(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// Starts `wrote serve` with the socket as descriptor 3, and waits until the server is ready.
    fn start(&self, name: &str, arguments: &[&str]) -> Running {
        self.start_after(":", name, arguments)
    }

    /// Starts the server after a shell command. The shell also sets the environment variable with
    /// the server's process number.
    fn start_after(&self, before: &str, name: &str, arguments: &[&str]) -> Running {
        let script =
            format!("{before}; exec 3<&0 0</dev/null; LISTEN_PID=$$ exec \"$0\" serve \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_wrote")]).args(arguments);
        command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", name);
        command.env("NOTIFY_SOCKET", self.folder.path().join("notify"));
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(self.listener.try_clone().unwrap())));
        let mut server = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let ready = self.next(&mut server);
        assert!(ready.starts_with("READY=1\nSTATUS=serves 1 log, 1 listener"), "{ready}");
        server
    }

    /// Returns the server's next notification.
    fn next(&self, server: &mut Running) -> String {
        let mut buffer = [0; 4096];
        let bytes = server.until("a notification", || self.notified.recv(&mut buffer).ok());
        String::from_utf8(buffer[..bytes].to_vec()).unwrap()
    }

    /// Connects, sends the text, closes the sending side, and returns the answers.
    fn ask(&self, text: &str) -> String {
        let stream = TcpStream::connect(self.address()).unwrap();
        converse(stream, text).unwrap()
    }
}

fn converse(mut stream: TcpStream, text: &str) -> io::Result<String> {
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answers = String::new();
    stream.read_to_string(&mut answers)?;
    Ok(answers)
}

fn records(folder: &Path) -> Vec<Vec<u8>> {
    LogReader::open(folder, 0).unwrap().map(|record| record.unwrap().bytes).collect()
}

#[test]
fn a_configuration_is_checked_without_being_served() {
    let folder = folder();
    let path = folder.path().join("wrote.toml");
    fs::write(
        &path,
        "[logs.a]\nfolder = \"a\"\nlisten = [\"tcp://127.0.0.1:1\", \"relp://127.0.0.1:2\"]\n\
         [logs.b]\nfolder = \"b\"\nlisten = [\"udp://127.0.0.1:3\"]\n",
    )
    .unwrap();
    let check = |path: &Path| {
        finish(wrote(&["serve", "--check", "--config"]).arg(path).current_dir(folder.path()))
    };
    let finished = check(&path);
    let line = format!("{}: 2 logs, 3 listeners: valid\n", path.display());
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), line.as_str()));
    assert!(!folder.path().join("a").exists());

    fs::write(&path, "[logs.a]\nfolder = \"a\"\nlisten = [\"tcp://0.0.0.0:1\"]\n[limit]\n")
        .unwrap();
    let finished = check(&path);
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(2), ""));
    let lines: Vec<_> = finished.stderr.lines().collect();
    let begin = format!("wrote: {}: ", path.display());
    assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with(&begin)), "{lines:?}");
    assert!(lines[0].contains(": tcp://0.0.0.0:1: "), "{lines:?}");
    assert!(lines[1].ends_with("line 4: unknown key 'limit' in the file; did you mean 'limits'?"));

    let words = ["serve", "log", "--listen", "tcp://0.0.0.0:1", "--check"];
    let finished = finish(wrote(&words).current_dir(folder.path()));
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    assert!(finished.complaint().ends_with("with tls://, or pass --insecure"));
    let finished = finish(wrote(&words).arg("--insecure").current_dir(folder.path()));
    assert_eq!(finished.stdout, "log: 1 log, 1 listener: valid\n");
}

#[test]
fn a_folder_of_other_files_is_not_served_as_a_log_and_the_check_says_so() {
    let folder = folder();
    fs::create_dir(folder.path().join("photos")).unwrap();
    fs::write(folder.path().join("photos/cat.jpeg"), "precious").unwrap();
    let words = ["serve", "photos", "--listen", "tcp://127.0.0.1:0"];
    let because = "wrote: photos: has other files (such as \"cat.jpeg\") and no log: name a new \
                   folder for the log, such as photos/log";
    for more in [None, Some("--check")] {
        let finished = finish(wrote(&words).args(more).current_dir(folder.path()));
        assert_eq!((finished.code(), finished.complaint()), (Some(2), because));
    }
    assert_eq!(names(&folder.path().join("photos")), ["cat.jpeg"]);
}

#[test]
fn a_folder_and_a_configuration_file_exclude_each_other() {
    for more in [
        "log",
        "--listen=tcp://127.0.0.1:0",
        "--metrics=127.0.0.1:0",
        "--insecure",
        "--token-file=tokens",
    ] {
        let finished = finish(&mut wrote(&["serve", "--config", "wrote.toml", more]));
        assert_eq!(finished.code(), Some(2), "{more}");
        assert!(finished.complaint().contains("cannot be used with"), "{finished:?}");
    }
    assert_eq!(finish(&mut wrote(&["serve"])).code(), Some(2));
    assert_eq!(finish(&mut wrote(&["serve", "log"])).code(), Some(2));
}

#[test]
fn a_manager_is_notified_of_the_start_of_each_reload_and_of_the_end() {
    let (manager, folder) = (Manager::new(), folder());
    let (path, tokens) = (folder.path().join("wrote.toml"), folder.path().join("tokens"));
    fs::write(&tokens, "first\n").unwrap();
    let text = "[logs.events]\nfolder = \"events\"\nlisten = [\"resp://fd:events\"]\n\
                [access]\ntoken_file = \"tokens\"\n";
    fs::write(&path, text).unwrap();
    let mut server = manager.start("events", &["--config", path.to_str().unwrap()]);
    let mut before = TcpStream::connect(manager.address()).unwrap();
    let mut ok = [0; 5];
    before.write_all(b"AUTH first\r\n").unwrap();
    before.read_exact(&mut ok).unwrap();
    assert_eq!(manager.ask("AUTH second\r\n").get(..10), Some("-WRONGPASS"));

    fs::write(&tokens, "first\nsecond\n").unwrap();
    server.send(Signal::HUP);
    let reloading = manager.next(&mut server);
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(manager.next(&mut server), "READY=1\nSTATUS=configuration reloaded\n");
    assert_eq!(manager.ask("AUTH second\r\n"), "+OK\r\n");

    // A file with an error changes nothing.
    fs::write(&path, text.replace("access", "acces")).unwrap();
    server.send(Signal::HUP);
    assert!(manager.next(&mut server).starts_with("RELOADING=1\n"));
    let status = manager.next(&mut server);
    assert!(
        status.starts_with(
            "READY=1\nSTATUS=reload failed, the previous configuration stays: \
                                "
        ),
        "{status}"
    );
    assert!(status.contains("did you mean 'access'?"), "{status}");
    assert_eq!(manager.ask("AUTH second\r\nRPUSH log two\r\n"), "+OK\r\n:1\r\n");

    // The earlier connection is still open.
    before.write_all(b"RPUSH log one\r\n").unwrap();
    before.read_exact(&mut ok[..4]).unwrap();
    assert_eq!(&ok[..4], b":2\r\n");
    server.send(Signal::TERM);
    let stopping = manager.next(&mut server);
    assert!(stopping.starts_with("STOPPING=1\nSTATUS=drains\nEXTEND_TIMEOUT_USEC="), "{stopping}");
    let finished = server.finish();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let said: Vec<_> =
        finished.stderr.lines().filter(|line| line.contains("reload failed")).collect();
    assert_eq!(said.len(), 1, "{finished:?}");
    assert_eq!(records(&folder.path().join("events")), [b"two", b"one"]);
}

#[test]
fn messages_become_lines_of_a_plain_file_which_the_signal_of_logrotate_opens_anew() {
    let (manager, folder) = (Manager::new(), folder());
    let [path, rotated] = ["messages.log", "messages.log.1"].map(|name| folder.path().join(name));
    fs::write(&path, "before\nhalf").unwrap();
    let arguments = ["--file", path.to_str().unwrap(), "--listen", "relp://fd:lines"];
    let mut server = manager.start("lines", &arguments);
    let send = |message: &str| {
        let len = message.len();
        let text = format!("1 open 14 relp_version=0\n2 syslog {len} {message}\n3 close 0\n");
        let answers = manager.ask(&text);
        assert!(answers.contains("\n2 rsp 6 200 OK\n"), "{answers}");
    };
    send("first");
    fs::rename(&path, &rotated).unwrap();
    server.send(Signal::HUP);
    assert!(manager.next(&mut server).starts_with("RELOADING=1\n"));
    assert_eq!(manager.next(&mut server), "READY=1\nSTATUS=configuration reloaded\n");
    assert!(path.exists(), "it was not opened anew");
    send("second");
    // logrotate's copytruncate does the same.
    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    send("third");
    server.send(Signal::TERM);
    assert_eq!(server.finish().code(), Some(0));
    assert_eq!(fs::read_to_string(&rotated).unwrap(), "before\nfirst\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "third\n");
}

#[test]
fn a_file_of_lines_is_not_read_and_has_no_segments_to_retain() {
    let folder = folder();
    for (arguments, because) in [
        (
            "--listen http://127.0.0.1:0",
            "a file of lines does not have: use tcp, unix, udp or relp",
        ),
        ("--listen tcp://127.0.0.1:0 --retain-bytes 1GB", "a file of lines has no segments"),
    ] {
        let mut command = wrote(&["serve", "--check", "--file"]);
        command.arg(folder.path().join("a.log"));
        let finished = finish(command.args(arguments.split(' ')));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        assert!(finished.complaint().ends_with(because), "{finished:?}");
    }
}

#[test]
fn a_server_that_is_restarted_with_its_socket_kept_refuses_no_connection() {
    const RESTARTS: usize = 3;
    let (manager, folder) = (Manager::new(), folder());
    let log = folder.path().join("events");
    let url = format!("resp://{}?ack=written", manager.address());
    let arguments = [log.to_str().unwrap(), "--listen", &url];
    let (is_over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let server = manager.start("", &arguments);
    let (answered, mut server) = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut answered = Vec::new();
            for number in 0.. {
                let message = format!("message-{number}");
                let request = format!("RPUSH log {message}\r\n");
                // Connections are never refused. A draining server may close a connection that it
                // has accepted but on which nothing was sent yet. The client then tries again.
                let stream = || TcpStream::connect(manager.address()).unwrap();
                let answer = (0..).find_map(|_| {
                    converse(stream(), &request).ok().filter(|answer| !answer.is_empty())
                });
                assert!(answer.as_ref().unwrap().starts_with(':'), "{message}: {answer:?}");
                answered.push(message.into_bytes());
                count.fetch_add(1, Ordering::Relaxed);
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            answered
        });
        let mut server = server;
        for restart in 1..=RESTARTS {
            let wanted = || (count.load(Ordering::Relaxed) >= 5 * restart).then_some(());
            server.until("some more answers", wanted);
            server.send(Signal::TERM);
            let finished = server.finish();
            assert_eq!(finished.code(), Some(0), "{finished:?}");
            // These are the remaining notifications of the first server.
            while manager.notified.recv(&mut [0; 4096]).is_ok() {}
            server = manager.start("", &arguments);
        }
        is_over.store(true, Ordering::Relaxed);
        (client.join().unwrap(), server)
    });
    server.send(Signal::TERM);
    assert_eq!(server.finish().code(), Some(0));
    let mut records = records(&log);
    // A message was sent again if its answer did not arrive.
    records.dedup();
    assert_eq!(records, answered);
}

#[test]
fn a_name_that_was_not_passed_is_named() {
    let folder = folder();
    let mut command = wrote(&["serve", "log", "--listen", "tcp://fd:events"]);
    let finished = finish(command.current_dir(folder.path()));
    assert_eq!(finished.code(), Some(1));
    let line = "wrote: tcp://fd:events: no such socket named 'events' was passed \
                (FileDescriptorName)";
    assert_eq!(finished.complaint(), line);
}

#[test]
fn a_low_limit_of_open_files_is_raised() {
    let (manager, folder) = (Manager::new(), folder());
    let log = folder.path().join("events");
    let url = format!("resp://{}", manager.address());
    let arguments = [log.to_str().unwrap(), "--listen", &url];
    let mut server = manager.start_after("ulimit -Sn 50", "", &arguments);
    let connect = |_| TcpStream::connect(manager.address()).unwrap();
    let mut streams: Vec<_> = (0..100).map(connect).collect();
    for stream in &mut streams {
        stream.write_all(b"PING\r\n").unwrap();
    }
    for mut stream in streams {
        let mut pong = [0; 7];
        stream.read_exact(&mut pong).unwrap();
        assert_eq!(&pong, b"+PONG\r\n");
    }
    server.send(Signal::TERM);
    assert_eq!(server.finish().code(), Some(0));
}

#[test]
fn the_logs_keep_the_descriptors_that_they_need_whoever_connects() {
    let (manager, folder) = (Manager::new(), folder());
    let path = folder.path().join("wrote.toml");
    let text = format!(
        "[logs.a]\nfolder = \"a\"\nlisten = [\"resp://{}\"]\nsync = \"no\"\n\
         segment_bytes = \"3MiB\"\n[limits]\nfree_bytes = \"1MiB\"\n",
        manager.address()
    );
    fs::write(&path, text).unwrap();
    let arguments = ["--config", path.to_str().unwrap()];
    let mut server = manager.start_after("ulimit -n 200", "", &arguments);
    let mut good = TcpStream::connect(manager.address()).unwrap();
    let mut ask = |request: &[u8], answer: &str| {
        good.write_all(request).unwrap();
        let mut bytes = vec![0; answer.len()];
        good.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), answer);
    };
    ask(b"PING\r\n", "+PONG\r\n");
    let idle: Vec<_> = (0..300).map(|_| TcpStream::connect(manager.address()).unwrap()).collect();
    // The last idle connection has been closed. The earlier ones have already been checked.
    assert_eq!((&idle[299]).read(&mut [0]).unwrap(), 0);
    let value = "x".repeat(30_000);
    let push = format!("*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$30000\r\n{value}\r\n");
    for number in 1..=500 {
        ask(push.as_bytes(), &format!(":{number}\r\n"));
    }
    drop(idle);
    server.send(Signal::TERM);
    let finished = server.finish();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stderr.contains("(open_files)"), "{}", finished.stderr);
    let segments = fs::read_dir(folder.path().join("a")).unwrap();
    assert!(segments.count() > 5, "the log has gone through several segments");

    let log = folder.path().join("b");
    let script = "ulimit -n 100; exec \"$0\" serve \"$1\" --listen tcp://127.0.0.1:0";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_wrote")]).arg(log);
    let refused = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.complaint().contains("the limit of open files is 100"), "{refused:?}");
}

// W8
#[test]
fn clients_that_all_read_at_once_share_a_few_readers_of_the_log() {
    const CLIENTS: usize = 100;
    let (manager, folder) = (Manager::new(), folder());
    let log = folder.path().join("events");
    let url = format!("resp://{}", manager.address());
    let mut server = manager.start("", &[log.to_str().unwrap(), "--listen", &url]);
    let message = "x".repeat(500);
    let add = format!("*5\r\n$4\r\nXADD\r\n$1\r\nl\r\n$1\r\n*\r\n$1\r\nm\r\n$500\r\n{message}\r\n");
    assert_eq!(manager.ask(&add.repeat(1000)).lines().count(), 2000);

    let connect = |_| TcpStream::connect(manager.address()).unwrap();
    let mut streams: Vec<_> = (0..CLIENTS).map(connect).collect();
    for stream in &mut streams {
        stream.write_all(b"XRANGE l - +\r\nQUIT\r\n").unwrap();
    }
    for mut stream in streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("*1000\r\n"), "{:.100}", answer);
        assert_eq!(answer.matches(&message).count(), 1000);
    }
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 128 << 10, "{peak_kib} KiB");
    server.send(Signal::TERM);
    assert_eq!(server.finish().code(), Some(0));
}
