//! The log on a simulated disk that fails and loses its power, held against a model of what was
//! promised.
//!
//! A [`Program`] is a few lives of one log: what is asked at each opening, what is done, what goes
//! wrong, and how the life ends. [`carry_out`] lives them on one [`wrote::Sim`] and says what was
//! broken of the log's promises. [`Program::of_seed`] draws one by chance; [`smallest`] takes away of
//! a broken one whatever is not needed to break it.

#![forbid(unsafe_code)]

mod content;
mod life;
mod model;
mod program;
mod reading;
mod run;
mod shrink;
mod trouble;

pub use program::{End, Flavour, How, Life, Opening, Planned, Program, Step};
pub use run::{Tally, carry_out};
pub use shrink::smallest;
