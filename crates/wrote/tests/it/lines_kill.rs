//! Tests of `Lines` with eight producers in a process that is killed at any moment.

use crate::folder;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use wrote::{Lines, SyncPolicy};

/// The default number of kills; `WROTE_KILLS` sets another number.
const KILLS: u64 = 8;
const PRODUCERS: u64 = 8;
/// The environment variables of the process to be killed: the line file, the file of
/// acknowledgements, the policy, and the number of its first producer.
const CHILD: [&str; 4] =
    ["WROTE_TEST_LINES", "WROTE_TEST_SAID", "WROTE_TEST_WAY", "WROTE_TEST_PRODUCER"];
const WAYS: [SyncPolicy; 2] = [SyncPolicy::Always, SyncPolicy::No];

fn line(producer: u64, number: u64) -> String {
    let len = ((producer * 31 + number) * 7919 % 3001) as usize;
    format!("{producer} {number} {}", "x".repeat(len))
}

/// Appends until the process is killed.
fn append_for_ever([path, said, way, producer]: [OsString; 4]) {
    let number = |text: OsString| text.into_string().unwrap().parse::<u64>().unwrap();
    let options = Lines::options().sync(WAYS[number(way) as usize]).buffer_bytes(16 << 10);
    let lines = options.open(path).unwrap();
    let said = OpenOptions::new().append(true).open(said).unwrap();
    let first = number(producer);
    thread::scope(|scope| {
        for producer in first..first + PRODUCERS {
            let (lines, mut said) = (&lines, &said);
            scope.spawn(move || {
                for number in 0.. {
                    let ticket = lines.append(line(producer, number).as_bytes()).unwrap();
                    if number % 3 > 0 {
                        ticket.wait().unwrap();
                        said.write_all(format!("{producer} {number}\n").as_bytes()).unwrap();
                    }
                }
            });
        }
    });
}

/// Asserts that each producer's lines occur once, in order, and at least as far as they were
/// acknowledged.
fn check(path: &Path, said: &Path) {
    let lines = Lines::open(path).unwrap();
    drop(lines);
    let mut next = BTreeMap::<u64, u64>::new();
    for found in fs::read_to_string(path).unwrap().lines() {
        let producer = found.split(' ').next().unwrap().parse().unwrap();
        let next = next.entry(producer).or_default();
        assert!(found == line(producer, *next), "line {next} of producer {producer}: {found:?}");
        *next += 1;
    }
    for acknowledged in fs::read_to_string(said).unwrap().lines() {
        let (producer, number) = acknowledged.split_once(' ').unwrap();
        let (producer, number): (u64, u64) = (producer.parse().unwrap(), number.parse().unwrap());
        assert!(next.get(&producer) > Some(&number), "{acknowledged} was acknowledged");
    }
}

#[test]
fn a_killed_process_leaves_every_acknowledged_line_once_and_whole() {
    // W1, W9
    if let [Some(path), Some(said), Some(way), Some(producer)] = CHILD.map(std::env::var_os) {
        return append_for_ever([path, said, way, producer]);
    }
    let test = "a_killed_process_leaves_every_acknowledged_line_once_and_whole";
    let kills = std::env::var("WROTE_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    for (way, _) in WAYS.iter().enumerate() {
        let (_folder, path) = folder();
        let said = path.with_extension("said");
        File::create(&said).unwrap();
        for kill in 0..kills {
            let values = [
                path.clone().into_os_string(),
                said.clone().into_os_string(),
                way.to_string().into(),
                (kill * PRODUCERS).to_string().into(),
            ];
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(fixtures::alone(module_path!(), test))
                .arg("--nocapture")
                .envs(CHILD.into_iter().zip(values))
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_millis(5 + kill * 37 % 101));
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
            child.kill().unwrap();
            child.wait().unwrap();
            check(&path, &said);
        }
    }
}
