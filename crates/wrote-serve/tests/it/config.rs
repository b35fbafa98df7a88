//! The configuration file: the documented example, and all possible faults.

use crate::certificates::{Authority, write};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use wrote_serve::{Config, Error, Limits, Server};

/// The documented example with all keys.
const EXAMPLE: &str = include_str!("../../../../docs/serve.toml");

/// Reads `text` as a configuration file in `folder`.
fn read(folder: &Path, text: &str) -> Result<Config, Vec<String>> {
    let path = folder.join("wrote.toml");
    fs::write(&path, text).unwrap();
    let shown = format!("{}: ", path.display());
    Config::from_file(&path).map_err(|error| match error {
        Error::Config(text) => {
            text.lines().map(|line| line.strip_prefix(&shown).unwrap().to_owned()).collect()
        }
        other => panic!("{other:?}"),
    })
}

/// Creates a folder with a certificate, its key, an authority and tokens.
fn folder() -> TempDir {
    let (folder, authority) = (fixtures::folder(), Authority::new());
    let certificate = authority.sign();
    write(folder.path(), &certificate, Some(&authority));
    fs::write(folder.path().join("tokens"), "secret\n").unwrap();
    folder
}

#[test]
fn the_documented_example_is_read_and_shows_the_defaults() {
    let folder = folder();
    let text = EXAMPLE.replace("/etc/wrote", &folder.path().display().to_string());
    let config = read(folder.path(), &text).unwrap();
    let warnings = config.check().unwrap();
    // Another user may not be able to write to these folders.
    assert!(warnings.iter().all(|line| line.contains("Permission denied")), "{warnings:?}");
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.grace, Duration::from_secs(10));
    assert_eq!(config.workers, 7);
    let urls = |log: &wrote_serve::LogConfig| -> Vec<String> {
        log.listeners.iter().map(ToString::to_string).collect()
    };
    let [events, syslog] = &config.logs[..] else { panic!("{config:?}") };
    assert_eq!((events.name.as_str(), syslog.name.as_str()), ("events", "syslog"));
    assert_eq!(events.folder, Path::new("/var/lib/wrote/events"));
    let expected = [
        "relps://0.0.0.0:2514",
        "resp://127.0.0.1:6379?ack=written",
        "http://127.0.0.1:8080",
        "tls://0.0.0.0:6514?frame=octets",
    ];
    assert_eq!(urls(events), expected);
    assert_eq!(urls(syslog), ["udp://127.0.0.1:5140", "unix:///run/wrote/syslog.sock"]);
    assert_eq!(config.tls.unwrap().key_file, folder.path().join("key.pem"));
    assert_eq!(config.access.token_file.unwrap(), folder.path().join("tokens"));
}

#[test]
fn missing_parents_are_made_and_a_log_is_seen_by_its_group_alone() {
    let parent = fixtures::folder();
    let folder = parent.path().join("var/lib/log");
    let mut config = Config::of_log(&folder, vec!["tcp://127.0.0.1:0".parse().unwrap()]);
    let (_folder, path) = crate::serving::socket_path();
    let path = path.parent().unwrap().join("run/socket");
    let url = format!("unix://{}", path.display());
    config.logs[0].listeners.push(url.parse().unwrap());
    let server = Server::start(config).unwrap();
    assert!(path.exists());
    drop(server);
    let modes = |path: &Path| {
        let files = fs::read_dir(path).unwrap().map(|file| file.unwrap());
        files.map(|file| file.metadata().unwrap().permissions().mode() & 0o7777).collect::<Vec<_>>()
    };
    let modes = modes(&folder);
    assert!(!modes.is_empty() && modes.iter().all(|mode| mode & 0o137 == 0), "{modes:?}");
}

#[test]
fn every_fault_is_listed_with_its_line_or_its_listener() {
    let folder = folder();
    let here = folder.path().display().to_string();
    let faults = read(
        folder.path(),
        &r#"metrics = "nowhere"
[logs.events]
folder = "cert.pem/log"
lisen = ["tcp://127.0.0.1:1"]

[logs."a b"]
folder = 5
listen = [
    "tcp://127.0.0.1:2",
    "ftp://127.0.0.1:3",
    "tcp://0.0.0.0:4",
    { url = "tls://127.0.0.1:5" }, "relps://127.0.0.1:5",
    "udp://127.0.0.1:2", "unix://HERE/cert.pem/socket", "tcp://127.0.0.1",
]
sync = "sometimes"
segment_bytes = "1KiB"

[logs.twice]
folder = "cert.pem/log"
listen = ["tcp://127.0.0.1:6"]
buffer_bytes = "1MiB"

[limits]
first_byte = 10
conections = 5
connections = 0
message_bytes = "2MiB"

[access]
insecure = "off"
token_file = "none"

[tls]
cert_file = "cert.pem"

[tsl]
"#
        .replace("HERE", &here),
    )
    .unwrap_err();
    for (line, part) in [
        (0, "http://nowhere: "),
        (2, "[logs.events] has no listen"),
        (0, "cert.pem: is not a folder"),
        (4, "unknown key 'lisen' in [logs.events]; did you mean 'listen'?"),
        (6, "'a b': a log's name may have letters"),
        (7, "folder in [logs.a b]: must be in quotes"),
        (10, "'ftp' must be one of tcp, tls"),
        (0, "tcp://0.0.0.0:4: other hosts can reach it"),
        (12, "a listener is a URL in quotes"),
        (0, "cert_file and key_file go together"),
        (0, "/cert.pem/socket: "),
        (0, "tcp://127.0.0.1: no port"),
        (15, "sync in [logs.a b]: must be always"),
        (0, "[logs.a b]: segment_bytes must be at least twice buffer_bytes"),
        (0, "[logs.twice]: buffer_bytes must hold a record of 2097152 bytes"),
        (24, "first_byte in [limits]: must be a time"),
        (25, "unknown key 'conections' in [limits]; did you mean 'connections'?"),
        (26, "connections in [limits]: must be a whole number, 1 or more"),
        (30, "insecure in [access]: must be true or false"),
        (0, "none: No such file"),
        (36, "unknown key 'tsl' in the file; did you mean 'tls'?"),
    ] {
        let begin = if line == 0 { String::new() } else { format!("line {line}: ") };
        let is_it = |fault: &String| fault.starts_with(&begin) && fault.contains(part);
        assert!(faults.iter().any(is_it), "{line}: {part} is none of {faults:#?}");
    }
    assert_eq!(faults.len(), 21, "{faults:#?}");
}

