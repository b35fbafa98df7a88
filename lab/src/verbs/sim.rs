//! The log on a simulated disk that fails and loses its power, checked against a model of its
//! promises.
//!
//! Some programs have faults that the disk hides ([`Program::with_hidden_faults`]). Even then no
//! record is altered, doubled or out of order, and no gap is skipped without an error.
//!
//! - **A misdirected read** may end one reading, by an error or early. The next reading finds
//!   everything. An opening that misreads may cut the log short.
//! - **A bit that rots** makes damage an error. Only the records that no later batch calls durable
//!   may count as torn, and they are kept aside. After a second bit any end may.
//! - **A flush that lies** breaks promises only after a power loss, and none about records that
//!   were stable before it. An end that was cut before may be back. Lines after those records may
//!   be altered, since they have no checksums.
//!
//! A damaged log is repaired. The repair keeps each record that could be read, except for two ends:
//! records from the first one that a lie may have replaced by an older one, and records after a gap
//! that no batch calls durable. Then all promises hold again.
//!
//! A [`Program`] is a few lives of one log. Each has its options, its steps, its faults and its
//! end. [`carry_out`] runs them on one [`wrote::Sim`] and returns the promise that was broken, if
//! any. [`Program::of_seed`] draws a random program. [`smallest`] reduces a program that breaks a
//! promise to the parts that break it.

#![forbid(unsafe_code)]

pub(super) mod command;
mod content;
mod disk;
mod life;
mod model;
mod program;
mod reading;
mod repairing;
mod run;
mod shrink;
mod trouble;

pub use program::{End, Flavour, How, Life, Opening, PlannedFault, Program, Step};
pub use run::{Tally, carry_out};
pub use shrink::smallest;
