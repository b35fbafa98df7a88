//! HTTP/1.1: `POST /append` puts records into the log, `GET /records` reads them.
//!
//! The crate `hyper` reads and writes the protocol. An answer of 200 is given once the listener's
//! [`Level`](crate::Level) has reached every record of the request (W1). A state that passes is
//! answered by 503: common clients drop their records at most other codes.

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
