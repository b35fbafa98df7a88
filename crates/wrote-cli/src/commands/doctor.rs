//! `wrote doctor`: finds settings that cost speed or safety.

use crate::args::DoctorArgs;
use crate::output::{self, ResultFiles};
use wrote_jobs::machine::doctor;
use wrote_report::Content;
use wrote_result::Error;

pub(super) fn run(arguments: &DoctorArgs) -> Result<(), Error> {
    if arguments.schema {
        let schema = wrote_result::doctor::schema();
        return output::to_stdout(|out| writeln!(out, "{schema:#}"));
    }
    let files = ResultFiles::of(&arguments.to)?;
    let of = Box::new(doctor::examine(&arguments.path)?);
    let content = Content::Examination { of, all: arguments.all };
    files.deliver("doctor.json", content, arguments.format)
}
