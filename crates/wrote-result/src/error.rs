//! The errors of measurements.

/// The error of a measurement. Its text is one line, ready to be shown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request makes no sense: exit 2.
    #[error("{0}")]
    Usage(String),
    /// The request could not be done: exit 1.
    #[error("{0}")]
    Failed(String),
    /// The run was stopped (see [`crate::Stop`]), and its files are removed.
    #[error("interrupted")]
    Interrupted,
}

impl From<wrote::Error> for Error {
    fn from(error: wrote::Error) -> Error {
        Error::Failed(error.to_string())
    }
}