#[test]
fn a_log_has_room_for_the_longest_stamped_message_or_is_refused() {
    let folder = folder();
    let log = |keys: &str| {
        let text = format!(
            "[logs.a]\nfolder = \"a\"\n{keys}\nlisten = [\"relp://127.0.0.1:0?stamp=prefix\"]\n"
        );
        read(folder.path(), &text)
    };
    log("buffer_bytes = \"1088KiB\"").unwrap();
    let faults = log("buffer_bytes = \"1MiB\"").unwrap_err();
    assert!(faults[0].starts_with("[logs.a]: buffer_bytes must hold a record of 10496"));
    assert_eq!(faults.len(), 1, "{faults:?}");
    // The program's arguments can also form a configuration without a file.
    let mut config = log("").unwrap();
    Server::start(config.clone()).unwrap();
    config.logs[0].buffer_bytes = Some(1 << 20);
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("(a message with stamp=prefix)"), "{error}");
    assert_eq!(Server::start(config.clone()).unwrap_err().to_string(), error);
    config.logs[0].buffer_bytes = None;
    config.limits.message_bytes = 64 << 20;
    let error = Server::start(config).unwrap_err().to_string();
    assert!(error.ends_with("lower message_bytes"), "{error}");
}

#[test]
fn invalid_toml_is_named_with_its_line() {
    let folder = folder();
    let faults = read(folder.path(), "[logs.a]\nfolder = \"a\nlisten = [\n").unwrap_err();
    assert!(faults[0].starts_with("line 2: ") && faults[1].starts_with("line 3: "), "{faults:?}");
    assert_eq!(faults.len(), 2, "{faults:?}");
    let faults = read(folder.path(), "").unwrap_err();
    assert_eq!(faults, ["line 1: no log: add [logs.NAME] with folder and listen"]);
    let error = Config::from_file(Path::new("/none/wrote.toml")).unwrap_err().to_string();
    assert_eq!(error, "/none/wrote.toml: No such file or directory (os error 2)");
}

#[test]
fn a_fault_in_a_named_file_is_told_once() {
    let folder = folder();
    fs::copy(folder.path().join("cert.pem"), folder.path().join("key.pem")).unwrap();
    let faults = read(
        folder.path(),
        "[logs.a]\nfolder = \"a\"\nlisten = [\"tls://127.0.0.1:1\", \"relps://127.0.0.1:2\"]\n\
         [tls]\ncert_file = \"cert.pem\"\nkey_file = \"key.pem\"\n",
    )
    .unwrap_err();
    assert!(faults[0].contains("key.pem: has no private key"), "{faults:?}");
    assert_eq!(faults.len(), 1, "{faults:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The example is cut and changed at random positions.
    #[test]
    fn any_text_is_read_or_has_a_line_that_says_why_not(
        changes in vec((any::<Index>(), any::<Index>(), "[\\[\\]{}=\",.a-z0-9\n ]{0,3}"), 1..4)
    ) {
        let folder = fixtures::folder();
        let mut text: Vec<char> = EXAMPLE.chars().collect();
        for (begin, len, put) in changes {
            let begin = begin.index(text.len());
            let end = text.len().min(begin + len.index(40));
            text.splice(begin..end, put.chars());
        }
        let text: String = text.into_iter().collect();
        let lines = text.lines().count().max(1);
        // The files that the example names do not exist.
        for fault in read(folder.path(), &text).unwrap_err() {
            let Some(fault) = fault.strip_prefix("line ") else { continue };
            let (line, why) = fault.split_once(": ").unwrap();
            prop_assert!((1..=lines + 1).contains(&line.parse::<usize>().unwrap()), "{fault}");
            prop_assert!(!why.is_empty());
        }
    }
}
