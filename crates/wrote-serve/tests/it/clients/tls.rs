//! Clients over TLS: `omrelp` with its own certificate, and redis-cli also with a token.

use super::rsyslog::{Rsyslog, assert_delivers};
use super::{COUNT, assert_same, lines};
use crate::certificates::{Authority, write};
use crate::serving::Serving;
use fixtures::{Running, is_installed, or_skip};
use std::io::{Write, pipe};
use std::process::{Command, Stdio};

#[test]
#[ignore = "nightly"]
fn omrelp_delivers_over_tls_with_a_certificate_of_its_own() {
    let lines = lines();
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign(), Some(&authority));
    let serving = Serving::start("relps://127.0.0.1:0", |config| config.tls = Some(files.clone()));
    let (cert, key) = (files.cert_file.display(), files.key_file.display());
    let ca = folder.path().join("ca.pem");
    let action = format!(
        r#"type="omrelp" port="{}" tls="on" tls.cacert="{}" tls.mycert="{cert}"
           tls.myprivkey="{key}" tls.authmode="name" tls.permittedpeer=["localhost"]"#,
        serving.port(),
        ca.display()
    );
    let rsyslog = or_skip!(Rsyslog::start(&action));
    assert_delivers(rsyslog, serving, &lines);
}

#[test]
fn redis_cli_delivers_over_tls_with_a_certificate_and_a_token() {
    or_skip!(is_installed("redis-cli"));
    let lines = lines();
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let files = write(folder.path(), &authority.sign(), Some(&authority));
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "secret\n").unwrap();
    let serving = Serving::start("rediss://127.0.0.1:0", |config| {
        config.tls = Some(files.clone());
        config.access.token_file = Some(tokens);
    });
    let (input, mut pipe) = pipe().unwrap();
    let mut command = Command::new("redis-cli");
    command.args(["-h", "127.0.0.1", "-p", serving.port(), "--tls", "--pipe"]);
    command
        .args(["-a", "secret", "--no-auth-warning", "--cacert"])
        .arg(folder.path().join("ca.pem"));
    command.arg("--cert").arg(files.cert_file).arg("--key").arg(files.key_file);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::start(command.stdin(input));
    // This closes the pipe's reading end, so that writing fails once there is no other reader.
    drop(command);
    for line in &lines {
        let request = format!("*3\r\n$5\r\nRPUSH\r\n$3\r\nlog\r\n${}\r\n{line}\r\n", line.len());
        if pipe.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    drop(pipe);
    let finished = running.finish();
    assert!(finished.stdout.contains(&format!("errors: 0, replies: {COUNT}")), "{finished:?}");
    assert_eq!(serving.figures().refused, 0);
    assert_same(serving.stop(), &lines);
}
