//! Measurements from a request to a document, the languages, and schemas of documents.

mod answers;
mod langs;
mod sample;
mod schema;
mod sustained;
