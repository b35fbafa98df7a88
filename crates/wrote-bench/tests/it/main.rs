//! Measurements from the request to the document, comparisons of languages, and the schemas of
//! documents.

mod answers;
mod langs;
mod sample;
mod schema;
mod sustained;
