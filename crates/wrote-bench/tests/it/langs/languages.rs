//! Tests of the embedded languages, and of requests that are refused or stopped.

use fixtures::{HONEST_LANGUAGE, folder};
use std::path::PathBuf;
use std::time::Duration;
use wrote_bench::langs::{Request, catalogue, langs};
use wrote_result::document::State;
use wrote_result::{Error, Stop};

/// The languages of the original comparison, and `wrote`.
const IDS: [&str; 13] = [
    "c",
    "cpp",
    "cpp-get-put",
    "go",
    "java",
    "kotlin",
    "scala",
    "python",
    "ruby",
    "node",
    "zig",
    "rust",
    "wrote",
];

#[test]
fn every_language_is_told_whether_it_is_there_or_not_and_wrote_only_where_it_is_at_hand() {
    let found = catalogue(&[]).unwrap().find(&[], None, &Stop::new()).unwrap();
    assert!(found.iter().all(|found| !found.id.starts_with("wrote")), "{found:?}");
    for id in IDS.into_iter().filter(|id| *id != "wrote") {
        let of = found.iter().find(|found| found.id == id);
        let language = of.unwrap_or_else(|| panic!("no {id}: {found:?}"));
        assert!(!language.name.is_empty() && !language.way.is_empty(), "{language:?}");
        let is_line = |text: &Option<String>| {
            text.as_ref().is_some_and(|text| !text.trim().is_empty() && text.lines().count() == 1)
        };
        match language.state {
            State::Ready => assert!(is_line(&language.version), "{language:?}"),
            State::Missing => {
                assert!(is_line(&language.install) && is_line(&language.because), "{language:?}");
            }
            State::BuildFailed => panic!("nothing was built: {language:?}"),
        }
    }
}

/// Returns a request for the well-behaved language of shell scripts in `folder`.
fn request(folder: &tempfile::TempDir) -> Request {
    let language = folder.path().join("honest");
    std::fs::create_dir(&language).unwrap();
    let manifest = "name = 'Honest'
        way = 'printf'
        install = 'nothing'
        [[toolchain]]
        version = ['sh', '-c', 'echo 1.0']
        run = ['sh', '{source}/program.sh']";
    std::fs::write(language.join("manifest.toml"), manifest).unwrap();
    let program = format!("{HONEST_LANGUAGE}\nmain \"$@\"\n");
    std::fs::write(language.join("program.sh"), program).unwrap();
    std::fs::create_dir(target(folder)).unwrap();
    Request {
        only: vec!["honest".into()],
        add: vec![language],
        size_bytes: Some(5000),
        runs: 2,
        saves: Some(3),
        lines: Some(20),
        ..Request::new(target(folder), folder.path().join("cache"))
    }
}

fn target(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("target")
}

fn is_empty(folder: &tempfile::TempDir) -> bool {
    std::fs::read_dir(target(folder)).unwrap().next().is_none()
}

#[test]
fn a_comparison_that_is_stopped_before_it_begins_makes_nothing() {
    let folder = folder();
    let stop = Stop::new();
    stop.request();
    let stopped = langs(&request(&folder), &stop, &mut ());
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert!(is_empty(&folder));
}

#[test]
fn nonsense_is_refused_and_nothing_is_made() {
    let folder = folder();
    let good = request(&folder);
    for wrong in [
        Request { path: "/dev/null".into(), ..good.clone() },
        Request { timeout: Duration::ZERO, ..good.clone() },
        Request { size_bytes: Some(0), ..good.clone() },
        Request { runs: 0, ..good.clone() },
        Request { saves: Some(0), ..good.clone() },
        Request { lines: Some(0), ..good.clone() },
        Request { only: vec!["no-such-language".into()], ..good.clone() },
    ] {
        let refused = langs(&wrong, &Stop::new(), &mut ());
        let Err(Error::Usage(line)) = refused else { panic!("{wrong:?}: {refused:?}") };
        assert!(!line.is_empty() && line.lines().count() == 1, "{line}");
        assert!(is_empty(&folder));
    }
}
