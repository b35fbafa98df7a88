//! Tests that bad input gets one clear line and exit code 2, and that questions about the program
//! are answered on standard output.

use crate::support::wrote;
use fixtures::{Finished, finish};
use std::fs;
use std::io::Write as _;
use std::process::Command;

fn run(arguments: &[&str]) -> Finished {
    finish(&mut wrote(arguments))
}

/// Returns the standard output of a run, which must succeed.
fn answer(arguments: &[&str]) -> String {
    let finished = run(arguments);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    finished.stdout
}

/// Returns the only line that the program prints when it refuses its arguments.
fn refusal(arguments: &[&str]) -> String {
    let finished = run(arguments);
    assert_eq!(finished.code(), Some(2), "{arguments:?}: {finished:?}");
    assert!(finished.stderr.ends_with('\n'), "{finished:?}");
    finished.complaint().to_owned()
}

#[test]
fn an_unknown_flag_or_subcommand_is_answered_with_the_near_one() {
    let line = refusal(&["bench", "--iodeth", "4"]);
    assert!(line.contains("'--iodeth'") && line.contains("'--iodepth'"), "{line}");
    let line = refusal(&["bnech"]);
    assert!(line.contains("'bnech'") && line.contains("'bench'"), "{line}");
}

#[test]
fn nothing_to_do_is_answered_with_what_there_is_to_do() {
    let [all, log] = [&[][..], &["log"]].map(|arguments: &[&str]| {
        let finished = run(arguments);
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        finished.stderr
    });
    for subcommand in ["bench", "run", "langs", "clean", "completions", "man"] {
        assert!(all.contains(&format!("\n  {subcommand} ")), "{all}");
    }
    assert!(all.lines().last().expect("a line").starts_with("Start with: wrote bench"), "{all}");
    for verb in ["cat", "tail", "stat", "verify", "repair", "ship", "append"] {
        assert!(log.contains(&format!("\n  {verb} ")), "{log}");
    }
}

#[test]
fn words_that_people_try_are_the_options() {
    for (words, option) in [
        ("help", "--help"),
        ("help bench", "bench --help"),
        ("help log cat", "log cat --help"),
        ("log help cat", "log cat --help"),
        ("version", "--version"),
    ] {
        let [words, option] =
            [words, option].map(|line| answer(&line.split(' ').collect::<Vec<_>>()));
        assert_eq!(words, option);
    }
    assert!(refusal(&["help", "bnech"]).contains("'bench'"));
    let version = answer(&["--version"]);
    assert!(version.contains("\nfeatures: ") && version.contains("\ntarget: "), "{version}");
    assert_eq!(answer(&["-V"]).lines().count(), 1);
}

/// Returns the words of every command at every level.
fn commands() -> Vec<Vec<String>> {
    fn below(command: &clap::Command, words: &[String], all: &mut Vec<Vec<String>>) {
        for command in command.get_subcommands() {
            let words = [words, &[command.get_name().to_owned()]].concat();
            below(command, &words, all);
            all.push(words);
        }
    }
    let mut all = Vec::new();
    below(&wrote_cli::args::definition(), &[], &mut all);
    all
}

#[test]
fn every_command_takes_the_common_options_before_its_words_and_behind_them() {
    use clap::error::ErrorKind;
    let options = ["-q", "--quiet", "-v", "--verbose", "--color=never"];
    for words in commands() {
        for option in options {
            let words = words.iter().map(String::as_str);
            let before = ["wrote", option].into_iter().chain(words.clone()).chain(["--help"]);
            let behind = ["wrote"].into_iter().chain(words).chain([option, "--help"]);
            for line in [before.collect::<Vec<_>>(), behind.collect()] {
                let parsed = wrote_cli::args::definition().try_get_matches_from(&line);
                let kind = parsed.expect_err("a help is no command").kind();
                assert_eq!(kind, ErrorKind::DisplayHelp, "{line:?}");
            }
        }
    }
}

