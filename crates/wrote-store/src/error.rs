//! The error type of everything that uses an object store.

use std::path::PathBuf;

/// The maximum number of characters taken from a store's own message. Some stores answer with a
/// whole web page.
const WORDS_MAX: usize = 300;

/// The reason why a segment was not shipped or can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A URL that does not name a store.
    #[error("{url}: {because}")]
    Url {
        /// The URL as it was given.
        url: String,
        /// The error in the URL, and the correct form.
        because: String,
    },
    /// The store could not be reached, or it refused the request. The same request may succeed
    /// later.
    #[error("{object}: {words}")]
    Store {
        /// The URL of the object or of the whole store.
        object: String,
        /// The message of the store or the network, in one line.
        words: String,
    },
    /// The store has an object with the segment's name, but its bytes differ from the local
    /// segment's. One of the two belongs to another log, or to another history of the same log.
    #[error("{object} has other content than {}: {because}; ship this log to another URL",
        path.display())]
    Differs {
        /// The object's URL.
        object: String,
        /// The path of the local segment.
        path: PathBuf,
        /// A description of the difference.
        because: String,
    },
    /// Segments between those in the store and those in the folder are missing from both.
    #[error("segments {} to {} are neither in {url} nor in {}; they were removed before they were \
        shipped; ship the rest to another URL", numbers.0, numbers.1,
        folder.display())]
    Missing {
        /// The URL of the store.
        url: String,
        /// The folder of the local log.
        folder: PathBuf,
        /// The numbers of the first and the last missing segment.
        numbers: (u64, u64),
    },
    /// An object no longer has all of its records.
    #[error("{object}: {because}")]
    Damaged {
        /// The object's URL.
        object: String,
        /// A description of the damage.
        because: String,
    },
    /// A URL under which there is no segment.
    #[error("{url}: there is no log here")]
    Empty {
        /// The URL.
        url: String,
    },
    /// A store that replaces an existing object when asked to create it, or that does not support
    /// requests that only create.
    #[error(
        "{url}: {words}; without If-None-Match two shippers could overwrite each other's \
        segments: ship to a store that has it"
    )]
    ReplacesObjects {
        /// The URL of the store.
        url: String,
        /// A description of what the store did.
        words: String,
    },
    /// A segment that is too long for one request.
    #[error("{}: {bytes} bytes are more than 128 MiB, the limit for a shipped segment; write the \
             log with shorter segments", path.display())]
    TooLong {
        /// The path of the segment.
        path: PathBuf,
        /// The length of the segment in bytes.
        bytes: u64,
    },
    /// The local log, or a local copy of a segment, could not be read or written.
    #[error(transparent)]
    Log(#[from] wrote::Error),
    /// A file in the same folder as the log, or a thread, could not be used.
    #[error("{what}: {source}")]
    Local {
        /// The file or the action.
        what: String,
        /// The error that the kernel returned.
        source: std::io::Error,
    },
    /// The caller set the stop flag.
    #[error("interrupted")]
    Interrupted,
}

impl StoreError {
    /// Returns whether the same request may succeed later without anybody's intervention, which is
    /// the case after an error of the store, the network or the disk.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Store { .. } | StoreError::Local { .. } | StoreError::Log(_))
    }

    /// Creates the error for a failed request about an object.
    pub(crate) fn of_store(object: String, error: &object_store::Error) -> StoreError {
        let words = error.to_string();
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = match words.char_indices().nth(WORDS_MAX) {
            Some((end, _)) => format!("{}...", &words[..end]),
            None => words,
        };
        StoreError::Store { object, words }
    }

    pub(crate) fn local(what: impl Into<String>, source: std::io::Error) -> StoreError {
        StoreError::Local { what: what.into(), source }
    }
}
