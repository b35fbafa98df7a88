//! Tests of the program under `mpirun`: all ranks produce a single result, and exit together.

use fixtures::{folder, names};
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A time limit that only a hang reaches.
const PATIENCE: Duration = Duration::from_secs(180);
const RANKS: [&str; 3] = ["--allow-run-as-root", "--oversubscribe", "--quiet"];

/// Returns the command with this number of ranks; `None` without `mpirun`.
fn mpirun(test: &str, ranks: u32, arguments: &[&str]) -> Option<Command> {
    if Command::new("mpirun").arg("--version").output().is_err() {
        fixtures::skip(test, "mpirun is not installed");
        return None;
    }
    let mut command = Command::new("mpirun");
    command.args(RANKS).args(["--bind-to", "none", "-np", &ranks.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_wrote")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// Returns the words of a line of arguments, with `HERE` replaced by the path.
fn words<'a>(line: &'a str, here: &'a Path) -> Vec<&'a str> {
    let here = here.to_str().unwrap();
    line.split_whitespace().map(|word| if word == "HERE" { here } else { word }).collect()
}

/// How long `mpirun` may take to exit after its ranks.
const END: Duration = Duration::from_secs(10);

/// Waits for a process, and kills it if it hangs.
///
/// The `mpirun` of Open MPI 4.1 can lock a mutex of PMIx twice after its last rank has exited; it
/// then hangs or crashes. [`has_failed`] accepts both.
fn ended(mut child: Child) -> Output {
    let began = Instant::now();
    let mut without_ranks: Option<Instant> = None;
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).map(|_| bytes).unwrap_or_default()
        })
    };
    let out = read(Box::new(child.stdout.take().unwrap()));
    let err = read(Box::new(child.stderr.take().unwrap()));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let ranks = children(child.id());
        let have_ended = !ranks.is_empty() && !ranks.into_iter().any(lives);
        without_ranks = without_ranks.filter(|_| have_ended);
        if have_ended {
            without_ranks.get_or_insert_with(Instant::now);
        }
        if without_ranks.is_some_and(|since| since.elapsed() > END) {
            let _ = child.kill();
        } else if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("mpirun hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

/// Returns the processes that `mpirun` has started and not yet waited for.
fn children(starter: u32) -> Vec<i32> {
    let path = format!("/proc/{starter}/task/{starter}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    children.split(' ').filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns whether a process is still running, and is not just a zombie.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// Returns whether `mpirun` failed because its ranks did, or hung or crashed after they had exited.
fn has_failed(output: &Output) -> bool {
    output.status.code() == Some(1) || output.status.signal().is_some()
}

fn run(mut command: Command) -> Output {
    ended(command.spawn().unwrap())
}

fn json(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout).expect("one document")
}

/// Returns the lines that the program itself printed; the launcher (mpirun) prints its own.
fn complaints(output: &Output) -> Vec<String> {
    let told = String::from_utf8_lossy(&output.stderr);
    told.lines().filter(|line| line.starts_with("wrote: ")).map(String::from).collect()
}

fn rows(document: &Value) -> Vec<&Value> {
    let scenarios = document["scenarios"].as_array().unwrap();
    scenarios.iter().flat_map(|scenario| scenario["rows"].as_array().unwrap()).collect()
}

/// Returns the processes of the ranks, which are children of the launcher.
fn ranks_of(starter: u32) -> Vec<i32> {
    let began = Instant::now();
    loop {
        let is_ours = |pid: &i32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.trim() == "wrote")
        };
        let ranks: Vec<i32> = children(starter).into_iter().filter(is_ours).collect();
        if ranks.len() == 3 {
            return ranks;
        }
        assert!(began.elapsed() < PATIENCE, "there are no three ranks");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Starts three ranks that would measure for a long time, and returns once they write; `None`
/// without `mpirun`. Each run is short, even on a busy disk, because a rank waits for the others up
/// to ten times as long as its own run took.
fn busy(test: &str, folder: &Path, more: &[&str]) -> Option<(Child, Vec<i32>)> {
    let path = folder.to_str().unwrap();
    let mut arguments = vec!["bench", path, "--only", "small", "--size", "64K", "--runs", "1000"];
    arguments.extend(more);
    let child = mpirun(test, 3, &arguments)?.spawn().unwrap();
    let ranks = ranks_of(child.id());
    let began = Instant::now();
    let is_written = || {
        let mut found = std::fs::read_dir(folder).unwrap().flatten();
        found.any(|entry| names(&entry.path()).iter().any(|name| name.contains("-rank2-")))
    };
    while !is_written() {
        assert!(began.elapsed() < PATIENCE, "nothing is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    Some((child, ranks))
}

#[test]
fn all_ranks_give_one_result() {
    let folder = folder();
    let line = "bench HERE --only small/fdatasync-each,stream/direct-psync --size 4MiB --runs 2 \
                --format json";
    let arguments = words(line, folder.path());
    let Some(command) = mpirun("all_ranks_give_one_result", 4, &arguments) else { return };
    let document = json(&run(command));
    assert_eq!(document["ranks"]["ranks"], 4);
    assert_eq!(document["ranks"]["files"], "per-rank");
    let nodes = document["ranks"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0]["ranks"], serde_json::json!([0, 1, 2, 3]));
    // Both nodes have the same clock. The messages that compare the clocks take less than a second.
    assert!(nodes[0]["clock_offset_s"].as_f64().unwrap().abs() < 0.5);
    for row in rows(&document) {
        assert_eq!(row["settings"]["asked"]["numjobs"], 4);
        for run in row["runs"].as_array().unwrap() {
            let spread = &run["ranks"];
            let [slow, fast] =
                ["slowest", "fastest"].map(|of| spread[of]["iops"].as_f64().unwrap());
            assert!(slow <= fast, "{spread}");
            assert!(spread["stonewalled_bytes_per_s"].as_f64().unwrap() > 0.0);
            // The whole run takes at least as long as any rank.
            let whole_s = run["elapsed_s"].as_f64().unwrap();
            assert!(spread["slowest"]["elapsed_s"].as_f64().unwrap() <= whole_s * 1.01 + 1e-3);
        }
    }
    let stream = rows(&document).into_iter().find(|row| row["name"] == "stream/direct-psync");
    assert_eq!(stream.unwrap()["runs"][0]["bytes"], 4 * (4 << 20));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn ranks_share_one_file_in_segments() {
    let folder = folder();
    let job = folder.path().join("a.fio");
    let text = "[w]\nrw=write\nbs=4k\nsize=64k\nfilename=data\nend_fsync=1\n[r]\nstonewall\n\
                rw=read\nbs=4k\nsize=64k\nfilename=data\n";
    std::fs::write(&job, text).unwrap();
    let (job, path) = (job.to_str().unwrap(), folder.path().to_str().unwrap());
    let arguments = ["run", job, "--directory", path, "--shared-file", "--format", "json"];
    let Some(command) = mpirun("ranks_share_one_file_in_segments", 4, &arguments) else { return };
    let document = json(&run(command));
    assert_eq!(document["ranks"]["files"], "segments");
    for row in rows(&document) {
        assert_eq!(row["runs"][0]["bytes"], 4 * (64 << 10), "{}", row["name"]);
    }
    assert_eq!(names(folder.path()), ["a.fio", "data"]);
    let data = std::fs::read(folder.path().join("data")).unwrap();
    assert_eq!(data.len(), 4 * (64 << 10));
    let is_written = |block: &[u8]| block.iter().any(|byte| *byte != 0);
    assert!(data.chunks(4096).all(is_written), "every block is some rank's");
}

#[test]
fn each_rank_has_a_file_of_its_own() {
    let test = "each_rank_has_a_file_of_its_own";
    let folder = folder();
    let job = folder.path().join("a.fio");
    let text = "[w]\nrw=write\nbs=64k\nsize=1m\nfilename=data\n\
                [r]\nstonewall\nrw=read\nbs=64k\nsize=1m\nfilename=data\n";
    std::fs::write(&job, text).unwrap();
    let (job, path) = (job.to_str().unwrap(), folder.path().to_str().unwrap());
    let arguments = ["run", job, "--directory", path, "--format", "json"];
    let Some(command) = mpirun(test, 2, &arguments) else { return };
    let document = json(&run(command));
    assert_eq!(rows(&document).len(), 2);
    assert_eq!(names(folder.path()), ["a.fio", "data.00000000", "data.00000001"]);
    // W7: existing files are not overwritten.
    let again = run(mpirun(test, 2, &arguments).unwrap());
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(complaints(&again).len(), 1, "{:?}", complaints(&again));
}

/// A disk of 1 MiB, which is unmounted when this value is dropped.
struct SmallDisk(std::path::PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn small_disk(test: &str, point: &Path) -> Option<SmallDisk> {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", "size=1M", "tmpfs"]).arg(point).stderr(Stdio::null());
    if command.status().is_ok_and(|status| status.success()) {
        return Some(SmallDisk(point.to_owned()));
    }
    fixtures::skip(test, "a tmpfs can't be mounted here");
    None
}

#[test]
fn a_killed_rank_ends_all_and_leaves_nothing() {
    let test = "a_killed_rank_ends_all_and_leaves_nothing";
    let folder = folder();
    let Some((child, ranks)) = busy(test, folder.path(), &[]) else { return };
    send(ranks[1], rustix::process::Signal::KILL);
    let output = ended(child);
    assert!(!output.status.success());
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
}

#[test]
fn a_hung_rank_ends_all_and_is_named() {
    let test = "a_hung_rank_ends_all_and_is_named";
    let folder = folder();
    let Some((child, ranks)) = busy(test, folder.path(), &["--rank-timeout", "2s"]) else { return };
    send(ranks[2], rustix::process::Signal::STOP);
    let output = ended(child);
    assert!(has_failed(&output), "{:?}", output.status);
    let complaints = complaints(&output);
    let named = complaints.iter().filter(|line| line.contains("s behind the others"));
    assert_eq!(named.count(), 1, "{complaints:?}");
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
}

/// Builds a program that starts MPI and then does nothing.
fn hanging(folder: &Path) -> Result<std::path::PathBuf, String> {
    let (source, program) = (folder.join("hanging.c"), folder.join("hanging"));
    let text = "#include <mpi.h>\n#include <unistd.h>\n\
                int main(int argc, char **argv) { MPI_Init(&argc, &argv); for (;;) pause(); }\n";
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new("mpicc");
    let built = command.arg(&source).arg("-o").arg(&program).output();
    let built = built.map_err(|error| format!("mpicc: {error}"))?;
    let told = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{told}");
    Ok(program)
}

#[test]
fn a_rank_that_hangs_while_the_ranks_start_ends_all_and_is_named() {
    let test = "a_rank_that_hangs_while_the_ranks_start_ends_all_and_is_named";
    let [folder, programs] = [folder(), folder()];
    let path = folder.path().to_str().unwrap();
    // This is long enough for the other two ranks to start on a busy machine.
    let arguments = ["bench", path, "--only", "meta", "--rank-timeout", "10s"];
    let Some(mut command) = mpirun(test, 2, &arguments) else { return };
    match hanging(programs.path()) {
        Ok(program) => command.args([":", "-np", "1"]).arg(program),
        Err(because) => return fixtures::skip(test, &because),
    };
    let output = run(command);
    assert!(has_failed(&output), "{:?}", output.status);
    let complaints = complaints(&output);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(
        complaints[0].contains("rank 2 was more than 10 s behind the others"),
        "{complaints:?}"
    );
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
}

#[test]
fn an_interrupt_of_the_starter_takes_back_the_files_of_jobs() {
    let test = "an_interrupt_of_the_starter_takes_back_the_files_of_jobs";
    for shared in [&[][..], &["--shared-file"]] {
        let folder = folder();
        let job = folder.path().join("a.fio");
        let text = "[r]\nrw=read\nbs=64k\nsize=1m\nfilename=data\ntime_based=1\nruntime=600\n";
        std::fs::write(&job, text).unwrap();
        let (job, path) = (job.to_str().unwrap(), folder.path().to_str().unwrap());
        let arguments = [&["run", job, "--directory", path][..], shared].concat();
        let Some(mut command) = mpirun(test, 3, &arguments) else { return };
        let child = command.spawn().unwrap();
        ranks_of(child.id());
        let files = if shared == ["--shared-file"] { 1 } else { 3 };
        let began = Instant::now();
        while names(folder.path()).len() < 1 + files {
            assert!(began.elapsed() < PATIENCE, "{:?}", names(folder.path()));
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(200));
        send(child.id() as i32, rustix::process::Signal::INT);
        let output = ended(child);
        assert!(!output.status.success());
        assert_eq!(names(folder.path()), ["a.fio"], "{shared:?}");
    }
}

#[test]
fn a_rank_that_fails_takes_back_the_files_of_all() {
    let test = "a_rank_that_fails_takes_back_the_files_of_all";
    let folder = folder();
    let [first, second] = ["0", "1"].map(|name| folder.path().join(name));
    std::fs::create_dir(&first).unwrap();
    std::fs::create_dir(&second).unwrap();
    let Some(_mounted) = small_disk(test, &second) else { return };
    let job = folder.path().join("a.fio");
    // The rank with enough room has already finished when the other one fails.
    let text = "[w]\nrw=write\nbs=64k\nsize=8m\nfilename=data\nfallocate=none\n";
    std::fs::write(&job, text).unwrap();
    let directory = format!("{}/{{rank}}", folder.path().display());
    let arguments = ["run", job.to_str().unwrap(), "--directory", &directory];
    let Some(command) = mpirun(test, 2, &arguments) else { return };
    let output = run(command);
    assert!(has_failed(&output), "{:?}", output.status);
    let complaints = complaints(&output);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].contains("rank 1 on "), "{complaints:?}");
    assert_eq!([names(&first), names(&second)], [[""; 0], [""; 0]], "both have cleaned up");
}

#[test]
fn every_scenario_is_measured_by_all_ranks() {
    let test = "every_scenario_is_measured_by_all_ranks";
    let folder = folder();
    // Only one or two rows of each scenario are measured, because all rows would take minutes.
    let only = "small/cached,ways/file/fs-write,latency/existing/fs-write,append/log-written,\
                peak/write,rand/mix,sustained,meta/own";
    let line = format!(
        "bench HERE --only {only} --size 4MiB --runs 1 --messages 1000 --meta-files 20 \
         --format json"
    );
    let arguments = words(&line, folder.path());
    let Some(command) = mpirun(test, 2, &arguments) else { return };
    let document = json(&run(command));
    let measured = document["scenarios"].as_array().unwrap();
    let names_of: Vec<&str> = measured.iter().filter_map(|of| of["name"].as_str()).collect();
    let all = ["ladder", "ways", "latency", "append", "peak", "rand", "sustained", "meta"];
    assert!(all.iter().all(|name| names_of.contains(name)), "{names_of:?}");
    for row in rows(&document) {
        for run in row["runs"].as_array().unwrap() {
            assert!(run["ranks"]["slowest"]["rank"].is_number(), "{}: {run}", row["name"]);
        }
    }
    assert!(names(folder.path()).is_empty());
}

/// Runs the default benchmark, as a user would start it. `cargo xtask nightly ranks` runs this
/// test.
#[test]
#[ignore = "nightly"]
fn the_default_benchmark_of_four_ranks_prints_one_table() {
    let test = "the_default_benchmark_of_four_ranks_prints_one_table";
    let folder = folder();
    let Some(command) = mpirun(test, 4, &["bench", folder.path().to_str().unwrap()]) else {
        return;
    };
    let began = Instant::now();
    let output = run(command);
    let (told, took) = (String::from_utf8_lossy(&output.stdout), began.elapsed());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(told.matches("4 ranks").count(), 1, "{told}");
    println!("it took {took:.0?}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn an_interrupt_of_the_starter_cleans_up_everywhere() {
    let test = "an_interrupt_of_the_starter_cleans_up_everywhere";
    let folder = folder();
    let Some((child, _)) = busy(test, folder.path(), &[]) else { return };
    send(child.id() as i32, rustix::process::Signal::INT);
    let output = ended(child);
    assert!(!output.status.success());
    assert!(complaints(&output).len() <= 1, "{:?}", complaints(&output));
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
}

#[test]
fn a_refusal_by_all_ranks_is_printed_once() {
    let test = "a_refusal_by_all_ranks_is_printed_once";
    let folder = folder();
    let unknown = ["bench", folder.path().to_str().unwrap(), "--only", "serve/relp"];
    let alone = ["langs", folder.path().to_str().unwrap()];
    for arguments in [&["bench", "--siez", "1G"][..], &["bench", "/nowhere"], &unknown, &alone] {
        // mpirun can lose the output of a rank that has failed.
        let said = (0..5).find_map(|_| {
            let output = run(mpirun(test, 3, arguments)?);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            Some(complaints(&output)).filter(|complaints| !complaints.is_empty())
        });
        let Some(said) = said else { return assert!(mpirun(test, 3, arguments).is_none()) };
        assert_eq!(said.len(), 1, "{arguments:?}: {said:?}");
    }
}
