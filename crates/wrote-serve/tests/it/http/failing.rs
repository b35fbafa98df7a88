//! Failing and full disks: no answer is wrong, and the server recovers by itself.

use super::client::Client;
use crate::serving::{Serving, address};
use fixtures::{Mounted, leave_room_for, or_skip};
use std::path::Path;
use wrote::engine::{Fault, Sim};
use wrote::{Log, LogReader, SyncPolicy};
use wrote_serve::{Config, Server};

/// The number of runs. In each, another operation of the simulated disk fails.
const FAULTS: u64 = 40;

#[test]
fn after_a_failed_write_or_flush_each_record_that_was_acknowledged_is_there() {
    let (mut refused, folder) = (0, Path::new("/sim/log"));
    for number in 0..FAULTS {
        let sim = Sim::new(number);
        let listen = vec!["http://127.0.0.1:0".parse().unwrap()];
        let mut config = Config::of_log(folder, listen);
        config.limits.free_bytes = 0;
        let disk = sim.clone();
        let server = Server::start_with(config, move |log| {
            Log::options().sync(SyncPolicy::Always).on(&disk.disk()).open(&log.folder)
        });
        let server = server.unwrap();
        let (listen, handle) = (server.listeners().remove(0), server.handle());
        let thread = std::thread::spawn(|| server.run());
        sim.fault(sim.operations() + number, Fault::Once(5));
        let mut acknowledged = Vec::new();
        let mut client = Client::connect(address(&listen));
        for request in 0..20 {
            let record = format!("record {request}");
            let answer = client.append(&record);
            if answer.code == 200 {
                acknowledged.push(record.into_bytes());
                continue;
            }
            assert_eq!((answer.code, answer.header("retry-after")), (503, Some("1")));
            refused += 1;
            break;
        }
        handle.stop();
        // The log may have failed.
        let _ = thread.join().unwrap();
        sim.restart();
        let records = LogReader::open_on(&sim.disk(), folder, 0).unwrap();
        let records: Vec<_> = records.map(|record| record.unwrap().bytes).collect();
        // The last may be there without its answer.
        assert!(records.starts_with(&acknowledged), "fault {number}");
    }
    assert!(refused > 0, "no fault met a request");
}

#[test]
fn a_full_disk_is_answered_by_503_and_with_room_again_appends_go_on() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.limits.free_bytes = 0;
        config.logs[0].folder = mounted.path().join("log");
        config.logs[0].options = Log::options().sync(SyncPolicy::Always).segment_bytes(512 << 10);
        config.logs[0].buffer_bytes = Some(32 << 10);
    });
    let ballast = leave_room_for(mounted.path(), 4 << 20);
    let (mut acknowledged, mut number) = (Vec::new(), 0);
    let mut append = |client: &mut Client, code| {
        number += 1;
        let record = format!("{number} {}", "x".repeat(5000));
        let answer = client.append(&record);
        if answer.code == 200 {
            acknowledged.push(record.into_bytes());
        }
        assert!([200, 503].contains(&answer.code), "{}", answer.text());
        answer.code == code
    };
    let mut client = Client::connect(serving.address());
    while !append(&mut client, 503) {}
    let answer = Client::connect(serving.address()).get("/records?from=0&limit=10");
    assert_eq!(answer.code, 200, "it can be read: {}", answer.text());
    std::fs::remove_file(ballast).unwrap();
    // Requests are refused until the log has found room.
    while !append(&mut Client::connect(serving.address()), 200) {}
    let mut records = serving.stop();
    records.retain(|record| acknowledged.contains(record));
    records.dedup();
    assert!(records == acknowledged, "each that was acknowledged is there, in order");
}
