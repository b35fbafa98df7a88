//! Shipping: segments are copied to the store without delaying messages. Only retention waits for
//! the store.

use crate::http::client::Client;
use crate::serving::Serving;
use fixtures::{Mounted, leave_room_for, or_skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wrote::log::Segment;
use wrote::{Log, LogReader, SyncPolicy};
use wrote_serve::Config;

const HANG: Duration = Duration::from_secs(120);

/// Starts a server with small segments that retention removes as soon as possible.
fn start(store: &Path) -> Serving {
    start_with(store, |_| ())
}

fn start_with(store: &Path, change: impl FnOnce(&mut Config)) -> Serving {
    Serving::start("http://127.0.0.1:0", |config| {
        config.logs[0].options =
            Log::options().sync(SyncPolicy::Always).buffers(2).segment_bytes(32 << 10);
        config.logs[0].retain_bytes = Some(1);
        config.logs[0].store = Some(format!("file://{}", store.display()));
        config.metrics = Some("127.0.0.1:0".to_owned());
        change(config);
    })
}

fn append(client: &mut Client, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let body = format!("{number:0>1000}\n");
        assert_eq!(client.append(&body).code, 200, "record {number}");
    }
}

fn numbers(folder: &Path) -> Vec<u64> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut numbers: Vec<u64> = names.filter_map(|name| Segment::number_in(&name)).collect();
    numbers.sort_unstable();
    numbers
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < HANG, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn metric(serving: &Serving, name: &str) -> f64 {
    let page = Client::connect(&serving.metrics_address()).get("/metrics");
    let prefix = format!("wrote_serve_{name}{{");
    let line = page.text().lines().find(|line| line.starts_with(&prefix)).map(str::to_owned);
    line.unwrap_or_else(|| panic!("{name}")).rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// Copies the segments of the store and of the log into one folder, and reads them all.
fn all(store: &Path, log: &Path) -> Vec<Vec<u8>> {
    let whole = TempDir::new().unwrap();
    for (folder, number) in [store, log]
        .iter()
        .flat_map(|folder| numbers(folder).into_iter().map(move |number| (folder, number)))
    {
        let name = Segment::name(number);
        fs::copy(folder.join(&name), whole.path().join(&name)).unwrap();
    }
    LogReader::open(whole.path(), 0).unwrap().map(|record| record.unwrap().bytes).collect()
}

#[test]
fn only_segments_in_the_store_are_removed_here() {
    let kept = TempDir::new().unwrap();
    let store: PathBuf = kept.path().join("events");
    let serving = start(&store);
    let mut client = Client::connect(serving.address());
    append(&mut client, 0..400);
    until("segments are shipped and removed", || numbers(&serving.folder)[0] > 8);
    // The number of waiting segments is from the last check, which may have been before the last
    // append.
    until("most is shipped", || metric(&serving, "log_shipped_sequence") > 300.0);
    until("no segment waits", || metric(&serving, "log_unshipped_segments") == 0.0);
    let (stored, local) = (numbers(&store), numbers(&serving.folder));
    assert_eq!(stored[0], 1, "the store keeps what is removed here");
    assert!(local[0] <= stored.last().unwrap() + 1, "{stored:?} {local:?}");
    let folder = serving.folder.clone();
    drop(client);
    let mut serving = serving;
    serving.end().unwrap();
    let found = all(&store, &folder);
    assert_eq!(found.len(), 400);
    for (number, bytes) in found.iter().enumerate() {
        assert_eq!(bytes, format!("{number:0>1000}").as_bytes());
    }
}

#[test]
fn at_the_disks_floor_the_stores_error_is_named_and_with_the_store_back_messages_are_taken_again() {
    const FLOOR_BYTES: u64 = 8 << 20;
    let mounted = or_skip!(Mounted::image("ext4", 64 << 20));
    let kept = TempDir::new().unwrap();
    let store = kept.path().join("events");
    fs::write(&store, "in the way").unwrap();
    let serving = start_with(&store, |config| {
        config.logs[0].folder = mounted.path().join("log");
        config.limits.free_bytes = FLOOR_BYTES;
    });
    let _ballast = leave_room_for(mounted.path(), FLOOR_BYTES + (4 << 20));
    let operators = serving.metrics_address();
    let (mut answered, mut next) = (Vec::new(), 0);
    let mut append = || {
        next += 1;
        let body = format!("{next:0>4000}");
        let code = Client::connect(serving.address()).append(&body).code;
        match code {
            200 => answered.push(body.into_bytes()),
            503 => {}
            other => panic!("record {next}: {other}"),
        }
        code
    };
    until("the disk reaches its floor", || append() == 503);
    // The first refusal may be up to a second before the first attempt to ship.
    let mut told = String::new();
    until("the store's error is named", || {
        told = Client::connect(&operators).get("/readyz").text().to_owned();
        told.contains("segments wait to be shipped: ")
    });
    assert!(told.contains("bytes are free, ") && told.contains("events"), "{told}");
    assert_eq!(append(), 503);
    assert_eq!(numbers(&serving.folder)[0], 1, "nothing was removed to make room");
    fs::remove_file(&store).unwrap();
    // Nothing is appended until then, so only shipping can make room.
    until("the server is ready again", || Client::connect(&operators).get("/readyz").code == 200);
    assert_eq!(append(), 200);
    // The server becomes ready once there is any room; more is freed as more segments are shipped.
    until("what is shipped is removed", || numbers(&serving.folder)[0] > 8);
    let (folder, mut serving) = (serving.folder.clone(), serving);
    serving.end().unwrap();
    // The log may also contain a message that was not answered.
    let mut found = all(&store, &folder);
    found.retain(|record| answered.contains(record));
    assert!(found == answered, "each that was answered is there once, in order");
}

#[test]
fn a_wrong_store_and_a_log_of_lines_are_told_with_their_line() {
    let folder = fixtures::folder();
    let path = folder.path().join("wrote.toml");
    let read = |log: &str| {
        let text =
            format!("[logs.events]\nfolder = \"events\"\nlisten = [\"tcp://127.0.0.1:0\"]\n{log}");
        fs::write(&path, text).unwrap();
        wrote_serve::Config::from_file(&path)
    };
    for (log, part) in [
        ("store = \"ftp://host/x\"", "[logs.events]: ftp://host/x: ftp:// is not a store"),
        ("store = \"events\"", "[logs.events]: events: "),
        ("store = 5", "must be in quotes"),
    ] {
        let error = read(log).unwrap_err().to_string();
        assert!(error.contains(part) && error.lines().count() == 1, "{error}");
    }
    let url = format!("file://{}/not/made", folder.path().display());
    let config = read(&format!("store = \"{url}\"")).unwrap();
    assert_eq!(config.logs[0].store.as_deref(), Some(&*url));
    assert_eq!(config.check().unwrap(), [""; 0]);
    assert!(!folder.path().join("not").exists(), "a check makes nothing");
}
