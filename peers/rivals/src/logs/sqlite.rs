//! SQLite in WAL mode with `synchronous=FULL`: a table of blobs. It is a separate file, as each
//! peer is.

use super::check;
use rusqlite::{Connection, params};
use std::path::Path;
use trial::Result;
use trial::append::{Messages, gathered};
use trial::outcome::Outcome;
use trial::place::Place;

const CREATE: &str = "CREATE TABLE messages (sequence INTEGER PRIMARY KEY, message BLOB NOT NULL)";
const INSERT: &str = "INSERT INTO messages (message) VALUES (?1)";
const COUNT: &str = "SELECT count(*) FROM messages";

fn open(folder: &Place) -> Result<Connection> {
    let connection = Connection::open(folder.path().join("messages.sqlite"))?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(format!("SQLite's journal_mode is {mode}").into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute(CREATE, [])?;
    Ok(connection)
}

/// Commits a transaction of all waiting messages.
pub fn gathered(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let mut connection = open(&folder)?;
    let commit = |messages: &[Vec<u8>]| {
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare_cached(INSERT)?;
        for message in messages {
            insert.execute(params![message])?;
        }
        drop(insert);
        Ok(transaction.commit()?)
    };
    let appended = gathered::by_threads(messages, commit)?;
    let stored: i64 = connection.query_row(COUNT, [], |row| row.get(0))?;
    check("SQLite", stored as u64, appended)
}
