//! Tests of `wrote run`: it reads fio's job files, prints the result, and touches only the files of
//! the jobs.

use crate::support::{document, row, survived, wrote};
use fixtures::{Running, finish, folder, names};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wrote_result::document::{Direction, Survives};

const MIB: u64 = 1 << 20;

/// Two groups: a flushed write, and a mix of two clones.
const JOBS: &str = "[global]\nioengine=io_uring\niodepth=4\nsize=1m\n\
                    [seq]\nrw=write\nbs=128k\nend_fsync=1\n\
                    [mix]\nstonewall\nrw=randrw\nbs=4k\nnumjobs=2\ngroup_reporting\n";

/// A job that runs until a test stops it.
const LONG: &str = "[long]\nioengine=psync\nrw=write\nbs=4k\nsize=4m\ntime_based\nruntime=60\n";

/// Writes this text to the job file `jobs.fio` in the folder.
fn job_file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("jobs.fio");
    fs::write(&path, text).expect("a file");
    path
}

/// Returns the command `wrote run FOLDER/jobs.fio`, with its files in the folder. Each word of
/// `more` is a further argument.
fn run(folder: &Path, text: &str, more: &str) -> Command {
    let mut command = wrote(&["run"]);
    command.arg(job_file(folder, text)).arg("--directory").arg(folder);
    command.args(more.split_whitespace());
    command
}

/// The options of a job, as scripts pass them to fio.
const PASTED: &str = "--name=rand_rw_4k --ioengine=libaio --rw=randrw --rwmixread=50 --bs=4k \
                      --iodepth=8 --numjobs=2 --size=1m --runtime=30 --group_reporting --output-format=json";

#[test]
fn a_command_line_of_fio_is_run_and_its_json_has_the_figures() {
    let folder = folder();
    let mut program = wrote(&["run", "--allow-overlap"]);
    let arguments = PASTED.split_whitespace().chain(["--filename=test.fio"]);
    let finished = finish(program.args(arguments).current_dir(folder.path()));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let [job] = &document["jobs"].as_array().expect("jobs")[..] else { panic!("{document}") };
    assert_eq!(job["jobname"], "rand_rw_4k");
    let count = |direction: &str| job[direction]["io_kbytes"].as_u64().expect("a number");
    assert_eq!(count("read") + count("write"), 2048);
}

#[test]
fn options_of_jobs_stand_on_the_command_line_as_fios_do() {
    let folder = folder();
    let check = |arguments: &str| {
        let mut command = wrote(&["run", "--check"]);
        finish(command.args(arguments.split_whitespace()).current_dir(folder.path()))
    };
    fs::write(folder.path().join("jobs.fio"), "[x]\nrw=write\nsize=1m\n").expect("a file");
    let planned = check("--bs=8k --size=64k --rw=write --name=a --name=b -bs=4k --direct 0").stdout;
    assert!(planned.contains("a: write of 8k") && planned.contains("b: write of 4k"));
    // Together with a job file, the options apply to its jobs.
    assert!(check("jobs.fio --bs=8k").stdout.contains("x: write of 8k"));
    for (arguments, because) in [
        (
            "--name=a --rw=write --size=1m --iodepht=4",
            "iodepht=4: no such key; did you mean iodepth?",
        ),
        ("--readonly --name=a --size=1m --name=b --rw=write", "--readonly: job b writes"),
        (
            "--rw=write",
            "no job given; a job begins with its name: put --name=job before its options",
        ),
        (
            "jobs.fio --name=b",
            "--name=b: jobs come from files or from the command line: run one after the other",
        ),
        (
            "--name=a --zonesize=4k",
            "zonesize=4k: fio has this key, but it is not supported here: zones are not taken",
        ),
    ] {
        let finished = check(arguments);
        assert_eq!(finished.code(), Some(2), "{arguments}");
        assert_eq!(finished.complaint(), format!("wrote: {because}"));
    }
    assert_eq!(names(folder.path()), ["jobs.fio"]);
}

#[test]
fn jobs_are_rows_of_a_document_and_their_files_stay() {
    let folder = folder();
    let finished = finish(&mut run(folder.path(), JOBS, "--format json"));
    let document = document(&finished);
    assert_eq!(document.scenarios[0].name, "jobs.fio");
    let seq = row(&document, "seq");
    assert_eq!((seq.runs[0].bytes, seq.latency_ns.unwrap().count), (MIB, 8));
    assert!([Survives::PowerLoss, Survives::ProcessCrash].contains(&survived(seq)), "{seq:?}");
    let (read, write) = (row(&document, "mix/read"), row(&document, "mix/write"));
    assert_eq!((read.direction, write.direction), (Direction::Read, Direction::Write));
    assert_eq!(read.runs[0].bytes + write.runs[0].bytes, 2 * MIB);
    assert_eq!(read.settings.asked.numjobs, 2);
    assert_eq!(names(folder.path()), ["jobs.fio", "mix.0.0", "mix.1.0", "seq.0.0"]);
    assert!(finished.stderr.contains("writes at most 3.15 MB into"), "{}", finished.stderr);
}

