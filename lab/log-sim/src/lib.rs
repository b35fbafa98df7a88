//! The log on a simulated disk that fails and loses its power, checked against a model of its
//! promises.
//!
//! A [`Program`] is a few lives of one log. Each has its options, its steps, its faults and its
//! end. [`carry_out`] runs them on one [`wrote::Sim`] and returns the promise that was broken, if
//! any. [`Program::of_seed`] draws a random program. [`smallest`] reduces a program that breaks a
//! promise to the parts that break it.

#![forbid(unsafe_code)]

mod content;
mod life;
mod model;
mod program;
mod reading;
mod run;
mod shrink;
mod trouble;

pub use program::{End, Flavour, How, Life, Opening, PlannedFault, Program, Step};
pub use run::{Tally, carry_out};
pub use shrink::smallest;