#[test]
fn json_is_short_for_the_format_wherever_there_is_one() {
    let definition = wrote_cli::args::definition();
    let mut with_formats = definition
        .get_subcommands()
        .filter(|command| command.get_arguments().any(|argument| argument.get_id() == "format"));
    assert!(with_formats.all(|command| {
        command.get_arguments().any(|argument| argument.get_long() == Some("json"))
    }));
    let ladder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/results/ladder.json");
    let [short, long] = [&["--json"][..], &["--format", "json"]]
        .map(|format| answer(&[&["compare", ladder, ladder], format].concat()));
    assert!(short == long && short.starts_with('{'), "{short}");
    assert!(refusal(&["bench", "--json", "--format", "csv"]).contains("'--json'"));
    let line = refusal(&["copy", "--json", "a", "b"]);
    assert!(!line.contains("as a value"), "{line}");
    assert!(line.ends_with("wrote copy --help lists what there is"), "{line}");
}

#[test]
fn color_is_as_the_user_wants_it() {
    let ladder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/results/ladder.json");
    let compared = |color: &str| answer(&["compare", ladder, ladder, color]);
    assert!(compared("--color=always").contains('\u{1b}'));
    assert!(!compared("--color=auto").contains('\u{1b}'));
    let command = ["report", ladder, "--color", "never"];
    assert_eq!(finish(&mut wrote(&command)).code(), Some(0));
    assert!(refusal(&["bench", "--color", "no"]).contains("never"));
}

#[test]
fn what_is_missing_is_named_with_an_example() {
    for (line, told) in [
        ("compare a.json", "missing: <NEW>; for example: wrote compare before.json after.json"),
        ("trace crash r", "; for example: wrote trace crash r --check 'python3 load.py DIR'"),
        ("fit", "missing: a program: bench, "),
        ("fit", "; for example: wrote fit etcd /var/lib/etcd"),
        ("serve events", "; for example: wrote serve events --listen tcp://127.0.0.1:5140"),
        ("bench --force", "missing: <--output <FILE>|--html <FILE>>"),
        ("/tmp", "/tmp is not a command; to measure it: wrote bench /tmp"),
    ] {
        let said = refusal(&line.split(' ').collect::<Vec<_>>());
        assert!(
            said.contains(told) || line == "serve events" && cfg!(not(feature = "serve")),
            "{said}"
        );
    }
}

