//! Tests of the comparison of languages, from a request to a valid document, with good and bad
//! programs side by side. A bad program fails alone.

use crate::sample::are_taken;
use fixtures::{folder, names};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use wrote_bench::langs::{Kind, Request, langs};
use wrote_bench::{Announcement, Observer, Progress};
use wrote_result::document::{Document, Row, Source, State, Survives, View};
use wrote_result::{Error, Stop, schema};

/// A time limit that no terminating program of these tests reaches, even on the busiest machine.
const LONG: Duration = Duration::from_secs(100);

/// A well-behaved program, which processes `SIZE` bytes for each byte-by-byte task. A misbehaving
/// program does something before or after this script, or sets one of its variables.
const HONEST: &str = r#"
letters() { yes abcdefghijklmnopqrstuvwxyz | tr -d '\n' | head -c "$1"; }
lines() { yes "$(letters $(($1 - 1)))" | head -n "$2"; }
case $1 in
    bytes-write) cp "$F/bytes" "$2" ;;
    save | save-sync) letters "$3" > "$2" ;;
    lines) lines "$3" "$4" >> "$2" ;;
    log) lines "$3" "$4" > "$2" ;;
esac
bytes=$3 times=$4
case $1 in lines | log) bytes=$(($3 * $4)) times=1 ;; esac
test $1 = bytes-read && bytes=$(($(wc -c < "$2")))
list=1000
while test $((times -= 1)) -gt 0; do list="$list, 1000"; done
"#;
const ANSWER: &str =
    r#"echo "{\"elapsed_ns\": [$list], \"bytes\": ${said:-$bytes}, \"sum\": $SUM}""#;
/// The length of the files that are written and read byte by byte.
const SIZE: u64 = 1000;

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

/// Returns a folder in a file system in memory, if there is one (shm_overview(7)).
fn memory() -> Option<TempDir> {
    TempDir::with_prefix_in("wrote-test-", "/dev/shm").ok()
}

/// A folder to measure in, and the languages of a test.
struct Lab {
    target: TempDir,
    home: TempDir,
    request: Request,
}

impl Lab {
    /// Returns a lab that writes to memory if possible. Faults are the same as on a disk, and the
    /// drive is not measured.
    fn new(kind: Kind) -> Lab {
        Lab::writing_in(memory().unwrap_or_else(folder), kind)
    }

    fn writing_in(target: TempDir, kind: Kind) -> Lab {
        let home = tempfile::tempdir().unwrap();
        let request = Request {
            workloads: vec![kind],
            size_bytes: Some(SIZE),
            saves: Some(5),
            lines: Some(20),
            runs: 3,
            timeout: LONG,
            command: vec!["wrote".into(), "langs".into()],
            ..Request::new(target.path().into(), home.path().join("cache"))
        };
        let bytes: Vec<u8> = (0..SIZE).map(|number| number as u8).collect();
        fs::write(home.path().join("bytes"), bytes).unwrap();
        Lab { target, home, request }
    }

    /// Adds a language with this program, whose toolchain is a shell.
    fn language(mut self, id: &str, shell: &str, build: &str, program: &str) -> Lab {
        let folder = self.home.path().join(id);
        fs::create_dir(&folder).unwrap();
        let manifest = format!(
            "name = \"The {id}\"\nway = \"cp\"\nreads = \"wc\"\ninstall = \"apt install {id}\"\n\
             [[toolchain]]\nversion = [\"{shell}\", \"-c\", \"echo 1.0\"]\n{build}\n\
             run = [\"{shell}\", \"{{source}}/program\"]\n\
             [[variant]]\nid = \"{id}\"\nname = \"The {id}\"\nway = \"cp\"\nreads = \"wc\"\n\
             tasks = [\"bytes-write\", \"bytes-read\", \"save\", \"save-sync\", \"lines\", \"log\"]\n"
        );
        fs::write(folder.join("manifest.toml"), manifest).unwrap();
        fs::write(folder.join("program"), program).unwrap();
        self.request.add.push(folder);
        self.request.only.push(id.into());
        self
    }

