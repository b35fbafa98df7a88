//! The verb `pattern`: saves a file in one of the ways that `cargo xtask lab trace` compares.

use super::Trouble;
use crate::runs::trace::PATTERNS;
use std::path::PathBuf;

/// Options of the verb.
#[derive(clap::Args)]
pub struct Arguments {
    /// The name of the pattern.
    name: String,
    /// A folder that has been prepared for it.
    folder: PathBuf,
}

/// Takes all steps of the pattern.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    let pattern = PATTERNS.iter().find(|pattern| pattern.name == arguments.name);
    let pattern = pattern.ok_or("no such pattern")?;
    pattern.run(&arguments.folder, pattern.steps().len())?;
    Ok(())
}
