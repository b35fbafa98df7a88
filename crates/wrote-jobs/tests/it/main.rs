//! Jobs that run on real files.

mod jobs;
mod jobs_refused;
mod jobs_told;
mod scene;
