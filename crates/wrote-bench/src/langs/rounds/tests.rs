//! Tests with well-behaved and misbehaving programs side by side.

use super::super::build::InUse;
use super::super::workload::{Kind, tables};
use super::*;
use crate::progress::Progress;
use crate::site::SinceStart;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use wrote_result::langs::{Failure, Workload};

/// Longer than any terminating program here runs on the busiest machine.
const LONG: Duration = Duration::from_secs(100);

/// A well-behaved program, which copies the prepared `$F/TASK-SIZE`. A misbehaving one acts before
/// it, or sets one of these variables.
const HONEST: &str = r#"
write() { cp "$F/$1-$3" "$2"; }
case $1 in
    bytes-write | save | save-sync) write "$@" ;;
    lines) cat "$F/lines-$3" >> "$2" ;;
    log) cat "$F/log-$3" > "$2" ;;
esac
bytes=$3 times=$4
case $1 in lines | log) bytes=$(($3 * $4)) times=1 ;; esac
test $1 = bytes-read && bytes=$(($(wc -c < "$2")))
elapsed=${elapsed:-1000}
list=$elapsed
while test $((times -= 1)) -gt 0; do list="$list, 1000"; done
"#;
const ANSWER: &str =
    r#"echo "{\"elapsed_ns\": [$list], \"bytes\": ${said:-$bytes}, \"sum\": $SUM}""#;

/// A folder to measure in, the expected files, and the programs that write them.
struct Lab {
    folder: TempDir,
    files: TempDir,
    request: Request,
    ready: Vec<Contestant>,
    /// The measured place, by default [`Lab::folder`].
    place: PathBuf,
}

impl Lab {
    fn new(kind: Kind) -> Lab {
        let folder = fixtures::folder();
        let mut request = Request::new(vec![folder.path().into()], "/cache".into());
        request.workloads = vec![kind];
        (request.size_bytes, request.runs) = (Some(1000), 3);
        (request.saves, request.lines) = (Some(5), Some(20));
        request.timeout = LONG;
        let files = tempfile::tempdir().unwrap();
        for table in tables(&request) {
            let content = table.content();
            let bytes = content.pattern.iter().copied().cycle().take(content.body_bytes as usize);
            let name = format!("{}-{}", table.task.as_str(), table.size);
            fs::write(files.path().join(name), bytes.collect::<Vec<u8>>()).unwrap();
        }
        let place = folder.path().to_owned();
        Lab { folder, files, request, ready: Vec::new(), place }
    }

    /// Adds a program that runs `first`, the well-behaved program, and `last`, and then prints its
    /// report.
    fn with(mut self, id: &str, first: &str, last: &str) -> Lab {
        let files = self.files.path().display();
        let sum: u64 = (0..1000).map(|k| k % 256).sum();
        let script = format!("F={files} SUM={sum}\n{first}\n{HONEST}\n{last}\n{ANSWER}");
        let program = self.ready.len();
        self.ready.push(Contestant {
            program,
            id: id.into(),
            name: id.to_uppercase(),
            built: BuiltProgram {
                run: ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec(),
                arguments: Vec::new(),
                folder: "/".into(),
                in_use: InUse::default(),
            },
            tasks: Task::ALL.to_vec(),
        });
        self
    }

    fn honest(self, id: &str) -> Lab {
        self.with(id, "", "")
    }

