//! Tests of `wrote log ship`, and of logs at a URL: a folder as the store, and an S3 server on
//! loopback.

mod s3;

use crate::support::wrote;
use fixtures::{Finished, Running, finish, folder};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wrote::log::Segment;
use wrote::{Log, SyncPolicy};

const HANG: Duration = Duration::from_secs(120);

/// Appends these records of 100 bytes each to the log `events`, whose segments have 64 KiB.
fn append(folder: &Path, numbers: std::ops::Range<u64>) {
    let options = Log::options().sync(SyncPolicy::No).buffers(2).buffer_bytes(16 << 10);
    let log = options.segment_bytes(64 << 10).open(folder.join("events")).expect("a log");
    for number in numbers {
        // Closing the log waits for all records.
        assert_eq!(log.append(line(number).as_bytes()).expect("room").sequence(), number);
    }
    log.close().expect("a disk");
}

fn line(number: u64) -> String {
    format!("record {number:<93}")
}

fn lines(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| line(number) + "\n").collect()
}

fn log(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = wrote(&["log"]);
    command.args(arguments).current_dir(folder);
    command
}

/// Returns the standard output of a run, which must succeed.
fn said(command: &mut Command) -> String {
    let finished = finish(command);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
    finished.stdout
}

/// Returns the sequence that follows the last record in the store, from the last line.
fn shipped_to(finished: &Finished) -> u64 {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let (_, rest) = finished.stderr.split_once("all records before ").expect("a last line");
    rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a sequence")
}

fn store_of(folder: &Path) -> String {
    format!("file://{}/store", folder.display())
}

#[test]
fn shipped_records_are_read_from_the_url_as_from_the_folder() {
    let folder = folder();
    append(folder.path(), 0..5000);
    let url = store_of(folder.path());
    let end = shipped_to(&finish(&mut log(folder.path(), &["ship", "events", &url])));
    assert!(end > 4000 && end < 5000, "{end}");
    let run = |arguments: &[&str]| said(&mut log(folder.path(), arguments));
    assert_eq!(run(&["cat", &url]), lines(0..end));
    assert_eq!(run(&["cat", &url, "--from", "1234", "-n", "3"]), lines(1234..1237));
    assert_eq!(run(&["tail", &url]), lines(end - 10..end));
    let verified = run(&["verify", &url]);
    assert!(verified.starts_with(&format!("{end} records in ")), "{verified}");
    assert!(verified.trim_end().ends_with("intact"), "{verified}");
    let stat: Value = serde_json::from_str(&run(&["stat", "--json", &url])).expect("JSON");
    assert_eq!(
        (stat["first_sequence"].as_u64(), stat["end_sequence"].as_u64()),
        (Some(0), Some(end))
    );
    let table = run(&["stat", &url]);
    assert!(
        table.contains(&format!(
            "\nthe next record that the store gets is \
                                     {end}\n"
        )),
        "{table}"
    );
    let segments = numbers(&folder.path().join("store")).len();
    assert_eq!(table.lines().filter(|line| line.contains(".segment")).count(), segments);
    let json = run(&["cat", "--json", "--from", "1234", "-n", "3", &url]);
    assert_eq!(json, run(&["cat", "--json", "--from", "1234", "-n", "3", "events"]));
    // A second run ships nothing new.
    let again = finish(&mut log(folder.path(), &["ship", "events", &url]));
    assert!(again.stderr.starts_with("nothing new to ship; all records before"), "{again:?}");
    assert_eq!(shipped_to(&again), end);
    let second = folder.path().join("store/00000000000000000002.segment");
    fs::remove_file(&second).expect("ours");
    for verb in ["cat", "verify"] {
        let finished = finish(&mut log(folder.path(), &[verb, &url]));
        assert_eq!(finished.code(), Some(1), "{finished:?}");
    }
}

#[test]
fn a_wrong_url_or_folder_is_refused_in_one_line() {
    let folder = folder();
    append(folder.path(), 0..100);
    let missing = format!("file://{}/missing", folder.path().display());
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    let empty = format!("file://{}/empty", folder.path().display());
    for (arguments, code, part) in [
        (&["ship", "events", "ftp://host/x"][..], 2, "ftp:// is not a store"),
        (&["ship", "events", "store"], 2, "s3://bucket/prefix"),
        (&["ship", "nothing", &missing], 2, "nothing: there is no log"),
        (&["ship", "empty", &missing], 2, "there is no log here"),
        (&["cat", &missing], 2, "missing"),
        (&["cat", &empty], 2, "there is no log here"),
        (&["stat", &empty], 2, "there is no log here"),
        (&["verify", &empty], 2, "there is no log here"),
        (&["tail", "-f", &empty], 2, "follow the log's folder"),
        (&["tail", "-F", &missing], 2, "follow the log's folder"),
    ] {
        let finished = finish(&mut log(folder.path(), arguments));
        assert_eq!(finished.code(), Some(code), "{arguments:?}: {finished:?}");
        assert!(finished.complaint().contains(part), "{arguments:?}: {finished:?}");
    }
    assert!(!folder.path().join("missing").exists(), "a mistyped folder makes no store");
}

