//! The same tests over HTTP, against moto, an S3 server in Python that `cargo xtask nightly s3`
//! installs.

use super::{append, lines, log, said, shipped_to};
use fixtures::{Running, finish, folder, or_skip};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HANG: Duration = Duration::from_secs(120);

/// An S3 server with the bucket `logs`.
struct S3 {
    address: String,
    server: Running,
}

impl S3 {
    /// Starts the server. The error is the reason why it cannot be started.
    fn start() -> Result<S3, String> {
        let modules =
            Path::new(env!("CARGO_TARGET_TMPDIR")).parent().map(|target| target.join("moto"));
        let modules: PathBuf = modules.ok_or("no target folder")?;
        if !modules.is_dir() {
            return Err(format!(
                "{} is missing: cargo xtask nightly s3 installs it",
                modules.display()
            ));
        }
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        drop(listener);
        let mut command = Command::new("python3");
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &address.port().to_string()]);
        command.env("PYTHONPATH", modules).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Running::start(&mut command).within(HANG * 5);
        let mut s3 = S3 { address: address.to_string(), server };
        let began = Instant::now();
        while s3.ask("PUT", "/logs").is_none() {
            assert!(began.elapsed() < HANG && !s3.server.is_over(), "moto does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(s3)
    }

    /// Sends a request without a body, and returns the response; `None` if there is no connection.
    fn ask(&self, method: &str, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let key = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, \
                   SignedHeaders=host, Signature=none";
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {key}\r\n\
             Connection: close\r\nContent-Length: 0\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Sets a command's environment to the keys and the address of the server.
    fn of<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("AWS_ENDPOINT_URL", format!("http://{}", self.address));
        command.env("AWS_REGION", "us-east-1").env("AWS_ACCESS_KEY_ID", "key");
        command.env("AWS_SECRET_ACCESS_KEY", "secret")
    }

    fn run(&self, folder: &Path, arguments: &[&str]) -> String {
        said(self.of(&mut log(folder, arguments)))
    }
}

#[test]
#[ignore = "nightly"]
fn a_log_is_shipped_to_s3_and_read_from_there() {
    let s3 = or_skip!(S3::start());
    let folder = folder();
    append(folder.path(), 0..5000);
    let url = "s3://logs/deep/events";
    let end = shipped_to(&finish(s3.of(&mut log(folder.path(), &["ship", "events", url]))));
    assert!(end > 4000);
    assert_eq!(s3.run(folder.path(), &["cat", url]), lines(0..end));
    assert_eq!(s3.run(folder.path(), &["cat", url, "--from", "777", "-n", "5"]), lines(777..782));
    assert_eq!(s3.run(folder.path(), &["tail", "-n", "3", url]), lines(end - 3..end));
    let verified = s3.run(folder.path(), &["verify", "--json", url]);
    let verified: serde_json::Value = serde_json::from_str(&verified).expect("JSON");
    assert_eq!(verified["whole"], true);
    assert_eq!(verified["segments"], verified["checksums"], "each object has its checksum");
    let again = finish(s3.of(&mut log(folder.path(), &["ship", "events", url])));
    assert!(again.stderr.starts_with("nothing new to ship"), "{again:?}");
    // This is a different log at the same URL.
    let other = fixtures::folder();
    append(other.path(), 0..5000);
    let refused = finish(s3.of(&mut log(other.path(), &["ship", "events", url])));
    assert_eq!(refused.code(), Some(1));
    assert!(refused.complaint().contains("ship this log to another URL"), "{refused:?}");
}

#[test]
#[ignore = "nightly"]
fn two_shippers_at_once_and_kills_leave_each_segment_once_in_s3() {
    let s3 = or_skip!(S3::start());
    let folder = folder();
    append(folder.path(), 0..20_000);
    let url = "s3://logs/events";
    for round in 0..6 {
        let mut both = [(), ()].map(|()| {
            let mut command = log(folder.path(), &["ship", "-q", "events", url]);
            Running::start(s3.of(&mut command).stderr(Stdio::piped()).stdout(Stdio::piped()))
        });
        std::thread::sleep(Duration::from_millis(100 + round * 150));
        both[0].send(Signal::KILL);
        let [_, other] = both;
        let finished = other.finish();
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
    }
    let end = shipped_to(&finish(s3.of(&mut log(folder.path(), &["ship", "events", url]))));
    assert_eq!(s3.run(folder.path(), &["cat", url]), lines(0..end));
}
