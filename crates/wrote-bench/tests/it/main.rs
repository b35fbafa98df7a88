//! Measurements from a request to a document, and the schema of documents.

mod answers;
mod schema;
mod sustained;