/// The exit code, and the lines that begin with "wrote: ".
type Ending = (Option<i32>, String);

/// Runs the jobs with and without `--check`, each time in a folder that `prepare` has prepared.
/// Returns the outcomes with and without `--check`.
fn endings<G>(text: &str, more: &str, prepare: impl Fn(&Path) -> G) -> [Ending; 2] {
    let folder = folder();
    let inside = || {
        let mut all = names(folder.path());
        let below = folder.path().join("below");
        all.extend(below.is_dir().then(|| names(&below)).into_iter().flatten());
        all.retain(|name| name != "jobs.fio");
        all
    };
    [" --check", ""].map(|check| {
        for name in names(folder.path()) {
            let path = folder.path().join(name);
            let is_folder = path.is_dir() && !path.is_symlink();
            let removed =
                if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.expect("a file of the run before");
        }
        let _guard = prepare(folder.path());
        let before = inside();
        let finished = finish(&mut run(folder.path(), text, &format!("{more}{check}")));
        let told = finished.stderr.lines().filter(|line| line.starts_with("wrote: "));
        // The rest of the line mentions the free bytes, which change while other programs write.
        let told = told.filter_map(|line| line.split_inclusive("do not fit").next());
        if finished.code() != Some(0) || !check.is_empty() {
            assert_eq!(inside(), before, "{finished:?}");
        }
        (finished.code(), told.collect::<Vec<_>>().join("\n"))
    })
}

/// Returns a job of 1 MiB on the file `x`. `keys` are added, and take precedence.
fn job_on_x(keys: &str) -> String {
    format!("[a]\nfilename=x\nrw=write\nsize=1m\nbs=4k\nioengine=psync\n{keys}\n")
}

fn make_x(folder: &Path) {
    fs::write(folder.join("x"), vec![7; MIB as usize]).expect("a file");
}

#[test]
fn a_check_ends_as_the_run_does() {
    fn nothing(_: &Path) {}
    let short = make_x;
    fn empty(folder: &Path) {
        fs::write(folder.join("x"), "").expect("a file");
    }
    fn sparse(folder: &Path) {
        fs::File::create(folder.join("x")).and_then(|x| x.set_len(4 * MIB)).expect("a file");
    }
    let device = fs::read_dir("/dev").expect("it is there").flatten().map(|entry| entry.path());
    let is_device = |path: &PathBuf| {
        let found = path.metadata().is_ok_and(|it| it.file_type().is_block_device());
        // A user who may not read the device gets an error about that instead.
        found && fs::File::open(path).is_ok()
    };
    let device = device.into_iter().find(is_device).unwrap_or("/dev/null".into());
    let device = format!("[a]\nrw=write\nsize=1m\nfilename={}\n", device.display());
    let x = |keys: &str| format!("[a]\nfilename=x\nbs=4k\nioengine=psync\n{keys}");
    for (text, more, prepare, code, words) in [
        (x("rw=write\n"), "", nothing as fn(&Path), 2, "size"),
        (x("rw=read\n"), "", nothing, 2, "creating it needs a size"),
        (x("rw=write\nsize=1m\nnumjobs=2\n"), "", nothing, 2, "use the same bytes"),
        (x("rw=write\nsize=1m\nnumjobs=2\n"), "--allow-overlap", nothing, 0, "use the same bytes"),
        ("[a]\nrw=write\nsize=1m\ndirectory=nowhere\n".into(), "", nothing, 2, "nowhere"),
        (x("rw=write\nsize=4000p\n"), "", nothing, 1, "do not fit"),
        (device, "", nothing, 2, "block device"),
        (x("rw=write\nsize=1m\n"), "", short, 2, "--overwrite"),
        (x("rw=write\nsize=1m\n"), "--overwrite", short, 0, ""),
        (x("rw=read\nsize=2m\n"), "", short, 2, "has 1048576 bytes"),
        (
            x("rw=read\n[b]\nstonewall\nrw=read\noffset=8m\nfilename=x\n"),
            "",
            short,
            2,
            "to read; give",
        ),
        (x("rw=read\n"), "", empty, 2, "no room for one block"),
        (x("rw=read\n"), "", sparse, 2, "was never written from byte 0"),
        (x("rw=read\n"), "--read-unwritten", sparse, 0, ""),
        (x("rw=write\nsize=2m\n[b]\nstonewall\nrw=read\nfilename=x\n"), "", nothing, 0, ""),
        (
            x("rw=write\nsize=2m\n[b]\nstonewall\nrw=read\nfilename=x\nsize=4m\n"),
            "",
            nothing,
            0,
            "",
        ),
        (
            x("rw=write\nsize=2m\n[b]\nstonewall\nrw=read\nfilename=x\nsize=4m\n"),
            "--overwrite",
            short,
            2,
            "to read; give",
        ),
        (
            x("rw=write\nsize=2m\n[b]\nstonewall\nrw=read\nfilename=x\n"),
            "--overwrite",
            short,
            0,
            "",
        ),
    ] {
        let [check, run] = endings(&text, more, prepare);
        assert_eq!(check, run, "{text}");
        assert!(check.0 == Some(code) && check.1.contains(words), "{text}{check:?}");
    }
}

