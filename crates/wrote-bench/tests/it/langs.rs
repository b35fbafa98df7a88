//! Tests of comparisons of languages, of the embedded languages, and of their programs.

mod comparison;
mod languages;
mod programs;