    /// Measures all programs, without the drive, and returns the notes.
    fn measure(&self, stop: &Stop) -> (Result<Place, Error>, Vec<String>) {
        let request = Request { paths: vec![self.place.clone()], ..self.request.clone() };
        let mut plan = Plan::new(&request, &Alone).unwrap();
        plan.places[0].drive = None;
        let mut noted = Noted::default();
        let ticker = Ticker::new(&mut noted, 0, LONG);
        let mut told = LangsReporter { ticker, failed: None, rates: Default::default() };
        let crew = Crew {
            tables: &plan.tables,
            ready: &self.ready,
            drives: &[(0, Duration::ZERO)],
            timeout: self.request.timeout,
            folder: self.files.path(),
            within: self.request.within,
            clock: &SinceStart(Instant::now()),
            peers: &Alone,
            stop,
        };
        let scratch = Scratch::make(&plan.places[0].target.path).unwrap();
        let measured = crew.measure(0, &mut plan.places[0], scratch, &mut told);
        told.ticker.finish();
        if measured.is_ok() {
            let last = noted.progress.last().unwrap();
            assert_eq!(last.runs_done, last.runs);
        }
        (measured, noted.notes)
    }

    /// Returns the workloads, after checking that the folder is empty.
    fn workloads(&self) -> Vec<Workload> {
        let (measured, notes) = self.measure(&Stop::new());
        let workloads = measured.unwrap().workloads;
        assert!(self.is_empty(), "{notes:?}");
        workloads
    }

    fn is_empty(&self) -> bool {
        self.folder.path().read_dir().unwrap().next().is_none()
    }
}

#[derive(Default)]
struct Noted {
    notes: Vec<String>,
    progress: Vec<Progress>,
}

impl Observer for Noted {
    fn progress(&mut self, progress: &Progress) {
        self.progress.push(progress.clone());
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.into());
    }
}

fn ids(workload: &Workload) -> Vec<&str> {
    let mut ids: Vec<&str> = workload.rows.iter().map(|row| row.language.as_str()).collect();
    ids.sort_unstable();
    ids
}

/// Returns the failures of a program that runs `first` and `last` around the well-behaved one. A
/// well-behaved program beside it must have a row in every table.
fn rogue(kind: Kind, first: &str, last: &str) -> Vec<Failure> {
    let lab = Lab::new(kind).honest("before").with("rogue", first, last).honest("after");
    of_rogue(&lab)
}

fn of_rogue(lab: &Lab) -> Vec<Failure> {
    let mut failures = Vec::new();
    for workload in lab.workloads() {
        let honest: Vec<&str> =
            ids(&workload).into_iter().filter(|language| *language != "rogue").collect();
        assert_eq!(honest, ["after", "before"], "{workload:?}");
        assert!(workload.failures.iter().all(|failure| failure.language == "rogue"));
        assert_eq!(ids(&workload).len() + workload.failures.len(), 3);
        failures.extend(workload.failures);
    }
    failures
}

fn because(failures: &[Failure]) -> Vec<&str> {
    failures.iter().map(|failure| failure.because.as_str()).collect()
}

#[test]
fn every_honest_program_has_a_row_in_every_table_with_all_its_runs() {
    for kind in Kind::ALL {
        let lab = Lab::new(kind).honest("one").honest("two");
        for workload in lab.workloads() {
            assert_eq!(ids(&workload), ["one", "two"], "{workload:?}");
            assert!(workload.failures.is_empty());
            for row in &workload.rows {
                let is_save = kind == Kind::Save;
                assert_eq!(row.runs.len(), if is_save { 1 } else { 3 });
                assert_eq!(row.runs[0].dropped, !is_save);
                assert!(row.runs[1..].iter().all(|run| !run.dropped));
                assert!(row.runs.iter().all(|run| run.process_s >= run.elapsed_s));
                assert!(row.cpu_s_per_gb > 0.0);
                assert_eq!(row.latency_ns.map(|latency| latency.count), is_save.then_some(5));
                let timings = if is_save { 5 } else { 1 };
                assert_eq!(row.runs[0].bytes, workload.bytes * timings);
                assert!(row.throughput_bytes_per_s.median > 0.0);
            }
            let reads = workload.name.starts_with("bytes/read");
            assert_eq!(workload.survives.is_none(), reads, "{}", workload.name);
        }
    }
}

