//! Why a measurement gave no result.

/// Why a measurement gave no result. The text is one line, ready to be shown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked makes no sense: exit 2.
    #[error("{0}")]
    Usage(String),
    /// What was asked could not be done: exit 1.
    #[error("{0}")]
    Failed(String),
    /// The run was stopped (see [`crate::Stop`]); what it had made is removed.
    #[error("interrupted")]
    Interrupted,
}

impl From<wrote::Error> for Error {
    fn from(error: wrote::Error) -> Error {
        Error::Failed(error.to_string())
    }
}