    /// Adds a program that runs `first`, the well-behaved program and `last`, and then prints its
    /// report.
    fn with(self, id: &str, first: &str, last: &str) -> Lab {
        let files = self.home.path().display().to_string();
        let sum: u64 = (0..SIZE).map(|number| number % 256).sum();
        let program = format!("F={files} SUM={sum}\n{first}\n{HONEST}\n{last}\n{ANSWER}");
        self.language(id, "sh", "", &program)
    }

    fn honest(self, id: &str) -> Lab {
        self.with(id, "", "")
    }

    /// Returns the path of a file, and a command that appends `word` to it each time a program
    /// runs.
    fn tell(&self, word: &str) -> (PathBuf, String) {
        let path = self.home.path().join("told");
        let tells = format!("echo {word} >> {}", path.display());
        (path, tells)
    }

    fn told(&self) -> (Result<Document, Error>, Told) {
        let mut told = Told::default();
        let measured = langs(&self.request, &Stop::new(), &mut told);
        (measured, told)
    }

    /// Returns the result, and checks that the folder is empty.
    fn document(&self) -> Document {
        let (measured, told) = self.told();
        assert_eq!(names(self.target.path()), [""; 0], "{:?}", told.notes);
        measured.unwrap()
    }
}

/// Returns the rows of the programs, without the rows of the drive.
fn rows(document: &Document) -> Vec<&Row> {
    let rows = document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    rows.filter(|row| row.short_name() != "drive").collect()
}

fn row<'a>(document: &'a Document, name: &str) -> &'a Row {
    let rows = rows(document);
    let row = rows.iter().find(|row| row.name == format!("langs/{name}"));
    row.unwrap_or_else(|| panic!("no {name}: {document:?}"))
}

/// Returns the failures of all languages, each with its row: `lines/rogue: ended with ..`.
fn failures(document: &Document) -> Vec<String> {
    let all = document.languages.iter().flatten().flat_map(|language| &language.failures);
    let told = |(row, because): (&String, &String)| format!("{row}: {because}");
    all.map(told).map(|told| told.trim_start_matches("langs/").to_owned()).collect()
}

/// Returns the failures of a program that runs `first` before the well-behaved script and `last`
/// after it. Well-behaved programs that run along with it must have a row in every workload.
fn rogue(kind: Kind, first: &str, last: &str) -> Vec<String> {
    of_rogue(&Lab::new(kind).honest("before").with("rogue", first, last).honest("after"))
}

fn of_rogue(lab: &Lab) -> Vec<String> {
    let document = lab.document();
    let count = |id: &str| rows(&document).iter().filter(|row| row.short_name() == id).count();
    assert!(count("before") > 0 && count("before") == count("after"), "{document:?}");
    let failures = failures(&document);
    assert!(failures.iter().all(|of| of.contains("/rogue: ")), "{failures:?}");
    assert_eq!(count("rogue") + failures.len(), count("before"));
    failures
}

#[test]
fn an_honest_program_has_a_row_in_every_workload_with_all_its_runs() {
    for (kind, workloads) in [
        (Kind::Bytes, vec!["bytes-write", "bytes-read"]),
        (Kind::Save, vec!["save-500", "save-10000", "save-sync-1000"]),
        (Kind::Lines, vec!["lines"]),
        (Kind::Log, vec!["log"]),
    ] {
        let lab = Lab::new(kind).honest("one").honest("two");
        let document = lab.document();
        assert_eq!(document.source, Some(Source::Langs));
        assert!(failures(&document).is_empty(), "{document:?}");
        for name in workloads.iter().flat_map(|of| [format!("{of}/one"), format!("{of}/two")]) {
            let row = row(&document, &name);
            let is_save = kind == Kind::Save;
            assert_eq!(row.view(), if is_save { View::Saves } else { View::Files });
            assert_eq!(row.runs.len(), 3, "{row:?}");
            assert_eq!(row.latency_ns.map(|of| of.count), is_save.then_some(3 * 5));
            assert!(row.cpu_s_per_gb() > 0.0 && row.throughput() > 0.0);
            let is_read = name.starts_with("bytes-read");
            assert_eq!((row.survives.is_none(), row.way == "wc"), (is_read, is_read), "{row:?}");
        }
    }
}

