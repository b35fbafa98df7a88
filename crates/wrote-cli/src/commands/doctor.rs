//! `wrote doctor`: what holds the disk back.

use crate::args::DoctorArgs;
use crate::output::{self, ResultFile};
use wrote_machine::doctor;
use wrote_report::write_examination;
use wrote_result::Error;

pub(super) fn run(arguments: &DoctorArgs) -> Result<(), Error> {
    if arguments.schema {
        let schema = wrote_result::doctor::schema();
        return output::to_stdout(|out| writeln!(out, "{schema:#}"));
    }
    let file = ResultFile::of(arguments.to.output.as_deref(), arguments.to.force)?;
    let examination = doctor::examine(&arguments.path)?;
    output::deliver(file, |screen, out| {
        write_examination(&examination, arguments.format, arguments.all, screen, out)
    })
}
