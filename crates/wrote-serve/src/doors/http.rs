//! HTTP/1.1: `POST /append` appends records to the log, `GET /records` reads them.
//!
//! The `hyper` crate implements the protocol. A 200 is sent once the listener's
//! [`Level`](crate::Level) has reached every record of the request (W1). Temporary conditions are
//! answered with 503, because common clients drop their records on most other codes.

mod answer;
mod append;
mod body;
mod exchange;
mod gunzip;
mod pieces;
mod query;
mod read;
mod routes;
mod session;
mod wire;

pub(crate) use session::serve;
