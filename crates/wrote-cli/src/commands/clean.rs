//! `wrote clean`: removes the leftovers of killed runs, and reports them.

use super::shown;
use crate::args::CleanArgs;
use crate::output;
use std::io::{self, Write};
use wrote_bench::scratch;
use wrote_bench::scratch::Cleaned;
use wrote_result::{Error, units};

pub(super) fn run(arguments: &CleanArgs) -> Result<(), Error> {
    let mut cleaned = scratch::clean(&arguments.path)?;
    let refused = std::mem::take(&mut cleaned.refused);
    output::to_stdout(|out| write(&cleaned, refused.is_empty(), out))?;
    // Each is a separate line; the last one is also the command's error.
    let Some((last, others)) = refused.split_last() else {
        return Ok(());
    };
    others.iter().for_each(|line| crate::stderr::complain(line));
    Err(Error::Failed(last.clone()))
}

/// Reports the removed folders, and the folders that stay because their runs still live.
fn write(cleaned: &Cleaned, is_all: bool, out: &mut dyn Write) -> io::Result<()> {
    for leftover in &cleaned.removed {
        let size = units::bytes(leftover.size_bytes);
        writeln!(out, "removed {} ({size})", shown(&leftover.path))?;
    }
    for leftover in &cleaned.alive {
        writeln!(out, "kept {}: its run still lives", shown(&leftover.path))?;
    }
    if is_all && cleaned.removed.is_empty() && cleaned.alive.is_empty() {
        writeln!(out, "nothing to clean")?;
    }
    Ok(())
}
