//! Measurements from a request to a document, and the schema of documents.

mod schema;
mod sustained;
