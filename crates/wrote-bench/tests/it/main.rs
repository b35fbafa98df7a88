//! Measurements from request to document, languages, and document schemas.

mod answers;
mod langs;
mod sample;
mod schema;
mod sustained;
