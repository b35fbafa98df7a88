//! curl, with files and pipes of lines.

use super::programs::feed_all;
use super::{COUNT, assert_same, lines};
use crate::serving::Serving;
use std::process::{Command, Stdio};

fn curl(serving: &Serving, path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail-with-body", "--no-progress-meter"]);
    command.args(arguments).arg(format!("http://{}{path}", serving.address()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn curl_delivers_a_file_of_lines_and_a_pipe_of_lines() {
    fixtures::or_skip!(fixtures::is_installed("curl"));
    let lines = lines();
    let file = fixtures::file();
    std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
    let data = format!("@{}", file.path().display());
    let serving = Serving::http();
    // Before it sends more than 1 MB, curl asks (`Expect: 100-continue`).
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