#[test]
fn what_the_user_named_and_is_not_there_is_2_in_every_command_and_names_the_next_step() {
    let place = fixtures::folder();
    for (line, told) in [
        ("bench none", "none: does not exist"),
        ("langs none", "none: does not exist"),
        ("doctor none", "none: does not exist"),
        ("clean none", "none: does not exist"),
        ("fit etcd none", "none: does not exist"),
        ("fit .", ".: is a folder; name a program before it; did you mean: wrote fit etcd ."),
        ("run none.fio", "none.fio: No such file"),
        ("run --filename=none --rw=write", "put --name=job before its options"),
        ("compare none none", "none: No such file"),
        ("report none", "none: No such file"),
        ("copy none to", "none: does not exist"),
        ("copy /proc/version none/to", "none/to: there is no folder none"),
        ("trace -p 2147483647", "no such process"),
        ("trace crash none --check x", "'wrote trace --record FILE COMMAND' makes a record"),
        ("log cat none", "'wrote log append none' creates one, and 'wrote log tail -F none' waits"),
        ("log tail none", "there is no log"),
        ("log stat none", "there is no log"),
        ("log verify none", "there is no log"),
        ("log repair none", "there is no log"),
        ("log ship none file:///tmp", "there is no log"),
        ("log append none/events", "there is no folder none; 'mkdir -p none' creates it"),
        ("log append none/lines.txt", "none/lines.txt: there is no folder /"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let finished = finish(wrote(&words).current_dir(place.path()));
        assert_eq!(
            (finished.code(), finished.stdout.as_str()),
            (Some(2), ""),
            "{line}: {finished:?}"
        );
        assert!(finished.complaint().contains(told), "{line}: {finished:?}");
    }
    assert!(fixtures::names(place.path()).is_empty());
}

#[test]
fn a_list_has_what_only_names_and_refuses_the_rest() {
    let listed = answer(&["bench", "--list", "--only", "latency,ways/file"]);
    assert!(listed.contains("Scenario latency\n") && listed.contains("\nways/file/"), "{listed}");
    assert!(!listed.contains("ladder") && !listed.contains("\nways/chunk/"), "{listed}");
    assert!(refusal(&["bench", "--list", "--only", "laddr"]).contains("'ladder'"));
    let listed = answer(&["langs", "--list", "--only", "c"]);
    assert!(!listed.contains("python"), "{listed}");
    assert!(refusal(&["langs", "--list", "--only", "cobol"]).contains("cobol"));
}

#[test]
#[cfg(not(feature = "store"))]
fn a_program_without_object_stores_names_the_feature_in_one_line() {
    for arguments in [
        &["log", "ship", "events", "s3://bucket/events"][..],
        &["log", "cat", "s3://bucket/events"],
        &["log", "tail", "file:///store"],
        &["log", "stat", "s3://bucket/events"],
        &["log", "verify", "s3://bucket/events"],
        #[cfg(feature = "serve")]
        &["serve", "events", "--listen", "tcp://127.0.0.1:0", "--store", "s3://b/x", "--check"],
    ] {
        let line = refusal(arguments);
        assert!(line.contains("feature store"), "{line}");
    }
}

#[test]
#[cfg(not(feature = "serve"))]
fn a_program_without_the_server_names_the_feature_in_one_line() {
    for arguments in [&["serve"][..], &["serve", "events", "--listen", "tcp://127.0.0.1:0"]] {
        let line = refusal(arguments);
        assert!(line.contains("--features serve"), "{line}");
    }
}

#[test]
fn a_value_that_is_missing_or_unknown_is_refused() {
    assert!(refusal(&["bench", "--size"]).contains("--size"));
    assert!(refusal(&["bench", "--format", "yaml"]).contains("markdown"));
    assert!(refusal(&["run", "a.fio", "--format", "yaml"]).contains("fio-json"));
    assert!(refusal(&["completions"]).contains("<SHELL>"));
    assert!(refusal(&["completions", "tcsh"]).contains("fish"));
    assert!(refusal(&["bench", "one", "two"]).contains("'two'"));
}

#[test]
fn a_result_goes_into_no_file_that_is_there_but_by_force_which_needs_a_file() {
    // W7
    let folder = fixtures::folder();
    let path = folder.path().join("result");
    fs::write(&path, "theirs").expect("a file");
    let path = path.to_str().expect("a path in UTF-8");
    let ladder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pages/results/ladder.json");
    for verb in [
        &["bench"][..],
        &["run", "jobs.fio"],
        &["langs"],
        &["fit", "etcd"],
        &["doctor"],
        &["report", ladder],
        &["compare", ladder, ladder],
    ] {
        let line = refusal(&[verb, &["-o", path]].concat());
        assert!(line.contains(path) && line.contains("--force"), "{verb:?}: {line}");
        assert!(refusal(&[verb, &["--force"]].concat()).contains("--output"), "{verb:?}");
    }
    assert_eq!(fs::read(path).expect("it is there"), b"theirs");
    let html = finish(&mut wrote(&["report", ladder, "--force", "-o", path]));
    assert_eq!(html.code(), Some(0), "{html:?}");
    assert!(fs::read(path).expect("it is there").starts_with(b"<!doctype html>"));
    assert!(refusal(&["run", "jobs.fio", "--check", "-o", "x"]).contains("--check"));
    assert!(refusal(&["bench", "-o", "/no/folder/x"]).contains("No such file or directory"));
    assert!(refusal(&["bench", "-o", "/", "--force"]).contains("not an ordinary file"));
}

#[test]
fn a_job_file_that_is_missing_or_no_text_is_refused_and_named() {
    assert!(refusal(&["run"]).contains("<JOB>"));
    let line = refusal(&["run", "/no/such/folder/jobs.fio"]);
    assert_eq!(line, "wrote: jobs.fio: No such file or directory (os error 2)");
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), [0xff, 0xfe]).expect("a file");
    let line = refusal(&["run", file.path().to_str().expect("a path in UTF-8")]);
    assert!(line.ends_with("is not a text file: it is not UTF-8"), "{line}");
}

