//! Jobs that run on real files, and job files and reports as text.

mod fio;
mod fio_report;
mod jobs;
mod jobs_refused;
mod report;
mod scene;
