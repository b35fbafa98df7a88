//! Tests of `wrote langs` with languages made for the tests, honest ones and rogues. A fault is
//! reported only for the program at fault, and nothing is left behind.
//!
//! The languages consist of `fixtures::HONEST_LANGUAGE`, with some of its functions replaced.

mod places;
mod scene;
mod stopped;