#[test]
fn a_workload_of_languages_that_does_not_exist_is_refused() {
    let line = refusal(&["langs", "--workloads", "byte"]);
    assert!(line.contains("'byte'") && line.contains("'bytes'"), "{line}");
    assert!(refusal(&["langs", "--list", "-o", "x"]).contains("--output"));
}

#[test]
fn cleaning_what_is_no_folder_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    refusal(&["clean", file.path().to_str().expect("a path in UTF-8")]);
    refusal(&["clean", "/no/such/folder"]);
}

#[test]
fn help_is_an_answer_with_examples() {
    for (words, said) in [
        ("--help-all", "wrote run runs fio job"),
        ("bench --help", "[default: table]"),
        ("bench --help-all", "or to a file with --output"),
        ("langs --help-all", "$XDG_CACHE_HOME/wrote"),
        ("copy --help-all", "wrote copy --verify"),
        ("run --help-all", "fio-plot"),
    ] {
        let help = answer(&words.split(' ').collect::<Vec<_>>());
        assert!(help.contains(said), "{said:?} is not in\n{help}");
        assert!(help.contains("Examples:") || !words.ends_with("-all"), "{words}");
    }
    for verb in ["cat", "tail", "stat", "verify", "repair", "ship", "append"] {
        let help = answer(&["log", verb, "--help"]);
        let example = format!("wrote log {verb}");
        assert!(help.contains("Examples:") && help.contains(&example), "{help}");
    }
    assert!(answer(&["--version"]).starts_with(concat!("wrote ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn the_schema_is_json_and_names_its_format() {
    let schema: serde_json::Value =
        serde_json::from_str(&answer(&["bench", "--schema"])).expect("it is JSON");
    assert_eq!(schema["properties"]["schema"]["const"], "wrote.result/1");
}

#[test]
fn completions_know_every_flag_and_bash_takes_its_own() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = answer(&["completions", shell]);
        for flag in long_flags() {
            assert!(script.contains(&flag), "{flag} is not in the completions of {shell}");
        }
    }
    for name in ["postgresql", "sustained", "small/fdatasync-each", "python"] {
        assert!(answer(&["completions", "bash"]).contains(name), "{name} is not completed");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert_parses(shell, &answer(&["completions", shell]));
    }
}

/// Asserts that a shell can parse a script, if the shell is installed.
fn assert_parses(shell: &str, script: &str) {
    let flag = if shell == "fish" { "--no-execute" } else { "-n" };
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(script.as_bytes()).expect("a script");
    let Ok(output) = Command::new(shell).arg(flag).arg(file.path()).output() else {
        let test = "completions_know_every_flag_and_bash_takes_its_own";
        return fixtures::skip(test, &format!("{shell} is not installed"));
    };
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_manual_page_has_every_flag_and_subcommand() {
    // Roff writes a literal hyphen as `\-`.
    let page = answer(&["man"]).replace("\\-", "-");
    assert!(page.starts_with(".TH wrote 1 "), "{page}");
    for flag in long_flags() {
        assert!(page.contains(&format!("--{flag}")), "{flag} is not in\n{page}");
    }
    for section in [
        "WROTE BENCH",
        "WROTE COPY",
        "WROTE RUN",
        "WROTE LANGS",
        "WROTE LOG",
        "WROTE LOG TAIL",
        "WROTE CLEAN",
        "WROTE COMPLETIONS",
        "EXIT STATUS",
        "EXAMPLES",
    ] {
        let is_there = |line: &str| line.starts_with(".SH ") && line.contains(section);
        assert!(page.lines().any(is_there), "{section} is not in\n{page}");
    }
}

/// Returns the long flags of all subcommands at every level, without hyphens.
fn long_flags() -> Vec<String> {
    fn of(command: &clap::Command) -> Vec<String> {
        let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
        let own = shown.filter_map(|flag| flag.get_long().map(str::to_owned));
        own.chain(command.get_subcommands().flat_map(of)).collect()
    }
    let flags = of(&wrote_cli::args::definition());
    for known in ["numjobs", "reflink", "follow", "workloads"] {
        assert!(flags.iter().any(|flag| flag == known), "{known} is not in {flags:?}");
    }
    flags
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let finished = finish(wrote(&["completions", "bash"]).stdout(writer));
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
}
