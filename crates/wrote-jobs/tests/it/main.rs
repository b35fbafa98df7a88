//! Tests of jobs that run on real files, and of job files and reports as text.

mod fio;
mod fio_report;
mod jobs;
mod jobs_refused;
mod report;
mod scene;
