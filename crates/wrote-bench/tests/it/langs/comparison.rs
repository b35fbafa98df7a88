//! The comparison of languages as a whole, from a request to a valid document.

use fixtures::{folder, judge};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;
use wrote_bench::langs::{Kind, Request, langs};
use wrote_bench::{Announcement, Observer, Progress};
use wrote_result::document::Survives;
use wrote_result::langs::{Document, SCHEMA, State, schema};
use wrote_result::{Error, Stop};

/// A program that appends lines with `yes` and `head`, and supports no other task.
const PROGRAM: &str = r#"
line=abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk
yes $line | head -n "$4" >> "$2"
echo "{\"elapsed_ns\": [1000], \"bytes\": $(($3 * $4))}"
"#;

#[derive(Default)]
struct Told {
    announced: Vec<Announcement>,
    notes: Vec<String>,
    last: Option<Progress>,
}

impl Observer for Told {
    fn announce(&mut self, announcement: &Announcement) {
        self.announced.push(announcement.clone());
    }

    fn progress(&mut self, progress: &Progress) {
        self.last = Some(progress.clone());
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.into());
    }
}

/// Creates a folder with a language `name`, started by `run`.
fn language(parent: &Path, name: &str, run: &str, build: &str) -> std::path::PathBuf {
    let folder = parent.join(name);
    fs::create_dir(&folder).unwrap();
    let manifest = format!(
        "name = \"{name}\"\nway = \"yes\"\ninstall = \"apt install {name}\"\n\
         [[toolchain]]\nversion = [\"{run}\", \"-c\", \"echo 1.0\"]\n{build}\n\
         run = [\"{run}\", \"{{source}}/program\"]\n"
    );
    fs::write(folder.join("manifest.toml"), manifest).unwrap();
    fs::write(folder.join("program"), PROGRAM).unwrap();
    folder
}

/// Returns a request for a few lines by these languages.
fn request(places: &[&Path], cache: &Path, add: Vec<std::path::PathBuf>) -> Request {
    let only = add.iter().map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned());
    Request {
        only: only.collect(),
        workloads: vec![Kind::Lines],
        add,
        runs: 3,
        lines: Some(1000),
        timeout: Duration::from_secs(100),
        command: vec!["wrote".into(), "langs".into()],
        ..Request::new(places.iter().map(|place| place.to_path_buf()).collect(), cache.into())
    }
}

#[test]
fn several_places_are_measured_and_what_is_missing_or_cannot_be_built_is_told() {
    let (one, two, cache, added) = (folder(), folder(), folder(), folder());
    let add = vec![
        language(added.path(), "shell", "sh", ""),
        language(added.path(), "absent", "no-such-shell", ""),
        language(added.path(), "broken", "sh", "build = [\"sh\", \"-c\", \"exit 4\"]"),
    ];
    let mut told = Told::default();
    let asked = request(&[one.path(), two.path()], cache.path(), add);
    let document = langs(&asked, &Stop::new(), &mut told).unwrap();

    assert_eq!(document.schema, SCHEMA);
    let states: Vec<State> = document.languages.iter().map(|language| language.state).collect();
    assert_eq!(states, [State::Ready, State::Missing, State::BuildFailed]);
    assert!(document.languages[2].because.as_ref().unwrap().contains("exit code 4"));
    assert!(
        told.notes.iter().any(|note| note.contains("apt install absent")),
        "{told_notes:?}",
        told_notes = told.notes
    );
    assert_eq!(document.places.len(), 2);
    for (place, folder) in document.places.iter().zip([&one, &two]) {
        assert_eq!(place.target.path, folder.path().display().to_string());
        assert_eq!(place.workloads.len(), 1);
        let workload = &place.workloads[0];
        assert_eq!((workload.name.as_str(), workload.bytes), ("lines", 64_000));
        assert_eq!(workload.survives, Some(Survives::ProcessCrash));
        assert!(workload.failures.is_empty(), "{workload:?}");
        assert_eq!(workload.rows[0].language, "shell");
        assert_eq!(workload.rows[0].runs.len(), 3);
        assert!(folder.path().read_dir().unwrap().next().is_none());
        // With direct I/O to the drive its rate is known.
        if place.target.device.is_some() && place.target.dio_offset_align_bytes.is_some() {
            let drive = place.drive.as_ref().unwrap();
            assert!(drive.write_row.starts_with("peak/write/"), "{drive:?}");
            assert!(drive.read_row.starts_with("peak/read/"), "{drive:?}");
            assert!(drive.write_bytes_per_s.median > 0.0 && drive.read_bytes_per_s.median > 0.0);
        }
    }
    assert_eq!(told.announced.len(), 1);
    let last = told.last.unwrap();
    assert_eq!((last.runs_done, last.row.as_str()), (last.runs, ""));
    // A program that was not built has no runs.
    assert_eq!(told.announced[0].runs, last.runs + 2 * 3);

    let text = serde_json::to_string(&document).unwrap();
    let read: Document = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&document).unwrap());
    let right = serde_json::to_value(&document).unwrap();
    let mut wrong = right.clone();
    wrong["places"][0]["workloads"][0]["rows"][0]["speed"] = json!(1);
    let test = "several_places_are_measured_and_what_is_missing_or_cannot_be_built_is_told";
    let Some(complaints) = judge(test, schema(), &[right, wrong]) else { return };
    assert!(complaints[0].is_empty() && !complaints[1].is_empty(), "{complaints:?}");
}

#[test]
fn the_line_that_installs_is_named_if_no_requested_language_is_there() {
    let (place, cache, added) = (folder(), folder(), folder());
    let add = vec![language(added.path(), "absent", "no-such-shell", "")];
    let asked = request(&[place.path()], cache.path(), add);
    match langs(&asked, &Stop::new(), &mut ()) {
        Err(Error::Usage(text)) => {
            assert!(text.contains("apt install absent") && text.lines().count() == 1, "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(place.path().read_dir().unwrap().next().is_none());
}

/// Collects every object of a schema that has properties.
fn objects<'a>(schema: &'a Value, found: &mut Vec<&'a Value>) {
    match schema {
        Value::Object(keys) => {
            if keys.contains_key("properties") {
                found.push(schema);
            }
            keys.values().for_each(|value| objects(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| objects(value, found)),
        _ => {}
    }
}

#[test]
fn every_object_of_the_schema_says_what_its_keys_mean() {
    // M4
    let (schema, mut found) = (schema(), Vec::new());
    objects(&schema, &mut found);
    assert!(found.len() >= 10);
    for object in found {
        assert_eq!(object["additionalProperties"], json!(false), "{object}");
        for (key, property) in object["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{key} of {object}");
        }
    }
}