#[test]
fn the_drive_has_a_row_beside_streams_and_none_beside_saves() {
    let of = |kind| {
        let document = Lab::writing_in(folder(), kind).honest("one").document();
        let rows = document.scenarios.iter().flat_map(|scenario| scenario.rows.clone());
        let drive = rows.filter(|row| row.short_name() == "drive").collect::<Vec<Row>>();
        (document.target, drive)
    };
    assert!(of(Kind::Save).1.is_empty());
    let (target, drive) = of(Kind::Bytes);
    if target.device.is_some() && target.dio_offset_align_bytes.is_some() {
        assert_eq!(drive.len(), 2, "{drive:?}");
        assert!(drive.iter().all(|row| row.settings.effective.direct && row.throughput() > 0.0));
    }
}

#[test]
fn a_language_that_is_missing_or_cannot_be_built_is_told() {
    let lab = Lab::new(Kind::Lines)
        .honest("shell")
        .language("absent", "no-such-shell", "", "")
        .language("broken", "sh", "build = [\"sh\", \"-c\", \"exit 4\"]", "")
        .with("rogue", "exit 1", "");
    let (document, told) = lab.told();
    let document = document.unwrap();
    let languages = document.languages.as_ref().unwrap();
    let states: Vec<State> = languages.iter().map(|language| language.state).collect();
    assert_eq!(states, [State::Ready, State::Missing, State::BuildFailed, State::Ready]);
    assert!(languages[2].because.as_ref().unwrap().contains("exit code 4"));
    let is_noted = |text: &str| told.notes.iter().any(|note| note.contains(text));
    assert!(is_noted("apt install absent") && is_noted("The broken could not be built"));
    assert!(is_noted("langs/lines/rogue: ended with exit code 1"), "{:?}", told.notes);
    assert_eq!(rows(&document).len(), 1);
    assert_eq!(row(&document, "lines/shell").survives, Some(Survives::ProcessCrash));
    assert_eq!(told.announced.len(), 1);
    let last = told.last.unwrap();
    assert_eq!((last.runs_done, last.row.as_str()), (last.runs, ""));
    let test = "a_language_that_is_missing_or_cannot_be_built_is_told";
    are_taken(test, schema::<Document>(), &[serde_json::to_value(&document).unwrap()]);
}

