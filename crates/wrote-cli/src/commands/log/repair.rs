//! `wrote log repair`: what is whole can be read again, what was there is kept aside.

use super::verify;
use crate::args::{LogRepairArgs, LogVerifyArgs};
use crate::output;
use std::io::{self, Write};
use wrote::log::{Repaired, repair};
use wrote_report::plain;
use wrote_result::units::counted;
use wrote_result::{Error, Stop};

pub(super) fn run(arguments: &LogRepairArgs, stop: &Stop) -> Result<(), Error> {
    let folder = &arguments.folder;
    if arguments.dry_run {
        let arguments = LogVerifyArgs { folder: folder.clone(), json: false, quiet: false };
        return verify::run(&arguments, stop);
    }
    super::super::outlive_the_size_limit()?;
    let repaired = repair(folder).map_err(|error| super::super::of_library(&error))?;
    output::to_stdout(|out| write(&repaired, out))
}

fn write(repaired: &Repaired, out: &mut dyn Write) -> io::Result<()> {
    verify::write_damage(&repaired.damage, out)?;
    for path in &repaired.kept_aside {
        writeln!(out, "kept as it was: {}", plain(&path.to_string_lossy()))?;
    }
    let records = counted(repaired.records, "record");
    match (repaired.damage.is_empty(), repaired.records) {
        (true, _) => writeln!(out, "nothing to repair: {records}, whole"),
        (false, 1) => writeln!(out, "repaired: 1 record is there"),
        (false, _) => writeln!(out, "repaired: {records} are there"),
    }
}
