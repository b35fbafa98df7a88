//! Failing and full disks: no answer is wrong, and the server recovers on its own.

use super::client::Client;
use crate::serving::Serving;
use fixtures::{Mounted, leave_room_for, or_skip};
use wrote::{Log, SyncPolicy};

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
    // Requests are refused until the log finds that there is room.
    while !append(&mut Client::connect(serving.address()), 200) {}
    let mut records = serving.stop();
    records.retain(|record| acknowledged.contains(record));
    records.dedup();
    assert!(records == acknowledged, "each that was acknowledged is there, in order");
}
