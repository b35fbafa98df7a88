//! Kills a process that writes to a store, repeatedly. The store must then be in the state after
//! the last finished call, or after the interrupted one.

use crate::machine::{TypeConfig, entry, id};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::{EntryPayload, LogId, RaftLogReader, Vote};
use raft_log::{LogStore, Sizes};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ROUNDS: u64 = 40;
/// A batch of the writer fits into one buffer, so it is either whole or missing.
const SIZES: Sizes = Sizes { segment_bytes: 32 << 10, buffer_bytes: 8 << 10 };
/// Environment variables with the writer's folder and the seed of its calls.
const FOLDER: &str = "RAFT_LOG_FOLDER";
const SEED: &str = "RAFT_LOG_SEED";

#[tokio::test]
async fn a_killed_store_has_every_call_that_returned() {
    if let (Some(folder), Ok(seed)) = (std::env::var_os(FOLDER), std::env::var(SEED)) {
        return write_for_ever(Path::new(&folder), seed.parse().unwrap()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut chance = Chance(clock.as_nanos() as u64);
    let (mut expected, mut interrupted) = (Model::default(), 0);
    for _ in 0..ROUNDS {
        let seed = chance.draw();
        let calls = kill(folder.path(), seed, chance.below(40), chance.below(4_000));
        let mut drawn = Chance(seed);
        for _ in 0..calls {
            let call = expected.draw(&mut drawn);
            expected.apply(&call);
        }
        let found = Model::of(&mut open(folder.path()).await).await;
        if found != expected {
            let call = expected.draw(&mut drawn);
            expected.apply(&call);
            assert!(found == expected, "seed {seed}, {calls} calls, then {call:?}");
            interrupted += 1;
        }
    }
    println!("{interrupted} of {ROUNDS} kills came behind the effect of a call, before its return");
}

/// Starts the writer, kills it after some finished calls and microseconds, and returns how many
/// calls it finished.
fn kill(folder: &Path, seed: u64, calls: u64, micros: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::a_killed_store_has_every_call_that_returned", "--nocapture"])
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut finished = 0;
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        assert_eq!(line, "finished");
        finished += 1;
        if finished == calls + 1 {
            thread::sleep(Duration::from_micros(micros));
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(finished > calls, "the writer ended by itself");
    finished
}

/// Calls a store until the process is killed.
async fn write_for_ever(folder: &Path, seed: u64) {
    let mut chance = Chance(seed);
    let mut store = open(folder).await;
    let mut model = Model::of(&mut store).await;
    loop {
        let call = model.draw(&mut chance);
        call.make(&mut store).await;
        model.apply(&call);
        // One write: a line is whole or missing.
        std::io::stderr().write_all(b"finished\n").unwrap();
    }
}

async fn open(folder: &Path) -> LogStore<TypeConfig> {
    LogStore::open_with(folder, SIZES).await.unwrap()
}

/// A call by openraft.
#[derive(Debug)]
enum Call {
    Vote(Vote<u64>),
    Committed(LogId<u64>),
    Append(Vec<(LogId<u64>, String)>),
    Truncate(LogId<u64>),
    Purge(LogId<u64>),
}

impl Call {
    async fn make(&self, store: &mut LogStore<TypeConfig>) {
        let made = match self {
            Call::Vote(vote) => store.save_vote(vote).await,
            Call::Committed(id) => store.save_committed(Some(*id)).await,
            Call::Append(batch) => {
                let entries =
                    batch.iter().map(|(id, text)| entry(id.leader_id.term, id.index, text));
                store.blocking_append(entries.collect::<Vec<_>>()).await
            }
            Call::Truncate(id) => store.truncate(*id).await,
            Call::Purge(id) => store.purge(*id).await,
        };
        made.unwrap();
    }
}

/// The content of a store.
#[derive(Debug, Default, PartialEq, Eq)]
struct Model {
    vote: Option<Vote<u64>>,
    committed: Option<LogId<u64>>,
    purged: Option<LogId<u64>>,
    last: Option<LogId<u64>>,
    entries: BTreeMap<u64, (LogId<u64>, String)>,
}

impl Model {
    async fn of(store: &mut LogStore<TypeConfig>) -> Model {
        let state = store.get_log_state().await.unwrap();
        let mut model = Model {
            vote: store.read_vote().await.unwrap(),
            committed: store.read_committed().await.unwrap(),
            purged: state.last_purged_log_id,
            last: state.last_log_id,
            entries: BTreeMap::new(),
        };
        for entry in store.try_get_log_entries(..).await.unwrap() {
            let EntryPayload::Normal(text) = entry.payload else { panic!("it has a text") };
            model.entries.insert(entry.log_id.index, (entry.log_id, text));
        }
        model
    }

    /// Draws the next call.
    fn draw(&self, chance: &mut Chance) -> Call {
        let term = self.vote.map_or(0, |vote| vote.leader_id.term);
        let next = self.last.map_or(0, |last| last.index + 1);
        let first = self.purged.map_or(0, |purged| purged.index + 1);
        let some = first + chance.below(next - first + 1);
        match chance.below(12) {
            0 => Call::Vote(Vote::new(term + 1, 0)),
            1 => Call::Committed(id(term, some)),
            2 => Call::Truncate(id(term, some)),
            3 | 4 if some < next => Call::Purge(self.entries[&some].0),
            5 if chance.below(3) == 0 => Call::Purge(id(term, next + chance.below(50))),
            _ => Call::Append(
                (next..=next + chance.below(6))
                    .map(|index| {
                        let text = index.to_string().repeat(chance.below(200) as usize);
                        (id(term, index), text)
                    })
                    .collect(),
            ),
        }
    }

    fn apply(&mut self, call: &Call) {
        match call {
            Call::Vote(vote) => self.vote = Some(*vote),
            Call::Committed(id) => self.committed = Some(*id),
            Call::Append(batch) => {
                let new = batch.iter().map(|(id, text)| (id.index, (*id, text.clone())));
                self.entries.extend(new);
            }
            Call::Truncate(id) => drop(self.entries.split_off(&id.index)),
            Call::Purge(id) => {
                self.entries = self.entries.split_off(&(id.index + 1));
                self.purged = Some(*id);
            }
        }
        self.last = self.entries.values().next_back().map(|(id, _)| *id).or(self.purged);
    }
}

/// Chances from a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}
