//! Comparisons of languages, the languages that are embedded, and their programs.

mod comparison;
mod languages;
mod programs;
