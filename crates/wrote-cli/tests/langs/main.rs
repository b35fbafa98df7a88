//! `wrote langs` with languages of the tests' own, honest ones and rogues: what a program does
//! wrong is told of it alone, and nothing is left of it.
//!
//! The languages are made of `honest.sh`, with some of its functions written anew.

#[path = "../support/mod.rs"]
mod support;

mod cache;
mod hung;
mod manifests;
mod missing;
mod places;
mod rogues;
mod scene;
mod stopped;
