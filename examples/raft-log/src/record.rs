//! The bytes of an entry in the log: its index, then the entry as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// Bytes of the index, which a search reads without the entry.
const INDEX_BYTES: usize = 8;

/// Returns the bytes of the entry `index`.
pub fn encode(index: u64, entry: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = index.to_le_bytes().to_vec();
    serde_json::to_writer(&mut bytes, entry)?;
    Ok(bytes)
}

/// Returns the index of the entry in `bytes`.
pub fn index(bytes: &[u8]) -> io::Result<u64> {
    let first: Option<&[u8; INDEX_BYTES]> = bytes.first_chunk();
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "a record is no entry of raft");
    first.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(foreign)
}

/// Returns the entry in `bytes`.
pub fn decode<E: DeserializeOwned>(bytes: &[u8]) -> io::Result<E> {
    index(bytes)?;
    Ok(serde_json::from_slice(&bytes[INDEX_BYTES..])?)
}
