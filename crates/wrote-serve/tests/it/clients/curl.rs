//! curl: single records, lines, large bodies, and following.

use super::programs::feed_all;
use super::{COUNT, assert_same, lines};
use crate::serving::Serving;
use fixtures::Running;
use std::process::{Command, Stdio};
use wrote::{Format, Log, SyncPolicy};

fn curl(serving: &Serving, path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail-with-body", "--no-progress-meter"]);
    command.args(arguments).arg(format!("http://{}{path}", serving.address()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs curl, and returns the answer.
#[track_caller]
fn answer(serving: &Serving, path: &str, arguments: &[&str]) -> String {
    let finished = fixtures::finish(&mut curl(serving, path, arguments));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    finished.stdout
}

#[test]
fn curl_appends_records_one_by_one() {
    fixtures::or_skip!(fixtures::is_installed("curl"));
    let serving = Serving::http();
    assert_eq!(
        answer(&serving, "/append", &["--data", "hello"]),
        "{\"appended\":1,\"first\":0,\"next\":1}\n"
    );
    let file = fixtures::file();
    std::fs::write(file.path(), b"\0bytes\r\n\xff as they are\n").unwrap();
    let data = format!("@{}", file.path().display());
    let headers = ["--header", "Content-Type: application/octet-stream"];
    answer(&serving, "/append", &["--data-binary", &data, headers[0], headers[1]]);
    assert_eq!(serving.stop(), [&b"hello"[..], b"\0bytes\r\n\xff as they are\n"]);
}

#[test]
fn curl_delivers_a_file_of_lines_and_a_pipe_of_lines() {
    fixtures::or_skip!(fixtures::is_installed("curl"));
    let lines = lines();
    let file = fixtures::file();
    std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
    let data = format!("@{}", file.path().display());
    let serving = Serving::http();
    // Over 1 MB curl asks before it sends (`Expect: 100-continue`).
    let verbose = ["--verbose", "--header", "Content-Type: application/x-ndjson", "--data-binary"];
    let arguments = [&verbose[..], &[&data]].concat();
    let finished = fixtures::finish(&mut curl(&serving, "/append", &arguments));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stderr.contains("< HTTP/1.1 100 Continue"), "{}", finished.stderr);
    assert_eq!(finished.stdout, format!("{{\"appended\":{COUNT},\"first\":0,\"next\":{COUNT}}}\n"));
    assert_same(serving.stop(), &lines);

    let serving = Serving::http();
    let arguments = ["--request", "POST", "--upload-file", "-"];
    feed_all(&mut curl(&serving, "/append?by=lines", &arguments), &lines);
    assert_eq!(serving.figures().acks, COUNT as u64);
    assert_same(serving.stop(), &lines);
}

#[test]
fn curl_sends_many_requests_on_one_connection() {
    fixtures::or_skip!(fixtures::is_installed("curl"));
    let lines = lines();
    let serving = Serving::http();
    let folder = fixtures::folder();
    let url = format!("http://{}/append", serving.address());
    let mut config = String::new();
    for (number, line) in lines[..500].iter().enumerate() {
        let path = folder.path().join(number.to_string());
        std::fs::write(&path, line).unwrap();
        config += &format!("next\nurl = {url}\ndata-binary = \"@{}\"\n", path.display());
    }
    let path = folder.path().join("config");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail-early", "--config"]).arg(&path);
    let finished = fixtures::finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert_eq!(serving.figures().acks, 500);
    assert_same(serving.stop(), &lines[..500]);
}

#[test]
fn curl_follows_what_comes() {
    fixtures::or_skip!(fixtures::is_installed("curl"));
    let lines = lines();
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.logs[0].options = Log::options().sync(SyncPolicy::No).format(Format::Lines);
    });
    let follower =
        Running::start(&mut curl(&serving, "/records?from=0&follow=1", &["--no-buffer"]));
    for slice in lines.chunks(1000) {
        let arguments = ["--request", "POST", "--upload-file", "-"];
        feed_all(&mut curl(&serving, "/append?by=lines", &arguments), slice);
    }
    // The answer ends with the server.
    serving.stop();
    let finished = follower.finish();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout == lines.join("\n") + "\n");
}

#[test]
fn curl_is_refused_by_codes_that_it_knows() {
    fixtures::or_skip!(fixtures::is_installed("curl"));
    let serving = Serving::http();
    let long = "x".repeat(9000);
    for (path, arguments, code) in
        [("/append", &["--data", &long][..], "413"), ("/append", &[], "405"), ("/", &[], "404")]
    {
        let arguments = [arguments, &["--write-out", "%{http_code}"]].concat();
        let finished = fixtures::finish(&mut curl(&serving, path, &arguments));
        // curl's code for an HTTP error (`curl(1)`, exit codes).
        assert_eq!(finished.code(), Some(22), "{finished:?}");
        assert!(finished.stdout.ends_with(code), "{finished:?}");
    }
    assert!(serving.stop().is_empty());
}