#[test]
fn following_it_ships_what_is_sealed_and_ctrl_c_ends_it() {
    let folder = folder();
    append(folder.path(), 0..2000);
    let url = store_of(folder.path());
    let mut command = log(folder.path(), &["ship", "--follow", "events", &url]);
    let complained = folder.path().join("complained");
    let stderr = fs::File::create(&complained).expect("a file");
    let mut running = Running::start(command.stderr(stderr).stdout(Stdio::piped()));
    let told = || fs::read_to_string(&complained).expect("text");
    let count = || numbers(&folder.path().join("store")).len();
    let first = running.until("the first segments", || Some(count()).filter(|count| *count > 0));
    append(folder.path(), 2000..5000);
    running.until("the later segments", || (count() > first + 3).then_some(()));
    // The command reports this once, and continues. The names are exchanged atomically, because the
    // command would recreate a store that is missing for a moment.
    let (store, aside) = (folder.path().join("store"), folder.path().join("aside"));
    fs::write(&aside, "in the way").expect("a file");
    let exchange = || renameat_with(CWD, &store, CWD, &aside, RenameFlags::EXCHANGE).expect("ours");
    exchange();
    append(folder.path(), 5000..7000);
    running.until("a complaint", || told().ends_with("; trying again\n").then_some(()));
    // The next attempt comes after two seconds. The test passes even if it is late.
    std::thread::sleep(Duration::from_millis(2200));
    exchange();
    let before = count();
    running.until("it goes on", || (count() > before + 1).then_some(()));
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    let told = told();
    let told: Vec<&str> = told.lines().collect();
    assert!(told[0].starts_with("wrote: ") && told[0].ends_with("; trying again"), "{told:?}");
    // The signal may arrive before the successful pass has finished and been reported.
    let complaints = told.iter().filter(|line| line.ends_with("; trying again")).count();
    assert_eq!(complaints, 1, "{told:?}");
    assert!(told.last().is_some_and(|line| line.starts_with("shipped ")), "{told:?}");
}

fn numbers(folder: &Path) -> Vec<u64> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut numbers: Vec<u64> = names.filter_map(|name| Segment::number_in(&name)).collect();
    numbers.sort_unstable();
    numbers
}

/// A server with small segments and a store, and a client that records the answers.
struct Served {
    address: String,
    config: String,
}

impl Served {
    fn new(folder: &Path, url: &str) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let text = format!(
            "[logs.events]\nfolder = \"events\"\nlisten = [\"http://{address}\"]\nstore = \
             \"{url}\"\n\
             buffers = 2\nbuffer_bytes = \"16KiB\"\nsegment_bytes = \"32KiB\"\nretain_bytes = 1\n\
             [limits]\nmessage_bytes = \"8KiB\"\nfree_bytes = 1\n"
        );
        let config = folder.join("wrote.toml").display().to_string();
        fs::write(&config, text).expect("a file");
        Served { address, config }
    }

    fn start(&self, with: impl FnOnce(&mut Command)) -> Running {
        let mut command = wrote(&["serve", "--config", &self.config]);
        with(command.stderr(Stdio::piped()).stdout(Stdio::piped()));
        Running::start(&mut command).within(HANG * 4)
    }

    /// Appends records until `is_enough` returns `true`, or until the server has gone. Returns the
    /// records that the server acknowledged.
    fn append(&self, next: &mut u64, is_enough: impl Fn(u64) -> bool) -> Vec<u64> {
        let (mut answered, began) = (Vec::new(), Instant::now());
        let mut stream = loop {
            match TcpStream::connect(&self.address) {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
            assert!(began.elapsed() < HANG, "it does not listen");
        };
        stream.set_read_timeout(Some(HANG)).expect("a socket");
        while !is_enough(*next) {
            let body = format!("{next:0>1000}");
            let head = format!(
                "POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            *next += 1;
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return answered;
            }
            let mut answer = [0; 4096];
            match stream.read(&mut answer) {
                Ok(len) if answer[..len].starts_with(b"HTTP/1.1 200") => answered.push(*next - 1),
                _ => return answered,
            }
        }
        answered
    }
}

#[test]
fn a_server_that_is_killed_between_the_store_and_the_removal_loses_and_doubles_nothing() {
    let folder = folder();
    let url = store_of(folder.path());
    let served = Served::new(folder.path(), &url);
    let last_stored = || numbers(&folder.path().join("store")).last().copied();
    let (mut next, mut answered) = (0, Vec::new());
    for round in 0..12_u64 {
        let before = last_stored();
        let mut server = served.start(|_| ());
        let (killed, to) = (next + 25, next + 60 + round * 7 % 40);
        answered.extend(served.append(&mut next, |next| next >= to));
        answered.extend(served.append(&mut next, |next| next >= killed + 60));
        // The server ships once per second, and then removes segments. The kill may come at any
        // point of this work.
        server.until("a stored segment", || (last_stored() > before).then_some(()));
        std::thread::sleep(Duration::from_micros(round * 700));
        server.send(Signal::KILL);
        while !server.is_over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (stored, local) =
            (numbers(&folder.path().join("store")), numbers(&folder.path().join("events")));
        let gone = *local.first().expect("the last segment stays");
        let shipped = stored.last().copied().unwrap_or(0);
        assert!(gone <= shipped + 1, "round {round}: {stored:?} {local:?}");
        assert_eq!(stored, (1..=shipped).collect::<Vec<_>>(), "round {round}");
    }
    assert!(numbers(&folder.path().join("events"))[0] > 3, "retention was at work");
    // Any bytes that recovery would set aside were never acknowledged.
    Log::open(folder.path().join("events")).expect("a log").close().expect("a disk");
    let end =
        serde_json::from_str::<Value>(&said(&mut log(folder.path(), &["stat", "--json", &url])));
    let end = end.expect("JSON")["end_sequence"].to_string();
    let stored = said(&mut log(folder.path(), &["cat", &url]));
    let local = said(&mut log(folder.path(), &["cat", "--from", &end, "events"]));
    let found = stored.lines().chain(local.lines()).map(|line| line.parse().expect("a number"));
    let found: Vec<u64> = found.collect();
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "nothing is there twice");
    let missing: Vec<_> =
        answered.iter().filter(|number| found.binary_search(number).is_err()).collect();
    assert!(missing.is_empty() && answered.len() > 300, "{missing:?} of {}", answered.len());
}