/// A program that appends lines, pausing `$pause` seconds per 10,000.
const PACED: &str = r#"
line=abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk
began=$(date +%s%N)
yes $line | head -n $4 >> "$2"
sleep $(echo "$4 $pause" | awk '{ print $1 / 10000 * $2 }')
echo "{\"elapsed_ns\": [$(($(date +%s%N) - began))], \"bytes\": $(($3 * $4))}"
exit 0
"#;

#[test]
fn without_a_fixed_number_each_program_moves_what_fits_into_its_share() {
    let paced = |pause: &str| format!("pause={pause}{PACED}");
    let mut lab = Lab::new(Kind::Lines).with("slow", &paced("1"), "").with("fast", &paced("0"), "");
    (lab.request.lines, lab.request.within) = (None, Duration::from_secs(7));
    let workloads = lab.workloads();
    let [workload] = &workloads[..] else { panic!("{workloads:?}") };
    assert!(workload.words.starts_with("as many lines of 64 bytes as fit into"), "{workload:?}");
    let lines = |id: &str| {
        let row = workload.rows.iter().find(|row| row.language == id).expect("it has a row");
        let (counted, dropped) = (&row.runs[1..], &row.runs[0]);
        assert!(dropped.dropped && counted.len() == 2, "{row:?}");
        assert_eq!(counted[0].bytes, counted[1].bytes, "each counted run moves the same");
        counted[0].bytes / 64
    };
    assert!(lines("slow") < lines("fast"), "{workload:?}");
    assert!(lines("slow") >= 1000, "{workload:?}");
    let most = workload.rows.iter().flat_map(|row| &row.runs).map(|run| run.bytes).max();
    assert_eq!(Some(workload.bytes), most);
}

#[test]
fn a_workload_for_which_there_is_no_time_is_left_out_and_noted() {
    let mut lab = Lab::new(Kind::Lines).honest("one");
    (lab.request.lines, lab.request.within) = (None, Duration::ZERO);
    let (measured, notes) = lab.measure(&Stop::new());
    assert!(measured.unwrap().workloads.is_empty());
    assert!(notes.iter().any(|note| note == "lines is left out: no time within 0 s"), "{notes:?}");
}

#[test]
fn a_program_that_hangs_is_ended_and_its_other_workloads_are_still_tried() {
    let mut lab = Lab::new(Kind::Bytes);
    // Other programs must not exceed it on a busy machine.
    lab.request.timeout = Duration::from_secs(8);
    let hangs = "test $1 = bytes-read && while :; do sleep 1; done";
    let lab = lab.honest("before").with("rogue", hangs, "").honest("after");
    let failures = of_rogue(&lab);
    assert_eq!(because(&failures), ["took longer than 8.00 s and was ended"]);
}

#[test]
fn a_short_file_is_found_whatever_the_program_says_of_it() {
    let cut = "test $1 = bytes-write && head -c 100 \"$F/bytes-write-1000\" > \"$2\"";
    let lies = rogue(Kind::Bytes, "", cut);
    assert_eq!(because(&lies), ["the file has 100 bytes, not 1000 as the program says"]);
    let tells = rogue(Kind::Bytes, "", &format!("{cut} && bytes=100"));
    assert_eq!(because(&tells), ["the file has 100 bytes, not 1000"]);
    let says_less = rogue(Kind::Bytes, "said=999", "");
    assert_eq!(
        because(&says_less),
        [
            "says that it wrote 999 bytes, and was to do 1000",
            "says that it read 999 bytes, and was to do 1000"
        ]
    );
}

#[test]
fn earlier_figures_stand_if_no_file_can_be_made_any_more() {
    let away = "test $1 = bytes-read && rm -r \"${2%/*}\"";
    let lab = Lab::new(Kind::Bytes).honest("before").with("rogue", "", away).honest("after");
    let (measured, notes) = lab.measure(&Stop::new());
    let workloads = measured.unwrap().workloads;
    assert_eq!(workloads.len(), 1);
    assert_eq!((&*workloads[0].name, ids(&workloads[0]).len()), ("bytes/write", 3));
    assert!(notes.iter().any(|note| note.starts_with("bytes/read is left out in ")), "{notes:?}");
}

