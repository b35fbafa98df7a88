//! `wrote doctor`: finds settings that cost speed or safety.

use crate::args::DoctorArgs;
use crate::output::{self, ResultFiles};
use wrote_jobs::machine::doctor;
use wrote_report::{Content, write_examination};
use wrote_result::Error;

pub(super) fn run(arguments: &DoctorArgs) -> Result<(), Error> {
    if arguments.schema {
        let schema = wrote_result::doctor::schema();
        return output::to_stdout(|out| writeln!(out, "{schema:#}"));
    }
    let files = ResultFiles::of(&arguments.to)?;
    let examination = doctor::examine(&arguments.path)?;
    let content = || Content::Examination(Box::new(examination.clone()));
    files.deliver("doctor.json", content, |screen, out| {
        write_examination(&examination, arguments.format, arguments.all, screen, out)
    })
}
