//! Job files and reports as text: no job runs.

mod fio;
mod fio_json;
mod report;