#[test]
fn a_program_that_replaces_the_file_to_append_to_or_saves_nothing_is_found() {
    let failures = rogue(Kind::Lines, "rm \"$2\"", "");
    assert_eq!(because(&failures), ["the line that was in the file before is not there any more"]);
    let lab = Lab::new(Kind::Save).with("rogue", "cp() { :; }", "");
    for workload in lab.workloads() {
        assert_eq!(because(&workload.failures), ["the file's byte 0 is 65, not 97"]);
    }
}

#[test]
fn a_program_that_changes_a_file_to_be_read_harms_no_other() {
    let spoil = "test $1 = bytes-read && { bytes=1000; printf X > \"$2\"; }";
    let lab = Lab::new(Kind::Bytes).with("rogue", "", spoil).honest("after").honest("before");
    assert_eq!(because(&of_rogue(&lab)), ["the file's byte 0 is 88, not 0"]);
}

#[test]
fn a_run_in_which_all_fail_has_a_result_and_each_failure_is_noted_at_once() {
    let lab = Lab::new(Kind::Lines).with("rogue", "exit 1", "").with("thief", "exit 2", "");
    let (measured, notes) = lab.measure(&Stop::new());
    let workloads = measured.unwrap().workloads;
    assert!(workloads[0].rows.is_empty());
    assert_eq!(workloads[0].failures.len(), 2);
    assert_eq!(
        notes,
        ["ROGUE: lines: ended with exit code 1", "THIEF: lines: ended with exit code 2"]
    );
}

#[test]
fn one_that_failed_is_not_run_again_in_that_workload() {
    let lab = Lab::new(Kind::Bytes);
    let tell = lab.files.path().join("runs");
    let count = format!("echo $1 >> {}; test $1 = bytes-write && exit 1", tell.display());
    let lab = lab.with("rogue", &count, "").honest("before").honest("after");
    assert_eq!(of_rogue(&lab).len(), 1);
    let runs = fs::read_to_string(tell).unwrap();
    assert_eq!(runs, "bytes-write\nbytes-read\nbytes-read\nbytes-read\n");
}

#[test]
fn programs_run_in_turn_and_every_second_round_backwards() {
    // M8
    let lab = Lab::new(Kind::Lines);
    let tell = lab.files.path().join("turns");
    let count = |id: &str| format!("echo {id} >> {}", tell.display());
    let lab = lab.with("a", &count("a"), "").with("b", &count("b"), "").with("c", &count("c"), "");
    lab.workloads();
    let turns: Vec<String> =
        fs::read_to_string(&tell).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(turns.concat(), "abccbaabc");
}

#[test]
fn reads_that_cannot_be_cold_are_left_out_and_it_is_said() {
    let memory = Path::new("/dev/shm");
    let is_memory = wrote::device::examine(memory).is_ok_and(|target| target.in_memory);
    if !is_memory {
        let test = "reads_that_cannot_be_cold_are_left_out_and_it_is_said";
        return fixtures::skip(test, "/dev/shm lies not in memory");
    }
    let mut lab = Lab::new(Kind::Bytes).honest("one");
    let folder = tempfile::tempdir_in(memory).unwrap();
    lab.place = folder.path().into();
    lab.request.drop_caches = true;
    let (measured, notes) = lab.measure(&Stop::new());
    let names: Vec<String> =
        measured.unwrap().workloads.into_iter().map(|workload| workload.name).collect();
    assert_eq!(names, ["bytes/write", "bytes/read"]);
    assert!(notes[0].starts_with("bytes/read-cold is left out in /dev/shm/"), "{notes:?}");
    assert!(folder.path().read_dir().unwrap().next().is_none());
}
