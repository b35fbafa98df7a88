//! Tests of measurements from the request to the document, of comparisons of languages, and of the
//! schemas of documents.

mod answers;
mod langs;
mod sample;
mod schema;
mod sustained;
