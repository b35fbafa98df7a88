//! The error type of everything that touches an object store.

use std::path::PathBuf;

/// The maximum number of characters of a store's own message: some answer with a whole page.
const WORDS_MAX: usize = 300;

/// Why a segment was not shipped, or can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A URL that does not name a store.
    #[error("{url}: {because}")]
    Url {
        /// The URL as it was given.
        url: String,
        /// The fault, and the right form.
        because: String,
    },
    /// The store could not be reached, or refused. The same request may succeed later.
    #[error("{object}: {words}")]
    Store {
        /// The object, or the whole store, as a URL.
        object: String,
        /// The store's or the network's own words, in one line.
        words: String,
    },
    /// The store holds an object of this name with other bytes than the local segment's. One of the
    /// two belongs to another log, or to another history of this one.
    #[error("{object} holds other bytes than {}: {because}; ship this log to another URL",
        path.display())]
    Differs {
        /// The object's URL.
        object: String,
        /// The local segment.
        path: PathBuf,
        /// The difference.
        because: String,
    },
    /// Segments between those in the store and those in the folder are in neither.
    #[error("segments {} to {} are neither in {url} nor in {}; they were removed before they were \
        shipped; ship the rest to another URL", numbers.0, numbers.1,
        folder.display())]
    Missing {
        /// The store.
        url: String,
        /// The local log.
        folder: PathBuf,
        /// The numbers of the first and the last segment.
        numbers: (u64, u64),
    },
    /// An object no longer holds its records.
    #[error("{object}: {because}")]
    Damaged {
        /// The object's URL.
        object: String,
        /// The damage in words.
        because: String,
    },
    /// A URL under which there is no segment.
    #[error("{url}: there is no log here")]
    Empty {
        /// The URL.
        url: String,
    },
    /// A store that replaces an object which was to be created, or can't be asked to create only.
    #[error(
        "{url}: {words}; without If-None-Match two shippers could overwrite each other's \
        segments: ship to a store that has it"
    )]
    ReplacesObjects {
        /// The store.
        url: String,
        /// The action of the store.
        words: String,
    },
    /// A segment that is too long for one request.
    #[error("{}: {bytes} bytes are more than 128 MiB, the most of a segment that is shipped; write \
        the log with shorter segments", path.display())]
    TooLong {
        /// The segment.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// The local log, or a copy of a segment on the local disk, could not be read or written.
    #[error(transparent)]
    Log(#[from] wrote::Error),
    /// A file in the same folder as the log, or a thread, could not be used.
    #[error("{what}: {source}")]
    Local {
        /// The file, or the action.
        what: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The caller's flag was raised.
    #[error("interrupted")]
    Interrupted,
}

impl StoreError {
    /// Returns whether the same may succeed later without a change by a person: the store, the
    /// network or the disk was in the way.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Store { .. } | StoreError::Local { .. } | StoreError::Log(_))
    }

    /// Makes the error of a request about an object.
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
