//! Appends messages to raft-engine, one log for many raft groups, in which writers that wait at the
//! same time share a flush.

use protobuf::descriptor::UninterpretedOption;
use raft_engine::{Config, Engine, LogBatch, MessageExt};
use std::path::Path;
use trial::Result;
use trial::append::Messages;
use trial::append::crew::{self, Timing};
use trial::outcome::Outcome;
use trial::place::Place;

/// The type of entries. raft-engine requires a protobuf message with an index. The message type
/// used here is part of protobuf itself, and has a number and bytes.
struct Numbered;

impl MessageExt for Numbered {
    type Entry = UninterpretedOption;

    fn index(entry: &UninterpretedOption) -> u64 {
        entry.get_positive_int_value()
    }
}

/// Writes a batch with a single entry for each message, with `sync`. Each producer is a raft group.
pub fn each(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let dir = folder.path().display().to_string();
    let engine = Engine::open(Config { dir, ..Config::default() })?;
    let groups = 1..=u64::from(messages.work.producers);
    let steps = groups.clone().map(|group| {
        let (engine, mut batch, mut index) = (&engine, LogBatch::default(), 0);
        move |message: &[u8]| {
            index += 1;
            let mut entry = UninterpretedOption::new();
            entry.set_positive_int_value(index);
            entry.set_string_value(message.to_vec());
            batch.add_entries::<Numbered>(group, &[entry])?;
            engine.write(&mut batch, true)?;
            Ok(())
        }
    });
    let appended = crew::append(messages, steps.collect(), Timing::Each, || Ok(()))?;
    let stored: u64 = groups.filter_map(|group| engine.last_index(group)).sum();
    if stored == appended.operations {
        return Ok(appended);
    }
    Err(format!("raft-engine has {stored} messages").into())
}
