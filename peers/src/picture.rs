//! `cargo xtask picture`: measures for the pictures of the documents, and draws them.

mod pages;
mod stall;

use lab::tools::failure::Failure;

/// A picture of the documents, or a group of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Picture {
    /// Latencies of a disk that stalls, by a closed and by an open loop
    Stall,
    /// A benchmark's page beside its text, and each chart of `docs/measuring.md`
    Pages,
}

/// Makes the requested pictures, by default all.
pub fn picture(only: &[Picture]) -> Result<(), Failure> {
    let is_wanted = |picture| only.is_empty() || only.contains(&picture);
    if is_wanted(Picture::Stall) {
        stall::stall()?;
    }
    if is_wanted(Picture::Pages) {
        pages::pages()?;
    }
    Ok(())
}
