//! Comparisons of languages, and the languages that are embedded.

mod comparison;
mod languages;
