//! SQLite in WAL mode with `synchronous=FULL`: a table of blobs.

use crate::gather::{self, Commit};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Mutex;
use trial::Result;
use trial::append::{Crew, Messages, Timing, Work};
use trial::outcome::Outcome;
use trial::place::Folder;

const CREATE: &str = "CREATE TABLE messages (sequence INTEGER PRIMARY KEY, message BLOB NOT NULL)";
const INSERT: &str = "INSERT INTO messages (message) VALUES (?1)";
const COUNT: &str = "SELECT count(*) FROM messages";

fn open(folder: &Folder) -> Result<Connection> {
    let connection = Connection::open(folder.path().join("messages.sqlite"))?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(format!("SQLite's journal_mode is {mode}").into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute(CREATE, [])?;
    Ok(connection)
}

fn check(connection: &Connection, messages: u64) -> Result<()> {
    let stored: i64 = connection.query_row(COUNT, [], |row| row.get(0))?;
    if stored as u64 == messages {
        Ok(())
    } else {
        Err(format!("SQLite has {stored} messages").into())
    }
}

/// Commits a transaction for each message.
pub fn each(work: &Work, messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Folder::make(path)?;
    let connection = Mutex::new(open(&folder)?);
    let step = |message: &[u8]| {
        let connection = connection.lock().map_err(|_| "a producer panicked")?;
        connection.prepare_cached(INSERT)?.execute(params![message])?;
        Ok(())
    };
    let crew = Crew { work, messages, timing: Timing::Each };
    let appended = crew.run(vec![step; work.producers as usize], || Ok(()))?;
    let connection = connection.into_inner().map_err(|_| "a producer panicked")?;
    check(&connection, work.messages)?;
    Ok(appended)
}

/// Commits a transaction of all waiting messages.
pub fn gathered(work: &Work, messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Folder::make(path)?;
    let mut connection = open(&folder)?;
    let appended = gather::run(work, messages, &mut connection)?;
    check(&connection, work.messages)?;
    Ok(appended)
}

impl Commit for &mut Connection {
    fn commit(&mut self, messages: &[Vec<u8>]) -> Result<()> {
        let transaction = self.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for message in messages {
                insert.execute(params![message])?;
            }
        }
        Ok(transaction.commit()?)
    }
}
