//! Comparisons of languages, the embedded languages, and their programs.

mod comparison;
mod languages;
mod programs;
