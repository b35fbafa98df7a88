//! Tests of how test programs are found in cargo's output and run.

use super::*;

fn job(script: &str, place: usize) -> Job {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Job { name: "wrote: it".to_owned(), command, place }
}

#[test]
fn only_test_programs_are_taken_from_cargos_messages() {
    let messages = r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/t/wrote"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/wrote/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/t/deps/it-1"}
{"reason":"compiler-artifact","manifest_path":"/r/crates/wrote/Cargo.toml","target":{"name":"wrote"},"profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}
not a message"#;
    let program = Program {
        package: "wrote".to_owned(),
        target: "it".to_owned(),
        file: "/t/deps/it-1".into(),
        folder: "/r/crates/wrote".into(),
    };
    assert_eq!(named(messages), [program]);
}

#[test]
fn every_program_is_run_and_one_that_ends_badly_is_a_failure() {
    let passes = "echo 'test result: ok. 3 passed; 0 failed'; echo SKIPPED: a: b >&2";
    let fails = "echo 'test x ... FAILED'; echo 'test result: FAILED. 1 passed; 1 failed'; exit 1";
    let jobs = vec![job("exit 3", 1), job(passes, 0), job(fails, 0), job(passes, 0)];
    let mut counts = sum(&run_all(jobs).expect("no signal"));
    assert_eq!((counts.passed, counts.failed), (7, 2));
    // The failures are in the order of the threads that ran them.
    counts.failures.sort();
    assert_eq!(counts.failures, ["wrote: it: exit code 3", "wrote: it: x"]);
    assert_eq!(counts.skipped.len(), 2);
}
