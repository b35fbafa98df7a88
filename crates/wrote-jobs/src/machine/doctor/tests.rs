//! Tests of the whole examination: its order, its document, and its result on this machine.

use super::fake::mounted;
use super::*;
use wrote_result::doctor::{Examination, State};
use wrote_result::schema;

fn ids() -> [&'static str; CHECKS.len()] {
    CHECKS.map(|(id, _)| id)
}

#[test]
fn the_worst_comes_first_and_the_rest_in_the_order_of_the_document() {
    let (_fake, mut world) = mounted("ext4", &["barrier=0", "sync", "relatime"]);
    world.file.attributes = Some(Err("no".into()));
    let checks = checks(&world);
    let states: Vec<State> = checks.iter().map(|check| check.state).collect();
    assert!(states.is_sorted_by(|one, next| one >= next), "{states:?}");
    assert_eq!((checks[0].id.as_str(), checks[0].state), ("mount-barrier", State::Risk));
    let unknown = checks.iter().filter(|check| check.state == State::Unknown);
    let ids: Vec<&str> = unknown.map(|check| check.id.as_str()).collect();
    assert_eq!(ids, ["queue", "atomic-writes", "file-attributes"]);
}

#[test]
fn a_path_that_is_not_there_is_wrong_usage() {
    let error = examine(Path::new("/does/not/exist")).unwrap_err();
    assert_eq!(error.to_string(), "/does/not/exist: does not exist");
    assert!(matches!(error, Error::Usage(_)), "{error:?}");
}

/// Tests that the documentation agrees with the program.
mod document {
    use super::*;
    use serde_json::Value;

    const TEXT: &str = include_str!("../../../../../docs/doctor.md");

    #[test]
    fn every_check_has_a_chapter_in_the_order_of_the_program() {
        let chapters: Vec<&str> =
            TEXT.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
        assert_eq!(chapters, ids());
    }

    #[test]
    fn every_key_of_a_check_is_explained() {
        let schema = schema::<Examination>();
        let keys_of = |pointer: &str| -> Vec<String> {
            let properties = schema.pointer(pointer).and_then(Value::as_object);
            properties.unwrap_or_else(|| panic!("{pointer}: {schema:#}")).keys().cloned().collect()
        };
        let pointers = [
            "/properties",
            "/$defs/Check/properties",
            "/$defs/Change/properties",
            "/$defs/Evidence/properties",
        ];
        for key in pointers.iter().flat_map(|pointer| keys_of(pointer)) {
            assert!(TEXT.contains(&format!("`{key}`")), "{key} is not in docs/doctor.md");
        }
    }
}
