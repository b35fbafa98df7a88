//! `wrote langs` with test languages, honest ones and rogues. A fault is reported only for its
//! program, and nothing is left.
//!
//! The languages consist of `fixtures::HONEST_LANGUAGE`, with some of its functions replaced.

mod places;
mod scene;
mod stopped;
