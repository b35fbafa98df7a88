//! Tests that `docs/fio.md` lists exactly the accepted keys.

use super::read;
use crate::fio::{keys, note};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../../docs/fio.md");

/// A line for every key, with an accepted value. fio accepts each of these lines, too, except for
/// engines that it was built without.
const EXAMPLES: &str = include_str!("examples.txt");

/// The names of fio's keys, after a comment on their source.
const OF_FIO: &str = include_str!("fio-3.33.txt");

/// Returns the keys in the first column of the page's tables.
fn listed() -> BTreeSet<&'static str> {
    let (keys, _) = PAGE.split_once("## What differs").expect("the last table is of other things");
    let rows = keys.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_key_that_is_listed_is_taken_and_every_key_that_is_taken_is_listed() {
    assert_eq!(listed(), keys::all_names().collect());
}

#[test]
fn every_key_takes_its_example() {
    let mut seen = BTreeSet::new();
    for line in EXAMPLES.lines() {
        let context = "[before]\nsize=1m\n[a]\nsize=1m\nruntime=1\nioengine=io_uring\ndirect=1\n";
        let parsed = read(&format!("{context}{line}\n"));
        assert!(parsed.is_ok(), "{line}: {parsed:?}");
        seen.insert(line.split('=').next().expect("a key"));
    }
    assert_eq!(seen, keys::all_names().collect());
}

#[test]
fn every_key_of_fio_is_taken_or_refused_with_a_reason() {
    let names =
        OF_FIO.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    for name in names {
        if let Err(told) = keys::find(name) {
            let reason = told.split_once("not supported here: ");
            assert!(reason.is_some_and(|(_, reason)| !reason.is_empty()), "{name}: {told}");
        }
    }
}

#[test]
fn no_key_is_taken_and_not_taken_or_there_twice() {
    let mut seen = BTreeSet::new();
    for name in keys::all_names().chain(note::not_taken()) {
        assert!(seen.insert(name), "{name}");
    }
}