#[test]
fn a_check_finds_links_in_circles() {
    let round = |folder: &Path| symlink("x", folder.join("x")).expect("a link");
    let [check, run] = endings(&job_on_x(""), "", round);
    assert_eq!(check, run);
    assert!(check.1.contains("x: can't be examined: Too many levels of"), "{check:?}");
}

#[test]
fn folders_in_names_and_files_that_links_lead_to_are_made() {
    let folder = folder();
    symlink("a/b/x", folder.path().join("x")).expect("a link");
    for (keys, file, made) in
        [("", "x", "a/b/x"), ("", "c/d/y", "c/d/y"), ("size=25%", "x", "a/b/x")]
    {
        let job = job_on_x(keys).replace("filename=x", &format!("filename={file}"));
        fs::write(folder.path().join("x.fio"), job).expect("a job");
        let mut run = Command::new(env!("CARGO_BIN_EXE_wrote"));
        run.args(["run", "--overwrite", "x.fio"]).current_dir(folder.path());
        let finished = finish(run.stdout(Stdio::piped()).stderr(Stdio::piped()));
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert_eq!(fs::metadata(folder.path().join(made)).expect("a file").len(), MIB);
    }
    let missing = job_on_x("directory=no");
    assert!(endings(&missing, "", |_| ())[0].1.contains("directory=no: there is no such"));
}

#[test]
fn a_result_that_would_lie_where_a_job_writes_is_refused_before_anything_is_made() {
    let folder = folder();
    let mut command = run(folder.path(), "[a]\nrw=write\nsize=64k\n", "--force --output");
    let finished = finish(command.arg(folder.path().join("./a.0.0")));
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    assert!(finished.complaint().contains("job a uses this file"), "{finished:?}");
    assert_eq!(names(folder.path()), ["jobs.fio"]);
}

#[test]
fn an_error_in_a_job_file_is_one_line_with_its_number() {
    let folder = folder();
    let finished = finish(&mut run(folder.path(), "[a]\nrw=write\nsiez=1m\n", ""));
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    let line = finished.complaint();
    assert!(line.starts_with("wrote: jobs.fio: line 3: ") && line.contains("size"), "{line}");
}

#[test]
fn a_job_can_be_chosen_by_its_name_and_one_that_is_not_there_is_answered_with_those_that_are() {
    let folder = folder();
    let chosen = finish(&mut run(folder.path(), JOBS, "--section seq --format json"));
    assert_eq!(document(&chosen).scenarios[0].rows.len(), 1);
    assert_eq!(names(folder.path()), ["jobs.fio", "seq.0.0"]);
    let unknown = finish(&mut run(folder.path(), JOBS, "--section sqe"));
    assert_eq!(unknown.code(), Some(2), "{unknown:?}");
    assert!(unknown.complaint().ends_with("the jobs are mix, seq"), "{unknown:?}");
}

#[test]
fn a_job_file_is_read_from_standard_input() {
    let folder = folder();
    let text = fs::File::open(job_file(folder.path(), JOBS)).expect("a file");
    let mut command = wrote(&["run", "-", "--check"]);
    let finished = finish(command.stdin(Stdio::from(text)).current_dir(folder.path()));
    assert!(finished.stdout.contains("  seq: "), "{finished:?}");
}

#[test]
fn jobs_that_are_interrupted_leave_nothing_and_end_with_130() {
    let folder = folder();
    let mut running = Running::start(&mut run(folder.path(), LONG, ""));
    let file = folder.path().join("long.0.0");
    running.until("the job's file", || file.exists().then_some(()));
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(130), ""), "{finished:?}");
    assert!(finished.stderr.ends_with("wrote: interrupted\n"), "{finished:?}");
    assert_eq!(names(folder.path()), ["jobs.fio"]);
}