#[test]
fn the_line_that_installs_is_named_if_no_requested_language_is_there() {
    let lab = Lab::new(Kind::Lines).language("absent", "no-such-shell", "", "");
    match lab.told().0 {
        Err(Error::Usage(text)) => {
            assert!(text.contains("apt install absent") && text.lines().count() == 1, "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(names(lab.target.path()), [""; 0]);
}

/// A program that appends lines, and pauses `$pause` seconds for every 10,000 lines.
const PACED: &str = r#"
line=abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk
began=$(date +%s%N)
yes $line | head -n $4 >> "$2"
sleep $(echo "$4 $pause" | awk '{ print $1 / 10000 * $2 }')
echo "{\"elapsed_ns\": [$(($(date +%s%N) - began))], \"bytes\": $(($3 * $4))}"
"#;

#[test]
fn without_a_fixed_number_each_program_moves_what_fits_into_its_slice() {
    let mut lab = Lab::new(Kind::Lines)
        .language("slow", "sh", "", &format!("pause=1{PACED}"))
        .language("fast", "sh", "", &format!("pause=0{PACED}"));
    (lab.request.lines, lab.request.within) = (None, Some(Duration::from_secs(12)));
    lab.request.runs = 1;
    let document = lab.document();
    if document.findings.iter().any(|finding| finding.id == "left-out") {
        // The machine was too busy for both programs.
        return;
    }
    let lines = |id: &str| row(&document, &format!("lines/{id}")).bytes_per_run / 64;
    assert!(lines("slow") < lines("fast"), "{document:?}");
}

#[test]
fn a_program_that_hangs_is_ended_and_its_other_workloads_are_still_tried() {
    let mut lab = Lab::new(Kind::Bytes);
    // The other programs must not exceed the time limit on a busy machine.
    lab.request.timeout = Duration::from_secs(8);
    let hangs = "test $1 = bytes-read && while :; do sleep 1; done";
    let lab = lab.honest("before").with("rogue", hangs, "").honest("after");
    assert_eq!(of_rogue(&lab), ["bytes-read/rogue: took longer than 8.00 s and was ended"]);
}

#[test]
fn a_short_file_is_found_whatever_the_program_says_of_it() {
    let cut = "test $1 = bytes-write && head -c 100 \"$F/bytes\" > \"$2\"";
    let of = |last: &str, because: &str| {
        let told = rogue(Kind::Bytes, "", last);
        assert_eq!(told, [format!("bytes-write/rogue: {because}")]);
    };
    of(cut, "the file has 100 bytes, not 1000 as the program says");
    of(&format!("{cut} && bytes=100"), "the file has 100 bytes, not 1000");
    let says_less = rogue(Kind::Bytes, "said=999", "");
    let [read, written] = &says_less[..] else { panic!("{says_less:?}") };
    assert!(read.ends_with("reports that it read 999 bytes instead of 1000"), "{read}");
    assert!(written.ends_with("reports that it wrote 999 bytes instead of 1000"), "{written}");
}

#[test]
fn earlier_figures_stand_if_no_file_can_be_made_any_more() {
    // The trial comes first, so only a later run removes the folder.
    let away =
        "test $1 = bytes-read && { test -e \"$F/tried\" && rm -r \"${2%/*}\"; : > \"$F/tried\"; }";
    let lab = Lab::new(Kind::Bytes).honest("before").with("rogue", "", away).honest("after");
    let document = lab.told().0.unwrap();
    let named: Vec<&str> = rows(&document).iter().map(|row| row.workload.as_str()).collect();
    // The folder was removed before the last program read in the first round.
    assert_eq!(named[..3], ["langs/bytes-write"; 3]);
    assert_eq!(named[3..], ["langs/bytes-read"]);
    assert_eq!(failures(&document).len(), 2);
}

#[test]
fn a_program_that_replaces_the_file_to_append_to_or_saves_nothing_is_found() {
    let replaced = rogue(Kind::Lines, "rm \"$2\"", "");
    assert!(replaced[0].contains("the line that was in the file before"), "{replaced:?}");
    let idle = rogue(Kind::Save, "letters() { :; }; test $1 = save && exec true", "");
    assert!(idle.iter().all(|of| of.ends_with("printed no answer")), "{idle:?}");
    let kept = rogue(Kind::Save, "", "test $1 = save-sync && printf X > \"$2\"");
    assert_eq!(kept.len(), 4, "{kept:?}");
}

#[test]
fn a_program_that_changes_a_file_to_be_read_harms_no_other() {
    let spoil = "test $1 = bytes-read && { bytes=1000; printf X > \"$2\"; }";
    let lab = Lab::new(Kind::Bytes).with("rogue", "", spoil).honest("after").honest("before");
    assert_eq!(of_rogue(&lab), ["bytes-read/rogue: the file's byte 0 is 88, not 0"]);
}

#[test]
fn a_run_in_which_all_fail_has_a_result() {
    let lab = Lab::new(Kind::Lines).with("rogue", "exit 1", "").with("thief", "exit 2", "");
    let document = lab.document();
    assert!(rows(&document).is_empty());
    assert_eq!(failures(&document).len(), 2);
}

#[test]
fn one_that_fails_later_is_not_run_again_in_that_workload_and_has_no_row() {
    let lab = Lab::new(Kind::Bytes);
    let (path, tells) = lab.tell("$1");
    let second = format!("{tells}; test $1 = bytes-write && test -e $F/second && exit 1");
    let lab = lab.with("rogue", &second, ": > $F/second").honest("before").honest("after");
    assert_eq!(of_rogue(&lab).len(), 1);
    let told = fs::read_to_string(path).unwrap();
    let count = |task: &str| told.lines().filter(|line| *line == task).count();
    // The failing workload has a trial and one run; the other workload has a trial and three runs.
    assert_eq!((count("bytes-write"), count("bytes-read")), (2, 4), "{told}");
}

#[test]
fn programs_run_in_turn_and_every_second_round_backwards() {
    // M8
    let mut lab = Lab::new(Kind::Save);
    lab.request.workloads = vec![Kind::Log];
    let path = lab.tell("").0;
    for id in ["x", "y", "z"] {
        let tells = lab.tell(id).1;
        lab = lab.with(id, &tells, "");
    }
    lab.document();
    let told = fs::read_to_string(&path).unwrap();
    // Each program has a trial before the first round.
    assert_eq!(told.split_whitespace().collect::<String>(), "xyzxyzzyxxyz");
}

#[test]
fn reads_that_cannot_be_cold_are_left_out_and_it_is_told() {
    let Some(memory) = memory() else {
        let test = "reads_that_cannot_be_cold_are_left_out_and_it_is_told";
        return fixtures::skip(test, "there is no file system in memory to write to");
    };
    let mut lab = Lab::writing_in(memory, Kind::Bytes).honest("one");
    lab.request.drop_caches = true;
    let document = lab.document();
    row(&document, "bytes-write/one");
    row(&document, "bytes-read/one");
    assert_eq!(document.scenarios[0].rows.len(), 2, "memory has no drive");
    let failures = failures(&document);
    assert!(failures[0].starts_with("bytes-read-cold/one: "), "{failures:?}");
}

/// Runs a program that leaves a file `theirs`, and returns the result and the path of that file.
fn littered(otherwise: &str) -> (Document, PathBuf) {
    let lab = Lab::new(Kind::Lines).with("litter", "", otherwise).honest("honest");
    let (document, told) = lab.told();
    let document = document.unwrap();
    row(&document, "lines/honest");
    let run = names(lab.target.path());
    let [run] = &run[..] else { panic!("{run:?}: {:?}", told.notes) };
    assert!(told.notes.iter().any(|note| note.contains(run.as_str())), "{:?}", told.notes);
    let folder = lab.target.path().join(run);
    let left = names(&folder);
    let [left] = &left[..] else { panic!("{left:?}") };
    let left = folder.join(left);
    let left = if left.is_dir() { left.join("theirs") } else { left };
    assert_eq!(fs::read_to_string(&left).unwrap(), "theirs\n");
    (document, left)
}

#[test]
fn files_that_a_program_makes_beside_its_own_are_left_and_told() {
    // W7
    let (document, _) = littered("echo theirs > \"${2%/*}/theirs\"");
    // The program wrote its own file correctly.
    row(&document, "lines/litter");
}

#[test]
fn a_folder_in_place_of_the_file_is_left_and_told_and_the_others_write_elsewhere() {
    // W7
    let (document, left) = littered("rm \"$2\"; mkdir \"$2\"; echo theirs > \"$2/theirs\"");
    assert!(left.ends_with("theirs"));
    assert!(failures(&document)[0].contains("folder in place of the file"), "{document:?}");
}