#[test]
fn all_errors_of_all_job_files_are_told_a_line_each() {
    let folder = folder();
    fs::write(folder.path().join("other.fio"), "[b]\nfoo=2\n").expect("a file");
    let text = "[a]\nrw=wirte\niodeph=4\noutput-format=json\n";
    let finished = finish(run(folder.path(), text, "").arg(folder.path().join("other.fio")));
    let said: Vec<&str> = finished.stderr.lines().collect();
    let orders = "read, write, rw, randread, randwrite or randrw";
    let expected = [
        &*format!("wrote: jobs.fio: line 2: rw=wirte: must be {orders}; did you mean write?"),
        "wrote: jobs.fio: line 3: iodeph=4: no such key; did you mean iodepth?",
        "wrote: jobs.fio: line 4: output-format=json: is an option of fio's command line, not a \
         key for a job",
        "wrote: other.fio: line 2: foo=2: no such key",
    ];
    assert_eq!((said, finished.code()), (expected.to_vec(), Some(2)));
    let many = format!("[a]\n{}", "foo=1\n".repeat(30));
    let finished = finish(&mut run(folder.path(), &many, ""));
    assert_eq!(finished.stderr.lines().count(), 20, "{finished:?}");
    assert_eq!(finished.stderr.lines().last(), Some("wrote: and 11 more errors in job files"));
}

#[test]
fn a_size_that_direct_io_cannot_have_is_told_with_its_job_its_line_and_both_keys() {
    let folder = folder();
    let job = "[global]\ndirect=1\nrw=write\n[wal]\nsize=1m\n";
    for (keys, written) in [
        ("bs=2300", "line 6: [wal] bs=2300"),
        ("bssplit=4k/50:1000/50", "line 6: [wal] bssplit=4k/50:1000/50: 1000"),
    ] {
        let finished = finish(&mut run(folder.path(), &format!("{job}{keys}\n"), ""));
        if finished.code() == Some(0) {
            // If O_DIRECT is refused, the job falls back to cached I/O.
            return fixtures::skip("alignment", "there is no direct I/O in this folder");
        }
        let line = finished.stderr.lines().last().unwrap_or_default();
        let said = format!("wrote: jobs.fio: {written} is not a multiple of ");
        let is_whole = line.contains(", which direct=1 needs here; use ");
        assert!(line.starts_with(&said) && is_whole && line.ends_with(", or direct=0"), "{line}");
        assert_eq!((finished.code(), names(folder.path())), (Some(2), vec!["jobs.fio".into()]));
    }
}

#[test]
fn clones_on_one_file_are_one_note() {
    let folder = folder();
    let jobs = "[a]\nfilename=x\nrw=write\nsize=64k\nnumjobs=16\nthread\n[b]\nthread\nsize=64k\n";
    let finished = finish(&mut run(folder.path(), jobs, "--allow-overlap --check"));
    let notes: Vec<&str> =
        finished.stderr.lines().filter(|line| line.starts_with("wrote: note")).collect();
    assert_eq!(notes.len(), 2, "{finished:?}");
    assert!(notes[1].contains("a, a (1), a (10) and 13 more use the same bytes"), "{notes:?}");
}

#[test]
fn the_file_of_a_killed_run_is_found_by_clean_and_that_of_another_is_not() {
    let folder = folder();
    let file = folder.path().join("long.0.0");
    let clean = || finish(wrote(&["clean"]).arg(folder.path())).stdout;
    let mut running = Running::start(&mut run(folder.path(), LONG, ""));
    running.until("the job's file", || file.exists().then_some(()));
    let said = clean();
    if said == "nothing to clean\n" {
        running.send(Signal::KILL);
        running.finish();
        return fixtures::skip("found_by_clean", "files have no attributes in this folder");
    }
    assert_eq!(said, format!("kept {}: its run is still going\n", file.display()));
    running.send(Signal::KILL);
    running.finish();
    let said = clean();
    assert!(said.starts_with(&format!("kept {} (", file.display())), "{said}");
    let remove = wrote_result::quoted(&["rm", &file.display().to_string()]);
    assert!(said.ends_with(&format!("; {remove} removes it\n")), "{said}");
    // A copy belongs to the user, and so does a file that a later run was allowed to overwrite.
    let copy = folder.path().join("copy");
    let copied = Command::new("cp").arg("-a").args([&file, &copy]).status().expect("cp");
    assert!(copied.success() && clean().lines().count() == 1);
    let short = LONG.replace("time_based\nruntime=60\n", "");
    assert_eq!(finish(&mut run(folder.path(), &short, "--overwrite")).code(), Some(0));
    assert_eq!(clean(), "nothing to clean\n");
    fs::remove_file(&file).expect("a file");
    assert_eq!(finish(&mut run(folder.path(), &short, "")).code(), Some(0));
    assert_eq!(clean(), "nothing to clean\n", "the user's from the run's end on");
}
